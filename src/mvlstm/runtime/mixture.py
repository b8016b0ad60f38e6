"""Mixtures of normals in numpy alone: scores of values, and values of scores."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from mvlstm.types import FloatArray

ERFC = (  # coefficients of a Chebyshev fit, of a relative error of 1.2e-7 everywhere
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)
TINY = np.finfo(np.float64).tiny
ROUNDS = 80  # of the search for a value: halving alone needs 50
CLOSE = 1e-9  # standard deviations, by which a value may be off
STANDARD = NormalDist()


def normal_cdf(x: FloatArray) -> FloatArray:
    """Return the standard normal distribution function."""
    z = np.abs(x) * np.sqrt(0.5)
    t = 1.0 / (1.0 + 0.5 * z)
    series = np.polynomial.polynomial.polyval(t, ERFC)
    half = 0.5 * t * np.exp(-z * z + series)
    return np.asarray(np.where(x < 0, half, 1.0 - half))


def normal_score(q: FloatArray) -> FloatArray:
    """Return the standard normal's values at probabilities between 0 and 1, infinite at these."""
    found = [STANDARD.inv_cdf(one) if 0 < one < 1 else np.inf * (one - 0.5) for one in q.tolist()]
    return np.array(found, dtype=np.float64)


def scores(w: FloatArray, mu: FloatArray, v: FloatArray, x: FloatArray) -> FloatArray:
    """Return the normal scores of values (R,) under mixtures (R, J)."""
    own = (x[:, None] - mu) / np.sqrt(np.maximum(v, TINY))
    if own.shape[1] == 1:
        return np.asarray(own[:, 0])
    lower, upper = (_lower(w, sign * own) for sign in (1.0, -1.0))
    return np.where(lower > 2.0, -upper, lower)  # probabilities near 0 have more digits


def _lower(w: FloatArray, own: FloatArray) -> FloatArray:
    below = np.sum(w * normal_cdf(own), axis=1)
    farthest = np.max(np.where(w > 0, own, -np.inf), axis=1)
    return np.where(below > 0, normal_score(np.minimum(below, 1.0)), farthest)


def values_at(w: FloatArray, mu: FloatArray, v: FloatArray, score: FloatArray) -> FloatArray:
    """Return the values (R,) that have given normal scores under mixtures (R, J)."""
    sign = np.where(score > 0, -1.0, 1.0)
    center = np.sum(w * mu, axis=1)
    mu, sd, score = (
        (mu - center[:, None]) * sign[:, None],
        np.sqrt(np.maximum(v, TINY)),
        sign * score,
    )
    q, own = normal_cdf(score), mu + sd * score[:, None]
    low = np.min(np.where(w > 0, own, np.inf), axis=1)
    high = np.max(np.where(w > 0, own, -np.inf), axis=1)
    x, enough = np.clip(np.sum(w * own, axis=1), low, high), CLOSE * sd.min(axis=1)
    for _ in range(ROUNDS):
        z = (x[:, None] - mu) / sd
        excess = np.sum(w * normal_cdf(z), axis=1) - q
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        density = np.sum(w / sd * np.exp(-0.5 * z * z), axis=1) / np.sqrt(2 * np.pi)
        newton = x - excess / np.maximum(density, TINY)
        inside = (newton > low) & (newton < high)
        moved = np.where(inside, newton, 0.5 * (low + high))
        done, x = np.abs(moved - x) <= enough, moved
        if (done | (high - low <= enough)).all():
            break
    return np.asarray(center + sign * x)


def to_scale(transform: Any, values: FloatArray) -> FloatArray:
    """Turn values of the target into those the model works on."""
    name, center, scale, *_ = _parts(transform)
    if name == "asinh":
        return np.asarray(np.arcsinh((values - center) / scale))
    return np.log1p(values) if name == "log1p" else values


def to_units(transform: Any, values: FloatArray) -> FloatArray:
    """Undo `to_scale`; what would lie below zero on a logarithmic scale is zero.

    What would lie beyond the bounds of the target is these.
    """
    name, center, scale, low, high = _parts(transform)
    if name == "asinh":
        values = np.asarray(center + scale * np.sinh(values))
    elif name == "log1p":
        values = np.maximum(np.expm1(values), 0.0)
    return values if low is None and high is None else np.clip(values, low, high)


def _parts(transform: Any) -> list[Any]:
    """Return name, middle, unit and bounds of a transform as a file holds it."""
    parts = [transform] if isinstance(transform, str) else list(transform)
    return parts + [0.0, 1.0, None, None][len(parts) - 1 :]
