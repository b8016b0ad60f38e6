"""One forecast taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from mvlstm.results._tables import plain, records


@dataclass(frozen=True, eq=False, repr=False)
class PointExplanation:
    """Why one forecast is what it is.

    ``background + contributions = forecast``: the background is the mean forecast over windows of
    the training part, so a contribution says how far a variable moved this forecast from there. All
    are in units of the target; of several series, on the scale of each, in which it has mean 0 and
    standard deviation 1 in the training rows, as ``unit`` says.

    ``table`` has one row per variable and lag: ``variable, lag, contribution``; lag 1 is the last
    time known. ``by_variable`` has one row per variable, largest first: ``variable, contribution,
    expert, response``. ``expert`` is prior weight times the expert's own forecast (in members with
    a link, of what the link leaves), which adds up too but says little; ``response`` is the change
    of the forecast when the variable's whole window is raised by one standard deviation.
    """

    target: str
    origin: Any  # last time known
    step: int  # steps ahead
    forecast: float
    background: float
    table: pd.DataFrame
    by_variable: pd.DataFrame
    series: str | None = None
    unit: str = ""

    @property
    def response(self) -> pd.Series[float]:
        """Change of the forecast for one standard deviation more of each variable."""
        return self.by_variable.set_index("variable")["response"]

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the table by variable."""
        return self.by_variable.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "target": self.target,
            "series": self.series,
            "unit": self.unit,
            "origin": plain(self.origin),
            "step": self.step,
            "forecast": self.forecast,
            "background": self.background,
            "by_variable": records(self.by_variable),
            "table": records(self.table),
        }

    def __repr__(self) -> str:
        width = max((len(str(v)) for v in self.by_variable["variable"]), default=10)
        width = max(width, len("background"))
        whose = "" if self.series is None else f" of series {self.series!r}"
        unit = f", in {self.unit}" if self.unit else ""
        lines = [
            f"Forecast of {self.target!r}{whose} from {plain(self.origin)}, step {self.step}{unit}",
            f"  {'background':<{width}}  {self.background:12.5g}",
        ]
        for row in self.by_variable.itertuples():
            lines.append(f"  {row.variable!s:<{width}}  {row.contribution:+12.5g}")
        lines.append(f"  {'forecast':<{width}}  {self.forecast:12.5g}")
        return "\n".join(lines)
