"""Holes in a table: missing values and uneven spacing are refused, mended or respected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Panel, Rows
from mvlstm.table.spacing import (
    Step,
    describe_distance,
    describe_step,
    describe_time,
    lower_median,
    spacing,
)
from mvlstm.types import BoolArray, FloatArray, IntArray

_CHUNK = 65_536
FEWEST = 5  # distances that tell the step of a series


def handle_missing(
    rows: Rows, layout: Layout, *, fitting: bool
) -> tuple[Rows, BoolArray | None, list[str]]:
    """Return rows without missing entries, which were kept (None: all) and notes on what was done.

    The values may be changed in place. Infinite entries count as missing. Filling repeats the
    last known value of the same column and series, at most ``fill_limit`` rows long, and never
    looks ahead; rows before a column's first value cannot be filled and are dropped.
    """
    absent, columns = ~np.isfinite(rows.values), layout.columns
    if not absent.any():
        return rows, None, []
    if absent.all(axis=0).any():  # neither dropping nor filling would help
        raise _hopeless(absent, columns, fitting=fitting)
    if layout.missing == "error":
        advice = (
            "Use missing='drop' to leave these rows out, missing='fill' to repeat the last known "
            "value, or correct the table first."
            if fitting
            else "The model was fitted with missing='error': correct the table, or fit again with "
            "missing='drop' or missing='fill'."
        )
        raise DataError(f"{_what_is_missing(rows, absent, columns)} {advice}")
    if layout.missing == "fill":
        keep, notes = _fill_forward(rows, absent, layout, fitting=fitting)
    else:
        keep = np.logical_not(absent.any(axis=1))
        notes = [f"Dropped {len(keep) - keep.sum():,} of {len(keep):,} rows with missing values."]
    if keep.all():
        return rows, None, notes
    if not keep.any():
        raise _hopeless(absent, columns, fitting=fitting)
    panel = None if rows.panel is None else rows.panel.take(keep)
    return Rows(_compress(rows.values, keep), rows.times[keep], panel), keep, notes


def _what_is_missing(rows: Rows, absent: BoolArray, columns: Sequence[str]) -> str:
    """Name the incomplete columns, the target first, with counts and the first position."""
    counts = absent.sum(axis=0)
    incomplete = [int(j) for j in np.flatnonzero(counts)]
    last = len(columns) - 1
    first = last if counts[last] else incomplete[0]
    count = int(counts[first])
    infinite = int(np.isinf(rows.values[:, first]).sum())
    kind = "infinite" if infinite == count else "missing"
    some = f" ({infinite:,} of them infinite)" if 0 < infinite < count else ""
    where = rows.where(int(absent[:, first].argmax()))
    name = f"{'Target' if first == last else 'Column'} '{columns[first]}'"
    value = "value" if count == 1 else "values, the first"
    others = [f"'{columns[j]}' ({int(counts[j]):,})" for j in incomplete if j != first]
    more = f" and {len(others) - 5} more columns" if len(others) > 5 else ""
    also = f" Also in {', '.join(others[:5])}{more}." if others else ""
    return f"{name} has {count:,} {kind} {value}{some} at {where}.{also}"


def _compress(values: FloatArray, keep: BoolArray) -> FloatArray:
    """Move the rows kept to the front, in place, so that no second table is needed."""
    end = 0
    for start in range(0, len(values), _CHUNK):
        rows = values[start : start + _CHUNK][keep[start : start + _CHUNK]]
        values[end : end + len(rows)] = rows
        end += len(rows)
    return values[:end]


def _hopeless(absent: BoolArray, columns: Sequence[str], *, fitting: bool) -> DataError:
    """Name the column that has no value, or lacks the most where no row is complete."""
    counts = absent.sum(axis=0)
    worst = int(counts.argmax())
    remedy = "Correct the table."
    if fitting:
        others = "Choose another target or correct the table."
        remedy = others if worst == len(columns) - 1 else f"Use exclude=['{columns[worst]}']."
    if counts[worst] == len(absent):
        return DataError(f"Column '{columns[worst]}' has no value at all. {remedy}")
    return DataError(
        f"No row is complete: dropping rows with missing values leaves none of {len(absent):,}. "
        f"Column '{columns[worst]}' lacks the most ({int(counts[worst]):,}). {remedy}"
    )


def _fill_forward(
    table: Rows, absent: BoolArray, layout: Layout, *, fitting: bool
) -> tuple[BoolArray, list[str]]:
    """Repeat the last known value, column by column; return the rows to keep, and notes."""
    values, columns, limit = table.values, layout.columns, layout.fill_limit
    rows, filled = np.arange(len(values)), 0
    starts = 0 if table.panel is None else table.panel.starts
    keep = np.ones(len(values), dtype=bool)
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        gone = absent[:, j]
        source = np.maximum.accumulate(np.where(gone, -1, rows))  # the last row with a value
        source[source < starts] = -1  # of another series
        age = np.where(source < 0, 0, rows - source)
        longest = int(age.max())
        if longest > limit:
            begin = table.where(int(age.argmax()) - longest + 1)
            again = "use" if fitting else "fit again with"
            raise DataError(
                f"Column '{columns[j]}' lacks {longest:,} values in a row from {begin}, more than "
                f"the {limit} that are filled (fill_limit). Fill this stretch before, or {again} "
                "missing='drop'."
            )
        take = np.flatnonzero(gone & (source >= 0))
        values[take, j] = values[source[take], j]
        filled += len(take)
        keep[source < 0] = False
    notes = [f"Filled {counted(filled, 'missing value')} with the last known one."] * (filled > 0)
    dropped = int(len(keep) - keep.sum())
    if dropped:
        first = "the first row" if dropped == 1 else f"the first {dropped:,} rows"
        which = f"{first}," if table.panel is None else f"{counted(dropped, 'row')} of series"
        notes.append(f"Dropped {which} before every column had a value.")
    return keep, notes


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
            "Use gaps='close' to take the rows as consecutive, or gaps='respect' to let no window "
            "cross a gap."
            if fitting
            else f"The model was fitted with gaps='error': supply rows {describe_step(step)} "
            "apart, or fit again with gaps='close' or gaps='respect'."
        )
        cause = " (dropping rows with missing values opens gaps)" if dropped else ""
        raise DataError(
            f"The rows are not evenly spaced{cause}: the step is {describe_step(step)}, but "
            f"{count:,} of {len(distances):,} {'differs' if count == 1 else 'differ'}, first "
            f"between {describe_time(times[row])} and {describe_time(times[row + 1])} "
            f"({describe_distance(int(distances[row]), step)}, {place}). {advice}"
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
