"""Standardising columns with the statistics of the training rows, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm.errors import ModelFileError

_CHUNK = 250_000  # values at a time


@dataclass(frozen=True, eq=False)
class Scaler:
    """Shift and scale each column: ``(x - center) / scale``.

    Parameters
    ----------
    center, scale : float64 array, (columns,)
        A column that does not vary has scale 1.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler.transform(np.array([[4.0, 5.0]]))
    array([[2., 0.]])
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, values: NDArray[np.float64], measured: NDArray[np.bool_] | None = None) -> Scaler:
        """Take mean and standard deviation of each column of ``values`` (rows, columns).

        Those of the last column, the target, are of the rows (rows,) in which it was measured, if
        it varies in these.
        """
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or len(values) == 0:
            raise ValueError(f"a table with at least one row is needed, not shape {values.shape}")
        columns = list(values.T)
        if measured is not None and len(np.unique(columns[-1][measured])) > 1:
            columns[-1] = columns[-1][measured]
        statistics = [_mean_and_deviation(column) for column in columns]
        center, scale = np.array(statistics, dtype=np.float64).reshape(-1, 2).T.copy()
        return cls(center, scale)

    @classmethod
    def identity(cls, n_columns: int) -> Scaler:
        """Make a scaler that changes nothing."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    def take(self, columns: NDArray[np.int64]) -> Scaler:
        """Make a scaler of some of the columns."""
        return Scaler(self.center[columns], self.scale[columns])

    def transform(
        self, values: NDArray[np.float64], *, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Scale values whose last axis holds the columns.

        Parameters
        ----------
        values : array, (..., columns)
        dtype : dtype
            Type of the result. Work is done in float64, a stretch of rows at a time, so that
            float32 output needs no float64 copy of the whole.
        """
        return self._apply(values, dtype, lambda x: (x - self.center) / self.scale)

    def inverse(
        self, values: NDArray[np.float64], *, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Undo `transform`."""
        return self._apply(values, dtype, lambda x: x * self.scale + self.center)

    def _apply(self, values: NDArray[Any], dtype: DTypeLike, function: Any) -> NDArray[Any]:
        values = np.asarray(values)
        result = np.empty(values.shape, dtype=dtype)
        if values.ndim < 2:
            result[...] = function(values.astype(np.float64))
            return result
        rows = max(1, _CHUNK // max(1, values[:1].size))
        for start in range(0, len(values), rows):
            part = slice(start, start + rows)
            result[part] = function(values[part].astype(np.float64, copy=False))
        return result

    @property
    def target_center(self) -> float:
        """Mean of the last column, the target."""
        return float(self.center[-1])

    @property
    def target_scale(self) -> float:
        """Standard deviation of the last column, the target."""
        return float(self.scale[-1])

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values that JSON can hold, without loss."""
        return {"center": self.center.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Scaler:
        """Build a scaler from what `to_dict` returned, checking it."""
        try:
            center = np.array(values["center"], dtype=np.float64)
            scale = np.array(values["scale"], dtype=np.float64)
            usable = (
                center.ndim == 1
                and center.shape == scale.shape
                and bool(np.isfinite(center).all())
                and bool(np.isfinite(scale).all())
                and bool((scale > 0).all())
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The scaling is damaged: {error}") from error
        if not usable:
            raise ModelFileError("The scaling is damaged: centers and scales must be finite.")
        return cls(center, scale)


@dataclass(frozen=True, eq=False)
class SeriesScaler:
    """Scaling of several series, each by statistics of its own.

    Parameters
    ----------
    names : tuple of str
        The series that training had enough rows of.
    center, scale : float64 array, (series, columns)
    common : Scaler
        Of all rows together: for columns that are not scaled by series.
    own : bool array, (columns,)
        Which columns each series scales by itself.
    guess : Guess
        Of the scale of columns that do not vary in a series.
    """

    names: tuple[str, ...]
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    common: Scaler
    own: NDArray[np.bool_]
    guess: Guess

    @classmethod
    def fit(
        cls,
        values: NDArray[np.float64],
        codes: NDArray[np.int64],
        names: tuple[str, ...],
        *,
        own: NDArray[np.bool_],
        least: int,
        measured: NDArray[np.bool_] | None = None,
    ) -> SeriesScaler:
        """Take mean and standard deviation of each series' rows.

        Parameters
        ----------
        values : (rows, columns)
            Of the training rows.
        codes : (rows,)
            The series of each row, never falling; an index into ``names``.
        names : tuple of str
        own : (columns,)
        least : int
            Rows a series must have; others are scaled by what is known of them later.
        measured : (rows,), optional
            Rows in which the target, the last column, was measured: its statistics are of these,
            in a series that has any.
        """
        common = Scaler.fit(values, measured)
        present, counts, mean, deviation = _by_series(values, codes)
        if measured is not None and measured.any():
            some, _, *target = _by_series(values[measured, -1:], codes[measured])
            places = np.searchsorted(present, some)
            mean[places, -1:], deviation[places, -1:] = target
        enough = counts >= least
        kept = tuple(names[code] for code in present[enough])
        mean, deviation = mean[enough], deviation[enough]
        guess = Guess.of(mean, deviation, common)
        center, scale = _own_or_common(mean, deviation, common, own, guess)
        return cls(kept, center, scale, common, own, guess)

    def rows(
        self,
        values: NDArray[np.float64],
        codes: NDArray[np.int64],
        names: tuple[str, ...],
        *,
        window: int,
        measured: NDArray[np.bool_] | None = None,
    ) -> RowScaler:
        """Return the scaling of each row of a table.

        A series that training did not have is scaled by what is known of it at each row, so that
        no forecast depends on later values: mean and deviation of its rows up to that one, and of
        the first ``window`` rows for these. `RowScaler.windows` brings whole windows to one scale.

        Parameters
        ----------
        values, codes, names, measured
            As in `fit`, of the table's rows.
        window : int
        """
        place = {name: k for k, name in enumerate(self.names)}
        index = np.array([place.get(name, -1) for name in names], dtype=np.int64)[codes]
        centers, scales, filled = [self.center], [self.scale], len(self.names)
        unseen = np.flatnonzero(index < 0)
        for rows in np.split(unseen, np.flatnonzero(np.diff(codes[unseen])) + 1):
            if not len(rows):
                continue
            known = None if measured is None else measured[rows]
            mean, deviation = _running(values[rows], window, known)
            center, scale = _own_or_common(mean, deviation, self.common, self.own, self.guess)
            centers.append(center)
            scales.append(scale)
            index[rows] = filled + np.arange(len(rows))
            filled += len(rows)
        return RowScaler(np.concatenate(centers), np.concatenate(scales), index, len(self.names))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without loss."""
        return {
            "names": list(self.names),
            "center": self.center.tolist(),
            "scale": self.scale.tolist(),
            "guess": {"share": self.guess.share.tolist(), "least": self.guess.least.tolist()},
        }

    @classmethod
    def from_dict(
        cls, values: dict[str, Any], common: Scaler, own: NDArray[np.bool_]
    ) -> SeriesScaler:
        """Build from what `to_dict` returned, checking it."""
        try:
            names = tuple(str(name) for name in values["names"])
            shape = (len(names), len(common.center))
            center = np.array(values["center"], dtype=np.float64).reshape(shape)
            scale = np.array(values["scale"], dtype=np.float64).reshape(shape)
            fine = np.isfinite(center).all() and np.isfinite(scale).all() and (scale > 0).all()
            guess = Guess.of(center, scale, common)  # older files have none
            if "guess" in values:
                given = (np.array(values["guess"][name], float) for name in ("share", "least"))
                guess = Guess(*given)
                both = np.stack([guess.share, guess.least]).reshape(2, shape[1])
                fine &= np.isfinite(both).all() and (both > 0).all()
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The scaling of the series is damaged: {error}") from error
        if not fine or len(own) != shape[1]:
            raise ModelFileError("The scaling of the series is damaged.")
        return cls(names, center, scale, common, own, guess)


@dataclass(frozen=True, eq=False)
class RowScaler:
    """Shift and scale each row by one of several scalings.

    Parameters
    ----------
    center, scale : (scalings, columns)
    index : int array, (rows,)
        The scaling of each row.
    fixed : int
        The first so many scalings are those of whole series; of the others, each is one row's.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    index: NDArray[np.int64]
    fixed: int

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Which rows have a scaling of their own."""
        return self.index >= self.fixed

    @property
    def target(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Center and scale of the target in each row."""
        return self.center[self.index, -1], self.scale[self.index, -1]

    def transform(
        self,
        values: NDArray[np.float64],
        columns: NDArray[np.int64] | None = None,
        *,
        dtype: DTypeLike = np.float64,
    ) -> NDArray[Any]:
        """Scale values (rows, columns), a stretch of rows at a time; or some columns' alone."""
        chosen = np.arange(self.center.shape[1]) if columns is None else columns
        center, scale = self.center[:, chosen], self.scale[:, chosen]
        result = np.empty(values.shape, dtype=dtype)
        step = max(1, _CHUNK // max(1, values.shape[1]))
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            which = self.index[part]
            result[part] = (values[part] - center[which]) / scale[which]
        return result

    def windows(self, table: NDArray[Any], origins: NDArray[np.int64], window: int) -> NDArray[Any]:
        """Return the windows that end at origins, one after another, each in its last row's scale.

        Parameters
        ----------
        table : (rows, columns)
            As `transform` made it.
        origins : (M,)
        window : int

        Returns
        -------
        array, (M * window, columns)
        """
        result = np.empty((len(origins), window, table.shape[1]), dtype=table.dtype)
        size = max(1, _CHUNK // max(1, window * table.shape[1]))
        for start in range(0, len(origins), size):
            part = slice(start, start + size)
            rows = origins[part, None] + np.arange(1 - window, 1)
            then, now = self.index[rows], self.index[origins[part], None]
            with np.errstate(over="ignore", invalid="ignore"):  # as in the table itself
                values = table[rows] * self.scale[then] + (self.center[then] - self.center[now])
                result[part] = values / self.scale[now]
        return result.reshape(-1, table.shape[1])


def _own_or_common(
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    common: Scaler,
    own: NDArray[np.bool_],
    guess: Guess,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centers and scales (k, columns): the common ones where there are no own.

    A column that does not vary in a series has the scale that others let guess.
    """
    center = np.where(own, mean, common.center)
    flat = np.where(own, guess(mean), common.scale)
    return center, np.where(own & _varies(mean, deviation, common), deviation, flat)


def _varies(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], common: Scaler
) -> NDArray[np.bool_]:
    size = np.maximum(np.abs(mean), common.scale)
    return np.asarray(deviation > 4 * np.finfo(np.float64).eps * size)


@dataclass(frozen=True, eq=False)
class Guess:
    """How much a series varies that has not varied yet, by those that have.

    By the same share of its level as they do in the median or, at the level zero, as little as a
    quarter of them. Differences between the levels of series say nothing of it.
    """

    share: NDArray[np.float64]  # (columns,)
    least: NDArray[np.float64]  # (columns,)

    @classmethod
    def of(cls, mean: NDArray[np.float64], deviation: NDArray[np.float64], common: Scaler) -> Guess:
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

    def __call__(self, level: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scale of series at given levels (k, columns) that do not vary."""
        return np.where(level == 0, self.least, self.share * np.abs(level))


def _by_series(
    values: NDArray[np.float64], codes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the series that occur, their numbers of rows, and mean and deviation of columns."""
    first = np.flatnonzero(np.concatenate([[True], np.diff(codes) != 0]))
    counts = np.diff(np.append(first, len(codes)))
    mean = np.add.reduceat(values, first, axis=0) / counts[:, None]
    deviation = values - np.repeat(mean, counts, axis=0)
    square = np.add.reduceat(deviation * deviation, first, axis=0) / counts[:, None]
    return codes[first], counts, mean, np.sqrt(square)


def _running(
    values: NDArray[np.float64], window: int, measured: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _mean_and_deviation(column: NDArray[np.float64]) -> tuple[float, float]:
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
    varies = deviation > 4 * np.finfo(np.float64).eps and scale > 0
    return mean * size, scale if varies else 1.0
