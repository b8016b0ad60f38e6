"""Forecasts taken apart: contributions of variables and lags, responses, shares of experts."""

from __future__ import annotations

import math
import time as clock
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.explain.contributions import Contributions, integrated_gradients, windows_at_once
from mvlstm.explain.lags import lag_index
from mvlstm.model.calibration import Calibration
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecasting import require_finite
from mvlstm.model.learned import Learned
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.target_scale import MeanScale, TargetScale
from mvlstm.problem.windows import spread_evenly
from mvlstm.progress import show_tasks
from mvlstm.table.frame import SeriesFrame
from mvlstm.transforms import Transform
from mvlstm.types import FloatArray, IntArray

APART = {"quick": 10, "default": 60, "full": 300}  # forecasts taken apart by default, of one step
FEWEST = 8  # and of many steps, at least
BACKGROUNDS = {"quick": 4, "default": 4, "full": 8}  # background windows they are measured against
TOLERANCE = 1e-3  # of a sum of contributions, in standard deviations of the target
ROUGH = 1e-2  # from which a note tells of it
SCALE_NOTE = (
    "The model works on {scale}. Contributions are found on that scale and brought to the "
    "target's units by one factor per forecast, so that they add up there."
)


@dataclass(frozen=True, eq=False)
class Apart:
    """Some forecasts taken apart."""

    members: FloatArray  # (K, M, H, N, T) contributions to each member's, oldest step first
    tables: dict[str, Any]  # contribution, response, expert and background of an `Explanation`
    notes: tuple[str, ...]


def count_apart(effort: str, horizon: int) -> int:
    """Return how many forecasts are taken apart by default: fewer, the more steps each has."""
    return min(APART[effort], max(FEWEST, round(APART[effort] / math.sqrt(horizon))))


def take_apart(
    fitted: Fitted,
    prepared: Prepared,
    origins: IntArray,
    count: int,
    effort: str,
    *,
    verbose: int = 0,
    deadline: float = math.inf,
) -> Apart | None:
    """Take ``count`` of the forecasts made at origins apart; None for methods without gradients.

    Half of them are the latest ones, ending with the table's last row, whose steps ahead are not
    known yet; the others are spread evenly. After the ``deadline``, of the monotonic clock, no more
    are begun; the latest come first.
    """
    rows = _chosen(origins, prepared.origins(fitted.window, 0)[-1:], count)
    windows = fitted.windows(prepared, rows).values.astype(np.float64)
    if not len(rows) or (slope := fitted.learned.gradient(windows[:1])) is None:
        return None
    few = spread_evenly(np.arange(len(fitted.background.windows)), BACKGROUNDS[effort])
    background = fitted.background.windows[few].astype(np.float64)
    unit = float(fitted.preparation.target_scale)
    with np.errstate(over="ignore", invalid="ignore"):  # checked next
        ends = _means(fitted.learned, windows)
    require_finite(ends[None], prepared.frame, rows)  # or the integral below would not settle
    at_once = windows_at_once(slope.size, len(background))
    pieces = [slice(max(end - at_once, 0), end) for end in range(len(rows), 0, -at_once)]
    found: list[Contributions] = []
    with show_tasks(verbose, "explain", len(rows)) as advance:
        for piece in pieces:
            if found and clock.monotonic() > deadline:
                break
            found.append(_integrate(fitted.learned, windows[piece], background, TOLERANCE * unit))
            advance("forecasts taken apart", steps=len(windows[piece]))
    taken, notes = Contributions.join(found[::-1]), _late_notes(len(rows), pieces[len(found) - 1])
    rows, windows = rows[-len(taken.missed) :], windows[-len(taken.missed) :]
    H = fitted.horizon
    start = fitted.background.baseline[few].mean(axis=0)  # (H,)
    parts = taken.members
    scale = explained_scale(prepared, rows, H)
    parts[:, :, :, -1, -1] += scale.baseline - start  # a differenced target's level
    frame = prepared.frame
    owner = np.asarray(frame.groups)
    grouped = np.stack(
        [parts[..., owner == n].sum(axis=-1) for n in range(frame.n_variables)], axis=3
    )  # (K, M, H, N, T)
    level = _means(fitted.learned, background).mean(axis=0) + start  # (H,)
    means = _mean_scale(fitted, scale.transform)
    experts = fitted.learned.experts(fitted.windows(prepared, rows))
    notes = (*notes, *_integral_notes(taken.missed / unit))
    if scale.transform:
        made = fitted.forecast(prepared, rows).members.mean(axis=0)
        grouped, factor = means.contributions(grouped, level, made)
        experts = None if experts is None else experts * factor[..., None]
        notes = (*notes, SCALE_NOTE.format(scale=scale.transform.formula))
    index, names = origin_index(frame, rows), pd.Index(frame.variables, name="variable")
    columns = lag_index(frame.variables, variable_leads(prepared), fitted.window)
    latest_first = grouped[..., ::-1].mean(axis=0).reshape(len(rows), H, -1)
    responses = _responses(fitted, windows, owner, scale)
    tables = {
        "contribution": by_origin(latest_first[None], index, columns),
        "response": by_origin(responses[None], index, names),
        "expert": None if experts is None else by_origin(experts[None], index, names),
        "value": _values(frame, rows, H).set_axis(by_origin(responses[None], index, names).index),
        "background": tuple(float(v) for v in means(level)),
    }
    return Apart(grouped, tables, notes)


