"""A page of many sections of tables, with histograms drawn where their counts are given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import pandas as pd

from mvlstm import plot
from mvlstm.report.build import render_page
from mvlstm.report.data import Block, Page, Panel, Section, Table


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
    """A heading, sentences and tables."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def text(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def tables(self) -> Sequence[TableLike]: ...  # noqa: D102


def experiments_page(title: str, sections: Sequence[SectionLike]) -> str:
    """Return sections of tables as one HTML page.

    Parameters
    ----------
    title : str
        Heading.
    sections : sequence
        Each with ``title``, ``text`` and ``tables``, such as those of a document of results. The
        sentences of sections without tables stand at the top of the page.
    """
    summary = [text for one in sections if not one.tables for text in (one.title + ".", *one.text)]
    drawn = [
        Section(f"part-{place}", one.title, _sentences(one.text), _blocks(place, one.tables))
        for place, one in enumerate(sections)
        if one.tables
    ]
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
