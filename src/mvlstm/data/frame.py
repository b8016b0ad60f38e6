"""`SeriesFrame`: the one validated table, and every check that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._columns import (
    as_names,
    choose_variables,
    column_names,
    exclude_hint,
    name_list,
    numeric_columns,
    option_list,
)
from mvlstm.data._gaps import check_spacing, find_segments
from mvlstm.data._missing import handle_missing
from mvlstm.data._steps import (
    Step,
    add_steps,
    check_order,
    describe_step,
    describe_time,
    find_step,
    position,
)
from mvlstm.data._times import CLOCK_PARTS, read_times
from mvlstm.data.layout import Gaps, Layout, Missing
from mvlstm.errors import DataError

__all__ = ["Layout", "SeriesFrame", "build_frame", "rebuild_frame"]


@dataclass(frozen=True, eq=False, repr=False)
class SeriesFrame:
    """A validated table of time series: numbers only, ordered in time, target last.

    Code that receives one trusts it. Build it with `build_frame` or `rebuild_frame`.

    Attributes
    ----------
    values : float64 array, (rows, columns)
        C-contiguous and finite; the target is the last column.
    columns : tuple of str
        One name a column of ``values``.
    variables : tuple of str
        One name a variable, target last. A variable may own several columns.
    groups : tuple of int
        For each column, the index of its variable.
    times : Index
        The strictly increasing time of each row: a DatetimeIndex or integers.
    segments : int64 array, (rows,)
        Rows of one segment follow one another; no window crosses from one to the next.
    step : Timedelta, DateOffset, int or None
        The regular (median) spacing of the rows; None if there is one row and nothing to go by.
    layout : Layout
    notes : tuple of str
        Plain sentences on what was done to the table.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    variables: tuple[str, ...]
    groups: tuple[int, ...]
    times: pd.Index
    segments: NDArray[np.int64]
    step: Step | None
    layout: Layout
    notes: tuple[str, ...] = ()

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
    def target_values(self) -> NDArray[np.float64]:
        """The target's value in each row (a view)."""
        return self.values[:, -1]

    def future_times(self, origins: NDArray[np.int64], horizon: int) -> NDArray[Any]:
        """Return the times of the steps ahead of given rows.

        Where the row ahead exists (in the same segment) it is that row's time; beyond, the last
        time known plus so many steps.

        Parameters
        ----------
        origins : int array, (M,)
            Row numbers of the last values known.
        horizon : int

        Returns
        -------
        array, (M, horizon)
            ``datetime64`` for dates, ``int64`` for integers, Timestamps for dates with a zone.
        """
        origins = np.asarray(origins, dtype=np.int64)
        last = _segment_ends(self.segments)[origins]
        columns = []
        for ahead in range(1, horizon + 1):
            row = np.minimum(origins + ahead, last)
            times = self.times[row]
            columns.append(self._beyond(times, origins + ahead - row))
        return np.stack([_plain_times(times) for times in columns], axis=1)

    def _beyond(self, times: pd.Index, excess: NDArray[np.int64]) -> pd.Index:
        """Move each time by its number of steps."""
        if not excess.any():
            return times
        if self.step is None:
            raise DataError(
                "One row alone does not tell how far apart rows are, so the next times are "
                "unknown. Supply at least two rows."
            )
        moved = [add_steps(times[excess == k], self.step, int(k)) for k in np.unique(excess)]
        order = np.argsort(np.argsort(excess, kind="stable"), kind="stable")
        joined = moved[0].append(moved[1:]) if len(moved) > 1 else moved[0]
        return joined[order]

    def __repr__(self) -> str:
        """Describe the frame in one line."""
        span = (
            f", {describe_time(self.times[0])} to {describe_time(self.times[-1])}"
            if self.n_rows
            else ""
        )
        return (
            f"SeriesFrame({self.n_rows:,} rows, {self.n_variables} variables, "
            f"target '{self.target}'{span}, step {describe_step(self.step)})"
        )