def _values(frame: SeriesFrame, rows: IntArray, horizon: int) -> pd.DataFrame:
    """Return the variables' values at origins, for each step; NaN where there is no single one."""
    columns = [np.flatnonzero(np.asarray(frame.groups) == n) for n in range(frame.n_variables)]
    measured = np.asarray(frame.layout.measured)
    values = np.full((len(rows), frame.n_variables), np.nan)
    for n, own in enumerate(columns):
        if measured[own[0]]:
            values[:, n] = frame.values[rows, own[0]]
    names = pd.Index(frame.variables, name="variable")
    return pd.DataFrame(values.repeat(horizon, axis=0), columns=names)


def explained_scale(prepared: Prepared, origins: IntArray, horizon: int) -> TargetScale:
    """Return the scale of explanations: the target's units; of several series, each one's own."""
    return prepared.scale(origins, horizon).of_series()


def explained_members(
    predictive: Predictive, scale: TargetScale, calibration: Calibration
) -> FloatArray:
    """Return members' forecasts (K, M, H) on the scale of explanations."""
    if not scale.transform:
        return predictive.members + scale.baseline
    labels = predictive.with_spread(calibration.spread)
    mixture = scale.mixture(labels)
    return scale.members(predictive.members, mixture, calibration.factors * calibration.mean_factor)


def _mean_scale(fitted: Fitted, transform: Transform) -> MeanScale:
    """Match the mean of members on the background windows with their forecasts in units."""
    if not transform:
        return MeanScale(transform, np.zeros(fitted.horizon))
    windows = Windows.of(fitted.background.windows.astype(np.float64))
    found = fitted.learned.predict(windows, exact=True)
    scale = TargetScale(transform, fitted.background.baseline)
    wanted = explained_members(found, scale, fitted.calibration).mean(axis=(0, 1))
    return MeanScale.match(transform, (found.members + scale.baseline).mean(axis=0), wanted)


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


def _means(learned: Learned, windows: FloatArray) -> FloatArray:
    """Return the members' mean forecasts (M, H) of the labels."""
    found = learned.predict(Windows.of(windows), spread=False, exact=True)
    return np.asarray(found.members.mean(axis=0))


def _integrate(
    learned: Learned, windows: FloatArray, background: FloatArray, tolerance: float
) -> Contributions:
    def gradient(x: FloatArray) -> FloatArray:
        slope = learned.gradient(x)
        assert slope is not None
        return slope

    forecast = partial(_means, learned)
    return integrated_gradients(gradient, forecast, windows, background, tolerance=tolerance)


def _responses(
    fitted: Fitted, windows: FloatArray, owner: IntArray, scale: TargetScale
) -> FloatArray:
    """Change of the forecasts (M, H, N) when a variable is raised by one standard deviation."""

    def level(x: FloatArray) -> FloatArray:
        if not scale.transform:
            return _means(fitted.learned, x) + scale.baseline
        found = fitted.learned.predict(Windows.of(x), exact=True)
        return np.asarray(explained_members(found, scale, fitted.calibration).mean(axis=0))

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


def _late_notes(count: int, last: slice) -> tuple[str, ...]:
    """Say so if time was over after the ``last`` of the pieces, in which the earliest rows lie."""
    if not last.start:
        return ()
    return (
        f"Of {count} forecasts the latest {count - last.start} were taken apart: then the time "
        "limit was reached.",
    )


def _integral_notes(missed: FloatArray) -> tuple[str, ...]:
    """Say how far the integrals behind the contributions were from their totals, if too far."""
    rough = int((missed > ROUGH).sum())
    if not rough:
        return ()
    return (
        f"The contributions miss their total in {rough} of {len(missed)} forecasts, by up to "
        f"{missed.max():.2g} standard deviations of the target: the model is so steep there that "
        "the integral behind them did not settle.",
    )
