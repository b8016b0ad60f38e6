"""`Layout`: what the columns of a table are, kept with a model and applied again later."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from mvlstm.errors import ModelFileError
from mvlstm.table.settings import CALENDAR_PARTS, FILL_LIMIT, Cleaning, Gaps, Missing
from mvlstm.table.spacing import Step, is_zone, step_from_json, step_to_json

CALENDAR = "calendar"  # the variable that owns the calendar's columns


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are and how its rows are cleaned.

    A fitted model keeps its layout, so that later tables are read the same way
    (`rebuild_frame`). Every field survives `to_dict`, JSON and `from_dict`.

    Parameters
    ----------
    target, time, variables, exclude, known, series
        As in `mvlstm.table.settings.Columns`, as tuples of names; no time means the index, and
        ``variables`` is None before they are resolved against a table.
    missing, fill_limit, gaps
        As in `mvlstm.table.settings.Cleaning`.
    step : Timedelta, DateOffset, int or None
        Spacing of the rows seen in fit.
    time_kind : {"datetime", "integer"}
        What the times were in fit.
    time_zone : str or None
        Their time zone, if they had one.
    day_first : bool or None
        Whether text like 05/01/2013 was read with the day first; None where there was no doubt.
    levels : tuple of (str, tuple of str)
        The categorical variables and the levels each had in the training rows.
    calendar : tuple of str
        Cycles of the clock that are inputs: some of "hour", "weekday" and "yearday".
    index_name : str or None
        Name of the index, if it held the times: as a file is read, it is a column.
    numbered : bool
        Whether rows without times are numbered within each series.
    """

    target: str
    time: tuple[str, ...] = ()
    variables: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    missing: Missing = "error"
    fill_limit: int = FILL_LIMIT
    gaps: Gaps = "error"
    step: Step | None = None
    time_kind: Literal["datetime", "integer"] = "integer"
    time_zone: str | None = None
    day_first: bool | None = None
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    known: tuple[str, ...] = ()
    calendar: tuple[str, ...] = ()
    series: str | None = None
    index_name: str | None = None
    numbered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            plain[field.name] = list(value) if isinstance(value, tuple) else value
        plain["step"] = step_to_json(self.step)
        plain["levels"] = {name: list(levels) for name, levels in self.levels}
        return plain

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Layout:
        """Build a layout from what `to_dict` returned, checking every field."""
        try:
            unknown = sorted(set(values) - {field.name for field in fields(cls)})
            if unknown:
                raise ValueError(f"unknown fields {unknown}")
            plain = dict(values)
            for name in ("time", "variables", "exclude", "known", "calendar"):
                if name in plain and (plain[name] is not None or name != "variables"):
                    plain[name] = _read_names(name, plain[name])
            levels = dict(plain.get("levels", {})).items()
            plain["levels"] = tuple((name, _read_names("levels", own)) for name, own in levels)
            plain["step"] = step_from_json(plain.get("step"))
            layout = cls(**plain)
            layout._check()
        except (TypeError, ValueError, KeyError) as error:
            raise ModelFileError(
                f"The description of the columns is damaged or of a newer version: {error}"
            ) from error
        return layout

    def _check(self) -> None:
        """Raise `ValueError` if a field has a value it cannot have."""
        Cleaning(self.missing, self.fill_limit, self.gaps).check()
        zone = self.time_zone
        sound = {
            "target": isinstance(self.target, str),
            "time_kind": self.time_kind in ("datetime", "integer"),
            "time_zone": zone is None or (isinstance(zone, str) and is_zone(zone)),
            "day_first": isinstance(self.day_first, bool | None),
            "series": isinstance(self.series, str | None),
            "index_name": isinstance(self.index_name, str | None),
            "numbered": isinstance(self.numbered, bool),
            "levels": set(self.categories) <= set(self.variables or ()),
            "known": set(self.known) <= set(self.variables or ()),
            "calendar": set(self.calendar) <= set(CALENDAR_PARTS),
        }
        wrong = [name for name, fine in sound.items() if not fine]
        if wrong:
            raise ValueError(f"{wrong[0]}={getattr(self, wrong[0])!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column a table needs besides time and series: the variables, then the target."""
        return (*(self.variables or ()), self.target)

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the categorical variables."""
        return tuple(name for name, _ in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per variable as a model sees them, the calendar among them, target last."""
        calendar = (CALENDAR,) if self.calendar else ()
        return (*(self.variables or ()), *calendar, self.target)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """One name per column of numbers: a level of a category has one, a cycle has two."""
        levels = dict(self.levels)
        inputs: list[str] = []
        for name in self.names:
            if name == CALENDAR and self.calendar:
                inputs += [f"{part} {wave}" for part in self.calendar for wave in ("sin", "cos")]
            elif name in levels:
                inputs += [f"{name}={level}" for level in levels[name]]
            else:
                inputs.append(name)
        return tuple(inputs)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """For each input, the index of its variable in `names`."""
        levels = {name: len(entries) for name, entries in self.levels}
        widths = [levels.get(name, 1) for name in self.names]
        if self.calendar:
            widths[-2] = 2 * len(self.calendar)
        return tuple(n for n, width in enumerate(widths) for _ in range(width))

    @cached_property
    def ahead(self) -> tuple[bool, ...]:
        """For each input, whether it is known up to the time forecast."""
        known = {*self.known, *((CALENDAR,) if self.calendar else ())}
        return tuple(self.names[n] in known for n in self.groups)

    @cached_property
    def measured(self) -> tuple[bool, ...]:
        """For each input, whether it is a number measured, not a level or a cycle."""
        made = {*self.categories, *((CALENDAR,) if self.calendar else ())}
        return tuple(self.names[n] not in made for n in self.groups)

    @property
    def clock_columns(self) -> tuple[int, ...]:
        """Which inputs are the calendar's."""
        if not self.calendar:
            return ()
        return tuple(c for c, n in enumerate(self.groups) if n == len(self.names) - 2)


def _read_names(field: str, values: Any) -> tuple[str, ...]:
    names = tuple(values)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{field} must hold names")
    return names
