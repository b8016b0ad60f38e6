"""From columns to clean rows of each series: what `mvlstm.table` does to a table of a fitted model.

Messages are those of the package itself, of which nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.runtime.columns import Columns, is_missing, numbers, texts
from mvlstm.runtime.times import SPARE_TIMES, Clock, Times, read_times
from mvlstm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Wanted:
    """The columns of a model: what they are and how they are cleaned."""

    layout: Mapping[str, Any]
    clock: Clock

    @property
    def columns(self) -> tuple[str, ...]:
        """Variables, then the target."""
        return (*(self.layout["variables"] or ()), self.layout["target"])

    @property
    def read(self) -> tuple[str, ...]:
        """Every column that is read: times and series, too."""
        layout = self.layout
        index = layout["index_name"]
        others = [one for one in (index, layout["series"]) if one is not None]
        return (*layout["time"], *others, *SPARE_TIMES, *self.columns)

    @property
    def categories(self) -> list[str]:
        """Columns of text, in the order of the graph's input."""
        return list(self.layout["levels"])

    @property
    def numeric(self) -> list[str]:
        """Columns of numbers, in the order of the graph's input: the target comes last."""
        return [name for name in self.columns if name not in self.layout["levels"]]

    @property
    def known(self) -> tuple[list[int], list[int]]:
        """Places of what is known ahead among the columns of numbers, and those of text."""
        known = self.layout["known"]
        return (
            [self.numeric.index(name) for name in known if name in self.numeric],
            [self.categories.index(name) for name in self.categories if name in known],
        )

    @property
    def masked(self) -> tuple[list[str], list[int]]:
        """Columns of which the model sees what was missing, and places of those known ahead."""
        masked = list(self.layout["typical"])
        return masked, [masked.index(name) for name in self.layout["known"] if name in masked]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one series, in time order.

    Parameters
    ----------
    name : str, optional
        Of the series.
    times : (R,)
    numbers : (R, n) with the target last, missing entries NaN
    texts : (R, m) levels, missing entries None
    """

    name: str | None
    times: Times
    numbers: FloatArray
    texts: NDArray[Any]

    def take(self, rows: Any) -> Rows:
        """Return some of the rows."""
        return Rows(self.name, self.times[rows], self.numbers[rows], self.texts[rows])

    def joined(self, other: Rows) -> Rows:
        """Put rows after these."""
        each = (
            np.concatenate([getattr(self, part), getattr(other, part)])
            for part in ("times", "numbers", "texts")
        )
        return Rows(self.name, *each)

    @property
    def gone(self) -> BoolArray:
        """Where an entry is missing, (R, n + m), the target first."""
        text = np.array([[one is None for one in row] for row in self.texts], dtype=bool)
        missing = [np.isnan(np.roll(self.numbers, 1, axis=1)), text.reshape(self.texts.shape)]
        return np.concatenate(missing, axis=1)

    def where(self, row: int, clock: Clock) -> str:
        """Say where a row is."""
        time = clock.text(self.times[row])
        if self.name is not None:
            return f"{time} in series '{self.name}'"
        if clock.dates:
            return f"{time} (row {row})"
        return f"row {row}" if time == str(row) else f"time {time} (row {row})"


@dataclass(frozen=True, eq=False)
class Series:
    """Clean rows of one series, and after them those that hold what is known ahead.

    Parameters
    ----------
    rows : Rows
        The first ``count`` are the past.
    measured : (count,)
        Whether the target was there.
    marks : (R, k)
        Whether the value of each column that the model sees marked was missing.
    segments : (count,)
        No window crosses from one to the next.
    """

    rows: Rows
    count: int
    measured: BoolArray
    marks: BoolArray
    segments: IntArray


# ------------------------------------------------------------------------------------------ reading


def read_rows(columns: Columns, wanted: Wanted, *, ahead: bool = False) -> list[Rows]:
    """Return the rows of each series; of a table of the future (``ahead``) what is known."""
    layout = wanted.layout
    columns = replace(columns, values={name.strip(): v for name, v in columns.values.items()})
    used = layout["known"] if ahead else wanted.columns
    times = layout["time"] if columns.index is None else []
    series = [] if layout["series"] is None else [layout["series"]]
    _check_present(columns, [*used, *times, *series], ahead=ahead)
    if not columns.rows:
        raise DataError("forecast() received an empty table; supply the most recent rows.")
    moments = read_times(columns, layout, wanted.clock)
    shape = (columns.rows, len(wanted.numeric))
    table, words = np.full(shape, np.nan), np.full((columns.rows, len(wanted.categories)), None)
    for place, column in enumerate(wanted.numeric):
        if column in used:
            table[:, place] = numbers(column, columns.values[column])
    for place, column in enumerate(wanted.categories):
        if column in used:
            words[:, place] = texts(columns.values[column])
    found = []
    for name, rows in _by_series(columns, layout["series"]):
        own = np.arange(len(rows)) if moments is None else moments[rows]
        order = np.argsort(own, kind="stable")
        one = Rows(name, own, table[rows], words[rows]).take(order)
        _check_unique(one, wanted.clock)
        found.append(one)
    return found


def _check_present(columns: Columns, needed: list[str], *, ahead: bool) -> None:
    absent = [name for name in needed if name not in columns.values]
    if not absent:
        return
    if ahead:
        raise DataError(
            f"future=... has the columns {name_list(columns.names)}; missing: {name_list(absent)}. "
            "Supply times and what is known ahead."
        )
    raise DataError(
        f"forecast() received {name_list(columns.names)} but fit() saw {name_list(needed)}; "
        f"missing: {name_list(absent)}. Supply every column the model was fitted on."
    )


def _by_series(columns: Columns, column: str | None) -> list[tuple[str | None, IntArray]]:
    """Return the names of the series in order, and their rows."""
    if column is None:
        return [(None, np.arange(columns.rows))]
    names = texts(columns.values[column])
    absent = [row for row, name in enumerate(names) if is_missing(name)]
    if absent:
        raise DataError(
            f"Series column '{column}' has {len(absent):,} missing values, the first at row "
            f"{absent[0]}. Every row needs the name of its series: fill them in or leave them out."
        )
    return [(name, np.flatnonzero(names == name)) for name in sorted(set(names.tolist()))]


def _check_unique(rows: Rows, clock: Clock) -> None:
    repeated = rows.times[1:] == rows.times[:-1]
    if repeated.any():
        row = int(repeated.argmax())
        raise DataError(
            f"The times are not unique: {clock.text(rows.times[row])} occurs twice. Keep one row "
            "for each time."
        )


# ----------------------------------------------------------------------------------------- cleaning


def clean(rows: Rows, wanted: Wanted, future: Rows | None) -> Series | None:
    """Part the past from what is known ahead and treat what is missing; None without a past."""
    layout = wanted.layout
    later = _later(rows, layout) if layout["known"] else np.zeros(len(rows.times), dtype=bool)
    if later.all():
        return None
    past, after = rows.take(~later), rows.take(later)
    if future is not None:
        new = future.take(future.times > past.times[-1])
        after = after.take(~np.isin(after.times, new.times)).joined(new)
        after = after.take(np.argsort(after.times, kind="stable"))
    gone = past.gone
    past, kept = _complete(past, gone, wanted)
    marks = gone[:, [_named(wanted).index(name) for name in wanted.masked[0]]]
    segments = _segments(past, wanted, dropped=not kept.all())
    after = after.take(slice(_usable(past, after, wanted)))
    marks = np.pad(marks[kept], ((0, len(after.times)), (0, 0)))
    return Series(past.joined(after), len(past.times), ~gone[kept, 0], marks, segments)


def _later(rows: Rows, layout: Mapping[str, Any]) -> BoolArray:
    """Say which rows lie after the last known target, or the last complete row."""
    gone = rows.gone
    last = np.flatnonzero(~gone[:, 0])
    if layout["missing"] == "drop" and not gone.any(axis=1).all():
        last = np.flatnonzero(~gone.any(axis=1))
    return np.arange(len(gone)) > (last[-1] if len(last) else -1)


def _complete(rows: Rows, gone: BoolArray, wanted: Wanted) -> tuple[Rows, BoolArray]:
    """Return rows without missing entries, and which were kept."""
    missing = wanted.layout["missing"]
    if not gone.any():
        return rows, np.ones(len(gone), dtype=bool)
    if missing == "error":
        raise DataError(
            f"{_what_is_missing(rows, gone, wanted)} The model was fitted with missing='error': "
            "correct the table, or fit again with missing='mask', missing='fill' or missing='drop'."
        )
    if missing == "drop":
        kept: BoolArray = np.logical_not(gone.any(axis=1))
    else:
        rows, kept = _filled(rows, gone, wanted)
    if not kept.any():
        raise DataError("No row is complete: dropping rows with missing values leaves none.")
    return rows.take(kept), kept


def _named(wanted: Wanted) -> list[str]:
    """Return the names of the columns of `Rows.gone`: the target, numbers, then text."""
    return [wanted.numeric[-1], *wanted.numeric[:-1], *wanted.categories]


def _what_is_missing(rows: Rows, gone: BoolArray, wanted: Wanted) -> str:
    counts, names = gone.sum(axis=0), _named(wanted)
    incomplete = np.flatnonzero(counts)
    first = int(incomplete[0])
    kind = "Column" if first else "Target"
    value = "value" if counts[first] == 1 else "values, the first"
    where = rows.where(int(gone[:, first].argmax()), wanted.clock)
    others = [f"'{names[j]}' ({int(counts[j]):,})" for j in incomplete[1:]]
    also = f" Also in {', '.join(others[:5])}." if others else ""
    return f"{kind} '{names[first]}' has {counts[first]:,} missing {value} at {where}.{also}"


def _filled(rows: Rows, gone: BoolArray, wanted: Wanted) -> tuple[Rows, BoolArray]:
    """Repeat the last known value of each column; keep the rows from which all have one.

    Of columns that the model sees marked, a typical value stands before the first.
    """
    limit, places = wanted.layout["fill_limit"], np.arange(len(gone))[:, None]
    typical, names = wanted.layout["typical"], _named(wanted)
    source = np.maximum.accumulate(np.where(gone, -1, places), axis=0)
    age = np.where(source < 0, 0, places - source)
    if wanted.layout["missing"] == "fill" and age.max(initial=0) > limit:
        row, column = np.unravel_index(int(age.argmax()), age.shape)
        longest = int(age[row, column])
        raise DataError(
            f"Column '{names[column]}' lacks {longest:,} values in a row from "
            f"{rows.where(int(row) - longest + 1, wanted.clock)}, more than the {limit} that are "
            "filled (fill_limit). Fill this stretch before, or fit again with missing='drop'."
        )
    known, n = np.maximum(source, 0), rows.numbers.shape[1]
    values = np.take_along_axis(rows.numbers, np.roll(known[:, :n], -1, axis=1), axis=0)
    words = np.take_along_axis(rows.texts, known[:, n:], axis=0)
    for name, value in typical.items():
        early = source[:, names.index(name)] < 0
        values[early, wanted.numeric.index(name)] = value
    source[:, [names.index(name) for name in typical]] = 0
    return replace(rows, numbers=values, texts=words), np.asarray((source >= 0).all(axis=1))


def _segments(rows: Rows, wanted: Wanted, *, dropped: bool) -> IntArray:
    """Give every stretch without a gap a number, or refuse gaps."""
    clock, gaps = wanted.clock, wanted.layout["gaps"]
    uneven = rows.times[1:] != clock.after(rows.times[:-1])
    if gaps == "close" or not uneven.any():
        return np.zeros(len(rows.times), dtype=np.int64)
    if gaps == "respect":
        return np.concatenate([[0], np.cumsum(uneven)])
    row = int(uneven.argmax())
    cause = " (dropping rows with missing values opens gaps)" if dropped else ""
    whose = "" if rows.name is None else f" in series '{rows.name}'"
    expected = clock.after(rows.times[[row]])[0]
    there, here, due = (clock.text(time) for time in (*rows.times[row : row + 2], expected))
    raise DataError(
        f"The rows are not evenly spaced{cause}: {here} comes after {there}{whose}, where {due} is "
        "due. The model was fitted with gaps='error': supply every row, or fit again with "
        "gaps='close' or gaps='respect'."
    )


def _usable(past: Rows, after: Rows, wanted: Wanted) -> int:
    """Return how many rows of the future continue the past with all that is known ahead."""
    if not len(after.times):
        return 0
    numeric, words = wanted.known
    complete = ~np.isnan(after.numbers[:, numeric]).any(axis=1)
    complete &= np.array([all(row[k] is not None for k in words) for row in after.texts])
    if wanted.layout["gaps"] != "close":
        before = np.concatenate([past.times[-1:], after.times[:-1]])
        broken = after.times != wanted.clock.after(before)
        if broken[0] and wanted.layout["gaps"] == "error":
            raise DataError(
                "The rows given for the future do not continue from the last one known: "
                f"{wanted.clock.text(after.times[0])} comes after "
                f"{wanted.clock.text(past.times[-1])}. Supply every row between."
            )
        complete &= ~broken
    return len(complete) if complete.all() else int(complete.argmin())


def short_of_rows(series: Series, window: int, horizon: int, lead: int) -> str:
    """Say that no window ends at the last row."""
    gap = ""
    if len(np.unique(series.segments)) > 1:
        since = int((series.segments == series.segments[-1]).sum())
        gap = f" without a gap, and {counted(since, 'row')} came after the last one"
    return (
        f"forecast() received {series.count:,} usable rows; window={window} with "
        f"horizon={horizon} needs {window + lead} rows{gap}. Supply a longer history."
    )
