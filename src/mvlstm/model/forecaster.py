"""The contract of every forecaster, and all of it that does not depend on the model."""

from __future__ import annotations

import time as clock
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.errors import (
    DataError,
    MVLSTMWarning,
    NotFittedError,
    ParameterError,
    check_option,
    is_number,
)
from mvlstm.model.calibration import calibrate
from mvlstm.model.forecasting import dated_forecast
from mvlstm.model.scoring import score_unseen, unseen_origins
from mvlstm.model.starting import begin
from mvlstm.model.table_warnings import (
    age_warnings,
    require_ahead,
    series_warnings,
)
from mvlstm.problem.part_times import Borders
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation, Prepared
from mvlstm.problem.problem import AttentionArrays, Problem, Run
from mvlstm.problem.transform_choice import (
    TRANSFORM_CHOICES,
    TransformChoice,
    check_target,
)
from mvlstm.problem.windows import check_window, gather_windows, spread_evenly
from mvlstm.results import Evaluation, Explanation, Forecast, History
from mvlstm.results.reference import Reference
from mvlstm.results.update import Refit, Update
from mvlstm.table.calendar import Calendar, check_calendar
from mvlstm.table.frame import Layout, SeriesFrame, build_frame, rebuild_frame
from mvlstm.table.joining import join_future
from mvlstm.table.parts import require_validation
from mvlstm.table.spacing import describe_time
from mvlstm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.report import ReportData

    class BaseEstimator:
        """What is used of scikit-learn's class of this name, which has no types."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the constructor's arguments."""

        def set_params(self, **params: Any) -> Self:
            """Change some of them."""
else:
    from sklearn.base import BaseEstimator

Difference = Literal["none", "auto"]
BACKGROUND = 8  # training windows that contributions are measured against
FREE_SETTINGS = ("verbose", "device", "n_jobs")  # may be changed after fit


