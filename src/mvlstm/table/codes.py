"""Values that stand for a missing one, such as -200 or 9999: found, and asked about."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Rows
from mvlstm.table.settings import codes_of
from mvlstm.types import FloatArray

ALONE = 5.0  # times the usual distance of values that one must be away from its neighbour
HUGE = 1e20  # beyond this a number is what a program writes for none
DWARFED = 1e6  # times as far away as all others are apart: a huge code, not one large value
USUAL = {200.0, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0}  # besides those of nines
FEWEST_VALUES = 20  # different ones, among which an unusual one can be told
FEW_VALUES = 3  # and a usual code
TIMES = 3  # that an unusual one occurs, if it is a code
OFTEN = 10  # times as often as any other value, from which a usual code is one within their range
MOST_CODES = 4  # of one column


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
    found = {
        name: list(_codes(column, several=rows.panel is not None))
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


def _codes(column: FloatArray, *, several: bool) -> Iterator[Code]:
    """Yield the codes of a column, outermost first."""
    ends = (np.fmin.reduce(column), np.fmax.reduce(column))
    if not any(np.isfinite(end) and _may_be(end, column) for end in ends):
        return  # as in most columns, without a look at all values
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    for _ in range(MOST_CODES):
        for end in (0, -1):
            if len(values) > FEW_VALUES and _is_code(values, int(counts[end]), end, several):
                value, rest = float(values[end]), values[1:] if end == 0 else values[:-1]
                row = int((column == value).argmax())
                yield Code(value, int(counts[end]), row, float(rest[0]), float(rest[-1]))
                values, counts = rest, counts[1:] if end == 0 else counts[:-1]
                break
        else:
            return


def possible_code(column: FloatArray) -> Code | None:
    """Return a value that may be a code, though it may be a value, too: nothing for `check_codes`.

    Zero far from all others; or a usual code among them that occurs far more often than any.

    Examples
    --------
    >>> possible_code(np.array([0.0] * 9 + [*range(500, 540)])).value
    0.0
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
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


def _is_code(values: FloatArray, count: int, end: int, several: bool) -> bool:
    """Whether the first or the last of the different values is a code.

    It stands alone at the end of all values, and either is a usual code or lies where no other
    value does: below zero, or farther away than all others are apart.
    """
    value, others = float(values[end]), np.delete(values, end)
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
    return not several and count >= TIMES and len(others) >= FEWEST_VALUES and outside


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
