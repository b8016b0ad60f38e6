"""Reading tables from CSV and Parquet files, and writing files whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import difflib
import gzip
import io
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError, ParameterError, reachable, warn
from mvlstm.storage import write_atomic
from mvlstm.table.columns import without_codes
from mvlstm.table.encoding import is_category
from mvlstm.table.settings import Codes, read_codes

SEPARATORS = (",", ";", "\t", "|")
PARQUET_SUFFIXES = (".parquet", ".pq")
MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"]
MISSING += ["1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"]
NONE = "None"  # a level among words, as of holidays; missing elsewhere
_TO_THE_DIGIT: dict[str, Any] = (  # what later versions of pandas do by themselves
    {"float_precision": "round_trip"} if pd.__version__.startswith("3.0.") else {}
)
_HEAD = 65_536  # bytes that tell whether a file is text
_TOO_LONG = [""]  # a header that is not read
_MARK = "[. \u00a0\u2009\u202f]"  # of thousands: a dot or a space, which may be narrow or fixed
_MARKED = rf"\s*[+-]?(?:[1-9]\d{{0,2}}(?:{_MARK}\d{{3}})+|\d+)(?:,\d*)?\s*"  # 1.234.567,8
_COMMAS = r"\s*[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d*)?\s*"  # 1,234,567.8
_NO_DECIMAL = r",\d{3}[,.]"  # a comma that marks thousands, beyond doubt
_GROUPED = r"[+-]?[1-9]\d{0,2}(?:\.\d{3})*"  # 1.234.567 and 950
LOOKED_AT = 1_000  # rows, for dots that may mark thousands
FEWEST_DOTS = 5  # of them in a column
_OFFSET = r":\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d|Z)$"  # from UTC, at the end of a time


def read_table(
    path: str | os.PathLike[str],
    *,
    sep: str | None = None,
    decimal: str = ".",
    na_values: Codes = None,
) -> pd.DataFrame:
    """Read a table from a CSV or Parquet file.

    Anything but ``.parquet`` or ``.pq`` is text with a header line, UTF-8 (or UTF-16 with a
    byte-order mark), also gzipped (``.gz``); its separator is a comma, semicolon, tab or bar,
    whichever the header holds most of, unless ``sep`` names one. A first column without a name, as
    pandas writes its index, becomes the index; dates with changing offsets from UTC become UTC.
    Others that have neither name nor value are left out, and so are rows of several columns at the
    end without any value. The word ``None`` is a level in a column of words, and missing elsewhere;
    so are ``na_values`` everywhere, such as -200.
    """
    codes = read_codes(na_values) or ()
    file = reachable(path)
    _check_readable(file)
    if file.suffix.lower() in PARQUET_SUFFIXES:
        return _read_parquet(file).apply(without_codes, codes=codes)
    if file.suffix.lower() in (".xls", ".xlsx", ".ods"):
        raise DataError(f"'{file}' is a spreadsheet; save it as CSV or Parquet first.")
    return _read_text(file, sep, decimal).apply(without_codes, codes=codes)


def _check_readable(file: Path) -> None:
    if file.is_dir():
        raise DataError(f"'{file}' is a folder; name a CSV or Parquet file in it.")
    if file.is_fifo() or file.is_char_device() or str(file) == "-":
        raise DataError(f"'{file}' is a stream, not a file; write the table to a file first.")
    if file.exists():
        return
    folder = file.parent
    if not folder.is_dir():
        raise DataError(f"'{file}' does not exist, nor does the folder '{folder}'.")
    with contextlib.suppress(OSError):
        stems = {Path(other).stem.lower(): other for other in os.listdir(folder)}
        near = difflib.get_close_matches(file.stem.lower(), stems, n=1)
        if near:
            meant = folder / stems[near[0]]
            raise DataError(f"'{file}' does not exist. Did you mean '{meant}'?")
    raise DataError(f"'{file}' does not exist. Check the path.")


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        import pyarrow.parquet as parquet

        table = parquet.read_table(file).to_pandas()
    except ImportError as error:
        raise DataError("Reading Parquet needs pyarrow: pip install pyarrow.") from error
    except OSError as error:
        _cannot_read(file, error)
    except Exception as error:  # pyarrow raises its own family of errors
        raise DataError(f"'{file}' is not a readable Parquet file: {_first_line(error)}") from error
    assert isinstance(table, pd.DataFrame)
    return table


def _read_text(file: Path, sep: str | None, decimal: str) -> pd.DataFrame:
    if decimal not in (".", ","):
        raise ParameterError(f"decimal={decimal!r} is not an option; choose '.' or ','.")
    encoding, separator, names = _read_header(file, sep, decimal)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = _parse(file, separator, decimal, encoding)
            rows = _rows_with_values(table)
            if rows < len(table):  # once more without them, since they make integers floats
                table = _parse(file, separator, decimal, encoding, nrows=rows)
    except OSError as error:
        _cannot_read(file, error)
    except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
        raise DataError(_broken(file, separator, encoding, len(names), error)) from error
    except UnicodeError as error:
        raise DataError(
            f"'{file}' is not UTF-8 text ({error}). Save it as UTF-8; in Excel that is the file "
            "type 'CSV UTF-8'."
        ) from error
    except (ValueError, OverflowError, EOFError, zlib.error) as error:
        raise DataError(
            f"'{file}' cannot be read as a table: {_first_line(error)}. If the separator is not a "
            "comma, name it: sep=';' or another."
        ) from error
    table = table.apply(_without_none)
    table = table.apply(_without_thousands, decimal=decimal)
    if decimal == "." and separator != ",":
        _doubt_dots(file, _parse(file, separator, decimal, encoding, nrows=LOOKED_AT, dtype=str))
    nameless = [j for j, name in enumerate(names[: table.shape[1]]) if j and not name.strip()]
    blank = [j for j in nameless if table.iloc[:, j].isna().all()]  # as spreadsheets leave them
    if len(nameless) - len(blank) >= max(2, len(names) / 2):
        raise DataError(
            f"The first line of '{file}' names {counted(len(names) - len(nameless), 'column')} of "
            f"{len(names)}: {_start(separator.join(names))}. It must name them all: remove the "
            "lines above the header."
        )
    table = table.drop(columns=table.columns[blank])
    bare = [str(name).strip() for name in table.columns]
    if len(set(bare)) == len(bare):
        table.columns = pd.Index(bare)
    return _with_index(table) if not names[0].strip() and len(names) > 1 else table


def _parse(
    file: Path,
    sep: str,
    decimal: str,
    encoding: str,
    nrows: int | None = None,
    dtype: type | None = None,
) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_csv(
        file,
        sep=sep,
        decimal=decimal,
        encoding=encoding,
        index_col=False,
        skipinitialspace=True,
        low_memory=False,
        compression="gzip" if file.suffix.lower() == ".gz" else None,
        nrows=nrows,
        dtype=dtype,
        keep_default_na=False,
        na_values=MISSING,
        **_TO_THE_DIGIT,
    )
    return table


def _broken(file: Path, sep: str, encoding: str, columns: int, error: Exception) -> str:
    """Name the first line that is not a row of the table, and say what is wrong with it."""
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    with opener(file, "rt", encoding=encoding, newline="") as stream:
        reader = csv.reader(stream, delimiter=sep, skipinitialspace=True)
        begun = start = 1
        with contextlib.suppress(csv.Error):
            for fields in reader:
                if len(fields) > columns:
                    return (
                        f"Line {start} of '{file}' has {len(fields)} fields, and the header names "
                        f"{counted(columns, 'column')}: {_start(sep.join(fields))}. Correct the "
                        "line or the header, or name the separator with sep=... instead."
                    )
                begun, start = start, reader.line_num + 1
    if "EOF inside string" in str(error):
        return f"Line {begun} of '{file}' opens a quotation mark that is never closed. Correct it."
    return f"'{file}' cannot be read as a table: {_first_line(error)}."


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _without_none(column: pd.Series[Any]) -> pd.Series[Any]:
    """Let the word ``None`` be missing, but in a column of words."""
    if not (pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column)):
        return column
    nothing = column == NONE
    if not nothing.any() or is_category(column[~nothing]):
        return column
    column = column.mask(nothing)
    with contextlib.suppress(ValueError, TypeError):
        return pd.to_numeric(column)
    return column


def _doubt_dots(file: Path, texts: pd.DataFrame) -> None:
    """Warn of a column with numbers such as ``1.234`` and ``950``, and no others."""
    for name, column in texts.items():
        entries = column.dropna().str.strip()
        dotted = entries.str.contains(".", regex=False)
        bare = entries[~dotted].str.len() == 3
        if dotted.sum() >= FEWEST_DOTS and bare.any() and entries.str.fullmatch(_GROUPED).all():
            warn(
                f"The dots in column '{name}' of '{file.name}' look like marks of thousands, as in "
                "1.234 next to 950, but were read as decimal points. If they mark thousands, use "
                "decimal=','."
            )


def _rows_with_values(table: pd.DataFrame) -> int:
    """Return how many rows there are up to the last that has a value; all of them if none has.

    In a file of one column empty lines are not read, so a missing value there was written as one.
    """
    if table.shape[1] == 1 or table.tail(1).notna().any(axis=None):  # most need no look at all
        return len(table)
    filled = np.flatnonzero(table.notna().any(axis=1))
    return int(filled[-1]) + 1 if len(filled) else len(table)


def _without_thousands(column: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Read text such as ``1.234,5``, where commas are decimal, or ``1,234.5`` as numbers.

    Dots and spaces mark thousands in the former. Every entry must be such a number, which dates
    with dots are not; of the latter one must be in no doubt.
    """
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column
    entries = column.dropna().astype(str)
    form, mark = (_MARKED, _MARK) if decimal == "," else (_COMMAS, ",")
    if entries.empty or not entries.str.fullmatch(form).all():
        return column
    if decimal == "." and not entries.str.contains(_NO_DECIMAL).any():
        return column
    bare = entries.str.replace(mark, "", regex=True).str.replace(",", ".", regex=False)
    return bare.astype(np.float64).reindex(column.index)