def _segment_ends(segments: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, the last row of its segment."""
    borders = np.flatnonzero(np.diff(segments))
    ends = np.append(borders, len(segments) - 1)
    return np.repeat(ends, np.diff(np.concatenate([[-1], ends])))


def _plain_times(times: pd.Index) -> NDArray[Any]:
    if isinstance(times, pd.DatetimeIndex):
        return times.to_numpy() if times.tz is None else np.asarray(times.astype(object))
    return times.to_numpy(dtype=np.int64)


def build_frame(
    table: pd.DataFrame,
    *,
    target: str,
    time: str | Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = (),
    missing: Missing = "error",
    fill_limit: int = 24,
    gaps: Gaps = "error",
) -> SeriesFrame:
    """Check a table to fit a model on and turn it into a `SeriesFrame`.

    Parameters
    ----------
    table : DataFrame
        One row a time. Integer and boolean columns become floats.
    target : str
        Column to forecast.
    time : str or sequence of str, optional
        Time column, or several that make up the time (``["year", "month", "day", "hour"]``).
        Without it the index is the time: dates or integers.
    variables : sequence of str, optional
        The exogenous columns, in order; by default all that are left.
    exclude : str or sequence of str
        Columns to leave out.
    missing : {"error", "drop", "fill"}
        Missing or infinite values: refuse them, drop their rows, or repeat the last known value.
    fill_limit : int
        Most rows in a row that ``"fill"`` bridges.
    gaps : {"error", "close", "respect"}
        Uneven spacing: refuse it, take the rows as consecutive, or let no window cross a gap.

    Returns
    -------
    SeriesFrame

    Raises
    ------
    DataError
        If the table does not fit; the message names the culprit and what to do.

    Examples
    --------
    >>> table = pd.DataFrame({"rain": [0.0, 1.0, 0.5], "level": [3, 4, 6]})
    >>> build_frame(table, target="level").columns
    ('rain', 'level')
    """
    names = column_names(table)
    layout = Layout(
        target=str(target),
        time=as_names("time", time),
        exclude=as_names("exclude", exclude),
        missing=missing,
        fill_limit=fill_limit,
        gaps=gaps,
    )
    layout.check()
    chosen = None if variables is None else as_names("variables", variables)
    exogenous = choose_variables(
        names, target=layout.target, time=layout.time, variables=chosen, exclude=layout.exclude
    )
    layout = replace(layout, variables=exogenous)
    if len(table) < 2:
        rows = "is empty" if len(table) == 0 else "has one row"
        raise DataError(f"The table {rows}; a model needs a history of many rows to learn from.")
    times, read_notes, day_first = read_times(table, names, layout.time)
    layout = replace(layout, day_first=day_first, **_time_facts(times))
    values, times, cleaned = _clean(table, names, times, layout, fitting=True)
    _check_constant(values, layout.columns)
    step = find_step(times)
    layout = replace(layout, step=step)
    segments, gap_notes = find_segments(
        times, step, layout.gaps, dropped=bool(cleaned), fitting=True
    )
    notes = [*read_notes, *cleaned, *gap_notes, *_suspicions(values, layout, names, times)]
    return _assemble(values, times, segments, layout, notes)


def rebuild_frame(table: pd.DataFrame, layout: Layout, *, caller: str = "predict") -> SeriesFrame:
    """Read another table the way an earlier one was read.

    Columns are found by name, in any order; others are ignored. The table may be short, and a
    column may be constant in it. Its rows must be spaced as in fit.

    Parameters
    ----------
    table : DataFrame
    layout : Layout
        As stored in ``SeriesFrame.layout`` by `build_frame`.
    caller : str
        Name of the calling method, for messages.

    Raises
    ------
    DataError
        If a column is missing or the table does not fit in another way.
    """
    names = column_names(table)
    _check_present(table, names, layout, caller)
    if len(table) == 0:
        raise DataError(f"{caller}() received an empty table; supply the most recent rows.")
    times, read_notes, _ = read_times(table, names, layout.time, day_first=layout.day_first)
    _check_time_facts(times, layout, caller)
    values, times, cleaned = _clean(table, names, times, layout, fitting=False)
    step = layout.step if layout.step is not None else find_step(times)
    if step is not None:
        check_spacing(times, step, layout.gaps, caller)
    segments, gap_notes = find_segments(
        times, step, layout.gaps, dropped=bool(cleaned), fitting=False
    )
    known = {*layout.columns, *layout.time, *layout.exclude}
    extra = [name for name in names if name not in known]
    notes = [*read_notes, *cleaned, *gap_notes]
    if extra:
        notes.append(f"Ignored columns that fit() did not see: {name_list(extra)}.")
    return _assemble(values, times, segments, layout, notes)


def _assemble(
    values: NDArray[np.float64],
    times: pd.Index,
    segments: NDArray[np.int64],
    layout: Layout,
    notes: Sequence[str],
) -> SeriesFrame:
    columns = layout.columns
    step = layout.step if layout.step is not None else find_step(times)
    return SeriesFrame(
        values=values,
        columns=columns,
        variables=columns,
        groups=tuple(range(len(columns))),
        times=times,
        segments=segments,
        step=step,
        layout=layout,
        notes=tuple(notes),
    )


def _clean(
    table: pd.DataFrame,
    names: Sequence[str],
    times: pd.Index,
    layout: Layout,
    *,
    fitting: bool,
) -> tuple[NDArray[np.float64], pd.Index, list[str]]:
    """Check the order of the times, read the numbers, and deal with missing ones."""
    check_order(times)
    values = numeric_columns(
        table, names, layout.columns, lambda row: position(times, row), fitting=fitting
    )
    return handle_missing(
        values,
        times,
        layout.columns,
        missing=layout.missing,
        fill_limit=layout.fill_limit,
        fitting=fitting,
    )


def _time_facts(times: pd.Index) -> dict[str, Any]:
    if not isinstance(times, pd.DatetimeIndex):
        return {"time_kind": "integer", "time_zone": None}
    return {"time_kind": "datetime", "time_zone": None if times.tz is None else str(times.tz)}


def _check_time_facts(times: pd.Index, layout: Layout, caller: str) -> None:
    facts = _time_facts(times)
    if facts["time_kind"] != layout.time_kind:
        words = {"datetime": "dates", "integer": "integers"}
        raise DataError(
            f"{caller}() received {words[facts['time_kind']]} as times but fit() saw "
            f"{words[layout.time_kind]}. Give the table the same kind of index or time column."
        )
    if (facts["time_zone"] is None) != (layout.time_zone is None):
        have = f"in zone {facts['time_zone']}" if facts["time_zone"] else "without a time zone"
        seen = f"in zone {layout.time_zone}" if layout.time_zone else "without a time zone"
        raise DataError(
            f"{caller}() received times {have} but fit() saw times {seen}. Convert them first "
            "(in pandas: tz_localize or tz_convert)."
        )


def _check_present(table: pd.DataFrame, names: Sequence[str], layout: Layout, caller: str) -> None:
    from_index = len(layout.time) == 1 and layout.time[0] == table.index.name
    needed = [*layout.columns, *(() if from_index else layout.time)]
    absent = [name for name in needed if name not in names]
    if absent:
        raise DataError(
            f"{caller}() received {name_list(names)} but fit() saw {name_list(needed)}; "
            f"missing: {name_list(absent)}. Supply every column the model was fitted on."
        )


def _check_constant(values: NDArray[np.float64], columns: Sequence[str]) -> None:
    constant = np.flatnonzero(values.min(axis=0) == values.max(axis=0))
    if not len(constant):
        return
    names = [columns[int(j)] for j in constant]
    if names[-1] == columns[-1]:
        raise DataError(
            f"Target '{names[-1]}' is constant (always {values[0, -1]:g}); there is nothing to "
            "forecast. Choose another target (--target) or supply rows in which it changes."
        )
    what = f"Column '{names[0]}' is" if len(names) == 1 else f"Columns {name_list(names)} are"
    raise DataError(
        f"{what} constant (always {values[0, constant[0]]:g}"
        f"{', ...' if len(names) > 1 else ''}) and can tell nothing about the target. "
        f"Use {exclude_hint(names)}."
    )


def _suspicions(
    values: NDArray[np.float64], layout: Layout, names: Sequence[str], times: pd.Index
) -> list[str]:
    """Note columns that were probably meant to be something else."""
    notes = []
    parts = [name for name in names if name.lower() in CLOCK_PARTS and name in layout.columns]
    if (
        not layout.time
        and isinstance(times, pd.RangeIndex)
        and {"year", "month"} <= {part.lower() for part in parts}
    ):
        notes.append(
            f"Columns {name_list(parts)} are used as variables; if they are the time, pass "
            f"time={parts!r} (--time {option_list(parts)})."
        )
    for j, name in enumerate(layout.columns[:-1]):
        start = values[:64, j]
        if (np.diff(start) == 1).all() and (np.diff(values[:, j]) > 0).all():
            notes.append(
                f"Column '{name}' looks like a row number; use {exclude_hint([name])} if so."
            )
    return notes
