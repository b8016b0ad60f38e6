"""Scores on rows a model has not seen, with naive forecasts for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.model.adaptive import adapted
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecasting import part_names
from mvlstm.model.naive import CYCLE, LAST, Naive
from mvlstm.model.predicting import warned
from mvlstm.model.table_warnings import numbered_rows
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import measured_labels, spread_evenly
from mvlstm.results import Evaluation, Forecast
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.transforms import IDENTITY
from mvlstm.types import BoolArray, FloatArray, IntArray

Scored = Literal["new", "calibration", "calibration and new"]
PINBALL = (0.05, 0.5, 0.95)  # quantiles that the pinball loss is the mean of
PATHS = 100  # by which joint forecasts are judged, at origins from the fewest to the most
PATH_ORIGINS = (10, 1_000)
PATH_PAIRS = 30_000_000  # distances between two steps of a path, about half a second
ENOUGH = 20  # new windows that a model is explained by alone


def score_unseen(
    fitted: Fitted,
    forecast: Forecast,
    prepared: Prepared,
    *,
    whole: bool = True,
    paths: bool = True,
) -> Evaluation:
    """Score the unseen rows of ``forecast``, which the model made from ``prepared``.

    Where the ``whole`` table was asked for, a note tells how many of its rows are too old. Joint
    ``paths`` are scored too.
    """
    forecast = forecast.take(np.asarray(np.isfinite(forecast.actual).any(axis=1)))
    rows, part, notes = unseen_rows(fitted.parts, forecast.time, forecast.part)
    chosen = forecast.take(rows)
    if whole:
        notes = (*notes, *_left_out(fitted, prepared, chosen.time), *_unscored(prepared, chosen))
    naive = Naive.of(chosen, prepared.frame)
    rivals = naive_forecasts(fitted, chosen, naive, prepared)
    each = {name: RowScores.of(one, naive) for name, one in rivals.items()}
    own = RowScores.of(chosen, naive)
    frame = pd.DataFrame({name: one.means() for name, one in {fitted.name: own, **each}.items()}).T
    period = (pd.Index(chosen.time[:, 0]).min(), pd.Index(chosen.time[:, -1]).max())
    return Evaluation(
        target=fitted.layout.target,
        scores=frame.astype({"n": int}),
        part=part,
        period=period,
        notes=(*forecast.notes, *notes, *_zero_note(frame)),
        by_series=_by_series(chosen, own, each),
        by_step=_by_step(chosen, own, each),
        paths=path_scores(chosen) if paths else None,
        experts=_expert_scores(fitted, chosen),
    )


def forecast_unseen(fitted: Fitted, table: Any) -> tuple[Prepared, Forecast]:
    """Forecast the rows of a table that can be scored; return it as prepared, too."""
    prepared = fitted.prepare(fitted.read(table, "evaluate"))
    origins, _, _ = unseen_origins(fitted, prepared)
    return prepared, warned(fitted.forecast(prepared, origins))


def _zero_note(scores: pd.DataFrame) -> tuple[str, ...]:
    """Say that a share of the value means nothing where the value is zero."""
    if np.isfinite(scores["mape"].iloc[0]):
        return ()
    return ("mape is empty, as some actual values are zero: use smape, mase or rmsse.",)


def _expert_scores(fitted: Fitted, forecast: Forecast) -> pd.DataFrame | None:
    """Score each variable's expert alone, the mean over members, where there is a mixture."""
    names = fitted.layout.names
    means = forecast.means.reshape(*forecast.actual.shape, len(forecast.members), -1)
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
    absolute_mean: FloatArray
    crps: FloatArray
    covered: FloatArray  # 1 where the 90 % interval holds what happened
    relative: FloatArray  # absolute error of the median as a share of the value
    symmetric: FloatArray  # and as a share of the mean of both sizes
    pinball: FloatArray  # mean over `PINBALL`
    interval: FloatArray  # interval score
    naive: Naive
    naive_squared: tuple[FloatArray, ...]

    @classmethod
    def of(cls, forecast: Forecast, naive: Naive) -> RowScores:
        """Score each forecast by itself, once for all the groups it belongs to."""
        y, mean = forecast.actual, forecast.members.mean(axis=0)
        quantiles = {q: forecast.quantile(q).to_numpy().reshape(y.shape) for q in PINBALL}
        low, median, high = quantiles.values()
        error, size = np.abs(y - median), np.abs(y) + np.abs(median)
        losses = [np.maximum(q * (y - x), (q - 1.0) * (y - x)) for q, x in quantiles.items()]
        missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(error == 0, 0.0, error / np.abs(y))
        return cls(
            squared=(y - mean) ** 2,
            absolute=error,
            absolute_mean=np.abs(y - mean),
            crps=np.asarray(forecast.crps(), dtype=np.float64).reshape(y.shape),
            covered=np.where(np.isfinite(y), (low <= y) & (y <= high), np.nan),
            relative=relative,
            symmetric=2.0 * error / np.where(size > 0, size, 1.0),
            pinball=np.mean(losses, axis=0),
            interval=high - low + 20.0 * missed,
            naive=naive,
            naive_squared=tuple((y - value) ** 2 for value in naive.values.values()),
        )

    def means(self, at: Any = ()) -> dict[str, float]:
        """Return the scores of some of the forecasts, of all by default.

        Skill is the share of the RMSE of the better naive method that is removed; of several
        series, after each has been divided by the size of its own changes.
        """
        known = np.isfinite(self.squared[at])

        def mean(values: FloatArray) -> float:
            chosen = values[at][known]
            return float(chosen.mean()) if chosen.size else float("nan")

        shape = self.squared.shape
        absolute, squared = (
            np.broadcast_to(size[:, None], shape)
            for size in (self.naive.absolute, self.naive.squared)
        )
        share = squared if self.naive.several and np.isfinite(squared[at]).all() else np.ones(shape)
        least = min(mean(values / share) for values in self.naive_squared)
        relative = mean(self.relative)
        return {
            "rmse": mean(self.squared) ** 0.5,
            "mae": mean(self.absolute),
            "mae_mean": mean(self.absolute_mean),
            "crps": mean(self.crps),
            "coverage": mean(self.covered),
            "skill": metrics.skill(mean(self.squared / share) ** 0.5, least**0.5),
            "rmsse": mean(self.squared / squared) ** 0.5,
            "mase": mean(self.absolute / absolute),
            "smape": mean(self.symmetric),
            "mape": relative if np.isfinite(relative) else float("nan"),
            "pinball": mean(self.pinball),
            "interval_score": mean(self.interval),
            "n": int(known.sum()),
        }


