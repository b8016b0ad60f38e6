"""A linear filter in state-space form: its forecasts, and the share of each input in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError
from mvlstm.model.learned import take_array
from mvlstm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Filter:
    r"""A univariate Gaussian state space with constant matrices, filtered by Kalman's recursion.

    .. math::
        u_t = z^\top \alpha_t + \varepsilon_t, \qquad \alpha_{t+1} = T \alpha_t + \eta_t,
        \qquad a_{t+1} = T a_t + K_t (u_t - z^\top a_t).

    The gains :math:`K_t` depend on t and on which rows were measured, never on the values, so
    forecasts are linear in the series, and the forecast of a sum of series is the sum of the
    forecasts. A row that was not measured has no gain.
    """

    design: FloatArray  # (k,)
    transition: FloatArray  # (k, k)
    state_cov: FloatArray  # (k, k)
    obs_cov: FloatArray  # (1,)
    initial_cov: FloatArray  # (k, k)

    @classmethod
    def of(cls, model: Any, results: Any) -> Filter:
        """Read the matrices of a fitted statsmodels model, whatever its regression part."""
        model.update(results.params)
        ssm = model.ssm
        selection = np.asarray(ssm["selection"])
        noise = selection @ np.asarray(ssm["state_cov"]) @ selection.T
        return cls(
            design=np.array(ssm["design"])[0].reshape(-1),
            transition=np.array(ssm["transition"]).reshape(len(noise), -1),
            state_cov=np.array(noise),
            obs_cov=np.array(ssm["obs_cov"]).reshape(-1),
            initial_cov=np.array(results.filter_results.initial_state_cov),
        )

    def gains(self, length: int, measured: BoolArray | None = None) -> FloatArray:
        """Return the gains (length, k) of the first rows of a series, all measured by default."""
        T, z, P = self.transition, self.design, self.initial_cov
        known = np.ones(length, dtype=bool) if measured is None else measured
        passed = np.append(np.flatnonzero(~known), length)  # rows without a gain
        gains = np.zeros((length, len(z)))
        t = 0
        while t < length:
            F = float(z @ P @ z + self.obs_cov[0])
            K = T @ P @ z / F if F > 0 and known[t] else np.zeros(len(z))
            gains[t] = K
            following = T @ P @ T.T - F * np.outer(K, K) + self.state_cov
            following = 0.5 * (following + following.T)
            if known[t] and _settled(following, P):
                end = int(passed[np.searchsorted(passed, t)])
                gains[t:end] = K  # until a row comes that was not measured
                t = end
                continue
            P = following
            t += 1
        return gains

    def forecasts(self, series: FloatArray, horizon: int, gains: FloatArray) -> FloatArray:
        """Return forecasts (S, n, H) made after each row of series (S, n)."""
        S, n = series.shape
        state = np.zeros((S, len(self.design)))
        states = np.empty((n, *state.shape))
        turned = self.transition.T
        for t, values in enumerate(series.T):
            error = values - state @ self.design
            state = state @ turned + error[:, None] * gains[t]
            states[t] = state
        ahead = [self.design]
        for _ in range(1, horizon):
            ahead.append(ahead[-1] @ self.transition)
        return np.asarray(np.moveaxis(states @ np.array(ahead).T, 0, 1))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the matrices by name, for the model file."""
        return {key: getattr(self, key) for key in self.__dataclass_fields__}

    @classmethod
    def restore(cls, arrays: dict[str, Any]) -> Filter:
        """Take the arrays of `arrays` back, checking their shapes."""
        k = arrays["design"].shape[0] if "design" in arrays and arrays["design"].ndim else 0
        if not 1 <= k <= 1_000:
            raise ModelFileError(f"its filter has {k} states.")
        shapes = {"design": (k,), "obs_cov": (1,)}
        names = cls.__dataclass_fields__
        found = [take_array(arrays, key, shapes.get(key, (k, k)), np.float64) for key in names]
        return cls(*found)


