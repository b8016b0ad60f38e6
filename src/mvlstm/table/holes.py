"""Missing values: refused, dropped with their rows, or filled in, with or without a mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.gaps import with_missing_times
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Rows
from mvlstm.table.spacing import Step
from mvlstm.types import BoolArray, FloatArray

_CHUNK = 65_536


class Mended(NamedTuple):
    """Rows without missing entries."""

    rows: Rows
    absent: BoolArray  # (rows, columns) whether a value was missing, and is filled in
    notes: list[str]  # what was done
    dropped: bool = False  # whether any rows were


def handle_missing(rows: Rows, layout: Layout, step: Step | None, *, fitting: bool) -> Mended:
    """Return rows without missing entries, which those were, and notes on what was done.

    The values may be changed in place. Infinite entries count as missing. Filling repeats the
    last known value of the same column and series and never looks ahead. With ``gaps="insert"``
    rows come in at missing times, and are filled too.
    """
    absent = ~np.isfinite(rows.values)
    notes, count = [], len(rows.values)
    if absent.any():
        whole = absent.all(axis=0) & ~np.isin(layout.columns, layout.masked)
        if whole.any():  # neither dropping nor filling would help
            raise _hopeless(absent * whole, layout, fitting=fitting)
        if layout.missing == "error":
            raise _refusal(rows, absent, layout, fitting=fitting)
        if layout.missing == "drop":
            keep = np.logical_not(absent.any(axis=1))
            if not keep.any():
                raise _hopeless(absent, layout, fitting=fitting)
            rows, absent = _kept(rows, keep), absent[keep]
            notes = [f"Dropped {count - len(absent):,} of {count:,} rows with missing values."]
    if layout.gaps == "insert":
        rows, inserted = with_missing_times(rows, step, layout.fill_limit)
        if inserted:
            absent = ~np.isfinite(rows.values)
            notes.append(f"Inserted {counted(inserted, 'row')} at missing times.")
    if not absent.any():
        return Mended(rows, absent, notes, len(rows.values) < count)
    keep, told = _fill_forward(rows, absent, layout, fitting=fitting)
    notes += told
    if not keep.all():
        if not keep.any():
            raise _hopeless(absent, layout, fitting=fitting)
        rows, absent = _kept(rows, keep), absent[keep]
    return Mended(rows, absent, notes, len(rows.values) < count)


def _refusal(rows: Rows, absent: BoolArray, layout: Layout, *, fitting: bool) -> DataError:
    """Say what is missing, and what may be done."""
    advice = (
        "Use missing='mask' to repeat the last value and tell the model where, missing='fill' to "
        "repeat it for some rows, or missing='drop' to leave these rows out."
        if fitting
        else "The model was fitted with missing='error': correct the table, or fit again with "
        "missing='mask', missing='fill' or missing='drop'."
    )
    told = f"{_what_is_missing(rows, absent, layout.columns)} {advice}"
    return DataError(told, remedy={"missing": "mask"})


def _kept(rows: Rows, keep: BoolArray) -> Rows:
    panel = None if rows.panel is None else rows.panel.take(keep)
    return Rows(_compress(rows.values, keep), rows.times[keep], panel)


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


def _hopeless(absent: BoolArray, layout: Layout, *, fitting: bool) -> DataError:
    """Name the column that has no value, or lacks the most where no row is complete."""
    counts = absent.sum(axis=0)
    worst = int(counts.argmax())
    name, target = layout.columns[worst], worst == len(layout.columns) - 1
    remedy = {"exclude": [name]} if fitting and not target else {}
    if counts[worst] == len(absent):
        advice = "Choose another target or correct the table."
        if not target:
            advice = f"Use exclude=['{name}']." if fitting else "Correct the table."
        return DataError(f"Column '{name}' has no value at all. {advice}", remedy=remedy)
    advice = "Use missing='mask' in place of it." if fitting else "Correct the table."
    return DataError(
        f"No row is complete: dropping rows with missing values leaves none of {len(absent):,}, "
        f"and column '{name}' lacks the most ({int(counts[worst]):,}). {advice}",
        remedy={"missing": "mask"} if fitting else {},
    )


def _fill_forward(
    table: Rows, absent: BoolArray, layout: Layout, *, fitting: bool
) -> tuple[BoolArray, list[str]]:
    """Repeat the last known value, column by column; return the rows to keep, and notes.

    More than ``fill_limit`` in a row are a gap, unless the model is told that they are missing.
    """
    values, typical = table.values, dict(layout.typical)
    rows, long = np.arange(len(values)), np.zeros(len(values), dtype=bool)
    filled = early = 0
    starts = 0 if table.panel is None else table.panel.starts
    keep = np.ones(len(values), dtype=bool)
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        name, gone = layout.columns[j], absent[:, j]
        source = np.maximum.accumulate(np.where(gone, -1, rows))  # the last row with a value
        source[source < starts] = -1  # of another series
        take = np.flatnonzero(gone & (source >= 0))
        values[take, j] = values[source[take], j]
        filled += len(take)
        if layout.missing != "mask":
            long |= _too_long(np.where(source < 0, 0, rows - source), name, table, layout, fitting)
        if name in typical or (layout.missing == "mask" and fitting):
            early += int((source < 0).sum())
            values[source < 0, j] = typical.get(name, np.nan)  # in a fit, found afterwards
        else:
            keep[source < 0] = False
    how = "with the last known one"
    if layout.missing == "mask":
        how += f"{' (the median before the first)' if early else ''}, and marked as missing"
    notes = [f"Filled {counted(filled + early, 'missing value')} {how}."] * (filled + early > 0)
    dropped = int(len(keep) - keep.sum())
    if dropped:
        first = "the first row" if dropped == 1 else f"the first {dropped:,} rows"
        which = f"{first}," if table.panel is None else f"{counted(dropped, 'row')} of series"
        notes.append(f"Dropped {which} before every column had a value.")
    if long.any():
        notes.append(
            f"Left out {counted(int(long.sum()), 'row')} in holes longer than "
            f"{counted(layout.fill_limit, 'row')} (fill_limit)."
        )
    return keep & ~long, notes


def _too_long(age: FloatArray, name: str, table: Rows, layout: Layout, fitting: bool) -> BoolArray:
    """Say which rows lie in a hole longer than what is filled; refuse it where gaps are."""
    limit = layout.fill_limit
    ends = np.flatnonzero((age > limit) & (np.append(age[1:], 0) == 0))
    long = np.zeros(len(age), dtype=bool)
    for end in ends.tolist():
        long[end - int(age[end]) + 1 : end + 1] = True
    if not len(ends) or layout.gaps != "error":
        return long
    longest = int(age.max())
    begin = table.where(int(age.argmax()) - longest + 1)
    again = "Use" if fitting else "Fit again with"
    raise DataError(
        f"Column '{name}' lacks {longest:,} values in a row from {begin}, and "
        f"fill_limit={limit} fills no more than {limit}. {again} missing='mask', "
        f"fill_limit={longest}, or gaps='respect' to take it for a gap.",
        remedy={"missing": "mask"},
    )
