"""Rows added to a CSV file that grows: no row twice, whole or not at all, one writer at a time."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from mvlstm.errors import DataError, reachable
from mvlstm.storage import hold_lock, write_atomic

PATIENCE = 60.0  # seconds to wait for another writer; half of it would still outlast a slow disk
_ZONED = re.compile(r":\d\d(?:\.\d+)?[+-]\d\d:\d\d$")


def append_rows(
    path: str | os.PathLike[str],
    rows: pd.DataFrame,
    *,
    key: Sequence[str],
    patience: float = PATIENCE,
) -> int:
    """Add rows to a CSV file, leaving out those whose key is there already.

    What the file holds already stays as it is, to the letter. The file is replaced in one step: a
    reader sees it with all of the new rows or none; a lock on ``.NAME.lock`` next to it keeps two
    writers apart (for ``patience`` seconds), and is let go even if a writer dies. Returns how many
    rows were added.
    """
    file = Path(path)
    if not reachable(file).parent.is_dir():
        raise DataError(f"The folder '{file.parent}' does not exist; create it first.")
    names = [str(name) for name in rows.columns]
    places = [names.index(name) for name in key]
    meant = Path(os.path.realpath(file))
    with hold_lock(meant.with_name(f".{meant.name[:40]}.lock"), f"'{file}'", patience=patience):
        before = _read(file)
        lines = _cells(rows)
        known = _keys(file, before, names, places) if before.strip() else set()
        _check_zones(file, known, [line[places[0]] for line in lines])
        fresh = []
        for line in lines:
            mark = tuple(line[place] for place in places)
            if mark not in known:
                known.add(mark)
                fresh.append(line)
        if fresh or not before.strip():
            start = before if before.strip() else _text([names])
            write_atomic(file, start + ("" if start.endswith("\n") else "\n") + _text(fresh))
    return len(fresh)


def _check_zones(file: Path, known: set[tuple[str, ...]], times: list[str]) -> None:
    """Refuse times with a zone in a file of times without one, and the reverse."""
    there = {_ZONED.search(mark[0]) is not None for mark in known}
    here = {_ZONED.search(time) is not None for time in times}
    if there and here and there != here:
        having, other = ("with", "without") if True in here else ("without", "with")
        raise DataError(
            f"'{file}' has times {other} a time zone, and the rows to append {having} one: they "
            "are of another table. Choose another file."
        )


def _cells(rows: pd.DataFrame) -> list[list[str]]:
    """Return the cells as text: times in full, numbers so that they are read back exactly."""
    columns = []
    for _, column in rows.items():
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            columns.append([pd.Timestamp(time).isoformat(sep=" ") for time in column])
        else:
            columns.append(["" if pd.isna(cell) else str(cell) for cell in column.tolist()])
    return [list(line) for line in zip(*columns, strict=True)]


def _text(lines: list[list[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def _read(file: Path) -> str:
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise DataError(f"'{file}' cannot be read: {error.strerror or error}.") from error
    except UnicodeError as error:
        raise DataError(f"'{file}' is not a CSV file in UTF-8; append to another.") from error


def _keys(file: Path, text: str, names: list[str], places: list[int]) -> set[tuple[str, ...]]:
    """Return the keys of the rows in the file, whose columns must be the same."""
    header, *lines = list(csv.reader(io.StringIO(text)))
    if header != names:
        raise DataError(
            f"'{file}' has the columns {', '.join(header)}; the rows to append have "
            f"{', '.join(names)}. Choose another file."
        )
    short = [row for row, line in enumerate(lines, start=2) if line and len(line) != len(names)]
    if short:
        raise DataError(
            f"Line {short[0]} of '{file}' does not have {len(names)} fields: the file was changed "
            "or cut off. Correct it, or choose another file."
        )
    return {tuple(line[place] for place in places) for line in lines if line}
