"""The one way to fit: rows divided, preparation learned, method learned, intervals calibrated."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from mvlstm._words import name_list
from mvlstm.errors import DataError, ParameterError
from mvlstm.model.calibration import calibrate
from mvlstm.model.fitted import Background, Fitted
from mvlstm.model.method import AbstractMethod
from mvlstm.model.table_warnings import check_reach, require_rows
from mvlstm.model.transform_choice import (
    TransformChoice,
    check_bounds,
    check_target,
    choose_transform,
    input_transforms,
)
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Preparation, training_values, transformed
from mvlstm.problem.problem import Problem, Run
from mvlstm.problem.splits import WORDS, origins_by_part, split_windows
from mvlstm.settings import Adapting
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import HELD_OUT, Choosing, chronological
from mvlstm.train.config import Member
from mvlstm.types import BoolArray, FloatArray

LARGEST = 1e140  # size of a target that can be squared and added up


class Preparing(Protocol):
    """Settings by which a table becomes a problem."""

    window: Any  # a whole number by then
    horizon: int
    transform: TransformChoice
    bounds: Sequence[float | None] | None
    calibration: Adapting

    @property
    def one_series(self) -> bool:
        """Whether a table of several series is refused."""

    @property
    def difference(self) -> str:
        """Whether columns with a unit root are differenced: "none" or "auto"."""

    @property
    def precision(self) -> DTypeLike:
        """Precision of the prepared table."""


@dataclass(frozen=True, eq=False)
class Start:
    """What is known before a method learns: the problem, when its parts end, and notes."""

    problem: Problem
    parts: PartTimes
    notes: tuple[str, ...]


def fit(
    method: AbstractMethod,
    frame: SeriesFrame,
    *,
    test: float,
    valid: float,
    run: Run | None = None,
    preparation: Preparation | None = None,
    members: Sequence[Member] = (),
    ensemble: int | None = None,
    choose: Choosing = "half",
) -> tuple[Fitted, Problem]:
    """Fit a method to a checked table; return the fitted model and the problem it was.

    Parameters
    ----------
    method : Method
    frame : SeriesFrame
    test, valid : float
        Shares of the times at the end that stay unseen, and that come before and are held out
        from training; or their numbers.
    run : Run, optional
        How training may be interrupted.
    preparation : Preparation, optional
        Scaling to use in place of the one learned from the training rows.
    members : sequence of Member
        Settings of each member of a network; by default those of the method.
    ensemble : int, optional
        How many members an ensemble has, where these are several ensembles or a share of one.
    choose : {"half", "all"}
        Which validation rows stop training and choose: their earlier half, or all of them.
    """
    started = clock.monotonic()
    start = begin(method, frame, test=test, valid=valid, preparation=preparation, choose=choose)
    run = (run or Run()).after(clock.monotonic() - started)
    problem = replace(start.problem, run=run, members=tuple(members), ensemble=ensemble)
    learned = method.learn(problem)
    calibration, notes = calibrate(learned, problem)
    fitted = Fitted(
        name=type(method).__name__,
        window=problem.window,
        horizon=problem.horizon,
        layout=frame.layout,
        preparation=problem.prepared.preparation,
        parts=start.parts,
        learned=learned,
        calibration=calibration,
        background=Background.of(problem),
        history=learned.history,
        notes=tuple(dict.fromkeys((*frame.notes, *start.notes, *learned.notes, *notes))),
        n_train=len(problem.origins["train"]),
        stopped=learned.stopped,
        seconds=clock.monotonic() - started,
        dtype=method.precision,
        adaptive=method.calibration == "adaptive",
    )
    return fitted, problem


def begin(
    method: Preparing,
    frame: SeriesFrame,
    *,
    test: float,
    valid: float,
    preparation: Preparation | None = None,
    choose: Choosing = "half",
) -> Start:
    """Divide the rows and learn the preparation, unless it is given."""
    if frame.panel is not None and method.one_series:
        raise DataError(
            f"{type(method).__name__} models one series, not several at once. Fit one model for "
            "each, or use AR, GBT or MVLSTM."
        )
    T, H = int(method.window), int(method.horizon)  # numpy's whole numbers may overflow
    parts = chronological(len(frame.clock), test=test, valid=valid)
    if parts.a < 2:
        split_windows(frame, window=T, horizon=H, test=test, valid=valid)
    notes: tuple[str, ...] = ()
    if preparation is None:
        preparation, notes = _learn_preparation(method, frame, frame.order < parts.a)
    _check_magnitude(frame)
    check_target(preparation.transform, frame)
    prepared = preparation.apply(frame, method.precision, window=T)
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
                "training has. Use missing='drop', or other shares of the rows: test=..., "
                "valid=...."
            )
        require_rows(prepared, "fit", T, H)
    if choose == "all":
        divided["stop"] = np.union1d(*(divided[part] for part in HELD_OUT))
    return Start(Problem(prepared, divided, T, H), PartTimes.from_rows(frame.clock, parts), notes)


def _learn_preparation(
    method: Preparing, frame: SeriesFrame, rows: BoolArray
) -> tuple[Preparation, tuple[str, ...]]:
    """Choose transform and differencing, and learn the scaling, on the training rows."""
    T, H = int(method.window), int(method.horizon)
    transform, notes = choose_transform(method.transform, frame, rows, T, H)
    if method.bounds is not None:
        transform = transform.within(method.bounds)
    check_bounds(transform, frame)
    inputs = input_transforms(transform, frame, rows)
    low, high = _ranges(training_values(frame, rows))
    if low[-1] == high[-1]:
        raise DataError(
            f"Target '{frame.target}' is always {low[-1]:g} in the {rows.sum():,} training rows; "
            "there is nothing to learn from them. Make the test part smaller (test=...), or supply "
            "rows in which it changes."
        )
    orders = np.zeros(len(frame.columns), dtype=np.int64)
    layout, segments = frame.layout, frame.segments[rows]
    if method.difference != "none":
        from mvlstm.problem.stationarity import choose_differencing

        if frame.panel is not None:
            raise ParameterError(
                "difference='auto' is for one series; a table of several is scaled by series. "
                "Use difference='none'."
            )
        free = np.array(layout.measured) & ~np.array(layout.ahead)
        columns = [name for name, chosen in zip(frame.columns, free, strict=True) if chosen]
        train = training_values(frame, rows)
        tested = transformed(train, transform, inputs)[:, free]
        choice = choose_differencing(tested, columns, segments=segments)
        orders[free] = choice.orders
        notes = (*notes, *choice.notes)
    steady = np.flatnonzero(low == high)
    if len(steady):
        names = name_list([frame.columns[j] for j in steady])
        notes = (*notes, f"Nothing can be learned from {names}: constant in the training rows.")
    ahead = H if any(layout.ahead) else 0
    check_reach(T, ahead)
    scales = (transform, inputs, ahead)
    preparation = Preparation.of(frame, rows, *scales, least=T + H, orders=orders)
    if preparation.series is not None:
        notes = (*notes, *_flat_series(frame, rows, preparation.series.names))
    return preparation, notes


def _ranges(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    return values.min(axis=0), values.max(axis=0)


def _flat_series(frame: SeriesFrame, rows: BoolArray, names: tuple[str, ...]) -> tuple[str, ...]:
    """Tell which of the series ``names`` have the same target in all their training rows."""
    assert frame.panel is not None
    codes, values = frame.panel.codes[rows], frame.target_values[rows]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    same = np.minimum.reduceat(values, first) == np.maximum.reduceat(values, first)
    found = [frame.panel.names[code] for code in codes[first][same]]
    flat = [name for name in found if name in names]
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
