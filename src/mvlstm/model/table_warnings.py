"""What should be known about a table a model is applied to: far values, old data, an old model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Prepared
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray, IntArray

SHOWN = 4  # columns named in one message


def range_warnings(prepared: Prepared, origins: IntArray, window: int) -> tuple[str, ...]:
    """Say which columns leave the range of the training rows by more than its whole width.

    Looked at are the rows of the windows that end at ``origins``. Columns that are differenced are
    left out: their level is free to move.
    """
    preparation, frame = prepared.preparation, prepared.frame
    low, high = preparation.low, preparation.high
    several = preparation.series is not None
    scale = np.ones(len(low)) if several else preparation.scaler.scale
    width = np.maximum(high / 2 - low / 2, scale / 2) * 2
    start, used = _used_rows(origins, window)
    values = _as_used(prepared, slice(start, start + len(used)))
    far = (values < low - width) | (values > high + width)
    far &= (preparation.orders == 0) & used[:, None]
    columns = np.flatnonzero(far.any(axis=0))
    if not len(columns):
        return ()
    count = int(far.any(axis=1).sum())
    unit = ", in standard deviations of a series" if several else ""
    firsts = {int(j): int(np.flatnonzero(far[:, j])[0]) for j in columns}
    named = [
        f"'{frame.columns[j]}' is {values[row, j]:g} at {_time_of(prepared, start + row, j)} "
        f"(training: {low[j]:g} to {high[j]:g}{unit})"
        for j, row in firsts.items()
    ]
    return (
        f"{count:,} {'row has' if count == 1 else 'rows have'} values far outside the training "
        f"range: {_first(named)}. Forecasts that rest on them are extrapolations.",
    )


def category_warnings(prepared: Prepared, origins: IntArray, window: int) -> tuple[str, ...]:
    """Say of which categories the last window, of each series, has no level that training had."""
    frame = prepared.frame
    if not len(origins) or not frame.layout.levels:
        return ()
    groups = np.asarray(frame.groups)
    names = frame.names_of(origins)
    ends = np.append(names[1:] != names[:-1], True) if names is not None else slice(-1, None)
    found = []
    for origin in origins[ends]:
        rows = frame.values[int(origin) - window + 1 : int(origin) + 1]
        found += [
            f"The last {window} rows{_whose(frame, origin)} have no level of '{name}' that "
            "training had: the forecast does without it. If the levels are only named otherwise, "
            "name them as in fit."
            for name, _ in frame.layout.levels
            if not rows[:, groups == frame.variables.index(name)].any()
        ]
    return tuple(found)


def _used_rows(origins: IntArray, window: int) -> tuple[int, BoolArray]:
    """Return the first row of the windows, and from there on which rows lie in one of them."""
    start = int(origins.min()) - window + 1
    steps = np.zeros(int(origins.max()) - start + 2, dtype=np.int64)
    np.add.at(steps, origins - window + 1 - start, 1)
    np.add.at(steps, origins + 1 - start, -1)
    return start, np.cumsum(steps)[:-1] > 0


def _as_used(prepared: Prepared, rows: slice) -> FloatArray:
    """Return the values of rows; of what is known ahead, those that the rows' windows hold."""
    preparation, frame = prepared.preparation, prepared.frame
    if preparation.series is not None:
        return np.asarray(prepared.table[rows])
    if not preparation.ahead:
        return frame.values[rows]
    ahead = np.flatnonzero(frame.layout.ahead)
    values = frame.values[rows].copy()
    values[:, ahead] = preparation.scaler.take(ahead).inverse(prepared.table[rows][:, ahead])
    return values


def _time_of(prepared: Prepared, row: int, column: int) -> str:
    """Return when a value of a window was measured, or will be; of several series, of which."""
    frame, time = prepared.frame, prepared.frame.times[row]
    if prepared.preparation.ahead and frame.layout.ahead[column]:
        steps = frame.future_times(np.array([row]), prepared.preparation.ahead)
        time = pd.Index(steps[0])[-1]
    return f"{describe_time(time)}{_whose(frame, row, 'in')}"


def _whose(frame: SeriesFrame, row: int, word: str = "of") -> str:
    """Name the series of a row, where there are several."""
    return "" if frame.panel is None else f" {word} series '{frame.panel.name(int(row))}'"


def check_reach(window: int, ahead: int) -> None:
    """Refuse a window too short for all steps ahead, where something is known of them."""
    if window < ahead:
        raise ParameterError(
            f"window={window} is shorter than horizon={ahead}: the windows of what is known ahead "
            "(known=..., calendar=...) end at the last step and would miss the first. Use "
            f"window={ahead} or more."
        )


