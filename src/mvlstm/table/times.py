"""Reading the times of a table: from its index, one column or several."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.columns import MONTH, check_columns, refuse_levels
from mvlstm.table.spacing import is_zone

CLOCK_ALONE = re.compile(
    r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?|([01]?\d|2[0-4])\.[0-5]\d(\.[0-5]\d)?"
)
_DOTTED = re.compile(r"(?<=\d[ T])(\d{1,2})\.(\d{2})(?:\.(\d{2}))?$")  # 18.00.00, after a date
_MIDNIGHT = re.compile(r"(?<=\d[ T])24(:00(:00(\.0+)?)?)$")  # the end of a day
HALF_DATE = re.compile(rf"{MONTH}[ '/-]*\d{{1,2}}|\d{{1,2}}[ '/-]*{MONTH}", re.IGNORECASE)
CLOCK_PARTS = ("year", "month", "day", "hour", "minute", "second")
WRITTEN = (  # how integers may write times: their range, and the format or the unit since 1970
    (17000101, 22611231, "%Y%m%d"),
    (170001, 226112, "%Y%m"),
    (19000101_00, 20991231_23, "%Y%m%d%H"),
    (19000101_0000, 20991231_2359, "%Y%m%d%H%M"),
    (19000101_000000, 20991231_235959, "%Y%m%d%H%M%S"),
    (10**9, 4 * 10**9, "s"),
    (10**12, 4 * 10**12, "ms"),
    (10**15, 4 * 10**15, "us"),
    (10**18, 4 * 10**18, "ns"),
)
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
SHEET = (20_000.0, 80_000.0)  # days since the end of 1899, as spreadsheets count: 1954 to 2119
SHEET_START = "1899-12-30"
SHEET_SECONDS = 86_400


class Times(NamedTuple):
    """The time of every row, notes on how it was read, and whether days came before months."""

    times: pd.Index
    notes: tuple[str, ...] = ()
    day_first: bool | None = None


def read_times(
    table: pd.DataFrame,
    names: Sequence[str],
    time: Sequence[str],
    *,
    day_first: bool | None = None,
    written: bool = True,
) -> Times:
    """Return the time of every row and plain notes on how it was read.

    ``time`` names nothing (the index), one column, or several that make up the time together.
    ``day_first`` says how dates like 05/01/2013 were read before; by default the more regular
    reading wins. ``written`` says whether integers such as 20130502 or 201305 may be dates.
    """
    absent = [name for name in time if name not in names]
    index = table.index
    if not time or (len(time) == 1 and absent and time[0] == index.name):
        found = Times(_index_times(index))
    else:
        if absent and isinstance(index, pd.MultiIndex) and absent[0] in index.names:
            refuse_levels(index)
        check_columns("Time column", time, names, "time")
        columns = [table.iloc[:, names.index(name)] for name in time]
        if len(time) == 1:
            found = _column_times(columns[0], time[0], day_first, written=written)
        else:
            found = _assembled_times(columns, time, day_first)
    times = found.times
    if not isinstance(times, pd.DatetimeIndex) or times.tz is None or is_zone(str(times.tz)):
        return found
    note = f"The time zone {times.tz} has no name to find it by again; times are kept in UTC."
    return found._replace(times=times.tz_convert("UTC"), notes=(*found.notes, note))


def _index_times(index: pd.Index) -> pd.Index:
    """Take the index as times, if it holds times or integers."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return _checked(index, "The index")
    if isinstance(index, pd.MultiIndex):
        refuse_levels(index)
    if pd.api.types.is_integer_dtype(index.dtype):
        return index if isinstance(index, pd.RangeIndex) else _integers(index, index.name)
    example = f", for instance {index[:1].tolist()[0]!r}" if len(index) else ""
    raise DataError(
        f"The index holds neither times nor integers ({index.dtype}{example}). Make it times (in "
        "pandas: table.index = pd.to_datetime(table.index)), number the rows (table = "
        "table.reset_index(drop=True)), or name the time column with time=... instead."
    )


def _integers(values: Any, name: Any) -> pd.Index:
    """Make integer times, refusing those whose differences would not fit into 64 bits."""
    numbers = np.asarray(values)
    if len(numbers) and max(-int(numbers.min()), int(numbers.max())) >= 2**62:
        raise DataError(
            f"Integer times run from {numbers.min()} to {numbers.max()}; they must lie within "
            "plus and minus 2^62. Use smaller numbers or dates."
        )
    return pd.Index(numbers.astype(np.int64), name=name)


def _checked(times: pd.DatetimeIndex, what: str) -> pd.DatetimeIndex:
    """Refuse missing times and years that do not fit into 64 bits of nanoseconds."""
    missing = np.flatnonzero(times.isna())
    if len(missing):
        raise DataError(
            f"{what} has {counted(len(missing), 'missing time')}, the first at row {missing[0]}. "
            "Every row needs a time: fill them in or leave these rows out."
        )
    if len(times) and (times.year.min() < 1678 or times.year.max() > 2261):
        raise DataError(
            f"{what} runs from {times.min()} to {times.max()}; only the years 1678 to 2261 "
            "can be handled. Correct the times, or use a column of integers as time."
        )
    return times


