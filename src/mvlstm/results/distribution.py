r"""Predictive distributions: mixtures of normals, recalibrated by what was known at each origin.

With :math:`F` the mixture of the fit, a value has the normal score :math:`z = \Phi^{-1}(F(y))`. The
recalibrated distribution is :math:`\Phi(g(\Phi^{-1}(F(y))))` with :math:`g` rising, linear between
``knots``: where the normal scores of `LEVELS` lie among the static ones. Quantiles, PIT and CRPS
all come from it; without knots it is the mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from mvlstm import metrics
from mvlstm.recalibration import GRID, LEVELS, SCORES
from mvlstm.transforms import Transform
from mvlstm.types import FloatArray

NODES = 5  # of the quadrature of the CRPS, between two knots
CHUNK = 4_096  # forecasts whose CRPS is computed at once


@dataclass(frozen=True, eq=False)
class Knots:
    """Static normal scores (..., L) at each of `LEVELS`, found when they are first asked for."""

    find: Callable[[], FloatArray] | None
    found: FloatArray | None = None

    @cached_property
    def values(self) -> FloatArray:
        """The scores, rising along the last axis."""
        if self.found is not None:
            return self.found
        assert self.find is not None
        return self.find()

    def settled(self) -> Knots:
        """Return the same scores, found."""
        return Knots(None, self.values)

    def __getitem__(self, rows: Any) -> Knots:
        return Knots(partial(_some, self, rows))


def _some(knots: Knots, rows: Any) -> FloatArray:
    return np.asarray(knots.values[rows])


@dataclass(frozen=True, eq=False)
class Distribution:
    """Predictive distributions of any shape (...).

    Parameters
    ----------
    weights, means, variances : (..., J)
        The mixture, on the scale of ``transform``.
    transform : Transform
    knots : (..., L), optional
        Static normal score at each of `LEVELS`, rising.
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    transform: Transform
    knots: FloatArray | None = None

    def take(self, rows: Any) -> Distribution:
        """Return some of the distributions."""
        knots = None if self.knots is None else self.knots[rows]
        mixture = self.weights[rows], self.means[rows], self.variances[rows]
        return Distribution(*mixture, self.transform, knots)

    def quantile(self, q: float) -> FloatArray:
        """Quantile ``q``, in units of the target."""
        metrics.check_probability("q", q)
        if self.knots is None:
            found = metrics.mixture_quantile(self.weights, self.means, self.variances, q)
            return self.transform.inverse(found)
        return self.transform.inverse(self._at(float(ndtri(q))))

    def pit(self, y: FloatArray) -> FloatArray:
        """Probability of values up to ``y`` (...)."""
        mixture = self.weights, self.means, self.variances
        at = self.transform.forward(self.transform.clip(y))
        if self.knots is None:
            found = metrics.pit(*mixture, at)
        else:
            found = np.asarray(ndtr(_read(metrics.mixture_score(*mixture, at), self.table, GRID)))
        found[y >= self.transform.high] = 1.0
        found[y < self.transform.low] = 0.0
        return found

    def crps(self, y: FloatArray) -> FloatArray:
        """Continuous ranked probability score; of a recalibrated distribution by quadrature."""
        if self.knots is None:
            return self.transform.crps(self.weights, self.means, self.variances, y)
        out = np.full(y.shape, np.nan)
        rows = np.nonzero(np.isfinite(y))
        for start in range(0, len(rows[0]), CHUNK):
            few = tuple(index[start : start + CHUNK] for index in rows)
            values = self.transform.inverse(self.take(few).quantiles() @ BETWEEN)  # (few, nodes)
            missed = values - y[few][:, None]
            out[few] = 2.0 * (np.where(missed > 0, 1.0 - ALPHA, -ALPHA) * missed) @ WEIGHT
        return out

    def variance(self) -> FloatArray:
        """Variance (...), in squared units of the target, by the quadrature of the CRPS."""
        values = self.transform.inverse(self.quantiles() @ BETWEEN)
        mean = values @ WEIGHT
        return np.asarray((values - mean[..., None]) ** 2 @ WEIGHT)

    def values_at(self, score: FloatArray) -> FloatArray:
        """Return values (n, M, H), in units of the target, at calibrated normal scores (n, H)."""
        right = np.clip(np.searchsorted(GRID, score), 1, len(GRID) - 1)
        share = (score - GRID[right - 1]) / (GRID[right] - GRID[right - 1])
        steps, values = np.arange(score.shape[1]), self.quantiles()  # (M, H, L + 2)
        low, high = values[:, steps, right - 1], values[:, steps, right]  # (M, n, H)
        return self.transform.inverse(np.moveaxis(low + share * (high - low), 1, 0))

    @property
    def table(self) -> FloatArray:
        """Static normal scores (..., L + 2) at `GRID`."""
        if self.knots is None:
            return np.broadcast_to(GRID, (*self.means.shape[:-1], len(GRID)))
        return np.stack([self._scores(place) for place in range(len(GRID))], axis=-1)

    def _scores(self, place: int) -> FloatArray | float:
        """Return the static normal scores (...) at one place of `GRID`; beyond the knots, on."""
        if self.knots is None:
            return float(GRID[place])
        if 0 < place < len(GRID) - 1:
            return self.knots[..., place - 1]
        middle, end = self.knots[..., len(LEVELS) // 2], 0 if place == 0 else -1
        slope = (self.knots[..., end] - middle) / SCORES[end]
        return np.asarray(self.knots[..., end] + slope * (GRID[end] - SCORES[end]))

    def quantiles(self) -> FloatArray:
        """Return the values (..., L + 2) at the normal scores `GRID`, on the transform's scale."""
        found = [self._at(score) for score in GRID]
        return np.maximum.accumulate(np.stack(found, axis=-1), axis=-1)

    def _at(self, score: float) -> FloatArray:
        """Return the values (...) at one calibrated normal score, on the transform's scale."""
        place = int(np.clip(np.searchsorted(GRID, score), 1, len(GRID) - 1))
        share = (score - GRID[place - 1]) / (GRID[place] - GRID[place - 1])
        static = (1.0 - share) * self._scores(place - 1) + share * self._scores(place)
        return metrics.mixture_at(self.weights, self.means, self.variances, static)


def _read(x: FloatArray, at: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate ``values`` (G,) given at rising places ``at`` (..., G) linearly at x (...)."""
    right = np.clip(np.sum(at < x[..., None], axis=-1), 1, at.shape[-1] - 1)[..., None]
    low, high = (np.take_along_axis(at, right - k, axis=-1)[..., 0] for k in (1, 0))
    share = (x - low) / np.maximum(high - low, np.finfo(np.float64).tiny)
    right = right[..., 0]
    return np.asarray(values[right - 1] + share * (values[right] - values[right - 1]))


def _quadrature() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes by their probabilities, weights, and how values at GRID lead to those there."""
    points, shares = np.polynomial.legendre.leggauss(NODES)
    width = np.diff(GRID)[:, None]
    score = (GRID[:-1, None] + width * 0.5 * (1.0 + points)).reshape(-1)
    weight = (width * 0.5 * shares).reshape(-1) * np.exp(-0.5 * score**2) / np.sqrt(2.0 * np.pi)
    between = np.stack([np.interp(score, GRID, row) for row in np.eye(len(GRID))])
    return np.asarray(ndtr(score)), weight, between


ALPHA, WEIGHT, BETWEEN = _quadrature()
