"""`Comparison`: the scores of many methods on the same rows, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mvlstm.results._tables import Drawable, as_kind, page, plain, records
from mvlstm.types import Kind

SHOWN = ("method", "kind", "rmse", "mae", "crps", "coverage", "skill", "dm_p")
COSTS = ("fit_seconds", "forecasts_per_second", "top_variables")
FURTHER = ("mae_mean", "rmsse", "mase", "smape", "mape", "pinball", "interval_score")
COLUMNS = (*SHOWN, "n", *FURTHER, "valid_rmse", *COSTS, "budget", "error")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Drawable):
    """Methods compared on the same unseen rows.

    ``rows`` has one row per method and kind, the smallest error first, failures last. ``kind`` is
    "single" (one model; the first member of an ensemble) or "ensemble" (the members' mean); the
    scores are those of `Evaluation`; ``dm_p`` how often, after Holm, errors would differ as much in
    favour of the method best on validation rows if it were no more accurate than this one
    (Diebold-Mariano, one-sided); ``valid_rmse`` the error on the later half of the validation rows,
    on which that choice rests; ``top_variables`` the three whose scrambling
    costs most; ``budget``
    what was tuned; ``error`` why a method failed, else None.
    """

    target: str
    rows: pd.DataFrame
    folds: pd.DataFrame  # RMSE of each method and kind on every fold
    best_on_validation: Mapping[str, str] = field(default_factory=dict)  # by kind
    period: tuple[Any, Any] = (None, None)  # first and last time scored
    notes: tuple[str, ...] = ()  # what to bear in mind
    kind: Kind = "pandas"  # of the table that `to_frame` returns

    def __post_init__(self) -> None:
        assert tuple(self.rows.columns) == COLUMNS, f"rows have columns {tuple(self.rows)}"

    def to_frame(self) -> Any:
        """Return a copy of the rows, the top variables written as one text."""
        joined = [", ".join(names) for names in self.rows["top_variables"]]
        return as_kind(self.rows.assign(top_variables=joined), self.kind)

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rows as JSON-able values."""
        return records(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "target": self.target,
            "period": plain(self.period),
            "rows": self.to_records(),
            "folds": records(self.folds),
            "best_on_validation": dict(self.best_on_validation),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        first, last = map(plain, self.period)
        shown = self.rows[[*SHOWN, "error"]]
        table = shown.to_string(index=False, float_format=lambda x: f"{x:.4g}")
        return f"Comparison(target={self.target!r}, {first} to {last})\n{table}"

    def _repr_html_(self) -> str:
        return page(repr(self).splitlines()[0], self.to_frame(), self.notes)