def score_against(forecast: Forecast, frame: SeriesFrame) -> dict[str, float]:
    """Return the scores of a forecast made from ``frame``, with its skill."""
    return RowScores.of(forecast, Naive.of(forecast, frame)).means()


def _by_series(
    forecast: Forecast, own: RowScores, rivals: Mapping[str, RowScores]
) -> pd.DataFrame | None:
    """Score each series alone: one row per series, with the error of naive methods."""
    if forecast.series is None:
        return None
    codes, names = pd.factorize(forecast.series, sort=True)
    order = np.argsort(codes, kind="stable")
    borders = np.flatnonzero(np.diff(codes[order])) + 1
    groups = zip(names, np.split(order, borders), strict=True)
    return pd.DataFrame([{"series": str(n), **_beside(own, rivals, at)} for n, at in groups])


def _by_step(
    forecast: Forecast, own: RowScores, rivals: Mapping[str, RowScores]
) -> pd.DataFrame | None:
    """Score each step ahead alone, where there are several, with the error of naive methods."""
    if forecast.horizon == 1:
        return None
    known = np.flatnonzero(np.isfinite(forecast.actual).any(axis=0))
    rows = [{"step": k + 1, **_beside(own, rivals, (slice(None), k))} for k in known.tolist()]
    return pd.DataFrame(rows)


def path_scores(forecast: Forecast) -> pd.DataFrame | None:
    """Score joint paths, and paths of independent steps, at some origins; None with one step.

    The longer the paths, the fewer the origins: each takes time by the pairs of its steps.
    """
    H = forecast.horizon
    whole = np.flatnonzero(np.isfinite(forecast.actual).all(axis=1))
    if H == 1 or not len(whole):
        return None
    most = PATH_PAIRS // (PATHS * H * (H - 1) // 2)
    chosen = forecast.take(spread_evenly(whole, int(np.clip(most, *PATH_ORIGINS))))
    rivals = {"joint": chosen, "independent": replace(chosen, dependence=None, tied=None)}
    rows = [{"paths": k, **one.score_paths(n=PATHS)} for k, one in rivals.items()]
    return pd.DataFrame(rows).assign(n=len(chosen))


def _beside(own: RowScores, rivals: Mapping[str, RowScores], at: Any) -> dict[str, float]:
    """Return scores of some forecasts, and after them RMSE and RMSSE of the rivals."""
    found = {name: one.means(at) for name, one in rivals.items()}
    errors = {f"{n}_{score}": found[n][score] for n in found for score in ("rmse", "rmsse")}
    return {**own.means(at), **errors}


def naive_forecasts(
    fitted: Fitted, like: Forecast, naive: Naive, prepared: Prepared
) -> dict[str, Forecast]:
    """Give the naive forecasts of the rows of ``like`` a distribution, as large as errors were."""
    scale = prepared.scale(prepared.frame.find(like.origin, like.series), like.horizon)
    spread = {LAST: scale.variances(fitted.calibration.persistence)}
    if CYCLE in naive.values:
        wide = np.nan_to_num(naive.spread, nan=1.0)[:, None, None]
        spread[CYCLE] = np.broadcast_to(wide, (*like.time.shape, 1))
    found = {}
    for name, variances in spread.items():
        value = naive.values[name][:, :, None]
        transform = scale.transform if name == LAST else IDENTITY
        made = Forecast(
            origin=like.origin,
            time=like.time,
            target=like.target,
            weights=np.ones(value.shape),
            means=transform.forward(value),
            variances=variances,
            members=np.moveaxis(value, -1, 0),
            part=like.part,
            actual=like.actual,
            transform=transform,
            series=like.series,
            shape=fitted.calibration.persistence_shape if name == LAST else None,
        )
        found[name] = adapted(made, fitted.parts) if fitted.adaptive else made
    return found


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


def _unscored(prepared: Prepared, chosen: Forecast) -> tuple[str, ...]:
    """Say which of several series have nothing to score, as those that end before the others."""
    panel = prepared.frame.panel
    if panel is None or chosen.series is None:
        return ()
    scored = set(chosen.series)
    absent = [name for name in panel.names if name not in scored]
    if not absent:
        return ()
    return (
        f"Scores are of {len(panel.names) - len(absent):,} of {len(panel.names):,} series: "
        f"{name_list(absent)} {'has' if len(absent) == 1 else 'have'} no such rows, which are "
        "chosen by time.",
    )


def unseen_origins(fitted: Fitted, prepared: Prepared) -> tuple[IntArray, Scored, tuple[str, ...]]:
    """Return the origins whose steps ahead are known and unseen, and what they are.

    New ones without a measured step are among them: intervals tell time by all rows, as in
    `predict`.
    """
    origins, times, names = _known_steps(fitted, prepared, "evaluate")
    rows, part, notes = unseen_rows(fitted.parts, times, names)
    every, _, named = _known_steps(fitted, prepared, "evaluate", labelled=False)
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
