"""Reading the times of a table, their regular step and the gaps between them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._columns import missing_column_message
from mvlstm.errors import DataError

Step: TypeAlias = "pd.Timedelta | pd.DateOffset | pd.offsets.MonthEnd | int"
"""The distance between two rows: a duration, a calendar offset (months, local days) or a count."""

CLOCK_PARTS = ("year", "month", "day", "hour", "minute", "second")


def describe_time(time: Any) -> str:
    """Write one time the short way: ``2013-05-02 03:00`` or ``17``."""
    if not isinstance(time, pd.Timestamp):
        return str(time)
    if time.second or time.microsecond or time.nanosecond:
        return str(time)
    zone = time.strftime("%z")
    return time.strftime("%Y-%m-%d %H:%M") + (f" {zone}" if zone else "")


def position(times: pd.Index, row: int) -> str:
    """Say where a row is: its time and its number (from 0), or the number alone."""
    if isinstance(times, pd.DatetimeIndex):
        return f"{describe_time(times[row])} (row {row})"
    if times[row] == row:
        return f"row {row}"
    return f"time {times[row]} (row {row})"


# Reading ------------------------------------------------------------------------------------


def read_times(
    table: pd.DataFrame, names: Sequence[str], time: Sequence[str]
) -> tuple[pd.Index, list[str]]:
    """Return the time of every row and plain notes on how it was read.

    Parameters
    ----------
    table : DataFrame
    names : sequence of str
        The table's column names as text.
    time : sequence of str
        Nothing (the index), one column, or several that make up the time together.
    """
    if not time:
        return _index_times(table.index), []
    if len(time) == 1 and time[0] not in names and time[0] == table.index.name:
        return _index_times(table.index), []
    absent = [name for name in time if name not in names]
    if absent:
        raise DataError(missing_column_message("Time column", absent[0], names, "--time"))
    columns = [table.iloc[:, names.index(name)] for name in time]
    if len(time) == 1:
        return _column_times(columns[0], time[0])
    return _assembled_times(columns, time)


def _index_times(index: pd.Index) -> pd.Index:
    """Take the index as times, if it holds times or integers."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return _checked(index, "The index")
    if isinstance(index, pd.MultiIndex):
        raise DataError(
            "The table has an index of several levels; one time per row is needed. Use "
            "table.reset_index() and name the time column with time=... (--time COLUMN)."
        )
    if pd.api.types.is_integer_dtype(index.dtype):
        return index if isinstance(index, pd.RangeIndex) else _integers(index, index.name)
    example = f", for instance {index[0]!r}" if len(index) else ""
    raise DataError(
        f"The index holds neither times nor integers ({index.dtype}{example}). Convert it with "
        "table.index = pd.to_datetime(table.index), or name the time column with time=... "
        "(--time COLUMN)."
    )


def _integers(values: Any, name: Any) -> pd.Index:
    return pd.Index(np.asarray(values, dtype=np.int64), name=name)


def _checked(times: pd.DatetimeIndex, what: str) -> pd.DatetimeIndex:
    """Refuse missing times and years that do not fit into 64 bits of nanoseconds."""
    missing = np.flatnonzero(times.isna())
    if len(missing):
        raise DataError(
            f"{what} has {len(missing):,} missing times, the first at row {missing[0]}. "
            "Every row needs a time: fill them in or leave these rows out."
        )
    if len(times) and (times.year.min() < 1678 or times.year.max() > 2261):
        raise DataError(
            f"{what} runs from {times.min()} to {times.max()}; only the years 1678 to 2261 "
            "can be handled. Correct the times, or use a column of integers as time."
        )
    return times


def _column_times(column: pd.Series[Any], name: str) -> tuple[pd.Index, list[str]]:
    """Read one column as times: datetimes, integers, or text that holds dates."""
    what = f"Time column '{name}'"
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        plain = column.dt.to_timestamp() if isinstance(dtype, pd.PeriodDtype) else column
        return _checked(pd.DatetimeIndex(plain, name=name), what), []
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        numbers = _number_times(column, name)
        days = _written_days(numbers)
        if days is not None:
            return days, [f"{what} was read as dates written like {numbers[0]}."]
        return numbers, []
    times, notes = _parse_dates(column, what)
    return _checked(times.rename(name), what), notes


