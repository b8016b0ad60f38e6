"""The step between rows: measuring it, counting with it, writing it down."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import is_whole
from mvlstm.types import IntArray

Offset: TypeAlias = (
    "pd.DateOffset | pd.offsets.MonthEnd | pd.offsets.BusinessMonthEnd"
    " | pd.offsets.BusinessMonthBegin | pd.offsets.BusinessDay"
)
Step: TypeAlias = "pd.Timedelta | Offset | int"
"""The distance between two rows: a duration, a calendar offset (months, local days, business days)
or a count."""

DAY = 86_400_000_000_000  # nanoseconds
LEFT_OUT = DAY // 8  # the longest stretch that clocks skip when they go forward
OFFSETS: dict[str, Any] = {
    "days": lambda count: pd.DateOffset(days=count),
    "months": lambda count: pd.DateOffset(months=count),
    "month_ends": pd.offsets.MonthEnd,
    "business_month_ends": pd.offsets.BusinessMonthEnd,
    "business_month_starts": pd.offsets.BusinessMonthBegin,
    "business_days": pd.offsets.BusinessDay,
}


def is_zone(name: str) -> bool:
    """Whether a time zone can be found by its name.

    Examples
    --------
    >>> is_zone("Europe/Berlin"), is_zone("UTC+02:00"), is_zone("tzutc()")
    (True, True, False)
    """
    try:
        pd.Timestamp(0, tz="UTC").tz_convert(name)
    except (LookupError, ValueError, OSError):  # not known; not a name; a folder of zones
        return False
    return True


def describe_time(time: Any) -> str:
    """Write one time the short way: ``2013-05-02 03:00`` or ``17``."""
    if not isinstance(time, pd.Timestamp):
        return str(time)
    if time.second or time.microsecond or time.nanosecond:
        return str(time)
    zone = time.strftime("%z")
    return time.strftime("%Y-%m-%d %H:%M") + (f" {zone}" if zone else "")


def ticks(times: pd.Index) -> IntArray:
    """Turn times into integers: nanoseconds UTC for dates, the number itself otherwise."""
    if isinstance(times, pd.DatetimeIndex):
        return np.asarray(times.as_unit("ns").asi8, dtype=np.int64)
    return np.asarray(times, dtype=np.int64)


def lower_median(numbers: IntArray) -> int:
    """Return the median that is itself one of the numbers."""
    middle = (len(numbers) - 1) // 2
    return int(np.partition(numbers, middle)[middle])


def find_step(times: pd.Index) -> Step | None:
    """Find the distance between neighbouring rows: the median one, or a calendar's that fits."""
    if len(times) < 2:
        return None
    difference = np.diff(ticks(times))
    middle = lower_median(difference)
    if not isinstance(times, pd.DatetimeIndex):
        return middle
    duration = pd.Timedelta(middle, unit="ns")
    return _calendar_step(times, duration, regular=bool((difference == middle).all())) or duration


def _calendar_step(
    times: pd.DatetimeIndex, duration: pd.Timedelta, *, regular: bool
) -> Offset | None:
    """Months, month ends, local or business days, where these describe what a duration cannot."""
    if duration < pd.Timedelta(DAY - LEFT_OUT, unit="ns"):
        return None
    wall = _wall(times)
    clock = ticks(wall) % DAY
    same_clock = bool((clock == clock[0]).all())
    if duration >= pd.Timedelta(days=28) and same_clock:
        count = lower_median(np.diff(_month_numbers(wall)))
        kind = _month_kind(wall)
        if count > 0 and kind is not None:
            found: Offset = OFFSETS[kind](count)
            return found
    local = np.diff(ticks(wall))
    if regular and (times.tz is None or (local != local[0]).any()):
        return None
    weekdays = same_clock and bool((wall.day_of_week < 5).all())
    if weekdays and lower_median(local) == DAY and wall[-1] - wall[0] >= pd.Timedelta(days=7):
        return pd.offsets.BusinessDay(1)
    if times.tz is not None:
        days, rest = divmod(lower_median(local), DAY)
        if days > 0 and rest == 0:
            return pd.DateOffset(days=days)
    return None


def _month_kind(wall: pd.DatetimeIndex) -> str | None:
    """Say which day of the month all times have: the same one, its last, a first business day."""
    if (wall.day == wall.day[0]).all():
        return "months"
    days = wall.to_numpy().astype("datetime64[D]")
    month = days.astype("datetime64[M]")
    first, after = month.astype("datetime64[D]"), (month + 1).astype("datetime64[D]")
    wanted = {
        "month_ends": after - 1,
        "business_month_ends": np.busday_offset(after, -1, roll="forward"),
        "business_month_starts": np.busday_offset(first, 0, roll="forward"),
    }
    return next((kind for kind, there in wanted.items() if (days == there).all()), None)


def usual_clock(times: pd.Index) -> int:
    """Return the time of day that most rows have, in nanoseconds of the local clock."""
    assert isinstance(times, pd.DatetimeIndex)
    found, counts = np.unique(ticks(times.tz_localize(None)) % DAY, return_counts=True)
    return int(found[counts.argmax()])  # the earliest of several


