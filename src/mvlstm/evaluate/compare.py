"""Compare methods on one table: same rows, same split, choice on validation, scores on the rest."""

from __future__ import annotations

import sys
import time as clock
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm.engine import check_engine, opened, recorded
from mvlstm.errors import DataError, MVLSTMError, ParameterError, check_option
from mvlstm.evaluate.backtest import (
    FoldRun,
    Recalibration,
    at_origins,
    check_refit,
    fold_frame,
    fold_rows,
    joined_stretches,
    refit_rows,
    refitted,
    run_fold,
)
from mvlstm.evaluate.methods import BUDGETS, Budget, Methods, build, choose_methods, find_method
from mvlstm.model.adaptive import adapted
from mvlstm.model.calibration import cover_factors, score_shape
from mvlstm.model.explaining import reliance
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.scoring import score_against
from mvlstm.model.transform_choice import TRANSFORM_CHOICES, choose_transform
from mvlstm.model.window_choice import choose_window
from mvlstm.problem.predictive import Mixture
from mvlstm.problem.splits import split_windows
from mvlstm.problem.target_scale import location_of_member, mean_of_members
from mvlstm.problem.windows import measured_labels, origin_rows
from mvlstm.progress import show_tasks
from mvlstm.results import Comparison, Forecast
from mvlstm.results.comparison import COLUMNS
from mvlstm.settings import ComparingSettings, expanded
from mvlstm.table.frame import Layout, SeriesFrame, Table, check_table, rebuild_frame
from mvlstm.table.kinds import kind_of
from mvlstm.table.parts import chronological, require_validation
from mvlstm.table.settings import Cleaning, Columns
from mvlstm.types import FloatArray

