"""`graph`: every column of a table in turn the target, and what acts on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.engine import check_engine, opened, recorded
from mvlstm.errors import DataError, check_option
from mvlstm.explain.effort import get_effort
from mvlstm.explain.importance import verdicts
from mvlstm.explain.links import (
    WINDOWS,
    Links,
    Past,
    find_links,
    shared_cycles,
    slow_waves,
    wanders,
)
from mvlstm.metrics import benjamini_hochberg, holm
from mvlstm.problem.windows import (
    check_window,
    gather_windows,
    longest_stretch,
    origins_in,
    spread_evenly,
)
from mvlstm.progress import show_tasks
from mvlstm.results.graph import CONTROLS, LINK_COLUMNS, OWN_COLUMNS, Graph
from mvlstm.settings import expanded
from mvlstm.table.columns import as_in_table, as_name, as_names, check_columns, column_names
from mvlstm.table.frame import SeriesFrame, Table, check_table
from mvlstm.table.layout import CALENDAR
from mvlstm.table.settings import Cleaning, Codes, Columns, Names, Repairs
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import FloatArray

FEWEST = 60  # windows that regressions are worth trying with
MOST_COLUMNS = 200
SHARE = 0.2  # of an effort's work: two cores take about 4, 20 and 400 s for "quick" to "full"
NOTES = (
    "Links are predictive, not causal: a column that is not in the table may act on both ends.",
    "Strengths are of one step ahead, all other columns known; of columns that say the same, none "
    "may seem to act.",
)


@expanded(repairs=Repairs)
def graph(
    table: Table,
    *,
    targets: Names = None,
    time: Names = None,
    series: str | None = None,
    variables: Sequence[str] | None = None,
    exclude: Names = None,
    categorical: Names = None,
    na_values: Codes = None,
    repairs: Repairs,
    window: int | None = None,
    control: Literal["family", "fdr"] = "family",
    effort: Literal["quick", "default", "full"] = "default",
    verbose: int = 1,
    engine: str = "local",
    checkpoint: str | Path | None = None,
) -> Graph:
    """Find out who drives whom: every column in turn the target, the others its drivers.

    Kernel regressions with squares and products forecast each target one step ahead, with and
    without each other column, all targets sharing their matrices. See `mvlstm.explain.links` for
    the mathematics.

    Parameters
    ----------
    table : DataFrame or SeriesFrame
    targets : str or sequence of str, optional
        Columns whose drivers are looked for; by default all that hold numbers.
    time, series, variables, exclude, categorical, na_values
        What the columns are, as for ``fit``.
    window : int, optional
        Lags that are read; by default 2, 3, 5 or 10, whichever forecasts best.
    control : {"family", "fdr"}
        What is held at 5 %: the chance of any false link in the graph (Holm), or the expected share
        of false ones among the links found (Benjamini and Hochberg), for many columns.
    effort : {"quick", "default", "full"}
        Rows that one regression learns from: at most 400, 1,000 or 2,000. Of longer tables there
        are as many regressions as two cores do in about 4, 20 or 400 s, and their evidence adds up.
    verbose : int
        0 shows no progress.
    engine : str
        "local", "ray", or the address of a Ray cluster, where each column is tried as a task.
    checkpoint : path, optional
        Folder in which the links of each finished column are kept: after an interruption the same
        call goes on from it. Other data or settings begin anew.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=600).frame
    >>> found = graph(table, targets="y", verbose=0)
    >>> sorted(found.important["from"])
    ['x2', 'x3']
    """
    check_option("control", control, CONTROLS)
    check_engine(engine)
    if window is not None:
        check_window(window)
    level = get_effort(effort)
    names = _numbered(table, targets)
    columns = Columns(
        target=names[-1],
        time=time,
        series=series,
        variables=None if variables is None else [*dict.fromkeys([*variables, *names])],
        exclude=exclude,
        categorical=categorical,
        na_values=na_values,
    )
    frame = check_table(table, columns, Cleaning(**asdict(repairs)))
    chosen = _targets(frame, None if targets is None else names)
    work = len(frame.variables) * len(chosen) * level.rows**3  # of one regression and all its links
    pieces = max(1, int(SHARE * level.work / work))
    past = past_of(frame, chosen, window, level.rows, pieces)
    titled = show_tasks(verbose, "graph", len(frame.variables))
    records = recorded(checkpoint, "graph", (past, window, level))
    with opened(engine) as spread, records as kept, titled as advance:
        each = partial(spread.each, records=kept)
        links, lags = find_links(
            past, window is None, lambda _: advance("columns tried"), each, level.rows
        )
    return _graph(links, frame, chosen, control, len(past), lags)


def past_of(
    frame: SeriesFrame, targets: Sequence[int], window: int | None, rows: int, pieces: int
) -> Past:
    """Gather windows and next values, each series in its own units.

    There are at most this many pieces, each of ``rows`` windows, spread evenly.
    """
    length = max(WINDOWS) if window is None else window
    origins = origins_in(frame.segments, length, 1)
    if window is None and len(origins) < FEWEST:  # short stretches between gaps
        length = min(WINDOWS)
        origins = origins_in(frame.segments, length, 1)
    if len(origins) < FEWEST:
        raise DataError(
            f"{counted(len(origins), 'window')} of {length} rows without a gap "
            f"{'is' if len(origins) == 1 else 'are'} too few for a graph; at least {FEWEST} are "
            "needed. Supply more rows, or use gaps='close'."
        )
    origins = spread_evenly(origins, rows * int(np.clip(round(len(origins) / rows), 1, pieces)))
    values = _standardised(frame)
    long = values[longest_stretch(frame.segments)]
    cycles = shared_cycles(long, natural=tuple(natural_cycles(frame.step)))
    column = [int(np.flatnonzero(np.equal(frame.groups, j))[-1]) for j in targets]  # after marks
    return Past(
        windows=gather_windows(values, origins, length)[:, ::-1],
        labels=values[origins + 1][:, column],
        levels=values[origins][:, column],
        owner=np.asarray(frame.groups),
        targets=np.array(column),
        wandering=np.array([wanders(long[:, c]) for c in column]),
        periods=cycles[column],
        positions=origins,
        drift=slow_waves(origins, rows),
    )


# ------------------------------------------------------------------------------------- inner parts


def _numbered(table: Table, targets: Names) -> list[str]:
    """Return the names of the targets, or of the column that is read as the target."""
    if isinstance(table, SeriesFrame):
        return list(as_names("targets", targets, table.variables)) or [table.target]
    names = column_names(table)
    given = as_names("targets", targets, names)
    if given:
        check_columns("Target", [as_in_table(one, names) for one in given], names, "targets")
        return [as_in_table(as_name("targets", one), names) for one in given]
    numeric = [n for n, kind in zip(names, table.dtypes, strict=True) if kind.kind in "iufb"]
    if not numeric:
        raise DataError("The table has no column of numbers. A graph needs at least two.")
    return numeric[-1:]


def _targets(frame: SeriesFrame, given: Sequence[str] | None) -> list[int]:
    """Return the variables that are targets: of numbers, in the order of the table."""
    made = {CALENDAR, *(one.name for one in frame.categories)}
    numbers = [v for v, name in enumerate(frame.variables) if name not in made]
    if len(frame.variables) < 2 or len(frame.variables) > MOST_COLUMNS:
        raise DataError(
            f"The table has {counted(len(frame.variables), 'column')}; a graph takes 2 to "
            f"{MOST_COLUMNS}. Choose them with variables=[...] or exclude=[...]."
        )
    if given is None:
        return numbers
    wrong = [name for name in given if frame.variables.index(name) not in numbers]
    if wrong:
        raise DataError(f"Target '{wrong[0]}' is not a column of numbers. Take it out of targets.")
    return [v for v in numbers if frame.variables[v] in given]


def _standardised(frame: SeriesFrame) -> FloatArray:
    """Return the columns in standard deviations, of several series in those of each."""
    values = np.asarray(frame.values, dtype=np.float64)
    codes = np.zeros(len(values), dtype=int) if frame.panel is None else frame.panel.codes
    pieces = np.split(values, np.flatnonzero(np.diff(codes)) + 1)
    return np.concatenate([_unit(piece) for piece in pieces])


def _unit(values: FloatArray) -> FloatArray:
    largest = np.abs(values).max(axis=0)  # no square of it is out of range
    values = values / np.where(largest > 0, largest, 1.0)
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _graph(
    links: Links,
    frame: SeriesFrame,
    targets: Sequence[int],
    control: Literal["family", "fdr"],
    rows: int,
    window: int,
) -> Graph:
    names = frame.variables
    own = np.arange(len(names)) == np.array(targets)[:, None]  # (J, N)
    adjust = holm if control == "family" else benjamini_hochberg
    p = np.empty(own.shape)
    p[own], p[~own] = adjust(links.p_value[own]), adjust(links.p_value[~own])
    rise = 1.0 / np.maximum(1.0 - links.strength, 1e-12) - 1.0
    table = pd.DataFrame(
        {
            "from": np.tile(names, len(targets)),
            "to": np.repeat([names[j] for j in targets], len(names)),
            "lag": links.lag.ravel(),
            "strength": links.strength.ravel(),
            "low": links.low.ravel(),
            "high": links.high.ravel(),
            "p": p.ravel(),
            "verdict": verdicts(p, rise, 1.0).ravel(),
            "detectable": links.detectable.ravel(),
        }
    )
    ordered = table[~own.ravel()].sort_values("strength", ascending=False, kind="stable")
    alone = table[own.ravel()].rename(columns={"to": "variable"})
    return Graph(
        links=ordered[list(LINK_COLUMNS)].reset_index(drop=True),
        own=alone[list(OWN_COLUMNS)].reset_index(drop=True),
        variables=names,
        targets=tuple(names[j] for j in targets),
        control=control,
        rows=rows,
        window=window,
        notes=(*frame.notes, *NOTES),
    )
