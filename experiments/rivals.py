"""Other ways to let quantiles follow outcomes, of the literature, on the same normal scores.

Each is a function of scores (R, H; NaN unknown) of one series, of `Arrivals`, and of where
`LEVELS` lie at the fit, (H, L). It returns where they lie at each origin, (R, H, L), by the
outcomes known there. The constants of `aggregated` and `pid` were chosen on the cells that the
package's own were chosen on (`experiments.intervals`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from mvlstm.recalibration import FAR, LEVELS, SCORES, Arrivals, recalibrate, track
from mvlstm.types import FloatArray, IntArray

Method = Callable[[FloatArray, Arrivals, FloatArray], FloatArray]

WINDOW = 500  # scores that `rolling` and `aggregated` take quantiles of
GAMMAS = np.array([0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064])  # rates of experts
PID_RATE = 0.01  # by which a tracked quantile moves, in ranges of the last scores
PID_RANGE = 100  # scores
SATURATION, GAIN = 5.0, 6.0  # of the integrator, in scores; half and twice change little


def static(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Leave everything as it was calibrated."""
    return np.broadcast_to(shape, (len(scores), *shape.shape))


def rolling(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Take the quantiles of the last scores; before there are any, those of the fit."""
    return _online(scores, arrivals, _Rolling(shape))


def tracked(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Follow each quantile alone, at one rate: the second stage of the package by itself."""
    place, quantiles = track(scores, arrivals, shape)
    return np.asarray(quantiles.T[place])


def aggregated(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Aggregate adaptive conformal inference at several rates: AgACI (Zaffran et al. 2022).

    Each expert takes that quantile of the last scores whose level it steers by its misses; their
    mean is weighted by Bernstein online aggregation of the pinball loss.
    """
    return _online(scores, arrivals, _Aggregated(shape))


def pid(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Track quantiles and integrate misses: conformal PID (Angelopoulos et al. 2023).

    There is no scorecaster: the forecast's own distribution is what it would add.
    """
    return _online(scores, arrivals, _Pid(shape, len(scores)))


def adaptive(scores: FloatArray, arrivals: Arrivals, shape: FloatArray) -> FloatArray:
    """Do both stages: what the package does."""
    return recalibrate(scores, arrivals, shape).values


METHODS: dict[str, Method] = {"static": static, "rolling": rolling, "tracked": tracked}
METHODS |= {"AgACI": aggregated, "PID": pid, "adaptive": adaptive}


# ------------------------------------------------------------------------------------ one by one


class Follower(Protocol):
    """What issues quantiles and learns from outcomes, of all steps and levels side by side."""

    def issue(self) -> FloatArray:
        """Return quantiles (H, L), or those of several experts (H, L, K), mean last."""

    def learn(self, steps: IntArray, scores: FloatArray, issued: FloatArray) -> None:
        """Learn the scores (m,) of some steps, for which quantiles (m, ...) had been issued."""


def _online(scores: FloatArray, arrivals: Arrivals, follower: Follower) -> FloatArray:
    """Let one follow the scores of a series, each learned when its outcome is known."""
    assert len(arrivals.starts) == 2, "rivals follow one series"
    done = np.zeros(scores.shape[1], dtype=np.int64)
    issued = np.empty((len(scores), *follower.issue().shape))
    for row in range(len(scores)):
        while (steps := np.flatnonzero(arrivals.known[row] > done)).size:
            rows = done[steps]
            done[steps] += 1
            fine = np.isfinite(scores[rows, steps])
            rows, steps = rows[fine], steps[fine]
            if steps.size:
                follower.learn(steps, scores[rows, steps], issued[rows, steps])
        issued[row] = follower.issue()
    return np.sort(issued if issued.ndim == 3 else issued[..., -1], axis=-1)


class _Rolling:
    """The quantiles of the last scores of each step."""

    def __init__(self, shape: FloatArray) -> None:
        levels = (np.arange(WINDOW) + 0.5) / WINDOW
        self.last = np.stack([np.interp(levels, LEVELS, one) for one in shape])  # (H, W)
        self.ordered = self.last.copy()
        self.next = np.zeros(len(shape), dtype=np.int64)

    def issue(self) -> FloatArray:
        return self.at(np.broadcast_to(LEVELS, (len(self.last), len(LEVELS))))

    def at(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles of levels (H, ...)."""
        place = np.clip(levels, 0.0, 1.0) * (WINDOW - 1)
        below = np.minimum(place.astype(np.int64), WINDOW - 2)
        step = np.arange(len(levels)).reshape(-1, *[1] * (levels.ndim - 1))
        low, high = self.ordered[step, below], self.ordered[step, below + 1]
        return np.asarray(low + (place - below) * (high - low))

    def learn(self, steps: IntArray, scores: FloatArray, issued: FloatArray) -> None:
        self.last[steps, self.next[steps]] = scores
        self.next[steps] = (self.next[steps] + 1) % WINDOW
        self.ordered[steps] = np.sort(self.last[steps], axis=1)


class _Aggregated(_Rolling):
    """Experts that steer their levels, and the weights of their mean."""

    def __init__(self, shape: FloatArray) -> None:
        super().__init__(shape)
        size = (*shape.shape, len(GAMMAS))
        self.levels = np.broadcast_to(LEVELS[:, None], size).copy()
        self.most, self.squares, self.regret = np.zeros((3, *size))
        self.weights = np.full(size, 1.0 / len(GAMMAS))

    def issue(self) -> FloatArray:
        found = self.at(self.levels)
        mean = (self.weights * found).sum(axis=-1, keepdims=True)
        return np.concatenate([found, mean], axis=-1)

    def learn(self, steps: IntArray, scores: FloatArray, issued: FloatArray) -> None:
        super().learn(steps, scores, issued)
        below = scores[:, None, None] <= issued  # (m, L, K + 1)
        self.levels[steps] += GAMMAS * (LEVELS[:, None] - below[..., :-1])
        slope = below[..., -1:] - LEVELS[:, None]  # of the pinball loss, at the mean
        self._weigh(steps, slope * (issued[..., -1:] - issued[..., :-1]))

    def _weigh(self, steps: IntArray, gained: FloatArray) -> None:
        """Weigh experts again by what each would have gained over the mean, (m, L, K)."""
        self.most[steps] = np.maximum(self.most[steps], np.abs(gained))
        self.squares[steps] += gained**2
        most, squares = self.most[steps], np.maximum(self.squares[steps], 1e-12)
        rate = np.minimum(0.5 / np.maximum(most, 1e-12), np.sqrt(np.log(len(GAMMAS)) / squares))
        self.regret[steps] += gained - rate * gained**2
        likely = rate * self.regret[steps]
        weights = rate * np.exp(likely - likely.max(axis=-1, keepdims=True))
        self.weights[steps] = weights / weights.sum(axis=-1, keepdims=True)


class _Pid:
    """Quantiles that move by the range of the last scores, and the tangent of summed misses."""

    def __init__(self, shape: FloatArray, rows: int) -> None:
        self.tracked, self.missed = shape.copy(), np.zeros(shape.shape)
        self.count = np.zeros((len(shape), 1))
        self.last = np.tile(SCORES[[0, -1]], (len(shape), PID_RANGE // 2))
        self.angle = 0.5 * np.pi - 1e-3

    def issue(self) -> FloatArray:
        n = self.count + 1.0
        angle = np.clip(self.missed * np.log(n) / (SATURATION * n), -self.angle, self.angle)
        return np.clip(self.tracked + GAIN * np.tan(angle), -FAR, FAR)

    def learn(self, steps: IntArray, scores: FloatArray, issued: FloatArray) -> None:
        move = LEVELS - (scores[:, None] <= issued)
        own = self.last[steps]
        self.tracked[steps] += PID_RATE * (own.max(axis=1) - own.min(axis=1))[:, None] * move
        self.missed[steps] += move
        self.last[steps, self.count[steps, 0].astype(np.int64) % PID_RANGE] = scores
        self.count[steps] += 1.0