def _number_times(column: pd.Series[Any], name: str) -> pd.Index:
    """Read a numeric column as integer times."""
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers == np.floor(numbers))))
    if len(bad):
        raise DataError(
            f"Time column '{name}' holds numbers that are not whole, the first "
            f"{column.iloc[bad[0]]!r} at row {bad[0]}. Times are dates or integers: convert the "
            "column, or name another one with time=... (--time COLUMN)."
        )
    if pd.api.types.is_integer_dtype(column.dtype):
        return _integers(column.to_numpy(dtype=np.int64), name)
    return _integers(numbers, name)


def _written_days(numbers: pd.Index) -> pd.DatetimeIndex | None:
    """Read integers such as 20130502 as days, if every one of them is such a day."""
    if not len(numbers) or numbers.min() < 17000101 or numbers.max() > 22611231:
        return None
    days = _try_dates(pd.Series(numbers.astype(str)), {"format": "%Y%m%d"})
    if days is None or days.isna().any():
        return None
    return days.rename(numbers.name)


def _assembled_times(
    columns: Sequence[pd.Series[Any]], names: Sequence[str]
) -> tuple[pd.Index, list[str]]:
    """Make times of several columns: year, month, day, hour, ... or text such as date and time."""
    what = "Time from columns " + ", ".join(f"'{name}'" for name in names)
    parts = [name.strip().lower() for name in names]
    if set(parts) <= set(CLOCK_PARTS):
        times = _from_clock_parts(dict(zip(parts, columns, strict=True)), what, names)
        return _checked(times.rename("time"), what), []
    if all(pd.api.types.is_numeric_dtype(column.dtype) for column in columns):
        raise DataError(
            f"{what}: columns of numbers are put together only under the names "
            f"{', '.join(CLOCK_PARTS)}. Rename them, or make one time column before."
        )
    joined = columns[0].astype(str).str.strip()
    for column in columns[1:]:
        joined = joined + " " + column.astype(str).str.strip()
    times, notes = _parse_dates(joined, what)
    return _checked(times.rename("time"), what), notes


def _from_clock_parts(
    parts: Mapping[str, pd.Series[Any]], what: str, names: Sequence[str]
) -> pd.DatetimeIndex:
    """Put year, month, day and so on together; absent lower parts start at their first value."""
    if len(parts) < len(names) or "year" not in parts or "month" not in parts:
        raise DataError(
            f"{what} cannot be put together: 'year' and 'month' are needed, each once, "
            "e.g. time=['year', 'month', 'day', 'hour'] (--time year,month,day,hour)."
        )
    fields = pd.DataFrame({name: pd.to_numeric(c, errors="coerce") for name, c in parts.items()})
    if "day" not in fields:
        fields["day"] = 1
    times = pd.DatetimeIndex(pd.to_datetime(fields, errors="coerce"))
    bad = np.flatnonzero(times.isna())
    if len(bad):
        row = int(bad[0])
        given = ", ".join(f"{name}={column.iloc[row]}" for name, column in parts.items())
        raise DataError(
            f"{what} cannot be read in {len(bad):,} rows, the first at row {row}: {given}. "
            "Correct these rows or leave them out."
        )
    return times


