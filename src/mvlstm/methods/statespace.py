"""Rivals from statistics: a structural model and ARIMA, each with the variables as regressors."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from mvlstm.errors import (
    DataError,
    MissingExtraError,
    MVLSTMWarning,
    ParameterError,
    TrainingError,
    check_option,
    check_whole,
    is_whole,
)
from mvlstm.methods.kalman import Filter, contributions, segments_likelihood, window_forecasts
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved, by_variable
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import gather_windows
from mvlstm.progress import show_tasks
from mvlstm.settings import ARIMAXSettings, STRXSettings, documented
from mvlstm.types import BoolArray, FloatArray, IntArray

Mode = Literal["global", "window"]
Order = tuple[int, int, int]

MOST_LAGS = 5
WINDOW_ITERATIONS = 20
WINDOW_ORDERS = (1, 2, 3, 4)
ORDER_WINDOWS = 50  # windows on which an order is tried in window mode
FARTHEST = 100.0  # a window's forecast further off, in standard deviations, has failed


@dataclass(frozen=True, eq=False, kw_only=True)
class Filtered(Learned):
    """One state-space model of what a regression leaves, filtered over the whole past."""

    filter: Filter
    coefficients: FloatArray  # (C - 1,) of the regression, in units of the scaled columns
    order: Order
    horizon: int
    center: float  # of the target as an input
    scale: float

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Filter all rows up to each origin; of windows made up, those of the window."""
        if windows.made_up:
            where = (windows.values, self.coefficients, self.horizon)
            return self._unscaled(window_forecasts(self.filter, *where))
        return self._unscaled(self._shares(windows).sum(axis=0))

    def scrambled(self, windows: Windows, columns: IntArray, donors: IntArray) -> FloatArray:
        """Forecast with the whole past of some columns taken from the donors."""
        shares = self._shares(windows)
        shares[columns] = shares[columns][:, donors]
        return self._unscaled(shares.sum(axis=0)).members

    def _shares(self, windows: Windows) -> FloatArray:
        """Return what each column adds to the scaled forecasts, (C, M, H)."""
        prepared, origins = windows.prepared, windows.origins
        assert prepared is not None and origins is not None
        frame = prepared.frame
        where = (prepared.table, frame.segments, self.coefficients, origins, self.horizon)
        return contributions(self.filter, *where, frame.measured)

    def _unscaled(self, forecasts: FloatArray) -> Predictive:
        return Predictive((forecasts * self.scale + self.center)[None])

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray | None:
        """Share of each regressor in the sum of |coefficient x its deviation|; none for y's past.

        The columns are scaled, so their deviation is one.
        """
        sizes = np.abs(self.coefficients)
        if not sizes.sum() > 0:
            return None
        return by_variable(np.append(sizes / sizes.sum(), 0.0), groups)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the filter, the coefficients and the order."""
        extra = {"order": [int(k) for k in self.order]}
        return {"coefficients": self.coefficients, **self.filter.arrays()}, extra


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowModels(Learned):
    """A model of its own for every window, fitted when it is forecast, as the authors did."""

    build: Callable[[FloatArray, FloatArray | None, Order], Any]  # makes a statsmodels model
    order: Order
    horizon: int
    iterations: int
    verbose: int
    name: str  # of the forecaster
    center: float  # of the target as an input
    scale: float

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Fit a model to each window."""
        return Predictive(self._forecast(*_with_known(windows)))

    def scrambled(self, windows: Windows, columns: IntArray, donors: IntArray) -> FloatArray:
        """Forecast from windows in which some columns come from the donors'."""
        values, known = _with_known(windows)
        values = values.copy()
        values[:, :, columns] = values[donors][:, :, columns]
        if values.shape[2] - 1 in columns:  # the target
            known = known[donors]
        return self._forecast(values, known)

    def _forecast(self, windows: FloatArray, known: BoolArray) -> FloatArray:
        """Forecast (1, M, H) by a model of each window; ``known`` (M, T) are measured targets."""
        found, failed = self.fit_each(windows, known)
        if failed:
            warnings.warn(
                f"{self.name}: {failed:,} of {len(windows):,} windows could not be fitted; the "
                "last value known stands in for their forecasts.",
                MVLSTMWarning,
                stacklevel=2,
            )
        return (found * self.scale + self.center)[None]

    def fit_each(self, windows: FloatArray, known: BoolArray) -> tuple[FloatArray, int]:
        """Fit a fresh model to every window; return scaled forecasts and how many failed."""
        _require_statsmodels(self.name)
        found = np.repeat(windows[:, -1:, -1], self.horizon, axis=1).astype(np.float64)
        failed = 0
        with show_tasks(self.verbose, self.name, len(windows)) as advance, _quiet():
            for m, window in enumerate(windows):
                forecast = self._fit_one(_observed(window, known[m]))
                if forecast is None:
                    failed += 1
                else:
                    found[m] = forecast
                advance(f"{failed} failed")
        return found, failed

    def _fit_one(self, window: FloatArray) -> FloatArray | None:
        endog, exog, _ = _lagged(window, np.zeros(len(window), dtype=np.int64))
        if np.isnan(endog).all():
            return None
        later = None if exog is None else np.repeat(window[-1:, :-1], self.horizon, axis=0)
        try:
            model = self.build(endog, exog, self.order)
            rounds = min(self.iterations, WINDOW_ITERATIONS)
            results = model.fit(disp=False, maxiter=rounds, cov_type="none")
            forecast = np.asarray(results.forecast(self.horizon, exog=later), dtype=np.float64)
        except (ValueError, np.linalg.LinAlgError, IndexError, ZeroDivisionError):
            return None
        near = np.isfinite(forecast).all() and np.abs(forecast).max() < FARTHEST
        return forecast if near else None

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the order."""
        return {}, {"order": [int(k) for k in self.order]}


def _with_known(windows: Windows) -> tuple[FloatArray, BoolArray]:
    """Return windows (M, T, C), and which of their targets (M, T) were measured."""
    values, prepared = windows.values, windows.prepared
    if prepared is None or prepared.frame.measured is None:
        return values, np.ones(values.shape[:2], dtype=bool)
    measured = prepared.frame.measured[:, None]
    return values, gather_windows(measured, windows.ends, windows.length)[..., 0]


class AbstractStateSpace(AbstractForecaster):
    """Regression on the variables of the row before, with a state-space model of what is left.

    The variables' next values are not known, so the regressor of y(t+1) is x(t). Further steps
    ahead hold it at its last value. Targets that were filled in count as missing, and no state is
    carried across a gap.
    """

    local: ClassVar[bool] = False  # the filter runs over the whole past
    one_series: ClassVar[bool] = True
    seed_matters: ClassVar[bool] = False  # it says at most which windows calibrate
    mode: Mode
    fit_rows: int | None
    max_iterations: int
    windows: int
    seed: int

    @abstractmethod
    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        """Build the statsmodels model."""

    @abstractmethod
    def _orders(self, y: FloatArray) -> tuple[list[Order], tuple[str, ...]]:
        """Return the orders (p, d, q) to try, several in window mode only, and notes on them."""

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("mode", self.mode, ("global", "window"))
        if self.fit_rows is not None:
            check_whole("fit_rows", self.fit_rows, 1)
        check_whole("max_iterations", self.max_iterations, 1)
        check_whole("windows", self.windows, 1)
        if self.mode == "window":  # else nothing is drawn
            check_whole("seed", self.seed, 0)

    def limit(self) -> tuple[int, int] | None:
        """Few enough windows to calibrate on, where each is fitted."""
        return (int(self.windows), int(self.seed)) if self.mode == "window" else None

    def learn(self, problem: Problem) -> Filtered | WindowModels:
        """Fit by maximum likelihood to the training rows, or find the order for each window's."""
        name = type(self).__name__
        _require_statsmodels(name)
        preparation = problem.prepared.preparation
        if preparation.ahead > 1:
            raise DataError(
                f"{name} takes the variables of the row before, so that those known ahead serve it "
                f"at horizon=1 only, not {self.horizon}. Leave out known=..., or use AR, GBT or "
                "MVLSTM."
            )
        table, frame = problem.prepared.table, problem.prepared.frame
        last = int(problem.origins["train"][-1]) + problem.horizon
        first = 0 if self.fit_rows is None else max(0, last + 1 - int(self.fit_rows))
        rows = slice(first, last + 1)
        known = None if frame.measured is None else frame.measured[rows]
        part, segments = _observed(table[rows], known), frame.segments[rows]
        orders, notes = self._orders(_spaced(part[:, -1], segments))
        if self.mode == "window":
            return replace(self._choose_order(problem, orders), notes=notes)
        filter_, coefficients, more = self._maximise(part, segments, orders[0])
        found = self._filtered(preparation, orders[0], filter_, coefficients)
        return replace(found, notes=(*notes, *more))

    def _maximise(
        self, part: FloatArray, segments: IntArray, order: Order
    ) -> tuple[Filter, FloatArray, tuple[str, ...]]:
        """Return the filter and the coefficients of greatest likelihood, with notes."""
        endog, exog, restarts = _lagged(part, segments)
        name = type(self).__name__
        with show_tasks(self.verbose, name, 1, every=0.0) as advance, _quiet():
            model = self._model(endog, exog, order)
            if len(restarts):
                model.loglike = segments_likelihood(model, restarts)
            results = model.fit(disp=False, maxiter=self.max_iterations, cov_type="none")
            advance("fitted by maximum likelihood")
        if not np.isfinite(results.params).all():
            raise TrainingError(
                f"{name} could not be fitted: its likelihood has no finite optimum. "
                "Leave out variables that repeat others with exclude=...."
            )
        names = [f"x{j + 1}" for j in range(part.shape[1] - 1)]
        found = dict(zip(model.param_names, np.asarray(results.params), strict=True))
        keys = [next(k for k in found if k in (n, f"beta.{n}")) for n in names]
        notes: tuple[str, ...] = ()
        if not results.mle_retvals.get("converged", True):
            notes = (f"{name} stopped after {self.max_iterations} iterations, not yet converged.",)
        coefficients = np.array([found[key] for key in keys], dtype=np.float64)
        return Filter.of(model, results), coefficients, notes

    def _choose_order(self, problem: Problem, orders: list[Order]) -> WindowModels:
        """Choose the order on some of the windows; each is fitted when it is forecast."""
        every = [self._of_windows(problem.prepared.preparation, order) for order in orders]
        if len(every) == 1:
            return every[0]
        rows = problem.origins["stop"][:ORDER_WINDOWS]
        windows, known = _with_known(Windows.at(problem.prepared, rows, problem.window))
        y = problem.prepared.known_labels(rows, self.horizon)
        found = [one.fit_each(windows, known)[0] * one.scale + one.center for one in every]
        return every[int(np.argmin([np.nanmean((one - y) ** 2) for one in found]))]

    def _filtered(
        self, preparation: Preparation, order: Order, filter_: Filter, coefficients: FloatArray
    ) -> Filtered:
        return Filtered(
            filter=filter_,
            coefficients=coefficients,
            order=order,
            horizon=int(self.horizon),
            center=preparation.target_center,
            scale=preparation.target_scale,
        )

    def _of_windows(self, preparation: Preparation, order: Order) -> WindowModels:
        return WindowModels(
            build=self._model,
            order=order,
            horizon=int(self.horizon),
            iterations=int(self.max_iterations),
            verbose=self.verbose,
            name=type(self).__name__,
            center=preparation.target_center,
            scale=preparation.target_scale,
        )

    def restore(self, saved: Saved) -> Filtered | WindowModels:
        """Rebuild what `learn` returned."""
        p, d, q = (int(k) for k in saved.extra["order"])
        if not (0 <= p <= 10 and 0 <= d <= 2 and 0 <= q <= 10):
            raise ValueError(f"orders {(p, d, q)} are out of range")
        if self.mode == "window":
            return self._of_windows(saved.preparation, (p, d, q))
        coefficients = saved.take("coefficients", (saved.n_columns - 1,), np.float64)
        filter_ = Filter.restore(saved.arrays)
        return self._filtered(saved.preparation, (p, d, q), filter_, coefficients)

    @property
    def order_(self) -> Order:
        """The orders (p, d, q)."""
        learned = self._require_fitted("order_").learned
        assert isinstance(learned, Filtered | WindowModels)
        return learned.order


