"""Rivals from statistics: a structural model and ARIMA, each with the variables as regressors."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mvlstm.errors import (
    DataError,
    ParameterError,
    TrainingError,
    check_whole,
    is_whole,
    load_extra,
)
from mvlstm.methods.kalman import Filter, contributions, segments_likelihood, window_forecasts
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved, by_variable
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem
from mvlstm.progress import show_tasks
from mvlstm.settings import ARIMAXSettings, STRXSettings, documented
from mvlstm.types import BoolArray, FloatArray, IntArray

Order = tuple[int, int, int]

MOST_LAGS = 5


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

    def choices(self) -> dict[str, Any]:
        """Return the orders."""
        return {"order": [int(k) for k in self.order]} if any(self.order) else {}

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


class AbstractStateSpace(AbstractForecaster):
    """Regression on the variables of the row before, with a state-space model of what is left.

    The variables' next values are not known, so the regressor of y(t+1) is x(t). Further steps
    ahead hold it at its last value. Targets that were filled in count as missing, and no state is
    carried across a gap.
    """

    local: ClassVar[bool] = False  # the filter runs over the whole past
    one_series: ClassVar[bool] = True
    seed_matters: ClassVar[bool] = False  # it says at most which windows calibrate
    fit_rows: int | None
    max_iterations: int

    @abstractmethod
    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        """Build the statsmodels model."""

    @abstractmethod
    def _choose_order(self, y: FloatArray) -> tuple[Order, tuple[str, ...]]:
        """Return the orders (p, d, q) for the training rows' target, and notes on them."""

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        if self.fit_rows is not None:
            check_whole("fit_rows", self.fit_rows, 1)
        check_whole("max_iterations", self.max_iterations, 1)

    def learn(self, problem: Problem) -> Filtered:
        """Fit by maximum likelihood to the training rows."""
        name, prepared = type(self).__name__, problem.prepared
        load_extra("statsmodels.api", name, "baselines")
        if prepared.preparation.ahead > 1:
            raise DataError(
                f"{name} takes the variables of the row before, so that those known ahead serve it "
                f"at horizon=1 only, not {self.horizon}. Leave out known=..., or use AR, GBT or "
                "MVLSTM."
            )
        last = int(problem.origins["train"][-1]) + problem.horizon
        first = 0 if self.fit_rows is None else max(0, last + 1 - int(self.fit_rows))
        part, segments = prepared.table[first : last + 1], prepared.frame.segments[first : last + 1]
        if prepared.frame.measured is not None:  # what was filled in counts as missing
            part = part.copy()
            part[~prepared.frame.measured[first : last + 1], -1] = np.nan
        order, notes = self._choose_order(_spaced(part[:, -1], segments))
        filter_, coefficients, more = self._maximise(part, segments, order)
        found = {"filter": filter_, "coefficients": coefficients, "order": order}
        return self._filtered(prepared.preparation, **found, notes=(*notes, *more))

    def _maximise(
        self, part: FloatArray, segments: IntArray, order: Order
    ) -> tuple[Filter, FloatArray, tuple[str, ...]]:
        """Return the filter and the coefficients of greatest likelihood, with notes."""
        endog, exog, restarts = _lagged(part, segments)
        name = type(self).__name__
        silence = warnings.catch_warnings(action="ignore")  # convergence is looked at here
        with show_tasks(self.verbose, name, 1, every=0.0) as advance, silence:
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

    def _filtered(self, preparation: Preparation, **found: Any) -> Filtered:
        center, scale = preparation.target_center, preparation.target_scale
        return Filtered(**found, horizon=int(self.horizon), center=center, scale=scale)

    def restore(self, saved: Saved) -> Filtered:
        """Rebuild what `learn` returned."""
        p, d, q = (int(k) for k in saved.extra["order"])
        if not (0 <= p <= 10 and 0 <= d <= 2 and 0 <= q <= 10):
            raise ValueError(f"orders {(p, d, q)} are out of range")
        coefficients = saved.take("coefficients", (saved.n_columns - 1,), np.float64)
        found = {"filter": Filter.restore(saved.arrays), "coefficients": coefficients}
        return self._filtered(saved.preparation, **found, order=(p, d, q))

    @property
    def order_(self) -> Order:
        """The orders (p, d, q)."""
        learned = self._require_fitted("order_").learned
        assert isinstance(learned, Filtered)
        return learned.order


@documented
class STRX(AbstractStateSpace, STRXSettings):
    """Structural model: a level with a slope, both wandering, and the variables as regressors.

    statsmodels' ``UnobservedComponents(y, "local linear trend", exog=x of the row before)``,
    fitted once. Further steps ahead hold the regressors at their last value.
    """

    def _model(self, endog: FloatArray, exog: FloatArray | None, order: Order) -> Any:
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        return UnobservedComponents(endog, level="local linear trend", exog=exog)

    def _choose_order(self, y: FloatArray) -> tuple[Order, tuple[str, ...]]:
        return (0, 0, 0), ()


@documented
class ARIMAX(AbstractStateSpace, ARIMAXSettings):
    """ARIMA errors around a regression on the variables, orders from ACF and PACF.

    statsmodels' ``SARIMAX(y, exog=x of the row before, order, enforce_stationarity=False)``. d is
    how often the unit-root tests ask for differencing; p the number of first partial
    autocorrelations above max(1.96 / sqrt(n), 0.05), at most 5; q the same of the
    autocorrelations of what an AR(p) leaves. Neither differences nor autocorrelations reach across
    missing values and gaps. Further steps ahead are as in `mvlstm.STRX`.
    """

    def check(self) -> None:
        """Refuse what cannot be an order."""
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

    def _choose_order(self, y: FloatArray) -> tuple[Order, tuple[str, ...]]:
        if self.order is not None:
            p, d, q = (int(k) for k in self.order)
            return (p, d, q), ()
        from mvlstm.problem.stationarity import choose_differencing

        known = np.isfinite(y)
        segments = np.cumsum(~known)[known]
        d = choose_differencing(y[known, None], ("target",), segments=segments).orders[0]
        order = choose_orders(np.diff(y, n=d), d)
        return order, (f"ARIMAX orders (p, d, q) = {order} from ACF and PACF.",)


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
