"""The rows of a table as numbers: read and cleaned, or from a checked frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.table.codes import check_codes
from mvlstm.table.columns import (
    as_names,
    check_columns,
    choose_variables,
    numeric_columns,
    without_codes,
)
from mvlstm.table.encoding import category_codes, is_category
from mvlstm.table.holes import handle_missing
from mvlstm.table.layout import MISSING, Layout
from mvlstm.table.panel import Rows, after_last, read_panel
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.table.settings import Columns, columns_of_codes
from mvlstm.types import BoolArray, IntArray


class Raw(NamedTuple):
    """A table's columns as numbers, without missing ones; categories as codes."""

    rows: Rows
    after: Rows  # those without a target at the end
    levels: dict[str, tuple[str, ...]]  # what the codes stand for
    notes: list[str]
    absent: BoolArray  # (rows, columns) whether a value was missing, and is filled in
    measured: BoolArray  # rows whose target was there, and not filled in
    dropped: bool = False  # whether any rows were
    doubts: Sequence[str] = ()  # what is to be said of rows dropped at the end


def choose_columns(
    table: pd.DataFrame, names: Sequence[str], layout: Layout, columns: Columns
) -> tuple[Layout, tuple[str, ...]]:
    """Decide what each column is: return the layout with its variables, and the categories."""
    forced = as_names("categorical", columns.categorical, names)
    check_columns("Column", columns_of_codes(layout.na_values or ()), names, "na_values")
    roles = {
        "known": ("Known variable", layout.known),
        "categorical": ("Categorical column", forced),
    }
    for argument, (what, wanted) in roles.items():
        check_columns(what, wanted, names, argument)
    chosen = None
    if columns.variables is not None:
        asked = as_names("variables", columns.variables, names)
        chosen = tuple(dict.fromkeys([*asked, *layout.known]))
    exogenous = choose_variables(
        names,
        target=layout.target,
        time=layout.time,
        series=layout.series,
        variables=chosen,
        exclude=layout.exclude,
    )
    for argument, (_, wanted) in roles.items():
        for name in wanted:
            if name not in exogenous:
                others = f"not one of the variables {name_list(exogenous)}"
                raise DataError(
                    f"'{name}' is named in {argument}, but it is "
                    f"{'the target' if name == layout.target else others}. Take it out of "
                    f"{argument}=... or make it a variable."
                )
    place = {name: j for j, name in enumerate(names)}
    categories = tuple(
        name for name in exogenous if name in forced or is_category(table.iloc[:, place[name]])
    )
    return replace(layout, variables=exogenous), categories


def read_values(
    table: pd.DataFrame,
    names: Sequence[str],
    times: pd.Index,
    layout: Layout,
    categories: Sequence[str],
    *,
    fitting: bool,
) -> Raw:
    """Put series together, check the order of times, read numbers, deal with missing ones."""
    panel, order, notes = None, np.arange(len(table)), []
    if layout.series is not None:
        panel, order = read_panel(table, names, layout.series)
    rows = Rows(np.empty((len(table), 0)), times[order], panel)
    sorting = rows.in_order(layout.duplicates)
    if sorting is not None:
        late = int((np.diff(sorting[0]) < 0).sum())
        if late:
            notes.append(f"Sorted the rows by time, which fell in {counted(late, 'place')}.")
        rows, order = rows.take(sorting[0]), order[sorting[0]]
    if (np.diff(order) != 1).any():
        table = table.iloc[order]
    codes = layout.na_values or ()
    values = numeric_columns(
        table, names, layout.columns, rows.where, skip=categories, na_values=codes, fitting=fitting
    )
    levels: dict[str, tuple[str, ...]] = {}
    missing = MISSING if layout.missing == "mask" else None
    for name in categories:
        column, j = table.iloc[:, list(names).index(name)], layout.columns.index(name)
        column = without_codes(column, codes, name)
        values[:, j], levels[name] = category_codes(column, missing=missing)
    rows = rows._replace(values=values)
    if sorting is not None and sorting[1][-1] + 1 < len(order):
        notes.append(_merged_note(len(order) - int(sorting[1][-1]) - 1, layout.duplicates))
        rows = _merged(rows, sorting[1], layout, levels)
    if fitting:
        check_codes(rows, layout, levels)
    ends = _dropped_ends(rows, layout)
    later = np.zeros(len(rows.values), dtype=bool)
    if layout.known:
        later = _future_rows(rows, layout.missing)
    after = rows.take(later)
    if later.any():
        if later.all():
            raise DataError(f"Target '{layout.target}' has no value at all. Correct the table.")
        rows = rows.take(~later)
    step = layout.step or rows.step
    mended = handle_missing(rows, layout, step, fitting=fitting)
    notes += mended.notes
    incomplete = int(np.isfinite(after.values[:, -1]).sum())
    if incomplete:
        notes.append(f"Dropped {counted(incomplete, 'row')} at the end with missing values.")
    return Raw(
        mended.rows,
        after,
        levels,
        notes,
        mended.absent,
        ~mended.absent[:, -1],
        incomplete > 0 or mended.dropped,
        ends,
    )


