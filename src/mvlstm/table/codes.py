"""Values that stand for a missing one, such as -200 or 9999: found, and asked about."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Rows
from mvlstm.table.settings import codes_of
from mvlstm.types import FloatArray, IntArray

ALONE = 5.0  # times the usual distance of values that one must be away from its neighbour
HUGE = 1e20  # beyond this a number is what a program writes for none
DWARFED = 1e6  # times as far away as all others are apart: a huge code, not one large value
USUAL = {200.0, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0}  # besides those of nines
FEWEST_VALUES = 20  # different ones, among which an unusual one can be told
FEW_VALUES = 3  # and a usual code
TIMES = 3  # that an unusual one occurs, if it is a code
OFTEN = 10  # times as often as any other value, from which a usual code is one within their range
MOST_CODES = 4  # of one column
COUNTED = 0.25  # share of the rows from which the one negative number among counts is a code
RISING = 2  # times as often as the least count, from which it may be one


class Code(NamedTuple):
    """A value of a column that probably stands for a missing one."""

    value: float
    rows: int
    first: int  # row
    low: float  # of all other values
    high: float


def check_codes(rows: Rows, layout: Layout, categories: Container[str]) -> None:
    """Refuse a table in which values look like codes for missing ones, and say how to tell."""
    columns = {
        name: rows.values[:, j] for j, name in enumerate(layout.columns) if name not in categories
    }
    series = None if rows.panel is None else rows.panel.codes
    found = {
        name: list(_codes(column, series))
        for name, column in columns.items()
        if not _told(layout.na_values, name)
    }
    named = {name: own for name, own in found.items() if own}
    if not named:
        return
    name = layout.target if layout.target in named else next(iter(named))
    own = named[name]
    others = [other for other in named if other != name]
    also = f"; see also {name_list(others)}" if others else ""
    seen = " and ".join(f"{one.value:.10g} in {counted(one.rows, 'row')}" for one in own)
    given = [one if isinstance(one, str) else plain(one) for one in layout.na_values or ()]
    codes = [*given, *_to_empty(named, columns)]
    raise DataError(
        f"{'Target' if name == layout.target else 'Column'} '{name}' is {seen}, the first at "
        f"{rows.where(own[0].first)}, and all other values lie between {own[-1].low:g} and "
        f"{own[-1].high:g}{also}. If that stands for a missing value, use na_values={codes}; "
        "na_values=[] takes it for a value like any other.",
        remedy={"na_values": codes},
    )


def _told(given: Sequence[float | str] | None, name: str) -> bool:
    """Whether it was said what stands for a missing value in a column: words say of no numbers."""
    if given is None:
        return False
    own = codes_of(given, name)
    return not given or any(not isinstance(code, str) for code in own)


def _to_empty(
    named: Mapping[str, Sequence[Code]], columns: Mapping[str, FloatArray]
) -> list[float | str]:
    """Return the codes, each with its columns if another one has it among its values."""
    values = sorted({one.value for own in named.values() for one in own})
    wanted: list[float | str] = []
    for value in values:
        own = [name for name, codes in named.items() if value in [one.value for one in codes]]
        elsewhere = any((columns[name] == value).any() for name in columns if name not in own)
        number = plain(value)
        wanted += [f"{name}={number}" for name in own] if elsewhere else [number]
    return wanted


def plain(value: float) -> float:
    """Write a whole number without a point.

    Examples
    --------
    >>> plain(-200.0), plain(99.9)
    (-200, 99.9)
    """
    return int(value) if abs(value) < HUGE and value == int(value) else value


def _codes(column: FloatArray, series: IntArray | None) -> Iterator[Code]:
    """Yield the codes of a column, outermost first."""
    ends = (np.fmin.reduce(column), np.fmax.reduce(column))
    if not any(np.isfinite(end) and _may_be(end, column) for end in ends):
        return  # as in most columns, without a look at all values
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    amid = partial(_amid_others, column, series)
    for _ in range(MOST_CODES):
        for end in (0, -1):
            if len(values) > FEW_VALUES and _is_code(values, counts, end, amid):
                value, rest = float(values[end]), values[1:] if end == 0 else values[:-1]
                row = int((column == value).argmax())
                yield Code(value, int(counts[end]), row, float(rest[0]), float(rest[-1]))
                values, counts = rest, counts[1:] if end == 0 else counts[:-1]
                break
        else:
            return


def possible_code(column: FloatArray) -> Code | None:
    """Return a value that may be a code, though it may be a value, too: nothing for `check_codes`.

    Zero far from all others; a usual code among them that occurs far more often than any; or the
    one negative number among counts, if it occurs more often than the least of them.

    Examples
    --------
    >>> possible_code(np.array([0.0] * 9 + [*range(500, 540)])).value
    0.0
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    if _below_counts(values) and counts[0] >= max(OFTEN, RISING * counts[1]):
        row = int((column == values[0]).argmax())
        return Code(float(values[0]), int(counts[0]), row, float(values[1]), float(values[-1]))
    if len(values) <= FEWEST_VALUES:
        return None
    most = int(counts.argmax())
    others, next_most = np.delete(values, most), int(np.delete(counts, most).max())
    value, count, low, high = float(values[most]), int(counts[most]), others[0], others[-1]
    zero = value == 0.0 and count >= TIMES and max(low, -high) > high - low
    if zero or (is_usual(value) and count >= OFTEN * next_most):
        return Code(value, count, int((column == value).argmax()), float(low), float(high))
    return None


