"""Rolling origins: fit on what is past, forecast what comes, move on, fit again."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from sklearn.base import clone

from mvlstm._words import counted
from mvlstm.engine import check_engine, opened, recorded
from mvlstm.errors import DataError, ParameterError, check_option, check_whole
from mvlstm.model.adaptive import adapted_stream
from mvlstm.model.forecaster import AbstractForecaster, require_whole
from mvlstm.model.scoring import score_against
from mvlstm.model.transform_choice import choose_transform
from mvlstm.model.window_choice import choose_window
from mvlstm.progress import show_tasks
from mvlstm.results import Forecast
from mvlstm.results._tables import Drawable, as_kind
from mvlstm.results.forecast import nixtla_frame
from mvlstm.settings import expanded
from mvlstm.table.frame import SeriesFrame, Table, check_table
from mvlstm.table.kinds import kind_of
from mvlstm.table.panel import after_last
from mvlstm.table.parts import chronological
from mvlstm.table.settings import Cleaning, Columns
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray

Recalibration = Literal["full", "update", "link"]
RECALIBRATIONS: tuple[Recalibration, ...] = get_args(Recalibration)


@dataclass(frozen=True, eq=False)
class FoldRun:
    """What one forecaster did on one fold."""

    model: AbstractForecaster  # fitted on the rows before the fold
    recent: Forecast  # of the validation rows and the fold's own
    units: FloatArray  # (M,) what one means on the scale of each forecast's series, 1 if one alone
    fit_seconds: float
    forecasts_per_second: float

    @property
    def stop(self) -> BoolArray:
        """Origins whose steps all lie in the rows that stop and select."""
        return self.validation & ~self._later.any(axis=1)

    @property
    def calibration(self) -> BoolArray:
        """Origins of steps in the later validation rows, by which nothing was selected."""
        return self.validation & self._later.all(axis=1)

    @property
    def _later(self) -> BoolArray:
        return np.asarray(self.model.fitted_.parts.calibration_rows(self.recent.time))

    @property
    def validation(self) -> BoolArray:
        """Origins whose steps all lie in the validation rows."""
        return np.asarray((self.recent.part == "validation").all(axis=1))

    @property
    def new(self) -> BoolArray:
        """Origins whose steps all lie in the fold."""
        return np.asarray(self.model.fitted_.parts.after(self.recent.time).all(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Backtest(Drawable):
    """Scores of a forecaster that was fitted anew at each of several origins."""

    target: str
    scores: pd.DataFrame
    """One row per fold and one "pooled": the scores of `Evaluation`, and ``fit_seconds``."""
    periods: tuple[tuple[Any, Any], ...]  # first and last time of each fold
    forecast: Forecast  # those of every fold, one after another
    method: str = ""  # class of the forecaster

    def to_frame(self) -> Any:
        """Return a copy of the scores."""
        return as_kind(self.scores.rename_axis("fold"), self.forecast.kind)

    def to_nixtla(self, *others: Backtest, level: Sequence[float] = (90,)) -> Any:
        """Return the frame of Nixtla's ``cross_validation``, which utilsforecast evaluates.

        Columns ``unique_id, ds, cutoff, y``, then each method's forecast and its intervals:
        ``AR, AR-lo-90, AR-hi-90``.

        Parameters
        ----------
        *others : Backtest
            Of the same table and origins, whose columns are added.
        level : sequence of float
            Percentages that the intervals should hold.
        """
        for one in others:
            if not isinstance(one, Backtest):
                raise ParameterError(
                    f"to_nixtla() received a {type(one).__name__} next to its own backtest. Pass "
                    "what mvlstm.backtest() returned for the other methods; level= has a name."
                )
        parts = [self, *others]
        names = unique_names([one.method for one in parts])
        tables = [
            nixtla_frame(one.forecast, name, level) for one, name in zip(parts, names, strict=True)
        ]
        whole = tables[0]
        for other in tables[1:]:
            whole = whole.merge(
                other.drop(columns="y"), on=["unique_id", "ds", "cutoff"], how="inner"
            )
        if not len(whole):
            raise DataError(
                "The backtests have no origin in common. Run them on the same table with the same "
                "folds."
            )
        return as_kind(whole, self.forecast.kind)

    def __repr__(self) -> str:
        shown = self.scores.to_string(float_format=lambda x: f"{x:.4g}")
        return f"Backtest(target={self.target!r}, {counted(len(self.periods), 'fold')})\n{shown}"


@expanded(columns=Columns)
def backtest(
    model: AbstractForecaster,
    table: Table,
    columns: Columns,
    *,
    folds: int = 5,
    test: float = 0.2,
    valid: float = 0.1,
    every: int | None = None,
    refit: Recalibration = "full",
    refit_every: int | None = None,
    engine: str = "local",
    checkpoint: str | Path | None = None,
) -> Backtest:
    """Fit and score a forecaster at rolling origins, the training rows growing each time.

    Parameters
    ----------
    model : AbstractForecaster
        Its settings are used, it is not fitted itself.
    table : DataFrame or SeriesFrame
    folds : int
        Number of origins K; the last ``test`` rows are cut into K pieces, and the model is
        fitted on all rows before each piece.
    test, valid : float
        Share of the rows to score on (below 1), or their number; share of a fold's rows to stop
        and calibrate on, or their number.
    every : int, optional
        Forecast from origins this many rows apart, the first being the last before the test rows:
        with hours until midnight and 24, once a day for the next day. Then ``folds`` is not used,
        and intervals follow the outcomes of these forecasts through all refits.
    refit : {"full", "update", "link"}
        With ``every``, what is done as time passes: a fit anew, or `update` of the first fit with
        all rows or, "link", of its linear map alone.
    refit_every : int, optional
        How many rows pass between refits; by default seven times ``every``.
    engine : str
        "local", "ray", or the address of a Ray cluster, where each fold is a task. Updates, which
        go on from one another, are made here.
    checkpoint : path, optional
        Folder in which the forecasts of each finished fold are kept: after an interruption the same
        call goes on from it. Other data or settings, and updates, begin anew.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> scores = backtest(mv.AR(window=3, verbose=0), table, "y", folds=2).scores
    >>> list(scores.index)
    [1, 2, 'pooled']
    """
    _check_forecaster(model)
    check_refit(every, refit, refit_every)
    check_engine(engine)
    cleaning = Cleaning.of(model)
    frame = check_table(table, columns, cleaning)
    if every is None:
        cuts = fold_rows(len(frame.clock), folds=folds, test=test, valid=valid)
    else:
        size = (len(frame.clock), int(model.horizon))
        cuts = refit_rows(*size, every, refit_every, test=test, valid=valid)
    past: Any = frame.rows(frame.order < cuts[0][0])
    window, _ = choose_window(model, past, test=0, valid=valid)
    settings: dict[str, Any] = {"verbose": 0, "window": window}
    if model.transform == "auto":  # one choice for all folds, made before the first
        first, size = frame.order < cuts[0][0], (window, model.horizon)
        chosen, _ = choose_transform("auto", frame, first, *size)
        bounds = chosen.bounds if model.bounds is None else model.bounds
        settings |= {"transform": chosen.name, "bounds": bounds}
    start = clone(model).set_params(**settings)
    plan = _Plan(start, frame, cuts, valid, every)
    apart = every is None or refit == "full"  # else each fit goes on from the one before
    seconds, scored = [], []
    shown = show_tasks(model.verbose, "backtest", len(cuts), every=0.0)
    with (
        opened(engine if apart else "local", getattr(model, "device", "cpu")) as spread,
        recorded(checkpoint if apart else None, "backtest", plan) as kept,
    ):
        work = spread.each(scored_fold, plan, len(cuts), kept) if apart else _in_turn(plan, refit)
        with shown as advance:
            for _, (forecast, spent) in work:
                scored.append(forecast)
                seconds.append(spent)
                advance("folds fitted")
    if every is None:
        pooled = Forecast.join(scored)
    else:
        pooled = joined_stretches(scored, refit, adaptive=model.calibration == "adaptive")
        borders = np.cumsum([0, *map(len, scored)])
        scored = [pooled.take(slice(a, b)) for a, b in pairwise(borders)]
    table_of = {
        name: {**score_against(forecast, frame), "fit_seconds": float(np.sum(spent))}
        for name, forecast, spent in [
            *((k + 1, scored[k], [spent]) for k, spent in enumerate(seconds)),
            ("pooled", pooled, seconds),
        ]
    }
    periods = tuple((frame.clock[start], frame.clock[end - 1]) for start, end in cuts)
    scores = pd.DataFrame(table_of).T.astype({"n": int})
    pooled = replace(pooled, kind=kind_of(table))
    return Backtest(frame.target, scores, periods, pooled, type(model).__name__)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the folds of a backtest have in common."""

    model: AbstractForecaster  # not fitted
    frame: SeriesFrame
    cuts: Sequence[tuple[int, int]]
    valid: float
    every: int | None


