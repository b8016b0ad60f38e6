"""Categorical columns: finding them, codes for their levels, one column of 0 and 1 per level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.columns import is_dressed, name_list, reads_as_time
from mvlstm.types import BoolArray, FloatArray

MOST_LEVELS = 50
MOSTLY = 0.5  # share of numbers from which text is taken for numbers with something stray


def is_category(column: pd.Series[Any]) -> bool:
    """Whether a column is categorical by itself: its own type says so, or it holds words.

    Text that is mostly numbers, or holds dates, is something else that went wrong.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return not pd.api.types.is_numeric_dtype(categories.dtype) and _words(categories)
    if not (pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)):
        return False
    try:
        codes, entries = pd.factorize(column)
    except TypeError:  # lists and the like
        return False
    if not len(entries) or not _words(entries):
        return False
    numbers = np.array([_is_number(entry) for entry in entries])
    counts = np.bincount(codes[codes >= 0], minlength=len(entries))
    return bool(counts[numbers].sum() < MOSTLY * counts.sum())


def _words(entries: Any) -> bool:
    """Whether all entries are text (or numbers among text), and not dates."""
    if not all(isinstance(entry, str | bool | int | float | np.number) for entry in entries):
        return False
    return not any(reads_as_time(entry) for entry in entries[:3])


def _is_number(entry: Any) -> bool:
    """Whether an entry is a number, a truth value, or text that was meant as a number."""
    if not isinstance(entry, str):
        return True
    if "_" in entry:  # which Python's own numbers may have
        return False
    try:
        float(entry.replace(",", "."))
    except ValueError:
        return is_dressed(entry)
    return True


def category_codes(column: pd.Series[Any]) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a number for each entry, NaN where it is missing, and the levels they stand for.

    Text that is blank is missing.
    """
    codes, entries = pd.factorize(column)
    names = [level_name(entry) for entry in entries]
    levels = sorted({*names} - {""})
    place = {level: float(k) for k, level in enumerate(levels)}
    numbers = np.array([*(place.get(name, np.nan) for name in names), np.nan])  # -1: missing
    return numbers[codes], tuple(levels)


def level_name(entry: Any) -> str:
    """Write a level as text, the same for 3 and 3.0, which files do not keep apart.

    Nor do they keep blanks around a word in order.

    Examples
    --------
    >>> level_name(3.0), level_name(" NE")
    ('3', 'NE')
    """
    if isinstance(entry, float | np.floating) and float(entry).is_integer():
        return str(int(entry))
    return str(entry).strip()


def check_levels(name: str, levels: Sequence[str]) -> None:
    """Refuse a column with too many levels to have a column of numbers for each."""
    if len(levels) <= MOST_LEVELS:
        return
    raise DataError(
        f"Column '{name}' is categorical with {len(levels):,} levels ({name_list(levels[:4])} and "
        f"so on); at most {MOST_LEVELS} are encoded. If it says which of several series a row "
        f"belongs to, use series='{name}'; otherwise gather its levels into fewer, or use "
        f"exclude=['{name}']."
    )


def encode(
    codes: FloatArray, found: Sequence[str], levels: Sequence[str]
) -> tuple[FloatArray, BoolArray]:
    """Turn codes into one column of 0 and 1 per level, and say which rows have none of them.

    ``codes`` (rows,) are indices into ``found``, the table's own levels.
    """
    place = {level: k for k, level in enumerate(levels)}
    target = np.array([place.get(level, -1) for level in found], dtype=np.int64)
    rows = target[codes.astype(np.int64)]
    columns = (rows[:, None] == np.arange(len(levels))).astype(np.float64)
    return columns, rows < 0


def unseen_note(
    name: str, unseen: BoolArray, codes: Any, found: Sequence[str], *, ahead: bool = False
) -> str:
    """Say how many rows, or rows after the last target, have a level that training did not."""
    others = [found[int(code)] for code in np.unique(codes[unseen])]
    where = " after the last target" if ahead else ""
    return (
        f"Column '{name}' has {counted(int(unseen.sum()), 'row')}{where} with levels that "
        f"training did not have, {name_list(others)}; they count as none of its levels."
    )
