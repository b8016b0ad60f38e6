"""From a table to a `SeriesFrame`: every check is made here, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mvlstm._words import name_list
from mvlstm.errors import DataError, warn
from mvlstm.settings import expanded
from mvlstm.table.columns import as_in_table, as_name, as_names, choose_variables, column_names
from mvlstm.table.encoding import (
    calendar_columns,
    check_calendar,
    check_levels,
    choose_parts,
    encode,
    unseen_note,
)
from mvlstm.table.gaps import check_series_steps, check_spacing, find_segments, usable_rows
from mvlstm.table.kinds import as_pandas
from mvlstm.table.layout import Layout
from mvlstm.table.likely_times import check_time
from mvlstm.table.nixtla import recognised
from mvlstm.table.panel import stacked_rows
from mvlstm.table.parts import chronological
from mvlstm.table.reading import Raw, choose_columns, read_values, take_rows
from mvlstm.table.series_frame import Category, Future, SeriesFrame, filled_ends
from mvlstm.table.settings import Cleaning, Columns, read_codes
from mvlstm.table.spacing import ticks
from mvlstm.table.suspicions import suspicions
from mvlstm.table.times import read_times
from mvlstm.types import BoolArray, FloatArray, IntArray

Table: TypeAlias = Any  # a DataFrame of any library, a SeriesFrame, or a path
NUMBERED = (
    "Rows were numbered within each series, since there are no times. If a column holds them, "
    "time=... names it."
)
__all__ = ["Layout", "SeriesFrame", "Table", "build_frame", "check_table", "rebuild_frame"]


def check_table(
    table: Table, columns: Columns, cleaning: Cleaning, *, test: float = 0.0, valid: float = 0.0
) -> SeriesFrame:
    """Check a table to fit a model on and turn it into a `SeriesFrame`.

    Columns are found by name; blanks around names do not matter. Integer and boolean columns
    become floats, text one column per level. A frame is not read again: its columns are chosen
    already (``variables`` and ``exclude`` may leave out some), and only what the other settings
    change is checked.

    Raises `DataError` if the table does not fit, naming the culprit and what to do.

    Parameters
    ----------
    table : DataFrame or SeriesFrame
    test, valid : float
        Shares of the rows (or numbers of them) at the end, from which no levels are learned.

    Examples
    --------
    >>> table = pd.DataFrame({"rain": [0.0, 1.0, 0.5], "level": [3, 4, 6]})
    >>> build_frame(table, target="level").columns
    ('rain', 'level')
    """
    cleaning.check()
    check_calendar(cleaning.calendar, cleaning.holidays)
    table = as_pandas(table)
    if isinstance(table, SeriesFrame):
        layout = _chosen_again(table, columns, cleaning)
        _check_rows(table.n_rows)
        raw, notes = take_rows(table, layout), [*table.notes]
    else:
        layout, raw, notes = _read_table(table, columns, cleaning)
    if layout.missing == "mask" and not layout.typical:
        layout = replace(layout, typical=_typical(raw, layout, test, valid))
    _check_constant(raw.rows.values, layout.columns, raw.levels)
    times, panel, step = raw.rows.times, raw.rows.panel, raw.rows.step
    layout = replace(
        layout,
        step=step,
        levels=_training_levels(raw, layout, test, valid),
        calendar=choose_parts(cleaning.calendar, times, step, layout.columns, cleaning.holidays),
    )
    if step is not None and panel is not None:
        check_series_steps(times, step, panel)
    segments, gap_notes = find_segments(
        times, step, layout.gaps, dropped=raw.dropped, fitting=True, panel=panel
    )
    if isinstance(table, pd.DataFrame):
        odd, doubts = suspicions(raw, layout, segments)
        for message in doubts:
            warn(message)
        notes += [*raw.notes, *gap_notes, *odd, *doubts]
    elif table.layout.gaps != layout.gaps:
        notes += gap_notes
    return _assemble(raw, segments, layout, notes)


build_frame = expanded(columns=Columns, cleaning=Cleaning)(check_table)


def _read_table(
    table: pd.DataFrame, columns: Columns, cleaning: Cleaning
) -> tuple[Layout, Raw, list[str]]:
    """Read the columns and rows of a table; return its layout, its rows and notes on its times."""
    names = column_names(table)
    columns = recognised(columns, names)
    own = columns.series
    layout = Layout(
        target=as_in_table(as_name("target", columns.target), names),
        time=as_names("time", columns.time, [*names, str(table.index.name)]),
        exclude=as_names("exclude", columns.exclude, names),
        **cleaning.repairs,
        na_values=read_codes(columns.na_values),
        known=as_names("known", columns.known, names),
        series=None if own is None else as_in_table(as_name("series", own), names),
    )
    layout, categories = choose_columns(table, names, layout, columns)
    _check_rows(len(table))
    check_time(table, names, layout)
    times, notes, day_first = read_times(table, names, layout.time)
    own, index = layout.series, table.index.name
    named = not layout.time and index is not None and str(index) not in names
    numbers = None if layout.time or not own else stacked_rows(table, names, own, fitting=True)
    layout = replace(
        layout,
        day_first=day_first,
        index_name=str(index) if named else None,
        numbered=numbers is not None,
        **_time_facts(times),
    )
    if numbers is not None:
        times, notes = pd.Index(numbers), (*notes, NUMBERED)
    raw = read_values(table, names, times, layout, categories, fitting=True)
    return layout, raw, [*notes]


def _chosen_again(frame: SeriesFrame, columns: Columns, cleaning: Cleaning) -> Layout:
    """Return the layout of a frame with other settings, refusing other roles of its columns."""
    old = frame.layout
    before = set(old.columns)
    names = [name for name in frame.variables if name in before]
    has = {
        "target": (old.target,),
        "time": (*old.time, old.index_name),
        "series": (old.series,),
        "known": old.known,
        "categorical": tuple(one.name for one in frame.categories),
    }
    for role, own in has.items():
        given = getattr(columns, role)
        asked = as_names(role, as_name(role, given) if role == "target" else given, names)
        if not set(asked) <= set(own):
            raise DataError(
                f"{role}={given!r} does not fit this SeriesFrame, which was built with "
                f"{[name for name in own if name]}. Leave it out, or build a frame of the table "
                "anew."
            )
    chosen, exclude = columns.variables, as_names("exclude", columns.exclude, names)
    variables = choose_variables(
        names,
        target=old.target,
        time=(),
        variables=None if chosen is None else as_names("variables", chosen, names),
        exclude=exclude,
    )
    known = as_names("known", columns.known, names) or old.known
    return replace(
        old,
        variables=variables,
        exclude=tuple(dict.fromkeys([*old.exclude, *exclude])),
        known=tuple(name for name in known if name in variables),
        **cleaning.repairs,
        typical=old.typical if cleaning.missing == "mask" else (),
    )


def rebuild_frame(table: Table, layout: Layout, *, caller: str = "predict") -> SeriesFrame:
    """Read another table the way an earlier one was read.

    Columns are found by name, in any order; blanks around names do not matter, and other columns
    are ignored. The table may be short, and a column may be constant in it. Its rows must be
    spaced as in fit. Messages name the ``caller``.
    """
    table = as_pandas(table)
    if isinstance(table, SeriesFrame):
        raw, notes, extra = _take_again(table, layout, caller)
    else:
        raw, notes, extra = _read_again(table, layout, caller)
    times, panel = raw.rows.times, raw.rows.panel
    step = layout.step or raw.rows.step
    if step is not None:
        check_spacing(times, step, layout.gaps, caller, panel)
    segments, gap_notes = find_segments(
        times, step, layout.gaps, dropped=raw.dropped, fitting=False, panel=panel
    )
    notes += [note for note in gap_notes if note not in notes]
    if extra:
        notes.append(f"Ignored columns that fit() did not see: {name_list(extra)}.")
    return _assemble(raw, segments, layout, notes)


def _read_again(
    table: pd.DataFrame, layout: Layout, caller: str
) -> tuple[Raw, list[str], list[str]]:
    """Read a table as in fit: return its rows, notes and the columns that fit did not see."""
    table = with_fitted_names(table, layout)
    names = column_names(table)
    check_present(names, needed_columns(table, layout, layout.columns), caller)
    _check_rows(len(table), caller)
    time = time_columns(table, names, layout)
    dates = layout.time_kind == "datetime"
    found = read_times(table, names, time, day_first=layout.day_first, written=dates)
    _check_time_facts(found.times, layout, caller)
    times, zone_notes = _in_zone(found.times, layout)
    if layout.numbered and layout.series is not None:
        numbers = stacked_rows(table, names, layout.series)
        times = times if numbers is None else pd.Index(numbers)
    raw = read_values(table, names, times, layout, layout.categories, fitting=False)
    used = {*layout.columns, *time, *layout.exclude, layout.series}
    extra = [name for name in names if name not in used]
    return raw, [*found.notes, *zone_notes, *raw.notes], extra


def _take_again(
    frame: SeriesFrame, layout: Layout, caller: str
) -> tuple[Raw, list[str], list[str]]:
    """Take a frame's rows as those of fit were, refusing columns of another kind."""
    own, wanted = set(frame.layout.columns), set(layout.columns)
    names = [name for name in frame.variables if name in own]
    check_present(names, layout.columns, caller)
    _check_rows(frame.n_rows, caller)
    own = {one.name for one in frame.categories}
    for name in layout.columns:
        if (name in own) != (name in layout.categories):
            kinds = ("numbers", "categories") if name in own else ("categories", "numbers")
            raise DataError(
                f"{caller}() received '{name}' as {kinds[1]} but fit() saw it as {kinds[0]}. Build "
                "the frame with categorical=... as in fit."
            )
    if frame.future is not None and not set(layout.known) <= set(frame.layout.known):
        none = tuple(replace(one, ahead=one.ahead[:0]) for one in frame.categories)
        frame = replace(frame, future=None, categories=none)  # it lacks what is known ahead here
    _check_time_facts(frame.times, layout, caller)
    times, notes = _in_zone(frame.times, layout)
    raw = take_rows(frame, layout)
    raw = raw._replace(rows=raw.rows._replace(times=times))
    return raw, [*frame.notes, *notes], [name for name in names if name not in wanted]


