"""From a fitted forecaster and a table to an `Explanation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError, check_whole
from mvlstm.explain import (
    Attention,
    HeldOut,
    Measured,
    choose_windows,
    find_period,
    get_effort,
    measure,
    require_windows,
)
from mvlstm.explain.lags import lag_table
from mvlstm.model.contributions import (
    APART,
    by_origin,
    origin_index,
    take_apart,
    variable_leads,
)
from mvlstm.model.scoring import explained_origins
from mvlstm.model.second_opinions import agreement_table, rank_agreement
from mvlstm.model.units import member_units, unit_transform
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_labels, gather_windows, spread_evenly
from mvlstm.progress import show_steps
from mvlstm.results import Explanation
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.layout import CALENDAR
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster
    from mvlstm.problem.problem import AttentionArrays

LEAST_STRETCHES = 5  # windows' lengths of unseen rows that a series is explained by, at least
LEAST_CYCLES = 3  # and of its cycle's
SERIES_NOTE = (
    "Of several series, error increases and contributions are in standard deviations of each "
    "series' target{scale}; windows are exchanged within a series."
)


def explain_forecaster(
    model: AbstractForecaster,
    table: pd.DataFrame,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    contributions: int | None = None,
    curves: bool = False,
) -> Explanation:
    """Measure importance on rows the model has not seen; see `AbstractForecaster.explain`.

    ``curves`` asks for the faithfulness curves that ``effort="full"`` has anyway.
    """
    level = get_effort(effort)
    _check_count(contributions)
    prepared = model._prepare(model._read(table, "explain"))
    frame = prepared.frame
    unseen, held_out, part, part_notes = explained_origins(model, prepared)
    _require_measured(model, frame, unseen)
    period = _find_period(frame)
    origins = _choose_origins(frame, unseen, int(model.window), level.windows, period)
    arrays = model._attention(prepared, origins)
    measured = _measure(
        model, prepared, origins, arrays, part=part, period=period, effort=effort, curves=curves
    )
    importance = _with_own(measured.importance, model._model_importance(), frame.variables)
    index = origin_index(frame, origins)
    names = pd.Index(frame.variables, name="variable")
    count = APART[effort] if contributions is None else contributions
    apart = take_apart(model, prepared, unseen, count, effort)
    parts = None if apart is None else apart.members
    agreement, agreement_notes = (
        agreement_table(model, prepared, held_out if len(held_out) else unseen, importance, parts)
        if effort == "full"
        else (None, ())
    )
    return Explanation(
        target=frame.target,
        importance=importance,
        prior=None if arrays is None else by_origin(arrays.prior, index, names),
        posterior=(
            None
            if arrays is None or arrays.posterior is None
            else by_origin(arrays.posterior, index, names)
        ),
        temporal=measured.temporal,
        lags=lag_table(
            frame.variables,
            parts,
            None if arrays is None else arrays.temporal,
            leads=variable_leads(prepared),
        ),
        leakage=measured.leakage,
        groups=measured.groups,
        stability={**measured.stability, **rank_agreement(agreement)},
        agreement=agreement,
        summary=measured.summary,
        by_series=measured.by_series,
        by_step=measured.by_step,
        faithfulness=measured.faithfulness,
        part=part,
        n_windows=measured.n_windows,
        effort=effort,
        notes=(
            *prepared.frame.notes,
            *part_notes,
            *_series_notes(prepared),
            *measured.notes,
            *_attention_notes(arrays),
            *(() if apart is None else apart.notes),
            *agreement_notes,
        ),
        **({} if apart is None else apart.tables),
    )


def _require_measured(model: AbstractForecaster, frame: SeriesFrame, unseen: IntArray) -> None:
    """Raise `DataError` if there are too few windows, and say so where no target was measured."""
    if not len(unseen) and frame.measured is not None:
        raise DataError(
            "0 held-out windows are too few to explain a forecast: of none was the target measured "
            f"in every one of the {counted(model.horizon, 'step')} ahead. Supply rows in which it "
            "was, or fit with a shorter horizon (--horizon)."
        )
    require_windows(len(unseen))


def _find_period(frame: SeriesFrame) -> int:
    """Return the length of the target's cycle; of several series, that of the longest."""
    rows = slice(None) if frame.panel is None else frame.panel.longest()
    return find_period(frame.target_values[rows], natural=natural_cycles(frame.step))