def _column_times(
    column: pd.Series[Any], name: str, day_first: bool | None, *, written: bool
) -> Times:
    """Read one column as times: datetimes, integers, or text that holds dates."""
    what = f"Time column '{name}'"
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        plain = column.dt.to_timestamp() if isinstance(dtype, pd.PeriodDtype) else column
        return Times(_checked(pd.DatetimeIndex(plain, name=name), what))
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        found = dates_of_numbers(column.rename(name)) if written else None
        return Times(_whole(column, name, what)) if found is None else found
    return _parse_dates(column, what, name, day_first)


def _whole(column: pd.Series[Any], name: str, what: str) -> pd.Index:
    """Return a column of whole numbers as times."""
    floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(floats) & (floats == np.floor(floats))))
    if len(bad):
        raise DataError(
            f"{what} holds numbers that are not whole, the first {floats[bad[0]]:g} at row "
            f"{bad[0]}. Times are dates or integers: convert the column, or name another with "
            "time=... instead."
        )
    whole = pd.api.types.is_integer_dtype(column.dtype)
    return _integers(column.to_numpy() if whole else floats, name)


def dates_of_numbers(column: pd.Series[Any]) -> Times | None:
    """Read numbers as the dates that they write, if every one is such a date.

    Examples
    --------
    >>> dates_of_numbers(pd.Series([20130502, 20130503], name="day")).times[0]
    Timestamp('2013-05-02 00:00:00')
    >>> dates_of_numbers(pd.Series([41396.5, 41397.0], name="day")).times[0]
    Timestamp('2013-05-02 12:00:00')
    """
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(numbers) or not np.isfinite(numbers).all():
        return None
    what, (low, high) = f"Time column '{column.name}' was read as", (numbers.min(), numbers.max())
    if (numbers != np.floor(numbers)).any():
        if low < SHEET[0] or high > SHEET[1]:
            return None
        seconds = pd.Series(np.round(numbers * SHEET_SECONDS))
        dates = _try_dates(seconds, {"unit": "s", "origin": SHEET_START})
        return _noted(dates, column, f"{what} days since {SHEET_START}, as spreadsheets count.")
    for least, most, form in WRITTEN:
        if low < least or high > most:
            continue
        whole = column.astype(np.int64)
        if form in UNITS:
            dates = _try_dates(whole, {"unit": form})
            return _noted(dates, column, f"{what} {UNITS[form]} since 1970 in UTC.")
        dates = _try_dates(whole.astype(str), {"format": form})
        if dates is not None and not dates.isna().any():
            return _noted(dates, column, f"{what} dates written like {whole.iloc[0]}.")
    return None


def _noted(dates: pd.DatetimeIndex | None, column: pd.Series[Any], note: str) -> Times | None:
    return None if dates is None else Times(dates.rename(column.name), (note,))


def _assembled_times(
    columns: Sequence[pd.Series[Any]], names: Sequence[str], day_first: bool | None
) -> Times:
    """Make times of several columns: year, month, day, hour, ... or text such as date and time."""
    what = "Time from columns " + ", ".join(f"'{name}'" for name in names)
    parts = [name.strip().lower() for name in names]
    if set(parts) <= set(CLOCK_PARTS):
        times = _from_clock_parts(dict(zip(parts, columns, strict=True)), what, names)
        return Times(_checked(times.rename("time"), what))
    texts = [column.astype(str).str.strip() for column in columns]
    hours = len(columns) == 2 and has_day(columns[0]) and are_hours(columns[1])
    if not hours and all(pd.api.types.is_numeric_dtype(column.dtype) for column in columns):
        raise DataError(
            f"{what}: columns of numbers are put together only under the names "
            f"{', '.join(CLOCK_PARTS)}. Rename them, or make one time column before."
        )
    if hours:
        texts[1] = columns[1].astype(int).map("{:02d}:00".format)
    return _parse_dates(
        texts[0].str.cat(pd.concat(texts[1:], axis=1), sep=" "), what, "time", day_first
    )


def has_day(column: pd.Series[Any]) -> bool:
    """Whether the first date has year, month and day: a number next to it is none of these."""
    first = next(iter(column.dropna().astype(str).str.strip()), "")
    return bool(re.fullmatch(r"\d{8}", first)) or len(re.findall(r"\d+|[^\W\d]+", first)) >= 3


