"""`Check`: all that is wrong with a table at once, and the one call that would fit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mvlstm.results._tables import page, records

COLUMNS = ("column", "role", "kind", "missing", "distinct", "least", "greatest")


@dataclass(frozen=True)
class Finding:
    """One fault, in a sentence or two, and the arguments that would mend it, if any would."""

    fault: str
    remedy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """What `mvlstm.check` found.

    Parameters
    ----------
    target : str
    columns : DataFrame
        One row per column: its role and kind, the share of values missing, how many are distinct,
        the least and the greatest.
    findings : tuple of Finding
        What a fit would refuse, in the order in which it would.
    fits : bool
        Whether a fit with all remedies goes through.
    reading, named, settings : dict
        Arguments of `read_table`, of `fit` and of the constructor that are needed for it.
    rows : str
        How many rows are left then, from when to when, at which step; empty where it does not fit.
    notes, warnings : tuple of str
        What such a fit would tell.
    suggestions : tuple of str
        What is worth trying, though a fit goes through without.
    source : str
        How the table is written in `code`.
    """

    target: str
    columns: pd.DataFrame
    findings: tuple[Finding, ...]
    fits: bool
    reading: dict[str, Any]
    named: dict[str, Any]
    settings: dict[str, Any]
    rows: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    source: str = "table"

    def __post_init__(self) -> None:
        assert tuple(self.columns.columns) == COLUMNS, tuple(self.columns.columns)

    @property
    def code(self) -> str:
        """The call that fits the table."""
        source = self.source
        if self.reading:
            source = f"mv.table.read_table({source}, {_written(self.reading)})"
        return f"mv.MVLSTM({_written(self.settings)}).fit({source}, {_written(self.named)})"

    def to_frame(self) -> pd.DataFrame:
        """Return the columns of the table, one row each."""
        return self.columns.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "target": self.target,
            "fits": self.fits,
            "rows": self.rows,
            "columns": records(self.columns),
            "findings": [{"fault": one.fault, "remedy": {**one.remedy}} for one in self.findings],
            "arguments": {"read": self.reading, "fit": self.named, "constructor": self.settings},
            "code": self.code,
            "notes": list(self.notes),
            "told": list(self.warnings),
            "suggestions": list(self.suggestions),
        }

    @property
    def _lines(self) -> list[str]:
        found = [f"{n}. {one.fault}" for n, one in enumerate(self.findings, 1)]
        told = [*(f"warning: {one}" for one in self.warnings), *(f"note: {o}" for o in self.notes)]
        tried = [f"worth trying: {one}" for one in self.suggestions]
        ends = [self.rows, self.code] if self.fits else ["No option would mend the last of these."]
        return [*found, *told, *tried, *ends]

    def __repr__(self) -> str:
        return "\n".join([f"Check(target={self.target!r}, fits={self.fits})", *self._lines])

    def _repr_html_(self) -> str:
        return page(f"Check of '{self.target}'", self.columns, self._lines)


def _written(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
