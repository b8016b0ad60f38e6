"""Missing and infinite values: refuse, drop or fill them forward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._columns import exclude_hint
from mvlstm.data._steps import position
from mvlstm.errors import DataError

FILL_OPTION = "missing='fill' (--missing fill)"
DROP_OPTION = "missing='drop' (--missing drop)"
_CHUNK = 65_536


def handle_missing(
    values: NDArray[np.float64],
    times: pd.Index,
    columns: Sequence[str],
    *,
    missing: str,
    fill_limit: int,
    fitting: bool,
) -> tuple[NDArray[np.float64], pd.Index, list[str]]:
    """Return values and times without missing entries, and notes on what was done.

    ``values`` may be changed in place. Infinite entries count as missing. Filling repeats the
    last known value of the same column, at most ``fill_limit`` rows long, and never looks ahead;
    rows before a column's first value cannot be filled and are dropped.
    """
    absent = ~np.isfinite(values)
    if not absent.any():
        return values, times, []
    if missing == "error":
        advice = (
            f"Use {DROP_OPTION} to leave these rows out, {FILL_OPTION} to repeat the last known "
            "value, or mend the table before."
            if fitting
            else "The model was fitted with missing='error': mend the table, or fit again with "
            f"{DROP_OPTION} or {FILL_OPTION}."
        )
        raise DataError(f"{_what_is_missing(values, absent, times, columns)} {advice}")
    if missing == "fill":
        return _fill_forward(values, absent, times, columns, limit=fill_limit, fitting=fitting)
    return _drop(values, absent, times, columns, fitting=fitting)


def _what_is_missing(
    values: NDArray[np.float64],
    absent: NDArray[np.bool_],
    times: pd.Index,
    columns: Sequence[str],
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
    others = [j for j in incomplete if j != first]
    also = ""
    if others:
        shown = ", ".join(f"'{columns[j]}' ({int(counts[j]):,})" for j in others[:5])
        more = f" and {len(others) - 5} more columns" if len(others) > 5 else ""
        also = f" Also in {shown}{more}."
    return f"{name} has {count:,} {kind} {value}{some} at {position(times, row)}.{also}"


def _drop(
    values: NDArray[np.float64],
    absent: NDArray[np.bool_],
    times: pd.Index,
    columns: Sequence[str],
    *,
    fitting: bool,
) -> tuple[NDArray[np.float64], pd.Index, list[str]]:
    """Keep the complete rows, moved to the front in place so that no second table is needed."""
    keep: NDArray[np.bool_] = np.logical_not(absent.any(axis=1))
    if not keep.any():
        counts = absent.sum(axis=0)
        worst = int(counts.argmax())
        raise DataError(
            f"No row is complete: dropping rows with missing values leaves none of "
            f"{len(values):,}. Column '{columns[worst]}' lacks the most ({int(counts[worst]):,}). "
            f"{_remedy(columns, worst, fitting=fitting)}"
        )
    end = 0
    for start in range(0, len(values), _CHUNK):
        rows = values[start : start + _CHUNK][keep[start : start + _CHUNK]]
        values[end : end + len(rows)] = rows
        end += len(rows)
    note = f"Dropped {len(values) - end:,} of {len(values):,} rows with missing values."
    return values[:end], times[keep], [note]


def _remedy(columns: Sequence[str], j: int, *, fitting: bool) -> str:
    """Say what to do about a column that is as good as empty."""
    if not fitting:
        return "Mend the table."
    if j == len(columns) - 1:
        return "Choose another target (--target) or mend the table."
    return f"Use {exclude_hint([columns[j]])}."


def _fill_forward(
    values: NDArray[np.float64],
    absent: NDArray[np.bool_],
    times: pd.Index,
    columns: Sequence[str],
    *,
    limit: int,
    fitting: bool,
) -> tuple[NDArray[np.float64], pd.Index, list[str]]:
    """Repeat the last known value, column by column; drop the rows before the first ones."""
    start = 0
    filled = 0
    rows = np.arange(len(values))
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        gone = absent[:, j]
        if gone.all():
            remedy = _remedy(columns, j, fitting=fitting)
            raise DataError(f"Column '{columns[j]}' has no value at all. {remedy}")
        source = np.maximum.accumulate(np.where(gone, -1, rows))  # the last row with a value
        age = np.where(source < 0, 0, rows - source)
        longest = int(age.max())
        if longest > limit:
            begin = int(age.argmax()) - longest + 1
            again = "use" if fitting else "fit again with"
            raise DataError(
                f"Column '{columns[j]}' lacks {longest:,} values in a row from "
                f"{position(times, begin)}, more than the {limit} that are filled (fill_limit). "
                f"Fill this stretch before, or {again} {DROP_OPTION}."
            )
        take = np.flatnonzero(gone & (source >= 0))
        values[take, j] = values[source[take], j]
        filled += len(take)
        start = max(start, int(np.argmin(gone)))
    notes = [f"Filled {filled:,} missing values with the last known one."] if filled else []
    if start:
        notes.append(f"Dropped the first {start:,} rows, before every column had a value.")
    return values[start:], times[start:], notes
