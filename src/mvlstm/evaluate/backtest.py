"""Rolling origins: fit on what is past, forecast what comes, move on, fit again."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mvlstm import metrics
from mvlstm._words import counted
from mvlstm.errors import DataError, ParameterError, check_whole
from mvlstm.model.forecaster import AbstractForecaster, require_whole
from mvlstm.model.scoring import score_row
from mvlstm.problem.transform_choice import choose_transform
from mvlstm.progress import show_tasks
from mvlstm.results import Forecast
from mvlstm.table.frame import SeriesFrame, Table, check_table
from mvlstm.table.future import after_last
from mvlstm.table.parts import chronological
from mvlstm.table.settings import Cleaning, Columns, Names
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class FoldRun:
    """What one forecaster did on one fold.

    Parameters
    ----------
    model : AbstractForecaster
        Fitted on the rows before the fold.
    recent : Forecast
        Of the validation rows and the fold's own.
    units : (M,)
        What one means on the scale of each forecast's series; 1 where there is one series.
    fit_seconds, forecasts_per_second : float
    """

    model: AbstractForecaster
    recent: Forecast
    units: FloatArray
    fit_seconds: float
    forecasts_per_second: float

    @property
    def stop(self) -> BoolArray:
        """Origins whose steps all lie in the rows that stop and select."""
        later = self.model.fitted_.parts.calibration_rows(self.recent.time).any(axis=1)
        return self.validation & ~np.asarray(later)

    @property
    def calibration(self) -> BoolArray:
        """Origins whose steps all lie in the later half of the validation rows.

        Nothing was fitted to these or selected by them.
        """
        later = self.model.fitted_.parts.calibration_rows(self.recent.time).all(axis=1)
        return self.validation & np.asarray(later)

    @property
    def validation(self) -> BoolArray:
        """Origins whose steps all lie in the validation rows."""
        return np.asarray((self.recent.part == "validation").all(axis=1))

    @property
    def new(self) -> BoolArray:
        """Origins whose steps all lie in the fold."""
        return np.asarray(self.model.fitted_.parts.after(self.recent.time).all(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """Scores of a forecaster that was fitted anew at each of several origins.

    Parameters
    ----------
    target : str
        Name of what is forecast.
    scores : DataFrame
        One row per fold and one "pooled": ``rmse, mae, crps, coverage, skill, n, fit_seconds``.
    periods : tuple of pairs
        First and last time of each fold.
    forecast : Forecast
        Every fold's forecasts, one after another.
    """

    target: str
    scores: pd.DataFrame
    periods: tuple[tuple[Any, Any], ...]
    forecast: Forecast

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the scores."""
        return self.scores.copy()

    def __repr__(self) -> str:
        shown = self.scores.to_string(float_format=lambda x: f"{x:.4g}")
        return f"Backtest(target={self.target!r}, {counted(len(self.periods), 'fold')})\n{shown}"


def backtest(
    model: AbstractForecaster,
    table: Table,
    target: str,
    *,
    folds: int = 5,
    time: Names = None,
    series: str | None = None,
    variables: Sequence[str] | None = None,
    exclude: Names = None,
    known: Names = None,
    categorical: Names = None,
    test: float = 0.2,
    valid: float = 0.1,
) -> Backtest:
    """Fit and score a forecaster at rolling origins, the training rows growing each time.

    Parameters
    ----------
    model : AbstractForecaster
        Its settings are used, it is not fitted itself.
    table, target, time, series, variables, exclude, known, categorical
        As in ``fit``.
    folds : int
        Number of origins K; the last ``test`` rows are cut into K pieces, and the model is
        fitted on all rows before each piece.
    test, valid : float
        Share of the rows to score on (below 1), or their number; share of a fold's rows to stop
        and calibrate on, or their number.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> scores = backtest(mv.AR(window=3, verbose=0), table, "y", folds=2).scores
    >>> list(scores.index)
    [1, 2, 'pooled']
    """
    _check_forecaster(model)
    columns = Columns(target, time, series, variables, exclude, known, categorical)
    cleaning = Cleaning(missing=model.missing, gaps=model.gaps, calendar=model.calendar)
    frame = check_table(table, columns, cleaning)
    runs = []
    cuts = fold_rows(len(frame.clock), folds=folds, test=test, valid=valid)
    settings: dict[str, Any] = {"verbose": 0}
    if model.transform == "auto":  # one choice for all folds, made before the first
        settings["transform"] = choose_transform("auto", frame, frame.order < cuts[0][0])[0].name
    with show_tasks(model.verbose, "backtest", len(cuts), every=0.0) as advance:
        for start, end in cuts:
            one = clone(model).set_params(**settings)
            runs.append(run_fold(one, *fold_frame(frame, start, end), valid))
            advance("folds fitted")
    scored = [run.recent.take(run.new) for run in runs]
    pooled = join(scored)
    table_of = {
        name: {
            **score_row(forecast.score(part="all"), persistence_rmse(forecast, frame)),
            "fit_seconds": float(np.sum([run.fit_seconds for run in some])),
        }
        for name, forecast, some in [
            *((k + 1, scored[k], [run]) for k, run in enumerate(runs)),
            ("pooled", pooled, runs),
        ]
    }
    periods = tuple((frame.clock[start], frame.clock[end - 1]) for start, end in cuts)
    return Backtest(frame.target, pd.DataFrame(table_of).T.astype({"n": int}), periods, pooled)


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
        before = int(model.window) + model.fitted_.preparation.lead
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


def join(forecasts: Sequence[Forecast]) -> Forecast:
    """Put forecasts of one model's folds one after another."""
    first = forecasts[0]
    if len(forecasts) == 1:
        return first
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in forecasts])
        for name in ("time", "weights", "means", "variances", "part", "actual")
    }
    origin = first.origin.append([one.origin for one in forecasts[1:]])
    members = np.concatenate([one.members for one in forecasts], axis=1)
    if first.series is not None:
        parts["series"] = np.concatenate([one.series for one in forecasts])
    return replace(first, origin=origin, members=members, **parts)


def persistence_rmse(forecast: Forecast, frame: SeriesFrame) -> float:
    """Return persistence's error on the rows of a forecast."""
    rows = frame.find(forecast.origin, forecast.series)
    last = np.broadcast_to(frame.target_values[rows][:, None], forecast.actual.shape)
    known = np.isfinite(forecast.actual)
    return metrics.rmse(forecast.actual[known], last[known])
