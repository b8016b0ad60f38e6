"""Rivals from statistics: a structural model and ARIMA, each with the variables as regressors."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

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
from mvlstm.methods.kalman import (
    Filter,
    contributions,
    segments_likelihood,
    window_forecasts,
)
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.saving import take_array
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.transform_choice import TransformChoice
from mvlstm.problem.windows import gather_windows
from mvlstm.progress import show_steps
from mvlstm.table.parts import HELD_OUT
from mvlstm.types import BoolArray, FloatArray, IntArray

Mode = Literal["global", "window"]
Order = tuple[int, int, int]

MOST_LAGS = 5
WINDOW_ITERATIONS = 20
WINDOW_ORDERS = (1, 2, 3, 4)
ORDER_WINDOWS = 50  # windows on which an order is tried in window mode
FARTHEST = 100.0  # a window's forecast further off, in standard deviations, has failed


class AbstractStateSpace(AbstractForecaster):
    """Regression on the variables of the row before, with a state-space model of what is left.

    The variables' next values are not known, so the regressor of y(t+1) is x(t). Further steps
    ahead hold it at its last value. Targets that were filled in count as missing, and no state is
    carried across a gap.
    """

    local: ClassVar[bool] = False  # the filter runs over the whole past
    seed_matters: ClassVar[bool] = False  # it says at most which windows calibrate
    mode: Mode
    fit_rows: int | None
    max_iterations: int
    windows: int
    seed: int
    filter_: Filter
    coefficients_: FloatArray  # (C - 1,) in units of the scaled columns
    order_: Order

    @abstractmethod
    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        """Build the statsmodels model."""

    @abstractmethod
    def _choose_order(self, y: FloatArray) -> Order:
        """Return the orders (p, d, q) for a series, NaN where it is missing."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("mode", self.mode, ("global", "window"))
        for name in ("fit_rows", "max_iterations", "windows"):
            value = getattr(self, name)
            if name == "fit_rows" and value is None:
                continue
            check_whole(name, value, 1)
        if self.mode == "window":  # else nothing is drawn
            check_whole("seed", self.seed, 0)

    # ----------------------------------------------------------------------------------- learning

    def _learn(self, problem: Problem) -> None:
        _require_statsmodels(type(self).__name__)
        if problem.prepared.frame.panel is not None:
            raise DataError(
                f"{type(self).__name__} models one series, not several at once. Fit one model for "
                "each, or use AR, GBT or MVLSTM."
            )
        if problem.prepared.preparation.ahead > 1:
            raise DataError(
                f"{type(self).__name__} takes the variables of the row before, so that those known "
                f"ahead serve it at horizon=1 only, not {self.horizon}. Leave out known=..., or "
                "use AR, GBT or MVLSTM."
            )
        table, frame = problem.prepared.table, problem.prepared.frame
        last = int(problem.origins["train"][-1]) + problem.horizon
        first = 0 if self.fit_rows is None else max(0, last + 1 - int(self.fit_rows))
        rows = slice(first, last + 1)
        known = None if frame.measured is None else frame.measured[rows]
        part = _observed(table[rows], known)
        self.order_ = self._choose_order(_spaced(part[:, -1], frame.segments[rows]))
        if self.mode == "window":
            self._learn_windows(problem)
            return
        endog, exog, restarts = _lagged(part, frame.segments[rows])
        name = type(self).__name__
        with show_steps(self.verbose, name, 1, every=0.0) as advance, _quiet():
            model = self._model(endog, exog, self.order_)
            if len(restarts):
                model.loglike = segments_likelihood(model, restarts)
            results = model.fit(disp=False, maxiter=self.max_iterations, cov_type="none")
            advance("fitted by maximum likelihood")
        if not np.isfinite(results.params).all():
            raise TrainingError(
                f"{name} could not be fitted: its likelihood has no finite optimum. "
                "Leave out variables that repeat others (--exclude)."
            )
        self.filter_ = Filter.of(model, results)
        names = [f"x{j + 1}" for j in range(table.shape[1] - 1)]
        found = dict(zip(model.param_names, np.asarray(results.params), strict=True))
        keys = [next(k for k in found if k in (n, f"beta.{n}")) for n in names]
        self.coefficients_ = np.array([found[key] for key in keys], dtype=np.float64)
        if not results.mle_retvals.get("converged", True):
            note = f"{name} stopped after {self.max_iterations} iterations, not yet converged."
            self.notes_ = (*self.notes_, note)

    def _thinned(self, problem: Problem) -> Problem:
        """Keep few enough windows to calibrate on, where each is fitted."""
        if self.mode != "window":
            return problem
        rng = np.random.default_rng(self.seed)
        origins = dict(problem.origins)
        for part in HELD_OUT:
            rows = origins[part]
            if len(rows) > self.windows:
                chosen = np.sort(rng.choice(len(rows), self.windows, replace=False))
                origins[part] = rows[chosen]
        return replace(problem, origins=origins)

    def _learn_windows(self, problem: Problem) -> None:
        """Choose the order on some of the windows; each is fitted when it is forecast."""
        self.coefficients_ = np.empty(0)
        orders = self._window_orders()
        if len(orders) == 1:
            self.order_ = orders[0]
            return
        prepared, rows = problem.prepared, problem.origins["stop"][:ORDER_WINDOWS]
        windows, known = self._windows(prepared, rows)
        y = prepared.known_labels(rows, self.horizon)
        found = [self._unscaled(self._fit_each(windows, known, order)[0]) for order in orders]
        self.order_ = orders[int(np.argmin([np.nanmean((one - y) ** 2) for one in found]))]

    def _window_orders(self) -> list[Order]:
        return [self.order_]

    # --------------------------------------------------------------------------------- predicting

    def _predict_rows(self, prepared: Prepared, origins: IntArray) -> Predictive:
        if self.mode == "global":
            return Predictive(self._unscaled(self._shares(prepared, origins).sum(axis=0))[None])
        return Predictive(self._fit_windows(*self._windows(prepared, origins)))

    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        if self.mode == "window":
            return self._fit_windows(windows, np.ones(windows.shape[:2], dtype=bool))
        found = window_forecasts(self.filter_, windows, self.coefficients_, self.horizon)
        return self._unscaled(found)[None]

    def _fit_windows(self, windows: FloatArray, known: BoolArray) -> FloatArray:
        """Forecast (1, M, H) by a model of each window; ``known`` (M, T) are measured targets."""
        found, failed = self._fit_each(windows, known, self.order_)
        if failed:
            warnings.warn(
                f"{type(self).__name__}: {failed:,} of {len(windows):,} windows could not be "
                "fitted; the last value known stands in for their forecasts.",
                MVLSTMWarning,
                stacklevel=2,
            )
        return self._unscaled(found)[None]

    def _windows(self, prepared: Prepared, origins: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return windows (M, T, C), and which of their targets (M, T) were measured."""
        windows = gather_windows(prepared.table, origins, self.window)
        measured = prepared.frame.measured
        if measured is None:
            return windows, np.ones(windows.shape[:2], dtype=bool)
        return windows, gather_windows(measured[:, None], origins, self.window)[..., 0]

    def _predict_scrambled(
        self, prepared: Prepared, origins: IntArray, variables: tuple[int, ...], donors: IntArray
    ) -> Predictive:
        """Forecast with the whole past of some variables taken from the donors."""
        moved = np.flatnonzero(np.isin(prepared.frame.groups, variables))
        if self.mode == "window":
            windows, known = self._windows(prepared, origins)
            windows[:, :, moved] = windows[donors][:, :, moved]
            if windows.shape[2] - 1 in moved:  # the target
                known = known[donors]
            return Predictive(self._fit_windows(windows, known))
        shares = self._shares(prepared, origins)
        shares[moved] = shares[moved][:, donors]
        return Predictive(self._unscaled(shares.sum(axis=0))[None])

    def _shares(self, prepared: Prepared, origins: IntArray) -> FloatArray:
        frame = prepared.frame
        where = (prepared.table, frame.segments, self.coefficients_, origins, self.horizon)
        return contributions(self.filter_, *where, frame.measured)

    def _unscaled(self, forecasts: FloatArray) -> FloatArray:
        scaler = self.preparation_
        return forecasts * scaler.target_scale + scaler.target_center

    def _fit_each(
        self, windows: FloatArray, known: BoolArray, order: Order
    ) -> tuple[FloatArray, int]:
        """Fit a fresh model to every window; return scaled forecasts and how many failed."""
        _require_statsmodels(type(self).__name__)
        found = np.repeat(windows[:, -1:, -1], self.horizon, axis=1).astype(np.float64)
        failed = 0
        with show_steps(self.verbose, type(self).__name__, len(windows)) as advance, _quiet():
            for m, window in enumerate(windows):
                forecast = self._fit_one(_observed(window, known[m]), order)
                if forecast is None:
                    failed += 1
                else:
                    found[m] = forecast
                advance(f"{failed} failed")
        return found, failed

    def _fit_one(self, window: FloatArray, order: Order) -> FloatArray | None:
        endog, exog, _ = _lagged(window, np.zeros(len(window), dtype=np.int64))
        if np.isnan(endog).all():
            return None
        later = None if exog is None else np.repeat(window[-1:, :-1], self.horizon, axis=0)
        try:
            model = self._model(endog, exog, order)
            rounds = min(self.max_iterations, WINDOW_ITERATIONS)
            results = model.fit(disp=False, maxiter=rounds, cov_type="none")
            forecast = np.asarray(results.forecast(self.horizon, exog=later), dtype=np.float64)
        except (ValueError, np.linalg.LinAlgError, IndexError, ZeroDivisionError):
            return None
        near = np.isfinite(forecast).all() and np.abs(forecast).max() < FARTHEST
        return forecast if near else None

    def _model_importance(self) -> FloatArray | None:
        """Share of each regressor in the sum of |coefficient x its deviation|; none for y's past.

        The columns are scaled, so their deviation is one.
        """
        sizes = np.abs(self.coefficients_)
        if not sizes.sum() > 0:
            return None
        return self._by_variable(np.append(sizes / sizes.sum(), 0.0))

    # ------------------------------------------------------------------------------------- saving

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        extra = {"order": [int(k) for k in self.order_]}
        if self.mode == "window":
            return {}, extra
        return {"coefficients": self.coefficients_, **self.filter_.arrays()}, extra

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        p, d, q = (int(k) for k in extra["order"])
        if not (0 <= p <= 10 and 0 <= d <= 2 and 0 <= q <= 10):
            raise ValueError(f"orders {(p, d, q)} are out of range")
        self.order_ = (p, d, q)
        self.coefficients_ = np.empty(0)
        if self.mode == "global":
            columns = len(self.preparation_.orders)
            self.coefficients_ = take_array(arrays, "coefficients", (columns - 1,), np.float64)
            self.filter_ = Filter.restore(arrays)


class STRX(AbstractStateSpace):
    """Structural model: a level with a slope, both wandering, and the variables as regressors.

    statsmodels' ``UnobservedComponents(y, "local linear trend", exog=x of the row before)``.
    With ``mode="global"`` it is fitted once and filters the whole past; with ``mode="window"``,
    which is what the paper's authors did, a fresh model is fitted to every window, which is slow
    and poor. Further steps ahead hold the regressors at their last value.

    Parameters
    ----------
    window : int
        Rows skipped at the start, or, with ``mode="window"``, rows a model is fitted to.
    horizon : int
        Steps ahead.
    mode : {"global", "window"}
        One model for all, or one for each window.
    fit_rows : int, optional
        Fit to the last so many training rows only; by default to all.
    max_iterations : int
        Most iterations of the maximisation (in window mode at most 20).
    windows : int
        In window mode, windows at most on which the intervals are calibrated.
    seed : int
        Fixes the choice of these.
    missing, gaps, transform : str
        As in `mvlstm.MVLSTM`. Targets filled in count as missing all the same. Stretches between
        gaps are filtered each from its start.
    verbose : int
        0 is silent.
    """

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        mode: Mode = "global",
        fit_rows: int | None = None,
        max_iterations: int = 50,
        windows: int = 500,
        seed: int = 0,
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        transform: TransformChoice = "none",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.mode = mode
        self.fit_rows = fit_rows
        self.max_iterations = max_iterations
        self.windows = windows
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.transform = transform
        self.verbose = verbose

    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        return UnobservedComponents(endog, level="local linear trend", exog=exog)

    def _choose_order(self, y: FloatArray) -> Order:
        return (0, 0, 0)


class ARIMAX(AbstractStateSpace):
    """ARIMA errors around a regression on the variables, orders from ACF and PACF.

    statsmodels' ``SARIMAX(y, exog=x of the row before, order, enforce_stationarity=False)``. d is
    how often the unit-root tests ask for differencing; p the number of first partial
    autocorrelations above max(1.96 / sqrt(n), 0.05), at most 5; q the same of the
    autocorrelations of what an AR(p) leaves. Neither differences nor autocorrelations reach across
    missing values and gaps. Modes and further steps ahead are as in `mvlstm.STRX`; in window mode
    q = 0 and p, 1 to 4, is chosen on validation windows.

    Parameters
    ----------
    window : int
        Rows skipped at the start, or, with ``mode="window"``, rows a model is fitted to.
    horizon : int
        Steps ahead.
    mode : {"global", "window"}
        One model for all, or one for each window.
    order : tuple of int, optional
        (p, d, q); by default found as above.
    fit_rows : int, optional
        Fit to the last so many training rows only; by default to all.
    max_iterations : int
        Most iterations of the maximisation (in window mode at most 20).
    windows : int
        In window mode, windows at most on which the intervals are calibrated.
    seed : int
        Fixes the choice of these.
    missing, gaps, transform : str
        As in `mvlstm.MVLSTM`. Targets filled in count as missing all the same. Stretches between
        gaps are filtered each from its start.
    verbose : int
        0 is silent.
    """

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        mode: Mode = "global",
        order: Order | None = None,
        fit_rows: int | None = None,
        max_iterations: int = 50,
        windows: int = 500,
        seed: int = 0,
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        transform: TransformChoice = "none",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.mode = mode
        self.order = order
        self.fit_rows = fit_rows
        self.max_iterations = max_iterations
        self.windows = windows
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.transform = transform
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.order is None:
            return
        several = self.order if np.ndim(self.order) == 1 else ()
        whole = [is_whole(k) and k >= 0 for k in several]
        if len(whole) != 3 or not all(whole):
            raise ParameterError(f"order={self.order!r} must be three whole numbers (p, d, q).")

    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        return SARIMAX(
            endog,
            exog=exog,
            order=order,
            enforce_stationarity=False,
            enforce_invertibility=False,
        )

    def _choose_order(self, y: FloatArray) -> Order:
        if self.order is not None:
            p, d, q = (int(k) for k in self.order)
            return (p, d, q)
        from mvlstm.problem.stationarity import choose_differencing

        known = np.isfinite(y)
        segments = np.cumsum(~known)[known]
        d = choose_differencing(y[known, None], ("target",), segments=segments).orders[0]
        order = choose_orders(np.diff(y, n=d), d)
        self.notes_ = (*self.notes_, f"ARIMAX orders (p, d, q) = {order} from ACF and PACF.")
        return order

    def _window_orders(self) -> list[Order]:
        if self.order is not None:
            return [self.order_]
        return [(p, self.order_[1], 0) for p in WINDOW_ORDERS]


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
    """Put so many missing values between segments that no lag reaches across."""
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