Kind = Literal["single", "ensemble"]
KINDS: tuple[Kind, ...] = ("single", "ensemble")
TOP = 3
ROUNDING = 1e-9  # shares of importance below this come from rounding


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the comparison with the errors that its p-value needs."""

    row: dict[str, Any]
    errors: pd.Series[float]  # by origin: root of the mean squared error over the steps
    folds: tuple[float, ...]  # RMSE of each


@expanded(columns=Columns, settings=ComparingSettings)
def compare(
    table: Table,
    columns: Columns,
    settings: ComparingSettings,
    *,
    methods: Methods = "all",
    budget: Budget = "quick",
    folds: int = 1,
    test: float = 0.2,
    valid: float = 0.1,
    every: int | None = None,
    refit: Recalibration = "full",
    refit_every: int | None = None,
    own: pd.DataFrame | None = None,
    own_name: str = "own forecasts",
    engine: str = "local",
    checkpoint: str | Path | None = None,
) -> Comparison:
    """Fit several methods to the same rows and score them on the same unseen ones.

    A method that fails, or cannot use a setting that it needs, says so in its row; the others
    continue. Persistence and its seasonal kind stay on the target's own scale.

    Parameters
    ----------
    table : DataFrame or SeriesFrame
    methods : str, forecaster, or sequence of these
        "all", or some of mvlstm, paper, indep, fusion, readable, lstm, dual, retain, clstm, strx,
        arimax, rf, xgt, enet, ar, gbt, seasonal; or forecasters such as ``mv.AR(window=24)``,
        which keep their own settings. Persistence is always there.
    budget : {"quick", "full"}
        How much each method may tune and train; every row states it.
    folds : int
        1: one chronological split. More: this many rolling origins, each with a fit of its own.
    test, valid : float
        Share of the rows (below 1) to score on, and to choose and calibrate on; or their number.
    every, refit, refit_every
        Forecast from origins this many rows apart and bring models up to date as time passes, as
        `backtest` does; then ``folds`` is not used, and an ensemble has one row, of its mean. With
        ``refit="link"`` a method without a linear map is fitted anew.
    own : DataFrame, optional
        Your own forecasts, one step ahead, in the columns ``time`` and ``value``, for one more row.
    own_name : str
        Its name.
    engine : str
        "local", "ray", or the address of a Ray cluster, where each method is a task.
    checkpoint : path, optional
        Folder in which the rows of each finished method are kept: after an interruption the same
        call goes on from it, and tries again what failed. Other data or settings begin anew.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> found = compare(table, "y", methods=["ar"], window=4, verbose=0)
    >>> list(found.rows["method"])
    ['AR', 'Persistence']
    """
    check_option("budget", budget, BUDGETS)
    check_refit(every, refit, refit_every)
    check_engine(engine)
    require_validation(valid)
    chosen_methods = choose_methods(methods)
    cleaning = Cleaning.of(settings)
    frame = check_table(table, columns, cleaning)
    horizon, verbose = settings.horizon, settings.verbose
    if every is None:
        cuts = fold_rows(len(frame.clock), folds=folds, test=test, valid=valid)
    else:
        size = (len(frame.clock), int(horizon))
        cuts = refit_rows(*size, every, refit_every, test=test, valid=valid)
    first = frame.order < cuts[0][0]
    ridge = find_method("ar")
    linear = ridge.create(ridge.known(asdict(settings)))
    window, sizing = choose_window(linear, frame.rows(first), test=0, valid=valid)
    split = split_windows(frame, window=window, horizon=horizon, test=test, valid=valid)
    n_train = len(split[1]["train"])
    check_option("transform", settings.transform, TRANSFORM_CHOICES)
    chosen, notes = choose_transform(settings.transform, frame, first, window, horizon)
    shared = asdict(settings) | {
        "window": window,
        "calendar": frame.layout.calendar or "none",
        "holidays": "none",  # which are parts of the calendar by now
        "transform": chosen.name,
        "bounds": chosen.bounds if settings.bounds is None else settings.bounds,
        "verbose": 0 if sys.stderr.isatty() else max(0, verbose - 1),
    }
    entries: list[Entry] = []
    if own is not None:
        if every is not None:
            raise ParameterError(
                "Own forecasts are scored at every row, and every= takes some of them. Leave out "
                "one of the two."
            )
        entries.append(_own_entry(own, own_name, frame, window, horizon, cuts))
    named = tuple(chosen_methods.items())
    plan = _Plan(named, frame, cuts, valid, budget, n_train, shared, every, refit)
    shown = show_tasks(verbose, "compare", len(chosen_methods), every=0.0)
    records = recorded(checkpoint, "compare", plan, _succeeded)
    with opened(engine, settings.device) as spread, records as kept, shown as advance:
        for _, found in spread.each(_method_entries, plan, len(chosen_methods), kept):
            entries += found
            advance(_progress(found[-1].row))
    noted = replace(frame, notes=(*frame.notes, *sizing, *notes))
    found = _comparison(entries, noted, horizon, cuts, every)
    return replace(found, kind=kind_of(table))


# -------------------------------------------------------------------------------- one method's rows


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the methods of a comparison have in common."""

    methods: tuple[tuple[str, str | AbstractForecaster], ...]  # each with its label
    frame: SeriesFrame
    cuts: list[tuple[int, int]]
    valid: float
    budget: Budget
    n_train: int
    shared: dict[str, Any]  # settings
    every: int | None  # rows between origins, of models brought up to date as time passes
    refit: Recalibration


def _method_entries(plan: _Plan, k: int) -> list[Entry]:
    """Fit a method on every fold; whatever goes wrong, the other methods continue."""
    (label, method), words = plan.methods[k], ""
    given: Any = {"budget": plan.budget, "n_train": plan.n_train, "shared": plan.shared}
    try:
        if plan.every is not None:
            model, words = build(method, **given)
            return [_rolled(label, model, plan, plan.every, words)]
        runs = []
        for start, end in plan.cuts:
            model, words = build(method, **given)
            runs.append(run_fold(model, *fold_frame(plan.frame, start, end), plan.valid))
        return _entries(label, runs, plan.frame, words)
    except Exception as error:
        return [_failure(label, error, words)]


def _rolled(label: str, model: AbstractForecaster, plan: _Plan, every: int, words: str) -> Entry:
    """Score a method at origins a distance apart, brought up to date before each stretch."""
    frame, first = plan.frame, plan.cuts[0][0]
    parts = chronological(first, test=0.0, valid=plan.valid)
    run = run_fold(model, *fold_frame(frame, *plan.cuts[0]), parts.b - parts.a)
    top = _top_variables(run.model, fold_frame(frame, *plan.cuts[0])[0])  # before any update
    model, seconds, forecasts = run.model, run.fit_seconds, []
    can = plan.refit != "link" or hasattr(model, "refit_link")
    for start, end in plan.cuts:
        if start > first:
            started = clock.monotonic()
            model = refitted(model, frame, start, plan.refit if can else "full", plan.valid)
            seconds += clock.monotonic() - started
        forecasts.append(at_origins(model, frame, start, end, every, first))
    adaptive = model.calibration == "adaptive"
    scored = joined_stretches(forecasts, plan.refit if can else "full", adaptive=adaptive)
    row = {
        "method": label,
        "kind": "ensemble" if scored.members.shape[0] > 1 else "single",
        **score_against(scored, frame),
        "valid_rmse": _rmse(run.recent.take(run.calibration)),
        "fit_seconds": seconds,
        "forecasts_per_second": run.forecasts_per_second,
        "top_variables": top,
        "budget": words,
        "error": None,
    }
    return Entry(row, _errors(scored), tuple(map(_rmse, forecasts)))


