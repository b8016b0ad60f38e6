"""Scores on rows a model has not seen, with persistence for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.model.adaptive import adapted
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecasting import part_names
from mvlstm.model.table_warnings import numbered_rows
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import measured_labels
from mvlstm.results import Evaluation, Forecast
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray, IntArray

Scored = Literal["new", "calibration", "calibration and new"]
ENOUGH = 20  # new windows that a model is explained by alone


def score_unseen(
    fitted: Fitted, forecast: Forecast, prepared: Prepared, *, whole: bool = True
) -> Evaluation:
    """Score the unseen rows of ``forecast``, which the model made from ``prepared``.

    Where the ``whole`` table was asked for, a note tells how many of its rows are too old.
    """
    forecast = forecast.take(np.asarray(np.isfinite(forecast.actual).any(axis=1)))
    rows, part, notes = unseen_rows(fitted.parts, forecast.time, forecast.part)
    chosen = forecast.take(rows)
    if whole:
        notes = (*notes, *_left_out(fitted, prepared, chosen.time))
    persistence = persistence_forecast(fitted, chosen, prepared)
    each = RowScores.of(chosen), RowScores.of(persistence)
    reference = each[1].means()["rmse"]
    named = zip((fitted.name, "persistence"), each, strict=True)
    frame = pd.DataFrame({name: score_row(one.means(), reference) for name, one in named}).T
    period = (pd.Index(chosen.time[:, 0]).min(), pd.Index(chosen.time[:, -1]).max())
    return Evaluation(
        target=fitted.layout.target,
        scores=frame.astype({"n": int}),
        part=part,
        period=period,
        notes=(*forecast.notes, *notes),
        by_series=_by_series(chosen, *each),
        by_step=_by_step(chosen, *each),
        experts=_expert_scores(fitted, chosen),
    )


def score_row(score: Mapping[str, float], persistence: float) -> dict[str, float]:
    """Return a row of scores: those of `Forecast.score` that are shown, and skill.

    Examples
    --------
    >>> score = {"rmse": 3.0, "mae": 2.0, "crps": 1.5, "coverage": 0.9, "n": 100}
    >>> score_row(score, persistence=4.0)["skill"]
    0.25
    """
    shown = {name: score[name] for name in ("rmse", "mae", "crps", "coverage")}
    return {**shown, "skill": metrics.skill(score["rmse"], persistence), "n": score["n"]}


def _expert_scores(fitted: Fitted, forecast: Forecast) -> pd.DataFrame | None:
    """Score each variable's expert alone, the mean over members, where there is a mixture."""
    names, means = fitted.layout.names, forecast.by_member(forecast.means)
    if len(names) < 2 or means.shape[3] != len(names):
        return None
    each = means.mean(axis=2)  # (M, H, N)
    errors = forecast.transform.inverse(each) - forecast.actual[..., None]
    rmse = np.sqrt(np.nanmean(errors**2, axis=(0, 1)))
    return pd.DataFrame({"variable": names, "rmse": rmse})


@dataclass(frozen=True, eq=False)
class RowScores:
    """What every forecast (M, H) adds to the scores; NaN where what happened is unknown."""

    squared: FloatArray
    absolute: FloatArray  # of the median
    crps: FloatArray
    covered: FloatArray  # 1 where the 90 % interval holds what happened

    @classmethod
    def of(cls, forecast: Forecast) -> RowScores:
        """Score each forecast by itself, once for all the groups it belongs to."""
        y = forecast.actual
        low, median, high = (
            forecast.quantile(q).to_numpy().reshape(y.shape) for q in (0.05, 0.5, 0.95)
        )
        inside = np.where(np.isfinite(y), (low <= y) & (y <= high), np.nan)
        crps = np.asarray(forecast.crps(), dtype=np.float64).reshape(y.shape)
        squared = np.asarray((y - forecast.members.mean(axis=0)) ** 2)
        return cls(squared, np.abs(y - median), crps, inside)

    def means(self, at: Any = ()) -> dict[str, float]:
        """Return the scores of `Forecast.score` of some of the forecasts, of all by default."""
        known = np.isfinite(self.squared[at])
        squared, absolute, crps, covered = (
            float(values[at][known].mean()) for values in vars(self).values()
        )
        scores = {"rmse": squared**0.5, "mae": absolute, "crps": crps, "coverage": covered}
        return {**scores, "n": int(known.sum())}


def _by_series(forecast: Forecast, model: RowScores, persistence: RowScores) -> pd.DataFrame | None:
    """Score each series alone: one row per series, the model's scores, and skill."""
    if forecast.series is None:
        return None
    codes, names = pd.factorize(forecast.series, sort=True)
    order = np.argsort(codes, kind="stable")
    borders = np.flatnonzero(np.diff(codes[order])) + 1
    rows = []
    for series, mine in zip(names, np.split(order, borders), strict=True):
        score, reference = (one.means(mine) for one in (model, persistence))
        rows.append({"series": str(series), **score_row(score, reference["rmse"])})
    return pd.DataFrame(rows)


def _by_step(forecast: Forecast, model: RowScores, persistence: RowScores) -> pd.DataFrame | None:
    """Score each step ahead alone, where there are several: the model's scores, and skill."""
    if forecast.horizon == 1:
        return None
    rows = []
    for k in range(forecast.horizon):
        if np.isfinite(forecast.actual[:, k]).any():
            score, reference = (one.means((slice(None), k)) for one in (model, persistence))
            rows.append({"step": k + 1, **score_row(score, reference["rmse"])})
    return pd.DataFrame(rows)