def _check_rows(n_rows: int, caller: str | None = None) -> None:
    """Refuse an empty table, and one of a single row to fit on, which no caller asks for."""
    if caller is None and n_rows < 2:
        rows = "has one row" if n_rows else "is empty"
        raise DataError(f"The table {rows}; a model needs a history of many rows to learn from.")
    if n_rows == 0:
        raise DataError(f"{caller}() received an empty table; supply the most recent rows.")


def time_columns(table: pd.DataFrame, names: Sequence[str], layout: Layout) -> tuple[str, ...]:
    """Return the columns that hold the time: those of fit, or what was its index."""
    name, index = layout.index_name, table.index
    if layout.time or name is None or name not in names or index.name == name:
        return layout.time
    counted_only = isinstance(index, pd.RangeIndex)
    if layout.time_kind == "datetime":
        counted_only = pd.api.types.is_integer_dtype(index.dtype)
    return (name,) if counted_only else ()


def _training_rows(raw: Raw, test: float, valid: float) -> BoolArray:
    """Say which rows are for training."""
    order = np.unique(ticks(raw.rows.times), return_inverse=True)[1]
    return np.asarray(order < chronological(int(order.max()) + 1, test=test, valid=valid).a)


def _typical(raw: Raw, layout: Layout, test: float, valid: float) -> tuple[tuple[str, float], ...]:
    """Return the median of each variable with missing values, which goes in before the first."""
    found: list[tuple[str, float]] = []
    if not raw.absent.any():
        return ()
    training = _training_rows(raw, test, valid)
    for j, name in enumerate(layout.columns):
        if name not in raw.levels and raw.absent[:, j].any():
            column, there = raw.rows.values[:, j], ~raw.absent[:, j]
            own = column[there & training] if (there & training).any() else column[there]
            found.append((name, float(np.median(own))))
            column[np.isnan(column)] = found[-1][1]
    return tuple(found)