def _read_header(file: Path, sep: str | None, decimal: str) -> tuple[str, str, list[str]]:
    """Return the file's encoding, its separator and its column names.

    The separator is the one given, or the one that splits the header most. The header may be of
    any length, and quoted names may go on in the next line, as they may in the rows.
    """
    if sep is not None and len(sep) != 1:
        raise ParameterError(f"sep={sep!r} must be one character, such as sep=';'.")
    encoding = _encoding(file)
    marks = dict.fromkeys(mark for mark in (*SEPARATORS, sep) if mark is not None)
    names = {mark: _names(file, encoding, mark) for mark in marks}
    best = max((mark for mark in SEPARATORS if mark != decimal), key=lambda m: len(names[m]))
    separator = best if sep is None else sep
    if separator == decimal:
        raise ParameterError(
            f"The columns of '{file}' are separated by {separator!r}, which is also the decimal "
            "mark. Name the separator, such as sep=';', or another mark with decimal=... instead."
        )
    if decimal == "," and len(names[separator]) == 1 < len(names[","]):
        raise DataError(
            f"The columns of '{file}' are separated by commas, so that a comma within a number "
            "marks no decimals here. Take such commas out of the file, and leave decimal=... out."
        )
    _check_header(file, names[separator], sep, best, len(names[best]))
    return encoding, separator, names[separator]