def are_hours(column: pd.Series[Any]) -> bool:
    """Whether a column holds whole numbers that can be the hours of a date."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if not numeric or pd.api.types.is_bool_dtype(column.dtype) or column.isna().any():
        return False
    return bool((column % 1 == 0).all() and column.min() >= 0 and column.max() <= 24)


def _from_clock_parts(
    parts: Mapping[str, pd.Series[Any]], what: str, names: Sequence[str]
) -> pd.DatetimeIndex:
    """Put year, month, day and so on together; absent lower parts start at their first value."""
    if len(parts) < len(names) or "year" not in parts or "month" not in parts:
        raise DataError(
            f"{what} cannot be put together: 'year' and 'month' are needed, each once, "
            "e.g. time=['year', 'month', 'day', 'hour']."
        )
    fields = pd.DataFrame({name: _numbers(column) for name, column in parts.items()})
    fields = fields if "day" in fields else fields.assign(day=1)
    times = pd.DatetimeIndex(pd.to_datetime(fields, errors="coerce"))
    bad = np.flatnonzero(times.isna())
    if len(bad):
        row = int(bad[0])
        given = ", ".join(f"{name}={column.iloc[row]}" for name, column in parts.items())
        raise DataError(
            f"{what} cannot be read in {counted(len(bad), 'row')}, the first at row {row}: {given}."
            " Correct these rows or leave them out."
        )
    return times


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as numbers, NaN for what is not a number or is beyond any float."""
    try:
        return pd.to_numeric(column, errors="coerce")
    except OverflowError:
        return pd.to_numeric(column.astype(str), errors="coerce").replace([np.inf, -np.inf], np.nan)


def _parse_dates(column: pd.Series[Any], what: str, name: str, day_first: bool | None) -> Times:
    """Read text as dates: ISO 8601 where possible, else month first or day first.

    Of the last two the one that was used before, else the one that comes out more regular.
    """
    column = column.map(_with_colons, na_action="ignore")
    late = column.map(lambda entry: isinstance(entry, str) and bool(_MIDNIGHT.search(entry)))
    if late.any():
        column = column.where(~late, column.astype(str).str.replace(_MIDNIGHT, r"00\1", regex=True))
    present = column.notna().to_numpy()
    first = str(column[present].iloc[0]) if present.any() else ""
    if CLOCK_ALONE.fullmatch(first.strip()):
        raise DataError(
            f"{what} holds times of the day without a date, such as {first!r}. Add the date, or "
            f"let the rows be numbered: exclude=['{name}'], and no time=... at all."
        )
    if HALF_DATE.fullmatch(first.strip()):
        raise DataError(
            f"{what} holds dates such as {first!r}, whose number may be a day or a year. Write "
            "full dates, like 2013-05-02 or May 2013."
        )
    failed: list[pd.DatetimeIndex] = []

    def attempt(**options: Any) -> pd.DatetimeIndex | None:
        times = _try_dates(column, options)
        if times is not None and late.any():
            times += pd.TimedeltaIndex(pd.to_timedelta(late.astype(int), unit="D"))
        if times is not None and not times.notna()[present].all():
            failed.append(times)
            return None
        return times

    notes: tuple[str, ...] = ()
    times, days = attempt(format="ISO8601"), None
    if times is None:
        month, day = attempt(dayfirst=False), attempt(dayfirst=True)
        times, notes, days = _month_or_day_first(month, day, what, day_first)
    if times is None:
        times, days = attempt(format="ISO8601", utc=True), None
        notes = (f"{what} has changing offsets from UTC; its times are kept in UTC.",)
    if times is not None:
        return Times(_checked(times.rename(name), what), notes, days)
    best = max(failed, key=lambda times: int(np.sum(times.notna())), default=None)
    bad = present if best is None else present & best.isna()
    row = int(np.flatnonzero(bad)[0])
    few = bad.sum() < np.sum(present) / 2
    remedy = "Take such rows out, write dates like" if few else "Write dates like"
    raise DataError(
        f"{what} cannot be read as dates in {counted(int(bad.sum()), 'row')}, the first "
        f"{column.iloc[row]!r} at row {row}. {remedy} 2013-05-02 03:00, or name another column "
        "with time=... instead."
    )


def _with_colons(entry: Any) -> Any:
    """Write times of day such as 18.00.00, after a date, with colons."""
    if not isinstance(entry, str):
        return entry
    return _DOTTED.sub(lambda found: ":".join(filter(None, found.groups())), entry.strip())


def _month_or_day_first(
    month: pd.DatetimeIndex | None, day: pd.DatetimeIndex | None, what: str, day_first: bool | None
) -> tuple[pd.DatetimeIndex | None, tuple[str, ...], bool | None]:
    """Choose between two readings of the same text, either of which may have failed."""
    if month is None or day is None:
        day_first = month is None
    elif month.equals(day):
        return month, (), None
    elif day_first is None:
        ranks = _irregularity(day), _irregularity(month)
        day_first = ranks[0] < ranks[1]
        if ranks[0] == ranks[1]:
            note = f"{what} could start with the day or the month; the month was taken."
            return month, (note,), False
    if day_first:
        return day, (f"{what} was read as day/month/year.",), True
    return month, (), False


def _irregularity(times: pd.DatetimeIndex) -> tuple[bool, int, int]:
    """Rank readings of one column: out of order is worst, then the number of uneven steps.

    Steps of whole months are even too, though less so than steps of equal length.
    """
    known = times.dropna()
    steps = [np.diff(known.asi8)]
    last = known.is_month_end.all()
    if last or known.day.nunique() <= 1:
        months = np.diff(12 * known.year.to_numpy() + known.month.to_numpy())
        steps += [months] if (months > 0).all() else []
    uneven = [int((one != np.median(one)).sum()) if len(one) else 0 for one in steps]
    return bool((steps[0] <= 0).any()), min(uneven), uneven[0]


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
