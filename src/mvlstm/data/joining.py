"""Rows of the future put after a table's own: what is known ahead, from a file of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._categories import category_codes
from mvlstm.data._columns import column_names, name_list
from mvlstm.data._steps import ticks
from mvlstm.data._times import read_times
from mvlstm.data.frame import check_present, needed_columns
from mvlstm.data.layout import Layout
from mvlstm.errors import DataError

IntArray = NDArray[np.int64]


def join_future(table: pd.DataFrame, future: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Put rows of the future after a table, their target left empty.

    Rows at times that the table has reached already are left out, so that a calendar of the whole
    year or last week's weather forecast will do. Rows that are numbered from 0, as those of any
    file without a time column are, go on from the table's.

    Parameters
    ----------
    table, future : DataFrame
    layout : Layout
        How the model reads tables.

    Raises
    ------
    DataError
        If a column is missing.
    """
    check_present(table, column_names(table), layout, "forecast")
    _check_columns(future, layout)
    if _kind(table.index) == _kind(future.index) == (True, True):
        future = future.tz_convert(table.index.tz)  # type: ignore[attr-defined]
    blank = _numbered_on(table, future.drop(columns=[layout.target], errors="ignore"), layout)
    if len(table) and len(blank):
        blank = blank[_later(table, blank, layout)]
    return pd.concat([table, blank])


def _check_columns(future: pd.DataFrame, layout: Layout) -> None:
    names = column_names(future)
    absent = [n for n in needed_columns(future, layout, layout.known) if n not in names]
    if absent:
        raise DataError(
            f"future=... (--future) has the columns {name_list(names)}; missing: "
            f"{name_list(absent)}. Supply times"
            f"{'' if layout.series is None else ', series'} and what is known ahead."
        )


def _numbered_on(table: pd.DataFrame, future: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Let rows numbered from 0 go on from the table's, where a row's number is its time."""
    counted = all(isinstance(one.index, pd.RangeIndex) for one in (table, future))
    if layout.time or layout.series is not None or not counted or not len(table):
        return future
    own, last = future.index, int(table.index[-1])
    if len(future) and (own[0] != 0 or own[-1] > last):
        return future
    return future.set_axis(pd.RangeIndex(last + 1, last + 1 + len(future)))


def _later(table: pd.DataFrame, future: pd.DataFrame, layout: Layout) -> NDArray[np.bool_]:
    """Say which rows of the future come after the last row of their series."""
    last, mine = _last_rows(table, future, layout)
    before, after = (
        read_times(one, column_names(one), layout.time, day_first=layout.day_first).times
        for one in (table.iloc[last], future)
    )
    if _kind(before) != _kind(after):  # it is told when they are read together
        return np.ones(len(future), dtype=bool)
    reached = np.append(ticks(before), np.iinfo(np.int64).min)  # the last for a series without past
    return np.asarray(ticks(after) > reached[mine])


def _kind(times: pd.Index) -> tuple[bool, bool]:
    """Say whether times are dates, and whether these have a zone."""
    return isinstance(times, pd.DatetimeIndex), getattr(times, "tz", None) is not None


def _last_rows(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout
) -> tuple[IntArray, IntArray]:
    """Return the last row of each series, and for each future row its place there; -1 for none."""
    if layout.series is None:
        return np.array([len(table) - 1]), np.zeros(len(future), dtype=np.int64)
    codes, names = _series(table, layout.series)
    last = np.zeros(len(names), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    own, found = _series(future, layout.series)
    place = {name: k for k, name in enumerate(names)}
    return last, np.array([place.get(name, -1) for name in found], dtype=np.int64)[own]


def _series(table: pd.DataFrame, column: str) -> tuple[IntArray, Sequence[str]]:
    codes, names = category_codes(table.iloc[:, column_names(table).index(column)])
    if np.isnan(codes).any():
        row = int(np.isnan(codes).argmax())
        raise DataError(f"Series column '{column}' has no value at row {row}. Fill it in.")
    return codes.astype(np.int64), names