def persistence_forecast(fitted: Fitted, like: Forecast, prepared: Prepared) -> Forecast:
    """Forecast the rows of ``like``, made from the same table, by the last value known."""
    frame = prepared.frame
    rows = frame.find(like.origin, like.series)
    M, H = like.time.shape
    scale = prepared.scale(rows, H)
    last = np.broadcast_to(frame.target_values[rows][:, None, None], (M, H, 1))
    made = Forecast(
        origin=like.origin,
        time=like.time,
        target=like.target,
        weights=np.ones((M, H, 1)),
        means=scale.transform.forward(last),
        variances=scale.variances(fitted.calibration.persistence),
        members=np.moveaxis(last, -1, 0),
        part=like.part,
        actual=like.actual,
        transform=scale.transform,
        series=like.series,
    )
    return adapted(made, fitted.parts) if fitted.adaptive else made


def unseen_rows(
    parts: PartTimes, times: NDArray[Any], names: NDArray[np.str_]
) -> tuple[BoolArray, Scored, tuple[str, ...]]:
    """Choose the rows of ``times`` (M, H) whose parts are all new, or else those of calibration.

    Rows from before those of the fit are chosen only if there is nothing else.
    """
    new = (names == "new").all(axis=1)
    older = np.asarray(parts.before(times).any(axis=1))
    calibration = np.asarray(parts.calibration_rows(times).all(axis=1))
    later = new & ~older
    if later.any():
        return later, "new", ()
    if calibration.any():
        note = (
            "There are no new rows; the rows the intervals were calibrated on are used, which "
            "flatters the coverage."
        )
        return calibration, "calibration", (note,)
    if new.any():
        start = describe_time(parts.start)
        note = f"All rows are from before {start}, the first that the model was fitted on."
        return new, "new", (note,)
    raise DataError(
        "The table has no rows the model has not trained on. Supply newer rows, or fit "
        f"with test=0.2 to leave some unseen.{numbered_rows(times.dtype)}"
    )


def _left_out(fitted: Fitted, prepared: Prepared, chosen: NDArray[Any]) -> tuple[str, ...]:
    """Say how many rows are from before those of the fit, where later ones were chosen."""
    parts = fitted.parts
    origins = prepared.labelled(fitted.window, fitted.horizon)
    times = prepared.frame.future_times(origins, fitted.horizon)
    count = int(parts.before(times).any(axis=1).sum())
    if not count or parts.before(chosen).any():
        return ()
    return (
        f"{counted(count, 'row')} from before {describe_time(parts.start)}, the first that the "
        f"model was fitted on, {'is' if count == 1 else 'are'} left out.",
    )


def unseen_origins(
    fitted: Fitted, prepared: Prepared, caller: str
) -> tuple[IntArray, Scored, tuple[str, ...]]:
    """Return the origins whose steps ahead are known and unseen, and what they are.

    New ones without a measured step are among them: intervals tell time by all rows, as in
    `predict`.
    """
    origins, times, names = _known_steps(fitted, prepared, caller)
    rows, part, notes = unseen_rows(fitted.parts, times, names)
    every, _, named = _known_steps(fitted, prepared, caller, labelled=False)
    return np.union1d(origins[rows], every[(named == "new").all(axis=1)]), part, notes


def explained_origins(
    fitted: Fitted, prepared: Prepared
) -> tuple[IntArray, Scored, tuple[str, ...]]:
    """Return the origins to explain a model by, and what they are.

    Those whose steps ahead are measured and new, if there are `ENOUGH` of them; else those of
    calibration too.
    """
    origins, times, names = _known_steps(fitted, prepared, "explain")
    measured = measured_labels(prepared.frame, origins, fitted.horizon).all(axis=1)
    rows, part, notes = unseen_rows(fitted.parts, times, names)
    chosen = rows & measured
    notes = (*notes, *_left_out(fitted, prepared, times[rows]))
    if part == "calibration":
        return origins[chosen], part, notes
    calibration = np.asarray(fitted.parts.calibration_rows(times).all(axis=1)) & measured & ~rows
    unmeasured = rows.sum() >= ENOUGH and not chosen.any()  # which whoever asks should know
    if chosen.sum() >= ENOUGH or unmeasured or not calibration.any():
        return origins[chosen], part, notes
    few = (
        f"There {'is' if chosen.sum() == 1 else 'are'} only "
        f"{counted(int(chosen.sum()), 'new window')}; the rows the intervals were calibrated on "
        "are used too."
    )
    both: Scored = "calibration and new" if chosen.any() else "calibration"
    return origins[chosen | calibration], both, (few, *notes)


def _known_steps(
    fitted: Fitted, prepared: Prepared, caller: str, *, labelled: bool = True
) -> tuple[IntArray, NDArray[Any], NDArray[np.str_]]:
    """Return the origins whose steps ahead are known, the times of these, and their parts."""
    origins = fitted.origins(prepared, caller, labelled=labelled)
    times = prepared.frame.future_times(origins, fitted.horizon)
    return (
        origins,
        times,
        part_names(fitted.parts, fitted.preparation, times, prepared.frame.names_of(origins)),
    )
