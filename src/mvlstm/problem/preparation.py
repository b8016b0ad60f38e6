"""From a validated table to what a model sees: differenced where asked, scaled, labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm.errors import DataError, ModelFileError, ParameterError, is_whole
from mvlstm.problem.scaling import RowScaler, Scaler, SeriesScaler, stretches
from mvlstm.problem.target_scale import TargetScale
from mvlstm.problem.windows import gather_labels, measured_labels, origins_in
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Rows
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import AnyArray, BoolArray, FloatArray, IntArray

FARTHEST = 1e15  # standard deviations: one more could not be told at twice as far
MOST_NUMBERS = 20_000_000  # of windows that are scaled one by one, held at once


@dataclass(frozen=True, eq=False)
class Preparation:
    """How columns become inputs, learned from the training rows and kept with the model.

    The target's transform comes before all else. Labels are on its scale, and on that of each
    series where there are several. Inputs known ahead are brought forward, so that a window's last
    row holds their values at the last step forecast.
    """

    orders: IntArray  # (columns,) how often each is differenced: 0, 1 or 2
    scaler: Scaler  # of the differenced columns
    low: FloatArray  # (columns,) of the training rows as they were given, or scaled by series
    high: FloatArray
    transform: Transform = IDENTITY
    ahead: int = 0  # rows by which inputs known ahead are brought forward
    series: SeriesScaler | None = None
    inputs: tuple[Transform, ...] = ()  # of every column but the last; none: all stay as they are

    @classmethod
    def learn(
        cls,
        values: FloatArray,
        orders: IntArray,
        transform: Transform = IDENTITY,
        ahead: int = 0,
        segments: IntArray | None = None,
        measured: BoolArray | None = None,
        inputs: tuple[Transform, ...] = (),
    ) -> Preparation:
        """Learn the scaling from the training rows' values, differenced within their segments.

        That of the target is learned from what was ``measured`` (rows,), by default all. What was
        filled in for a variable counts: a model sees it like any other value.
        """
        if segments is None:
            segments = np.zeros(len(values), dtype=np.int64)
        table, lead = transformed(values, transform, inputs), int(orders.max(initial=0))
        known = None if measured is None else _measured_differences(measured, int(orders[-1]))
        if lead:
            inside = origins_in(segments, lead + 1, 0)
            rows = inside if len(inside) else np.arange(lead, len(table))
            table = differenced(table, orders, segments)[rows]
            known = None if known is None else known[rows]
        scaler = Scaler.fit(table, known)
        low, high = values.min(axis=0), values.max(axis=0)
        return cls(orders, scaler, low, high, transform, ahead, inputs=inputs)

    @classmethod
    def of(
        cls,
        frame: SeriesFrame,
        rows: BoolArray,
        transform: Transform,
        inputs: tuple[Transform, ...] = (),
        ahead: int = 0,
        *,
        least: int,
        orders: IntArray | None = None,
    ) -> Preparation:
        """Learn from the training ``rows`` of a table, by series where there are several.

        ``orders`` are zero by default; a series needs ``least`` rows for a scaling of its own.
        """
        orders = np.zeros(frame.values.shape[1], dtype=np.int64) if orders is None else orders
        where = (frame.segments[rows], measured_in(frame, rows), inputs)
        found = cls.learn(training_values(frame, rows), orders, transform, ahead, *where)
        return found if frame.panel is None else found.by_series(frame, rows, least)

    def by_series(self, frame: SeriesFrame, rows: BoolArray, least: int) -> Preparation:
        """Learn a scaling of each series with at least this many of the training ``rows``."""
        assert frame.panel is not None
        values, panel = self._transformed(frame.values[rows]), frame.panel.take(rows)
        own, measured = np.array(frame.layout.measured), measured_in(frame, rows)
        where = (values, panel.codes, panel.names)
        series = SeriesScaler.fit(*where, own=own, least=least, measured=measured)
        scaled = series.rows(*where, window=least, measured=measured).transform(values)
        return replace(self, series=series, low=scaled.min(axis=0), high=scaled.max(axis=0))

    def of_others(self, frame: SeriesFrame, rows: BoolArray, least: int) -> Preparation:
        """Return the preparation of other series, each scaled by its own training ``rows``."""
        if self.series is None or frame.panel is None or not rows.any():
            return self
        values, panel = self._transformed(frame.values[rows]), frame.panel.take(rows)
        where, measured = (values, panel.codes, panel.names), measured_in(frame, rows)
        return replace(self, series=self.series.of_others(*where, least=least, measured=measured))

    @property
    def target_center(self) -> float:
        """What is added to a scaled target, once multiplied, to be on the scale of labels."""
        return 0.0 if self.series is not None else float(self.scaler.center[-1])

    @property
    def target_scale(self) -> float:
        """What a scaled target is multiplied by to be on the scale of labels."""
        return 1.0 if self.series is not None else float(self.scaler.scale[-1])

    @property
    def lead(self) -> int:
        """Rows needed before a window because of differencing."""
        return int(self.orders.max(initial=0))

    def apply(
        self, frame: SeriesFrame, dtype: DTypeLike = np.float64, *, window: int = 2
    ) -> Prepared:
        """Prepare a table; networks take it in float32.

        Series that training did not have are scaled by their first ``window`` rows at least.
        """
        scaler: Scaler | RowScaler = self.scaler
        given = units = moving = None
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            values = self._transformed(frame.values)
            target = values[:, -1]
            if self.series is not None and frame.panel is not None:
                where = (values, frame.panel.codes, frame.panel.names)
                scaler = self.series.rows(*where, window=window, measured=frame.measured)
                units = scaler.target
                target = (target - units[0]) / units[1]
                moving = scaler if scaler.moving.any() else None
            differences = differenced(values, self.orders, frame.segments)
            table = scaler.transform(differences, dtype=dtype)
            if self.ahead:
                columns = np.flatnonzero(frame.layout.ahead)
                later, given = frame.values_ahead(self.ahead)
                if self.inputs:
                    later = _each_forward(later, [self.inputs[column] for column in columns])
                table[:, columns] = scaler.take(columns).transform(later, dtype=dtype)
        self._check_range(frame, table, given)
        return Prepared(frame, table, self, target, given, units, moving)

    def _check_range(self, frame: SeriesFrame, table: AnyArray, given: BoolArray | None) -> None:
        """Refuse a table with a value that no forecast or score can rest on.

        Every use of a model passes here, so what one refuses all refuse.
        """
        far = np.empty(table.shape, dtype=bool)
        for part in stretches(*table.shape):
            far[part] = ~(np.abs(table[part]) <= FARTHEST)  # not a number is far, too
        if given is not None:  # what is not known ahead is never used
            far[np.ix_(~given, np.array(frame.layout.ahead))] = False
        if not far.any():
            return
        row, column = (int(place[0]) for place in np.nonzero(far))
        where = Rows(frame.values, frame.times, frame.panel).where(row)
        name, low, high = frame.columns[column], self.low[column], self.high[column]
        own = "" if self.series is None else ", in standard deviations of a series"
        more = f", and so are {far.sum() - 1:,} more values" if far.sum() > 1 else ""
        raise DataError(
            f"Column '{name}' is {frame.values[row, column]:g} at {where}, too far from the "
            f"training rows ({low:g} to {high:g}{own}) to compute with{more}. Correct the table, "
            "or leave out such rows."
        )

    def _transformed(self, values: FloatArray) -> FloatArray:
        return transformed(values, self.transform, self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        lists = {name: getattr(self, name).tolist() for name in ("orders", "low", "high")}
        scaler, series = self.scaler.to_dict(), self.series and self.series.to_dict()
        more = {"scaler": scaler, "transform": self.transform.to_plain(), "ahead": self.ahead}
        if self.inputs:
            more["inputs"] = [one.to_plain() for one in self.inputs]
        return {**lists, **more, "series": series}

    @classmethod
    def from_dict(cls, values: dict[str, Any], layout: Layout) -> Preparation:
        """Build from what `to_dict` returned, for the columns of ``layout``."""
        scaler = Scaler.from_dict(values["scaler"])
        orders = np.asarray(values["orders"], dtype=np.int64)
        if orders.shape != scaler.center.shape or not np.isin(orders, (0, 1, 2)).all():
            raise ModelFileError("The file's differencing orders do not fit its columns.")
        low, high = (np.asarray(values[name], dtype=np.float64) for name in ("low", "high"))
        fits = low.shape == high.shape == orders.shape
        if not fits or not np.isfinite([low, high]).all() or (low > high).any():
            raise ModelFileError("The file's ranges do not fit its columns.")
        ahead, series = values.get("ahead", 0), values.get("series")
        if not is_whole(ahead) or ahead < 0:
            raise ModelFileError(f"The file's rows ahead are {ahead!r}, not a number of rows.")
        if (series is None) != (layout.series is None):
            raise ModelFileError("The file's scaling does not fit its series.")
        if series is not None:
            series = SeriesScaler.from_dict(series, scaler, np.array(layout.measured))
        try:
            transform = Transform.from_plain(values.get("transform", "none"))
            inputs = tuple(Transform.from_plain(one) for one in values.get("inputs", ()))
        except (ParameterError, TypeError, ValueError) as error:
            raise ModelFileError(f"The file's transform is damaged: {error}") from error
        if inputs and len(inputs) != len(orders) - 1:
            raise ModelFileError("The file's transforms do not fit its columns.")
        return cls(orders, scaler, low, high, transform, ahead, series, inputs)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table as a model sees it: inputs scaled, labels relative to a baseline.

    The label of step h at origin i is ``y[i + h] - baseline[i, h]``. The baseline is zero for a
    target that is not differenced, and what h equal steps on would give for one that is; adding
    it back inverts the differencing exactly. Both are on the scale of the target's transform, and
    where there are several series, on that of each: `TargetScale` leads back.
    """

    frame: SeriesFrame
    table: NDArray[Any]  # (rows, columns), float32 or float64
    preparation: Preparation
    target: FloatArray  # (rows,) transformed, and scaled where there are several series
    given: BoolArray | None = None  # (rows,) whether all that is known ahead is there
    units: tuple[FloatArray, FloatArray] | None = None  # (rows,) each series' center and scale
    moving: RowScaler | None = None  # where some series are scaled anew at each row

    def origins(self, window: int, horizon: int) -> IntArray:
        """Rows with a whole window up to them and ``horizon`` known rows after them.

        What is known ahead of a row must be there too, by later rows or future ones.
        """
        rows = origins_in(self.frame.segments, int(window) + self.preparation.lead, horizon)
        return rows if self.given is None else rows[self.given[rows]]

    def labelled(self, window: int, horizon: int) -> IntArray:
        """Rows like `origins`, with a next step whose target was measured, and not filled in."""
        rows = self.origins(window, horizon)
        if self.frame.measured is None:
            return rows
        return rows[measured_labels(self.frame, rows, horizon).any(axis=1)]

    def windows_at(self, origins: IntArray, window: int) -> tuple[NDArray[Any], IntArray]:
        """Return a table, and the rows of it at which the windows of given origins end.

        That is this table and the origins, but for series that training did not have. These are
        scaled anew at each row, and a window as a whole by what is known at its end: such windows
        stand one after another, in a table of their own or after this one.
        """
        if self.moving is None or not (own := self.moving.moving[origins]).any():
            return self.table, origins
        window, rows = int(window), origins.copy()
        added = self.moving.windows(self.table, origins[own], window)
        rows[own] = np.arange(1, own.sum() + 1) * window - 1
        if own.all():
            return added, rows
        rows[own] += len(self.table)
        return np.concatenate([self.table, added]), rows

    def pieces(self, origins: IntArray, window: int) -> list[IntArray]:
        """Divide origins so that `windows_at` holds no more than this many numbers of its own."""
        if self.moving is None:
            return [origins]
        size = max(1, MOST_NUMBERS // (int(window) * self.table.shape[1]))
        return np.split(origins, range(size, len(origins), size))

    def scale(self, origins: IntArray, horizon: int) -> TargetScale:
        """Return the scale of the labels of given origins."""
        center, unit = (None, None) if self.units is None else (x[origins] for x in self.units)
        return TargetScale(
            self.preparation.transform, self.baseline(origins, horizon), center, unit
        )

    def baseline(self, origins: IntArray, horizon: int) -> FloatArray:
        """Return what differencing takes away from the target's next steps, (M, H)."""
        y, order = self.target, int(self.preparation.orders[-1])
        steps = np.arange(1, int(horizon) + 1)
        level = y[origins][:, None] if order >= 1 else np.zeros((len(origins), 1))
        if order == 2:
            return level + (y[origins] - y[origins - 1])[:, None] * steps
        return np.broadcast_to(level, (len(origins), horizon)).copy()

    def labels(self, origins: IntArray, horizon: int) -> FloatArray:
        """Return the labels (M, H) of given origins, NaN where unknown."""
        labels = np.empty((len(origins), int(horizon)))
        for part in stretches(*labels.shape):
            steps = gather_labels(self.frame, origins[part], horizon)
            labels[part] = self.scale(origins[part], horizon).labels(steps)
        return labels

    def known_labels(self, origins: IntArray, horizon: int, *, strict: bool = False) -> FloatArray:
        """Return the labels (M, H) to learn from or choose by, NaN where they were filled in.

        A step that was measured after none of the origins keeps what was filled in, unless
        ``strict``: there is nothing else to go by.
        """
        labels = self.labels(origins, horizon)
        if self.frame.measured is not None:
            measured = measured_labels(self.frame, origins, horizon)
            if not strict:
                measured |= ~measured.any(axis=0)
            labels[~measured] = np.nan
        return labels

    def target_steps(self, origins: IntArray, horizon: int) -> FloatArray:
        """Return the target 1 .. horizon steps after each origin, (M, H), not differenced."""
        return self.scale(origins, horizon).steps(gather_labels(self.frame, origins, horizon))

    def target_at(self, rows: IntArray, origins: IntArray) -> FloatArray:
        """Return the target in rows (M, ...), on the scale that labels of the origins (M,) have."""
        if self.units is None:
            return self.target[rows]
        return self.scale(origins, 1).steps(self.frame.target_values[rows])

    def unit(self, origins: IntArray) -> FloatArray:
        """Return what one means on the labels' scale, (M,): the series' standard deviation."""
        return np.ones(len(origins)) if self.units is None else self.units[1][origins]


def transformed(
    values: FloatArray, transform: Transform, inputs: Sequence[Transform] = ()
) -> FloatArray:
    """Transform the target, the last column, and inputs; the table if there is nothing to do."""
    if not transform:
        return values
    every = inputs or (IDENTITY,) * (values.shape[1] - 1)
    return _each_forward(values, [*every, transform])


def _each_forward(values: FloatArray, transforms: Sequence[Transform]) -> FloatArray:
    result = values.copy()
    for column, one in enumerate(transforms):
        if one:
            result[:, column] = one.forward(values[:, column])
    return result


def training_values(frame: SeriesFrame, rows: BoolArray) -> FloatArray:
    """Return the values in the training ``rows``: a view of one series, which come first."""
    return frame.values[: rows.sum()] if frame.panel is None else frame.values[rows]


def measured_in(frame: SeriesFrame, rows: BoolArray) -> BoolArray | None:
    """Say in which of the ``rows`` the target was measured; None if in all of them."""
    found = None if frame.measured is None else frame.measured[rows]
    return None if found is None or found.all() else found


def _measured_differences(measured: BoolArray, order: int) -> BoolArray:
    """Say which differences are of measured values alone."""
    known = measured.copy()
    for lag in range(1, order + 1):
        known[lag:] &= measured[:-lag]
    return known


def differenced(values: FloatArray, orders: IntArray, segments: IntArray) -> FloatArray:
    """Difference each column as often as its order says, within each segment.

    The rows lost at the start of a segment are zero.
    """
    if not orders.any():
        return values
    result = values.copy()
    for column in np.flatnonzero(orders):
        order = int(orders[column])
        inside = segments[order:] == segments[:-order]
        result[order:, column] = np.where(inside, np.diff(values[:, column], n=order), 0.0)
        result[:order, column] = 0.0
    return result