def _wall(times: pd.DatetimeIndex, usual: int | None = None) -> pd.DatetimeIndex:
    """Return local times, with a time of day that clocks left out as if they had not.

    Where they go forward at midnight, daily rows have one at 01:00. ``usual`` is the time of day
    of the others; by default the one that most have.
    """
    wall = times.tz_localize(None)
    if times.tz is None or not len(times):
        return wall
    usual = usual_clock(times) if usual is None else usual
    clock = ticks(wall) % DAY
    late = np.flatnonzero((clock > usual) & (clock <= usual + LEFT_OUT))
    if not len(late):
        return wall
    meant = ticks(wall)
    meant[late] += usual - clock[late]
    there = pd.DatetimeIndex(meant[late]).tz_localize(
        times.tz, ambiguous=np.ones(len(late), dtype=bool), nonexistent="NaT"
    )
    real = late[there.notna()]
    meant[real] += clock[real] - usual
    return pd.DatetimeIndex(meant, name=times.name).as_unit(times.unit)


def _month_numbers(times: pd.DatetimeIndex) -> IntArray:
    return np.asarray(times.year * 12 + times.month, dtype=np.int64)


def spacing(times: pd.Index, step: Step) -> tuple[IntArray, int]:
    """Distances between neighbouring rows, and the distance one step means, in the same unit."""
    kind, count = _parts(step)
    if kind in ("integer", "duration"):
        return np.diff(ticks(times)), count
    assert isinstance(times, pd.DatetimeIndex)
    wall = _wall(times)
    if kind == "days":
        return np.diff(ticks(wall)), count * DAY
    if kind == "business_days":
        days = wall.normalize().to_numpy().astype("datetime64[D]")
        between = np.busday_count(days[:-1], days[1:])
        off = np.diff(ticks(wall)) % DAY != 0  # another time of day is not a whole step
        return np.where(off, 0, between), count
    return np.diff(_month_numbers(wall)), count


def add_steps(times: pd.Index, step: Step, count: int, usual: int | None = None) -> pd.Index:
    """Move every time by ``count`` steps; those of a calendar on the local clock.

    A time of day that clocks leave out becomes the first after it, and of one that occurs twice
    the first is taken. ``usual`` is the rows' time of day (`usual_clock`), for rows at which the
    clocks left it out.
    """
    if count == 0:
        return times
    shift: Any = count * step
    zoned = isinstance(times, pd.DatetimeIndex) and times.tz is not None
    if zoned and not isinstance(step, int | pd.Timedelta):
        assert isinstance(times, pd.DatetimeIndex)
        wall = times.tz_localize(None) if usual is None else _wall(times, usual)
        first = np.ones(len(wall), dtype=bool)
        there: pd.DatetimeIndex = wall + shift
        return there.tz_localize(times.tz, ambiguous=first, nonexistent="shift_forward")
    moved: pd.Index = times + shift
    return moved


def natural_cycles(step: Step | None) -> tuple[int, ...]:
    """Return the rows in a day and a week, in a working week or in a year, where they are whole.

    Examples
    --------
    >>> natural_cycles(pd.Timedelta(hours=1)), natural_cycles(pd.DateOffset(months=3))
    ((24, 168), (4,))
    """
    if step is None:
        return ()
    kind, count = _parts(step)
    lengths: dict[str, tuple[int, ...]] = {
        "integer": (),
        "duration": (DAY, 7 * DAY),
        "days": (7,),
        "business_days": (5,),
    }
    cycles = [length / count for length in lengths.get(kind, (12,))]  # else months
    return tuple(round(rows) for rows in cycles if rows > 1 and rows == round(rows))


def _parts(step: Step) -> tuple[str, int]:
    """Return kind and count: nanoseconds of a "duration", else the reverse of `OFFSETS`."""
    if isinstance(step, int):
        return "integer", step
    if isinstance(step, pd.Timedelta):
        return "duration", int(step // pd.Timedelta(1, unit="ns"))
    for kind, offset in OFFSETS.items():
        if isinstance(offset, type) and isinstance(step, offset):
            return kind, int(step.n)
    assert isinstance(step, pd.DateOffset)
    ((kind, count),) = dict(step.kwds).items()
    return kind, int(count) * int(step.n)


def describe_step(step: Step | None) -> str:
    """Write a step in words: ``1 hour``, ``10 minutes``, ``1 month``, ``2``."""
    if step is None:
        return "unknown"
    kind, count = _parts(step)
    return describe_distance(count * DAY if kind == "days" else count, step)


def describe_distance(distance: int, step: Step) -> str:
    """Write a distance given in the unit of `spacing` in words."""
    kind = _parts(step)[0]
    if kind == "integer":
        return str(distance)
    if kind not in ("duration", "days"):
        return counted(distance, "business day" if kind == "business_days" else "month")
    seconds = distance / 1e9
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), word)
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


def step_to_json(step: Step | None) -> dict[str, Any] | None:
    """Turn a step into plain values; `step_from_json` turns them back."""
    if step is None:
        return None
    kind, count = _parts(step)
    return {kind: step.isoformat() if isinstance(step, pd.Timedelta) else count}


def step_from_json(value: Any) -> Step | None:
    """Turn the plain values written by `step_to_json` back into a step."""
    if value is None:
        return None
    single = isinstance(value, dict) and len(value) == 1
    kind, count = next(iter(value.items())) if single else ("", None)
    if kind == "duration" and isinstance(count, str):
        duration = pd.Timedelta(count)
        if isinstance(duration, pd.Timedelta) and duration > pd.Timedelta(0):
            return duration
    elif is_whole(count) and count > 0 and (kind == "integer" or kind in OFFSETS):
        step: Step = count if kind == "integer" else OFFSETS[kind](count)
        return step
    raise ValueError(f"not a step: {value!r}")
