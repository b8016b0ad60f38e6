"""Inputs made of columns: 0 and 1 for each level of a category or day, waves of the clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError, ParameterError, load_extra
from mvlstm.table.columns import as_names, is_dressed, reads_as_time
from mvlstm.table.layout import CALENDAR
from mvlstm.table.settings import CALENDAR_CYCLES, CALENDAR_PARTS, HOLIDAYS, Calendar, is_part
from mvlstm.table.spacing import Step, add_steps
from mvlstm.types import BoolArray, FloatArray

MOST_LEVELS = 50
MOSTLY = 0.5  # share of numbers from which text is taken for numbers with something stray
LENGTHS = {  # of a cycle
    "hour": pd.Timedelta(days=1),
    "weekday": pd.Timedelta(days=7),
    "yearday": pd.Timedelta(days=365.25),
    "days": pd.Timedelta(days=7),
}
SAME = 1e-9  # differences of sines below this are rounding


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


def category_codes(
    column: pd.Series[Any], *, missing: str | None = None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a number for each entry, NaN where it is missing, and the levels they stand for.

    Text that is blank is missing. With ``missing`` it is a level of this name.
    """
    try:
        codes, entries = pd.factorize(column)
    except TypeError as error:  # lists and the like
        raise DataError(
            f"Column '{column.name}' holds a {type(column.iloc[0]).__name__} where a word or a "
            "number is needed. Make its values text first, or choose another column."
        ) from error
    names = [level_name(entry) for entry in entries]
    if missing is not None and ((codes < 0).any() or "" in names):
        codes = np.where(codes < 0, len(names), codes)
        names = [*(name or missing for name in names), missing]
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
        f"exclude=['{name}'].",
        remedy={"exclude": [name]},
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


def check_calendar(
    calendar: Calendar, holidays: Calendar = "none"
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the parts asked for, or None for "auto", and those of countries' holidays.

    Examples
    --------
    >>> check_calendar("none"), check_calendar(["hour"], "DE")
    (((), ()), (('hour',), ('holidays:DE',)))
    """
    countries = () if holidays == "none" else as_names("holidays", holidays)
    free = tuple(HOLIDAYS + country for country in countries)
    if isinstance(calendar, str) and calendar in ("none", "auto"):
        parts: tuple[str, ...] | None = () if calendar == "none" else None
    else:
        given = as_names("calendar", calendar)
        if not given or not all(map(is_part, given)):
            raise ParameterError(
                f"calendar={calendar!r} is not an option; choose 'none', 'auto' or some of "
                f"{', '.join(CALENDAR_PARTS)}."
            )
        free = (*(part for part in given if part.startswith(HOLIDAYS)), *free)
        parts = tuple(part for part in CALENDAR_PARTS if part in given)
    for part in free:
        public_holidays(part.removeprefix(HOLIDAYS))
    return parts, tuple(dict.fromkeys(free))


@cache
def public_holidays(country: str) -> Any:
    """Return the public holidays of a country or a part of one, "DE-BY", to look dates up in."""
    holidays = load_extra("holidays", f"holidays={country!r}", "holidays")
    name, _, part = country.partition("-")
    try:
        return holidays.country_holidays(name, subdiv=part or None)
    except (NotImplementedError, AttributeError) as error:
        raise ParameterError(
            f"holidays={country!r} is not a country that the library holidays knows, or not a "
            "part of one. Use a code of two letters, such as 'DE', or one with a part, such as "
            "'DE-BY'."
        ) from error


def choose_parts(
    calendar: Calendar,
    times: pd.Index,
    step: Step | None,
    columns: Sequence[str],
    holidays: Calendar = "none",
) -> tuple[str, ...]:
    """Choose the cycles that are inputs, and the countries whose holidays are.

    "auto" takes those of which the times span at least two, at a step shorter than the cycle.
    ``columns`` are the table's own, which must leave the calendar's name free.
    """
    parts, free = check_calendar(calendar, holidays)
    if parts == () and not free:
        return ()
    if not isinstance(times, pd.DatetimeIndex):
        name, given = ("holidays", holidays) if parts == () else ("calendar", calendar)
        raise DataError(
            f"{name}={given!r} needs dates as times, and these are integers. Name a column of "
            "dates with time=..., turn the integers into dates first (in pandas: "
            f"pd.to_datetime(..., unit='s')), or use {name}='none'."
        )
    if CALENDAR in columns:
        raise DataError(
            f"The calendar's variable is called '{CALENDAR}', and the table has a column of that "
            f"name. Rename it, or use exclude=['{CALENDAR}']."
        )
    _check_vary(times, (*(parts or ()), *free))
    if parts is None:
        span = times.max() - times.min()
        parts = tuple(
            part
            for part in CALENDAR_CYCLES
            if span >= 2 * LENGTHS[part] and _shorter(step, LENGTHS[part])
        )
    return (*parts, *free)


def _check_vary(times: pd.Index, parts: Sequence[str]) -> None:
    """Refuse a cycle of which all the times have the same phase."""
    moves = {part: np.ptp(calendar_columns(times, [part]), axis=0).max() for part in parts}
    steady = [part for part in parts if moves[part] < SAME]
    if steady and steady[0].startswith(HOLIDAYS):
        country = steady[0].removeprefix(HOLIDAYS)
        raise DataError(
            f"holidays={country!r}: the table has no public holiday of it, or nothing else, which "
            "can tell nothing about the target. Leave it out."
        )
    if steady:
        part = steady[0]
        raise DataError(
            f"calendar={list(parts)!r}: every row has the same {part}, which can tell nothing "
            f"about the target. Leave '{part}' out, or use calendar='auto'."
        )


def _shorter(step: Step | None, length: pd.Timedelta) -> bool:
    """Whether there are several rows in a cycle."""
    if step is None:
        return False
    start = pd.DatetimeIndex(["2001-01-31"])
    return bool((add_steps(start, step, 2) - start)[0] <= length)


def calendar_columns(times: pd.Index, parts: Sequence[str]) -> FloatArray:
    """Return sine and cosine of each cycle's phase, 0 or 1 for each day, and 1 on holidays.

    They go by the local clock.
    """
    assert isinstance(times, pd.DatetimeIndex)
    wall = times.tz_localize(None)
    days = np.asarray((wall - wall.normalize()) / pd.Timedelta(days=1), dtype=np.float64)
    phases = {
        "hour": days,
        "weekday": np.asarray(wall.day_of_week, dtype=np.float64) / 7,
        "yearday": (np.asarray(wall.day_of_year, dtype=np.float64) - 1 + days) / 365.25,
    }
    made = []
    for part in parts:
        if part == "days":
            made.append(np.eye(7)[wall.day_of_week])
        elif part.startswith(HOLIDAYS):
            made.append(_free_days(wall, part.removeprefix(HOLIDAYS)))
        else:
            waves = [wave(2 * np.pi * phases[part]) for wave in (np.sin, np.cos)]
            made.append(np.stack(waves, axis=1))
    return np.concatenate(made, axis=1) if made else np.empty((len(times), 0))


def _free_days(wall: pd.DatetimeIndex, country: str) -> FloatArray:
    """Return 1 where it is a public holiday, (rows, 1)."""
    codes, days = pd.factorize(wall.normalize())
    known = public_holidays(country)
    free = np.array([day.date() in known for day in days], dtype=np.float64)
    return free[codes][:, None]