def _settled(following: FloatArray, P: FloatArray) -> bool:
    """Say whether the covariance stays as it is."""
    return bool((np.abs(following - P) <= 1e-14 * np.abs(P) + 1e-16).all())


def contributions(
    filter_: Filter,
    table: FloatArray,
    segments: IntArray,
    coefficients: FloatArray,
    origins: IntArray,
    horizon: int,
    measured: BoolArray | None = None,
) -> FloatArray:
    """Return the share of every column in the forecasts made at ``origins``: (C, M, H).

    The target's share is the filter's forecast from its own past. Another column's is its last
    value times its coefficient (C - 1,), less what the filter had expected of that product. The
    regressors lag the target, the last column of the scaled table (rows, C), by one row.
    ``measured`` (rows,) says whose target was not filled in; by default all.
    """
    C = table.shape[1]
    shares = np.empty((C, len(origins), horizon))
    effect = np.column_stack([table[:, :-1] * coefficients, np.zeros(len(table))])
    starts = np.flatnonzero(np.r_[True, segments[1:] != segments[:-1]])
    ends = np.r_[starts[1:], len(table)]
    gains = filter_.gains(int((ends - starts).max()))
    for start, end in zip(starts, ends, strict=True):
        here = np.flatnonzero((origins >= start) & (origins < end))
        if not len(here):
            continue
        stop = int(origins[here].max()) + 1
        series = effect[start : stop - 1].T.copy()  # (C, n - 1): the regressors, a row late
        series[-1] = table[start + 1 : stop, -1]
        known = None if measured is None else measured[start + 1 : stop]
        own = gains if known is None or known.all() else filter_.gains(len(known), known)
        expected = filter_.forecasts(series, horizon, own)[:, origins[here] - start - 1]
        shares[:-1, here] = (effect[origins[here], :-1].T)[..., None] - expected[:-1]
        shares[-1, here] = expected[-1]
    return shares


def window_forecasts(
    filter_: Filter, windows: FloatArray, coefficients: FloatArray, horizon: int
) -> FloatArray:
    """Return forecasts (M, H) from windows (M, T, C), the filter started afresh in each."""
    effect = windows[:, :, :-1] @ coefficients  # (M, T)
    series = windows[:, 1:, -1] - effect[:, :-1]
    gains = filter_.gains(series.shape[1])
    return filter_.forecasts(series, horizon, gains)[:, -1] + effect[:, -1:]


def segments_likelihood(model: Any, restarts: IntArray) -> Callable[..., float]:
    """Return the log-likelihood of segments that a statsmodels model holds one after another.

    After each row of ``restarts``, which must not be measured, the state is as unknown as at the
    start, so that this is the sum of the segments' own log-likelihoods. As statsmodels does, it
    leaves out the first rows of each, by which the state becomes known. The model's initial state
    must be approximately diffuse, whatever the parameters.
    """
    from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

    k, burn, variance = model.k_states, model.loglikelihood_burn, model.ssm.initial_variance
    whole = KalmanFilter(k_endog=1, k_states=k, selection=np.eye(k))
    whole.bind(np.array(model.endog))
    whole.initialize_approximate_diffuse(variance)
    inner = np.isin(np.arange(model.nobs), restarts, invert=True)
    first = np.append(0, restarts + 1)[:, None] + np.arange(burn)
    counts = np.isin(np.arange(model.nobs), first, invert=True)

    def likelihood(params: FloatArray, flags: Mapping[str, Any] | None = None) -> float:
        model.update(params, transformed=(flags or {}).get("transformed", True))
        ssm = model.ssm
        selection = ssm["selection"]
        noise = selection @ ssm["state_cov"] @ selection.T
        for name in ("design", "obs_cov", "obs_intercept"):
            whole[name] = ssm[name]
        whole["transition"] = ssm["transition"][..., None] * inner
        whole["state_cov"] = np.where(inner, noise[..., None], variance * np.eye(k)[..., None])
        return float(whole.loglikeobs(loglikelihood_burn=0)[counts].sum())

    return likelihood