def scored_fold(plan: _Plan, k: int) -> tuple[Forecast, float]:
    """Fit on the rows before a fold; return its forecasts, and the seconds of the fit."""
    if plan.every is not None:
        return _refitted_fold(plan, k, clone(plan.model), "full")[1:]
    rows = fold_frame(plan.frame, *plan.cuts[k])
    run = run_fold(clone(plan.model), *rows, plan.valid)
    return run.recent.take(run.new), run.fit_seconds


def _in_turn(plan: _Plan, refit: Recalibration) -> Iterator[tuple[int, tuple[Forecast, float]]]:
    """Fit the first fold's model and bring it up to date for each of the others."""
    model = clone(plan.model)
    for k in range(len(plan.cuts)):
        model, forecast, seconds = _refitted_fold(plan, k, model, refit if k else "full")
        yield k, (forecast, seconds)


def _refitted_fold(
    plan: _Plan, k: int, model: AbstractForecaster, refit: Recalibration
) -> tuple[AbstractForecaster, Forecast, float]:
    assert plan.every is not None
    start, end = plan.cuts[k]
    started = clock.monotonic()
    model = refitted(model, plan.frame, start, refit, plan.valid)
    seconds = clock.monotonic() - started
    return model, at_origins(model, plan.frame, start, end, plan.every, plan.cuts[0][0]), seconds


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names of columns, those that occur again with a number.

    Examples
    --------
    >>> unique_names(["AR", "GBT", "AR"])
    ['AR', 'GBT', 'AR2']
    """
    counts = [names[: k + 1].count(name) for k, name in enumerate(list(names))]
    return [name if n == 1 else f"{name}{n}" for name, n in zip(names, counts, strict=True)]


def _check_forecaster(model: object) -> None:
    """Refuse a class or a name where a forecaster with its settings is needed."""
    if isinstance(model, AbstractForecaster):
        return
    given = f"the class {model.__name__}" if isinstance(model, type) else repr(model)
    raise ParameterError(
        f"backtest() received {given}; pass a forecaster with its settings, such as "
        "mv.AR(window=30)."
    )


def fold_rows(n_rows: int, *, folds: int, test: float, valid: float) -> list[tuple[int, int]]:
    """Return first row and end of each fold.

    Examples
    --------
    >>> fold_rows(100, folds=2, test=0.2, valid=0.1)
    [(80, 90), (90, 100)]
    """
    check_whole("folds", folds, 1)
    first = chronological(n_rows, test=test, valid=valid).b
    if n_rows - first < folds:
        raise ParameterError(
            f"test={test:g} leaves {n_rows - first:,} rows to score on, too few for {folds} folds; "
            "make it larger or use fewer folds."
        )
    borders = [first + k * (n_rows - first) // folds for k in range(folds + 1)]
    return list(pairwise(borders))


def check_refit(every: int | None, refit: str, refit_every: int | None) -> None:
    """Refuse what is not a way to refit, and one without origins to refit between."""
    check_option("refit", refit, RECALIBRATIONS)
    if every is None and (refit != "full" or refit_every is not None):
        told = f"refit={refit!r}" if refit_every is None else f"refit_every={refit_every}"
        raise ParameterError(
            f"{told} is for origins a number of rows apart. Add every=24, for instance, or leave "
            "it out."
        )


def refit_rows(
    n_rows: int, horizon: int, every: int, refit_every: int | None, *, test: float, valid: float
) -> list[tuple[int, int]]:
    """Return first row and end of each stretch between two refits, before which there is an origin.

    Examples
    --------
    >>> refit_rows(100, 5, 2, 8, test=0.2, valid=0.1)
    [(80, 88), (88, 100)]
    """
    check_whole("every", every, 1)
    between = 7 * every if refit_every is None else refit_every
    check_whole("refit_every", between, 1)
    if between % every:
        raise ParameterError(
            f"refit_every={between} is not a multiple of every={every}, so that refits would fall "
            "between two origins. Choose a multiple."
        )
    first = chronological(n_rows, test=test, valid=valid).b
    if n_rows - first < horizon:
        raise ParameterError(
            f"test={test:g} leaves {n_rows - first:,} rows to score on, fewer than "
            f"horizon={horizon}. Make it larger."
        )
    borders = [*range(first, n_rows - horizon + 1, between), n_rows]
    return list(pairwise(borders))


def refitted(
    model: AbstractForecaster, frame: SeriesFrame, start: int, refit: Recalibration, valid: float
) -> AbstractForecaster:
    """Bring a model up to the rows before ``start``; it sees no others."""
    past: Any = frame.rows(frame.order < start)
    if refit == "full":
        model = clone(model).fit(past, frame.target, valid=valid)
        require_whole(model.fitted_)
        return model
    return model.update(past, refit="link" if refit == "link" else "newest")


def at_origins(
    model: AbstractForecaster, frame: SeriesFrame, start: int, end: int, every: int, first: int
) -> Forecast:
    """Forecast from the rows of a stretch that are ``every`` rows apart, as from ``first - 1``.

    Intervals are those of the fit: how they follow outcomes, other stretches decide too.
    """
    before = model.fitted_.window + model.fitted_.preparation.lead if model.local else start
    if model.missing == "fill":
        before += model.fitted_.layout.fill_limit
    near = (frame.order >= start - before) & (frame.order < end + int(model.horizon))
    rows: Any = frame.rows(near)
    forecast = model.predict(rows)
    order = frame.order[frame.find(forecast.origin, forecast.series)] + 1
    chosen = forecast.take((order >= start) & (order < end) & ((order - first) % every == 0))
    return replace(chosen, knots=None, tied=None)


def joined_stretches(
    forecasts: Sequence[Forecast], refit: Recalibration, *, adaptive: bool
) -> Forecast:
    """Put the forecasts of stretches after one another; intervals follow through all of them.

    Those of one fit whose link was refitted begin with its calibration, not with what was carried
    from one refit to the next, which has followed the same outcomes.
    """
    if refit == "link":
        forecasts = [replace(one, shape=forecasts[0].shape) for one in forecasts]
    return adapted_stream(forecasts) if adaptive else Forecast.join(forecasts)


def fold_frame(frame: SeriesFrame, start: int, end: int) -> tuple[SeriesFrame, int]:
    """Return the rows before a fold's end, and how many times the fold has.

    Where variables are known ahead, rows after the last target measured are left out: they would
    be the future, with nothing in it to score.
    """
    keep = frame.order < end
    if frame.layout.known and frame.measured is not None:
        panel = None if frame.panel is None else frame.panel.take(keep)
        keep[keep] = ~after_last(~frame.measured[keep], panel)
    times = len(np.unique(frame.order[keep & (frame.order >= start)]))
    if not times:
        raise DataError(
            f"No target was measured from {describe_time(frame.clock[start])} to "
            f"{describe_time(frame.clock[end - 1])}, rows to score on. Use missing='drop', fewer "
            "folds or more test rows."
        )
    return frame.rows(keep), times


def run_fold(model: AbstractForecaster, frame: SeriesFrame, test: int, valid: float) -> FoldRun:
    """Fit on all but the last ``test`` times, then forecast the validation and test rows."""
    rows: Any = frame
    started = clock.monotonic()
    model.fit(rows, frame.target, test=test, valid=valid)
    require_whole(model.fitted_)
    fitted = clock.monotonic()
    recent = rows
    if model.local and frame.panel is None:
        (last,) = frame.find(pd.Index([model.fitted_.parts.train]))
        before = model.fitted_.window + model.fitted_.preparation.lead
        if model.missing == "fill":  # not needed, but batches of another size round differently
            before += model.fitted_.layout.fill_limit
        recent = frame.rows(slice(max(0, int(last) + 1 - before), None))
    forecast = model.predict(recent)
    seconds = max(clock.monotonic() - fitted, 1e-9)
    speed = len(forecast) / seconds
    run = FoldRun(model, forecast, _units(model, recent, forecast), fitted - started, speed)
    keep = run.validation | run.new
    return replace(run, recent=forecast.take(keep), units=run.units[keep])


def _units(model: AbstractForecaster, table: Any, forecast: Forecast) -> FloatArray:
    """Return what one means on the scale of the series of each forecast, (M,)."""
    if forecast.series is None:
        return np.ones(len(forecast))
    prepared = model.fitted_.prepare(model.fitted_.read(table, "predict"))
    return prepared.unit(prepared.frame.find(forecast.origin, forecast.series))
