"""What a page is made of: sections of figures, tables and other blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd


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
        return {"pass": "passed", "warn": "take care", "info": "note"}[self.state]


@dataclass(frozen=True)
class View:
    """A part of a figure to look at: name, range of times and range of values."""

    name: str
    x: tuple[Any, Any]
    y: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Choice:
    """Another figure that can take the place of the first: its name in a list, and its views."""

    name: str
    figure: Any = None  # None stands for the first
    views: tuple[View, ...] = ()


@dataclass(frozen=True, eq=False)
class FigureBlock:
    """A figure with its words and its numbers.

    ``key`` is unique on the page (letters, digits and hyphens), ``alt`` describes the figure for
    those who cannot see it, and ``table`` has the numbers drawn. ``narrow`` is the same figure for
    a narrow screen; the first of ``views`` is shown at first, and so is the first of ``choices``.
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
    choices: tuple[Choice, ...] = ()
    kind: Literal["figure"] = "figure"


@dataclass(frozen=True, eq=False)
class TableBlock:
    """A table that can be sorted and downloaded.

    ``by_row`` says that each row has its own unit, and so its own number of decimals; ``blanks``
    has for some columns what to write in each row that has no value.
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


AnyBlock = FigureBlock | TableBlock | Block


@dataclass(frozen=True, eq=False)
class Section:
    """A question of the reader and its answer; ``short`` names it in a small menu."""

    key: str
    title: str
    lead: str
    blocks: Sequence[AnyBlock]
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

    def blocks(self) -> list[AnyBlock]:
        """Return the blocks of all sections."""
        return [block for section in self.sections for block in section.blocks]
