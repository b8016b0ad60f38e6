"""Choosing the columns of a table by name and turning them into numbers."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd

from mvlstm._words import name_list
from mvlstm.errors import DataError, ParameterError, is_number
from mvlstm.table.settings import codes_of
from mvlstm.types import BoolArray, FloatArray

MOST_WORDS = 5  # different ones that stand for missing numbers; more are rather another fault
CLOSE = 1e-7  # share by which a code may differ: -3.4028235e38 is written in many ways
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}"
    rf"|\b\d{{1,2}}[ -]?{MONTH}[ -]\d{{2,4}}\b|\b{MONTH} \d{{1,2}},? \d{{4}}\b",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_DRESSED = re.compile(  # a number with marks of thousands, or with a currency or percent sign
    r"[+-]?\s?[$\u20ac\u00a3]?\s?[+-]?\d[\d.,' \u00a0\u202f]*\s?[%$\u20ac\u00a3]?"
)


def check_columns(what: str, wanted: Iterable[str], names: Sequence[str], argument: str) -> None:
    """Refuse a name that is not a column's, and say which one may have been meant."""
    known = set(names)
    name = next((name for name in wanted if name not in known), None)
    if name is None:
        return
    lower = {other.strip().lower(): other for other in names}
    near = difflib.get_close_matches(name.strip().lower(), list(lower), n=1, cutoff=0.6)
    if near:
        hint = f"Did you mean {argument}={lower[near[0]]!r}?"
    elif all(is_dressed(one) or reads_as_time(one) for one in names):
        hint = "Those are values: the first line of a file must name its columns."
    elif len(names) == 1 and name in re.split(r"\W+", names[0]):
        hint = "If these are several columns, name what separates them: sep=' '."
    else:
        hint = f"Choose one of them with {argument}=... instead."
    raise DataError(
        f"{what} '{name}' is not in the table; its columns are {name_list(names)}. {hint}"
    )


def refuse_levels(index: pd.MultiIndex) -> NoReturn:
    """Say what to do with an index of several levels."""
    levels = [str(name) for name in index.names if name is not None]
    which = f", {name_list(levels)}" if levels else ""
    raise DataError(
        f"The table has an index of several levels{which}; one time per row is needed. Make them "
        "columns with table.reset_index(), then name them: time=... is the time and, if there "
        "are several series, series=... is their column."
    )


def as_in_table(name: str, columns: Sequence[str]) -> str:
    """Return the column that is meant: of that name, or the only one but for blanks around it.

    Examples
    --------
    >>> as_in_table("y", ["x", " y "])
    ' y '
    """
    alike = [column for column in columns if column.strip() == name.strip()]
    return alike[0] if name not in columns and len(alike) == 1 else name


