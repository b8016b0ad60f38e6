"""``window="auto"``: as many rows as the data ask for, found with linear maps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mvlstm.errors import DataError
from mvlstm.model.fitting import begin
from mvlstm.problem.moments import (
    LARGEST_SIDE,
    PENALTIES,
    Moments,
    Part,
    choosing_errors,
    count_features,
    join_steps,
)
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import origin_rows, spread_evenly
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import chronological
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import BoolArray

LENGTHS = (10, 20, 30, 50, 100)  # rows tried, besides cycles of the clock
TIMES = (1, 2, 3)  # cycles in a window
MOST_ROWS = 200
NEAR = 30  # rows of other variables that maps read, unless there are too many or more known ahead
SHARE = 5  # times a window must fit into the training rows
MOST_WINDOWS = 8_000  # to learn from, and to judge by
GAIN = 0.02  # share of the squared error by which more rows must lower it


def choose_window(
    method: Any, frame: SeriesFrame, *, test: float, valid: float
) -> tuple[int, tuple[str, ...]]:
    """Return the rows of a window, and a sentence on them if they were chosen here.

    "auto" fits ridge regressions on the latest 10, 20, 30, 50 and 100 rows, and on one, two and
    three cycles of the clock (days or weeks), 200 at most. The fewest rows are taken whose squared
    error on the validation rows that stop training is within 2 % of the least. The target is read
    in all rows of a window, other variables in the latest 30.
    """
    if method.window != "auto":
        return int(method.window), ()
    lengths = _lengths(method, frame, test, valid)
    longest = lengths[-1]
    if len(lengths) == 1:
        return longest, (f"window='auto' took {longest} rows: the table has none for more.",)
    problem = begin(sized(method, longest), frame, test=test, valid=valid).problem
    errors = _errors(problem, [one for one in lengths if one >= _known_ahead(method, frame)])
    best = min(errors.values())
    chosen = next(rows for rows, error in errors.items() if error <= best * (1 + GAIN))
    fewest, gain = min(errors), 1 - np.sqrt(errors[chosen] / errors[min(errors)])
    why = f"a linear map errs {gain:.0%} less on validation rows than with {fewest}, and "
    why = "" if chosen == fewest else why
    return chosen, (f"window='auto' took {chosen} rows: {why}more hardly lower errors.",)


def sized(method: Any, window: int) -> Any:
    """Return a method with a window that was chosen."""
    if method.window != "auto":
        return method
    other = copy.copy(method)
    other.window = window
    return other


def _known_ahead(method: Any, frame: SeriesFrame) -> int:
    """Return how many rows a window must have, so that it reaches back to the first step ahead."""
    return int(method.horizon) if any(frame.layout.ahead) else 2


def _lengths(method: Any, frame: SeriesFrame, test: float, valid: float) -> list[int]:
    """Return the numbers of rows to try, fewest first."""
    H, parts = int(method.horizon), chronological(len(frame.clock), test=test, valid=valid)
    least = _known_ahead(method, frame)
    cycles = {k * cycle for cycle in natural_cycles(frame.step) for k in TIMES}
    most = max(least, min(MOST_ROWS, parts.a // SHARE))
    every = {*LENGTHS, *cycles, *(one + H for one in cycles if any(frame.layout.ahead))}
    found = sorted(one for one in every if least <= one <= most) or [
        max(least, min(most, LENGTHS[0]))
    ]
    windows = [len(origin_rows(frame, one, H)) for one in found]
    kept = [one for one, n in zip(found, windows, strict=True) if 2 * n > windows[0]]
    return kept or [least]


def _errors(problem: Problem, lengths: list[int]) -> dict[int, float]:
    """Return the squared error of ridge regressions on each number of rows, over all steps."""
    table, read = problem.prepared.table, _read(problem)
    train, stop = _few(problem, "train"), _few(problem, "stop")
    every = list(Moments.each(table, lengths[-1], train, read))
    errors = {}
    for rows in lengths:
        size = count_features(rows, table.shape[1], read)
        path = join_steps([one.latest(size).path(PENALTIES) for one in every])
        squares = choosing_errors(*path, table, train, stop, rows, read).min(axis=0)
        errors[rows] = float(np.exp(np.log(squares + np.finfo(float).tiny).mean()))
    return errors


def _few(problem: Problem, part: Any) -> Part:
    """Return windows of a part, not too many, and their labels."""
    rows = spread_evenly(problem.in_time_order(part), MOST_WINDOWS)
    if not len(rows):
        raise DataError("window='auto' has no rows to choose on. Give a number, or more rows.")
    return rows, problem.prepared.known_labels(rows, problem.horizon)


def _read(problem: Problem) -> BoolArray:
    """Say which inputs of a window are read, (T, C)."""
    every = np.ones((problem.window, len(problem.groups)), dtype=bool)
    read = every if problem.inputs_read is None else problem.inputs_read
    room = max(1, LARGEST_SIDE // len(problem.groups))
    near = max(min(NEAR, room), 2 * problem.prepared.preparation.ahead)
    read[: max(0, problem.window - near), :-1] = False
    return read