class AbstractForecaster(BaseEstimator, ABC):
    """One table in, named results out.

    A subclass has a keyword-only constructor that stores its arguments untouched, ``window``,
    ``horizon``, ``missing``, ``gaps`` and ``verbose`` among them, and supplies
    `_learn`, `_predict_rows` and `_predict_windows`, `_weights` and `_set_weights`; and
    `_predictive`, if its forecasts have a spread of their own. What is learned ends in an
    underscore.
    """

    window: int
    horizon: int
    missing: Literal["error", "drop", "fill"]
    gaps: Literal["error", "close", "respect"]
    difference: Difference = "none"
    calendar: Calendar = "none"
    transform: TransformChoice = "none"
    verbose: int
    ensemble: ClassVar[bool] = False  # whether there are members with seeds of their own
    members_differ: ClassVar[bool] = False  # whether each of them may have settings of its own
    seed_matters: ClassVar[bool] = True  # whether another seed, if there is one, fits another model
    local: ClassVar[bool] = True  # whether a forecast depends on its window alone
    table_dtype: ClassVar[type] = np.float64  # precision of the prepared table
    short_batches: ClassVar[bool] = False  # whether few windows are learned in smaller batches

    layout_: Layout
    settings_: dict[str, Any]
    preparation_: Preparation
    borders_: Borders
    spread_: FloatArray  # (K, H) squared error of each member on the stopping rows
    calibration_: FloatArray  # (H,) factor on the variances
    persistence_: FloatArray  # (H,) calibrated variance of persistence
    mean_factor_: FloatArray  # (H,) share of the variance that corrects a transformed mean
    background_: FloatArray  # (B, T, C) scaled windows of the training part, to compare with
    background_baseline_: FloatArray  # (B, H) what differencing took away from them
    history_: History
    notes_: tuple[str, ...]
    fit_seconds_: float
    stopped_: Literal["interrupt", "time limit"] | None  # what ended training early
    n_train_: int | None = None  # windows the fit trained on; unknown in files of old versions
    updates_: tuple[Update, ...] = ()  # what was done to the model since, oldest first
    reference_: Reference | None = None  # how good it was on the later half of the validation rows

    # ------------------------------------------------------------------ what a subclass supplies

    @abstractmethod
    def _learn(self, problem: Problem) -> None:
        """Learn from the training windows, choosing on the stopping ones."""

    @abstractmethod
    def _predict_rows(self, prepared: Prepared, origins: IntArray) -> Predictive:
        """Predict the labels of windows ending at ``origins``."""

    @abstractmethod
    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        """Return members' point forecasts of the labels (K, M, H) for scaled windows (M, T, C)."""

    @abstractmethod
    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what was learned as named arrays and plain JSON values, for the model file."""

    @abstractmethod
    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        """Put back what `_weights` returned, checking every shape."""

    def _attention(self, prepared: Prepared, origins: IntArray) -> AttentionArrays | None:
        """Return attention over variables and time, for models that have it."""
        return None

    def _predictive(self, windows: FloatArray, *, exact: bool = False) -> Predictive:
        """Predict the labels of scaled windows (M, T, C), with the spread `_predict_rows` gives.

        ``exact`` asks for the precision of `_gradient`.
        """
        found = self._predict_exactly(windows) if exact else self._predict_windows(windows)
        return Predictive(found)

    def _predict_scrambled(
        self, prepared: Prepared, origins: IntArray, variables: tuple[int, ...], donors: IntArray
    ) -> Predictive:
        """Forecast with some variables' windows taken from the donors' windows."""
        from mvlstm.model.explaining import scrambled_windows

        return scrambled_windows(self, prepared, origins, variables, donors)

    def _gradient(self, windows: FloatArray) -> FloatArray | None:
        """Return the gradient of members' forecasts (K, M, H, T, C), for models that have one."""
        return None

    def _predict_exactly(self, windows: FloatArray) -> FloatArray:
        """Return what `_predict_windows` does, in the precision of `_gradient`."""
        return self._predict_windows(windows)

    def _experts(self, prepared: Prepared, origins: IntArray) -> FloatArray | None:
        """Return prior weight times expert's forecast (M, H, N), for mixtures of experts."""
        return None

    def _model_importance(self) -> FloatArray | None:
        """Return the method's own variable importance (N,), for models that define one."""
        return None

    def _by_variable(self, values: FloatArray) -> FloatArray:
        """Add up values (C,) of a variable's columns, giving (N,)."""
        sums = np.bincount(self.layout_.groups, values, minlength=len(self.layout_.names))
        return np.asarray(sums, dtype=np.float64)

    def _check_parameters(self) -> None:
        """Raise `ParameterError` for a setting with a value it cannot have."""
        check_window(self.window, self.horizon)
        if not isinstance(self.verbose, int | np.integer):
            raise ParameterError(f"verbose={self.verbose!r} must be a whole number; 0 is silent.")
        check_option("difference", self.difference, ("none", "auto"))
        check_calendar(self.calendar)
        check_option("transform", self.transform, TRANSFORM_CHOICES)

    # ------------------------------------------------------------------------------- the contract

    def fit(
        self,
        table: pd.DataFrame,
        target: str,
        *,
        time: str | Sequence[str] | None = None,
        series: str | None = None,
        variables: Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        known: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None,
        test: float = 0.0,
        valid: float = 0.1,
        checkpoint: str | Path | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """Learn from a table.

        Ctrl-C ends the training of a network after the step it is in: the model is fitted with
        the best weights so far and a warning says so. A second Ctrl-C interrupts at once.

        Parameters
        ----------
        table : DataFrame
            One row a time, oldest first.
        target : str
            Column to forecast.
        time : str or sequence of str, optional
            Column or columns (``["year", "month", "day", "hour"]``) that hold the time; by default
            the index.
        series : str, optional
            Column that says which series a row belongs to, in a table of several.
        variables, exclude : sequence of str, optional
            Columns to use beside the target (default: all), and columns to leave out.
        known : str or sequence of str, optional
            Variables whose values are known up to the time forecast, such as holidays.
        categorical : str or sequence of str, optional
            Columns that are categorical though they hold numbers; those of text are anyway.
        test : float
            Fraction of the rows, at the end, to leave unseen; or, from 1 on, their number. In a
            table of several series, of the times that they share.
        valid : float
            Fraction of all rows, before those, that stops training and calibrates intervals; or
            their number.
        checkpoint : str or Path, optional
            Folder in which a network's training keeps its state. If an unfinished fit of the same
            data and settings lies there, training goes on from it, on the CPU to the same bits;
            another fit's is refused. Models that are not trained step by step do not use it.
        time_limit : float, optional
            Seconds after which a network's training ends with the best weights so far.

        Returns
        -------
        self
        """
        started = clock.monotonic()
        self._check_parameters()
        run = Run(None if checkpoint is None else Path(checkpoint), _seconds(time_limit))
        require_validation(valid)
        frame = build_frame(
            table,
            target=target,
            time=time,
            series=series,
            variables=variables,
            exclude=exclude,
            known=known,
            categorical=categorical,
            calendar=self.calendar,
            missing=self.missing,
            gaps=self.gaps,
            test=test,
            valid=valid,
        )
        run = run.after(clock.monotonic() - started)  # reading the table counts too
        with _whole_or_not(self):
            problem = self._start(frame, test=test, valid=valid)
            self._learn_all(replace(problem, run=run))
            self.fit_seconds_ = clock.monotonic() - started
        return self

    def predict(self, table: pd.DataFrame) -> Forecast:
        """Forecast every row that has a full window before it and whose steps ahead are known.

        With ``horizon=1`` the forecasts are those of ``table.index[window:]``, in order. Each says
        whether the model had seen the value (``part``).
        """
        return _warned(self._forecast_rows(*self._read_windows(table, "predict")))

    def forecast(self, table: pd.DataFrame, *, future: pd.DataFrame | None = None) -> Forecast:
        """Forecast the ``horizon`` steps after the last row.

        Where variables are known ahead that is the last row with a target. With
        ``missing="fill"`` the last targets may have been filled in, with ``missing="drop"`` rows
        with a newer target dropped; a warning then says so.

        Parameters
        ----------
        table : DataFrame
            The most recent rows. Where variables are known ahead, rows at its end without a
            target hold their next values.
        future : DataFrame, optional
            These rows by themselves, with times and the variables known ahead. Rows at times
            that the table has reached are left out.
        """
        if future is not None:
            table = self._joined(table, future)
        frame = self._read(table, "forecast")
        prepared = self._prepare(frame)
        require_ahead(prepared, "forecast")
        last = frame.last_rows()
        ready = np.isin(last, prepared.origins(self.window, 0))
        if not ready.any():
            self._too_short(frame, "forecast", steps=0)
        result = self._forecast_rows(prepared, last[ready])
        doubts = (*frame.doubts, *age_warnings(frame.clock, self.borders_))
        doubts = (*doubts, *series_warnings(prepared, last[ready], last[~ready]))
        return _warned(replace(result, warnings=(*result.warnings, *doubts)))

    def evaluate(self, table: pd.DataFrame, *, since: Any = None) -> Evaluation:
        """Score forecasts of rows the model has not seen, persistence beside them.

        If the table has no such rows, the later half of the validation rows is used and the result
        says so.

        Parameters
        ----------
        table : DataFrame
        since : str, timestamp or int, optional
            Score only what has arrived from this time on, by day, week or month too, and say
            whether skill or coverage has slipped: see `mvlstm.results.Evaluation`.
        """
        prepared = self._prepare(self._read(table, "evaluate"))
        origins, _, _ = unseen_origins(self, prepared, "evaluate")
        forecast = _warned(self._forecast_rows(prepared, origins))
        if since is None:
            return score_unseen(self, forecast, prepared)
        from mvlstm.model.monitoring import score_since

        return score_since(self, forecast, prepared, since)

    def update(
        self,
        table: pd.DataFrame,
        *,
        refit: Refit = "newest",
        max_epochs: int = 5,
        learning_rate: float | None = None,
    ) -> Self:
        """Bring the model up to date with rows that came after those it knows.

        Scaling, columns and settings stay. The newest of the rows are held out; a network goes on
        training from its weights on the others and a sample of older rows, and each member is
        changed only if that lowers its error on the held-out rows. The intervals are calibrated
        on these. Other forecasters are fitted anew to the whole table. A model that was better on
        the new rows as it was stays so. ``updates_`` tells what was done.

        Parameters
        ----------
        table : DataFrame
            With the columns of the fit. A network needs the new rows and the window before them,
            and is better off with older rows; other forecasters need all rows.
        refit : {"newest", "full"}
            "full" trains a network again, from its seeds, on all rows, the newest too, for as
            many steps as the fit found best. Its intervals are then calibrated by the errors
            that the model as it was made on the new rows; of fewer than 40 they stay as they were.
        max_epochs : int
            Most epochs of further training.
        learning_rate : float, optional
            Of further training; by default a fifth of the fit's.

        Returns
        -------
        self
        """
        from mvlstm.model.updating import update_forecaster

        settings: dict[str, Any] = {"max_epochs": max_epochs, "learning_rate": learning_rate}
        update_forecaster(self, table, refit=refit, **settings)
        return self

    def explain(
        self,
        table: pd.DataFrame,
        *,
        effort: Literal["quick", "default", "full"] = "default",
        contributions: int | None = None,
    ) -> Explanation:
        """Say which variables the forecasts rest on, and how sure that is.

        Measured on rows the model has not seen, or, if there are none, on the later half of the
        validation rows. The statement is predictive, not causal.

        Parameters
        ----------
        table : DataFrame
        effort : {"quick", "default", "full"}
            How many windows, exchanges and bootstrap draws to spend. "full" also fits other models,
            without each variable and with shadow variables, and compares.
        contributions : int, optional
            Forecasts to take apart, spread over the unseen rows and ending with the next one; by
            default 10, 60 or 300 by effort. 0 for none.
        """
        from mvlstm.model.explaining import explain_forecaster

        return explain_forecaster(self, table, effort=effort, contributions=contributions)

    def report(
        self,
        table: pd.DataFrame,
        path: str | Path | None = None,
        *,
        future: pd.DataFrame | None = None,
        effort: Literal["quick", "default", "full"] = "default",
        title: str | None = None,
    ) -> ReportData:
        """Write one self-contained HTML page: forecasts, scores, drivers, checks, settings.

        Parameters
        ----------
        table : DataFrame
            With the columns of the fit.
        path : str or Path, optional
            The ``.html`` file to write; without it only the contents are computed.
        future : DataFrame, optional
            The next values of variables known ahead, as for `forecast`; without them the report
            shows the last rows in place of the next.
        effort : {"quick", "default", "full"}
            How thoroughly to measure importance.
        title : str, optional
            Heading of the page.

        Returns
        -------
        ReportData
            Everything the page shows.
        """
        from mvlstm.report import check_libraries, render_report
        from mvlstm.report.gather import gather_report
        from mvlstm.storage import write_atomic

        check_libraries()
        data = gather_report(self, table, future=future, effort=effort)
        if path is not None:
            write_atomic(path, render_report(data, title=title))
        return data

    def save(self, path: str | Path) -> None:
        """Write the model to one ``.safetensors`` file; `mvlstm.load` reads it back."""
        from mvlstm.model.saving import save

        self._require_fitted("save")
        save(self, path)

    # ---------------------------------------------------------------------------------- inner work

    def _start(
        self,
        frame: SeriesFrame,
        *,
        test: float,
        valid: float,
        preparation: Preparation | None = None,
    ) -> Problem:
        """Take in a validated table and return what `_learn` learns from.

        ``preparation`` replaces the scaling that is learned from the training rows.
        """
        problem, notes = begin(self, frame, test=test, valid=valid, preparation=preparation)
        self.layout_, self.settings_ = frame.layout, self.get_params()
        self.notes_ = (*frame.notes, *notes)
        self.history_ = History(np.empty((0, 0)), np.empty((0, 0)), np.empty(0, dtype=np.int64))
        self.stopped_ = None
        self.n_train_, self.updates_ = len(problem.origins["train"]), ()
        self.mean_factor_ = np.ones(self.horizon)
        return self._thinned(problem)

    def _thinned(self, problem: Problem) -> Problem:
        """Return the problem with as many windows as the model can take; here all of them."""
        return problem

    def _learn_all(self, problem: Problem) -> None:
        """Learn to forecast, how sure forecasts are, and what they are compared with."""
        self._learn(problem)
        calibrate(self, problem)
        self._keep_background(problem)

    def _keep_background(self, problem: Problem) -> None:
        """Keep a few training windows, spread evenly, as the background of contributions."""
        few = spread_evenly(problem.origins["train"], BACKGROUND)
        self.background_ = gather_windows(problem.prepared.table, few, self.window)
        self.background_baseline_ = problem.prepared.baseline(few, self.horizon)

    def _forecast_rows(
        self, prepared: Prepared, origins: IntArray, predictive: Predictive | None = None
    ) -> Forecast:
        """Put dates, names and units to what the model predicts, or has predicted already."""
        return dated_forecast(self, prepared, origins, predictive)

    def _joined(self, table: pd.DataFrame, future: pd.DataFrame) -> pd.DataFrame:
        """Put rows of the future after a table's."""
        self._require_fitted("forecast")
        if not self.layout_.known:
            raise ParameterError(
                "future=... holds variables known ahead, and this model has none. Leave it out, "
                "or fit with known=[...] (--known)."
            )
        return join_future(table, future, self.layout_)

    def _prepare(self, frame: SeriesFrame) -> Prepared:
        check_target(self.preparation_.transform, frame)
        return self.preparation_.apply(frame, self.table_dtype, window=self.window)

    def _read(self, table: pd.DataFrame, caller: str) -> SeriesFrame:
        self._require_fitted(caller)
        return rebuild_frame(table, self.layout_, caller=caller)

    def _read_windows(self, table: pd.DataFrame, caller: str) -> tuple[Prepared, IntArray]:
        """Read and prepare a table; return it with the origins whose steps all lie within it."""
        frame = self._read(table, caller)
        prepared = self._prepare(frame)
        origins = prepared.origins(self.window, self.horizon)
        if not len(origins):
            self._too_short(frame, caller)
        return prepared, origins

    def _require_whole(self) -> None:
        """Raise if Ctrl-C ended training: half a model must not be compared, or recorded."""
        if self.stopped_ == "interrupt":
            raise KeyboardInterrupt

    def _require_fitted(self, caller: str) -> None:
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                f"{type(self).__name__} is not fitted; call fit() before {caller}()."
            )
        fitted = {k: v for k, v in self.settings_.items() if k not in FREE_SETTINGS}
        changed = [name for name, value in fitted.items() if not _same(getattr(self, name), value)]
        if changed:
            raise ParameterError(
                f"{changed[0]}={getattr(self, changed[0])!r} was set after fit(), which had "
                f"{fitted[changed[0]]!r}. Call fit() again before {caller}(), or set it back."
            )

    def _too_short(self, frame: SeriesFrame, caller: str, *, steps: int | None = None) -> NoReturn:
        """Raise `DataError`: no window has so many ``steps`` after it, by default the horizon."""
        steps = int(self.horizon) if steps is None else steps
        needed = int(self.window) + self.preparation_.lead + steps
        gap, remedy = "", "Supply a longer history."
        after = np.flatnonzero(frame.segments != frame.segments[-1])
        if frame.panel is not None:
            gap = " of one series, without a gap between them"
        elif len(after):
            since = frame.n_rows - 1 - int(after[-1])
            gap = f" without a gap, and {counted(since, 'row')} came after the last one, which "
            gap += f"follows {describe_time(frame.times[after[-1]])}"
            remedy = "Fill the gap, wait for more rows, or fit with gaps='close' (--gaps close)."
        raise DataError(
            f"{caller}() received {frame.n_rows:,} usable rows; window={self.window} with "
            f"horizon={self.horizon} needs {needed} rows{gap}. {remedy}"
        )


def _same(one: Any, other: Any) -> bool:
    """Say whether two values of a setting are equal; it may be an array."""
    return one is other or bool(np.array_equal(one, other))


def _warned(forecast: Forecast) -> Forecast:
    """Give a forecast's warnings to Python as well, as if its caller's caller had."""
    for message in forecast.warnings:
        warnings.warn(message, MVLSTMWarning, stacklevel=3)
    return forecast


@contextmanager
def _whole_or_not(model: AbstractForecaster) -> Iterator[None]:
    """Leave a model as it was if what is done to it fails: fitted before, or not at all."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise


def _seconds(limit: float | None) -> float | None:
    if limit is None:
        return None
    if not is_number(limit) or not limit > 0:
        raise ParameterError(f"time_limit={limit!r} must be a positive number of seconds.")
    return float(limit)