def require_ahead(prepared: Prepared) -> None:
    """Raise `DataError` if values known ahead are missing after the last row of every series."""
    frame, horizon = prepared.frame, prepared.preparation.ahead
    if prepared.given is None:
        return
    last = frame.last_rows()
    rows = last[~prepared.given[last]]
    if len(rows) < len(last):  # others than these can be forecast
        return
    row = int(rows[0])
    there, time = _lacking(prepared, row)
    more = f" The same holds for {len(rows) - 1:,} more series." if len(rows) > 1 else ""
    every = " Fewer steps read them all too." if horizon > 1 else ""
    raise DataError(
        f"forecast() needs {name_list(frame.layout.known)}, known ahead, for the "
        f"{counted(horizon, 'step')} after {describe_time(frame.times[row])}{_whose(frame, row)}; "
        f"of step {there + 1}, {time}, the row is missing or has an empty value.{more}{every} Add "
        "the rows to the end of the table with the target left empty, or pass them with future=...."
    )


def _lacking(prepared: Prepared, row: int) -> tuple[int, str]:
    """Return for how many steps after a row what is known ahead is given, and the next time."""
    frame = prepared.frame
    times = pd.Index(frame.future_times(np.array([row]), prepared.preparation.ahead)[0])
    future = () if frame.future is None else frame.future.segments
    given = int(np.sum(np.asarray(future) == frame.segments[row]))
    return given, describe_time(times[given])


def series_warnings(prepared: Prepared, ready: IntArray, others: IntArray) -> tuple[str, ...]:
    """Name series that end before the rest, and those that cannot be forecast, and why.

    ``ready`` and ``others`` are last rows of the series that are forecast, and of those that are
    not.
    """
    frame, given = prepared.frame, prepared.given
    if frame.panel is None:
        return ()
    panel, last = frame.panel, frame.clock[-1]
    behind = ready[np.asarray(frame.times[ready] < last)]
    lacking = others[:0] if given is None else others[~given[others]]
    short = np.setdiff1d(others, lacking)
    unheard = np.setdiff1d(np.arange(len(panel.names)), panel.codes)
    ends = [f"'{panel.name(k)}' ends at {describe_time(frame.times[k])}" for k in behind]
    found = [
        f"Not every series reaches {describe_time(last)}, the table's last time: {_first(ends)}. "
        "Forecasts go on from there."
    ]
    reasons = {
        f"for lack of {name_list(frame.layout.known)}, known ahead": [
            f"'{panel.name(k)}' from {_lacking(prepared, k)[1]} on" for k in lacking
        ],
        "for lack of a past, rows with a target": [f"'{panel.names[code]}'" for code in unheard],
        "too short to be forecast, or shortly after a gap": [f"'{panel.name(k)}'" for k in short],
    }
    for reason, series in reasons.items():
        if series:
            count = "1 series is" if len(series) == 1 else f"{len(series):,} series are"
            found.append(f"{count} left out {reason}: {_first(series)}. Supply more rows.")
    return tuple(found if ends else found[1:])


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def age_warnings(times: pd.Index[Any], parts: PartTimes) -> tuple[str, ...]:
    """Say whether a table ends before the model's own data do, or long after them."""
    last, fitted = times[-1], parts.calibration
    if last < fitted:
        return (
            f"The table ends at {describe_time(last)}, but the model was fitted on rows up to "
            f"{describe_time(fitted)}: the data are stale. Supply the most recent rows."
            f"{numbered_rows(times.dtype)}",
        )
    if last - fitted > fitted - parts.start:
        return (
            f"The table ends at {describe_time(last)}, and the model was fitted on rows from "
            f"{describe_time(parts.start)} to {describe_time(fitted)}: it is older than all the "
            "time it learned from. Fit it anew.",
        )
    return ()


def numbered_rows(times: Any) -> str:
    """Say what whole numbers as times may be, after a sentence on what is old and what new."""
    if not pd.api.types.is_integer_dtype(times):
        return ""
    return (
        " Rows without times are numbered from the table's first: give the whole table, or fit "
        "with time=...."
    )


def require_rows(
    prepared: Prepared, caller: str, window: int, horizon: int, *, steps: int | None = None
) -> NoReturn:
    """Raise `DataError`: no window has ``steps`` rows after it, by default the horizon."""
    frame, steps = prepared.frame, horizon if steps is None else steps
    needed = window + prepared.preparation.lead + steps
    gap, remedy = "", "Supply a longer history."
    after = np.flatnonzero(frame.segments != frame.segments[-1])
    if frame.panel is not None:
        gap = " of one series, without a gap between them"
    elif len(after):
        since = frame.n_rows - 1 - int(after[-1])
        gap = f" without a gap, and {counted(since, 'row')} came after the last one, which "
        gap += f"follows {describe_time(frame.times[after[-1]])}"
        remedy = "Fill the gap, wait for more rows, or fit with gaps='close'."
    raise DataError(
        f"{caller}() received {frame.n_rows:,} usable rows; window={window} with "
        f"horizon={horizon} needs {needed} rows{gap}. {remedy}"
    )
