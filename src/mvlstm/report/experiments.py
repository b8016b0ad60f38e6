"""A page of many sections of tables, with histograms drawn where their counts are given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import pandas as pd

from mvlstm import plot
from mvlstm.report.build import render_page
from mvlstm.report.data import Block, Page, Panel, Section, Table

SHORT = 20  # letters of a part of a heading in a small menu


class TableLike(Protocol):
    """A table as texts and as numbers; ``figure`` is given where the numbers are histograms."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def shown(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def numbers(self) -> pd.DataFrame: ...  # noqa: D102
    @property
    def notes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def figure(self) -> dict[str, Any] | None: ...  # noqa: D102


class SectionLike(Protocol):
    """A heading, sentences and tables; one of level 1 begins a chapter."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def tables(self) -> Sequence[TableLike]: ...  # noqa: D102
    @property
    def level(self) -> int: ...  # noqa: D102


def experiments_page(title: str, sections: Sequence[SectionLike]) -> str:
    """Return sections of tables as one HTML page.

    Parameters
    ----------
    title : str
        Heading.
    sections : sequence
        Each with ``title``, ``text`` and ``tables``, such as those of a document of results. The
        sentences of sections without tables stand at the top of the page. Those of ``level`` 1
        are chapters, whose titles stand before the headings of the sections that follow.
    """
    summary = [text for one in sections if not one.tables for text in (one.title + ".", *one.text)]
    drawn, chapter = [], ""
    for place, one in enumerate(sections):
        chapter = one.title if one.level == 1 else chapter
        if not one.tables:
            continue
        heading = f"{chapter}. {one.title}" if chapter and one.level > 1 else one.title
        blocks = _blocks(place, one.tables)
        drawn.append(
            Section(f"part-{place}", heading, _sentences(one.text), blocks, _short(heading))
        )
    return render_page(Page(title, "", summary, drawn, footer="Made with mvlstm"))


def _blocks(section: int, tables: Sequence[TableLike]) -> list[Panel | Table | Block]:
    blocks: list[Panel | Table | Block] = []
    for place, table in enumerate(tables):
        key = f"{section}-{place}-{re.sub(r'[^a-z0-9]+', '-', table.title.lower())[:40]}"
        notes = " ".join(map(_unmarked, table.notes))
        if table.figure is None:
            blocks.append(Table(key, table.title, notes, table.shown.map(_unmarked)))
        else:
            figure = plot.histograms(table.numbers)
            blocks.append(
                Panel(key, table.title, notes, table.title, figure, table.numbers, wide=True)
            )
    return blocks


def _short(heading: str) -> str:
    """Shorten each part of a heading for a small menu: chapter, name and what is shown of it."""
    parts = re.split(r"[.:] ", heading.removeprefix("Suite "))
    return ", ".join(p if len(p) <= SHORT else p[: SHORT - 1].rstrip(" ,") + "…" for p in parts)


def _sentences(text: Sequence[str]) -> str:
    """Join sentences; a page marks in words what Markdown sets in bold."""
    return " ".join(text).replace("are bold", "are marked as best")


def _unmarked(cell: Any) -> Any:
    """Take Markdown's marks off a text; what is bold as a whole is marked as best."""
    if not isinstance(cell, str):
        return cell
    best = len(cell) > 4 and cell.startswith("**") and cell.endswith("**")
    plain = cell.replace("**", "").replace("`", "")
    return f"{plain} (best)" if best else plain
