"""Tables of any kind as columns by name: mappings, lists of rows, CSV files, data frames."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import DataError, reachable
from mvlstm.types import FloatArray

EMPTY = {"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>", "-nan"}  # in small letters
SEPARATORS = ",;\t|"


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table, and what stands before its rows."""

    values: Mapping[str, NDArray[Any]]
    rows: int
    index: NDArray[Any] | None = None  # of a data frame that has more than row numbers
    index_name: str | None = None
    is_frame: bool = False  # of pandas

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self.values)


def as_columns(table: Any) -> Columns:
    """Read a table: a mapping of columns, a list of rows, a CSV file or a data frame."""
    if isinstance(table, str | os.PathLike):
        return _of_file(reachable(table))
    if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
        return _of_pandas(table)
    if isinstance(table, Mapping):
        return _checked({str(name): _array(column) for name, column in table.items()})
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(str(name) for row in table for name in row)
        return _checked({name: _array([row.get(name) for row in table]) for name in names})
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # polars
        return as_columns(table.to_dict(as_series=False))
    raise DataError(
        f"A table is needed, not {type(table).__name__}: a mapping of columns, a list of rows, the "
        "path of a CSV file or a data frame."
    )


def _of_file(file: Path) -> Columns:
    if not file.is_file():
        raise DataError(f"'{file}' does not exist, or is not a file. Check the path.")
    try:
        return read_csv(file.read_text(encoding="utf-8-sig"), f"'{file}'")
    except UnicodeError as error:
        raise DataError(
            f"'{file}' is not UTF-8 text ({error}). Save it as UTF-8; Parquet needs mvlstm itself, "
            "or a data frame."
        ) from error


def read_csv(text: str, what: str) -> Columns:
    """Read CSV text with a header line, separated by what the header holds most of."""
    lines = text.lstrip("\r\n").splitlines()
    if not lines:
        raise DataError(f"{what} is empty; supply a table with a header line.")
    mark = max(SEPARATORS, key=lines[0].count)
    try:
        names, *rows = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise DataError(f"{what} cannot be read as a table: {error}.") from error
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    wrong = next((k for k, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        raise DataError(
            f"{what} has {len(names)} column names and {len(rows[wrong])} fields in row {wrong}. "
            "Correct that row."
        )
    cells = [_array(list(column)) for column in zip(*rows, strict=True)] or [_array([])] * len(
        names
    )
    return _checked(dict(zip((name.strip() for name in names), cells, strict=True)), names)


def _of_pandas(table: Any) -> Columns:
    names = [str(name) for name in table.columns]
    made = _checked({n: _array(table.iloc[:, k]) for k, n in enumerate(names)}, names)
    numbered = type(table.index).__name__ == "RangeIndex" and table.index.name is None
    index = None if numbered else _array(table.index)
    name = None if table.index.name is None else str(table.index.name)
    return Columns(made.values, len(table), index, name, is_frame=True)


def _array(column: Any) -> NDArray[Any]:
    """Return a column as an array; what is not plain numbers or times as objects."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(column, np.ndarray):
        return column if column.dtype.kind in "biufM" else column.astype(object)
    found = np.empty(len(column), dtype=object)
    found[:] = list(column)
    return found


def _checked(values: dict[str, NDArray[Any]], names: Sequence[str] = ()) -> Columns:
    if len(names) > len(values):
        twice = next(name.strip() for name in names if names.count(name) > 1)
        raise DataError(f"Column names must be unique; '{twice}' occurs twice. Rename one of them.")
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            f"The columns are not of one length: {lengths}. Give every row all of them."
        )
    return Columns(values, next(iter(lengths.values()), 0))


def is_missing(entry: Any) -> bool:
    """Say whether a cell holds nothing."""
    if isinstance(entry, str):
        return entry.strip().lower() in EMPTY
    return entry is None or (isinstance(entry, float | np.floating) and bool(np.isnan(entry)))


def numbers(name: str, column: NDArray[Any]) -> FloatArray:
    """Return a column as floats, missing and infinite entries NaN."""
    if column.dtype.kind in "biuf":
        found = column.astype(np.float64)
    else:
        found = np.full(len(column), np.nan)
        for row, entry in enumerate(column):
            if not is_missing(entry):
                found[row] = _number(name, row, entry)
    found[~np.isfinite(found)] = np.nan
    return found


def _number(name: str, row: int, entry: Any) -> float:
    try:
        if isinstance(entry, str) and "_" in entry:  # which Python's own numbers may have
            raise ValueError
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        shown = repr(entry) if len(repr(entry)) <= 40 else repr(entry)[:37] + "..."
        raise DataError(
            f"Column '{name}' is not numeric: {shown} at row {row}. The model was fitted on "
            "numbers there: turn it into numbers first."
        ) from None


def texts(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as names of levels, None where missing; 3 and 3.0 are the same."""
    found = np.empty(len(column), dtype=object)
    for row, entry in enumerate(column.tolist()):
        if not is_missing(entry):
            whole = isinstance(entry, float) and entry.is_integer()
            found[row] = str(int(entry)) if whole else str(entry).strip()
    return found