def _merged_note(count: int, duplicates: str) -> str:
    rows = f"{counted(count, 'row')} at times that occur twice"
    done = {"mean": "into the mean of their time", "first": "into the first of their time"}
    return f"Merged {rows} {done.get(duplicates, 'into the last of their time')}."


def _merged(
    rows: Rows, number: IntArray, layout: Layout, levels: Mapping[str, tuple[str, ...]]
) -> Rows:
    """Make one row of those at the same time; a value that one lacks is taken from another."""
    how = {
        j: "first" if name in levels and layout.duplicates == "mean" else layout.duplicates
        for j, name in enumerate(layout.columns)
    }
    found = pd.DataFrame(rows.values).groupby(number).agg(how)
    first = np.flatnonzero(np.diff(number, prepend=-1))
    kept = rows.take(first)
    return kept._replace(values=np.array(found, dtype=np.float64, order="C"))


def _future_rows(rows: Rows, missing: str) -> BoolArray:
    """Say which rows lie after the last known target, in their series where there are several.

    Where incomplete rows are dropped it is the last complete row that counts: later ones may
    still hold what is known ahead.
    """
    later = after_last(np.isnan(rows.values[:, -1]), rows.panel)
    if missing != "drop":
        return later
    incomplete = after_last(np.asarray(~np.isfinite(rows.values).all(axis=1)), rows.panel)
    return later if incomplete.all() else incomplete


def _dropped_ends(rows: Rows, layout: Layout) -> list[str]:
    """Say that rows at the end are dropped though their target is known, and what they lack."""
    if layout.missing != "drop":
        return []
    absent = ~np.isfinite(rows.values)
    late = after_last(np.asarray(absent.any(axis=1)), rows.panel) & ~absent[:, -1]
    if not late.any() or late.all():
        return []
    names = [layout.columns[j] for j in np.flatnonzero(absent[late].any(axis=0))]
    whose = "" if rows.panel is None else " of series"
    return [
        f"Dropped {counted(int(late.sum()), 'row')} at the end{whose} for lack of "
        f"{name_list(names)}, from {rows.where(int(late.argmax()))} on, though the target is known "
        "there: forecasts start earlier."
    ]


def take_rows(frame: SeriesFrame, layout: Layout) -> Raw:
    """Return a frame's rows with the columns of a layout, as `read_values` would read them."""
    codes = {one.name: one for one in frame.categories}
    place = {frame.variables[n]: c for c, n in enumerate(frame.groups)}  # the last of each
    wanted = [place[name] for name in layout.columns]
    levels = {name: codes[name].levels for name in layout.columns if name in codes}
    values, panel, future = frame.values, frame.panel, frame.future
    if levels or wanted != list(range(values.shape[1])):
        values = np.ascontiguousarray(values[:, wanted])
    after = Rows(np.empty((0, len(wanted))), frame.times[:0], None)
    if future is not None:
        after = Rows(future.values[:, wanted], future.times, None)
    if panel is not None:
        first = np.searchsorted(frame.segments, [] if future is None else future.segments)
        after = after._replace(panel=panel.take(first))
    for name in levels:
        j = layout.columns.index(name)
        values[:, j], after.values[:, j] = codes[name].codes, codes[name].ahead
    measured = np.ones(len(values), dtype=bool) if frame.measured is None else frame.measured
    absent = np.zeros(values.shape, dtype=bool)
    for j, name in enumerate(layout.columns):
        if name in frame.layout.masked:
            absent[:, j] = frame.values[:, place[name] - 1] > 0
    rows = Rows(values, frame.times, panel)
    return Raw(rows, after, levels, [], absent, measured, doubts=frame.doubts)