@documented
class STRX(AbstractStateSpace, STRXSettings):
    """Structural model: a level with a slope, both wandering, and the variables as regressors.

    statsmodels' ``UnobservedComponents(y, "local linear trend", exog=x of the row before)``.
    With ``mode="global"`` it is fitted once and filters the whole past; with ``mode="window"``,
    which is what the paper's authors did, a fresh model is fitted to every window, which is slow
    and poor. Further steps ahead hold the regressors at their last value.
    """

    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        return UnobservedComponents(endog, level="local linear trend", exog=exog)

    def _orders(self, y: FloatArray) -> tuple[list[Order], tuple[str, ...]]:
        return [(0, 0, 0)], ()


@documented
class ARIMAX(AbstractStateSpace, ARIMAXSettings):
    """ARIMA errors around a regression on the variables, orders from ACF and PACF.

    statsmodels' ``SARIMAX(y, exog=x of the row before, order, enforce_stationarity=False)``. d is
    how often the unit-root tests ask for differencing; p the number of first partial
    autocorrelations above max(1.96 / sqrt(n), 0.05), at most 5; q the same of the
    autocorrelations of what an AR(p) leaves. Neither differences nor autocorrelations reach across
    missing values and gaps. Modes and further steps ahead are as in `mvlstm.STRX`; in window mode
    q = 0 and p, 1 to 4, is chosen on validation windows.
    """

    def check(self) -> None:
        """Refuse orders that are none."""
        super().check()
        if self.order is None:
            return
        several = self.order if np.ndim(self.order) == 1 else ()
        whole = [is_whole(k) and k >= 0 for k in several]
        if len(whole) != 3 or not all(whole):
            raise ParameterError(f"order={self.order!r} must be three whole numbers (p, d, q).")

    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        free: dict[str, Any] = {"enforce_stationarity": False, "enforce_invertibility": False}
        return SARIMAX(endog, exog=exog, order=order, **free)

    def _orders(self, y: FloatArray) -> tuple[list[Order], tuple[str, ...]]:
        if self.order is not None:
            p, d, q = (int(k) for k in self.order)
            return [(p, d, q)], ()
        from mvlstm.problem.stationarity import choose_differencing

        known = np.isfinite(y)
        segments = np.cumsum(~known)[known]
        d = choose_differencing(y[known, None], ("target",), segments=segments).orders[0]
        order = choose_orders(np.diff(y, n=d), d)
        notes = (f"ARIMAX orders (p, d, q) = {order} from ACF and PACF.",)
        return [(p, d, 0) for p in WINDOW_ORDERS] if self.mode == "window" else [order], notes