def _measure(
    model: AbstractForecaster,
    prepared: Prepared,
    origins: IntArray,
    arrays: AttentionArrays | None,
    *,
    part: str,
    period: int,
    effort: str,
    curves: bool,
) -> Measured:
    """Scramble one variable after the other in the windows chosen, with a progress display."""
    frame = prepared.frame
    total = len(frame.variables) * get_effort(effort).repeats_for(len(origins))
    with show_steps(model.verbose, "explain", total) as advance:
        return measure(
            variables=frame.variables,
            held=HeldOut(
                labels=_labels(model, prepared, origins),
                positions=origins,
                window=int(model.window),
                part=part,
                period=period,
                clocks=_clocks(frame),
                leads=variable_leads(prepared),
                series=frame.names_of(origins),
                times=None if frame.panel is None else frame.order[origins],
            ),
            groups=frame.groups,
            base=_forecasts(model, prepared, origins),
            scrambled=_scrambler(model, prepared, origins),
            values=np.asarray(prepared.table[origins], dtype=np.float64),
            attention=_attention(arrays),
            curves=curves or effort == "full",
            effort=effort,
            progress=lambda _: advance("exchanges of variables"),
        )


def _with_own(
    importance: pd.DataFrame, own: FloatArray | None, variables: Sequence[str]
) -> pd.DataFrame:
    """Put the method's own importance of each variable beside the others, where it has one."""
    if own is None:
        return importance
    by_name = dict(zip(variables, own, strict=True))
    return importance.assign(own=importance["variable"].map(by_name))


def _series_notes(prepared: Prepared) -> tuple[str, ...]:
    if prepared.units is None:
        return ()
    scale = ", taken as log(1 + target)" if prepared.preparation.transform else ""
    return (SERIES_NOTE.format(scale=scale),)


def _check_count(contributions: int | None) -> None:
    """Refuse a number of forecasts to take apart that is none."""
    if contributions is not None:
        check_whole("contributions", contributions, 0)


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


def _clocks(frame: SeriesFrame) -> tuple[int, ...]:
    """Return the calendar's place among the variables."""
    return (frame.variables.index(CALENDAR),) if frame.layout.calendar else ()


def _labels(model: AbstractForecaster, prepared: Prepared, origins: IntArray) -> FloatArray:
    """Return what happened, in the target's units; of several series, on the scale of each."""
    if prepared.units is not None:
        return prepared.target_steps(origins, model.horizon)
    return gather_labels(prepared.frame, origins, model.horizon)


def _forecasts(model: AbstractForecaster, prepared: Prepared, origins: IntArray) -> FloatArray:
    predictive = model._predict_rows(prepared, origins)
    return member_units(model, predictive.shifted(prepared.baseline(origins, model.horizon)))


def _scrambler(
    model: AbstractForecaster, prepared: Prepared, origins: IntArray
) -> Callable[[tuple[int, ...], IntArray], FloatArray]:
    """Return the function that forecasts with some variables' windows taken from other times."""

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        return member_units(model, model._predict_scrambled(prepared, origins, variables, donors))

    return scrambled


def scrambled_windows(
    model: AbstractForecaster,
    prepared: Prepared,
    origins: IntArray,
    variables: tuple[int, ...],
    donors: IntArray,
) -> Predictive:
    """Forecast from windows in which ``variables`` come from the donors' windows.

    A differenced target's baseline belongs to its own past and is exchanged with it.
    """
    owner = np.asarray(prepared.frame.groups)
    columns = np.flatnonzero(np.isin(owner, variables))
    windows = gather_windows(*prepared.windows_at(origins, model.window), model.window)
    windows[:, :, columns] = windows[donors][:, :, columns]
    baseline = prepared.baseline(origins, model.horizon)
    if int(owner[-1]) in variables:
        baseline = baseline[donors]
    if unit_transform(model):
        return model._predictive(windows).shifted(baseline)
    return Predictive(model._predict_windows(windows) + baseline)


def _attention(arrays: AttentionArrays | None) -> Attention | None:
    if arrays is None:
        return None
    after = arrays.prior if arrays.posterior is None else arrays.posterior
    return Attention(arrays.prior, after, arrays.temporal, arrays.leakage)


def _attention_notes(arrays: AttentionArrays | None) -> tuple[str, ...]:
    if arrays is None or arrays.posterior is not None:
        return ()
    return ("This model has no posterior attention; its prior stands in that column.",)
