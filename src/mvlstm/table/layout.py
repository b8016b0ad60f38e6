"""`Layout`: what the columns of a table are, kept with a model and applied again later."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from mvlstm.errors import ModelFileError
from mvlstm.settings import FILL_LIMIT, Duplicates, Gaps, Missing
from mvlstm.table.settings import DAYS, HOLIDAYS, Cleaning, is_part, read_codes
from mvlstm.table.spacing import Step, is_zone, step_from_json, step_to_json

CALENDAR = "calendar"  # the variable that owns the calendar's columns
MISSING = "missing"  # the level of a category that is missing, and the mark of a value that is


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are and how its rows are cleaned.

    A fitted model keeps its layout, so that later tables are read the same way
    (`rebuild_frame`). Every field survives `to_dict`, JSON and `from_dict`.
    The settings mean what they do in `mvlstm.table.settings`.
    """

    target: str
    time: tuple[str, ...] = ()  # none: the index
    variables: tuple[str, ...] | None = None  # None before they are resolved against a table
    exclude: tuple[str, ...] = ()
    missing: Missing = "error"
    fill_limit: int = FILL_LIMIT
    gaps: Gaps = "error"
    step: Step | None = None  # spacing of the rows seen in fit
    time_kind: Literal["datetime", "integer"] = "integer"  # what the times were in fit
    time_zone: str | None = None
    day_first: bool | None = None  # how 05/01/2013 was read; None where there was no doubt
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of each category, in the training rows
    known: tuple[str, ...] = ()
    calendar: tuple[str, ...] = ()  # cycles of the clock that are inputs
    series: str | None = None
    index_name: str | None = None  # of an index that held the times: in a file, it is a column
    numbered: bool = False  # whether rows without times are numbered within each series
    duplicates: Duplicates = "error"
    na_values: tuple[float | str, ...] | None = None  # that stand for a missing value
    typical: tuple[tuple[str, float], ...] = ()
    """The variables of which a model sees whether each value is missing, with the median of the
    training rows, which stands in before the first value."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        plain: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in ((field.name, getattr(self, field.name)) for field in fields(self))
        }
        plain["step"] = step_to_json(self.step)
        plain["levels"] = {name: list(levels) for name, levels in self.levels}
        plain["typical"] = dict(self.typical)
        return plain

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Layout:
        """Build a layout from what `to_dict` returned, checking every field."""
        try:
            plain = dict(values)
            for name in ("time", "variables", "exclude", "known", "calendar"):
                if name in plain and (plain[name] is not None or name != "variables"):
                    plain[name] = _read_names(name, plain[name])
            levels = dict(plain.get("levels", {})).items()
            plain["levels"] = tuple((name, _read_names("levels", own)) for name, own in levels)
            plain["step"] = step_from_json(plain.get("step"))
            plain["na_values"] = read_codes(plain.get("na_values"))
            typical = dict(plain.get("typical", {})).items()
            plain["typical"] = tuple((name, float(value)) for name, value in typical)
            layout = cls(**plain)
            layout._check()
        except (TypeError, ValueError, KeyError) as error:
            raise ModelFileError(
                f"The description of the columns is damaged or of a newer version: {error}"
            ) from error
        return layout

    def _check(self) -> None:
        """Raise `ValueError` if a field has a value it cannot have."""
        own = ("missing", "fill_limit", "gaps", "duplicates")
        Cleaning(**{name: getattr(self, name) for name in own}).check()
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
            "typical": set(self.masked) <= {*self.columns} - {*self.categories}
            and all(isfinite(value) for _, value in self.typical),
            "known": set(self.known) <= set(self.variables or ()),
            "calendar": all(map(is_part, self.calendar)),
        }
        wrong = [name for name, fine in sound.items() if not fine]
        if wrong:
            raise ValueError(f"{wrong[0]}={getattr(self, wrong[0])!r}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Every column a table needs besides time and series: the variables, then the target."""
        return (*(self.variables or ()), self.target)

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the categorical variables."""
        return tuple(name for name, _ in self.levels)

    @property
    def masked(self) -> tuple[str, ...]:
        """Names of the variables of which a model sees whether each value is missing."""
        return tuple(name for name, _ in self.typical)

    @property
    def _clock(self) -> tuple[str, ...]:
        return (CALENDAR,) if self.calendar else ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per variable as a model sees them, the calendar among them, target last."""
        return (*(self.variables or ()), *self._clock, self.target)

    @cached_property
    def _owned(self) -> tuple[tuple[str, ...], ...]:
        """The inputs of each variable: a level has one, the calendar those of its parts.

        The mark of what is missing comes before the value.
        """
        made = {name: tuple(f"{name}={level}" for level in own) for name, own in self.levels}
        made |= {name: (f"{name} {MISSING}", name) for name in self.masked}
        if self.calendar:
            made[CALENDAR] = tuple(name for part in self.calendar for name in _inputs_of_part(part))
        return tuple(made.get(name, (name,)) for name in self.names)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """One name per column of numbers."""
        return tuple(name for own in self._owned for name in own)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """For each input, the index of its variable in `names`."""
        return tuple(n for n, own in enumerate(self._owned) for _ in own)

    @cached_property
    def ahead(self) -> tuple[bool, ...]:
        """For each input, whether it is known up to the time forecast."""
        return self._inputs_of({*self.known, *self._clock})

    @cached_property
    def measured(self) -> tuple[bool, ...]:
        """For each input, whether it is a number measured: no level, cycle or mark."""
        made = {*self.categories, *self._clock}
        each = zip(self.names, self._owned, strict=True)
        return tuple(name not in made and one == own[-1] for name, own in each for one in own)

    @property
    def clock_columns(self) -> tuple[int, ...]:
        """Which inputs are the calendar's."""
        return tuple(c for c, own in enumerate(self._inputs_of({*self._clock})) if own)

    def _inputs_of(self, variables: set[str]) -> tuple[bool, ...]:
        return tuple(self.names[n] in variables for n in self.groups)


def _inputs_of_part(part: str) -> tuple[str, ...]:
    """Name the inputs of a part of the calendar: a cycle has two, the days seven, holidays one."""
    if part.startswith(HOLIDAYS):
        return (f"holiday {part.removeprefix(HOLIDAYS)}",)
    return tuple(f"{part} {one}" for one in (DAYS if part == "days" else ("sin", "cos")))


def _read_names(field: str, values: Any) -> tuple[str, ...]:
    names = tuple(values)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{field} must hold names")
    return names