def _check_header(file: Path, names: list[str], sep: str | None, best: str, most: int) -> None:
    """Refuse a header that is empty, of one column by the wrong separator, or has a name twice."""
    if not names:
        raise DataError(f"'{file}' is empty; a header line with column names is needed.")
    if len(names) == 1 < most:
        raise DataError(
            f"'{file}' has one column when separated by {sep!r}, and {most} by {best!r}. "
            f"Use sep={best!r}, or leave it out."
        )
    if names == _TOO_LONG:
        raise DataError(
            f"'{file}' has a column name of more than {csv.field_size_limit():,} characters. Look "
            "for a quotation mark without its second one, or name the separator: sep=';'."
        )
    twice = [name for name, count in Counter(names).items() if count > 1 and name.strip()]
    if twice:
        raise DataError(
            f"'{file}' has {names.count(twice[0])} columns named '{twice[0]}'. Column names must "
            "be unique: rename or remove one."
        )


def _encoding(file: Path) -> str:
    with _opened(file, mode="rb") as stream:
        start: bytes = stream.read(_HEAD)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in start:
        raise DataError(f"'{file}' is not a text file. Give a CSV or Parquet file.")
    return "utf-8-sig"


def _names(file: Path, encoding: str, mark: str) -> list[str]:
    """Return the fields of the first line that is not blank, as ``mark`` separates them."""
    with _opened(file, mode="rt", encoding=encoding, errors="replace", newline="") as stream:
        lines = csv.reader(stream, delimiter=mark, skipinitialspace=True)
        try:
            return next((line for line in lines if line[1:] or "".join(line).strip()), [])
        except csv.Error:
            return _TOO_LONG


