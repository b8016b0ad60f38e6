"""Which columns probably hold the times: dates, and times of day or hours next to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from mvlstm._words import name_list
from mvlstm.errors import DataError
from mvlstm.table.columns import reads_as_time
from mvlstm.table.layout import Layout
from mvlstm.table.times import CLOCK_ALONE, CLOCK_PARTS, are_hours, dates_of_numbers, has_day

LOOKED_AT = 200  # rows: two would do for a clean column, and a stray entry comes later
MOSTLY = 0.5  # share of rows at the time of the row before from which columns tell no times
NAMED = ("time", "date", "datetime", "date_time", "timestamp", "ts", "ds", "unix")  # of numbers
HOUR = ("hour", "hr", "hrs", "hours", "hh")  # names of a column of hours next to one of days
_MONTH = re.compile(r"(1[6-9]|2[0-2])\d\d[-/](0?[1-9]|1[0-2])")  # 2018-01
_CLOCK_IN = re.compile(r"\d[ T]\d{1,2}[:.]\d{2}")


def likely_times(table: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that probably make up the time, none if nothing looks like it.

    Examples
    --------
    >>> table = pd.DataFrame({"Date": ["10/03/2004"] * 2, "Time": ["18.00", "19.00"], "y": 1.0})
    >>> likely_times(table, ["Date", "Time", "y"])
    ('Date', 'Time')
    """
    first = {name: _dated(name, table.iloc[:LOOKED_AT, j].dropna()) for j, name in enumerate(names)}
    clocks = [name for name, column in first.items() if _all_match(column, CLOCK_ALONE)]
    for name, column in first.items():
        if name in clocks or not _holds_days(column):
            continue
        if _holds_clock(column):
            return (name,)
        hours = [other for other in names if other.strip().lower() in HOUR]
        partners = clocks + [other for other in hours if are_hours(first[other])]
        days_repeat = bool(table.iloc[:, list(names).index(name)].duplicated().any())
        return (name, *partners[:1]) if days_repeat else (name,)
    numbers = pd.api.types.is_numeric_dtype
    parts = {name.strip().lower(): name for name, one in first.items() if numbers(one.dtype)}
    if {"year", "month"} <= set(parts):
        found = tuple(parts[part] for part in CLOCK_PARTS if part in parts)
        own = table.iloc[:, [list(names).index(name) for name in found]]
        stand = own.eq(own.shift()).all(axis=1)  # as in days of which only the month is told
        return found if stand.mean() < MOSTLY else ()
    return ()


def _dated(name: str, column: pd.Series[Any]) -> pd.Series[Any]:
    """Return numbers that write dates, in a column of times by its name, as these dates."""
    if name.strip().lower() not in NAMED or not pd.api.types.is_numeric_dtype(column.dtype):
        return column
    found = dates_of_numbers(column)
    return column if found is None else pd.Series(found.times)


def check_time(table: pd.DataFrame, names: Sequence[str], layout: Layout) -> None:
    """Refuse rows that are numbered though columns hold their times, and part of a time."""
    if layout.time and layout.time[0] not in names:
        return
    likely = likely_times(table, names)
    if not likely or layout.time == likely:
        return
    if not layout.time:
        _check_index(table, layout, likely)
        return
    left_out = [name for name in likely if name not in layout.time and name in layout.columns]
    if likely[0].strip().lower() == CLOCK_PARTS[0]:
        if left_out and set(likely[:2]) <= set(layout.time) < set(likely):
            raise DataError(
                f"The time columns {name_list(layout.time)} leave out {name_list(left_out)}. Use "
                f"time={[*likely]}, or exclude={left_out} if the times are whole without.",
                remedy={"time": [*likely]},
            )
        return
    if len(layout.time) > 1:
        return
    if layout.time[0] in likely:
        (other,) = (name for name in likely if name != layout.time[0])
        kinds = (
            ("days", "times of day") if layout.time[0] == likely[0] else ("times of day", "days")
        )
        raise DataError(
            f"Time column '{layout.time[0]}' holds {kinds[0]} alone, and '{other}' the {kinds[1]}. "
            f"Use time={[*likely]}.",
            remedy={"time": [*likely]},
        )


def _check_index(table: pd.DataFrame, layout: Layout, likely: Sequence[str]) -> None:
    """Refuse columns of times as variables where the index merely numbers the rows."""
    if not pd.api.types.is_integer_dtype(table.index.dtype) or likely[0] not in layout.columns:
        return
    if likely[0] == layout.target:
        return
    several = len(likely) > 1
    what = f"Columns {name_list(likely)} seem" if several else f"Column '{likely[0]}' seems"
    given = [*likely] if several else likely[0]
    raise DataError(
        f"{what} to hold the times. Use time={given!r}, or "
        f"exclude={[*likely]} if the rows are to be numbered instead.",
        remedy={"time": given},
    )


def _holds_days(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return len(column) > 0
    texts = _texts(column)
    if not texts:
        return False
    return bool(_MONTH.fullmatch(texts[0])) or (has_day(column) and reads_as_time(texts[0]))


def _holds_clock(column: pd.Series[Any]) -> bool:
    """Whether dates come with times of day."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return bool((column != column.dt.normalize()).any())
    return any(_CLOCK_IN.search(text) for text in _texts(column))


def _all_match(column: pd.Series[Any], pattern: re.Pattern[str]) -> bool:
    texts = _texts(column)
    return bool(texts) and all(pattern.fullmatch(text) for text in texts)


def _texts(column: pd.Series[Any]) -> list[str]:
    """Return the entries as text; none where they are numbers."""
    plain = pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column)
    if not plain or not all(isinstance(one, str) or hasattr(one, "isoformat") for one in column):
        return []
    return [str(one).strip() for one in column]
