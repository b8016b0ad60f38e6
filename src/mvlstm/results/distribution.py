r"""Predictive distributions: mixtures of normals, recalibrated by what was known at each origin.

With :math:`F` the mixture of the fit, a value has the normal score :math:`z = \Phi^{-1}(F(y))`. The
recalibrated distribution is :math:`\Phi(g(\Phi^{-1}(F(y))))` with :math:`g` rising, linear between
``knots``: where the normal scores of `LEVELS` lie among the static ones. Quantiles, PIT and CRPS
all come from it; without knots it is the mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from mvlstm import metrics
from mvlstm.recalibration import GRID, LEVELS, SCORES, ScoreMap
from mvlstm.transforms import Transform
from mvlstm.types import FloatArray

NODES = 5  # of the quadrature of the CRPS, between two knots
Found = TypeVar("Found")
CLOSE = 1e-9  # share of the way between two knots that does not matter
CHUNK = 8_192  # forecasts whose CRPS is computed at once


@dataclass(frozen=True, eq=False)
class Later(Generic[Found]):
    """Something about each forecast that is worked out when it is first asked for."""

    find: Callable[[], Found] | None
    known: Found | None = None

    @cached_property
    def found(self) -> Found:
        """What `find` returns."""
        if self.known is not None:
            return self.known
        assert self.find is not None
        return self.find()

    def settled(self) -> Later[Found]:
        """Return the same, found."""
        return Later(None, self.found)

    def __getitem__(self, rows: Any) -> Later[Found]:
        return Later(partial(_some, self, rows))


def _some(later: Later[Any], rows: Any) -> Any:
    return later.found[rows]


def mean_knots(each: Sequence[Later[ScoreMap]]) -> Later[ScoreMap]:
    """Return the means of knots of the same forecasts."""
    return Later(lambda: ScoreMap.of(np.mean([one.found.values for one in each], axis=0)))


@dataclass(frozen=True, eq=False)
class Distribution:
    """Predictive distributions of any shape (...).

    Parameters
    ----------
    weights, means, variances : (..., J)
        The mixture, on the scale of ``transform``.
    transform : Transform
    knots : ScoreMap (...), optional
        Static normal score at each of `LEVELS`.
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    transform: Transform
    knots: ScoreMap | None = None

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
        if self.knots is None:
            mixture = self.weights, self.means, self.variances
            found = metrics.pit(*mixture, self.transform.forward(self.transform.clip(y)))
        else:
            found = np.asarray(ndtr(self.score(y)))
        found[y >= self.transform.high] = 1.0
        found[y < self.transform.low] = 0.0
        return found

    def score(self, y: FloatArray) -> FloatArray:
        """Calibrated normal score of ``y`` (...)."""
        mixture = self.weights, self.means, self.variances
        at = self.transform.forward(self.transform.clip(y))
        static = metrics.mixture_score(*mixture, at)
        return static if self.knots is None else _read(static, self.table, GRID)

    def after(self, again: ScoreMap) -> ScoreMap:
        """Return the knots by which calibrated scores are calibrated again."""
        levels, table = again.values, self.table
        right = np.clip(np.searchsorted(GRID, levels), 1, len(GRID) - 1)
        low, high = (np.take_along_axis(table, right - k, axis=-1) for k in (1, 0))
        share = (levels - GRID[right - 1]) / (GRID[right] - GRID[right - 1])
        return ScoreMap.of(low + share * (high - low))

    def crps(self, y: FloatArray) -> FloatArray:
        """Continuous ranked probability score; of a recalibrated transform by quadrature."""
        if self.knots is None:
            return self.transform.crps(self.weights, self.means, self.variances, y)
        out, size = np.full(y.shape, np.nan), max(1, CHUNK // max(1, y[:1].size))
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            few = self.take(rows)
            out[rows] = few._quadrature_crps(y[rows]) if self.transform else few._crps(y[rows])
        return out

    def _quadrature_crps(self, y: FloatArray) -> FloatArray:
        values = self.transform.inverse(self.quantiles() @ BETWEEN)  # (..., nodes)
        missed = values - y[..., None]
        return np.asarray(2.0 * (np.where(missed > 0, 1.0 - ALPHA, -ALPHA) * missed) @ WEIGHT)

    def _crps(self, y: FloatArray) -> FloatArray:
        r"""Return the CRPS of values that are linear in the normal score between two of `GRID`.

        It is the integral of :math:`F^2` below ``y``, and of :math:`(1-F)^2` above it, as far as
        the bounds.
        """
        values = np.maximum.accumulate([self._at(score) for score in GRID]).reshape(len(GRID), -1)
        inside = self.transform.clip(y)
        below, above = _areas(values, inside.reshape(-1))
        found = (below + above).reshape(y.shape) + np.abs(y - inside)
        for end, which in ((self.transform.low, 0), (self.transform.high, 1)):
            if np.isfinite(end):
                found -= _areas(values, np.full(y.size, end))[which].reshape(y.shape)
        return np.asarray(found)

    def variance(self) -> FloatArray:
        """Variance (...), in squared units of the target, by the quadrature of the CRPS."""
        values = self.transform.inverse(self.quantiles() @ BETWEEN)
        mean = values @ WEIGHT
        return np.asarray((values - mean[..., None]) ** 2 @ WEIGHT)

    def values_at(self, score: FloatArray) -> FloatArray:
        """Return values (n, M, H), in units of the target, at calibrated scores (n, M or 1, H)."""
        right = np.clip(np.searchsorted(GRID, score), 1, len(GRID) - 1)
        share = (score - GRID[right - 1]) / (GRID[right] - GRID[right - 1])
        values = self.quantiles()  # (M, H, L + 2)
        row, step = np.arange(len(values))[:, None], np.arange(score.shape[2])
        low, high = values[row, step, right - 1], values[row, step, right]
        return self.transform.inverse(low + share * (high - low))

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
            return self.knots.level(place - 1)
        last = 0 if place == 0 else len(LEVELS) - 1
        end, middle = self.knots.level(last), self.knots.level(len(LEVELS) // 2)
        return np.asarray(end + (end - middle) * ((GRID[place] - SCORES[last]) / SCORES[last]))

    def quantiles(self) -> FloatArray:
        """Return the values (..., L + 2) at the normal scores `GRID`, on the transform's scale."""
        found = [self._at(score) for score in GRID]
        return np.maximum.accumulate(np.stack(found, axis=-1), axis=-1)

    def _at(self, score: float) -> FloatArray:
        """Return the values (...) at one calibrated normal score, on the transform's scale."""
        place = int(np.clip(np.searchsorted(GRID, score), 1, len(GRID) - 1))
        share = float((score - GRID[place - 1]) / (GRID[place] - GRID[place - 1]))
        near = round(share)
        static = self._scores(place - 1 + near)
        if abs(share - near) > CLOSE:
            static = (1.0 - share) * self._scores(place - 1) + share * self._scores(place)
        return metrics.mixture_at(self.weights, self.means, self.variances, static)


def _read(x: FloatArray, at: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate ``values`` (G,) given at rising places ``at`` (..., G) linearly at x (...)."""
    right = np.clip(np.sum(at < x[..., None], axis=-1), 1, at.shape[-1] - 1)[..., None]
    low, high = (np.take_along_axis(at, right - k, axis=-1)[..., 0] for k in (1, 0))
    share = (x - low) / np.maximum(high - low, np.finfo(np.float64).tiny)
    right = right[..., 0]
    return np.asarray(values[right - 1] + share * (values[right] - values[right - 1]))


def _areas(values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the integrals of F squared below x (R,), and of 1 - F squared above it.

    F is of the values (L + 2, R) at `GRID`, and linear in the normal score between them.
    """
    width, column = np.diff(values, axis=0), np.arange(x.size)
    right = (values < x).sum(axis=0, dtype=np.int8).astype(np.intp)
    place, segments = np.clip(right - 1, 0, len(STEP) - 1), np.arange(len(STEP))[:, None]
    own, low = width[place, column], values[place, column]
    share = np.clip(x - low, 0.0, own) / np.where(own > 0, own, 1.0)
    score, slope = GRID[place] + STEP[place] * share, own / STEP[place]
    below = (width * np.where(segments < place, BELOW, 0.0)).sum(axis=0)
    above = (width * np.where(segments > place, BELOW[::-1], 0.0)).sum(axis=0)
    below += slope * (_squared(score) - SQUARED[place]) + np.maximum(x - values[-1], 0.0)
    above += slope * (_squared(-score) - SQUARED[::-1][place + 1]) + np.maximum(values[0] - x, 0.0)
    return below, above


def _density(score: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * score**2) / np.sqrt(2.0 * np.pi))


def _squared(score: FloatArray) -> FloatArray:
    """Return the integral of the squared normal distribution function up to a score."""
    below = ndtr(score)
    found = score * below**2 + 2.0 * _density(score) * below
    return np.asarray(found - ndtr(np.sqrt(2.0) * score) / np.sqrt(np.pi))


def _quadrature() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes by their probabilities, weights, and how values at GRID lead to those there."""
    points, shares = np.polynomial.legendre.leggauss(NODES)
    width = np.diff(GRID)[:, None]
    score = (GRID[:-1, None] + width * 0.5 * (1.0 + points)).reshape(-1)
    weight = (width * 0.5 * shares).reshape(-1) * _density(score)
    between = np.stack([np.interp(score, GRID, row) for row in np.eye(len(GRID))])
    return np.asarray(ndtr(score)), weight, between


ALPHA, WEIGHT, BETWEEN = _quadrature()
STEP, SQUARED = np.diff(GRID), _squared(GRID)
BELOW = (np.diff(SQUARED) / STEP)[:, None]  # mean of F squared between two places of GRID