def _training_levels(
    raw: Raw, layout: Layout, test: float, valid: float
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the levels of each category that occur in the training rows."""
    if not raw.levels:
        return ()
    training = _training_rows(raw, test, valid)
    found = {
        name: tuple(levels[int(k)] for k in np.unique(raw.rows.values[training, j]))
        for j, name in enumerate(layout.columns)
        if (levels := raw.levels.get(name))
    }
    for name, seen in found.items():
        check_levels(name, seen)
    return tuple(found.items())


def _assemble(raw: Raw, segments: IntArray, layout: Layout, notes: Sequence[str]) -> SeriesFrame:
    rows = raw.rows
    values, unseen = _encode(rows.values, rows.times, raw.levels, layout, raw.absent)
    future, codes_ahead, unseen_ahead = _future(raw, segments, layout)
    categories = tuple(
        Category(name, levels, rows.values[:, j].astype(np.int64), codes_ahead[:, j])
        for j, name in enumerate(layout.columns)
        if (levels := raw.levels.get(name)) is not None
    )
    return SeriesFrame(
        values=values,
        columns=layout.inputs,
        variables=layout.names,
        groups=layout.groups,
        times=rows.times,
        segments=segments,
        step=layout.step or rows.step,
        layout=layout,
        notes=(*notes, *unseen, *unseen_ahead),
        doubts=tuple(dict.fromkeys([*raw.doubts, *filled_ends(raw.measured, rows.panel)])),
        panel=rows.panel,
        future=future,
        measured=None if raw.measured.all() else raw.measured,
        categories=categories,
    )


def _future(
    raw: Raw, segments: IntArray, layout: Layout
) -> tuple[Future | None, IntArray, list[str]]:
    """Keep the rows after the last target, as far as what is known ahead is given.

    Returns them with the codes of their categories, and notes on levels never seen.
    """
    codes = np.zeros((0, len(layout.columns)), dtype=np.int64)
    wanted = [layout.columns.index(name) for name in layout.known]
    complete = np.asarray(np.isfinite(raw.after.values[:, wanted]).all(axis=1))
    if not len(complete):
        return None, codes, []
    rows = raw.after.take(usable_rows(raw.rows, raw.after, complete, layout.step, layout.gaps))
    known = rows.values
    if not len(known):
        return None, codes, []
    known[:, [c for c in range(known.shape[1]) if c not in wanted]] = 0.0
    codes = np.zeros(known.shape, dtype=np.int64)
    for j in map(layout.columns.index, raw.levels):
        codes[:, j] = known[:, j]
    there = np.zeros(known.shape, dtype=bool)
    values, notes = _encode(known, rows.times, raw.levels, layout, there, ahead=True)
    values[:, ~np.array(layout.ahead)] = np.nan
    continued = np.full(len(values), segments[-1])
    if raw.rows.panel is not None and rows.panel is not None:
        ends = np.searchsorted(raw.rows.panel.codes, rows.panel.codes, side="right") - 1
        continued = segments[ends]
    return Future(values, rows.times, continued), codes, notes


def _encode(
    values: FloatArray,
    times: pd.Index,
    found: dict[str, tuple[str, ...]],
    layout: Layout,
    absent: BoolArray,
    *,
    ahead: bool = False,
) -> tuple[FloatArray, list[str]]:
    """Replace codes by one column per level, add the calendar and marks of what is ``absent``.

    Levels never seen are noted. With ``ahead`` the rows come after the last target, and only what
    is known there is noted.
    """
    if not layout.levels and not layout.calendar and not layout.typical:
        return values, []
    levels = dict(layout.levels)
    result = np.empty((len(values), len(layout.inputs)))
    notes, place = [], 0
    for j, name in enumerate(layout.columns):
        column = values[:, j : j + 1]
        if name == layout.target and layout.calendar:
            width = len(layout.clock_columns)
            result[:, place : place + width] = calendar_columns(times, layout.calendar)
            place += width
        if name in levels:
            column, unseen = encode(values[:, j], found[name], levels[name])
            if unseen.any() and (not ahead or name in layout.known):
                notes.append(unseen_note(name, unseen, values[:, j], found[name], ahead=ahead))
        if name in layout.masked:
            column = np.stack([absent[:, j], values[:, j]], axis=1)
        result[:, place : place + column.shape[1]] = column
        place += column.shape[1]
    return result, notes


def _time_facts(times: pd.Index) -> dict[str, Any]:
    if not isinstance(times, pd.DatetimeIndex):
        return {"time_kind": "integer", "time_zone": None}
    return {"time_kind": "datetime", "time_zone": None if times.tz is None else str(times.tz)}


def _check_time_facts(times: pd.Index, layout: Layout, caller: str) -> None:
    kind, zone = _time_facts(times).values()
    if kind != layout.time_kind:
        words = {"datetime": "dates", "integer": "integers"}
        name = layout.index_name
        hint = "" if name is None else f": make '{name}' the index, or fit with time='{name}'"
        raise DataError(
            f"{caller}() received {words[kind]} as times but fit() saw {words[layout.time_kind]}. "
            f"Give the table the same kind of index or time column{hint}."
        )
    if (zone is None) != (layout.time_zone is None):
        have, seen = (
            f"in zone {one}" if one else "without a time zone" for one in (zone, layout.time_zone)
        )
        raise DataError(
            f"{caller}() received times {have} but fit() saw times {seen}. Convert them first "
            "(in pandas: tz_localize or tz_convert)."
        )


def _in_zone(times: pd.Index, layout: Layout) -> tuple[pd.Index, tuple[str, ...]]:
    """Bring times to the zone of fit, by whose clock the calendar and whole days go."""
    zone = layout.time_zone
    if zone is None or not isinstance(times, pd.DatetimeIndex) or str(times.tz) == zone:
        return times, ()
    note = f"Times in zone {times.tz} were brought to {layout.time_zone}, as in fit."
    return times.tz_convert(layout.time_zone), (note,)


def needed_columns(table: pd.DataFrame, layout: Layout, columns: Sequence[str]) -> list[str]:
    """Return the columns a table must have: these, the time unless the index is it, the series."""
    from_index = len(layout.time) == 1 and layout.time[0] == table.index.name
    series = [] if layout.series is None else [layout.series]
    return [*columns, *(() if from_index else layout.time), *series]


def with_fitted_names(table: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the table with columns named as in fit where only blanks around a name differ.

    Names in text files are read without them, by `mvlstm.table.read_table` but not by pandas.
    """
    names = column_names(table)
    series = () if layout.series is None else (layout.series,)
    index = () if layout.index_name is None else (layout.index_name,)
    wanted = [*layout.columns, *layout.time, *series, *index, *layout.exclude]
    known, asked = set(names), set(wanted)
    meant = {as_in_table(name, names): name for name in wanted if name not in known}
    renamed = [name if name in asked else meant.get(name, name) for name in names]
    return table if renamed == names else table.set_axis(renamed, axis=1)


def check_present(names: Sequence[str], needed: Sequence[str], caller: str) -> None:
    """Refuse a table that lacks a column of the fit."""
    known = set(names)
    absent = [name for name in needed if name not in known]
    if absent:
        raise DataError(
            f"{caller}() received {name_list(names)} but fit() saw {name_list(needed)}; "
            f"missing: {name_list(absent)}. Supply every column the model was fitted on."
        )


def _check_constant(
    values: FloatArray, columns: Sequence[str], levels: dict[str, tuple[str, ...]]
) -> None:
    steady = np.flatnonzero(values.min(axis=0) == values.max(axis=0))
    constant = {columns[j]: values[0, j] for j in steady.tolist()}
    if columns[-1] in constant:
        raise DataError(
            f"Target '{columns[-1]}' is constant (always {values[0, -1]:g}); there is nothing to "
            "forecast. Choose another target or supply rows in which it changes."
        )
    names = list(constant)
    for name, value in constant.items():
        always = repr(levels[name][int(value)]) if name in levels else f"{value:g}"
        what = f"Column '{name}' is" if len(names) == 1 else f"Columns {name_list(names)} are"
        raise DataError(
            f"{what} constant (always {always}{', ...' if names[1:] else ''}) and can tell nothing "
            f"about the target. Use exclude={names!r}.",
            remedy={"exclude": names},
        )