def as_names(
    what: str, value: str | Sequence[str] | None, columns: Sequence[str] = ()
) -> tuple[str, ...]:
    """Turn one name, several or none into a tuple of names, as they are among the columns."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (as_in_table(value, columns),)
    try:
        names = tuple(as_in_table(str(name), columns) for name in value)
    except TypeError:
        raise ParameterError(
            f"{what}={value!r} is not a column name or a list of names, e.g. {what}=['a', 'b']."
        ) from None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"{what} names '{twice}' twice; name each column once.")
    return names


def as_name(what: str, value: Any) -> str:
    """Return the name of one column as text, after checking that it is a name and no column.

    Examples
    --------
    >>> as_name("target", "y"), as_name("target", 2)
    ('y', '2')
    """
    if pd.api.types.is_hashable(value):
        return str(value)
    name = getattr(value, "name", None)
    example = name if isinstance(name, str) else "y"
    raise ParameterError(
        f"{what} is a {type(value).__name__}, but the name of a column is needed: the table holds "
        f"all columns, and {what}={example!r} says which."
    )


def column_names(table: Any) -> list[str]:
    """Return the column names as text, after checking that this is a table with unique names."""
    if not isinstance(table, pd.DataFrame):
        path = isinstance(table, str | os.PathLike)
        make = "mvlstm.table.read_table(path)" if path else "pandas.DataFrame(...)"
        make = "its to_pandas()" if hasattr(table, "to_pandas") else make
        raise DataError(
            f"A pandas DataFrame is needed, not {type(table).__name__}. Make one with {make}."
        )
    if isinstance(table.columns, pd.MultiIndex):
        raise DataError(
            "The table has column names of several levels. Give each column one name, e.g. "
            "table.columns = ['_'.join(map(str, c)) for c in table.columns]."
        )
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        where = [i for i, name in enumerate(names) if name == twice]
        raise DataError(
            f"Column names must be unique; '{twice}' names the columns {where}. Rename or remove "
            "one of each."
        )
    return names


def choose_variables(
    names: Sequence[str],
    *,
    target: str,
    time: Sequence[str],
    variables: Sequence[str] | None,
    exclude: Sequence[str],
    series: str | None = None,
) -> tuple[str, ...]:
    """Return the exogenous columns, in order: those asked for, or all that are left.

    Raises `DataError` if a name is not in the table or is asked for in two roles.
    """
    check_columns("Target", (target,), names, "target")
    check_columns("Variable", variables or (), names, "variables")
    check_columns("Excluded column", exclude, names, "exclude")
    own = () if series is None else (series,)
    asked = tuple(name for name in variables or () if name != target)
    roles: dict[str, Sequence[str]] = {"target": (target,), "a variable": asked, "series": own}
    roles |= {"time": time, "excluded": exclude}
    taken: dict[str, str] = {}
    for role, chosen in roles.items():
        for name in chosen:
            if name in taken and {role, taken[name]} != {"time", "excluded"}:
                raise DataError(f"'{name}' is both {taken[name]} and {role}; decide for one.")
            taken[name] = role
    return asked if variables is not None else tuple(n for n in names if n not in taken)


def numeric_columns(
    table: pd.DataFrame,
    names: Sequence[str],
    wanted: Sequence[str],
    where: Callable[[int], str],
    *,
    skip: Container[str] = (),
    na_values: Sequence[float | str] = (),
    fitting: bool,
) -> FloatArray:
    """Copy the wanted columns, the target last, into one float array of shape (rows, columns).

    Booleans and integers become floats, missing entries, ``na_values`` and columns to ``skip`` NaN.
    Text counts as numbers only if every entry can be read as one. ``where`` describes a row in
    words, and ``fitting`` says whether columns can still be chosen, both for messages.
    """
    place = {name: i for i, name in enumerate(names)}
    values = np.empty((len(table), len(wanted)), dtype=np.float64)
    bad: list[_NotNumeric] = []
    for j, name in enumerate(wanted):
        if name in skip:
            values[:, j] = np.nan
            continue
        column = without_codes(table.iloc[:, place[name]], na_values, name)
        numbers, row = _as_floats(column)
        if numbers is None:
            bad.append(_NotNumeric(name, row, column.iloc[row], _stray_words(column)))
        else:
            values[:, j] = numbers
    if bad:
        raise _refusal(bad, where, wanted[-1], fitting=fitting)
    return values


def without_codes(
    column: pd.Series[Any], codes: Sequence[float | str], name: str | None = None
) -> pd.Series[Any]:
    """Empty the cells that hold one of the ``codes``, as a number or as text.

    Examples
    --------
    >>> without_codes(pd.Series([1, -200, 2]), [-200.0]).tolist()
    [1.0, nan, 2.0]
    """
    codes = codes_of(codes, str(column.name) if name is None else name)
    if not codes or not len(column):
        return column
    numbers = [float(code) for code in codes if is_number(code)]
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return column.mask(_equals(column, numbers))
    if not (pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column)):
        return column
    entries = column.astype(object)
    words = [code for code in codes if isinstance(code, str)]
    bare = entries.map(lambda entry: entry.strip() if isinstance(entry, str) else entry)
    read = pd.to_numeric(entries, errors="coerce")
    found = bare.isin(words) | _equals(read, numbers)
    return entries.mask(found) if found.any() else column


def _equals(column: pd.Series[Any], numbers: Sequence[float]) -> BoolArray:
    """Say which numbers are one of these, up to how they are written."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    same = [np.isclose(values, one, rtol=CLOSE, atol=0.0) for one in numbers]
    return np.asarray(np.any(same, axis=0)) if same else np.zeros(len(values), dtype=bool)


