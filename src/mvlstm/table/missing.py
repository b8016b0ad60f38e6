"""Missing and infinite values: refuse, drop or fill them forward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Panel
from mvlstm.table.spacing import position
from mvlstm.types import BoolArray, FloatArray

_CHUNK = 65_536


def handle_missing(
    values: FloatArray,
    times: pd.Index,
    layout: Layout,
    *,
    fitting: bool,
    panel: Panel | None = None,
) -> tuple[FloatArray, BoolArray | None, list[str]]:
    """Return values without missing entries, the rows kept (None: all) and notes on what was done.

    ``values`` may be changed in place. Infinite entries count as missing. Filling repeats the
    last known value of the same column and series, at most ``fill_limit`` rows long, and never
    looks ahead; rows before a column's first value cannot be filled and are dropped.
    """
    absent, columns = ~np.isfinite(values), layout.columns
    if not absent.any():
        return values, None, []
    if absent.all(axis=0).any():  # neither dropping nor filling would help
        raise _hopeless(absent, columns, fitting=fitting)
    if layout.missing == "fill":
        return _fill_forward(values, absent, times, layout, panel, fitting=fitting)
    if layout.missing == "error":
        advice = (
            "Use missing='drop' to leave these rows out, missing='fill' to repeat the last known "
            "value, or correct the table first."
            if fitting
            else "The model was fitted with missing='error': correct the table, or fit again with "
            "missing='drop' or missing='fill'."
        )
        raise DataError(f"{_what_is_missing(values, absent, times, columns, panel)} {advice}")
    keep = np.logical_not(absent.any(axis=1))
    if not keep.any():
        raise _hopeless(absent, columns, fitting=fitting)
    note = f"Dropped {len(keep) - keep.sum():,} of {len(keep):,} rows with missing values."
    return _compress(values, keep), keep, [note]


def _what_is_missing(
    values: FloatArray,
    absent: BoolArray,
    times: pd.Index,
    columns: Sequence[str],
    panel: Panel | None,
) -> str:
    """Name the incomplete columns, the target first, with counts and the first position."""
    counts = absent.sum(axis=0)
    incomplete = [int(j) for j in np.flatnonzero(counts)]
    last = len(columns) - 1
    first = last if counts[last] else incomplete[0]
    count = int(counts[first])
    infinite = int(np.isinf(values[:, first]).sum())
    kind = "infinite" if infinite == count else "missing"
    some = f" ({infinite:,} of them infinite)" if 0 < infinite < count else ""
    row = int(absent[:, first].argmax())
    name = f"{'Target' if first == last else 'Column'} '{columns[first]}'"
    value = "value" if count == 1 else "values, the first"
    others = [f"'{columns[j]}' ({int(counts[j]):,})" for j in incomplete if j != first]
    more = f" and {len(others) - 5} more columns" if len(others) > 5 else ""
    also = f" Also in {', '.join(others[:5])}{more}." if others else ""
    return f"{name} has {count:,} {kind} {value}{some} at {position(times, row, panel)}.{also}"


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
        last = worst == len(columns) - 1
        others = "Choose another target or correct the table."
        remedy = others if last else f"Use exclude=['{columns[worst]}']."
    if counts[worst] == len(absent):
        return DataError(f"Column '{columns[worst]}' has no value at all. {remedy}")
    return DataError(
        f"No row is complete: dropping rows with missing values leaves none of {len(absent):,}. "
        f"Column '{columns[worst]}' lacks the most ({int(counts[worst]):,}). {remedy}"
    )


def _fill_forward(
    values: FloatArray,
    absent: BoolArray,
    times: pd.Index,
    layout: Layout,
    panel: Panel | None,
    *,
    fitting: bool,
) -> tuple[FloatArray, BoolArray | None, list[str]]:
    """Repeat the last known value, column by column; drop the rows before the first ones."""
    columns, limit, filled = layout.columns, layout.fill_limit, 0
    rows = np.arange(len(values))
    starts = 0 if panel is None else panel.starts
    keep = np.ones(len(values), dtype=bool)
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        gone = absent[:, j]
        source = np.maximum.accumulate(np.where(gone, -1, rows))  # the last row with a value
        source[source < starts] = -1  # of another series
        age = np.where(source < 0, 0, rows - source)
        longest = int(age.max())
        if longest > limit:
            begin = int(age.argmax()) - longest + 1
            again = "use" if fitting else "fit again with"
            raise DataError(
                f"Column '{columns[j]}' lacks {longest:,} values in a row from "
                f"{position(times, begin, panel)}, more than the {limit} that are filled "
                f"(fill_limit). Fill this stretch before, or {again} missing='drop'."
            )
        take = np.flatnonzero(gone & (source >= 0))
        values[take, j] = values[source[take], j]
        filled += len(take)
        keep[source < 0] = False
    notes = [f"Filled {counted(filled, 'missing value')} with the last known one."] * (filled > 0)
    dropped = int(len(keep) - keep.sum())
    if not dropped:
        return values, None, notes
    first = "the first row" if dropped == 1 else f"the first {dropped:,} rows"
    which = f"{first}," if panel is None else f"{counted(dropped, 'row')} of series"
    notes.append(f"Dropped {which} before every column had a value.")
    if not keep.any():
        raise _hopeless(absent, columns, fitting=fitting)
    return _compress(values, keep), keep, notes
