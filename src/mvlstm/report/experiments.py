"""The page of experiments: sections of tables, with histograms drawn from their counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mvlstm import plot
from mvlstm.report.build import render_page
from mvlstm.report.page import AnyBlock, FigureBlock, Page, Section, TableBlock

SHORT = 20  # letters of a part of a heading in a small menu


def experiments_page(title: str, sections: Sequence[Any]) -> str:
    """Return sections of tables, such as those of a document of results, as one HTML page.

    Each section has ``title``, ``text`` (sentences), ``tables`` and ``level``; each table
    ``title``, ``shown`` (texts), ``numbers``, ``notes`` and ``figure``, which is None unless the
    numbers are histograms. Sentences of sections without tables go to the top of the page; the
    title of a section of level 1, a chapter, precedes the headings of those that follow it.
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


def _blocks(section: int, tables: Sequence[Any]) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    for place, table in enumerate(tables):
        key = f"{section}-{place}-{re.sub(r'[^a-z0-9]+', '-', table.title.lower())[:40]}"
        notes = " ".join(map(_unmarked, table.notes))
        if table.figure is None:
            blocks.append(TableBlock(key, table.title, notes, table.shown.map(_unmarked)))
        else:
            figure = plot.histograms(table.numbers)
            words = (table.title, notes, table.title)
            blocks.append(FigureBlock(key, *words, figure, table.numbers, wide=True))
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
