"""Missing and infinite values: refuse, drop or fill them forward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._steps import position
from mvlstm.errors import DataError

FILL_OPTION = "missing='fill' (--missing fill)"
DROP_OPTION = "missing='drop' (--missing drop)"


def handle_missing(
    values: NDArray[np.float64],
    times: pd.Index,
    columns: Sequence[str],
    *,
    missing: str,
    fill_limit: int,
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
        raise DataError(_missing_message(values, absent, times, columns))
    if missing == "fill":
        return _fill_forward(values, absent, times, columns, fill_limit)
    keep: NDArray[np.bool_] = np.logical_not(absent.any(axis=1))
    if not keep.any():
        fullest = int(absent.sum(axis=0).argmax())
        raise DataError(
            f"No row is complete: dropping rows with missing values leaves none of "
            f"{len(values):,}. Column '{columns[fullest]}' lacks the most "
            f"({int(absent[:, fullest].sum()):,}); leave it out with "
            f"exclude=['{columns[fullest]}'] (--exclude), or use {FILL_OPTION}."
        )
    note = f"Dropped {int((~keep).sum()):,} of {len(values):,} rows with missing values."
    return _compact(values, keep), times[keep], [note]


def _compact(values: NDArray[np.float64], keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Move the rows to keep to the front, in place, so that no second table is needed."""
    size, end = 65_536, 0
    for start in range(0, len(values), size):
        rows = values[start : start + size][keep[start : start + size]]
        values[end : end + len(rows)] = rows
        end += len(rows)
    return values[:end]


def _missing_message(
    values: NDArray[np.float64],
    absent: NDArray[np.bool_],
    times: pd.Index,
    columns: Sequence[str],
) -> str:
    counts = absent.sum(axis=0)
    worst = [int(j) for j in np.flatnonzero(counts)]
    last = len(columns) - 1
    first = last if counts[last] else worst[0]
    count = int(counts[first])
    infinite = int(np.isinf(values[:, first]).sum())
    kind = "infinite" if infinite == count else "missing"
    some = f" ({infinite:,} of them infinite)" if 0 < infinite < count else ""
    row = int(absent[:, first].argmax())
    name = f"{'Target' if first == last else 'Column'} '{columns[first]}'"
    value = "value" if count == 1 else "values, the first"
    others = [j for j in worst if j != first]
    also = ""
    if others:
        shown = ", ".join(f"'{columns[j]}' ({int(counts[j]):,})" for j in others[:5])
        more = f" and {len(others) - 5} more columns" if len(others) > 5 else ""
        also = f" Also in {shown}{more}."
    return (
        f"{name} has {count:,} {kind} {value}{some} at {position(times, row)}.{also} "
        f"Use {DROP_OPTION} to leave these rows out, {FILL_OPTION} to repeat the last "
        "known value, or mend the table before."
    )


def _fill_forward(
    values: NDArray[np.float64],
    absent: NDArray[np.bool_],
    times: pd.Index,
    columns: Sequence[str],
    limit: int,
) -> tuple[NDArray[np.float64], pd.Index, list[str]]:
    """Repeat the last known value, column by column; drop the rows before the first ones."""
    start = 0
    filled = 0
    rows = np.arange(len(values))
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        gone = absent[:, j]
        if gone.all():
            raise DataError(
                f"Column '{columns[j]}' has no value at all. Leave it out with "
                f"exclude=['{columns[j]}'] (--exclude)."
            )
        source = np.maximum.accumulate(np.where(gone, -1, rows))
        first = int(np.argmin(gone))
        start = max(start, first)
        age = np.where(source < 0, 0, rows - source)
        longest = int(age.max())
        if longest > limit:
            end = int(age.argmax())
            begin = end - longest + 1
            raise DataError(
                f"Column '{columns[j]}' lacks {longest:,} values in a row from "
                f"{position(times, begin)}, more than fill_limit={limit}. Raise it with "
                f"fill_limit={longest} (--fill-limit {longest}), or use {DROP_OPTION}."
            )
        take = np.flatnonzero(gone & (source >= 0))
        values[take, j] = values[source[take], j]
        filled += len(take)
    notes = [f"Filled {filled:,} missing values with the last known one."] if filled else []
    if start:
        notes.append(f"Dropped the first {start:,} rows, before every column had a value.")
    return np.ascontiguousarray(values[start:]), times[start:], notes
