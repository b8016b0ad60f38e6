"""`Layout`: what the columns of a table are, kept with a model and applied again later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from mvlstm.data._steps import Step, step_from_json, step_to_json
from mvlstm.errors import ModelFileError, ParameterError, check_option

Missing = Literal["error", "drop", "fill"]
Gaps = Literal["error", "close", "respect"]
MISSING: tuple[str, ...] = get_args(Missing)
GAPS: tuple[str, ...] = get_args(Gaps)


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
            for name in ("time", "variables", "exclude"):
                if name in fields and (fields[name] is not None or name != "variables"):
                    fields[name] = tuple(fields[name])
                    if not all(isinstance(entry, str) for entry in fields[name]):
                        raise ValueError(f"{name} must hold names")
            fields["step"] = step_from_json(fields.get("step"))
            layout = cls(**fields)
            if not isinstance(layout.target, str):
                raise ValueError("target must be a name")
            if layout.time_kind not in ("datetime", "integer"):
                raise ValueError(f"time_kind={layout.time_kind!r}")
            if not isinstance(layout.time_zone, str | None):
                raise ValueError(f"time_zone={layout.time_zone!r}")
            if not isinstance(layout.day_first, bool | None):
                raise ValueError(f"day_first={layout.day_first!r}")
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
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column a table needs besides its time: the exogenous ones, then the target."""
        return (*(self.variables or ()), self.target)
