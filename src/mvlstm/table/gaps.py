"""Uneven spacing: refused, closed or respected, or the missing times are inserted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.panel import Panel, Rows
from mvlstm.table.spacing import (
    Step,
    add_steps,
    describe_distance,
    describe_step,
    describe_time,
    lower_median,
    spacing,
)
from mvlstm.types import BoolArray, IntArray

FEWEST = 5  # distances that tell the step of a series


def with_missing_times(rows: Rows, step: Step | None, limit: int) -> tuple[Rows, int]:
    """Insert empty rows at the times that are missing between others, ``limit`` in a row at most.

    Returns how many there are, too. Rows that are no whole number of steps apart stay as they are.
    """
    if step is None or len(rows.times) < 2:
        return rows, 0
    distances, unit = spacing(rows.times, step)
    absent = np.where(distances % unit == 0, distances // unit - 1, 0)
    if rows.panel is not None:
        absent[rows.panel.borders] = 0
    absent[(absent < 0) | (absent > limit)] = 0
    count = int(absent.sum())
    if not count:
        return rows, 0
    after = np.repeat(np.arange(len(absent)), absent)  # the row that each new one follows
    place = np.arange(count) - np.repeat(np.cumsum(absent) - absent, absent) + 1
    by_place = np.argsort(place, kind="stable")
    after, place = after[by_place], place[by_place]
    later = [
        add_steps(rows.times[after[place == k]], step, k) for k in range(1, int(place[-1]) + 1)
    ]
    old = np.arange(len(rows.times))
    source, ahead = np.concatenate([old, after]), np.concatenate([0 * old, place])
    order, times = np.lexsort((ahead, source)), rows.times.append(later)
    values = rows.values[source[order]]
    values[ahead[order] > 0] = np.nan
    panel = None if rows.panel is None else rows.panel.take(source[order])
    return Rows(values, times[order], panel), count


def check_spacing(
    times: pd.Index, step: Step, gaps: str, caller: str, panel: Panel | None = None
) -> None:
    """Refuse a table sampled at another rate than the one the model was fitted on."""
    distances, unit = spacing(times, step)
    if panel is not None:
        if gaps == "close":
            check_series_steps(times, step, panel)
        distances = distances[~panel.borders]
    if len(distances) < 2:
        return
    middle = lower_median(distances)
    if gaps == "close":
        other = middle * 2 <= unit or middle >= unit * 2
    else:
        other = not (distances == unit).any()
    if other:
        raise DataError(
            f"{caller}() received rows {describe_distance(middle, step)} apart, but fit() saw "
            f"rows {describe_step(step)} apart. Resample the table to that step, or fit a model "
            "on data of this one."
        )


def check_series_steps(times: pd.Index, step: Step, panel: Panel) -> None:
    """Refuse a series whose rows are never one step apart: one model has one step for all.

    Closing its gaps would date its forecasts wrongly, and respecting them leaves it no window.
    """
    distances, unit = spacing(times, step)
    inner = ~panel.borders
    distances, codes = distances[inner], panel.codes[1:][inner]
    count = len(panel.names)
    fitting = np.bincount(codes[distances == unit], minlength=count)
    for code in np.flatnonzero((np.bincount(codes, minlength=count) >= FEWEST) & (fitting == 0)):
        middle = lower_median(distances[codes == code])
        if middle * 2 <= unit or middle >= unit * 2:
            raise DataError(
                f"The rows of series '{panel.names[code]}' are {describe_distance(middle, step)} "
                f"apart, and the step of the model is {describe_step(step)}. Resample all series "
                "to one step, leave this one out, or fit a model of its own to it."
            )


def find_segments(
    times: pd.Index,
    step: Step | None,
    gaps: str,
    *,
    dropped: bool,
    fitting: bool,
    panel: Panel | None = None,
) -> tuple[IntArray, list[str]]:
    """Give every stretch without a gap a number, or refuse gaps.

    ``step`` is the distance rows should have. Each series begins a segment of its own. Whether
    rows were ``dropped``, and options can still be chosen (``fitting``), is for messages.
    """
    segments = np.zeros(len(times), dtype=np.int64)
    if panel is not None:
        segments[:] = panel.codes
    if step is None or len(times) < 2:
        return segments, []
    distances, unit = spacing(times, step)
    uneven = distances != unit
    if panel is not None:
        uneven &= ~panel.borders
    count = int(uneven.sum())
    if not count:
        return segments, []
    if gaps == "error":
        row = int(uneven.argmax())
        place = f"row {row}" if panel is None else f"series '{panel.name(row)}'"
        advice = (
            "Use gaps='insert' to put in the missing times, gaps='respect' to let no window cross "
            "a gap, or gaps='close' to take the rows as consecutive."
            if fitting
            else f"The model was fitted with gaps='error': supply rows {describe_step(step)} "
            "apart, or fit again with gaps='insert', gaps='respect' or gaps='close'."
        )
        cause = " (dropping rows with missing values opens gaps)" if dropped else ""
        raise DataError(
            f"The rows are not evenly spaced{cause}: the step is {describe_step(step)}, but "
            f"{count:,} of {len(distances):,} {'differs' if count == 1 else 'differ'}, first "
            f"between {describe_time(times[row])} and {describe_time(times[row + 1])} "
            f"({describe_distance(int(distances[row]), step)}, {place}). {advice}",
            remedy={"gaps": "insert"},
        )
    if gaps == "close":
        note = f"Closed {counted(count, 'gap')}: rows on both sides count as consecutive."
        return segments, [note]
    new = uneven if panel is None else uneven | panel.borders
    segments = np.concatenate([[0], np.cumsum(new)])
    return segments, [f"No window crosses the {counted(count, 'gap')} between the rows."]


def usable_rows(
    rows: Rows, after: Rows, complete: BoolArray, step: Step | None, gaps: str
) -> BoolArray:
    """Say which future rows continue their series without a gap and without a missing value.

    ``complete`` says of which rows all that is known ahead is given. Gaps are refused, do not
    matter ("close"), or end what is usable ("respect").
    """
    times, panel = rows.times, rows.panel
    joined = times.append(after.times)
    codes = np.zeros(len(joined), dtype=np.int64)
    if panel is not None and after.panel is not None:
        codes = np.concatenate([panel.codes, after.panel.codes])
    order = np.argsort(codes, kind="stable")  # future rows after the rows of their series
    same = np.concatenate([[False], np.diff(codes[order]) == 0])
    broken = np.zeros(len(joined), dtype=bool)
    if step is not None and gaps != "close" and len(joined) > 1:
        distances, unit = spacing(joined[order], step)
        broken[1:] = distances != unit
    broken &= same & (order >= len(times))  # gaps between other rows are looked at elsewhere
    cut_off = np.unique(codes[order[broken]])  # series that are not continued
    if gaps == "error" and len(cut_off) == len(np.unique(codes[len(times) :])) > 0:
        place = int(np.flatnonzero(broken)[0])
        before, here = joined[order[place - 1]], joined[order[place]]
        where = "" if panel is None else f" in series '{panel.names[codes[order[place]]]}'"
        raise DataError(
            f"The rows given for the future do not continue from the last one known{where}: "
            f"{describe_time(here)} comes after {describe_time(before)}. Supply every row between."
        )
    broken |= ~np.concatenate([np.ones(len(times), dtype=bool), complete])[order]
    broken |= ~same & (order >= len(times))  # a series without a past
    count = np.cumsum(broken)
    first = np.flatnonzero(~same)
    before_first = np.repeat(count[first] - broken[first], np.diff(np.append(first, len(order))))
    fine = np.empty(len(joined), dtype=bool)
    fine[order] = count == before_first
    return np.asarray(fine[len(times) :])
