"""Rows of the future put after a table's own: what is known ahead, from a file of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm._words import name_list
from mvlstm.errors import DataError, warn
from mvlstm.table.columns import column_names
from mvlstm.table.frame import Table, check_present, needed_columns, time_columns, with_fitted_names
from mvlstm.table.kinds import as_pandas
from mvlstm.table.layout import Layout
from mvlstm.table.panel import is_row_number, series_codes, stacked_rows
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.table.spacing import describe_time, ticks
from mvlstm.table.times import read_times
from mvlstm.types import BoolArray

FROM_THE_START = (
    "future=... has more rows than the table, and neither has times: its rows are taken as "
    "numbered from the table's first row. Give only the rows that follow, or give both times."
)


def join_future(table: Table, future: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Put rows of the future after a table, their target left empty.

    Rows at times that the table has reached already are left out, so that a calendar of the whole
    year or last week's weather forecast will do; but rows at the table's end that lack their
    target and what is known ahead get the latter from there. Rows that are numbered from 0, as
    those of any file without a time column are, continue the table's. The times may be the
    index of one and a column of the other.
    """
    table = as_pandas(table)
    if isinstance(table, SeriesFrame):
        raise DataError(
            "future=... needs the table as a DataFrame. Pass that, or build the frame of a table "
            "whose last rows are the future ones, their target left empty."
        )
    table, future = (with_fitted_names(one, layout) for one in (table, as_pandas(future)))
    needed = needed_columns(table, layout, layout.columns)
    check_present(column_names(table), needed, "forecast")
    table, future = (_by_time(one, layout) for one in (table, future))
    names = column_names(future)
    absent = [n for n in needed_columns(future, layout, layout.known) if n not in names]
    if absent:
        raise DataError(
            f"future=... has the columns {name_list(names)}; missing: {name_list(absent)}. Supply "
            f"times{'' if layout.series is None else ', series'} and what is known ahead."
        )
    future = future.drop(columns=[layout.target], errors="ignore")
    if not len(table) or not len(future):
        joined: pd.DataFrame = pd.concat([table, future])
        return joined
    lacking = _lacking(table, layout)
    table, future = _numbered(table, future, layout, lacking)
    future = _same_kind(table, future, layout)
    own, given = (_marks(one, layout) for one in (table, future))
    source = {mark: row for row, mark in enumerate(given)}
    rows = np.flatnonzero(lacking).tolist()
    pairs = [(row, source[own[row]]) for row in rows if own[row] in source]
    later = future.iloc[_later(dict(own), given, _times(future, layout))]
    return pd.concat([_filled(table, future, layout.known, pairs), later])


