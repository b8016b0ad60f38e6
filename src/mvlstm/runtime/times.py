"""Times of rows: read, compared, moved by steps and written, without pandas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from mvlstm._words import name_list
from mvlstm.errors import DataError, ModelFileError
from mvlstm.runtime.columns import Columns, is_missing
from mvlstm.types import IntArray

Times = NDArray[Any]  # int64, or datetime64[us]: the local clock, or UTC where there is a zone
CLOCK = ("year", "month", "day", "hour", "minute", "second")
DURATION = re.compile(r"P(\d+)DT(\d+)H(\d+)M(\d+(?:\.\d+)?)S")
SPARE_TIMES = ("time", "date", "timestamp")  # columns of times, where the fit had them as index
KINDS = {"integer": "integers", "datetime": "dates"}
LONGEST_GAP = 240  # minutes that clocks leave out at most


@dataclass(frozen=True)
class Clock:
    """What the times of a model are, and how far apart its rows."""

    dates: bool
    zone: ZoneInfo | None
    unit: str  # of the step
    count: int  # microseconds of a duration

    @classmethod
    def of(cls, layout: Mapping[str, Any]) -> Clock:
        """Read it off a layout."""
        zone = layout["time_zone"]
        unit, count = next(iter((layout["step"] or {"integer": 1}).items()))
        if unit == "duration":
            found = DURATION.fullmatch(count)
            if found is None:
                raise ModelFileError(f"its step {count!r} is not a duration.")
            days, hours, minutes, seconds = map(float, found.groups())
            count = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1e6)
        dates = layout["time_kind"] == "datetime"
        return cls(dates, None if zone is None else ZoneInfo(zone), unit, int(count))

    # ------------------------------------------------------------------------------------ moving

    def after(self, times: Times, count: int = 1) -> Times:
        """Move times by a number of steps; those of a calendar on the local clock."""
        if self.unit == "integer":
            return np.asarray(times + count * self.count)
        if self.unit == "duration":
            return np.asarray(times + np.timedelta64(count * self.count, "us"))
        wall = self.wall(times)
        return self._there(_moved(wall, self.unit, count * self.count))

    def wall(self, times: Times) -> Times:
        """Return what the local clock shows."""
        if self.zone is None:
            return times
        offsets = [self._offset(time) for time in times]
        return np.asarray(times + np.array(offsets, dtype="timedelta64[us]"))

    def _offset(self, time: np.datetime64) -> timedelta:
        assert self.zone is not None
        found = time.astype(object).replace(tzinfo=UTC).astimezone(self.zone).utcoffset()
        return timedelta(0) if found is None else timedelta(seconds=found.total_seconds())

    def _there(self, wall: Times) -> Times:
        """Return when the local clock shows a time; the first after it, if it leaves it out."""
        if self.zone is None:
            return wall
        return np.array([self._at(one.astype(object)) for one in wall], dtype="datetime64[us]")

    def _at(self, wall: datetime) -> datetime:
        assert self.zone is not None
        for later in range(LONGEST_GAP):
            there = wall + timedelta(minutes=later)
            found = there.replace(tzinfo=self.zone).astimezone(UTC)
            if found.astimezone(self.zone).replace(tzinfo=None) == there:
                break
        return found.replace(tzinfo=None)

    # ----------------------------------------------------------------------------------- writing

    def seconds(self, times: Times) -> IntArray:
        """Return the local clock in seconds since 1970."""
        return self.wall(times).astype("datetime64[s]").astype(np.int64)

    def shown(self, times: Times) -> Times:
        """Return times as a user has them: with a zone, as datetimes that know it."""
        if self.zone is None:
            return times
        found = np.empty(times.shape, dtype=object)
        for place, time in np.ndenumerate(times):
            found[place] = time.astype(object).replace(tzinfo=UTC).astimezone(self.zone)
        return found

    def text(self, time: Any) -> str:
        """Write one time the short way: ``2013-05-02 03:00``, or ``17``."""
        if not self.dates:
            return str(int(time))
        found = self.shown(np.array([time]))[0]
        moment: datetime = found if self.zone is not None else found.astype(object)
        if moment.second or moment.microsecond:
            return str(moment)
        zone = moment.strftime("%z")
        return moment.strftime("%Y-%m-%d %H:%M") + (f" {zone}" if zone else "")


def _moved(wall: Times, unit: str, count: int) -> Times:
    """Move local times by days, months or business days; the time of day stays."""
    day = wall.astype("datetime64[D]")
    clock, month = wall - day, day.astype("datetime64[M]")
    if unit == "days":
        return np.asarray(wall + np.timedelta64(count, "D"))
    if unit == "business_days":
        roll: Any = "backward" if count > 0 else "forward"
        return np.asarray(np.busday_offset(day, count, roll=roll) + clock)
    first, after = ((month + count + k).astype("datetime64[D]") for k in (0, 1))
    if unit == "months":
        same = first + (day - month.astype("datetime64[D]"))
        return np.asarray(np.minimum(same, after - 1) + clock)
    if unit == "month_ends":
        return np.asarray(after - 1 + clock)
    if unit == "business_month_ends":
        return np.asarray(np.busday_offset(after, -1, roll="forward") + clock)
    if unit == "business_month_starts":
        return np.asarray(np.busday_offset(first, 0, roll="forward") + clock)
    raise ModelFileError(f"its step of {unit!r} is not known to this version of mvlstm.")


# ----------------------------------------------------------------------------------------- reading


def read_times(columns: Columns, layout: Mapping[str, Any], clock: Clock) -> Times | None:
    """Return the time of every row; None where rows have numbers in place of times."""
    names, index = list(layout["time"]), layout["index_name"]
    if len(names) > 1:
        if set(names) <= set(columns.values):
            return _from_several([columns.values[name] for name in names], names, clock)
        names = []
    name = names[0] if names else index
    if name is not None and name in columns.values and columns.index_name != name:
        return _read(columns.values[name], f"Time column '{name}'", clock)
    if columns.index is not None and not (names and columns.index_name != name):
        return _read(columns.index, "The index", clock)
    if not names and not clock.dates:
        return None
    for spare in SPARE_TIMES if not names else ():
        if spare in columns.values and clock.dates:
            return _read(columns.values[spare], f"Time column '{spare}'", clock)
    wanted = list(layout["time"]) or ["time"]
    raise DataError(
        f"forecast() received {name_list(columns.names)}; missing: {name_list(wanted)}, the "
        "time. Supply every column the model was fitted on."
    )


def _read(column: NDArray[Any], what: str, clock: Clock) -> Times:
    gone = [row for row, entry in enumerate(column.tolist()) if is_missing(entry)]
    if column.dtype.kind == "M":
        gone = np.flatnonzero(np.isnat(column)).tolist()
    if gone:
        raise DataError(
            f"{what} has {len(gone):,} missing times, the first at row {gone[0]}. Every row needs "
            "a time: fill them in or leave these rows out."
        )
    if not clock.dates:
        return _integers(column, what)
    if column.dtype.kind == "M":
        _same_zone(None, what, clock)
        return column.astype("datetime64[us]")
    moments = [_moment(entry, row, what) for row, entry in enumerate(column.tolist())]
    for moment in moments:
        _same_zone(moment.tzinfo, what, clock)
    if clock.zone is not None:
        moments = [moment.astimezone(UTC).replace(tzinfo=None) for moment in moments]
    return np.array(moments, dtype="datetime64[us]")


def _integers(column: NDArray[Any], what: str) -> IntArray:
    try:
        found = np.array([float(entry) for entry in column.tolist()])
        if (found == np.floor(found)).all() and (np.abs(found) < 2**52).all():
            return found.astype(np.int64)
    except (TypeError, ValueError):
        pass
    raise DataError(
        f"forecast() received dates or text as times but fit() saw integers. {what} must hold "
        "whole numbers, as in fit."
    )


def _moment(entry: Any, row: int, what: str) -> datetime:
    """Read one date: ISO text, such as 2013-05-02 03:00, 20130502, or a datetime."""
    if hasattr(entry, "to_pydatetime"):
        entry = entry.to_pydatetime()
    if isinstance(entry, datetime):
        return entry
    text = str(int(entry)) if isinstance(entry, float) and entry.is_integer() else str(entry)
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise DataError(
            f"{what} does not hold dates: {entry!r} at row {row}. Write dates like 2013-05-02 "
            "03:00."
        ) from None


def _same_zone(zone: Any, what: str, clock: Clock) -> None:
    if (zone is None) == (clock.zone is None):
        return
    have, seen = "without a time zone", f"in zone {clock.zone}"
    if clock.zone is None:
        have, seen = f"in zone {zone}", "times without a time zone"
    raise DataError(
        f"forecast() received times {have} but fit() saw {seen}. {what} must have times of the "
        "same kind; write those of a zone with their offset, such as 2013-05-02 03:00+01:00."
    )


def _from_several(columns: list[NDArray[Any]], names: list[str], clock: Clock) -> Times:
    """Put the time together of year, month, day, ..., or of a date and a clock."""
    parts = [name.strip().lower() for name in names]
    what = "Time from columns " + ", ".join(f"'{name}'" for name in names)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    found = []
    for row, entries in enumerate(rows):
        try:
            if set(parts) <= set(CLOCK):
                own = {part: int(float(entry)) for part, entry in zip(parts, entries, strict=True)}
                found.append(datetime(**{"month": 1, "day": 1, **own}))  # type: ignore[arg-type]
            else:
                found.append(datetime.fromisoformat(" ".join(str(one).strip() for one in entries)))
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"{what} cannot be read: {list(entries)!r} at row {row}. Write dates like "
                "2013-05-02 and times like 03:00."
            ) from None
    _same_zone(None, what, clock)
    return np.array(found, dtype="datetime64[us]")