def _parse_dates(column: pd.Series[Any], what: str) -> tuple[pd.DatetimeIndex, list[str]]:
    """Read text as dates: ISO 8601, else day or month first, whichever comes out more regular."""
    attempts: list[dict[str, Any]] = [
        {"format": "ISO8601"},
        {},
        {"dayfirst": True},
        {"format": "ISO8601", "utc": True},
    ]
    complete: list[tuple[pd.DatetimeIndex, dict[str, Any]]] = []
    best: pd.DatetimeIndex | None = None
    present = column.notna().to_numpy()
    for options in attempts:
        times = _try_dates(column, options)
        if times is None:
            continue
        if times.notna()[present].all():
            complete.append((times, options))
            if "format" in options:  # ISO 8601 leaves no doubt
                break
        elif best is None or np.sum(times.notna()) > np.sum(best.notna()):
            best = times
    if not complete:
        bad = present if best is None else present & best.isna()
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{what} cannot be read as dates in {int(bad.sum()):,} rows, the first "
            f"{column.iloc[row]!r} at row {row}. Write dates like 2013-05-02 03:00, or name "
            "another column with time=... (--time COLUMN)."
        )
    times, options = min(complete, key=lambda pair: _irregularity(pair[0]))
    notes = []
    if options.get("dayfirst"):
        notes.append(f"{what} was read as day/month/year.")
    if options.get("utc"):
        notes.append(f"{what} has changing offsets from UTC; its times are kept in UTC.")
    return times, notes


def _irregularity(times: pd.DatetimeIndex) -> tuple[bool, int]:
    """Rank readings of one column: out of order is worst, then the number of uneven steps."""
    difference = np.diff(ticks(times.dropna()))
    uneven = int((difference != np.median(difference)).sum()) if len(difference) else 0
    return bool((difference <= 0).any()), uneven


def _try_dates(column: pd.Series[Any], options: dict[str, Any]) -> pd.DatetimeIndex | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            times = pd.to_datetime(column, errors="coerce", **options)
        except (ValueError, TypeError, OverflowError, AttributeError):
            return None
    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        return None
    return pd.DatetimeIndex(times)


# Order and spacing --------------------------------------------------------------------------


def ticks(times: pd.Index) -> NDArray[np.int64]:
    """Turn times into integers: nanoseconds UTC for dates, the number itself otherwise."""
    if isinstance(times, pd.DatetimeIndex):
        return np.asarray(times.as_unit("ns").asi8, dtype=np.int64)
    return np.asarray(times, dtype=np.int64)


def check_order(times: pd.Index) -> None:
    """Raise `DataError` unless times rise strictly."""
    difference = np.diff(ticks(times))
    wrong = np.flatnonzero(difference <= 0)
    if not len(wrong):
        return
    row = int(wrong[0])
    backward = np.flatnonzero(difference < 0)
    if len(backward):
        at = int(backward[0])
        raise DataError(
            f"The times are not in order: {position(times, at + 1)} comes after "
            f"{position(times, at)}, and so in {len(backward):,} places. Sort the table by time "
            "first (in pandas: table.sort_values(COLUMN) or table.sort_index()); rows of several "
            "series must be split into one table each."
        )
    hint = ""
    if isinstance(times, pd.DatetimeIndex) and times.tz is None and times[row].hour < 4:
        hint = " If it is the hour repeated when clocks go back, give the times in UTC."
    raise DataError(
        f"The times are not unique: {describe_time(times[row])} stands in rows {row} and "
        f"{row + 1}, and there are {len(wrong):,} such repeats. Keep one row for each time "
        "(in pandas: table.drop_duplicates(COLUMN), or a mean by groupby(COLUMN))." + hint
    )


