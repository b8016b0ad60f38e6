r"""Intervals that follow the data: recalibration by the outcomes of earlier forecasts.

Every outcome after the fit has a normal score :math:`z = \Phi^{-1}(F(y))` under the distribution
that the fit gave it. The recalibrated distribution of a step ahead at an origin uses only the
scores of forecasts of that step whose outcome was known there, in two stages and one pass:

1. *Location and scale.* Some guesses of how scores lie now (as at the fit; spread as over the last
   5, 30 or 200; spread around a moved centre; in a panel, spread as in all series) are averaged by
   how likely each of them made the latest scores.
2. *Quantiles.* Of scores standardised so, the quantile of each level is moved up a little after an
   outcome above it and down after one below, so that in the long run each level holds its share of
   *any* bounded series (Gibbs and Candes 2021; Angelopoulos, Candes and Tibshirani 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from mvlstm.types import BoolArray, FloatArray, IntArray

LEVELS = np.array([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99])
SCORES = np.array(  # normal scores of these
    [
        *(-2.3263478740408408, -1.9599639845400545, -1.6448536269514729, -1.2815515655446004),
        *(-0.6744897501960817, 0.0, 0.6744897501960817, 1.2815515655446004),
        *(1.6448536269514722, 1.959963984540054, 2.3263478740408408),
    ]
)
FAR = 6.0  # normal score beyond which the map goes on straight
GRID = np.array([-FAR, *SCORES, FAR])
MEMORIES = (5.0, 30.0, 200.0)  # scores over which a guess of the spread remembers
MOVED = 50.0  # and one of the centre
EVERYWHERE = 30.0  # and one of the spread in all series
JUDGED = 50.0  # scores by which the guesses are weighed
PRIOR = 3.0  # scores that the fit's own spread counts for
TAILS = 4.0  # degrees of freedom of the density that judges: one wild score settles nothing
WILDEST = 60.0  # size beyond which a score tells no more about location and scale
RATE = 0.08  # by which a quantile moves after an outcome, in standard deviations
DELAY = 0.75  # power of the forecasts under way, by which it moves less: their errors overlap
BLOCK = 32  # rows summed at once


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Which scores are known at each of R origins, one series after another, each in time order.

    Parameters
    ----------
    starts : (S + 1,)
        First row of each series, and the end.
    times : (R,)
        Number of each origin's time.
    known : (R, H)
        How many of its series' forecasts of each step have outcomes by then.
    """

    starts: IntArray
    times: IntArray
    known: IntArray

    @cached_property
    def first(self) -> IntArray:
        """First row of each row's series, (R,)."""
        return np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def place(self) -> IntArray:
        """Place of each row in its series, (R,)."""
        return np.arange(len(self.known)) - self.first

    @cached_property
    def delay(self) -> FloatArray:
        """How many forecasts of each step are under way at once, at most, (H,)."""
        return np.asarray((self.place[:, None] - self.known + 1.0).max(axis=0))

    @cached_property
    def _latest(self) -> tuple[IntArray, BoolArray]:
        """Place in (H, R) of the latest score known at each origin, and where there is none."""
        H, R = self.known.shape[1], len(self.known)
        rows = np.maximum(self.first + self.known.T - 1, 0)
        return np.arange(H)[:, None] * R + rows, self.known.T == 0

    def discounted(self, values: FloatArray, memory: float) -> FloatArray:
        """Return at each origin the sum of the values (H, R) known there, of old ones less."""
        keep = 1.0 - 1.0 / memory
        each = [_discounted_sums(values[:, a:b], keep) for a, b in pairwise(self.starts)]
        sums = each[0] if len(each) == 1 else np.concatenate(each, axis=1)
        latest, none = self._latest
        found = sums.reshape(-1).take(latest)
        found[none] = 0.0
        return np.asarray(found)

    def everywhere(self, values: FloatArray) -> FloatArray:
        """Return the mean of the values (H, R) over the series that have a row at the same time."""
        counts = np.bincount(self.times)
        return np.stack([np.bincount(self.times, row) / counts for row in values])[:, self.times]