def choose_orders(y: FloatArray, d: int = 0) -> Order:
    """Return (p, d, q) for a stationary series by its partial and plain autocorrelations.

    Values of ``y`` that are not known are NaN.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise, y = rng.normal(size=2000), np.zeros(2000)
    >>> for t in range(2, 2000):
    ...     y[t] = 0.5 * y[t - 1] + 0.3 * y[t - 2] + noise[t]
    >>> choose_orders(y)
    (2, 0, 0)
    """
    threshold = max(1.96 / np.sqrt(np.isfinite(y).sum()), 0.05)
    p = _leading(np.abs(_partial(_autocorrelations(y))) > threshold)
    rest = centred = y - np.nanmean(y)
    if p:
        lags = np.column_stack([centred[p - k : len(y) - k] for k in range(1, p + 1)])
        whole = np.isfinite(lags).all(axis=1) & np.isfinite(centred[p:])
        weights = np.linalg.lstsq(lags[whole], centred[p:][whole], rcond=None)[0]
        rest = centred[p:] - lags @ weights
    q = _leading(np.abs(_autocorrelations(rest)[1:]) > threshold)
    return (p, d, q) if p or q else (1, d, 0)


def _autocorrelations(y: FloatArray) -> FloatArray:
    """Return those of lags 0 .. MOST_LAGS, from the pairs of which both values are known."""
    known = np.isfinite(y)
    n = max(int(known.sum()), 1)
    centred = np.where(known, y - y[known].sum() / n, 0.0)
    found = np.zeros(MOST_LAGS + 1)
    for lag in range(min(MOST_LAGS + 1, n)):
        pairs = int((known[lag:] & known[: len(y) - lag]).sum())
        mean = centred[lag:] @ centred[: len(y) - lag] / max(pairs, 1)
        found[lag] = mean * (n - lag) / n  # pulled to zero, as sums over n are
    return found / found[0] if found[0] > 0 else found


