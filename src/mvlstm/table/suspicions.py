"""Columns and values that were probably meant to be something else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.table.layout import Layout
from mvlstm.table.reading import Raw
from mvlstm.table.spacing import position
from mvlstm.types import FloatArray

FAR = 10.0  # spans of all other values that one alone may be away from them
COMMON = 0.1  # share of the rows above which a value is not odd
FEWEST_VALUES = 20  # different ones, for some to be far from the others


def suspicions(raw: Raw, layout: Layout) -> list[str]:
    """Note row numbers among the variables, and values far from all others.

    Not of several series: each has values of its own.
    """
    notes: list[str] = []
    for j, name in enumerate(layout.columns if raw.panel is None else ()):
        if name in raw.levels:
            continue
        column = np.ascontiguousarray(raw.values[:, j])
        if name != layout.target and _counts_rows(column):
            notes.append(f"Column '{name}' looks like a row number; use exclude=['{name}'] if so.")
        notes += _far_values(name, column, raw.times)
    return notes


def _counts_rows(column: FloatArray) -> bool:
    return bool((np.diff(column[:64]) == 1).all() and (np.diff(column) > 0).all())


def _far_values(name: str, column: FloatArray, times: pd.Index) -> Iterator[str]:
    """Note a least or greatest value that is farther from all others than they are apart.

    One that occurs several times is probably a code for something missing. One that occurs once
    may be what a heavy tail brings, so it must be ten times as far.
    """
    least, most = float(column.min()), float(column.max())
    middle = least / 2 + most / 2
    upper = int(np.count_nonzero(column > middle))
    for value, count in ((least, int(np.count_nonzero(column < middle))), (most, upper)):
        if not 0 < count <= COMMON * len(column):  # a value this far away is alone in its half
            continue
        rows = np.flatnonzero(column == value)
        others = column[column != value]
        low, high = float(others.min()), float(others.max())
        away = max(low - value, value - high)
        if away <= (high - low) * (1.0 if len(rows) > 1 else FAR):
            continue
        if len(np.unique(others)) < FEWEST_VALUES:
            continue
        yield (
            f"Column '{name}' is {value:g} in {counted(len(rows), 'row')}, the first at "
            f"{position(times, int(rows[0]))}; all other values lie between {low:g} and {high:g}. "
            "If that is an error, or stands for a missing value, empty these cells and use "
            "missing='fill' or missing='drop'."
        )