def _discounted_sums(values: FloatArray, keep: float) -> FloatArray:
    """Return along rows (H, R) the sums in which a value counts ``keep`` times less a step on.

    Sums within blocks are one product; those at the ends of blocks are such sums again.
    """
    H, R = values.shape
    place = np.arange(BLOCK)
    weights = np.triu(keep ** np.abs(place - place[:, None]))
    if R <= BLOCK:
        return np.asarray(values @ weights[:R, :R])
    padded = np.zeros((H, -(-R // BLOCK), BLOCK))
    padded.reshape(H, -1)[:, :R] = values
    found = padded @ weights
    before = _discounted_sums(found[:, :-1, -1], keep**BLOCK)
    found[:, 1:] += before[..., None] * keep ** (place + 1.0)
    return np.asarray(found.reshape(H, -1)[:, :R])


# ---------------------------------------------------------------------------------- the two stages


def recalibrate(scores: FloatArray, arrivals: Arrivals) -> FloatArray:
    """Return where each of `LEVELS` lies among normal scores (R, H; NaN unknown), (R, H, L)."""
    center, scale = location_scale(scores, arrivals)
    knots = track((scores - center) / scale, arrivals)
    knots *= scale[..., None]
    knots += center[..., None]
    return knots


def location_scale(scores: FloatArray, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
    """Return where scores lie at each origin and how far they spread, (R, H) each."""
    known = np.isfinite(scores.T)
    z = np.clip(np.where(known, scores.T, 0.0), -WILDEST, WILDEST)  # (H, R): filters run along rows
    guesses = _guesses(z, known.astype(np.float64), arrivals)
    judged = []
    for center, scale in guesses:
        density = -0.5 * (TAILS + 1.0) * np.log1p(((z - center) / scale) ** 2 / TAILS)
        latest = arrivals.discounted(np.where(known, density - np.log(scale), 0.0), JUDGED)
        judged.append(latest.mean(axis=0) / arrivals.delay[:, None])
    weights = np.exp(np.stack(judged) - np.max(judged, axis=0))
    weights /= weights.sum(axis=0)
    center = sum(w * one[0] for w, one in zip(weights, guesses, strict=True))
    spread = sum(w * np.log(one[1]) for w, one in zip(weights, guesses, strict=True))
    return np.ascontiguousarray(center.T), np.exp(spread).T.copy()


def _guesses(
    z: FloatArray, known: FloatArray, arrivals: Arrivals
) -> list[tuple[FloatArray, FloatArray]]:
    """Return guesses of location and scale (H, R)."""
    zero = np.zeros_like(z)
    found = [(zero, zero + 1.0)]
    for memory in MEMORIES:
        count, squares = (arrivals.discounted(x, memory) for x in (known, z**2))
        found.append((zero, np.sqrt((squares + PRIOR) / (count + PRIOR))))
    count, sums, squares = (arrivals.discounted(x, MOVED) for x in (known, z, z**2))
    center = sums / (count + PRIOR * arrivals.delay[:, None])
    around = np.maximum(squares - 2.0 * center * sums + center**2 * count, 0.0)
    found.append((center, np.sqrt((around + PRIOR) / (count + PRIOR))))
    if len(arrivals.starts) > 2:
        each = (arrivals.discounted(x, EVERYWHERE) for x in (known, z**2))
        count, squares = (arrivals.everywhere(x) for x in each)
        found.append((zero, np.sqrt((squares + PRIOR) / (count + PRIOR))))
    return found


def track(standard: FloatArray, arrivals: Arrivals) -> FloatArray:
    """Follow the quantiles of `LEVELS` of standardised scores (R, H), all series side by side."""
    R, H = standard.shape
    sizes = np.diff(arrivals.starts)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))  # the longest first
    rank = np.repeat(rank, sizes)
    order = np.lexsort((rank, arrivals.place))  # the first rows of all series, the second, ...
    counts = np.bincount(arrivals.place)
    begins = np.cumsum([0, len(sizes), *counts])  # of states after so many outcomes, by rank
    state = np.empty((len(sizes) + R, H, len(LEVELS)))
    state[: len(sizes)] = SCORES
    flat = state.reshape(-1, len(LEVELS))
    used = (begins[arrivals.known[order]] + rank[order, None]) * H + np.arange(H)
    rate = (RATE / arrivals.delay**DELAY * np.isfinite(standard[order]))[..., None]
    values, below = np.nan_to_num(standard[order])[..., None], LEVELS - 1.0
    row = 0
    for n, count in enumerate(counts):
        now = slice(row, row + count)
        moved = rate[now] * (below + (values[now] > flat.take(used[now], axis=0)))
        before = begins[n]
        np.add(state[before : before + count], moved, out=state[begins[n + 1] :][:count])
        row += count
    found = np.empty((R, H, len(LEVELS)))
    found[order] = flat[used]
    crossed = (found[..., 1:] < found[..., :-1]).any(axis=-1)  # each level is followed by itself
    found[crossed] = np.sort(found[crossed], axis=-1)
    return found
