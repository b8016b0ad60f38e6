r"""The paper's importance: attention before and after seeing the value, with its spread.

The prior :math:`\pi_n = p(z=n \mid X)` says where the model looks, the posterior
:math:`q_n = p(z=n \mid X, y)` which variable's expert turned out right. Both are computed from
logarithms, so residuals of any size give finite answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mvlstm.explain.blocks import BlockBootstrap, block_length, interval, over_time
from mvlstm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention of every member on the windows measured."""

    prior: FloatArray  # (K, M, N) or (K, M, H, N), before seeing the value
    posterior: FloatArray  # likewise, after
    temporal: FloatArray | None = None  # (K, N, L) mean over the L past steps, oldest first
    leakage: FloatArray | None = None  # (N, N) row n: where expert n's sensitivity goes


def posterior(
    log_prior: ArrayLike, means: ArrayLike, actual: ArrayLike, sigma2: ArrayLike
) -> FloatArray:
    r"""Posterior attention :math:`q_n \propto \pi_n \, N(y; \mu_n, \sigma^2)`, summing to one.

    ``log_prior`` and the experts' ``means`` are (..., N). ``actual`` (...) is broadcast against the
    leading axes, so (M,) serves members (K, M, N); ``sigma2`` against (..., N), such as (K, 1, 1).

    Examples
    --------
    >>> posterior(np.log([0.5, 0.5]), [0.0, 1.0], 0.0, 1.0).round(3)
    array([0.622, 0.378])
    """
    mu = np.asarray(means, dtype=np.float64)
    variance = np.asarray(sigma2, dtype=np.float64)
    residual = np.asarray(actual, dtype=np.float64)[..., None] - mu
    log_joint = (
        np.asarray(log_prior, dtype=np.float64)
        - 0.5 * np.log(variance)
        - 0.5 * residual**2 / variance
    )
    joint = np.exp(log_joint - log_joint.max(axis=-1, keepdims=True))
    return np.asarray(joint / joint.sum(axis=-1, keepdims=True))


def calibrated_sigma2(
    log_prior: ArrayLike, means: ArrayLike, actual: ArrayLike, *, rounds: int = 20
) -> FloatArray:
    r"""Variance (K,) that fits the experts' errors on validation rows, one for every member.

    Alternates :math:`q_{mn}` from :math:`\sigma^2` with :math:`\sigma^2 = \operatorname{mean}_m
    \sum_n q_{mn} (y_m - \mu_{mn})^2`, starting from the prior-weighted error. ``log_prior`` and
    ``means`` are (K, ..., N), ``actual`` (...) or (K, ...).
    """
    log_pi = np.asarray(log_prior, dtype=np.float64)
    mu = np.asarray(means, dtype=np.float64)
    squared = (np.asarray(actual, dtype=np.float64)[..., None] - mu) ** 2
    inner = tuple(range(1, mu.ndim))
    size = float(np.prod([mu.shape[i] for i in inner[:-1]]))
    spread = (mu.shape[0],) + (1,) * len(inner)
    start = np.sum(np.exp(log_pi) * squared, axis=inner) / size
    floor = np.maximum(1e-10 * start, np.finfo(np.float64).tiny)
    sigma2 = np.maximum(start, floor)
    for _ in range(rounds):
        q = posterior(log_pi, mu, actual, sigma2.reshape(spread))
        sigma2 = np.maximum(np.sum(q * squared, axis=inner) / size, floor)
    return np.asarray(sigma2)


@dataclass(frozen=True, eq=False)
class AttentionSummary:
    """Mean attention of N variables and how far to trust it; all are (N,) but the last."""

    prior: FloatArray  # means over members, times and steps; they sum to one
    posterior: FloatArray
    posterior_low: FloatArray  # 90 % interval from resampling members and blocks of times
    posterior_high: FloatArray
    kl: FloatArray  # part of the mean divergence of posterior from prior, in nats
    prior_entropy: FloatArray  # part of the mean entropy, in nats
    posterior_entropy: FloatArray
    per_member: FloatArray  # (K, N) posterior importance


def summarise_attention(
    prior: FloatArray,
    posterior: FloatArray,
    *,
    window: int,
    draws: int,
    times: IntArray | None = None,
    seed: int = 0,
) -> AttentionSummary:
    """Average attention (K, M, N) or (K, M, H, N) over members and times, with its spread.

    ``window`` is T, and ``times`` (M,) the time of each window, where several series share it.
    """
    pi, q = (a.mean(axis=2) if a.ndim == 4 else a for a in (prior, posterior))  # (K, M, N)
    k, _, n = q.shape
    by_time = over_time(np.moveaxis(q, 0, 1), times)  # (times, K, N)
    boot = BlockBootstrap(len(by_time), k, draws, cell=max(1, window // 5), seed=seed)
    paths = by_time.mean(axis=1).T  # (N, times)
    length = max((block_length(path, minimum=window) for path in paths), default=window)
    members, cells = boot.members(), boot.cells(by_time)
    drawn = np.empty((draws, n))
    for rows, weights in boot.times(length):
        drawn[rows] = np.einsum("bk,bkn->bn", members[rows], np.tensordot(weights, cells, axes=1))
    mean = q.mean(axis=(0, 1))
    low, high = interval(drawn, mean)
    axes = tuple(range(prior.ndim - 1))
    return AttentionSummary(
        prior=pi.mean(axis=(0, 1)),
        posterior=mean,
        posterior_low=low,
        posterior_high=high,
        kl=(_xlogy(posterior, posterior) - _xlogy(posterior, prior)).mean(axis=axes),
        prior_entropy=-_xlogy(prior, prior).mean(axis=axes),
        posterior_entropy=-_xlogy(posterior, posterior).mean(axis=axes),
        per_member=q.mean(axis=1),
    )


def _xlogy(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x log y with 0 log 0 = 0 and y kept away from zero."""
    return np.where(x > 0, x * np.log(np.maximum(y, np.finfo(np.float64).tiny)), 0.0)