def find_step(times: pd.Index) -> Step | None:
    """Find the distance between neighbouring rows: the median one, or months where they fit."""
    if len(times) < 2:
        return None
    difference = np.diff(ticks(times))
    middle = int(np.partition(difference, (len(difference) - 1) // 2)[(len(difference) - 1) // 2])
    if not isinstance(times, pd.DatetimeIndex):
        return middle
    duration = pd.Timedelta(middle, unit="ns")
    return _calendar_step(times, duration, regular=bool((difference == middle).all())) or duration


def _calendar_step(
    times: pd.DatetimeIndex, duration: pd.Timedelta, *, regular: bool
) -> pd.DateOffset | pd.offsets.MonthEnd | None:
    """Months, month ends or local days, when these describe the times and a duration cannot."""
    wall = times.tz_localize(None)
    clock = wall - wall.normalize()
    if duration >= pd.Timedelta(days=28) and (clock == clock[0]).all():
        months = np.diff(_month_numbers(wall))
        count = int(np.median(months))
        if count > 0 and (wall.day == wall.day[0]).all():
            return pd.DateOffset(months=count)
        if count > 0 and wall.is_month_end.all():
            return pd.offsets.MonthEnd(count)
    if not regular and times.tz is not None:
        local = np.diff(ticks(wall))
        days, rest = divmod(int(np.median(local)), 86_400_000_000_000)
        if days > 0 and rest == 0:
            return pd.DateOffset(days=days)
    return None


def _month_numbers(times: pd.DatetimeIndex) -> NDArray[np.int64]:
    return np.asarray(times.year * 12 + times.month, dtype=np.int64)


def spacing(times: pd.Index, step: Step) -> tuple[NDArray[np.int64], int]:
    """Distances between neighbouring rows, and the distance one step means, in the same unit."""
    if isinstance(step, int):
        return np.diff(ticks(times)), step
    assert isinstance(times, pd.DatetimeIndex)
    if isinstance(step, pd.Timedelta):
        return np.diff(ticks(times)), int(step // pd.Timedelta(1, unit="ns"))
    wall = times.tz_localize(None)
    kind, count = _offset_parts(step)
    if kind == "days":
        return np.diff(ticks(wall)), count * 86_400_000_000_000
    return np.diff(_month_numbers(wall)), count


def add_steps(times: pd.Index, step: Step, count: int) -> pd.Index:
    """Move every time by ``count`` steps."""
    if count == 0:
        return times
    shift: Any = count * step
    moved: pd.Index = times + shift
    return moved


def _offset_parts(step: pd.DateOffset | pd.offsets.MonthEnd) -> tuple[str, int]:
    if isinstance(step, pd.offsets.MonthEnd):
        return "month_ends", int(step.n)
    fields: dict[str, int] = dict(step.kwds)
    ((kind, count),) = fields.items()
    return kind, int(count) * int(step.n)


def describe_step(step: Step | None) -> str:
    """Write a step in words: ``1 hour``, ``10 minutes``, ``1 month``, ``2``."""
    if step is None:
        return "unknown"
    if isinstance(step, int):
        return str(step)
    if not isinstance(step, pd.Timedelta):
        kind, count = _offset_parts(step)
        word = {"days": "day", "months": "month", "month_ends": "month"}[kind]
        return _plural(count, word)
    seconds = step / pd.Timedelta(seconds=1)
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return _plural(int(seconds // size), word)
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def describe_distance(distance: int, step: Step) -> str:
    """Write a distance given in the unit of `spacing` in words."""
    if isinstance(step, int):
        return str(distance)
    if isinstance(step, pd.Timedelta) or _offset_parts(step)[0] == "days":
        return describe_step(pd.Timedelta(distance, unit="ns"))
    return _plural(distance, "month")


def step_to_json(step: Step | None) -> dict[str, Any] | None:
    """Turn a step into plain values; `step_from_json` turns them back."""
    if step is None:
        return None
    if isinstance(step, int):
        return {"integer": step}
    if isinstance(step, pd.Timedelta):
        return {"duration": step.isoformat()}
    kind, count = _offset_parts(step)
    return {kind: count}


def step_from_json(value: Any) -> Step | None:
    """Turn the plain values written by `step_to_json` back into a step."""
    if value is None:
        return None
    if isinstance(value, dict) and len(value) == 1:
        ((kind, count),) = value.items()
        if kind == "duration" and isinstance(count, str):
            duration = pd.Timedelta(count)
            if isinstance(duration, pd.Timedelta) and duration > pd.Timedelta(0):
                return duration
        elif isinstance(count, int) and not isinstance(count, bool) and count > 0:
            if kind == "integer":
                return count
            if kind == "months":
                return pd.DateOffset(months=count)
            if kind == "days":
                return pd.DateOffset(days=count)
            if kind == "month_ends":
                return pd.offsets.MonthEnd(count)
    raise ValueError(f"not a step: {value!r}")
