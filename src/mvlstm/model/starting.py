"""The beginning of a fit: rows divided in time, the preparation learned from the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import DataError, ParameterError
from mvlstm.model.table_warnings import check_reach
from mvlstm.problem.part_times import Borders
from mvlstm.problem.preparation import Preparation, measured_in, transformed
from mvlstm.problem.problem import Problem
from mvlstm.problem.splits import origins_by_part, split_windows
from mvlstm.problem.transform_choice import choose_transform
from mvlstm.table.columns import name_list
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import HELD_OUT, PartName, chronological

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster

WORDS: dict[PartName, str] = {
    "train": "training",
    "stop": "earlier validation",
    "calibration": "later validation",
    "new": "test",
}
LARGEST = 1e140  # size of a target that can be squared and added up


def begin(
    model: AbstractForecaster,
    frame: SeriesFrame,
    *,
    test: float,
    valid: float,
    preparation: Preparation | None = None,
) -> tuple[Problem, tuple[str, ...]]:
    """Divide the rows, learn the preparation, and return the problem with notes on it.

    ``preparation`` replaces what would be learned from the training rows.
    """
    T, H = int(model.window), int(model.horizon)  # numpy's whole numbers may overflow
    parts = chronological(len(frame.clock), test=test, valid=valid)
    if parts.a < 2:
        split_windows(frame, window=T, horizon=H, test=test, valid=valid)
    notes: tuple[str, ...] = ()
    if preparation is None:
        preparation, notes = _learn_preparation(model, frame, frame.order < parts.a)
    model.preparation_ = preparation
    _check_magnitude(frame)
    model.borders_ = Borders.from_rows(frame.clock, parts)
    prepared = model._prepare(frame)
    origins = prepared.labelled(T, H)
    order = None if frame.panel is None else frame.order
    divided = origins_by_part(origins, H, parts, order)
    if frame.panel is not None and preparation.series is not None:
        known = np.isin(np.array(frame.panel.names), preparation.series.names)  # to training
        for part in HELD_OUT:
            divided[part] = divided[part][known[frame.panel.codes[divided[part]]]]
    empty = [part for part, rows in divided.items() if not len(rows) and (part != "new" or test)]
    if empty:
        split_windows(frame, window=T, horizon=H, test=test, valid=valid)
        if frame.measured is not None or frame.panel is not None:
            raise DataError(
                f"The {WORDS[empty[0]]} rows have no target that was measured, in a series that "
                "training has. Use missing='drop' (--missing drop), or other shares of the rows "
                "(--test, --valid)."
            )
        model._too_short(frame, "fit")
    return Problem(prepared, divided, T, H), notes


def _learn_preparation(
    model: AbstractForecaster, frame: SeriesFrame, rows: NDArray[np.bool_]
) -> tuple[Preparation, tuple[str, ...]]:
    """Choose transform and differencing, and learn the scaling, on the training rows."""
    transform, notes = choose_transform(model.transform, frame, rows)
    train = frame.values[: rows.sum()] if frame.panel is None else frame.values[rows]
    if train[:, -1].min() == train[:, -1].max():
        raise DataError(
            f"Target '{frame.target}' is always {train[0, -1]:g} in the {len(train):,} training "
            "rows; there is nothing to learn from them. Make the test part smaller (--test), or "
            "supply rows in which it changes."
        )
    orders = np.zeros(len(frame.columns), dtype=np.int64)
    layout, segments = frame.layout, frame.segments[rows]
    if model.difference != "none":
        from mvlstm.problem.stationarity import choose_differencing

        if frame.panel is not None:
            raise ParameterError(
                "difference='auto' is for one series; a table of several is scaled by series. "
                "Use difference='none' (--difference none)."
            )
        free = np.array(layout.measured) & ~np.array(layout.ahead)
        columns = [name for name, chosen in zip(frame.columns, free, strict=True) if chosen]
        tested = transformed(train, transform)[:, free]
        choice = choose_differencing(tested, columns, segments=segments)
        orders[free] = choice.orders
        notes = (*notes, *choice.notes)
    steady = np.flatnonzero(np.ptp(train, axis=0) == 0)
    if len(steady):
        names = name_list([frame.columns[j] for j in steady])
        notes = (*notes, f"Nothing can be learned from {names}: constant in the training rows.")
    ahead = int(model.horizon) if any(layout.ahead) else 0
    check_reach(int(model.window), ahead)
    measured = measured_in(frame, rows)
    preparation = Preparation.learn(train, orders, transform, ahead, segments, measured)
    if frame.panel is not None:
        least = int(model.window) + int(model.horizon)
        preparation = preparation.by_series(frame, rows, least)
        assert preparation.series is not None
        notes = (*notes, *_flat_series(frame, rows, preparation.series.names))
    return preparation, notes


def _flat_series(
    frame: SeriesFrame, rows: NDArray[np.bool_], names: tuple[str, ...]
) -> tuple[str, ...]:
    """Tell which of the series ``names`` have the same target in all their training rows."""
    assert frame.panel is not None
    panel = frame.panel.take(rows)
    counts = pd.Series(frame.target_values[rows]).groupby(panel.codes).nunique()
    flat = [panel.names[code] for code in counts.index[counts == 1] if panel.names[code] in names]
    if not flat:
        return ()
    return (
        f"The target does not vary in the training rows of series {name_list(flat)}: how much it "
        "may vary is guessed from the others.",
    )


def _check_magnitude(frame: SeriesFrame) -> None:
    """Refuse a target whose squares would not fit into 64 bits."""
    low, high = float(frame.target_values.min()), float(frame.target_values.max())
    size, width = max(abs(low), abs(high)), high / 2 - low / 2
    if size > LARGEST or width < 1 / LARGEST:
        raise DataError(
            f"Target '{frame.target}' ranges from {low:g} to {high:g}, too "
            f"{'large' if size > 1 else 'small'} to compute squared errors. Express it in another "
            "unit."
        )
