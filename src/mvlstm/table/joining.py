"""Rows of the future put after a table's own: what is known ahead, from a file of its own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm.errors import DataError, MVLSTMWarning
from mvlstm.table.categories import category_codes
from mvlstm.table.columns import column_names, name_list
from mvlstm.table.frame import (
    SeriesFrame,
    Table,
    check_present,
    needed_columns,
    time_columns,
    with_fitted_names,
)
from mvlstm.table.layout import Layout
from mvlstm.table.panel import is_row_number, stacked_rows
from mvlstm.table.spacing import describe_time, ticks
from mvlstm.table.times import read_times
from mvlstm.types import BoolArray, IntArray

FROM_THE_START = (
    "future=... has more rows than the table, and neither has times: its rows are taken "
    "as numbered from the table's first row. Give only the rows that follow, or give both times."
)


def join_future(table: Table, future: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Put rows of the future after a table, their target left empty.

    Rows at times that the table has reached already are left out, so that a calendar of the whole
    year or last week's weather forecast will do; but rows at the table's end that lack their
    target and what is known ahead get the latter from there. Rows that are numbered from 0, as
    those of any file without a time column are, go on from the table's. The times may be the
    index of one and a column of the other.

    Parameters
    ----------
    table, future : DataFrame
    layout : Layout
        How the model reads tables.

    Raises
    ------
    DataError
        If a column is missing, or the two do not have the same kind of times.
    """
    if isinstance(table, SeriesFrame):
        raise DataError(
            "future=... needs the table as a DataFrame. Pass that, or build the frame of a table "
            "whose last rows are the future ones, their target left empty."
        )
    table, future = (with_fitted_names(one, layout) for one in (table, future))
    check_present(table, column_names(table), layout, "forecast")
    table, future = _timed_alike(table, future, layout)
    _check_columns(future, layout)
    if _kind(table.index) == _kind(future.index) == (True, True):
        future = future.tz_convert(table.index.tz)  # type: ignore[attr-defined]
    future = future.drop(columns=[layout.target], errors="ignore")
    if not len(table) or not len(future):
        return pd.concat([table, future])
    lacking = _lacking(table, layout)
    if layout.numbered:
        table, future = _numbered_within(table, future, layout, lacking)
    else:
        future = _numbered_on(table, future, layout, lacking)
    later = _later(table, future, layout)
    return pd.concat([_filled_in(table, future, layout, lacking), future[later]])