def _may_be(value: float, column: FloatArray) -> bool:
    """Whether a value is one that a program may write for none, or occurs several times."""
    return abs(value) >= HUGE or int(np.count_nonzero(column == value)) > 1


def _is_code(values: FloatArray, counts: IntArray, end: int, amid: Callable[[float], bool]) -> bool:
    """Whether the first or the last of the different values is a code.

    It stands alone at the end of all values, and either is a usual code or lies where no other
    value does: below zero, or farther away than all others are apart. Or it is the one negative
    number among counts, and frequent or far from them. ``amid`` says whether every series with a
    value has others.
    """
    value, count, others = float(values[end]), int(counts[end]), np.delete(values, end)
    if end == 0 and count >= TIMES and _below_counts(values):
        far = float(others[0]) - value > float(others[-1] - others[0])
        if far or count >= COUNTED * counts.sum():
            return amid(value)
    near = others[: len(others) // 2 + 2] if end == 0 else others[-(len(others) // 2) - 2 :]
    away = abs(value - float(others[end]))
    gaps = np.sort(np.diff(near))  # the largest may be those between other codes
    usual = gaps[-1] if len(gaps) < FEWEST_VALUES else gaps[-MOST_CODES]
    if value == 0.0 or away <= ALONE * usual:
        return False
    apart = float(others[-1] - others[0])
    if is_usual(value) and abs(value) < HUGE:
        return count > 1
    if is_usual(value) and away > DWARFED * apart:
        return True
    outside = value < 0 <= others[0] or away > apart
    return count >= TIMES and len(others) >= FEWEST_VALUES and outside and amid(value)


def _below_counts(values: FloatArray) -> bool:
    """Whether all different values are whole numbers, and none but the first is negative.

    Few of them are signs, states or switches rather than counts.
    """
    counts = len(values) > FEW_VALUES + 1 and values[0] < 0 <= values[1]
    return bool(counts and (values == np.round(values)).all())


def _amid_others(column: FloatArray, series: IntArray | None, value: float) -> bool:
    """Whether every one of the series in which a value occurs has several others, too."""
    if series is None:
        return True
    own = np.isin(series, np.unique(series[column == value])) & np.isfinite(column)
    pairs = np.unique(np.stack([series[own], column[own]]), axis=1)
    return bool(np.unique(pairs[0], return_counts=True)[1].min() > FEW_VALUES)


def is_usual(value: float) -> bool:
    """Whether a number is one that often stands for a missing value.

    Examples
    --------
    >>> [is_usual(value) for value in (-200.0, 9999.0, -99.9, -3.4e38, -1.0, 998.0)]
    [True, True, True, True, False, False]
    """
    size = abs(value)
    nines = size >= 99.0 and set(f"{size:.10g}".replace(".", "")) == {"9"}
    return size >= HUGE or size in USUAL or nines