def _partial(correlations: FloatArray) -> FloatArray:
    """Return the partial autocorrelations from lag 1 on, by the equations of Yule and Walker."""
    near = np.abs(np.subtract.outer(np.arange(MOST_LAGS), np.arange(MOST_LAGS)))
    matrix = correlations[near]
    last = [
        np.linalg.lstsq(matrix[:k, :k], correlations[1 : k + 1], rcond=None)[0][-1]
        for k in range(1, MOST_LAGS + 1)
    ]
    return np.array(last)


def _leading(above: BoolArray) -> int:
    """Count the True values before the first False."""
    return int(np.argmin(np.append(above, False)))


def _observed(table: FloatArray, known: BoolArray | None) -> FloatArray:
    """Return the table with NaN for targets that were not measured."""
    if known is None or known.all():
        return table
    table = table.copy()
    table[~known, -1] = np.nan
    return table


def _spaced(y: FloatArray, segments: IntArray) -> FloatArray:
    """Put enough missing values between segments that no lag reaches across."""
    starts = np.flatnonzero(segments[1:] != segments[:-1]) + 1
    return np.insert(y, np.repeat(starts, MOST_LAGS), np.nan)


def _lagged(
    table: FloatArray, segments: IntArray
) -> tuple[FloatArray, FloatArray | None, IntArray]:
    """Return the target from the second row on, and the other columns of the row before.

    The first row of a later segment has none before it: its target counts as missing. The third
    array holds these rows' places.
    """
    endog = table[1:, -1].copy()
    starts = np.flatnonzero(segments[1:] != segments[:-1])
    endog[starts] = np.nan
    return endog, table[:-1, :-1] if table.shape[1] > 1 else None, starts


def _quiet() -> warnings.catch_warnings[Any]:
    """Silence statsmodels: convergence is looked at here."""
    return warnings.catch_warnings(action="ignore")


def _require_statsmodels(name: str) -> None:
    try:
        import statsmodels.api  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"{name} needs statsmodels, which is not installed. "
            'Install the extra: pip install "mvlstm[baselines]".'
        ) from error
