r"""Scores of point forecasts and of predictive distributions: arrays in, numbers or arrays out.

A predictive distribution is a mixture of normals held in three arrays of equal shape ``(..., J)``:
``weights`` (summing to one over the last axis), ``means`` and ``variances``. The leading axes,
usually origins x steps ``(M, H)``, are free; functions that compare with ``actual`` take it with
shape ``(...)``. Work is done in chunks of rows, so memory stays bounded for any table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, ndtr, ndtri, stdtr

from mvlstm.errors import DataError, ParameterError, check_whole
from mvlstm.types import BoolArray, FloatArray

__all__ = [
    "DieboldMariano",
    "calibrate_variance",
    "coverage",
    "crps_mixture",
    "diebold_mariano",
    "energy_score",
    "holm",
    "interval_score",
    "kendall_tau",
    "mae",
    "mape",
    "mase",
    "mixture_at",
    "mixture_cdf",
    "mixture_mean",
    "mixture_quantile",
    "mixture_score",
    "mixture_variance",
    "pinball",
    "pit",
    "rmse",
    "rmsse",
    "skill",
    "smape",
    "variance_of_mean",
    "variogram_score",
]

Measure = Literal["rmse", "mae"]  # by which settings are chosen

_CHUNK = 131_072  # mixture components held in a temporary array at once (1 MB)
_ROUNDS = 30  # of expectation maximisation, at most
_NARROW = 11  # halvings after which few rows are left to decide
_SQRT_2PI = float(np.sqrt(2.0 * np.pi))
_SQRT_2 = float(np.sqrt(2.0))
_TINY = float(np.finfo(np.float64).tiny)


# ------------------------------------------------------------------------------- point forecasts


def rmse(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Root of the mean squared error; NaN for empty input.

    Examples
    --------
    >>> rmse([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """
    error = _errors(actual, predicted)
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")


