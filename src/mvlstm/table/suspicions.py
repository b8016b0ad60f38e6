"""What looks wrong with a table that can be fitted: odd columns, values, and what gives away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mvlstm._words import counted, name_list
from mvlstm.table.codes import plain
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Panel, Rows
from mvlstm.table.reading import Raw
from mvlstm.types import BoolArray, FloatArray, IntArray

FAR = 10.0  # spans of all other values that one alone may be away from them
MOST_FAR = 5  # different values at either end that may be far from all others together
MOST_SERIES = 1_000  # of which each is looked at for such values
COMMON = 0.1  # share of the rows above which a value is not odd
FEWEST_VALUES = 20  # different ones, for some to be far from the others
LATEST = 5_000  # rows on which it is measured what gives the target away
FEWEST = 50  # rows that can tell
SHIFTS = 48  # rows ahead at which a variable may repeat the target
LAGS = 26  # of the target's own past: two more than a day of hours
GIVEN = 0.02  # share of the error of the target's own past below which something is given away
WHERE: tuple[int, ...] = (0, *range(1, SHIFTS + 1), *range(-1, -LAGS, -1))
PIECE, MOST_PIECES = 8, 50  # rows of a piece at least, and pieces, of a map of any shape
EXACT = 1e-3  # standard deviations of the target within which a column is a copy of it


def suspicions(raw: Raw, layout: Layout, segments: IntArray) -> tuple[list[str], list[str]]:
    """Return notes, and warnings: row numbers, copies; values far away, what is given away.

    Several series have values of their own each.
    """
    notes: list[str] = []
    warned: list[str] = []
    for j, name in enumerate(layout.columns):
        if name in raw.levels:
            continue
        column = np.ascontiguousarray(raw.rows.values[:, j])
        if raw.rows.panel is not None:
            pieces = islice(_pieces(raw.rows.panel), MOST_SERIES)
            found = (_far_group(name, column[one], raw.rows, one.start) for one in pieces)
            warned += next(filter(None, found), [])
            continue
        steps = np.diff(column)
        even = len(steps) > 0 and np.allclose(steps[:63], steps[0], rtol=1e-6, atol=0.0)
        if name != layout.target and even and (steps > 0).all():
            use = f"use exclude=['{name}'] if so."
            notes.append(f"Column '{name}' looks like a row number or a time; {use}")
        warned += list(_far_values(name, column, raw.rows)) or _far_group(name, column, raw.rows, 0)
    given, copies = _given_away(raw, layout, segments)
    return notes + copies, warned + given


def _far_values(name: str, column: FloatArray, table: Rows) -> Iterator[str]:
    """Tell of a least or greatest value that is farther from all others than they are apart.

    One that occurs several times is probably a code for something missing. One that occurs once
    may be what a heavy tail brings, so it must be ten times as far.
    """
    least, most = float(column.min()), float(column.max())
    middle = least / 2 + most / 2
    upper = int(np.count_nonzero(column > middle))
    for value, count in ((least, int(np.count_nonzero(column < middle))), (most, upper)):
        if not 0 < count <= COMMON * len(column):  # a value this far away is alone in its half
            continue
        rows = np.flatnonzero(column == value)
        others = column[column != value]
        low, high = float(others.min()), float(others.max())
        away = max(low - value, value - high)
        if away <= (high - low) * (1.0 if len(rows) > 1 else FAR):
            continue
        if len(np.unique(others)) < FEWEST_VALUES:
            continue
        yield (
            f"Column '{name}' is {value:g} in {counted(len(rows), 'row')}, the first at "
            f"{table.where(int(rows[0]))}; all other values lie between {low:g} and {high:g}. "
            "That can spoil the whole fit: if it is an error, or stands for a missing value, use "
            f"na_values=[{plain(value)}] with missing='mask'."
        )


def _pieces(panel: Panel) -> Iterator[slice]:
    """Yield the rows of each series."""
    borders = np.concatenate([[0], np.flatnonzero(panel.borders) + 1, [len(panel.codes)]])
    return (slice(int(low), int(high)) for low, high in pairwise(borders))


def _far_group(name: str, column: FloatArray, table: Rows, start: int) -> list[str]:
    """Tell of several different values that are far from all others, on one side or on both.

    ``start`` is the row of the table that the column begins with.
    """
    low, high = np.quantile(column, [COMMON, 1.0 - COMMON])
    if float(column.max()) / FAR - float(column.min()) / FAR <= high - low:
        return []  # as of most columns: no value is as far as that from those between
    values = np.unique(column)
    for below, above in sorted(np.ndindex(MOST_FAR + 1, MOST_FAR + 1), key=sum):
        core = values[below : len(values) - above]
        if len(core) < FEWEST_VALUES:
            break
        least = FAR * (core[-1] - core[0])
        far = [core[0] - one for one in values[:below][-1:]]
        far += [one - core[-1] for one in values[len(values) - above :][:1]]
        rows = np.flatnonzero((column < core[0]) | (column > core[-1]))
        if far and min(far) > least and len(rows) <= COMMON * len(column):
            found = [plain(one) for one in np.unique(column[rows])]
            return [
                f"Column '{name}' has {counted(len(rows), 'value')} far from all others, the first "
                f"{column[rows[0]]:g} at {table.where(start + int(rows[0]))}; all others lie "
                f"between {core[0]:g} and {core[-1]:g}. That can spoil the whole fit: if they are "
                f"errors, or stand for missing values, use na_values={found} with missing='mask'."
            ]
    return []


# ------------------------------------------------------------------------- what is given away


def _given_away(raw: Raw, layout: Layout, segments: IntArray) -> tuple[list[str], list[str]]:
    """Tell which variables give the target away, and which merely repeat it."""
    rows = slice(0, len(raw.rows.values))
    if raw.rows.panel is not None:
        rows = raw.rows.panel.longest()
    rows = slice(max(rows.start, rows.stop - LATEST), rows.stop)
    values, segments = _of_size_one(raw.rows.values[rows]), segments[rows]
    target, known = values[:, -1], ~raw.absent[rows, -1]
    columns = {
        name: values[:, j] for j, name in enumerate(layout.columns[:-1]) if name not in raw.levels
    }
    spread = float(target[known].std()) if known.any() else 0.0
    if known.sum() < FEWEST or spread == 0.0:
        return [], []
    past = _Past(target, known, segments, spread)
    given, copies = [], []
    ahead = [name for name in columns if name in layout.known]
    if ahead and (found := _known_ahead(past, [columns[name] for name in ahead])):
        guilty = [name for name, counts in zip(ahead, found, strict=True) if counts]
        given.append(
            f"{name_list(guilty)}, known ahead, {'give' if guilty[1:] else 'gives'} the target "
            f"'{layout.target}' away: what is known at a time tells its value almost exactly. "
            f"Unless it really is known before, use exclude={guilty!r}."
        )
    for name in (name for name in columns if name not in layout.known):
        shift = past.shift_of(columns[name])
        if shift is not None and shift > 0:
            given.append(
                f"Column '{name}' tells the target '{layout.target}' {counted(shift, 'row')} later "
                "almost exactly: too good to be true. Unless it really is known then, use "
                f"exclude=['{name}']."
            )
        elif shift is not None:
            when = f"of {counted(-shift, 'row')} before" if shift else "over again"
            copies.append(
                f"Column '{name}' is the target '{layout.target}' {when}, so that they share its "
                f"importance. Use exclude=['{name}'] to give it back."
            )
    return given, copies


@dataclass(frozen=True, eq=False)
class _Past:
    """What the target's own past tells of it, to compare with."""

    target: FloatArray
    known: BoolArray
    segments: IntArray
    spread: float

    def shift_of(self, column: FloatArray) -> int | None:
        """Return how many rows later the target is what a column tells; None if at no time."""
        if np.ptp(column) == 0.0:
            return None
        for shift in WHERE:
            early, late = (slice(None, -shift or None), slice(shift, None))
            if shift < 0:
                early, late = slice(-shift, None), slice(None, shift)
            fine = self.known[late] & (self.segments[early] == self.segments[late])
            if fine.sum() < FEWEST:
                continue
            y, x = self.target[late][fine], column[early][fine]
            left = _left(x[:, None], y)
            if shift <= 0 and left < EXACT * self.spread:
                return shift
            moved = float(np.sqrt(np.mean((y - self.target[early][fine]) ** 2)))
            if shift > 0 and left < GIVEN * moved and left < GIVEN * self.error(shift):
                return shift
        return None

    def error(self, shift: int) -> float:
        """Return the error of a map of the target's past, made ``shift`` rows before."""
        lags = min(LAGS, len(self.target) // 4)
        windows = sliding_window_view(self.target, lags)[: -shift or None]
        ends = np.arange(lags - 1, len(self.target) - shift)
        fine = self.known[ends + shift] & (self.segments[ends - lags + 1] == self.segments[ends])
        fine &= self.segments[ends + shift] == self.segments[ends]
        if fine.sum() < max(FEWEST, 2 * lags):
            return float(self.spread)
        return _left(windows[fine], self.target[ends + shift][fine])


def _known_ahead(past: _Past, columns: Sequence[FloatArray]) -> list[bool] | None:
    """Say which columns matter, if they tell the target together, or one of them alone.

    Together by a linear map of their values and of those of the row before, whose differences a
    running total gives away; alone by a map of any shape.
    """
    fine = past.known[1:] & (np.diff(past.segments) == 0)
    values, y = np.stack(columns, axis=1), past.target[1:][fine]
    x = np.concatenate([values[1:], values[:-1]], axis=1)[fine]
    if len(y) < max(FEWEST, 3 * x.shape[1]):
        return None
    least = GIVEN * past.error(1)
    if _left(x, y) < least:
        whole = np.linalg.lstsq(_centered(x), y - y.mean(), rcond=None)[0]
        size = np.abs(whole) * _centered(x).std(axis=0)
        return [bool(one) for one in (size > GIVEN * past.spread).reshape(2, -1).any(axis=0)]
    alone = [_left_by_bends(one, y) < least for one in x.T[: len(columns)]]
    return alone if any(alone) else None


def _left_by_bends(x: FloatArray, y: FloatArray) -> float:
    """Return the standard deviation that a map of x leaves of y that is linear in pieces.

    The first and the last piece, where values are sparse, do not count.
    """
    pieces = np.array_split(np.argsort(x, kind="stable"), min(MOST_PIECES, len(x) // PIECE))
    return float(np.sqrt(np.mean([_left(x[one, None], y[one]) ** 2 for one in pieces[1:-1]])))


def _of_size_one(values: FloatArray) -> FloatArray:
    """Divide columns by their largest size, so that the square of no value overflows."""
    size = np.abs(values).max(axis=0)
    return np.asarray(values / np.where(size > 0, size, 1.0))


def _centered(x: FloatArray) -> FloatArray:
    spread = x.std(axis=0)  # zero for different values whose squares are too small for a number
    steady = (np.ptp(x, axis=0) == 0) | (spread == 0)
    return np.asarray((x - x.mean(axis=0)) / np.where(steady, 1.0, spread))


def _left(x: FloatArray, y: FloatArray) -> float:
    """Return the standard deviation that a linear map of x leaves of y."""
    if x.shape[1] == 1:
        x0, y0 = x[:, 0] - x[:, 0].mean(), y - y.mean()
        size = float(x0 @ x0)
        y0 = y0 - (float(x0 @ y0) / size) * x0 if size > 0 else y0
        return float(y0.std())
    found = np.linalg.lstsq(_centered(x), y - y.mean(), rcond=None)[0]
    return float((y - y.mean() - _centered(x) @ found).std())