def _by_time(table: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Make the times the index, where one column holds them."""
    names = column_names(table)
    time = time_columns(table, names, layout)
    if len(time) != 1 or time[0] not in names:
        return table
    others = [j for j, name in enumerate(names) if name != time[0]]
    return table.iloc[:, others].set_axis(_times(table, layout, time).rename(time[0]))


def _times(table: pd.DataFrame, layout: Layout, time: Sequence[str] | None = None) -> pd.Index:
    """Return the times of rows, read as in fit."""
    names, time = column_names(table), layout.time if time is None else time
    dates = layout.time_kind == "datetime"
    return read_times(table, names, time, day_first=layout.day_first, written=dates).times


def _series(table: pd.DataFrame, layout: Layout) -> list[str]:
    """Return the name of each row's series; empty where there is one series only."""
    if layout.series is None:
        return [""] * len(table)
    codes, names = series_codes(table, column_names(table), layout.series)
    return [names[code] for code in codes]


def _lacking(table: pd.DataFrame, layout: Layout) -> BoolArray:
    """Say which rows after the last target of their series lack something known ahead."""
    names, series = column_names(table), _series(table, layout)
    gone = table.isna().set_axis(names, axis=1)
    last = {series[row]: row for row in np.flatnonzero(~gone[layout.target])}
    after = np.array([row > last.get(name, -1) for row, name in enumerate(series)])
    return np.asarray(after & gone[list(layout.known)].any(axis=1).to_numpy())


def _numbered(
    table: pd.DataFrame, future: pd.DataFrame, layout: Layout, lacking: BoolArray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Where rows have numbers in place of times, let those of the future continue the table's.

    If the future has more rows of every series than the table has, it starts with the table.
    """
    if layout.numbered and layout.series is not None:
        numbers = stacked_rows(table, column_names(table), layout.series)
        table = table if numbers is None else table.set_axis(pd.Index(numbers))
        counted = is_row_number(future.index) and pd.api.types.is_integer_dtype(table.index.dtype)
    else:
        ranges = all(isinstance(one.index, pd.RangeIndex) for one in (table, future))
        alone = not layout.time and layout.series is None and not lacking.all()
        counted = ranges and alone and future.index[0] == 0
    if not counted:
        return table, future
    rows = np.flatnonzero(~lacking).tolist()
    names, own = _series(table, layout), _series(future, layout)
    ends = {names[row]: int(table.index[row]) + 1 for row in rows}
    counts = pd.Series(own).value_counts()
    if ends and all(counts.get(name, 0) > end for name, end in ends.items()):
        warn(FROM_THE_START)
        ends = {}
    start = np.array([ends.get(name, 0) for name in own], dtype=np.int64)
    return table, future.set_axis(pd.Index(start + pd.Series(own).groupby(own).cumcount()))


def _same_kind(table: pd.DataFrame, future: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Bring the future's times to the table's zone; refuse dates after integers, and the like."""
    before, after = _times(table, layout), _times(future, layout)
    kinds = [
        "integers"
        if not isinstance(times, pd.DatetimeIndex)
        else "dates" + (" with a zone" if times.tz else "")
        for times in (before, after)
    ]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"future=... has {kinds[1]} as times, and the table has {kinds[0]}. Give both the same "
            "kind of index or time column (in pandas: set_index, tz_localize or tz_convert)."
        )
    if len(layout.time) > 1:
        return future
    if isinstance(after, pd.DatetimeIndex) and isinstance(before, pd.DatetimeIndex) and before.tz:
        after = after.tz_convert(before.tz)
    return future.set_axis(after.rename(table.index.name))


def _marks(table: pd.DataFrame, layout: Layout) -> list[tuple[str, int]]:
    """Return series and time of every row."""
    return list(zip(_series(table, layout), ticks(_times(table, layout)).tolist(), strict=True))


def _later(reached: dict[str, int], given: list[tuple[str, int]], times: pd.Index) -> list[int]:
    """Return the rows of the future that come after the last row of their series, in order."""
    before: dict[str, int] = {}
    later = []
    for row, (name, tick) in enumerate(given):
        if name in reached and tick <= reached[name]:
            continue
        last = before.get(name)
        if last is not None and given[last][1] >= tick:
            raise DataError(
                f"The rows of future=... are not in order: {describe_time(times[row])} (row {row}) "
                f"comes after {describe_time(times[last])} (row {last}). Sort them by time, and "
                "keep one row for each."
            )
        before[name] = row
        later.append(row)
    return later


def _filled(
    table: pd.DataFrame, future: pd.DataFrame, known: Sequence[str], pairs: list[tuple[int, int]]
) -> pd.DataFrame:
    """Put what is known ahead into the rows that lack it, from rows of the same time."""
    if not pairs:
        return table
    table, names, given = table.copy(), column_names(table), column_names(future)
    for name in known:
        column = table.iloc[:, names.index(name)].astype(object)
        new = future.iloc[:, given.index(name)]
        for row, other in pairs:
            if pd.isna(column.iloc[row]):
                column.iloc[row] = new.iloc[other]
        table.isetitem(names.index(name), column.infer_objects().array)
    return table
