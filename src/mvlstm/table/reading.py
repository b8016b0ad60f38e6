"""The rows of a table as numbers: from a DataFrame, read and cleaned, or from a checked frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.categories import category_codes, is_category
from mvlstm.table.columns import (
    as_names,
    check_columns,
    choose_variables,
    name_list,
    numeric_columns,
)
from mvlstm.table.future import after_last, future_rows
from mvlstm.table.layout import Layout
from mvlstm.table.missing import handle_missing
from mvlstm.table.panel import Panel, read_panel
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.table.settings import Columns
from mvlstm.table.spacing import check_order, position
from mvlstm.types import BoolArray, FloatArray


class Raw(NamedTuple):
    """A table's columns as numbers, without missing ones; categories as codes."""

    values: FloatArray
    times: pd.Index
    levels: dict[str, tuple[str, ...]]  # what the codes stand for
    notes: list[str]
    panel: Panel | None
    after: FloatArray  # rows without a target at the end
    after_times: pd.Index
    after_panel: Panel | None
    measured: BoolArray  # rows whose target was there, and not filled in
    dropped: bool  # whether any rows were
    doubts: Sequence[str]  # what is to be said of rows dropped at the end


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
    check_order(times, panel)
    values = numeric_columns(
        table,
        names,
        layout.columns,
        lambda row: position(times, row, panel),
        skip=categories,
        fitting=fitting,
    )
    levels: dict[str, tuple[str, ...]] = {}
    for name in categories:
        column = table.iloc[:, list(names).index(name)]
        values[:, layout.columns.index(name)], levels[name] = category_codes(column)
    ends = _dropped_ends(values, times, layout, panel)
    later = np.zeros(len(values), dtype=bool)
    if layout.known:
        later = future_rows(values, layout.missing, panel)
    after, after_times = values[later], times[later]
    after_panel = None if panel is None else panel.take(later)
    if len(after):
        if later.all():
            raise DataError(f"Target '{layout.target}' has no value at all. Correct the table.")
        values, times = values[~later], times[~later]
        panel = None if panel is None else panel.take(~later)
    measured = np.isfinite(values[:, -1])
    values, keep, notes = handle_missing(values, times, layout, fitting=fitting, panel=panel)
    incomplete = int(np.isfinite(after[:, -1]).sum())
    if incomplete:
        notes.append(f"Dropped {counted(incomplete, 'row')} at the end with missing values.")
    if keep is not None:
        times, measured = times[keep], measured[keep]
        panel = None if panel is None else panel.take(keep)
    return Raw(
        values=values,
        times=times,
        levels=levels,
        notes=notes,
        panel=panel,
        after=after,
        after_times=after_times,
        after_panel=after_panel,
        measured=measured,
        dropped=incomplete > 0 or (keep is not None and not keep.all()),
        doubts=ends,
    )


def _dropped_ends(
    values: FloatArray, times: pd.Index, layout: Layout, panel: Panel | None
) -> list[str]:
    """Say that rows at the end are dropped though their target is known, and what they lack."""
    if layout.missing != "drop":
        return []
    absent = ~np.isfinite(values)
    late = after_last(np.asarray(absent.any(axis=1)), panel) & ~absent[:, -1]
    if not late.any() or late.all():
        return []
    names = [layout.columns[j] for j in np.flatnonzero(absent[late].any(axis=0))]
    whose = "" if panel is None else " of series"
    return [
        f"Dropped {counted(int(late.sum()), 'row')} at the end{whose} for lack of "
        f"{name_list(names)}, from {position(times, int(late.argmax()), panel)} on, though the "
        "target is known there: forecasts start earlier."
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
    after, after_times, after_panel = np.empty((0, len(wanted))), frame.times[:0], None
    if future is not None:
        after, after_times = future.values[:, wanted], future.times
    if panel is not None:
        first = np.searchsorted(frame.segments, [] if future is None else future.segments)
        after_panel = Panel(panel.codes[first], panel.names)
    for name in levels:
        j = layout.columns.index(name)
        values[:, j], after[:, j] = codes[name].codes, codes[name].ahead
    measured = np.ones(len(values), dtype=bool) if frame.measured is None else frame.measured
    return Raw(
        values=values,
        times=frame.times,
        levels=levels,
        notes=[],
        panel=panel,
        after=after,
        after_times=after_times,
        after_panel=after_panel,
        measured=measured,
        dropped=False,
        doubts=frame.doubts,
    )
