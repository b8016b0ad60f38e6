"""From a fitted forecaster and a table to an `Explanation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError, check_whole
from mvlstm.explain import (
    Attention,
    HeldOut,
    choose_windows,
    find_period,
    get_effort,
    measure,
    require_windows,
)
from mvlstm.explain.importance import Scrambled
from mvlstm.explain.lags import lag_table
from mvlstm.model.decomposition import (
    APART,
    by_origin,
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
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_labels, spread_evenly
from mvlstm.progress import show_tasks
from mvlstm.results import Explanation
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.layout import CALENDAR
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import FloatArray, IntArray

LEAST_STRETCHES = 5  # windows' lengths of unseen rows that a series is explained by, at least
LEAST_CYCLES = 3  # and of its cycle's
SERIES_NOTE = (
    "Of several series, error increases and contributions are in standard deviations of each "
    "series' target{scale}; windows are exchanged within a series."
)


@dataclass(frozen=True, eq=False)
class Examined:
    """The windows a model is explained by: where they lie, and how it forecasts them."""

    prepared: Prepared
    unseen: IntArray  # origins of all rows that the model has not seen
    origins: IntArray  # (M,) those measured on
    held: HeldOut
    base: FloatArray  # (K, M, H) the members' forecasts
    scrambled: Scrambled
    notes: tuple[str, ...]


def examine(fitted: Fitted, table: Any, effort: str) -> Examined:
    """Choose windows the model has not seen, and forecast them."""
    prepared = fitted.prepare(fitted.read(table, "explain"))
    frame = prepared.frame
    unseen, part, notes = explained_origins(fitted, prepared)
    _require_measured(fitted, frame, unseen)
    period = _find_period(frame)
    origins = _choose_origins(frame, unseen, fitted.window, get_effort(effort).windows, period)
    return Examined(
        prepared,
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
        notes=notes,
    )


def explain(
    fitted: Fitted,
    table: Any,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    contributions: int | None = None,
    verbose: int = 0,
) -> Explanation:
    """Measure importance on rows the model has not seen; see `AbstractForecaster.explain`."""
    level = get_effort(effort)
    if contributions is not None:
        check_whole("contributions", contributions, 0)
    seen = examine(fitted, table, effort)
    prepared, frame, origins = seen.prepared, seen.prepared.frame, seen.origins
    arrays = fitted.learned.attention(fitted.windows(prepared, origins))
    total = len(frame.variables) * level.repeats_for(len(origins))
    with show_tasks(verbose, "explain", total) as advance:
        measured = measure(
            variables=frame.variables,
            held=seen.held,
            groups=frame.groups,
            base=seen.base,
            scrambled=seen.scrambled,
            values=np.asarray(prepared.table[origins], dtype=np.float64),
            attention=_attention(arrays),
            effort=effort,
            progress=lambda _: advance("exchanges of variables"),
        )
    own = fitted.learned.own_importance(frame.groups)
    index = origin_index(frame, origins)
    names = pd.Index(frame.variables, name="variable")
    count = APART[effort] if contributions is None else contributions
    apart = take_apart(fitted, prepared, seen.unseen, count, effort)
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
    scale = ", taken as log(1 + target)" if prepared.preparation.transform else ""
    return (SERIES_NOTE.format(scale=scale),)


def _choose_origins(
    frame: SeriesFrame, unseen: IntArray, window: int, limit: int, period: int
) -> IntArray:
    """Choose stretches of unseen origins; of several series, as many as stretches fit."""
    if frame.panel is None:
        return choose_windows(unseen, window=window, limit=limit, period=period)
    codes = frame.panel.codes[unseen]
    pieces = np.split(unseen, np.flatnonzero(np.diff(codes)) + 1)
    least = max(LEAST_STRETCHES * window, LEAST_CYCLES * period)
    count = min(len(pieces), max(1, limit // least))
    few = spread_evenly(np.arange(len(pieces)), count)
    each = limit // len(few)
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


def _scrambler(fitted: Fitted, prepared: Prepared, origins: IntArray) -> Scrambled:
    """Return the function that forecasts with some variables' windows taken from other times.

    A differenced target's baseline belongs to its own past and is exchanged with it.
    """
    owner = np.asarray(prepared.frame.groups)
    windows = fitted.windows(prepared, origins)
    whole = explained_scale(prepared, origins, fitted.horizon)
    learned, spread = fitted.learned, bool(whole.transform)

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        columns = np.flatnonzero(np.isin(owner, variables))
        found = learned.scrambled(windows, columns, donors)
        if found is not None:  # a method that looks back further than a window
            return explained_members(Predictive(found), whole, fitted.calibration)
        scale = whole.take(donors) if int(owner[-1]) in variables else whole
        predictive = learned.predict(windows.scrambled(columns, donors), spread=spread)
        return explained_members(predictive, scale, fitted.calibration)

    return scrambled


def _attention(arrays: AttentionArrays | None) -> Attention | None:
    if arrays is None:
        return None
    after = arrays.prior if arrays.posterior is None else arrays.posterior
    return Attention(arrays.prior, after, arrays.temporal, arrays.leakage)


def _attention_notes(arrays: AttentionArrays | None) -> tuple[str, ...]:
    if arrays is None or arrays.posterior is not None:
        return ()
    return ("This model has no posterior attention; its prior stands in that column.",)
