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
from typing import Any

import numpy as np

from mvlstm.types import BoolArray, FloatArray, IntArray

Steps = slice | IntArray

LEVELS = np.array([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99])
SCORES = np.array(  # normal scores of these
    [
        *(-2.3263478740408408, -1.9599639845400545, -1.6448536269514729, -1.2815515655446004),
        *(-0.6744897501960817, 0.0, 0.6744897501960817, 1.2815515655446004),
        *(1.6448536269514722, 1.959963984540054, 2.3263478740408408),
    ]
)
WIDE = 2, 8  # the ends of the 90 % interval among the levels
THINNEST = 0.01  # width of it, as a share of a normal's, in which scores can be told
FAR = 6.0  # normal score beyond which the map goes on straight
GRID = np.array([-FAR, *SCORES, FAR])
MEMORIES = (5.0, 30.0, 200.0)  # scores over which a guess of the spread remembers
MOVED = 50.0  # and one of the centre
CENTERED = len(MEMORIES) + 1  # the place of this one among the guesses: the first is the fit's
EVERYWHERE = 30.0  # and one of the spread in all series
JUDGED = 50.0  # scores by which the guesses are weighed
PRIOR = 2.0  # scores that the fit's own counts for
OVERLAP = 0.25  # power of the forecasts under way, by which these are more
SETTLED = 300.0  # scores by which the fit's own may prove to be the best guess in the long run,
MOST_ODDS = 10.0  # and its odds be at most this many times as high; half or twice: 0.1 % of scores
ODDS = 0.1  # that the centre has moved, before any score has been seen
JUDGES = 6  # steps at most by which the guesses are weighed: neighbours tell the same
TAILS = 4.0  # degrees of freedom of the density that judges: one wild score settles nothing
WILDEST = 60.0  # size beyond which a score tells no more about location and scale
RATE = 0.08  # by which a quantile moves after an outcome, in standard deviations; where scores are
RATES = RATE * np.minimum(1.0, np.exp(0.25 * (SCORES**2 - SCORES[2] ** 2)))  # dense, by less
DELAY = 0.75  # power of the forecasts under way, by which it moves less: their errors overlap
TOGETHER = 4  # outcomes after which a quantile is moved, by all of them at once
BLOCK = 32  # rows summed at once
AT_ONCE = 65_536  # scores whose location and scale are found at once: they stay in the cache


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

    def begins(self, known: BoolArray) -> IntArray:
        """Return the place (S,) in each series of its first row (R,) with something known."""
        first = np.where(known, self.place, len(known))
        return np.asarray(np.minimum.reduceat(first, self.starts[:-1]))

    def sums(self, values: FloatArray, memory: float) -> FloatArray:
        """Return the sums of the values (h, R) up to each in its series, of old ones less."""
        keep = 1.0 - 1.0 / memory
        each = [_discounted_sums(values[:, a:b], keep) for a, b in pairwise(self.starts)]
        return each[0] if len(each) == 1 else np.concatenate(each, axis=1)

    def latest(self, values: FloatArray, steps: Steps) -> FloatArray:
        """Return the values (h, R) at the latest score known at each origin, 0 without."""
        known = self.known.T[steps]
        rows = np.maximum(self.first + known - 1, 0)
        rows += len(self.known) * np.arange(len(rows))[:, None]
        found = values.reshape(-1).take(rows)
        found[known == 0] = 0.0
        return np.asarray(found)

    def everywhere(self, values: FloatArray) -> FloatArray:
        """Return the mean of the values (h, R) over the series that have a row at the same time."""
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


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Where each of `LEVELS` lies among static normal scores, for forecasts of any shape (...).

    Parameters
    ----------
    center, scale : (...)
        Location and scale of the scores.
    place : (...)
        Which column of ``quantiles`` holds.
    quantiles : (L, N)
        Of the scores standardised so, rising along the first axis.
    """

    center: FloatArray
    scale: FloatArray
    place: IntArray
    quantiles: FloatArray

    @classmethod
    def fixed(cls, shape: FloatArray, rows: int) -> ScoreMap:
        """Return the map of ``rows`` forecasts that all have given values (H, L)."""
        center, scale = (np.broadcast_to(x, (rows, len(shape))) for x in (0.0, 1.0))
        place = np.broadcast_to(np.arange(len(shape)), center.shape)
        return cls(center, scale, place, np.ascontiguousarray(shape.T))

    @classmethod
    def of(cls, values: FloatArray) -> ScoreMap:
        """Return the map with given values (..., L)."""
        shape = values.shape[:-1]
        place = np.arange(int(np.prod(shape))).reshape(shape)
        columns = np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T)
        return cls(np.zeros(shape), np.ones(shape), place, columns)

    def level(self, number: int) -> FloatArray:
        """Return the scores (...) at one of `LEVELS`."""
        found = self.quantiles[number].take(self.place)
        found *= self.scale
        found += self.center
        return np.asarray(found)

    @property
    def values(self) -> FloatArray:
        """The scores (..., L) at all of `LEVELS`."""
        return np.stack([self.level(k) for k in range(len(LEVELS))], axis=-1)

    def __getitem__(self, rows: Any) -> ScoreMap:
        return ScoreMap(self.center[rows], self.scale[rows], self.place[rows], self.quantiles)


def recalibrate(
    scores: FloatArray, arrivals: Arrivals, shape: FloatArray | None = None
) -> ScoreMap:
    """Return where each of `LEVELS` lies among normal scores (R, H; NaN unknown).

    Before there are any, it lies as at the fit: at ``shape`` (H, L), or at `SCORES`. A shape that
    followed outcomes itself may have another middle and width than these: scores are then told in
    units of its own.
    """
    if shape is None:
        return _recalibrated(scores, arrivals, None)
    middle = shape[:, len(LEVELS) // 2]
    width = (shape[:, WIDE[1]] - shape[:, WIDE[0]]) / (SCORES[WIDE[1]] - SCORES[WIDE[0]])
    if (middle == 0.0).all() and (width == 1.0).all():  # as every fit leaves it
        return _recalibrated(scores, arrivals, shape)
    width = np.maximum(width, THINNEST)
    own = (shape - middle[:, None]) / width[:, None]
    found = _recalibrated((scores - middle) / width, arrivals, own)
    center, scale = middle + width * found.center, width * found.scale
    return ScoreMap(center, scale, found.place, found.quantiles)


def _recalibrated(scores: FloatArray, arrivals: Arrivals, shape: FloatArray | None) -> ScoreMap:
    center, scale = location_scale(scores, arrivals)
    return ScoreMap(center, scale, *track((scores - center) / scale, arrivals, shape))


def static_scores(knots: FloatArray, score: float) -> FloatArray:
    """Return where a calibrated score lies among static ones (...), by knots (..., L)."""
    middle = knots[..., len(LEVELS) // 2, None]
    ends = knots[..., [0, -1]]
    outer = ends + (ends - middle) / SCORES[[0, -1]] * (GRID[[0, -1]] - SCORES[[0, -1]])
    table = np.concatenate([outer[..., :1], knots, outer[..., 1:]], axis=-1)
    place = int(np.clip(np.searchsorted(GRID, score), 1, len(GRID) - 1))
    share = (score - GRID[place - 1]) / (GRID[place] - GRID[place - 1])
    return np.asarray((1.0 - share) * table[..., place - 1] + share * table[..., place])


def location_scale(scores: FloatArray, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
    """Return where scores lie at each origin and how far they spread, (R, H) each."""
    R, H = scores.shape
    known = np.isfinite(scores.T)
    z = np.clip(np.where(known, scores.T, 0.0), -WILDEST, WILDEST)
    begins = np.repeat(arrivals.begins(np.asarray(known.any(axis=0))), np.diff(arrivals.starts))
    begun = (arrivals.place >= begins)[None].astype(np.float64)  # (1, R)
    variances = np.ones((CENTERED + 1 + (len(arrivals.starts) > 2), H, R))
    center, scale = np.empty((2, H, R))
    size = max(1, AT_ONCE // R)
    pieces = [slice(h, h + size) for h in range(0, H, size)]
    for steps in pieces:
        excess = np.where(known[steps], z[steps] ** 2 - 1.0, 0.0)
        center[steps] = _guess(z[steps], excess, begun, arrivals, steps, variances[:, steps])
    some = np.unique(np.linspace(0, H - 1, min(H, JUDGES)).astype(np.int64))
    apart = np.where(known[some], z[some], np.nan), center[some], variances[:, some]
    likely, settled = _likelihood(*apart, arrivals, some)
    lead = settled[0] - settled[1:].max(axis=0)
    for steps in pieces:
        weights = likely[:, None] / arrivals.delay[steps, None]
        weights[CENTERED] += np.log(ODDS)
        weights[0] += np.clip(lead / arrivals.delay[steps, None], 0.0, np.log(MOST_ODDS))
        weights = np.exp(weights - weights.max(axis=0))
        weights /= weights.sum(axis=0)
        center[steps] *= weights[CENTERED]
        scale[steps] = np.einsum("ghr,ghr->hr", weights, np.sqrt(variances[:, steps]))
    return np.ascontiguousarray(center.T), np.ascontiguousarray(scale.T)


def _guess(
    z: FloatArray,
    excess: FloatArray,
    begun: FloatArray,
    arrivals: Arrivals,
    steps: Steps,
    variances: FloatArray,
) -> FloatArray:
    """Add to variances (G, h, R) of the fit, 1, what each guess has seen since; return the centre.

    Scores ``z`` (h, R) are 0 where unknown, as is the ``excess`` of their squares over 1; ``begun``
    (1, R) is 1 from each series' first known score on.
    """
    delay = arrivals.delay[steps, None]
    prior = PRIOR * delay**OVERLAP
    for place, memory in enumerate(MEMORIES, start=1):
        more = arrivals.sums(excess, memory) / (arrivals.sums(begun, memory) + prior)
        variances[place] += arrivals.latest(more, steps)
    count = arrivals.sums(begun, MOVED)
    center = arrivals.sums(z, MOVED) / (count + PRIOR * delay)
    around = arrivals.sums(excess, MOVED) - (count + 2.0 * PRIOR * delay) * center**2
    variances[CENTERED] += arrivals.latest(around / (count + prior), steps)
    if len(arrivals.starts) > 2:
        each = (np.broadcast_to(arrivals.sums(x, EVERYWHERE), z.shape) for x in (excess, begun))
        more, count = (arrivals.everywhere(arrivals.latest(x, steps)) for x in each)
        variances[-1] += more / (count + prior)
    return arrivals.latest(center, steps)


def _likelihood(
    z: FloatArray, center: FloatArray, variances: FloatArray, arrivals: Arrivals, steps: Steps
) -> tuple[FloatArray, FloatArray]:
    """Return the discounted log-likelihood (G, R) of the latest scores by each guess, and of more.

    The first remembers `JUDGED` scores, the second `SETTLED`.
    """
    likely: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for place, variance in enumerate(variances):
        apart = (z - center if place == CENTERED else z) ** 2
        density = TAILS * np.log(variance) - (TAILS + 1.0) * np.log(TAILS * variance + apart)
        density = np.nan_to_num(density)
        for found, memory in zip(likely, (JUDGED, SETTLED), strict=True):
            known = arrivals.sums(density, memory)
            found.append(0.5 * arrivals.latest(known, steps).mean(axis=0))
    return np.stack(likely[0]), np.stack(likely[1])


def track(
    standard: FloatArray, arrivals: Arrivals, shape: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Follow the quantiles of `LEVELS` of standardised scores (R, H), all series side by side.

    They begin at ``shape`` (H, L), and move after every `TOGETHER` outcomes of a series.

    Returns
    -------
    place : (R, H)
        Which of the states is in force.
    states : (L, N)
        Quantiles, rising along the first axis.
    """
    H, sizes, place = standard.shape[1], np.diff(arrivals.starts), arrivals.place
    shift = (
        -arrivals.begins(np.asarray(np.isfinite(standard).any(axis=1))) % TOGETHER
    )  # blocks start there
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes - shift, kind="stable")] = np.arange(len(sizes))  # the longest first
    rank, shift = np.repeat(rank, sizes), np.repeat(shift, sizes)
    block, within = np.divmod(place + shift, TOGETHER)
    counts = np.bincount(block[(within == 0) | (place == 0)])  # series with a first, a second, ...
    begins = np.cumsum([0, len(sizes), *counts])  # of states after this many blocks, by rank
    passed = (arrivals.known + shift[:, None]) // TOGETHER
    in_force = (begins[passed] + rank[:, None]) * H + np.arange(H)
    slot = begins[block + 1] - len(sizes) + rank, within
    values = np.full((counts.sum(), TOGETHER, H), -np.inf)  # above nothing where unknown
    values[slot] = np.where(np.isfinite(standard), standard, -np.inf)
    used = np.zeros(values.shape, dtype=np.int64)
    used[slot] = in_force
    rate = RATES / arrivals.delay[:, None] ** DELAY  # (H, L)
    state = np.empty((len(sizes) + len(values), H, len(LEVELS)))
    state[: len(sizes)] = SCORES if shape is None else shape
    known = np.isfinite(values).sum(axis=1)[..., None]
    np.multiply(rate * (LEVELS - 1.0), known, out=state[len(sizes) :])
    flat = state.reshape(-1, len(LEVELS))
    for before, after, count in zip(begins, begins[1:], counts, strict=False):
        now = slice(after - len(sizes), after - len(sizes) + count)
        above = values[now, ..., None] > flat.take(used[now], axis=0)
        moved = rate * above.view(np.int8).sum(axis=1, dtype=np.int8)
        moved += state[before : before + count]
        state[after : after + count] += moved
    crossed = (flat[:, 1:] < flat[:, :-1]).any(axis=1)  # each level is followed by itself
    flat[crossed] = np.sort(flat[crossed], axis=1)
    return in_force, np.ascontiguousarray(flat.T)
