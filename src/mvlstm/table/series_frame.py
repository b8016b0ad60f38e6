"""`SeriesFrame`: the one validated table that all code below trusts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.encoding import calendar_columns
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Panel, after_last
from mvlstm.table.spacing import Step, add_steps, describe_step, describe_time, ticks, usual_clock
from mvlstm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Category:
    """A categorical column as codes, which say more than the columns of 0 and 1 made of it."""

    name: str
    levels: tuple[str, ...]  # all that the table has, whether training had them or not
    codes: IntArray  # (rows,) indices into the levels
    ahead: IntArray  # (future rows,) the same of rows after the last known target


@dataclass(frozen=True, eq=False)
class Future:
    """Rows after the last known target, with the values that are known ahead."""

    values: FloatArray  # (rows, inputs), NaN for inputs that are not known ahead
    times: pd.Index
    segments: IntArray  # (rows,) the segment that each continues; those of one are adjacent


@dataclass(frozen=True, eq=False, repr=False)
class SeriesFrame:
    """A validated table of time series: numbers only, ordered in time, target last.

    Code that receives one trusts it. Build it with `build_frame` or `rebuild_frame`, both of
    which also take a frame, read it with other settings and check only what these change;
    `rows` takes a part of it.
    """

    values: FloatArray  # (rows, columns), C-contiguous and finite; the target is the last column
    columns: tuple[str, ...]
    variables: tuple[str, ...]  # target last; a variable may own several columns
    groups: tuple[int, ...]  # for each column, the index of its variable
    times: pd.Index  # dates or integers, strictly increasing within a series
    segments: IntArray  # (rows,) rows of one follow one another; no window crosses to the next
    step: Step | None  # median spacing of the rows; None if there is one and nothing to go by
    layout: Layout
    notes: tuple[str, ...] = ()  # sentences on what was done to the table
    doubts: tuple[str, ...] = ()  # what makes the end, where a forecast starts, less than it seems
    panel: Panel | None = None  # the series of each row, where there are several
    future: Future | None = None  # rows given beyond the last known target of a series
    measured: BoolArray | None = None
    """Whether the target was there, (rows,); None if it was in all. What was filled in serves as
    input; forecasts are not scored against it, and models do not learn to forecast it."""
    categories: tuple[Category, ...] = ()  # from which columns of other levels can be made

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.layout.target

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_variables(self) -> int:
        """Number of variables, target included."""
        return len(self.variables)

    @property
    def target_values(self) -> FloatArray:
        """The target's value in each row (a view)."""
        return self.values[:, -1]

    def rows(self, keep: BoolArray | slice) -> SeriesFrame:
        """Return some of the rows, as a frame.

        Rows left out between others open a gap, unless gaps are closed. Future rows stay with the
        segments whose last row stays.
        """
        kept = np.arange(self.n_rows)[keep]
        whole = np.isin(np.flatnonzero(np.diff(self.segments, append=-1)), kept)
        segments, future = self.segments[kept], self.future
        ahead = np.zeros(0, dtype=bool)
        if self.layout.gaps != "close":
            apart = (np.diff(kept) > 1) & (np.diff(segments) == 0)
            segments = segments + np.concatenate([[0], np.cumsum(apart)])
        if future is not None:
            old = self.segments[kept]
            last = np.flatnonzero(np.diff(old, append=-1))
            ahead = np.isin(future.segments, np.unique(self.segments)[whole])
            continued = segments[last][np.searchsorted(old[last], future.segments[ahead])]
            future = Future(future.values[ahead], future.times[ahead], continued)
        panel = None if self.panel is None else self.panel.take(kept)
        measured = None if self.measured is None else self.measured[kept]
        return replace(
            self,
            values=self.values[keep],
            times=self.times[kept],
            segments=segments,
            doubts=self.doubts if whole.all() else filled_ends(measured, panel),
            panel=panel,
            future=future if future is not None and len(future.times) else None,
            measured=None if measured is None or measured.all() else measured,
            categories=tuple(
                replace(one, codes=one.codes[kept], ahead=one.ahead[ahead])
                for one in self.categories
            ),
        )

    @cached_property
    def order(self) -> IntArray:
        """For each row, the place of its time among all times that occur."""
        if self.panel is None:
            return np.arange(self.n_rows)
        return pd.factorize(ticks(self.times), sort=True)[0].astype(np.int64, copy=False)

    @cached_property
    def clock(self) -> pd.Index:
        """Every time that occurs, once and in order."""
        return self.times if self.panel is None else self.times.unique().sort_values()

    def last_rows(self) -> IntArray:
        """Return the last row of every series."""
        if self.panel is None:
            return np.array([self.n_rows - 1])
        return np.flatnonzero(np.append(self.panel.borders, True))

    def names_of(self, rows: IntArray) -> NDArray[Any] | None:
        """Return the names of rows' series, or None if there is one series only."""
        if self.panel is None:
            return None
        return np.array(self.panel.names, dtype=object)[self.panel.codes[rows]]

    def find(self, times: pd.Index, series: NDArray[Any] | None = None) -> IntArray:
        """Return the rows with given times (and series, where there are several); -1 for none."""
        if self.panel is None or series is None:
            return np.asarray(self.times.get_indexer(times), dtype=np.int64)
        code = {name: k for k, name in enumerate(self.panel.names)}
        wanted = np.array([code.get(str(name), -1) for name in series])
        own = pd.MultiIndex.from_arrays([self.panel.codes, ticks(self.times)])
        found = own.get_indexer(pd.MultiIndex.from_arrays([wanted, ticks(times)]))
        return np.asarray(found, dtype=np.int64)

    def future_times(self, origins: IntArray, horizon: int) -> NDArray[Any]:
        """Return the times of the steps ahead of given rows (M,), as an array (M, horizon).

        Where the row ahead exists (in the same segment) it is that row's time; beyond, the last
        time known plus as many steps as are missing. Dates are ``datetime64``, with a zone
        Timestamps, and integers ``int64``.
        """
        origins = np.asarray(origins, dtype=np.int64)
        columns = [self._times_ahead(origins, ahead) for ahead in range(1, horizon + 1)]
        return np.stack([_plain_times(times) for times in columns], axis=1)

    def _times_ahead(self, origins: IntArray, steps: int) -> pd.Index:
        """Return the time this many steps after each row."""
        line = self._line
        place = line.place[origins] + steps
        inside = np.minimum(place, line.last[origins])
        return self._beyond(line.times[inside], place - inside)

    @cached_property
    def _line(self) -> _Line:
        """Rows, and after the rows of each segment its future rows."""
        if self.future is None:
            rows = np.arange(self.n_rows)
            return _Line(rows, segment_ends(self.segments), self.times)
        segments = np.concatenate([self.segments, self.future.segments])
        order = np.argsort(segments, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        last = segment_ends(segments[order])[place[: self.n_rows]]
        return _Line(place, last, self.times.append(self.future.times)[order])

    def values_ahead(self, steps: int) -> tuple[FloatArray, BoolArray]:
        """Return inputs known ahead as they are this many rows later, and which rows have them.

        The values (rows, inputs known ahead) are zero where unknown; a row has them (rows,) if
        all are known: in the table, from its future rows or by the calendar.
        """
        columns = np.flatnonzero(self.layout.ahead)
        line = self._line
        source = line.place[: self.n_rows] + steps
        within = source <= line.last
        rows = self.values[:, columns]
        if self.future is not None:
            joined = np.empty((len(line.place), len(columns)))
            joined[line.place] = np.concatenate([rows, self.future.values[:, columns]])
            rows = joined
        values = np.zeros((self.n_rows, len(columns)))
        values[within] = rows[source[within]]
        beyond = np.flatnonzero(~within)
        owned = np.isin(columns, self.layout.clock_columns)
        if owned.any() and len(beyond):
            clock = calendar_columns(self._times_ahead(beyond, steps), self.layout.calendar)
            values[np.ix_(beyond, np.flatnonzero(owned))] = clock
        return values, within | bool(owned.all() and self.step is not None)

    def _beyond(self, times: pd.Index, excess: IntArray) -> pd.Index:
        """Move each time by its number of steps."""
        if not excess.any():
            return times
        if self.step is None:
            raise DataError(
                "One row alone does not tell how far apart rows are, so the next times are "
                "unknown. Supply at least two rows."
            )
        usual = self._usual_clock
        moved = [add_steps(times[excess == k], self.step, int(k), usual) for k in np.unique(excess)]
        order = np.argsort(np.argsort(excess, kind="stable"), kind="stable")
        return moved[0].append(moved[1:])[order]

    @cached_property
    def _usual_clock(self) -> int | None:
        """The rows' time of day, where steps go by the clock of a zone."""
        zone = getattr(self.times, "tz", None)
        if zone is None or isinstance(self.step, int | pd.Timedelta | None):
            return None
        return usual_clock(self.times)

    def __repr__(self) -> str:
        """Describe the frame in one line."""
        ends = [describe_time(time) for time in (self.times.min(), self.times.max())]
        span = f", {ends[0]} to {ends[1]}" if self.n_rows else ""
        series = "" if self.panel is None else f"{len(np.unique(self.panel.codes)):,} series, "
        return (
            f"SeriesFrame({self.n_rows:,} rows, {series}{self.n_variables} variables, "
            f"target '{self.target}'{span}, step {describe_step(self.step)})"
        )


@dataclass(frozen=True, eq=False)
class _Line:
    """Places of rows and future rows when those of each segment follow one another."""

    place: IntArray  # (rows + future rows,)
    last: IntArray  # (rows,) last place of the row's segment
    times: pd.Index  # by place


def filled_ends(measured: BoolArray | None, panel: Panel | None) -> tuple[str, ...]:
    """Say how many of the last targets, after which a forecast starts, were filled in."""
    if measured is None or measured.all():
        return ()
    filled = after_last(~measured, panel)
    count = int(filled.sum())
    if not count:
        return ()
    which = "target was" if count == 1 else f"{count:,} targets were"
    if panel is not None:
        series = len(np.unique(panel.codes[filled]))
        which = f"targets of {series:,} series, {counted(count, 'row')}, were"
    return (
        f"The last {which} missing and filled in: forecasts start after the last row, and their "
        "intervals take no account of that.",
    )


def segment_ends(segments: IntArray) -> IntArray:
    """For each row, the last row of its segment."""
    borders = np.flatnonzero(np.diff(segments))
    ends = np.append(borders, len(segments) - 1)
    return np.repeat(ends, np.diff(np.concatenate([[-1], ends])))


def _plain_times(times: pd.Index) -> NDArray[Any]:
    if isinstance(times, pd.DatetimeIndex):
        return times.to_numpy() if times.tz is None else np.asarray(times.astype(object))
    return times.to_numpy(dtype=np.int64)
