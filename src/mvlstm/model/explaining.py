"""From a fitted forecaster and a table to an `Explanation`."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError, check_option, check_time_limit, check_whole
from mvlstm.explain import (
    Attention,
    HeldOut,
    Rows,
    choose_windows,
    find_period,
    get_effort,
    measure,
    require_windows,
)
from mvlstm.explain.conditional import Others
from mvlstm.explain.effort import Effort
from mvlstm.explain.evidence import Control
from mvlstm.explain.importance import Scrambled, leaning
from mvlstm.explain.lags import lag_table
from mvlstm.explain.links import wanders
from mvlstm.model.decomposition import (
    by_origin,
    count_apart,
    explained_members,
    explained_scale,
    origin_index,
    take_apart,
    variable_leads,
)
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecasting import require_finite
from mvlstm.model.learned import AttentionArrays
from mvlstm.model.scoring import explained_origins
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_labels, longest_stretch, measured_labels, spread_evenly
from mvlstm.progress import show_tasks
from mvlstm.results import Explanation
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.layout import CALENDAR
from mvlstm.table.panel import Panel
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import FloatArray, IntArray

LEAST_STRETCHES = 5  # windows' lengths of unseen rows that a series is explained by, at least
LEAST_CYCLES = 3  # and of its cycle's
EXCHANGES = 0.5  # share of a time limit for exchanges, where forecasts are taken apart, too
REGRESSIONS = 0.15  # share of it for regressions
LEAST_WINDOWS = 3  # of a series that is measured by itself
EACH = 0.1  # of the windows of an effort that each series has, where every one is measured
FEWEST_WINDOWS = 100  # that are used however short the time
TRIED = 256  # windows on which is tried how long an exchange takes
LIMIT_NOTE = "To keep the time limit, importance was measured on {} only."
WORK_NOTE = "The model is large: importance was measured on {} only; effort='full' takes more."
SERIES_NOTE = (
    "Of several series, error increases and contributions are in standard deviations of each "
    "series' target{scale}; windows are exchanged within a series."
)


@dataclass(frozen=True, eq=False)
class Examined:
    """The windows a model is explained by: where they lie, and how it forecasts them."""

    prepared: Prepared
    level: Effort
    unseen: IntArray  # origins of all rows that the model has not seen
    origins: IntArray  # (M,) those measured on
    held: HeldOut
    base: FloatArray  # (K, M, H) the members' forecasts
    scrambled: Scrambled  # whole windows exchanged
    conditional: Scrambled  # the part that the others do not explain
    notes: tuple[str, ...]


def examine(
    fitted: Fitted, table: Any, effort: str, *, seconds: float = math.inf, every: bool = False
) -> Examined:
    """Choose windows the model has not seen, and forecast them.

    They are fewer than the effort asks for where their exchanges would take longer than this. With
    ``every``, there are some of each series.
    """
    started, level = clock.monotonic(), get_effort(effort)
    given = isinstance(table, Prepared)
    prepared = table if given else fitted.prepare(fitted.read(table, "explain"))
    frame = prepared.frame
    unseen, part, notes = explained_origins(fitted, prepared)
    if every:
        assert frame.panel is not None
        unseen = _of_enough(frame.panel, unseen)
        level = level._replace(windows=int(EACH * level.windows * len(frame.panel.names)))
    _require_measured(fitted, frame, unseen)
    period = _find_period(frame)
    origins = _choose_origins(frame, unseen, fitted.window, level.windows, period, every)
    exchanges = (frame.n_variables + 1) * (level.repeats_for(len(origins)) + 1)
    each = fitted.learned.work(fitted.window) * exchanges
    limits = [(level.work / each if each else math.inf, WORK_NOTE)]
    if seconds < math.inf:
        each = _exchange_seconds(fitted, prepared, origins) * exchanges
        limits.append(((seconds - (clock.monotonic() - started)) / each, LIMIT_NOTE))
    most, note = min(limits)
    if max(most, FEWEST_WINDOWS) < len(origins):
        level = level._replace(windows=max(int(most), FEWEST_WINDOWS))
        origins = _choose_origins(frame, unseen, fitted.window, level.windows, period, every)
        notes = (*notes, note.format(counted(len(origins), "window")))
    return Examined(
        prepared,
        level,
        unseen,
        origins,
        held=HeldOut(
            labels=_labels(fitted, prepared, origins),
            positions=origins,
            window=fitted.window,
            part=part,
            period=period,
            clocks=(frame.variables.index(CALENDAR),) if frame.layout.calendar else (),
            leads=variable_leads(prepared),
            series=frame.names_of(origins),
            times=None if frame.panel is None else frame.order[origins],
        ),
        base=_forecasts(fitted, prepared, origins),
        scrambled=_scrambler(fitted, prepared, origins),
        conditional=_scrambler(fitted, prepared, origins, conditional=True),
        notes=notes,
    )


def explain(
    fitted: Fitted,
    table: Any,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    contributions: int | None = None,
    time_limit: float | None = None,
    control: Control = "family",
    every: bool = False,
    verbose: int = 0,
) -> Explanation:
    """Measure importance on rows the model has not seen; see `AbstractForecaster.explain`.

    The table may be prepared; of several series, ``every`` one is measured, or only some.
    """
    check_option("control", control, get_args(Control))
    if contributions is not None:
        check_whole("contributions", contributions, 0)
    count = count_apart(effort, fitted.horizon) if contributions is None else contributions
    limit, started = check_time_limit(time_limit), clock.monotonic()
    seconds = (EXCHANGES if count else 1.0 - REGRESSIONS) * limit
    seen = examine(fitted, table, effort, seconds=seconds, every=every)
    prepared, frame, origins = seen.prepared, seen.prepared.frame, seen.origins
    windows = fitted.windows(prepared, origins)
    arrays = fitted.learned.attention(windows, quick=limit < math.inf)
    total = (len(frame.variables) + 1) * (seen.level.repeats_for(len(origins)) + 1)
    with show_tasks(verbose, "explain", total) as advance:
        measured = measure(
            variables=frame.variables,
            held=seen.held,
            groups=frame.groups,
            base=seen.base,
            scrambled=seen.scrambled,
            conditional=seen.conditional,
            rows=_rows(fitted, prepared, seen.held.period, seen.level.rows),
            values=np.asarray(prepared.table[origins], dtype=np.float64),
            attention=_attention(arrays),
            effort=seen.level,
            control=control,
            deadline=started + seconds + REGRESSIONS * limit,
            progress=lambda total: advance("exchanges of variables", of=total),
        )
    own = fitted.learned.own_importance(frame.groups)
    index = origin_index(frame, origins)
    names = pd.Index(frame.variables, name="variable")
    more: dict[str, Any] = {"verbose": verbose, "deadline": started + limit}
    apart = take_apart(fitted, prepared, seen.unseen, count, effort, **more)
    changed: dict[str, Any] = {
        "importance": _with_own(measured.importance, own, frame.variables),
        "notes": (
            *frame.notes,
            *seen.notes,
            *_series_notes(prepared),
            *measured.notes,
            *_attention_notes(arrays),
            *(() if apart is None else apart.notes),
        ),
    }
    return Explanation(
        target=frame.target,
        prior=None if arrays is None else by_origin(arrays.prior, index, names),
        posterior=(
            None
            if arrays is None or arrays.posterior is None
            else by_origin(arrays.posterior, index, names)
        ),
        lags=lag_table(
            frame.variables,
            None if apart is None else apart.members,
            None if arrays is None else arrays.temporal,
            leads=seen.held.leads,
        ),
        part=seen.held.part,
        n_windows=len(origins),
        effort=effort,
        **{**vars(measured), **changed, **({} if apart is None else apart.tables)},
    )


def reliance(fitted: Fitted, table: Any, effort: str) -> pd.Series[float]:
    """Return by how much scrambling each variable raises the squared error; nothing more."""
    seen = examine(fitted, table, effort)
    variables = seen.prepared.frame.variables
    each = [(i,) for i in range(len(variables))]
    return pd.Series(leaning(seen.base, seen.held, seen.scrambled, each), index=list(variables))


def _require_measured(fitted: Fitted, frame: SeriesFrame, unseen: IntArray) -> None:
    """Raise `DataError` if there are too few windows, and say so where no target was measured."""
    if not len(unseen) and frame.measured is not None:
        raise DataError(
            "0 held-out windows are too few to explain a forecast: of none was the target measured "
            f"in every one of the {counted(fitted.horizon, 'step')} ahead. Supply rows in which it "
            "was, or fit with a shorter horizon=...."
        )
    require_windows(len(unseen))


def _find_period(frame: SeriesFrame) -> int:
    """Return the length of the target's cycle; of several series, that of the longest."""
    rows = slice(None) if frame.panel is None else frame.panel.longest()
    return find_period(frame.target_values[rows], natural=natural_cycles(frame.step))


