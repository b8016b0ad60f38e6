"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.report.encode import are_days, time_text
from mvlstm.results import Evaluation, Explanation, Forecast, History

CLEARLY = 0.01  # less, as a share, before another method is called better


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything a report shows, computed: no model, no torch."""

    model: str  # its name, a row of the scores
    forecast: Forecast  # of every row whose value is known
    future: Forecast  # of the steps after the last row; of the last rows, where none are known
    evaluation: Evaluation  # on unseen rows, of the model, persistence and perhaps others
    explanation: Explanation
    history: History
    settings: Mapping[str, Any] = field(default_factory=dict)  # the model's arguments
    facts: Mapping[str, str] = field(default_factory=dict)  # period, rows, parts, versions
    profile: pd.DataFrame | None = None  # one row per variable: range and spread of its values
    command: str = ""  # what repeats the work
    notes: tuple[str, ...] = ()
    series: str = ""  # of several, the one whose forecasts are held
    next_values: pd.DataFrame | None = None  # the steps after the last row of every series
    others: Mapping[str, tuple[Forecast, Forecast]] = field(default_factory=dict)  # more series

    @property
    def target(self) -> str:
        """Name of what is forecast."""
        return self.forecast.target

    @property
    def own(self) -> dict[str, float]:
        """Scores of the model."""
        scores = self.evaluation.scores
        return {str(name): float(v) for name, v in scores.to_dict("index")[self.model].items()}

    @property
    def measure(self) -> str:
        """Score by which methods are compared: of several series, one that has no unit."""
        scores = self.evaluation.scores
        if self.evaluation.by_series is None or "rmsse" not in scores:
            return "rmse"
        return "rmsse" if scores["rmsse"].notna().all() else "rmse"

    @property
    def error(self) -> float:
        """The model's error by that measure."""
        return self.own[self.measure]

    @property
    def rivals(self) -> dict[str, float]:
        """Error of the other methods by the same measure, by name."""
        errors = self.evaluation.scores[self.measure].drop(self.model)
        return {str(name): float(error) for name, error in errors.items()}

    @property
    def better(self) -> str:
        """The rival whose error is clearly less than the model's; empty if there is none."""
        best = min(self.rivals, key=lambda name: self.rivals[name], default="")
        return best if best and self.rivals[best] < (1.0 - CLEARLY) * self.error else ""

    @property
    def is_ahead(self) -> bool:
        """Whether ``future`` lies after the last row; otherwise it is of the last rows."""
        return not np.isfinite(self.future.actual).any()

    @property
    def headline(self) -> dict[str, Any]:
        """The row of ``future`` to see first: the next value; the last where there is no next."""
        return records(self.future.to_frame())[0 if self.is_ahead else -1]

    @property
    def scored_on(self) -> str:
        """What the rows scored on are to the model, in a word."""
        return "unseen" if self.evaluation.part == "new" else "validation"

    # The words below follow a title or a number; they are empty where they would say nothing.

    @property
    def of_series(self) -> str:
        """Which series is shown."""
        return f" of series {self.series}" if self.series else ""

    @property
    def of_all(self) -> str:
        """That a number is of all series, or of those that have rows to score."""
        if not self.series:
            return ""
        tables = (self.evaluation.by_series, self.next_values)
        counts = [table["series"].nunique() for table in tables if table is not None]
        if not counts or counts[0] == max(counts):
            return f" of all{f' {counts[0]:,}' if counts else ''} series"
        return f" of {counts[0]:,} of {max(counts):,} series"

    @property
    def shown_only(self) -> str:
        """Which series and which of several steps ahead is shown."""
        return f"{self.of_series}{', one step ahead' if self.forecast.horizon > 1 else ''}"

    @property
    def all_steps(self) -> str:
        """That a number is of all of several steps ahead."""
        steps = self.forecast.horizon
        return f", for steps 1 to {steps} ahead together" if steps > 1 else ""

    def when(self, time: Any) -> str:
        """Write a time of the data: the date alone where all are midnights, ``row 7``."""
        return f"{self._unit}{self._moment(time)}"

    def span(self, period: tuple[Any, Any]) -> str:
        """Write the first and the last time of a period."""
        unit = "rows " if self._unit == "row " else self._unit
        return f"{unit}{self._moment(period[0])} to {self._moment(period[1])}"

    @property
    def _unit(self) -> str:
        """What an integer counts: rows, or what the table calls it."""
        origin = self.forecast.origin
        if isinstance(origin, pd.DatetimeIndex):
            return ""
        return "row " if origin.name is None else f"{origin.name} "

    def _moment(self, time: Any) -> str:
        return time_text(time, days=are_days(self.forecast.origin))

    def __repr__(self) -> str:
        head = f"ReportData(model={self.model!r}, target={self.target!r}{self.of_series})"
        return "\n".join([head, *(repr(part) for part in (self.evaluation, self.explanation))])


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict(orient="records")]
