"""Standardising columns with the statistics of the training rows, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from mvlstm.errors import ModelFileError, is_whole
from mvlstm.types import AnyArray, BoolArray, FloatArray, IntArray

_CHUNK = 250_000  # values at a time
_STEADY = 4 * np.finfo(np.float64).eps  # deviation, as a share of the values' size, that is none


@dataclass(frozen=True, eq=False)
class Scaler:
    """Shift and scale each column: ``(x - center) / scale``.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler.transform(np.array([[4.0, 5.0]]))
    array([[2., 0.]])
    """

    center: FloatArray  # (columns,)
    scale: FloatArray  # (columns,), 1 of one that does not vary

    @classmethod
    def fit(cls, values: FloatArray, measured: BoolArray | None = None) -> Scaler:
        """Take mean and standard deviation of each column of ``values`` (rows, columns).

        Those of the last column, the target, are of the rows (rows,) in which it was measured, if
        it varies in these.
        """
        columns = list(np.asarray(values, dtype=np.float64).T)
        if measured is not None and len(np.unique(columns[-1][measured])) > 1:
            columns[-1] = columns[-1][measured]
        center, scale = np.array([_mean_and_deviation(column) for column in columns]).T.copy()
        return cls(center, scale)

    def take(self, columns: IntArray) -> Scaler:
        """Make a scaler of some of the columns."""
        return Scaler(self.center[columns], self.scale[columns])

    def transform(self, values: FloatArray, *, dtype: DTypeLike = np.float64) -> AnyArray:
        """Scale values (rows, columns), a stretch at a time: float32 needs no copy in float64."""
        result = np.empty(values.shape, dtype=dtype)
        for part in stretches(*values.shape):
            result[part] = (values[part] - self.center) / self.scale
        return result

    def inverse(self, values: AnyArray) -> FloatArray:
        """Undo `transform`."""
        return values.astype(np.float64) * self.scale + self.center

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values that JSON can hold, without loss."""
        return _plain(self, "center", "scale")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scaler:
        """Build a scaler from what `to_dict` returned, checking it."""
        return cls(*_checked(values, "center", "scale"))