def _rmse(forecast: Forecast) -> float:
    return float(_errors(forecast).pow(2).mean() ** 0.5)


def _entries(label: str, runs: list[FoldRun], frame: SeriesFrame, words: str) -> list[Entry]:
    """Score a method's forecasts; an ensemble of several gets a row for one member too."""
    common = {
        "method": label,
        "fit_seconds": float(np.sum([run.fit_seconds for run in runs])),
        "forecasts_per_second": float(np.mean([run.forecasts_per_second for run in runs])),
        "top_variables": _top_variables(runs[-1].model, frame),
        "budget": words,
        "error": None,
    }
    several = runs[0].recent.members.shape[0] > 1
    kinds: list[Kind] = ["single", "ensemble"] if several else ["single"]
    found = []
    for kind in kinds:
        alone = several and kind == "single"
        forecasts = [first_member(run) if alone else run.recent for run in runs]
        pairs = list(zip(forecasts, runs, strict=True))
        judged = [forecast.take(run.calibration) for forecast, run in pairs]
        new = [forecast.take(run.new) for forecast, run in pairs]
        scored = Forecast.join(new)
        row = {
            **common,
            "kind": kind,
            **score_against(scored, frame),
            "valid_rmse": _rmse(Forecast.join(judged)),
        }
        found.append(Entry(row, _errors(scored), tuple(map(_rmse, new))))
    return found


def first_member(run: FoldRun) -> Forecast:
    """Return what the first member alone forecasts, with an interval of its own.

    It is one normal whose variance is the member's squared error on the stopping rows, times the
    factor that makes the 90 % interval cover on the validation rows; of several series, on the
    scale of each.
    """
    recent, transform, fitted = run.recent, run.recent.transform, run.model.fitted_
    mixtures = Mixture.split(recent.weights, recent.means, recent.variances, len(recent.members))
    location = location_of_member(transform, mixtures, recent.members, 0)
    actual = transform.forward(recent.actual)
    errors = (location - actual) / run.units[:, None]
    spread = np.maximum(np.nanmean(errors[run.stop] ** 2, axis=0), np.finfo(float).tiny)
    variances = (spread * run.units[:, None] ** 2)[..., None, None]  # (M, H, 1, 1)
    one = Mixture(np.ones_like(variances), location[..., None, None], variances)
    rows = run.stop | run.calibration
    times = np.asarray(recent.origin)[rows]
    one = one.widened(cover_factors(one.take(rows).joined, actual[rows], times))
    weights, means, variances = one.joined
    alone = replace(
        recent,
        weights=weights,
        means=means,
        variances=variances,
        members=mean_of_members(transform, one.widened(fitted.calibration.mean_factor)),
        knots=None,
        shape=score_shape(metrics.mixture_score(*one.take(rows).joined, actual[rows])),
    )
    return adapted(alone, fitted.parts) if fitted.adaptive else alone


def _top_variables(model: AbstractForecaster, rows: Any) -> tuple[str, ...]:
    """Return the variables whose scrambling costs most on the unseen rows; none if nothing does."""
    try:
        with warnings.catch_warnings(action="ignore"):
            costs = reliance(model.fitted_, rows, "quick").sort_values(ascending=False)
    except DataError:  # too few unseen rows to scramble; the scores are valid all the same
        return ()
    return tuple(costs.index[costs > ROUNDING * costs.max()][:TOP])


