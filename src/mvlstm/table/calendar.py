"""The calendar as inputs: cycles of the clock as pairs of sine and cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm.errors import DataError, ParameterError
from mvlstm.table.columns import as_names
from mvlstm.table.layout import CALENDAR
from mvlstm.table.settings import CALENDAR_PARTS, Calendar
from mvlstm.table.spacing import Step, add_steps
from mvlstm.types import FloatArray

__all__ = ["Calendar", "calendar_columns", "check_calendar", "choose_parts"]

LENGTHS = {  # of a cycle
    "hour": pd.Timedelta(days=1),
    "weekday": pd.Timedelta(days=7),
    "yearday": pd.Timedelta(days=365.25),
}
SAME = 1e-9  # differences of sines below this are rounding


def check_calendar(calendar: Calendar) -> tuple[str, ...] | None:
    """Return the parts asked for, or None for "auto".

    Examples
    --------
    >>> check_calendar("none"), check_calendar(["hour"])
    ((), ('hour',))
    """
    if isinstance(calendar, str) and calendar in ("none", "auto"):
        return () if calendar == "none" else None
    parts = as_names("calendar", calendar)
    wrong = [part for part in parts if part not in CALENDAR_PARTS]
    if wrong or not parts:
        raise ParameterError(
            f"calendar={calendar!r} is not an option; choose 'none', 'auto' or some of "
            f"{', '.join(CALENDAR_PARTS)}."
        )
    return tuple(part for part in CALENDAR_PARTS if part in parts)


def choose_parts(
    calendar: Calendar, times: pd.Index, step: Step | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """Choose the cycles that are inputs.

    "auto" takes those of which the times span at least two, at a step shorter than the cycle.
    ``columns`` are the table's own, which must leave the calendar's name free.
    """
    parts = check_calendar(calendar)
    if parts == ():
        return ()
    if not isinstance(times, pd.DatetimeIndex):
        raise DataError(
            f"calendar={calendar!r} needs dates as times, and these are integers. Name a column of "
            "dates with time=..., turn the integers into dates first (in pandas: "
            "pd.to_datetime(..., unit='s')), or use calendar='none'."
        )
    if CALENDAR in columns:
        raise DataError(
            f"The calendar's variable is called '{CALENDAR}', and the table has a column of that "
            f"name. Rename it, or use exclude=['{CALENDAR}']."
        )
    if parts is not None:
        _check_vary(times, parts)
        return parts
    span = times.max() - times.min()
    return tuple(
        part
        for part in CALENDAR_PARTS
        if span >= 2 * LENGTHS[part] and _shorter(step, LENGTHS[part])
    )


def _check_vary(times: pd.Index, parts: Sequence[str]) -> None:
    """Refuse a cycle of which all the times have the same phase."""
    columns = calendar_columns(times, parts)
    steady = np.ptp(columns, axis=0).reshape(-1, 2).max(axis=1) < SAME
    if steady.any():
        part = parts[int(steady.argmax())]
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
    """Return sine and cosine of each cycle's phase, (rows, 2 * parts), by the local clock."""
    assert isinstance(times, pd.DatetimeIndex)
    wall = times.tz_localize(None)
    days = np.asarray((wall - wall.normalize()) / pd.Timedelta(days=1), dtype=np.float64)
    phases = {
        "hour": days,
        "weekday": np.asarray(wall.day_of_week, dtype=np.float64) / 7,
        "yearday": (np.asarray(wall.day_of_year, dtype=np.float64) - 1 + days) / 365.25,
    }
    waves = [wave(2 * np.pi * phases[part]) for part in parts for wave in (np.sin, np.cos)]
    return np.stack(waves, axis=1) if waves else np.empty((len(times), 0))
