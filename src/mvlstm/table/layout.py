"""`Layout`: what the columns of a table are, kept with a model and applied again later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from mvlstm.errors import ModelFileError, ParameterError, check_option, is_whole
from mvlstm.table.spacing import Step, is_zone, step_from_json, step_to_json

Missing = Literal["error", "drop", "fill"]
Gaps = Literal["error", "close", "respect"]
MISSING: tuple[str, ...] = get_args(Missing)
GAPS: tuple[str, ...] = get_args(Gaps)
CALENDAR = "calendar"  # the variable that owns the calendar's columns
CALENDAR_PARTS = ("hour", "weekday", "yearday")


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are and how its rows are cleaned.

    A fitted model keeps its layout, so that later tables are read the same way
    (`rebuild_frame`). Every field survives `to_dict`, JSON and `from_dict`.

    Parameters
    ----------
    target : str
        Name of the column to forecast.
    time : tuple of str
        Columns that make up the time; empty for the index.
    variables : tuple of str or None
        The exogenous columns in order; None before they are resolved against a table.
    exclude : tuple of str
        Columns left out.
    missing : {"error", "drop", "fill"}
        What to do with missing or infinite values.
    fill_limit : int
        Longest stretch of rows that ``missing="fill"`` bridges.
    gaps : {"error", "close", "respect"}
        What to do where the spacing of the rows changes.
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
    known : tuple of str
        Variables whose values are known ahead, up to the time forecast.
    calendar : tuple of str
        Cycles of the clock that are inputs: some of "hour", "weekday" and "yearday".
    series : str or None
        Column that says which series a row belongs to, in a table of several.
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
    fill_limit: int = 24
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
        return {
            "target": self.target,
            "time": list(self.time),
            "variables": None if self.variables is None else list(self.variables),
            "exclude": list(self.exclude),
            "missing": self.missing,
            "fill_limit": self.fill_limit,
            "gaps": self.gaps,
            "step": step_to_json(self.step),
            "time_kind": self.time_kind,
            "time_zone": self.time_zone,
            "day_first": self.day_first,
            "levels": {name: list(levels) for name, levels in self.levels},
            "known": list(self.known),
            "calendar": list(self.calendar),
            "series": self.series,
            "index_name": self.index_name,
            "numbered": self.numbered,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Layout:
        """Build a layout from what `to_dict` returned, checking every field."""
        known = cls.__dataclass_fields__
        try:
            unknown = sorted(set(values) - set(known))
            if unknown:
                raise ValueError(f"unknown fields {unknown}")
            fields = dict(values)
            for name in ("time", "variables", "exclude", "known", "calendar"):
                if name in fields and (fields[name] is not None or name != "variables"):
                    fields[name] = tuple(fields[name])
                    if not all(isinstance(entry, str) for entry in fields[name]):
                        raise ValueError(f"{name} must hold names")
            fields["levels"] = _read_levels(fields.get("levels", {}))
            fields["step"] = step_from_json(fields.get("step"))
            layout = cls(**fields)
            if not isinstance(layout.target, str):
                raise ValueError("target must be a name")
            if layout.time_kind not in ("datetime", "integer"):
                raise ValueError(f"time_kind={layout.time_kind!r}")
            zone = layout.time_zone
            if zone is not None and not (isinstance(zone, str) and is_zone(zone)):
                raise ValueError(f"time_zone={layout.time_zone!r}")
            if not isinstance(layout.day_first, bool | None):
                raise ValueError(f"day_first={layout.day_first!r}")
            for name in ("series", "index_name"):
                if not isinstance(getattr(layout, name), str | None):
                    raise ValueError(f"{name}={getattr(layout, name)!r}")
            if not isinstance(layout.numbered, bool):
                raise ValueError(f"numbered={layout.numbered!r}")
            own = layout.variables or ()
            for kind, names in (("levels", layout.categories), ("known", layout.known)):
                if not set(names) <= set(own):
                    raise ValueError(f"{kind} must belong to variables")
            if not set(layout.calendar) <= set(CALENDAR_PARTS):
                raise ValueError(f"calendar={layout.calendar!r}")
            layout.check()
        except (TypeError, ValueError, KeyError) as error:
            raise ModelFileError(
                f"The description of the columns is damaged or of a newer version: {error}"
            ) from error
        return layout

    def check(self) -> None:
        """Raise `ParameterError` if an option has a value it cannot have."""
        check_option("missing", self.missing, MISSING)
        check_option("gaps", self.gaps, GAPS)
        limit = self.fill_limit
        if not is_whole(limit) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")

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
        """One name a variable as a model sees them, the calendar among them, target last."""
        calendar = (CALENDAR,) if self.calendar else ()
        return (*(self.variables or ()), *calendar, self.target)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """One name a column of numbers: a level of a category has one, and a cycle has two."""
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


def _read_levels(values: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    levels = tuple((name, tuple(entries)) for name, entries in dict(values).items())
    texts = [text for name, entries in levels for text in (name, *entries)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("levels must be text")
    return levels
