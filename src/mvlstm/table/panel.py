"""Several series in one table: which row belongs to which, and where one ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.settings import Duplicates
from mvlstm.table.columns import check_columns
from mvlstm.table.encoding import category_codes
from mvlstm.table.spacing import Step, describe_time, find_step, ticks
from mvlstm.types import BoolArray, FloatArray, IntArray

FEW = 0.2  # share of the rows above which repeated times are rather those of several series
SEVERAL = "If the table holds several series, say with series=... which column names them."


@dataclass(frozen=True, eq=False)
class Panel:
    """The series of every row; rows of one series are adjacent, in order of their names."""

    codes: IntArray  # (rows,) indices into the names, never falling
    names: tuple[str, ...]

    @property
    def borders(self) -> BoolArray:
        """For each pair of neighbouring rows, whether a new series begins, (rows - 1,)."""
        return np.asarray(np.diff(self.codes) != 0)

    @property
    def starts(self) -> IntArray:
        """For each row, the first row of its series."""
        first = np.flatnonzero(np.concatenate([[True], self.borders]))
        return np.repeat(first, np.diff(np.append(first, len(self.codes))))

    def name(self, row: int) -> str:
        """Name of a row's series."""
        return self.names[int(self.codes[row])]

    def longest(self) -> slice:
        """Rows of the series with the most."""
        code = int(np.bincount(self.codes, minlength=len(self.names)).argmax())
        low, high = np.searchsorted(self.codes, [code, code + 1])
        return slice(int(low), int(high))

    def take(self, rows: BoolArray | IntArray | slice) -> Panel:
        """Keep some rows, and the names as they are."""
        return Panel(self.codes[rows], self.names)


class Rows(NamedTuple):
    """Rows of numbers with their times, and their series where there are several."""

    values: FloatArray
    times: pd.Index
    panel: Panel | None

    def take(self, keep: BoolArray | IntArray) -> Rows:
        """Keep some rows."""
        panel = None if self.panel is None else self.panel.take(keep)
        return Rows(self.values[keep], self.times[keep], panel)

    @property
    def step(self) -> Step | None:
        """The usual distance of rows, in the longest series where there are several."""
        return find_step(self.times if self.panel is None else self.times[self.panel.longest()])

    def where(self, row: int) -> str:
        """Say where a row is: its time and its number (from 0), or its time and series."""
        time = self.times[row]
        if self.panel is not None:
            return f"{describe_time(time)} in series '{self.panel.name(row)}'"
        if isinstance(self.times, pd.DatetimeIndex):
            return f"{describe_time(time)} (row {row})"
        return f"row {row}" if time == row else f"time {time} (row {row})"

    def in_order(self, duplicates: Duplicates) -> tuple[IntArray, IntArray] | None:
        """Return the order of the rows in time, and for each in this order its number among times.

        None where they rise already. Series stay one after another. Raises `DataError` where a time
        occurs twice and nothing is said about ``duplicates``.
        """
        moments = ticks(self.times)
        rises = np.diff(moments) > 0
        if rises.all() or (self.panel is not None and (rises | self.panel.borders).all()):
            return None
        codes = np.zeros(len(moments), dtype=np.int64) if self.panel is None else self.panel.codes
        order = np.lexsort((moments, codes))
        steps, same = np.diff(moments[order]), np.diff(codes[order]) == 0
        repeated = same & (steps == 0)
        if repeated.any() and duplicates == "error":
            self._refuse_repeats(order, repeated)
        return order, np.concatenate([[0], np.cumsum(~repeated)])[: len(order)]

    def _refuse_repeats(self, order: IntArray, repeated: BoolArray) -> NoReturn:
        at, hint = int(repeated.argmax()), ""
        row, other = sorted(order[at : at + 2].tolist())
        times, count = self.times, int(repeated.sum())
        if isinstance(times, pd.DatetimeIndex) and times.tz is None and times[row].hour < 4:
            hint = " If it is the hour repeated when clocks go back, give the times in UTC."
        few = count <= FEW * len(order)
        if self.panel is None and not few:
            hint = f" {SEVERAL}"
        twice = f"{describe_time(times[row])} occurs in rows {row} and {other}"
        twice = twice if self.panel is None else f"{self.where(row)} occurs twice"
        raise DataError(
            f"The times are not unique: {twice} ({counted(count, 'repeat')} in all). Use "
            "duplicates='mean' for the mean of these rows, or duplicates='first' or "
            f"duplicates='last' to keep one.{hint}",
            remedy={"duplicates": "mean"} if few else {},
        )


def after_last(unknown: BoolArray, panel: Panel | None) -> BoolArray:
    """Say which rows come after the last one (of their series) that is known."""
    rows = np.arange(len(unknown))
    last = np.maximum.accumulate(np.where(unknown, -1, rows))  # the last row known
    if panel is None:
        return np.asarray(rows > last[-1]) if len(rows) else unknown
    ends = np.flatnonzero(np.append(panel.borders, True))
    counts = np.diff(np.concatenate([[-1], ends]))
    return np.asarray(rows > np.repeat(last[ends], counts)) & unknown


def stacked_rows(
    table: pd.DataFrame, names: Sequence[str], column: str, *, fitting: bool = False
) -> IntArray | None:
    """Return row numbers within each series, where the index only numbers all rows of a table.

    None where the index says more: it has a name, series share its numbers or it holds none. To
    fit on, there must be several series that follow one another.
    """
    if column not in names or not is_row_number(table.index):
        return None
    codes, found = category_codes(table.iloc[:, list(names).index(column)])
    first = np.flatnonzero(np.concatenate([[True], np.diff(codes) != 0]))
    mixed = len(first) > len(found)
    if np.isnan(codes).any() or (fitting and (mixed or len(found) < 2)):
        return None  # missing ones are reported when the series are read
    if mixed:
        return np.asarray(pd.Series(codes).groupby(codes).cumcount(), dtype=np.int64)
    numbers = np.asarray(table.index, dtype=np.int64)
    return numbers - np.repeat(numbers[first], np.diff(np.append(first, len(codes))))


def is_row_number(index: pd.Index) -> bool:
    """Whether an index may be the number of each row: integers without a name, each once."""
    whole = pd.api.types.is_integer_dtype(index.dtype)
    return bool(whole and index.name is None and len(index) and index.is_unique)


def series_codes(
    table: pd.DataFrame, names: Sequence[str], column: str
) -> tuple[IntArray, tuple[str, ...]]:
    """Return a number for each row's series, and the names of the series in order."""
    check_columns("Series column", [column], names, "series")
    codes, found = category_codes(table.iloc[:, list(names).index(column)])
    absent = np.flatnonzero(np.isnan(codes))
    if len(absent):
        raise DataError(
            f"Series column '{column}' has {len(absent):,} missing values, the first at row "
            f"{absent[0]}. Every row needs the name of its series: fill them in or leave them out."
        )
    return codes.astype(np.int64), found


def read_panel(table: pd.DataFrame, names: Sequence[str], column: str) -> tuple[Panel, IntArray]:
    """Return the series of the rows, and the order that puts rows of one series together.

    The series come in order of their names, so that the order in a file changes nothing.
    """
    codes, found = series_codes(table, names, column)
    order = np.argsort(codes, kind="stable")
    return Panel(codes[order], found), order
