"""`AbstractForecaster`: the estimator, a thin shell over a `Fitted` model."""

from __future__ import annotations

import copy
import time as clock
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from mvlstm.engine import check_engine
from mvlstm.errors import NotFittedError, ParameterError, check_time_limit
from mvlstm.model.arguments import placed
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import fit
from mvlstm.model.learned import Stopped
from mvlstm.model.method import AbstractMethod
from mvlstm.model.predicting import forecast, predict
from mvlstm.model.scoring import forecast_unseen, score_unseen
from mvlstm.model.window_choice import choose_window, sized
from mvlstm.problem.problem import Run
from mvlstm.results import Evaluation, Explanation, Forecast, History
from mvlstm.results.update import Refit, Update
from mvlstm.table.frame import check_table
from mvlstm.table.kinds import kind_of
from mvlstm.table.parts import require_validation
from mvlstm.table.settings import Cleaning, Codes, Columns

if TYPE_CHECKING:
    from mvlstm.report import ReportData

Table = Any  # a DataFrame of pandas, polars or another library, a SeriesFrame, or a path
FREE_SETTINGS = ("verbose", "device", "n_jobs")  # may be changed after fit


class AbstractForecaster(AbstractMethod):
    """What every forecaster is: one table in, named results out.

    A subclass has a keyword-only constructor that stores its arguments untouched, ``window``,
    ``horizon``, ``missing``, ``gaps`` and ``verbose`` among them, and supplies `learn` and
    `restore`. What a fit found is `fitted_`, one frozen value; the methods below only read it.
    """

    fitted_: Fitted
    settings_: dict[str, Any]

    # -------------------------------------------------------------------------------- the contract

    @placed
    def fit(
        self,
        table: Table,
        target: str,
        *,
        time: str | Sequence[str] | None = None,
        series: str | None = None,
        variables: Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        known: str | Sequence[str] | None = None,
        categorical: str | Sequence[str] | None = None,
        na_values: Codes = None,
        test: float = 0.0,
        valid: float = 0.1,
        checkpoint: str | Path | None = None,
        time_limit: float | None = None,
        engine: str = "local",
    ) -> Self:
        """Learn from a table.

        Ctrl-C ends the training of a network after the current step: the model is fitted with
        the best weights so far and a warning says so. A second Ctrl-C interrupts at once. If the
        fit fails, the model is left as it was.

        Parameters
        ----------
        table : DataFrame, SeriesFrame or path
            One row per time, oldest first: of pandas, polars or any library that Arrow reads, or
            a CSV or Parquet file. A table with the columns ``unique_id, ds`` is read as Nixtla's
            libraries do.
        target : str
            Column to forecast.
        time : str or sequence of str, optional
            Column or columns (``["year", "month", "day", "hour"]``) that hold the time; by default
            the index.
        series : str, optional
            Column that says which series a row belongs to, in a table of several.
        variables, exclude : sequence of str, optional
            Columns to use with the target (default: all), and columns to leave out.
        known : str or sequence of str, optional
            Variables whose values are known up to the time forecast, such as holidays.
        categorical : str or sequence of str, optional
            Columns that are categorical though they hold numbers; those of text are anyway.
        na_values : float, str or sequence of these, optional
            Values that stand for a missing one, such as -200; an empty list says that there are
            none, and ``"wind=999"`` is meant for one column alone. By default such values are
            looked for and refused.
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
        engine : str
            "local", "ray", or the address of a Ray cluster: where the members of a network are
            trained, each a task of its own, on the CPU to the same bits. Ctrl-C then ends all,
            and a second fit goes on from the ``checkpoint``. Other models are fitted here.

        Returns
        -------
        self
        """
        started = clock.monotonic()
        self.check()
        limit = None if time_limit is None else check_time_limit(time_limit)
        check_engine(engine)
        run = Run(None if checkpoint is None else Path(checkpoint), limit, engine=engine)
        require_validation(valid)
        columns = Columns(
            target=target,
            time=time,
            series=series,
            variables=variables,
            exclude=exclude,
            known=known,
            categorical=categorical,
            na_values=na_values,
        )
        frame = check_table(table, columns, Cleaning.of(self), test=test, valid=valid)
        window, notes = choose_window(self, frame, test=test, valid=valid)
        run = run.after(clock.monotonic() - started)  # reading the table counts too
        fitted, _ = fit(sized(self, window), frame, test=test, valid=valid, run=run)
        notes = (*fitted.notes, *notes)
        self._hold(replace(fitted, notes=notes, seconds=clock.monotonic() - started))
        return self

    @placed
    def predict(self, table: Table) -> Forecast:
        """Forecast every row that has a full window before it and whose steps ahead are known.

        With ``horizon=1`` the forecasts are those of ``table.index[window:]``, in order. Each says
        whether the model had seen the value (``part``).
        """
        return predict(self._require_fitted("predict"), table)

    @placed
    def forecast(
        self, table: Table, *, future: pd.DataFrame | None = None, steps: int | None = None
    ) -> Forecast:
        """Forecast the steps after the last row.

        Where variables are known ahead that is the last row with a target. With
        ``missing="fill"`` the last targets may have been filled in, with ``missing="drop"`` rows
        with a newer target dropped; a warning then says so.

        Parameters
        ----------
        table : DataFrame or SeriesFrame
            The most recent rows. Where variables are known ahead, rows at its end without a
            target hold their next values.
        future : DataFrame, optional
            These rows by themselves, with times and the variables known ahead. Rows at times
            that the table has reached are left out.
        steps : int, optional
            How many, ``horizon`` at most, which is the default.
        """
        return forecast(self._require_fitted("forecast"), table, future=future, steps=steps)

    @placed
    def evaluate(self, table: Table, *, since: Any = None) -> Evaluation:
        """Score forecasts of rows the model has not seen, with naive forecasts for comparison.

        If the table has no such rows, the later half of the validation rows is used and the result
        says so.

        Parameters
        ----------
        table : DataFrame or SeriesFrame
        since : str, timestamp or int, optional
            Score only what has arrived from this time on, by day, week or month too, and say
            whether skill or coverage has slipped: see `mvlstm.results.Evaluation`.
        """
        fitted = self._require_fitted("evaluate")
        prepared, made = forecast_unseen(fitted, table)
        if since is None:
            return replace(score_unseen(fitted, made, prepared), kind=kind_of(table))
        from mvlstm.model.monitoring import score_since

        scored = score_since(fitted, made, prepared, since)
        return replace(scored, kind=kind_of(table))

    def score(self, table: Table) -> float:
        """Return the skill on rows the model has not seen, as scikit-learn asks of an estimator.

        It is the share of the better naive method's error that is removed: see `evaluate`. With it,
        ``cross_val_score(model, table, cv=TimeSeriesSplit(), params={"target": "y"})`` works.
        """
        return float(self.evaluate(table).scores["skill"].iloc[0])

    @placed
    def update(
        self,
        table: Table,
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
        table : DataFrame or SeriesFrame
            With the columns of the fit. A network needs the new rows and the window before them,
            and is better off with older rows; other forecasters need all rows.
        refit : {"newest", "full", "link"}
            "full" trains a network again, from its seeds, on all rows, the newest too, for as
            many steps as the fit found best. Its intervals are then calibrated by the errors
            that the model as it was made on the new rows; with fewer than 40 they stay as they
            were. "link" fits only the linear map of `AR`, or the link of a network, to all rows,
            with lags and penalties as chosen; it is cheap, and intervals go on from where outcomes
            have led them.
        max_epochs : int
            Most epochs of further training.
        learning_rate : float, optional
            Of further training; by default a fifth of the fit's.

        Returns
        -------
        self
        """
        from mvlstm.model.updating import update

        fitted = self._require_fitted("update")
        settings: dict[str, Any] = {"max_epochs": max_epochs, "learning_rate": learning_rate}
        method = sized(self, fitted.window)
        self._hold(update(method, fitted, table, refit=refit, **settings))
        return self

    @placed
    def explain(
        self,
        table: Table,
        *,
        effort: Literal["quick", "default", "full"] = "default",
        contributions: int | None = None,
        time_limit: float | None = None,
        control: Literal["family", "fdr"] = "family",
    ) -> Explanation:
        """Say which variables the forecasts rest on, and how sure that is.

        Measured on rows the model has not seen, or, if there are none, on the later half of the
        validation rows. The statement is predictive, not causal.

        Parameters
        ----------
        table : DataFrame or SeriesFrame
        effort : {"quick", "default", "full"}
            How many windows, exchanges and bootstrap draws to spend.
        contributions : int, optional
            Forecasts to take apart, spread over the unseen rows and ending with the next one; by
            default 10, 60 or 300 by effort, and fewer of several steps, whose cost grows with
            them. 0 for none.
        time_limit : float, optional
            Seconds to keep to, by measuring on fewer windows and taking fewer forecasts apart;
            ``notes`` say so.
        control : {"family", "fdr"}
            What verdicts hold at 5 %: the chance that any variable is called important that is not,
            or, where there are hundreds, the expected share of such among those found.
        """
        from mvlstm.model.explaining import explain

        fitted = self._require_fitted("explain")
        found = explain(
            fitted,
            table,
            effort=effort,
            contributions=contributions,
            time_limit=time_limit,
            control=control,
            verbose=self.verbose,
        )
        return replace(found, kind=kind_of(table))

    @placed
    def report(
        self,
        table: Table,
        path: str | Path | None = None,
        *,
        future: pd.DataFrame | None = None,
        effort: Literal["quick", "default", "full"] = "default",
        title: str | None = None,
        time_limit: float | None = None,
    ) -> ReportData:
        """Write one self-contained HTML page: forecasts, scores, drivers, checks, settings.

        Parameters
        ----------
        table : DataFrame or SeriesFrame
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
        time_limit : float, optional
            Seconds to keep to, as for `explain`.

        Returns
        -------
        ReportData
            Everything the page shows.
        """
        from mvlstm.report.gather import write_report

        fitted = self._require_fitted("report")
        more: dict[str, Any] = {"effort": effort, "title": title, "time_limit": time_limit}
        return write_report(self, fitted, table, path, future=future, **more)

    def save(self, path: str | Path) -> None:
        """Write the model to one ``.safetensors`` file; `mvlstm.load` reads it back."""
        from mvlstm.model.saving import save

        save(self, self._require_fitted("save"), path)

    def export(
        self,
        path: str | Path,
        *,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        table: Table | None = None,
    ) -> None:
        """Write the model to one ``.onnx`` file, from raw rows to forecasts: see `docs/serving.md`.

        It holds preparation, members and the calibration of the fit. `mvlstm.runtime` runs it
        without torch, and lets intervals follow the outcomes in a table as `forecast` does.

        Parameters
        ----------
        path : str or Path
        quantiles : sequence of float
            The graph gives these, and 0.05, 0.5 and 0.95 in any case.
        table : DataFrame or SeriesFrame, optional
            To tell in the file how good the model is on rows it has not seen, and what matters.
        """
        from mvlstm.adapters.onnx.export import export

        export(self, self._require_fitted("export"), path, quantiles=quantiles, table=table)

    # ------------------------------------------------------------------------------ what fit found

    @property
    def history_(self) -> History:
        """How training went."""
        return self._require_fitted("history_").history

    @property
    def notes_(self) -> tuple[str, ...]:
        """What a user should know about the table and the fit."""
        return self._require_fitted("notes_").notes

    @property
    def updates_(self) -> tuple[Update, ...]:
        """What was done to the model since it was fitted, oldest first."""
        return self._require_fitted("updates_").updates

    @property
    def stopped_(self) -> Stopped | None:
        """What ended training early, if anything did."""
        return self._require_fitted("stopped_").stopped

    @property
    def fit_seconds_(self) -> float:
        """How long the fit took."""
        return self._require_fitted("fit_seconds_").seconds

    def holding(self, fitted: Fitted, **changes: Any) -> Self:
        """Return a forecaster with these settings, some changed, that holds a fitted model."""
        other = copy.copy(self)
        if changes:
            other.set_params(**changes)
        other._hold(fitted)
        return other

    def _hold(self, fitted: Fitted) -> None:
        self.fitted_, self.settings_ = fitted, self.get_params()

    def _require_fitted(self, caller: str) -> Fitted:
        """Return what was fitted, unless nothing was, or settings were changed since.

        An attribute, whose name ends with "_", tells of the fit, whatever the settings are now.
        """
        attribute = caller.endswith("_")
        if not hasattr(self, "fitted_"):
            before = f"asking for {caller}" if attribute else f"{caller}()"
            raise NotFittedError(
                f"{type(self).__name__} is not fitted; call fit() before {before}."
            )
        if attribute:
            return self.fitted_
        settings = {k: v for k, v in self.settings_.items() if k not in FREE_SETTINGS}
        for name, value in settings.items():
            if not _same(getattr(self, name), value):
                raise ParameterError(
                    f"{name}={getattr(self, name)!r} was set after fit(), which had {value!r}. "
                    f"Call fit() again before {caller}(), or set it back."
                )
        return self.fitted_


def require_whole(fitted: Fitted) -> None:
    """Raise if Ctrl-C ended training: half a model must not be compared, or recorded."""
    if fitted.stopped == "interrupt":
        raise KeyboardInterrupt


def _same(one: Any, other: Any) -> bool:
    """Say whether two values of a setting are equal; it may be an array."""
    return one is other or bool(np.array_equal(one, other))
