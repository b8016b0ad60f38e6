"""What a report is made from, and what a page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from mvlstm.report.encode import are_days, time_text
from mvlstm.results import Evaluation, Explanation, Forecast, History


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything a report shows, computed: no model, no torch.

    Parameters
    ----------
    model : str
        Name of the model, a row of ``evaluation.scores``.
    forecast : Forecast
        Of every row whose value is known.
    future : Forecast
        Of the steps after the last row; of the last rows, where what is known ahead ends there.
    evaluation : Evaluation
        Scores on unseen rows, persistence and perhaps others beside the model.
    explanation : Explanation
        Importance, attention and, where they were computed, contributions.
    history : History
        How training went.
    settings : mapping
        The model's arguments.
    facts : mapping
        What else there is to know: period, rows, parts, versions; texts shown as they are.
    profile : DataFrame, optional
        A row a variable: range and spread of its values.
    command : str
        What repeats the work.
    notes : tuple of str
        What was done to the data, and warnings.
    series : str
        Of several series, the one whose forecasts ``forecast`` and ``future`` hold.
    next_values : DataFrame, optional
        The steps after the last row of every series.
    """

    model: str
    forecast: Forecast
    future: Forecast
    evaluation: Evaluation
    explanation: Explanation
    history: History
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    profile: pd.DataFrame | None = None
    command: str = ""
    notes: tuple[str, ...] = ()
    series: str = ""
    next_values: pd.DataFrame | None = None

    @property
    def target(self) -> str:
        """Name of what is forecast."""
        return self.forecast.target

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        """Scores by method, then by name."""
        rows = self.evaluation.scores.to_dict(orient="index")
        return {str(method): {str(k): v for k, v in row.items()} for method, row in rows.items()}

    @property
    def own(self) -> dict[str, Any]:
        """Scores of the model."""
        return self.scores[self.model]

    @property
    def ahead(self) -> list[dict[str, Any]]:
        """Rows of the steps after the last row, as in `Forecast.to_frame`."""
        return records(self.future.to_frame())

    @property
    def headline(self) -> dict[str, Any]:
        """The row of ``ahead`` to see first: the next value; the last where there is no next."""
        return self.ahead[0 if self.is_ahead else -1]

    @property
    def scored_on(self) -> str:
        """What the rows scored on are to the model, in a word."""
        return "unseen" if self.evaluation.part == "new" else "validation"

    @property
    def of_series(self) -> str:
        """The words that name the series shown, to follow a title; empty if there is one only."""
        return f" of series {self.series}" if self.series else ""

    @property
    def of_all(self) -> str:
        """The words for what is told of all series, to follow a number; empty if there is one."""
        if not self.series:
            return ""
        table = self.evaluation.by_series if self.next_values is None else self.next_values
        count = "" if table is None else f" {table['series'].nunique():,}"
        return f" of all{count} series"

    @property
    def one_step(self) -> str:
        """The words for what is told of the first step, to follow a title, if there are more."""
        return ", one step ahead" if self.forecast.horizon > 1 else ""

    @property
    def shown_only(self) -> str:
        """What a figure of one step of one series is of, to follow its title."""
        return f"{self.of_series}{self.one_step}"

    @property
    def is_ahead(self) -> bool:
        """Whether ``future`` lies after the last row, and is not the last rows for want of more."""
        return not np.isfinite(self.future.actual).any()

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


# ------------------------------------------------------------------------------- pieces of a page


@dataclass(frozen=True)
class Card:
    """One figure to see first: a label, a large value and a line below it."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Check:
    """One question about the numbers, answered: ``pass``, ``warn`` or ``info``."""

    state: Literal["pass", "warn", "info"]
    title: str
    text: str

    @property
    def word(self) -> str:
        """The state in words."""
        return {"pass": "fine", "warn": "take care", "info": "to know"}[self.state]


@dataclass(frozen=True)
class View:
    """A part of a figure to look at: name, range of times and range of values."""

    name: str
    x: tuple[Any, Any]
    y: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure with its words and its numbers.

    Parameters
    ----------
    key : str
        Unique on the page; letters, digits and hyphens.
    title, caption, alt : str
        Heading, what to see in it, and what it shows for those who cannot see it.
    figure : plotly Figure
    table : DataFrame
        The numbers drawn.
    narrow : plotly Figure, optional
        The same for a narrow screen.
    wide : bool
        Whether it takes the whole width.
    views : tuple of View
        Parts to choose from; the first one is shown at first.
    """

    key: str
    title: str
    caption: str
    alt: str
    figure: Any
    table: pd.DataFrame
    narrow: Any = None
    wide: bool = False
    views: tuple[View, ...] = ()
    kind: Literal["panel"] = "panel"


@dataclass(frozen=True, eq=False)
class Table:
    """A table that can be sorted and downloaded.

    Parameters
    ----------
    key, title, caption : str
        As of a `Panel`.
    frame : DataFrame
        Its values.
    by_row : bool
        Whether each row has its own unit, and so its own number of decimals.
    blanks : mapping
        What to write where a column has no value, by column, a text a row.
    """

    key: str
    title: str
    caption: str
    frame: pd.DataFrame
    by_row: bool = False
    blanks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kind: Literal["table"] = "table"


@dataclass(frozen=True, eq=False)
class Block:
    """Anything else on a page: checks, facts, code, notes, text, the explorer of one forecast."""

    kind: Literal["checks", "facts", "code", "notes", "text", "explorer"]
    title: str = ""
    content: Any = None


@dataclass(frozen=True, eq=False)
class Section:
    """One question of the reader with all that answers it; ``short`` names it in a small menu."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Panel | Table | Block]
    short: str = ""


@dataclass(frozen=True, eq=False)
class Page:
    """A whole page."""

    title: str
    subtitle: str
    summary: Sequence[str]
    sections: Sequence[Section]
    cards: Sequence[Card] = ()
    caveat: str = ""
    footer: str = ""
    explorer: Mapping[str, Any] | None = None