@dataclass(frozen=True, eq=False)
class SeriesScaler:
    """Scaling of several series, each by statistics of its own."""

    names: tuple[str, ...]  # of the series that training had enough rows of
    center: FloatArray  # (series, columns)
    scale: FloatArray  # (series, columns)
    common: Scaler  # of all rows together: for columns that are not scaled by series
    own: BoolArray  # (columns,) which of them each series scales by itself
    guess: Guess  # of the scale of columns that do not vary in a series
    static: tuple[int, ...] = ()  # columns that tell series apart, and are not scaled by series

    @classmethod
    def fit(
        cls,
        values: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        own: BoolArray,
        least: int,
        measured: BoolArray | None = None,
    ) -> SeriesScaler:
        """Take mean and standard deviation of each series with ``least`` rows or more.

        The code of a row of ``values`` (rows, columns) is its place in ``names``; codes never fall.
        Statistics of the target, the last column, are of the rows in which it was ``measured``
        (rows,), in a series that has any.
        """
        common = Scaler.fit(values, measured)
        own_of = _statistics(values, codes, least, measured)
        static = own & _static(own_of.mean, own_of.deviation, common)
        static[-1] = False
        own = own & ~static
        guess = Guess.of(own_of.mean, own_of.deviation, common)
        scaling = _own_or_common(own_of.mean, own_of.deviation, common, own, guess)
        present = tuple(names[k] for k in own_of.present)
        return cls(present, *scaling, common, own, guess, tuple(np.flatnonzero(static).tolist()))

    def of_others(
        self,
        values: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        least: int,
        measured: BoolArray | None = None,
    ) -> SeriesScaler:
        """Return the scaling of other series, given as in `fit`; what all share stays."""
        own_of = _statistics(values, codes, least, measured)
        of_all = (self.common, self.own, self.guess)
        center, scale = _own_or_common(own_of.mean, own_of.deviation, *of_all)
        present = tuple(names[k] for k in own_of.present)
        return replace(self, names=present, center=center, scale=scale)

    def rows(
        self,
        values: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        *,
        window: int,
        measured: BoolArray | None = None,
    ) -> RowScaler:
        """Return the scaling of each row of a table, given as in `fit`.

        A series that training did not have is scaled by what is known of it at each row, so that
        no forecast depends on later values: mean and deviation of its rows up to that one, and of
        the first ``window`` rows for these. `RowScaler.windows` brings whole windows to one scale.
        """
        place = {name: k for k, name in enumerate(self.names)}
        index = np.array([place.get(name, -1) for name in names], dtype=np.int64)[codes]
        unseen = np.flatnonzero(index < 0)
        scalings = [(self.center, self.scale)]
        if len(unseen):
            for rows in np.split(unseen, np.flatnonzero(np.diff(codes[unseen])) + 1):
                known = None if measured is None else measured[rows]
                running = _running(values[rows], window, known)
                scalings.append(_own_or_common(*running, self.common, self.own, self.guess))
            index[unseen] = len(self.names) + np.arange(len(unseen))
        center, scale = (np.concatenate(each) for each in zip(*scalings, strict=True))
        return RowScaler(center, scale, index, len(self.names))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without loss."""
        scaling, guess = _plain(self, "center", "scale"), _plain(self.guess, "share", "least")
        static = {"static": list(self.static)} if self.static else {}
        return {"names": list(self.names), **scaling, "guess": guess, **static}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], common: Scaler, own: BoolArray) -> SeriesScaler:
        """Build from what `to_dict` returned, checking it."""
        names, columns = tuple(str(name) for name in values["names"]), len(common.center)
        scaling = _checked(values, "center", "scale", shape=(len(names), columns))
        share, least = _checked(values["guess"], "share", "least", shape=(columns,))
        if len(own) != columns or (share <= 0).any():
            raise ModelFileError("The scaling of the series is damaged.")
        static = tuple(values.get("static", ()))
        if not all(is_whole(one) and 0 <= one < columns - 1 for one in static):
            raise ModelFileError("The scaling of the series is damaged.")
        own = own & ~np.isin(np.arange(columns), static)
        return cls(names, *scaling, common, own, Guess(share, least), static)


@dataclass(frozen=True, eq=False)
class RowScaler:
    """Shift and scale each row by one of several scalings."""

    center: FloatArray  # (scalings, columns)
    scale: FloatArray  # (scalings, columns)
    index: IntArray  # (rows,) the scaling of each row
    fixed: int  # scalings of whole series, the first; each of the others is one row's

    @property
    def moving(self) -> BoolArray:
        """Which rows have a scaling of their own."""
        return self.index >= self.fixed

    @property
    def target(self) -> tuple[FloatArray, FloatArray]:
        """Center and scale of the target in each row."""
        return self.center[self.index, -1], self.scale[self.index, -1]

    def take(self, columns: IntArray) -> RowScaler:
        """Make a scaler of some of the columns."""
        return RowScaler(self.center[:, columns], self.scale[:, columns], self.index, self.fixed)

    def transform(self, values: FloatArray, *, dtype: DTypeLike = np.float64) -> AnyArray:
        """Scale values (rows, columns), a stretch of rows at a time."""
        result = np.empty(values.shape, dtype=dtype)
        for part in stretches(*values.shape):
            which = self.index[part]
            result[part] = (values[part] - self.center[which]) / self.scale[which]
        return result

    def windows(self, table: AnyArray, origins: IntArray, window: int) -> AnyArray:
        """Return the windows that end at M origins, one after another: (M * window, columns).

        ``table`` is as `transform` made it; each window is brought to the scale of its last row.
        """
        result = np.empty((len(origins), window, table.shape[1]), dtype=table.dtype)
        for part in stretches(len(origins), window * table.shape[1]):
            rows = origins[part, None] + np.arange(1 - window, 1)
            then, now = self.index[rows], self.index[origins[part], None]
            with np.errstate(over="ignore", invalid="ignore"):  # as in the table itself
                values = table[rows] * self.scale[then] + (self.center[then] - self.center[now])
                result[part] = values / self.scale[now]
        return result.reshape(-1, table.shape[1])


@dataclass(frozen=True, eq=False)
class Guess:
    """How much a series varies that has not varied yet, by those that have."""

    share: FloatArray  # (columns,) of its level: their median
    least: FloatArray  # (columns,) at the level zero: the lower quartile of their deviations

    @classmethod
    def of(cls, mean: FloatArray, deviation: FloatArray, common: Scaler) -> Guess:
        """Learn from the mean and deviation (series, columns) of several series."""
        share, least = np.ones(len(common.scale)), common.scale.copy()
        varies = _varies(mean, deviation, common)
        for column in np.flatnonzero(varies.any(axis=0)):
            level, spread = (values[varies[:, column], column] for values in (mean, deviation))
            away = level != 0
            if away.any():
                share[column] = min(1.0, float(np.median(spread[away] / np.abs(level[away]))))
            least[column] = np.exp(np.quantile(np.log(spread), 0.25))
        return cls(share, least)

    def __call__(self, level: FloatArray) -> FloatArray:
        """Return the scale of series at given levels (k, columns) that do not vary."""
        return np.where(level == 0, self.least, self.share * np.abs(level))


def stretches(rows: int, size: int) -> Iterator[slice]:
    """Divide rows of ``size`` values each, so that a stretch holds a bounded number of them."""
    step = max(1, _CHUNK // max(1, size))
    return (slice(start, start + step) for start in range(0, rows, step))


def _plain(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name).tolist() for name in names}


def _checked(
    values: Mapping[str, Any], level: str, scale: str, *, shape: tuple[int, ...] = (-1,)
) -> tuple[FloatArray, FloatArray]:
    """Read levels and scales of a file, if they are finite and of one shape; scales positive."""
    try:
        given = np.array([values[level], values[scale]], dtype=np.float64)
        found = given.reshape(2, *shape)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"The scaling is damaged: {error}") from error
    if given.ndim > found.ndim or not np.isfinite(found).all() or not (found[1] > 0).all():
        raise ModelFileError(f"The scaling is damaged: {level} and {scale} must be finite.")
    return found[0].copy(), found[1].copy()


def _own_or_common(
    mean: FloatArray, deviation: FloatArray, common: Scaler, own: BoolArray, guess: Guess
) -> tuple[FloatArray, FloatArray]:
    """Return centers and scales (k, columns): the common ones where there are no own.

    A column that does not vary in a series has the scale that others let guess.
    """
    center = np.where(own, mean, common.center)
    flat = np.where(own, guess(mean), common.scale)
    return center, np.where(own & _varies(mean, deviation, common), deviation, flat)


def _varies(mean: FloatArray, deviation: FloatArray, common: Scaler) -> BoolArray:
    return np.asarray(deviation > _STEADY * np.maximum(np.abs(mean), common.scale))


def _static(mean: FloatArray, deviation: FloatArray, common: Scaler) -> BoolArray:
    """Say which columns are constant in every series, and not the same in all."""
    differs = np.ptp(mean, axis=0) > _STEADY * np.maximum(np.abs(mean).max(axis=0), common.scale)
    return np.asarray(~_varies(mean, deviation, common).any(axis=0) & differs)


def _by_series(
    values: FloatArray, codes: IntArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the series that occur, their numbers of rows, and mean and deviation of columns."""
    first = np.flatnonzero(np.concatenate([[True], np.diff(codes) != 0]))
    counts = np.diff(np.append(first, len(codes)))
    mean = np.add.reduceat(values, first, axis=0) / counts[:, None]
    square = np.empty_like(mean)
    for some in _whole_series(first, values.size):
        rows = slice(first[some][0], first[some][-1] + counts[some][-1])
        deviation = values[rows] - np.repeat(mean[some], counts[some], axis=0)
        deviation *= deviation
        square[some] = np.add.reduceat(deviation, first[some] - rows.start, axis=0)
    return codes[first], counts, mean, np.sqrt(square / counts[:, None])