def _timed_alike(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make the times the index of both, where they are that of one and a column of the other."""
    if len(layout.time) > 1:
        return table, future
    if layout.time:
        name, inside = layout.time[0], [layout.time[0] in column_names(o) for o in (table, future)]
        if inside == [True, False] and future.index.name == name:
            return _indexed(table, name, layout), future
        if inside == [False, True] and table.index.name == name:
            return table, _indexed(future, name, layout)
        return table, future
    columns, own = (time_columns(one, column_names(one), layout) for one in (table, future))
    if columns:
        table = _indexed(table, columns[0], layout)
    name = str(table.index.name)
    plain = isinstance(future.index, pd.RangeIndex) and future.index.name is None
    if not own and plain and table.index.name is not None and name in column_names(future):
        own = (name,)
    return table, _indexed(future, own[0], layout) if own else future


def _indexed(table: pd.DataFrame, column: str, layout: Layout) -> pd.DataFrame:
    """Make a column of times the index."""
    names = column_names(table)
    times = _read(table, (column,), layout).rename(column)
    return table.iloc[:, [j for j, name in enumerate(names) if name != column]].set_axis(times)


def _read(table: pd.DataFrame, time: Sequence[str], layout: Layout) -> pd.Index:
    """Return the times of rows, read as in fit."""
    dates = layout.time_kind == "datetime"
    names = column_names(table)
    return read_times(table, names, time, day_first=layout.day_first, written=dates).times


def _check_columns(future: pd.DataFrame, layout: Layout) -> None:
    names = column_names(future)
    absent = [n for n in needed_columns(future, layout, layout.known) if n not in names]
    if absent:
        raise DataError(
            f"future=... has the columns {name_list(names)}; missing: "
            f"{name_list(absent)}. Supply times"
            f"{'' if layout.series is None else ', series'} and what is known ahead."
        )


def _lacking(table: pd.DataFrame, layout: Layout) -> BoolArray:
    """Say which rows after the last target of their series lack something known ahead."""
    names = column_names(table)
    gone = {
        name: table.iloc[:, names.index(name)].isna().to_numpy()
        for name in (layout.target, *layout.known)
    }
    rows, codes = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
    if layout.series is not None:
        codes, _ = _series(table, layout.series)
    last = np.full(int(codes.max()) + 1, -1)
    known = ~gone.pop(layout.target)
    np.maximum.at(last, codes[known], rows[known])
    return np.asarray((rows > last[codes]) & np.any(list(gone.values()), axis=0))


def _numbered_on(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout, lacking: BoolArray
) -> pd.DataFrame:
    """Let rows numbered from 0 go on from the table's, where a row's number is its time."""
    counted = all(isinstance(one.index, pd.RangeIndex) for one in (table, future))
    if layout.time or layout.series is not None or not counted or lacking.all():
        return future
    own, last = future.index, int(table.index[~lacking][-1])
    if own[0] != 0 or own[-1] > last:
        if own[0] == 0:
            warnings.warn(FROM_THE_START, MVLSTMWarning, stacklevel=5)
        return future
    return future.set_axis(pd.RangeIndex(last + 1, last + 1 + len(future)))


def _numbered_within(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout, lacking: BoolArray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let rows of both be numbered within each series, those of the future after the table's.

    If the future has more rows of every series than the table has, it starts with the table.
    """
    assert layout.series is not None
    numbers = stacked_rows(table, column_names(table), layout.series)
    if numbers is not None:
        table = table.set_axis(pd.Index(numbers))
    if not is_row_number(future.index) or not pd.api.types.is_integer_dtype(table.index.dtype):
        return table, future
    codes, names = _series(table, layout.series)
    ends = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(ends, codes[~lacking], np.asarray(table.index, dtype=np.int64)[~lacking] + 1)
    reached = dict(zip(names, ends, strict=True))
    own, found = _series(future, layout.series)
    count = np.asarray(pd.Series(own).groupby(own).cumcount(), dtype=np.int64)
    past = np.array([reached.get(name, 0) for name in found], dtype=np.int64)
    more = np.bincount(own, minlength=len(found)) > past
    if more[past > 0].all() and (past > 0).any():
        warnings.warn(FROM_THE_START, MVLSTMWarning, stacklevel=5)
        past[:] = 0
    return table, future.set_axis(pd.Index(count + past[own]))


def _later(table: pd.DataFrame, future: pd.DataFrame, layout: Layout) -> BoolArray:
    """Say which rows of the future come after the last row of their series."""
    last, mine = _last_rows(table, future, layout)
    before, after = (_read(one, layout.time, layout) for one in (table.iloc[last], future))
    _check_kinds(before, after)
    reached = np.append(ticks(before), np.iinfo(np.int64).min)  # the last for a series without past
    later = np.asarray(ticks(after) > reached[mine])
    own = np.zeros_like(mine) if layout.series is None else _series(future, layout.series)[0]
    _check_order(after, own, later)
    return later


def _check_order(times: pd.Index, codes: IntArray, later: BoolArray) -> None:
    """Refuse rows to be put after the table's whose times do not rise within their series."""
    rows = np.flatnonzero(later)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    wrong = np.flatnonzero((np.diff(ticks(times[rows])) <= 0) & (np.diff(codes[rows]) == 0))
    if len(wrong):
        one, two = rows[wrong[0]], rows[wrong[0] + 1]
        raise DataError(
            f"The rows of future=... are not in order: {describe_time(times[two])} (row "
            f"{two}) comes after {describe_time(times[one])} (row {one}). Sort them by time, and "
            "keep one row for each."
        )


def _check_kinds(before: pd.Index, after: pd.Index) -> None:
    """Refuse dates after integers, and times with a zone after some without, or the reverse."""
    if _kind(before) == _kind(after):
        return
    words = {(False, False): "integers", (True, False): "dates", (True, True): "dates with a zone"}
    raise DataError(
        f"future=... has {words[_kind(after)]} as times, and the table has "
        f"{words[_kind(before)]}. Give both the same kind of index or time column (in pandas: "
        "set_index, tz_localize or tz_convert)."
    )


def _filled_in(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout, lacking: BoolArray
) -> pd.DataFrame:
    """Put what is known ahead into the rows that lack it, from rows of the same time."""
    rows = np.flatnonzero(lacking)
    if not len(rows):
        return table
    source = dict(zip(_marks(future, layout), range(len(future)), strict=True))
    found = np.array([source.get(mark, -1) for mark in _marks(table.iloc[rows], layout)])
    rows, found = rows[found >= 0], found[found >= 0]
    table, names, given = table.copy(), column_names(table), column_names(future)
    for name in layout.known:
        place = names.index(name)
        column = table.iloc[:, place].astype(object)
        empty = column.iloc[rows].isna().to_numpy()
        new = future.iloc[:, given.index(name)].astype(object)
        column.iloc[rows[empty]] = new.iloc[found[empty]].to_numpy()
        table.isetitem(place, column.infer_objects().array)
    return table


def _marks(table: pd.DataFrame, layout: Layout) -> list[tuple[str, int]]:
    """Return series and time of every row."""
    times = [int(tick) for tick in ticks(_read(table, layout.time, layout))]
    if layout.series is None:
        return [("", time) for time in times]
    codes, names = _series(table, layout.series)
    return [(names[code], time) for code, time in zip(codes, times, strict=True)]


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