def _as_floats(column: pd.Series[Any]) -> tuple[FloatArray | None, int]:
    """Return the column as floats, or None and the row of its first entry that is not a number."""
    dtype, types = column.dtype, pd.api.types
    times = types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype)
    if times or types.is_complex_dtype(dtype):
        return None, 0
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return column.to_numpy(dtype=np.float64), -1
        return column.to_numpy(dtype=np.float64, na_value=np.nan), -1
    entries = column.astype(object)
    numbers = np.full(len(entries), np.nan)
    for row in np.flatnonzero(entries.notna()):
        entry = entries.iloc[row]
        if isinstance(entry, str) and "_" in entry:  # which Python's own numbers may have
            return None, int(row)
        try:
            numbers[row] = float(entry)
        except (TypeError, ValueError, OverflowError):
            return None, int(row)
    return numbers, -1


class _NotNumeric(NamedTuple):
    """A column with entries that are not numbers."""

    name: str
    row: int  # of the first such entry
    value: Any  # that entry
    stray: list[str]  # the words among its numbers, if these are few


def _stray_words(column: pd.Series[Any]) -> list[str]:
    """Return the different words in a column that is mostly numbers, if they may mean none."""
    known = column.dropna()
    if not all(isinstance(entry, str) or hasattr(entry, "__float__") for entry in known):
        return []
    entries = [str(entry).strip() for entry in known]
    words = [entry for entry in entries if pd.isna(pd.to_numeric(entry, errors="coerce"))]
    found = list(dict.fromkeys(words))
    few = len(found) <= MOST_WORDS and len(words) < len(entries) / 2
    odd = any(not word or reads_as_time(word) or is_dressed(word) for word in found)
    return found if few and not odd else []


def _refusal(
    bad: Sequence[_NotNumeric], where: Callable[[int], str], target: str, *, fitting: bool
) -> DataError:
    """Name the columns that are not numeric, and the remedy for the first fault that is known."""
    name, row, value, _ = bad[0]
    names = [one.name for one in bad]
    shown = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
    message = f"Column '{name}' is not numeric: {shown} at {where(row)}."
    if len(names) > 1:
        message += f" Nor {'are' if names[2:] else 'is'} {name_list(names[1:])}."
    times = [one.name for one in bad if fitting and reads_as_time(one.value)]
    others = [name for name in names if name not in times[:1]]
    if times:
        message += f" If '{times[0]}' holds the times, use time='{times[0]}'."
    comma = next((one for one in bad if _matches(_DECIMAL_COMMA, one.value)), None)
    if comma is not None:
        return DataError(
            f"{message} {comma.value!r} in '{comma.name}' looks like a decimal comma: read the "
            "file with decimal=',', or take the comma out if it marks thousands.",
            remedy={"decimal": ","},
        )
    if not fitting:
        return DataError(f"{message} The model was fitted on numbers there: turn it into numbers.")
    words = list(dict.fromkeys(word for one in bad for word in one.stray))
    if words:
        stands = f"{words[0]!r} stands" if len(words) == 1 else "these words stand"
        message += f" If {stands} for missing values, use na_values={words}."
    if any(is_dressed(one.value) and not reads_as_time(one.value) for one in bad):
        message += " Take out what is not part of the number, such as , or % marks."
    remedy: dict[str, Any] = {"na_values": words} if words else {"exclude": names}
    if target in names:
        message += f" '{target}' is the target: make it numbers first, or choose another."
        return DataError(message, remedy=remedy if words else {})
    if not others:
        message += f" Otherwise leave it out with exclude={names!r}."
    else:
        message += (
            f" Leave out what is not numeric with exclude={others!r}, take it as categories with "
            f"categorical={others!r}, or make it numbers first; empty cells are missing values."
        )
    return DataError(message, remedy=remedy)


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def is_dressed(value: Any) -> bool:
    """Whether text is a number with marks that keep it from being read as one.

    Examples
    --------
    >>> [is_dressed(text) for text in ("1,057.60", "12.5 %", "$3", "12 a", "north")]
    [True, True, True, False, False]
    """
    return _matches(_DRESSED, value.strip() if isinstance(value, str) else value)


def reads_as_time(value: Any) -> bool:
    """Whether a value looks like a date or a time of day."""
    if isinstance(value, str):
        return _TIME.search(value) is not None
    return isinstance(value, pd.Timestamp | np.datetime64) or hasattr(value, "isoformat")