def _whole_series(first: IntArray, size: int) -> list[slice]:
    """Divide series that begin at rows ``first``, so that the parts hold about `_CHUNK` values."""
    edges = np.linspace(0, len(first), min(len(first), size // _CHUNK + 1) + 1).astype(np.int64)
    return [slice(low, high) for low, high in pairwise(edges.tolist())]


class _Statistics(NamedTuple):
    present: IntArray  # (series,) codes of those with enough rows
    mean: FloatArray  # (series, columns)
    deviation: FloatArray


def _statistics(
    values: FloatArray, codes: IntArray, least: int, measured: BoolArray | None
) -> _Statistics:
    """Return mean and deviation of series with ``least`` rows; the target's where measured."""
    present, counts, mean, deviation = _by_series(values, codes)
    if measured is not None and measured.any():
        some, _, *target = _by_series(values[measured, -1:], codes[measured])
        places = np.searchsorted(present, some)
        mean[places, -1:], deviation[places, -1:] = target
    enough = counts >= least
    return _Statistics(present[enough], mean[enough], deviation[enough])


def _running(
    values: FloatArray, window: int, measured: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the rows up to each, and of the first window for these.

    Of the last column, the target, only rows count in which it was measured.
    """
    first = values[:1]
    known = np.ones(values.shape)
    if measured is not None:
        known[:, -1] = measured
    moved = (values - first) * known
    counts = np.maximum(np.cumsum(known, axis=0), 1.0)
    mean = np.cumsum(moved, axis=0) / counts
    square = np.cumsum(moved * moved, axis=0) / counts - mean * mean
    start = min(window, len(values)) - 1
    mean[:start], square[:start] = mean[start], square[start]
    return mean + first, np.sqrt(np.maximum(square, 0.0))


def _mean_and_deviation(column: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation without overflow; deviation 1 where nothing varies."""
    low, high = float(column.min()), float(column.max())
    if low == high:
        return low, 1.0
    size = max(abs(low), abs(high))
    scaled = column / size
    mean = float(scaled.mean())
    scaled -= mean
    deviation = float(np.sqrt(np.mean(scaled * scaled)))
    scale = deviation * size
    return mean * size, scale if deviation > _STEADY and scale > 0 else 1.0
