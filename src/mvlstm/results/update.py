"""What an update did to a model: kept with it, so that its file tells how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mvlstm._words import counted
from mvlstm.results._tables import finite_numbers

Refit = Literal["newest", "full", "link"]
REFITS: tuple[Refit, ...] = ("newest", "full", "link")


@dataclass(frozen=True)
class Update:
    """One update of a model on rows that came after those it knew."""

    when: str  # UTC
    first: str  # of the new times
    last: str
    rows: int  # new ones
    trained: int  # windows trained on, older ones included
    held_out: int  # newest windows, to choose and calibrate on; 0 if all were trained on
    refit: Refit  # "full": trained again on all rows; "link": only the linear map was
    settings: Mapping[str, float]  # epochs and learning rate of networks; others are fitted anew
    changed: int  # members; the others were better as they were
    members: int
    # in units of the target, on the newest rows held out; for "full" on all new rows, which were
    # trained on since; None where too few rows are new to measure it
    rmse_before: float | None
    rmse_after: float | None
    seconds: float
    notes: tuple[str, ...] = ()  # what was done to the table

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, read back by `from_dict`."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Update:
        """Build from what `to_dict` returned; raises ValueError where a value cannot be."""
        tables = {"settings": dict(values["settings"]), "notes": tuple(values.get("notes", ()))}
        found = cls(**{**values, **tables})
        texts = (found.when, found.first, found.last, *found.notes)
        counts = (found.rows, found.trained, found.held_out, found.changed, found.members)
        errors = (found.rmse_before, found.rmse_after)
        numbers = [found.seconds, *found.settings.values(), *(e for e in errors if e is not None)]
        good = (
            all(isinstance(text, str) for text in texts)
            and all(type(count) is int and count >= 0 for count in counts)
            and finite_numbers(numbers)
            and found.refit in REFITS
        )
        if not good:
            raise ValueError(f"the record of an update is damaged: {dict(values)}")
        return found

    def __str__(self) -> str:
        how = "trained further" if self.settings else "fitted anew"
        ways = {"full": "trained again on all rows", "link": "linear map fitted to all rows"}
        how = ways.get(self.refit, how)
        rows = counted(self.rows, "new row")
        return (
            f"{self.when}: {how}, {rows} from {self.first} to {self.last}, "
            f"{self.changed} of {self.members} members changed, {self._errors()}"
        )

    def _errors(self) -> str:
        if self.rmse_before is None or self.rmse_after is None:
            return "RMSE not known: too few new rows to measure"
        seen = self.refit != "newest"
        where = "the new rows" if seen else "those held out"
        return (
            f"RMSE on {where} {self.rmse_before:.4g} before and {self.rmse_after:.4g} after"
            f"{', trained on them' if seen else ''}"
        )
