"""Tables with their titles and sentences: as Markdown, as CSV files, or for a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm._words import decimals
from mvlstm.storage import ensure_folder, write_atomic
from mvlstm.table.files import write_table


@dataclass(frozen=True, eq=False)
class Table:
    """One table."""

    title: str
    shown: pd.DataFrame  # what a person reads: texts, in order
    numbers: pd.DataFrame  # the same as plain numbers, one fact per row, for a CSV file
    notes: tuple[str, ...] = ()  # sentences below it
    figure: dict[str, Any] | None = None  # what a figure is drawn from: ``kind`` and its numbers

    def markdown(self) -> str:
        """Return the table as Markdown, its title in bold above it."""
        head = [str(column) for column in self.shown.columns]
        rows = [[_cell(value) for value in row] for row in self.shown.itertuples(index=False)]
        right = [all(_is_number(row[k]) for row in rows) for k in range(len(head))]
        rule = ["---:" if numeric else "---" for numeric in right]
        lines = [_line(map(_cell, head)), _line(rule), *map(_line, rows)]
        text = [f"**{self.title}**", "", *lines]
        for note in self.notes:
            text += ["", note]
        return "\n".join(text)


@dataclass(frozen=True, eq=False)
class Section:
    """Tables that belong together."""

    title: str
    text: tuple[str, ...] = ()  # sentences below the title
    tables: tuple[Table, ...] = ()
    level: int = 2  # 1 for a chapter, 2 for a section in it


@dataclass(frozen=True, eq=False)
class Document:
    """All tables of a folder of records."""

    title: str
    sections: tuple[Section, ...]
    problems: tuple[str, ...] = ()  # records that could not be read

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table, in order."""
        return tuple(table for section in self.sections for table in section.tables)

    def markdown(self) -> str:
        """Return everything as one Markdown text; several chapters have a list of contents."""
        blocks = [f"# {self.title}"]
        if sum(section.level == 1 for section in self.sections) > 1:
            blocks.append(self._contents())
        for section in self.sections:
            blocks.append(f"{'#' * (section.level + 1)} {section.title}")
            blocks += section.text
            blocks += [table.markdown() for table in section.tables]
        return "\n\n".join(blocks) + "\n"

    def _contents(self) -> str:
        """Return a list of links to the sections, those of a chapter below it."""
        seen: dict[str, int] = {}
        lines = []
        for section in self.sections:
            anchor = _anchor(section.title)
            earlier = seen.get(anchor, 0)  # a second title of the same words is numbered
            seen[anchor] = earlier + 1
            link = f"#{anchor}-{earlier}" if earlier else f"#{anchor}"
            lines.append(f"{'  ' * (section.level - 1)}- [{section.title}]({link})")
        return "\n".join(lines)

    def write(self, folder: Path) -> list[Path]:
        """Write ``tables.md`` and a CSV file for each table; return what was written."""
        ensure_folder(folder)
        written = [write_atomic(folder / "tables.md", self.markdown())]
        for name, table in zip(file_names(self.tables), self.tables, strict=True):
            written.append(write_table(folder / f"{name}.csv", table.numbers))
        return written


def file_names(tables: Sequence[Table]) -> list[str]:
    """Return a name for each table's file, none twice."""
    names: list[str] = []
    for table in tables:
        name = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:90]
        same = sum(1 for other in names if other == name or other.startswith(f"{name}--"))
        names.append(f"{name}--{same + 1}" if same else name)
    return names


def _anchor(title: str) -> str:
    """Return the name by which Markdown's viewers link to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def number(value: Any, digits: int = 4) -> str:
    """Write a number with this many digits, empty if there is none.

    Examples
    --------
    >>> number(20.1234), number(0.02331), number(None)
    ('20.12', '0.02331', '')
    """
    if value is None or not isfinite(value):
        return ""
    if value == 0:
        return "0"
    return f"{value:.{min(decimals(abs(value), digits), 8)}f}"


def with_error(mean: Any, error: Any, digits: int = 4) -> str:
    """Write a mean with its standard error, if there is one, which shows two digits at least.

    The mean has this many digits at least, too, but no more than six, however small the error is.

    Examples
    --------
    >>> with_error(20.0854, 0.0172), with_error(1.012661, 0.000092), with_error(20.0854, None)
    ('20.085 ± 0.017', '1.01266 ± 0.00009', '20.09')
    """
    if mean is None or error is None or not isfinite(mean) or not isfinite(error):
        return number(mean, digits)
    largest = max(abs(mean), error)
    places = min(decimals(largest, digits, error), decimals(largest, 6))
    return f"{mean:z.{places}f} ± {error:.{places}f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    return str(value).replace("|", "\\|").replace("\n", " ")


def _is_number(text: str) -> bool:
    return not text or bool(re.fullmatch(r"[\s*<±+\-−\d.,e%]+", text))