def _errors(forecast: Forecast) -> pd.Series[float]:
    """Return by origin the root of the mean squared error over the steps ahead."""
    forecast = forecast.take(np.asarray(np.isfinite(forecast.actual).any(axis=1)))
    squared = (forecast.members.mean(axis=0) - forecast.actual) ** 2
    index: pd.Index[Any] = forecast.origin
    if forecast.series is not None:
        index = pd.MultiIndex.from_arrays([forecast.series, forecast.origin])
    errors: FloatArray = np.sqrt(np.nanmean(squared, axis=1))
    return pd.Series(errors, index=index)


def _failure(label: str, error: Exception, words: str) -> Entry:
    reason = str(error) if isinstance(error, MVLSTMError) else f"{type(error).__name__}: {error}"
    row = {"method": label, "kind": "single", "budget": words, "error": reason}
    return Entry(row, pd.Series(dtype=float), ())


def _succeeded(entries: Sequence[Entry]) -> bool:
    return all(entry.row["error"] is None for entry in entries)


def _progress(row: dict[str, Any]) -> str:
    if row["error"] is not None:
        return f"{row['method']}: failed"
    return f"{row['method']}: RMSE {row['rmse']:.4g}, fitted in {row['fit_seconds']:.0f} s"


# ------------------------------------------------------------------------------- the user's own row


def _own_entry(
    own: pd.DataFrame,
    name: str,
    frame: SeriesFrame,
    window: int,
    horizon: int,
    cuts: list[tuple[int, int]],
) -> Entry:
    """Score given forecasts on the measured rows that they and the methods share."""
    given = _own_values(own, frame, horizon)
    origins = origin_rows(frame, window, 1)
    origins = origins[measured_labels(frame, origins, 1)[:, 0]]
    rows, times = origins + 1, frame.times[origins]
    actual = frame.target_values[rows]
    errors = pd.Series(given.reindex(frame.times[rows]).to_numpy() - actual, index=times)
    moves = pd.Series(actual - frame.target_values[origins], index=times)
    folds = [errors[(rows >= start) & (rows < end)] for start, end in cuts]
    scored = pd.concat(folds).dropna()
    row = {"method": name, "kind": "single", "budget": "unknown", "error": None}
    if scored.empty:
        count = sum(map(len, folds))
        row["error"] = f"None of its {len(own):,} times is among the {count:,} rows scored."
        return Entry(row, pd.Series(dtype=float), ())
    rmse = _root_mean_square(scored)
    scores = {
        "rmse": rmse,
        "mae": float(scored.abs().mean()),
        "skill": metrics.skill(rmse, _root_mean_square(moves[scored.index])),
        "n": len(scored),
    }
    return Entry(row | scores, scored.abs(), tuple(map(_root_mean_square, folds)))


def _root_mean_square(values: pd.Series[float]) -> float:
    """Return the root of the mean square of what is known, NaN if nothing is."""
    return float(np.sqrt(np.mean(values.dropna() ** 2)))


def _own_values(own: pd.DataFrame, frame: SeriesFrame, horizon: int) -> pd.Series[float]:
    """Return own forecasts by time, read as the table was; refuse those that cannot be compared."""
    if frame.panel is not None or horizon != 1:
        raise ParameterError(
            "Own forecasts are of one series, one step ahead. Leave them out, or compare one "
            "series at a time with horizon=1."
        )
    received = list(own.columns) if isinstance(own, pd.DataFrame) else type(own).__name__
    if not isinstance(own, pd.DataFrame) or not {"time", "value"} <= set(own.columns):
        raise DataError(
            f"Own forecasts need a DataFrame with the columns 'time' and 'value', not {received}."
        )
    times = {name: getattr(frame.layout, name) for name in ("time_kind", "time_zone", "day_first")}
    layout = Layout("value", time=("time",), variables=(), missing="drop", gaps="close", **times)
    try:
        given = rebuild_frame(own, layout, caller="compare")
    except DataError as error:
        raise DataError(f"The own forecasts cannot be used: {error}") from error
    return pd.Series(given.target_values, index=given.times)


# ------------------------------------------------------------------------------------ all together