def mae(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Mean absolute error; NaN for empty input.

    Examples
    --------
    >>> mae([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    error = _errors(actual, predicted)
    return float(np.mean(np.abs(error))) if error.size else float("nan")


def mape(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Mean absolute error as a share of the actual value; infinite where one is zero.

    It says little of targets near zero, and favours forecasts that are too low: see `smape`,
    `mase`.

    Examples
    --------
    >>> mape([1.0, 2.0], [1.0, 4.0])
    0.5
    """
    error, y = np.abs(_errors(actual, predicted)), np.abs(np.asarray(actual, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(error == 0, 0.0, error / y)
    return float(np.mean(share)) if share.size else float("nan")


def smape(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Mean absolute error as a share of the mean of both sizes, between 0 and 2.

    Examples
    --------
    >>> smape([1.0, 2.0], [3.0, 2.0])
    0.5
    """
    error = np.abs(_errors(actual, predicted))
    size = np.abs(np.asarray(actual, dtype=np.float64)) + np.abs(np.asarray(predicted))
    share = 2.0 * error / np.where(size > 0, size, 1.0)
    return float(np.mean(share)) if share.size else float("nan")


def mase(actual: ArrayLike, predicted: ArrayLike, history: ArrayLike, *, period: int = 1) -> float:
    """Mean absolute error in those of repeating the value of a ``period`` before, in ``history``.

    Examples
    --------
    >>> mase([5.0], [6.0], history=[1.0, 3.0, 5.0])
    0.5
    """
    return _ratio(mae(actual, predicted), float(np.mean(np.abs(_seasonal(history, period)))))


def rmsse(actual: ArrayLike, predicted: ArrayLike, history: ArrayLike, *, period: int = 1) -> float:
    """Root of the mean squared error in those of repeating the value of a ``period`` before.

    Examples
    --------
    >>> rmsse([5.0], [6.0], history=[1.0, 3.0, 5.0])
    0.5
    """
    return _ratio(rmse(actual, predicted), float(np.mean(_seasonal(history, period) ** 2)) ** 0.5)


def pinball(actual: ArrayLike, quantile: ArrayLike, q: float) -> float:
    """Mean pinball loss of a forecast of the quantile ``q``; NaN for empty input.

    Examples
    --------
    >>> pinball([1.0, 3.0], [2.0, 2.0], q=0.9)
    0.5
    """
    check_probability("q", q)
    error = _errors(actual, quantile)
    return float(np.mean(np.maximum(q * error, (q - 1.0) * error))) if error.size else float("nan")


def skill(score: float, reference: float) -> float:
    """Share of the reference's error that is removed, ``1 - score / reference``.

    Examples
    --------
    >>> skill(0.75, 1.0)
    0.25
    """
    return 1.0 - score / reference if reference > 0 else float("nan")


def coverage(actual: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Fraction of the actual values inside ``[low, high]``; NaN for empty input.

    Examples
    --------
    >>> coverage([0.0, 1.0, 5.0, 2.0], [0, 0, 0, 0], [2, 2, 2, 2])
    0.75
    """
    y, lo, hi = _intervals(actual, low, high)
    return float(np.mean((lo <= y) & (y <= hi))) if y.size else float("nan")


def interval_score(
    actual: ArrayLike, low: ArrayLike, high: ArrayLike, *, level: float = 0.9
) -> float:
    """Mean interval score (Winkler): width plus ``2 / (1 - level)`` times the distance missed by.

    Examples
    --------
    >>> interval_score([0.0, 3.0], [-1.0, -1.0], [1.0, 1.0], level=0.5)
    6.0
    """
    check_probability("level", level)
    y, lo, hi = _intervals(actual, low, high)
    missed = np.maximum(lo - y, 0.0) + np.maximum(y - hi, 0.0)
    return float(np.mean(hi - lo + 2.0 / (1.0 - level) * missed)) if y.size else float("nan")


# ---------------------------------------------------------------------------- mixtures of normals


def mixture_mean(weights: ArrayLike, means: ArrayLike) -> FloatArray:
    """Mean of the mixture, ``sum_j w_j mu_j``, shape ``(...)``."""
    w, mu = np.asarray(weights, dtype=np.float64), np.asarray(means, dtype=np.float64)
    return np.asarray(np.sum(w * mu, axis=-1))


def mixture_variance(weights: ArrayLike, means: ArrayLike, variances: ArrayLike) -> FloatArray:
    """Variance of the mixture: mean variance plus variance of the means, shape ``(...)``."""
    w, mu, v = (np.asarray(a, dtype=np.float64) for a in (weights, means, variances))
    centred = mu - mixture_mean(w, mu)[..., None]
    return np.asarray(np.sum(w * (v + centred**2), axis=-1))


def mixture_cdf(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, x: ArrayLike
) -> FloatArray:
    """Distribution function of the mixture at ``x`` of shape ``(...)``.

    Examples
    --------
    >>> mixture_cdf([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], 0.0).item()
    0.5
    """

    def cdf(part: _Mixture, at: FloatArray) -> FloatArray:
        return np.asarray(np.sum(part.w * ndtr((at[:, None] - part.mu) / part.sd), axis=-1))

    return _each(cdf, (weights, means, variances), x)


def pit(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, actual: ArrayLike
) -> FloatArray:
    """Probability integral transform: the CDF at what happened, uniform when well calibrated."""
    return mixture_cdf(weights, means, variances, actual)


def mixture_quantile(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, q: float
) -> FloatArray:
    r"""Quantile ``q`` of every mixture, shape ``(...)``.

    The answer lies between the smallest and the largest of the components' own quantiles
    :math:`\mu_j + \sqrt{v_j}\,\Phi^{-1}(q)`. Inside that bracket Newton steps on the CDF's normal
    score are taken, replaced by bisection whenever one leaves the bracket or gains too little. Rows
    with a value that is not finite give NaN.

    Examples
    --------
    >>> mixture_quantile([[1.0]], [[2.0]], [[4.0]], 0.5)
    array([2.])
    """
    check_probability("q", q)
    return _each(_quantile_rows, (weights, means, variances), ndtri(q))


def mixture_score(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, x: ArrayLike
) -> FloatArray:
    r"""Return the normal score :math:`\Phi^{-1}(F(x))` of values ``x`` of shape ``(...)``.

    Beyond 37 standard deviations it is that of the component nearest in its own deviations.

    Examples
    --------
    >>> mixture_score([[1.0]], [[2.0]], [[4.0]], [102.0])
    array([50.])
    """
    return _each(_score_rows, (weights, means, variances), x)


def mixture_at(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, score: ArrayLike
) -> FloatArray:
    """Return the values with given normal scores, shape ``(...)``: `mixture_score` undone.

    Examples
    --------
    >>> mixture_at([[1.0]], [[2.0]], [[4.0]], [50.0])
    array([102.])
    """

    def at(part: _Mixture, z: FloatArray) -> FloatArray:
        if part.w.shape[1] == 1:
            return np.asarray(part.mu[:, 0] + part.sd[:, 0] * z)
        sign = np.where(z > 0, -1.0, 1.0)  # probabilities near 0 have more digits than near 1
        return sign * _quantile_rows(part._replace(mu=part.mu * sign[:, None]), sign * z)

    return _each(at, (weights, means, variances), score)


def crps_mixture(
    weights: ArrayLike, means: ArrayLike, variances: ArrayLike, actual: ArrayLike
) -> FloatArray:
    r"""Continuous ranked probability score of every row in closed form, shape ``(...)``.

    .. math::
        \sum_i w_i A(y-\mu_i, v_i) - \tfrac12 \sum_{ij} w_i w_j A(\mu_i-\mu_j, v_i+v_j), \quad
        A(m, v) = 2\sqrt v\,\varphi(m/\sqrt v) + m\,(2\Phi(m/\sqrt v)-1).

    In the units of the target; smaller is better; the absolute error for a certain forecast.
    """

    def crps(part: _Mixture, y: FloatArray) -> FloatArray:
        toward = np.sum(part.w * _expected_abs(y[:, None] - part.mu, part.sd), axis=-1)
        return np.asarray(toward - 0.5 * _spread(part))

    return _each(crps, (weights, means, variances), actual)


def calibrate_variance(
    weights: ArrayLike,
    means: ArrayLike,
    variances: ArrayLike,
    actual: ArrayLike,
    *,
    level: float = 0.9,
    share: float | None = None,
) -> float:
    r"""Find one factor on all variances that gives the central interval its stated coverage.

    The factor :math:`c` is the smallest for which the central ``level`` interval of the mixture
    with variances :math:`c\,v_j` covers at least ``share`` of the rows with a finite ``actual``
    (by default ``level`` of them), found by bisection. It stays within a factor of 100 of the
    maximum-likelihood factor, so that component means which cover by their spread alone do not
    shrink the variances to spikes. With fewer than 20 rows, too few to see a 5 % tail, the answer
    moves towards the maximum-likelihood factor; without any row it is 1.
    """
    check_probability("level", level)
    share = level if share is None else share
    check_probability("share", share)
    flat, shape = _flat((weights, means, variances))
    mix = _with_deviations(*flat)
    y = np.broadcast_to(np.asarray(actual, dtype=np.float64), shape).reshape(-1)
    good = np.isfinite(y) & mix.finite()
    mix, y = mix.take(np.flatnonzero(good)), y[good]
    if y.size == 0:
        return 1.0
    trust, needed, sure = min(1.0, y.size / 20.0), (share - 1e-12) * y.size, 0
    likely = _likely_scale(mix, y, 1e-3 if trust == 1.0 else 0.0)  # which only says where to look
    low, high = np.log(likely) - np.log(100.0), np.log(likely) + np.log(100.0)
    for done in range(40):
        if done == _NARROW:  # rows that are inside, or outside, at both ends stay so between them
            ends = [_inside(mix, y, end, level) for end in (low, high)]
            unsure = np.flatnonzero(ends[0] != ends[1])
            mix, y, sure = mix.take(unsure), y[unsure], int((ends[0] & ends[1]).sum())
        middle = 0.5 * (low + high)
        if sure + _inside(mix, y, middle, level).sum() >= needed:
            high = middle
        else:
            low = middle
    return float(np.exp(trust * high + (1.0 - trust) * np.log(likely)))


# ------------------------------------------------------------------------------------ joint paths


def energy_score(actual: ArrayLike, paths: ArrayLike) -> FloatArray:
    r"""Return the energy score of paths (n, M, H) for what happened (M, H), shape (M,).

    :math:`E\lVert X - y\rVert - \tfrac12 E\lVert X - X'\rVert`, each path against the next; the
    CRPS of several steps at once.
    """
    y, x = np.asarray(actual, dtype=np.float64), np.asarray(paths, dtype=np.float64)
    apart = np.linalg.norm(x - np.roll(x, 1, axis=0), axis=-1).mean(axis=0)
    return np.asarray(np.linalg.norm(x - y, axis=-1).mean(axis=0) - 0.5 * apart)


def variogram_score(actual: ArrayLike, paths: ArrayLike) -> FloatArray:
    """Return the variogram score of paths (n, M, H) for what happened (M, H), shape (M,).

    The mean over pairs of steps of the squared error of the expected root of the distance between
    the two; it tells whether steps depend on one another as they should.
    """
    y, x = np.asarray(actual, dtype=np.float64), np.asarray(paths, dtype=np.float64)
    total, H = np.zeros(len(y)), y.shape[1]
    for lag in range(1, H):
        seen = np.abs(y[:, lag:] - y[:, :-lag]) ** 0.5
        said = (np.abs(x[..., lag:] - x[..., :-lag]) ** 0.5).mean(axis=0)
        total += np.sum((seen - said) ** 2, axis=-1)
    return np.asarray(total / max(1, H * (H - 1) // 2))


# ------------------------------------------------------------------------------ comparing, ranking


class DieboldMariano(NamedTuple):
    """Outcome of `diebold_mariano`: negative differences favour the first forecast."""

    statistic: float
    p_value: float
    difference: float
    n: int
    lags: int


def diebold_mariano(errors: ArrayLike, rival: ArrayLike, *, horizon: int = 1) -> DieboldMariano:
    r"""Test whether a forecast is more accurate than its rival (one-sided).

    With :math:`d_t = e_t^2 - r_t^2` the null hypothesis is :math:`E\,d_t \ge 0`; a small p-value
    says that the first forecast has the smaller squared error. The variance of the mean is
    Newey-West's with :math:`\max(h-1, \lfloor n^{1/3} \rfloor)` lags, the statistic carries the
    small-sample correction of Harvey, Leybourne and Newbold and is compared with Student's t of
    n - 1 degrees of freedom. Both are errors (n,) of h steps ahead, in time order.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(2, 500))
    >>> diebold_mariano(noise[0], 1.5 * noise[1]).p_value < 0.01
    True
    """
    e, r = np.asarray(errors, dtype=np.float64), np.asarray(rival, dtype=np.float64)
    if e.ndim != 1 or e.shape != r.shape:
        raise DataError(
            f"diebold_mariano needs two error series of one length, not shapes {e.shape} and "
            f"{r.shape}. Pass errors of the same times."
        )
    n = e.size
    if n < max(3, horizon + 1):
        raise DataError(
            f"{n} errors are too few for a Diebold-Mariano test at horizon={horizon}; "
            f"at least {max(3, horizon + 1)} are needed."
        )
    d = e**2 - r**2
    lags = _lags(n, horizon)
    difference = float(d.mean())
    variance = _newey_west(d - difference, lags) / n
    correction = np.sqrt(max(n + 1 - 2 * horizon + horizon * (horizon - 1) / n, 0.0) / n)
    if variance <= 0.0:
        statistic = 0.0 if difference == 0.0 else float(np.copysign(np.inf, difference))
    else:
        statistic = float(correction * difference / np.sqrt(variance))
    p_value = 1.0 if not d.any() else float(stdtr(n - 1, statistic))
    return DieboldMariano(statistic, p_value, difference, n, lags)


def variance_of_mean(values: ArrayLike, *, horizon: int = 1) -> float:
    r"""Return the sampling variance of the mean of values in time order.

    They may depend on one another: it is Newey-West's, with :math:`\max(3h, 2 n^{1/3})` lags, and
    divided by n less the lags, since few values tell little about their dependence.

    Examples
    --------
    >>> variance_of_mean([1.0, 1.0, 1.0])
    0.0
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2:
        return float("nan")
    lags = min(max(3 * horizon, int(2.0 * x.size ** (1.0 / 3.0))), x.size - 1)
    return max(_newey_west(x - x.mean(), lags), 0.0) / (x.size - lags)


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values for the size of their family by Holm's step-down method.

    NaN entries are no part of the family and stay NaN.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    family = np.flatnonzero(~np.isnan(p))
    order = family[np.argsort(p[family], kind="stable")]
    factors = np.arange(family.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjust p-values so that those below a level have that share of false ones among them.

    It holds on average, for tests that are independent or positively dependent. NaN entries are no
    part of the family and stay NaN.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5])
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    family = np.flatnonzero(~np.isnan(p))
    order = family[np.argsort(p[family], kind="stable")[::-1]]
    factors = family.size / np.arange(family.size, 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(p[order] * factors), 1.0)
    return adjusted


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b of two rankings; NaN when one of them is constant.

    Examples
    --------
    >>> kendall_tau([1, 2, 3], [1, 2, 3]), kendall_tau([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _check_match("One ranking has", x, "the other", y)
    upper = np.triu_indices(x.size, 1)
    dx = np.sign(x[:, None] - x[None, :])[upper]
    dy = np.sign(y[:, None] - y[None, :])[upper]
    scale = float(np.sqrt(np.sum(dx != 0) * np.sum(dy != 0)))
    return float(np.sum(dx * dy)) / scale if scale > 0 else float("nan")


# ------------------------------------------------------------------------------------- inner parts


class _Mixture(NamedTuple):
    """Mixtures flattened to rows x components, with standard deviations."""

    w: FloatArray  # (R, J)
    mu: FloatArray  # (R, J)
    sd: FloatArray  # (R, J)

    def take(self, rows: NDArray[np.intp]) -> _Mixture:
        return _Mixture(self.w[rows], self.mu[rows], self.sd[rows])

    def finite(self) -> BoolArray:
        total = self.w.sum(axis=-1) + self.mu.sum(axis=-1) + self.sd.sum(axis=-1)
        return np.asarray(np.isfinite(total))


def _flat(mixture: Sequence[ArrayLike]) -> tuple[list[FloatArray], tuple[int, ...]]:
    """Return weights, means and variances as rows x components, and the mixtures' shape."""
    each = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in mixture))
    if each[0].ndim == 0:
        raise DataError("A mixture needs an axis of components; received scalars.")
    return [part.reshape(-1, part.shape[-1]) for part in each], each[0].shape[:-1]


def _with_deviations(weights: FloatArray, means: FloatArray, variances: FloatArray) -> _Mixture:
    return _Mixture(weights, means, np.sqrt(np.maximum(variances, _TINY)))


def _each(
    score: Callable[[_Mixture, FloatArray], FloatArray],
    mixture: Sequence[ArrayLike],
    values: ArrayLike,
) -> FloatArray:
    """Apply a function to some mixtures at a time, with one of the values for each."""
    flat, shape = _flat(mixture)
    at = np.broadcast_to(np.asarray(values, dtype=np.float64), shape).reshape(-1)
    out, size = np.empty(at.size), max(1, _CHUNK // max(1, flat[0].shape[1]))
    for start in range(0, at.size, size):
        rows = slice(start, start + size)
        out[rows] = score(_with_deviations(*(part[rows] for part in flat)), at[rows])
    return out.reshape(shape)


def _quantile_rows(mix: _Mixture, score: FloatArray) -> FloatArray:
    """Safeguarded Newton on the normal score of the CDF, which is almost straight, for one chunk.

    Solved rows leave the iteration.
    """
    out = np.full(mix.w.shape[0], np.nan)
    rows = np.flatnonzero(mix.finite())
    mix, score = mix.take(rows), score[rows]
    q = ndtr(score)
    center = np.sum(mix.w * mix.mu, axis=-1)  # a large level would leave the digits no room
    mix = mix._replace(mu=mix.mu - center[:, None])
    own = mix.mu + mix.sd * score[:, None]  # each component's own quantile
    used = mix.w > 0
    low = np.min(np.where(used, own, np.inf), axis=-1)
    high = np.max(np.where(used, own, -np.inf), axis=-1)
    x = np.clip(np.sum(mix.w * own, axis=-1), low, high)
    previous = high - low  # last step taken: Newton must at least halve it
    for _ in range(200):
        tolerance = 1e-12 * np.maximum(np.abs(low), np.abs(high)) + _TINY
        done = high - low <= tolerance
        if done.any():
            out[rows[done]] = center[done] + 0.5 * (low + high)[done]
            keep = np.flatnonzero(~done)
            rows, mix, center, q = rows[keep], mix.take(keep), center[keep], q[keep]
            score = score[keep]
            low, high, x, previous = low[keep], high[keep], x[keep], previous[keep]
        if rows.size == 0:
            return out
        z = (x[:, None] - mix.mu) / mix.sd
        below = np.sum(mix.w * ndtr(z), axis=-1)
        density = np.sum(mix.w / mix.sd * np.exp(-0.5 * z * z), axis=-1)  # times sqrt(2 pi)
        reached = ndtri(below)
        under = (reached < score) & (q > 0)
        low, high = np.where(under, x, low), np.where(under, high, x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = (score - reached) * np.exp(-0.5 * reached * reached) / density
        newton = x + step
        usable = (newton >= low) & (newton <= high) & (np.abs(step) <= 0.5 * previous)
        settled = usable & (np.abs(step) <= 1e-9 * mix.sd.min(axis=-1))
        moved = np.where(usable, newton, 0.5 * (low + high))
        previous = np.abs(moved - x)
        x = moved
        low, high = np.where(settled, x, low), np.where(settled, x, high)
    out[rows] = center + x
    return out


def _score_rows(mix: _Mixture, at: FloatArray) -> FloatArray:
    """Return the normal scores of values for one chunk."""
    own = (at[:, None] - mix.mu) / mix.sd
    if own.shape[1] == 1:
        return np.asarray(own[:, 0])
    out = _lower_score(mix.w, own)
    high = np.flatnonzero(out > 2.0)  # probabilities near 0 have more digits
    out[high] = -_lower_score(mix.w[high], -own[high])
    return out


def _lower_score(w: FloatArray, own: FloatArray) -> FloatArray:
    """Return the score of values that are these (R, J) of each component."""
    below = np.sum(w * ndtr(own), axis=-1)
    farthest = np.max(np.where(w > 0, own, -np.inf), axis=-1)
    return np.asarray(np.where(below > 0, ndtri(below), farthest))


def _expected_abs(distance: FloatArray, sd: FloatArray) -> FloatArray:
    """A(m, v) = E|Z| of Z ~ N(m, v), with sd = sqrt(v)."""
    z = distance / sd
    return np.asarray(2.0 * sd * np.exp(-0.5 * z * z) / _SQRT_2PI + distance * erf(z / _SQRT_2))


def _spread(mix: _Mixture) -> FloatArray:
    """E|Z - Z'| of two independent draws of each mixture, shape (R,)."""
    variance = mix.sd**2
    total = np.sum(mix.w**2 * mix.sd, axis=-1) * (2.0 / np.sqrt(np.pi))  # pairs i = j
    for i in range(mix.w.shape[1] - 1):
        other = slice(i + 1, None)
        sd = np.sqrt(variance[:, i, None] + variance[:, other])
        gap = _expected_abs(mix.mu[:, i, None] - mix.mu[:, other], sd)
        total += 2.0 * mix.w[:, i] * np.sum(mix.w[:, other] * gap, axis=-1)
    return np.asarray(total)


def _inside(mix: _Mixture, y: FloatArray, log_factor: float, level: float) -> BoolArray:
    """Say which rows lie in the central interval once the variances are multiplied."""
    at = mixture_cdf(mix.w, mix.mu, (float(np.exp(0.5 * log_factor)) * mix.sd) ** 2, y)
    tail = 0.5 * (1.0 - level)
    return np.asarray((at >= tail) & (at <= 1.0 - tail))


def _likely_scale(mix: _Mixture, y: FloatArray, settled: float) -> float:
    """Maximum-likelihood factor on the variances, by expectation maximisation.

    It ends when the factor changes by a share of no more than ``settled``.
    """
    squared = ((y[:, None] - mix.mu) / mix.sd) ** 2
    with np.errstate(divide="ignore"):
        base = np.log(mix.w) - np.log(mix.sd)
    factor = float(np.mean(np.sum(mix.w * squared, axis=-1)))
    for _ in range(_ROUNDS):
        factor = float(np.clip(factor, 1e-10, 1e10))
        log_joint = base - 0.5 * squared / factor
        share = np.exp(log_joint - log_joint.max(axis=-1, keepdims=True))
        share /= share.sum(axis=-1, keepdims=True)
        before, factor = factor, float(np.mean(np.sum(share * squared, axis=-1)))
        if abs(factor - before) <= settled * before:
            break
    return float(np.clip(factor, 1e-10, 1e10))


def _lags(n: int, horizon: int) -> int:
    return min(max(horizon - 1, int(np.floor(n ** (1.0 / 3.0) + 1e-9))), n - 1)


def _newey_west(centred: FloatArray, lags: int) -> float:
    """Long-run variance with Bartlett weights."""
    n = centred.size
    total = float(centred @ centred) / n
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1.0)) * float(centred[lag:] @ centred[:-lag]) / n
    return total


def _seasonal(history: ArrayLike, period: int) -> FloatArray:
    """Return the changes of a series over a period, those known."""
    check_whole("period", period, 1)
    past = np.asarray(history, dtype=np.float64)
    changes = past[period:] - past[:-period]
    known = changes[np.isfinite(changes)]
    if not known.size:
        raise DataError(
            f"{past.size} values of history are too few for period={period}; more than {period} "
            "are needed."
        )
    return known


def _ratio(score: float, reference: float) -> float:
    return score / reference if reference > 0 else float("nan")


def _errors(actual: ArrayLike, predicted: ArrayLike) -> FloatArray:
    y, x = np.asarray(actual, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    _check_match("Actual values have", y, "forecasts", x)
    return y - x


def _intervals(
    actual: ArrayLike, low: ArrayLike, high: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values and their intervals, whose ends may be one number for all."""
    y, lo, hi = (np.asarray(a, dtype=np.float64) for a in (actual, low, high))
    for name, end in (("lower", lo), ("upper", hi)):
        if end.ndim:
            _check_match("Actual values have", y, f"{name} ends of intervals", end)
    return y, lo, hi


def _check_match(one: str, first: NDArray[Any], other: str, second: NDArray[Any]) -> None:
    if first.shape != second.shape:
        raise DataError(
            f"{one} shape {first.shape} but {other} {second.shape}. Pass arrays that match."
        )


def check_probability(name: str, value: float) -> None:
    """Raise `ParameterError` unless a value lies strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{name}={value!r} must lie strictly between 0 and 1, such as 0.9.")
