"""The rows of a table as numbers: read and cleaned, or from a checked frame; what looks wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.columns import (
    as_names,
    check_columns,
    choose_variables,
    name_list,
    numeric_columns,
)
from mvlstm.table.encoding import category_codes, is_category
from mvlstm.table.holes import handle_missing
from mvlstm.table.layout import Layout
from mvlstm.table.panel import Rows, after_last, read_panel
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.table.settings import Columns
from mvlstm.types import BoolArray, FloatArray

FAR = 10.0  # spans of all other values that one alone may be away from them
COMMON = 0.1  # share of the rows above which a value is not odd
FEWEST_VALUES = 20  # different ones, for some to be far from the others


class Raw(NamedTuple):
    """A table's columns as numbers, without missing ones; categories as codes."""

    rows: Rows
    after: Rows  # those without a target at the end
    levels: dict[str, tuple[str, ...]]  # what the codes stand for
    notes: list[str]
    measured: BoolArray  # rows whose target was there, and not filled in
    dropped: bool = False  # whether any rows were
    doubts: Sequence[str] = ()  # what is to be said of rows dropped at the end


def choose_columns(
    table: pd.DataFrame, names: Sequence[str], layout: Layout, columns: Columns
) -> tuple[Layout, tuple[str, ...]]:
    """Decide what each column is: return the layout with its variables, and the categories."""
    forced = as_names("categorical", columns.categorical, names)
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
    found = {name: table.iloc[:, list(names).index(name)] for name in exogenous}
    categories = tuple(
        name for name, column in found.items() if name in forced or is_category(column)
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
    panel = None
    if layout.series is not None:
        panel, order = read_panel(table, names, layout.series)
        table, times = table.iloc[order], times[order]
    rows = Rows(np.empty((len(table), 0)), times, panel)
    rows.check_order()
    values = numeric_columns(
        table, names, layout.columns, rows.where, skip=categories, fitting=fitting
    )
    levels: dict[str, tuple[str, ...]] = {}
    for name in categories:
        column = table.iloc[:, list(names).index(name)]
        values[:, layout.columns.index(name)], levels[name] = category_codes(column)
    rows = rows._replace(values=values)
    ends = _dropped_ends(rows, layout)
    later = np.zeros(len(values), dtype=bool)
    if layout.known:
        later = _future_rows(rows, layout.missing)
    after = rows.take(later)
    if later.any():
        if later.all():
            raise DataError(f"Target '{layout.target}' has no value at all. Correct the table.")
        rows = rows.take(~later)
    measured = np.isfinite(rows.values[:, -1])
    rows, keep, notes = handle_missing(rows, layout, fitting=fitting)
    incomplete = int(np.isfinite(after.values[:, -1]).sum())
    if incomplete:
        notes.append(f"Dropped {counted(incomplete, 'row')} at the end with missing values.")
    measured = measured if keep is None else measured[keep]
    return Raw(rows, after, levels, notes, measured, incomplete > 0 or keep is not None, ends)


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
    place = {name: frame.groups.index(n) for n, name in enumerate(frame.variables)}
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
    return Raw(Rows(values, frame.times, panel), after, levels, [], measured, doubts=frame.doubts)


def suspicions(raw: Raw, layout: Layout) -> tuple[list[str], list[str]]:
    """Find row numbers among the variables, and values far from all others: one can spoil a fit.

    Not of several series: each has values of its own.
    """
    numbers: list[str] = []
    far: list[str] = []
    for j, name in enumerate(layout.columns if raw.rows.panel is None else ()):
        if name in raw.levels:
            continue
        column = np.ascontiguousarray(raw.rows.values[:, j])
        steps = np.diff(column)
        if name != layout.target and (steps[:63] == 1).all() and (steps > 0).all():
            use = f"use exclude=['{name}'] if so."
            numbers.append(f"Column '{name}' looks like a row number; {use}")
        far += _far_values(name, column, raw.rows)
    return numbers, far


def _far_values(name: str, column: FloatArray, table: Rows) -> Iterator[str]:
    """Note a least or greatest value that is farther from all others than they are apart.

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
            "That can spoil the whole fit: if it is an error, or stands for a missing value, empty "
            "these cells and use missing='fill' or missing='drop'."
        )