@contextlib.contextmanager
def _opened(file: Path, **options: Any) -> Iterator[Any]:
    """Open a file, gzipped or not; what goes wrong while it is read becomes a `DataError`."""
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    try:
        with opener(file, **options) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"'{file}' is not a complete gzip file: {error}.") from error
    except OSError as error:
        _cannot_read(file, error)


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """Make the unnamed first column the index if it holds integers or dates."""
    column = table.iloc[:, 0]
    whole = pd.api.types.is_integer_dtype(column.dtype)
    if not whole and pd.api.types.is_numeric_dtype(column.dtype):
        return table
    index = pd.Index(column) if whole else _dates(column)
    return table if index is None else table.iloc[:, 1:].set_axis(index.rename(None))


def _dates(column: pd.Series[Any]) -> pd.DatetimeIndex | None:
    """Read text as dates, in UTC where their offsets change as clocks do; None if it holds none."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return pd.DatetimeIndex(pd.to_datetime(column, format="ISO8601"))
    with contextlib.suppress(ValueError, TypeError, OverflowError, AttributeError):
        if column.str.contains(_OFFSET).all():
            return pd.DatetimeIndex(pd.to_datetime(column, format="ISO8601", utc=True))
    return None


def _cannot_read(file: Path, error: OSError) -> NoReturn:
    raise DataError(f"'{file}' cannot be read: {error.strerror or error}.") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def write_table(path: str | os.PathLike[str], table: pd.DataFrame, *, index: bool = False) -> Path:
    """Write a table atomically, as CSV, Parquet or JSON (a list of records) by the suffix.

    With ``index`` the index is written too, as the first column or columns.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    plain = table.reset_index() if index else table
    if suffix == ".csv":
        return write_atomic(file, plain.to_csv(index=False))
    if suffix == ".json":
        text = plain.to_json(orient="records", date_format="iso", double_precision=15, indent=1)
        return write_atomic(file, f"{text}\n")
    if suffix in PARQUET_SUFFIXES:
        buffer = io.BytesIO()
        try:
            plain.to_parquet(buffer, index=False)
        except ImportError as error:
            raise DataError(
                "Writing Parquet needs pyarrow: pip install pyarrow, or write .csv or .json."
            ) from error
        return write_atomic(file, buffer.getvalue())
    raise DataError(f"'{file}' has no known ending for a table; use .csv, .parquet or .json.")