def _with_own(
    importance: pd.DataFrame, own: FloatArray | None, variables: Sequence[str]
) -> pd.DataFrame:
    """Put the method's own importance of each variable next to the others, if it has one."""
    if own is None:
        return importance
    by_name = dict(zip(variables, own, strict=True))
    return importance.assign(own=importance["variable"].map(by_name))


def _series_notes(prepared: Prepared) -> tuple[str, ...]:
    if prepared.units is None:
        return ()
    transform = prepared.preparation.transform
    scale = f", taken as {transform.formula}" if transform else ""
    return (SERIES_NOTE.format(scale=scale),)


def _of_enough(panel: Panel, unseen: IntArray) -> IntArray:
    """Keep the unseen origins of series with at least `LEAST_WINDOWS` of them."""
    counts = np.bincount(panel.codes[unseen], minlength=len(panel.names))
    return unseen[counts[panel.codes[unseen]] >= LEAST_WINDOWS]


def _choose_origins(
    frame: SeriesFrame, unseen: IntArray, window: int, limit: int, period: int, every: bool
) -> IntArray:
    """Choose stretches of unseen origins; of several series, as many as fit, or of every one."""
    if frame.panel is None:
        return choose_windows(unseen, window=window, limit=limit, period=period)
    codes = frame.panel.codes[unseen]
    pieces = np.split(unseen, np.flatnonzero(np.diff(codes)) + 1)
    least = max(LEAST_STRETCHES * window, LEAST_CYCLES * period)
    count = len(pieces) if every else min(len(pieces), max(1, limit // least))
    few = spread_evenly(np.arange(len(pieces)), count)
    each = max(LEAST_WINDOWS, limit // len(few))
    chosen = [choose_windows(pieces[k], window=window, limit=each, period=period) for k in few]
    return np.concatenate(chosen)


def _labels(fitted: Fitted, prepared: Prepared, origins: IntArray) -> FloatArray:
    """Return what happened, in the target's units; of several series, on the scale of each."""
    if prepared.units is not None:
        return prepared.target_steps(origins, fitted.horizon)
    return gather_labels(prepared.frame, origins, fitted.horizon)


def _forecasts(fitted: Fitted, prepared: Prepared, origins: IntArray) -> FloatArray:
    scale = explained_scale(prepared, origins, fitted.horizon)
    with np.errstate(over="ignore", invalid="ignore"):  # checked next
        predictive = fitted.learned.predict(fitted.windows(prepared, origins))
    require_finite(predictive.members, prepared.frame, origins)
    return explained_members(predictive, scale, fitted.calibration)


def _rows(fitted: Fitted, prepared: Prepared, period: int, most: int) -> Rows:
    """Gather rows of the whole table, spread evenly, that regressions may learn from."""
    frame, H = prepared.frame, fitted.horizon
    origins = prepared.labelled(fitted.window, H)
    origins = spread_evenly(origins[measured_labels(frame, origins, H).all(axis=1)], most)
    times = None if frame.panel is None else frame.order[origins]
    if times is not None:
        origins = origins[np.argsort(times, kind="stable")]
        times = frame.order[origins]
    level = frame.target_values[origins]
    if prepared.units is not None:
        level = prepared.target_at(origins[:, None], origins)[:, 0]
    return Rows(
        fitted.windows(prepared, origins).values,
        _labels(fitted, prepared, origins),
        level,
        origins,
        frame.groups,
        period,
        times,
        wandering=wanders(frame.target_values[longest_stretch(frame.segments)]),
    )


def _scrambler(
    fitted: Fitted, prepared: Prepared, origins: IntArray, *, conditional: bool = False
) -> Scrambled:
    """Return the function that forecasts with some variables' windows taken from other times.

    If ``conditional``, only the part of them that the others do not explain. A differenced target's
    baseline belongs to its own past and is exchanged with it, always as a whole.
    """
    owner = np.asarray(prepared.frame.groups)
    windows = fitted.windows(prepared, origins)
    whole = explained_scale(prepared, origins, fitted.horizon)
    learned, spread = fitted.learned, bool(whole.transform)
    others = Others(windows.values) if conditional else None

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        columns = np.flatnonzero(np.isin(owner, variables))
        found = learned.scrambled(windows, columns, donors)
        if found is not None:  # a method that looks back further than a window
            return explained_members(Predictive(found), whole, fitted.calibration)
        scale = whole.take(donors) if int(owner[-1]) in variables else whole
        if others is None or (int(owner[-1]) in variables and whole.baseline.any()):
            changed = windows.scrambled(columns, donors)
        else:
            changed = Windows.of(others.exchanged(columns, donors))
        predictive = learned.predict(changed, spread=spread)
        return explained_members(predictive, scale, fitted.calibration)

    return scrambled


def _exchange_seconds(fitted: Fitted, prepared: Prepared, origins: IntArray) -> float:
    """Return how long an exchange of one variable takes, for each window, tried on a few."""
    few = spread_evenly(origins, TRIED)
    scrambled = _scrambler(fitted, prepared, few, conditional=True)
    donors = np.roll(np.arange(len(few)), 1)
    scrambled((0,), donors)  # threads start, libraries are loaded
    started = clock.monotonic()
    scrambled((0,), donors)
    return (clock.monotonic() - started) / len(few)


def _attention(arrays: AttentionArrays | None) -> Attention | None:
    if arrays is None:
        return None
    after = arrays.prior if arrays.posterior is None else arrays.posterior
    return Attention(arrays.prior, after, arrays.temporal, arrays.leakage)


def _attention_notes(arrays: AttentionArrays | None) -> tuple[str, ...]:
    if arrays is None or arrays.posterior is not None:
        return ()
    return ("This model has no posterior attention; its prior stands in that column.",)
