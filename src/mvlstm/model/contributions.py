"""Forecasts taken apart: contributions of variables and lags, responses, shares of experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.explain.contributions import Contributions, integrated_gradients
from mvlstm.explain.lags import lag_index
from mvlstm.model.units import (
    MeanUnits,
    contribution_units,
    member_units,
    unit_transform,
)
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_windows, spread_evenly
from mvlstm.table.frame import SeriesFrame
from mvlstm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster


APART = {"quick": 10, "default": 60, "full": 300}  # forecasts taken apart by default
BACKGROUNDS = {"quick": 4, "default": 4, "full": 8}  # background windows they are measured against
TOLERANCE = 1e-3  # of a sum of contributions, in standard deviations of the target
SCALE_NOTE = (
    "The model works on log(1 + target). Contributions are found on that scale and brought to the "
    "target's units by one factor a forecast, so that they add up there."
)


@dataclass(frozen=True, eq=False)
class Apart:
    """Some forecasts taken apart.

    Attributes
    ----------
    members : array (K, M, H, N, T)
        Contributions to each member's forecast, oldest step first.
    tables : dict
        ``contribution``, ``response``, ``expert`` and ``background`` of an `Explanation`.
    notes : tuple of str
    """

    members: FloatArray
    tables: dict[str, Any]
    notes: tuple[str, ...]


def take_apart(
    model: AbstractForecaster, prepared: Prepared, origins: IntArray, count: int, effort: str
) -> Apart | None:
    """Take ``count`` of the forecasts made at origins apart; None for models without gradients.

    Half of them are the latest ones, ending with the table's last row, whose steps ahead are not
    known yet; the others are spread evenly.
    """
    rows = _chosen(origins, prepared.origins(model.window, 0)[-1:], count)
    windows = gather_windows(*prepared.windows_at(rows, model.window), model.window)
    windows = windows.astype(np.float64)
    if not len(rows) or model._gradient(windows[:1]) is None:
        return None
    few = spread_evenly(np.arange(len(model.background_)), BACKGROUNDS[effort])
    background = model.background_[few].astype(np.float64)
    scale = float(model.preparation_.target_scale)
    taken = _integrate(model, windows, background, TOLERANCE * scale)
    H = model.horizon
    start = model.background_baseline_[few].mean(axis=0)  # (H,)
    parts = taken.members
    baseline = prepared.baseline(rows, H)
    parts[:, :, :, -1, -1] += baseline - start  # a differenced target's level
    frame = prepared.frame
    owner = np.asarray(frame.groups)
    grouped = np.stack(
        [parts[..., owner == n].sum(axis=-1) for n in range(frame.n_variables)], axis=3
    )  # (K, M, H, N, T)
    level = _forecast(model, background).mean(axis=0) + start  # (H,)
    units = MeanUnits.of(model)
    experts = model._experts(prepared, rows)
    notes = _integral_notes(taken.missed / scale)
    if units.transform:
        made = model._forecast_rows(prepared, rows).members.mean(axis=0)
        grouped, factor = contribution_units(units, grouped, level, made)
        experts = None if experts is None else experts * factor[..., None]
        notes = (*notes, SCALE_NOTE)
    index, names = origin_index(frame, rows), pd.Index(frame.variables, name="variable")
    columns = lag_index(frame.variables, variable_leads(prepared), int(model.window))
    latest_first = grouped[..., ::-1].mean(axis=0).reshape(len(rows), H, -1)
    tables = {
        "contribution": by_origin(latest_first[None], index, columns),
        "response": by_origin(_responses(model, windows, owner, baseline)[None], index, names),
        "expert": None if experts is None else by_origin(experts[None], index, names),
        "background": tuple(float(v) for v in units(level)),
    }
    return Apart(grouped, tables, notes)


def variable_leads(prepared: Prepared) -> list[int]:
    """Return the steps by which each variable's window reaches beyond the last time known."""
    layout, leads = prepared.frame.layout, [0] * prepared.frame.n_variables
    for variable, ahead in zip(layout.groups, layout.ahead, strict=True):
        leads[variable] = prepared.preparation.ahead if ahead else 0
    return leads


def origin_index(frame: SeriesFrame, rows: IntArray) -> pd.Index[Any]:
    """Return the times of rows, with the name of the series first where there are several."""
    times: pd.Index[Any] = frame.times[rows].rename("origin")
    series = frame.names_of(rows)
    if series is None:
        return times
    return pd.MultiIndex.from_arrays([series, times], names=["series", "origin"])


def by_origin(values: FloatArray, index: pd.Index[Any], columns: pd.Index[Any]) -> pd.DataFrame:
    """Average over members and lay out as ([series, ]origin[, step]) x columns."""
    mean = values.mean(axis=0)  # (M, H, N)
    M, H = mean.shape[:2]
    if H > 1:
        levels = [index.get_level_values(k).repeat(H) for k in range(index.nlevels)]
        steps = np.tile(np.arange(1, H + 1), M)
        names = [*index.names, "step"]
        index = pd.MultiIndex.from_arrays([*levels, steps], names=names)
    return pd.DataFrame(mean.reshape(-1, mean.shape[2]), index=index, columns=columns)


def _forecast(model: AbstractForecaster, windows: FloatArray) -> FloatArray:
    return np.asarray(model._predict_exactly(windows).mean(axis=0))


def _integrate(
    model: AbstractForecaster, windows: FloatArray, background: FloatArray, tolerance: float
) -> Contributions:
    def forecast(x: FloatArray) -> FloatArray:
        return _forecast(model, x)

    def gradient(x: FloatArray) -> FloatArray:
        slope = model._gradient(x)
        assert slope is not None
        return slope

    return integrated_gradients(gradient, forecast, windows, background, tolerance=tolerance)


def _responses(
    model: AbstractForecaster, windows: FloatArray, owner: IntArray, baseline: FloatArray
) -> FloatArray:
    """Change of the forecasts (M, H, N) when a variable is raised by one standard deviation."""

    def level(x: FloatArray) -> FloatArray:
        if not unit_transform(model):
            return _forecast(model, x) + baseline
        members = member_units(model, model._predictive(x, exact=True).shifted(baseline))
        return np.asarray(members.mean(axis=0))

    now = level(windows)
    changes = [level(windows + (owner == n)) - now for n in range(owner.max() + 1)]
    return np.stack(changes, axis=-1)


def _chosen(origins: IntArray, last: IntArray, count: int) -> IntArray:
    """Choose ``count`` rows: the last one, the latest before it, and others spread evenly."""
    every = np.union1d(origins, last)
    if count >= len(every):
        return every
    if count < 1:
        return every[:0]
    recent = (count + 1) // 2
    older = every[: len(every) - recent]
    return np.concatenate([spread_evenly(older, count - recent), every[-recent:]])


def _integral_notes(missed: FloatArray) -> tuple[str, ...]:
    """Say how far the integrals behind the contributions were from their totals, if too far."""
    rough = int((missed > TOLERANCE).sum())
    if not rough:
        return ()
    return (
        f"The contributions miss their total in {rough} of {len(missed)} forecasts, by up to "
        f"{missed.max():.2g} standard deviations of the target: the model is so steep there that "
        "the integral behind them did not settle.",
    )