def _comparison(
    entries: list[Entry],
    frame: SeriesFrame,
    horizon: int,
    cuts: list[tuple[int, int]],
    every: int | None,
) -> Comparison:
    """Add the p-values, put the rows in order, and say how to read them."""
    rolled = every is not None
    overlapping = -(-horizon // (every or 1))  # forecasts of a time
    best, values = _tests(entries, overlapping, together=rolled)
    full = [
        {**dict.fromkeys(COLUMNS, np.nan), "top_variables": (), **entry.row, "dm_p": p}
        for entry, p in zip(entries, values, strict=True)
    ]
    rows = pd.DataFrame(full, columns=list(COLUMNS))
    order = rows["rmse"].fillna(np.inf).argsort(kind="stable")
    rows = rows.iloc[order].reset_index(drop=True)
    rows["n"] = rows["n"].astype("Int64")  # also where a method failed and has none
    rows["error"] = rows["error"].astype(object).where(rows["error"].notna(), None)
    per_fold = pd.DataFrame(
        [
            {"method": e.row["method"], "kind": e.row["kind"], "fold": k + 1, "rmse": rmse}
            for e in entries
            for k, rmse in enumerate(e.folds)
        ],
        columns=["method", "kind", "fold", "rmse"],
    )
    period = (frame.clock[cuts[0][0]], frame.clock[cuts[-1][1] - 1])
    notes = (*frame.notes, *_notes(entries, best, len(cuts), horizon, rolled=rolled))
    return Comparison(frame.target, rows, per_fold, best, period, notes)


def _tests(
    entries: list[Entry], horizon: int, *, together: bool
) -> tuple[dict[str, str], list[float]]:
    """Test the method best on validation against each of its kind; p-values after Holm.

    Where each method has one row, all are tested ``together``.
    """
    values = [float("nan")] * len(entries)
    best: dict[str, str] = {}
    for kinds in (KINDS,) if together else tuple((kind,) for kind in KINDS):
        family = [i for i, e in enumerate(entries) if e.row["kind"] in kinds and len(e.errors)]
        judged = [i for i in family if np.isfinite(entries[i].row.get("valid_rmse", np.nan))]
        if not judged:
            continue
        winner = min(judged, key=lambda i: entries[i].row["valid_rmse"])
        best[entries[winner].row["kind"]] = entries[winner].row["method"]
        rivals = [i for i in family if i != winner]
        raw = [_p_value(entries[winner].errors, entries[i].errors, horizon) for i in rivals]
        for i, p in zip(rivals, metrics.holm(raw) if raw else (), strict=True):
            values[i] = float(p)
    return best, values


def _p_value(best: pd.Series[float], rival: pd.Series[float], horizon: int) -> float:
    shared = best.index.intersection(rival.index)
    first, second = _by_time(best[shared]), _by_time(rival[shared])
    if len(first) < max(3, horizon + 1):
        return float("nan")
    return metrics.diebold_mariano(first, second, horizon=horizon).p_value


def _by_time(errors: pd.Series[float]) -> pd.Series[float]:
    """Return errors in time order; of several series, the root of the mean square at each time."""
    if errors.index.nlevels == 1:
        return errors.sort_index()
    return errors.pow(2).groupby(level=1, sort=True).mean().pow(0.5)


def _notes(
    entries: list[Entry], best: dict[str, str], folds: int, horizon: int, *, rolled: bool
) -> tuple[str, ...]:
    notes = []
    if horizon > 1:
        notes.append(f"Scores are of all {horizon} steps ahead together.")
    if best:
        named = " and ".join(f"{name} ({kind})" for kind, name in best.items())
        notes.append(
            f"dm_p: Diebold-Mariano test, corrected by Holm, that the method best on validation, "
            f"{named}, is more accurate than the row's; small means it is."
        )
    if rolled:
        notes.append(
            f"Models were brought up to date {folds - 1} times, which fit_seconds contains; of an "
            "ensemble the mean counts."
        )
    elif any(entry.row["kind"] == "ensemble" for entry in entries):
        notes.append(
            "single is the first member of an ensemble, ensemble the mean of all; the members "
            "were fitted together, so both rows show the same fit_seconds."
        )
    if folds > 1 and not rolled:
        notes.append(f"Scores are pooled over {folds} folds; fit_seconds is their sum.")
    scored = {e.row["method"]: int(e.row["n"]) for e in entries if e.row["error"] is None}
    most = max(scored.values(), default=0)
    notes += [
        f"{name} has forecasts of {n:,} of the {most:,} rows scored: its scores are of these alone."
        for name, n in scored.items()
        if n < most
    ]
    failed = [entry.row["method"] for entry in entries if entry.row["error"] is not None]
    if failed:
        notes.append(f"Failed, see the column error: {', '.join(dict.fromkeys(failed))}.")
    return tuple(notes)
