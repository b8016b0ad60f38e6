"""Stretches, exchanges and resamples of times that respect how a series hangs together.

Neighbouring windows overlap and neighbouring losses resemble each other, so single times are
never drawn: subsamples are contiguous stretches, exchanges and bootstrap draws are blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mvlstm.types import FloatArray, IntArray

HARMONICS = 4  # that make up a cycle
LEVEL = 0.9  # of every interval; its lower end is the one-sided 5 % test


def interval(draws: FloatArray, estimate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 90 % interval of draws (B, ...), widened to hold the estimate."""
    tail = 50.0 * (1.0 - LEVEL)
    low, high = np.percentile(draws, [tail, 100.0 - tail], axis=0)
    return np.minimum(low, estimate), np.maximum(high, estimate)


def choose_windows(
    origins: IntArray, *, window: int, limit: int, period: int = 1, stretches: int = 8
) -> IntArray:
    """Choose at most ``limit`` of the held-out rows ``origins`` (M,), increasing.

    They are contiguous stretches spread evenly over the time, each of at least five windows and
    five periods, if need be by taking fewer stretches; all origins when they are no more than
    ``limit``.
    """
    total = len(origins)
    if total <= limit:
        return np.asarray(origins)
    count = int(np.clip(limit // (5 * max(window, period)), 1, stretches))
    length = limit // count
    starts = np.linspace(0, total - length, count).astype(np.int64)
    if count == 1:
        starts = np.array([total - length])  # the latest, most relevant stretch
    chosen = (starts[:, None] + np.arange(length)).reshape(-1)
    return np.asarray(origins[np.unique(chosen)])


def find_period(series: FloatArray, *, longest: int = 400, natural: Sequence[int] = ()) -> int:
    """Length of the cycle of a series, such as 24 for hourly data with a daily one.

    A cycle of p rows is a peak of the autocorrelation at lag p that regains at least a quarter of
    what the autocorrelation had lost before, and whose echoes at 2p and 3p hardly fade; of several,
    the shortest that is nearly as clear as the clearest. Without one the answer is 1. Cycles up to
    ``longest`` and an eighth of the series are looked for; a ``natural`` length, such as the rows
    of a day, is taken when within 3 % of what is found.
    """
    longest = min(longest, series.size // 8)
    correlation = _autocorrelation(series, 4 * longest)
    clear: list[tuple[float, int]] = []
    for lag in range(4, longest + 1):
        if correlation[lag] < _around(correlation, lag, lag // 4).max():
            continue
        lowest = float(correlation[:lag].min())
        height = float(correlation[lag]) - lowest
        echoes = [_around(correlation, k * lag, lag // 4).max() for k in (2, 3)]
        dips = [correlation[k * lag : (k + 1) * lag].min() for k in (1, 2)]
        fades = min(e - d for e, d in zip(echoes, dips, strict=True)) < 0.6 * height
        if height > 0.25 * (1.0 - lowest) and not fades:
            # From peak to peak: a slow decay shifts every peak by the same amount.
            third = int(np.argmax(_around(correlation, 3 * lag, lag // 4))) + 3 * lag - lag // 4
            clear.append((height / (1.0 - lowest), round((third - lag) / 2)))
    best = max((regained for regained, _ in clear), default=0.0)
    rough = min((period for regained, period in clear if regained >= 0.8 * best), default=1)
    found = _sharpened(series, rough)
    return next((n for n in natural if abs(n - found) <= 0.03 * found), found)


def _sharpened(series: FloatArray, period: int) -> int:
    """Return the length near a rough one whose harmonics are strongest."""
    if period < 8:  # a row more or less is another cycle
        return period
    around = series - series.mean()

    def power(length: int) -> float:
        folded = np.bincount(np.arange(series.size) % length, weights=around)
        return float(np.sum(np.abs(np.fft.rfft(folded)[1 : HARMONICS + 1]) ** 2))

    reach = round(0.06 * period + 0.5)
    return max(range(period - reach, period + reach + 1), key=power)


def _around(values: FloatArray, centre: int, reach: int) -> FloatArray:
    return values[centre - reach : centre + reach + 1]


def exchange(
    positions: IntArray,
    *,
    window: int,
    rng: np.random.Generator,
    period: int = 1,
    series: IntArray | None = None,
) -> IntArray:
    """Draw for every window, by its index, another one, its donor, at least ``window`` rows away.

    Blocks of T to 2T - 1 neighbouring windows change places as a whole. The donors are then a
    permutation: an exchange changes which values meet, never the values themselves. Where a block
    lands on itself, single windows are swapped until their distance suffices. With fewer than four
    windows' length of rows, the series is shifted in a circle instead.

    With a ``period``, whole cycles change places and every donor has the phase of its window; one
    of a cycle that was cut off may serve twice. A variable that only tells the time of day, as many
    others do, then loses nothing. Of few rows, the windows of each phase are shifted in a circle;
    their donors may be nearer than ``window`` where none is farther. Of fewer than two periods the
    phase is not kept, see `keeps_phase`.

    ``positions`` (M,) are the rows of the windows' origins, increasing; with ``series`` (M,), never
    falling, donors are of the same series.
    """
    if series is not None:
        first = np.flatnonzero(np.concatenate([[True], np.diff(series) != 0]))
        pieces = np.split(positions, first[1:])
        found = [exchange(one, window=window, rng=rng, period=period) for one in pieces]
        return np.concatenate([start + one for start, one in zip(first, found, strict=True)])
    m = len(positions)
    cycle = period * -(-window // period)  # a multiple of the period, no shorter than T
    if period > 1 and m >= 3 * cycle:
        return _exchange_cycles(positions, cycle, rng)
    if period > 1 and keeps_phase(positions, window=window, period=period):
        return _shift_phases(positions, window, period, rng)
    if m < 4 * window:
        near = min(window, m // 2)
        return np.roll(np.arange(m), int(rng.integers(near, max(m - near, near) + 1)))
    lengths = rng.integers(window, 2 * window, size=m // window + 1)
    borders = np.cumsum(lengths)
    blocks = np.split(np.arange(m), borders[borders < m])
    donors = np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])
    donors = np.roll(donors, int(rng.integers(m)))  # blocks of one length would keep a cycle
    return _separate(donors, positions, window, rng)


def keeps_phase(positions: IntArray, *, window: int, period: int) -> bool:
    """Say whether `exchange` can give every window of a series a donor of its phase.

    Examples
    --------
    >>> [keeps_phase(np.arange(rows), window=30, period=24) for rows in (47, 48)]
    [False, True]
    """
    enough = 3 * period * -(-window // period)
    _, windows = np.unique(positions % period, return_counts=True)
    return len(positions) >= enough or bool((windows > 1).all())


def _shift_phases(
    positions: IntArray, window: int, period: int, rng: np.random.Generator
) -> IntArray:
    """Shift the windows of each phase in a circle; those too near draw a farther one, if any."""
    phase = positions % period
    apart = -(-window // period)  # periods
    share = rng.random()
    donors = np.arange(len(positions))
    for one in np.unique(phase):
        same = np.flatnonzero(phase == one)
        near = min(apart, same.size // 2)
        shift = near + int(share * (same.size - 2 * near + 1))
        donors[same] = np.roll(same, shift)
        for i in same[np.abs(positions[donors[same]] - positions[same]) < window]:
            far = same[np.abs(positions[same] - positions[i]) >= window]
            donors[i] = rng.choice(far) if far.size else donors[i]
    return donors


def _exchange_cycles(positions: IntArray, cycle: int, rng: np.random.Generator) -> IntArray:
    """Let whole cycles change places; windows of a cut cycle draw any donor of their phase."""
    shifted = positions + int(rng.integers(cycle))
    block, phase = shifted // cycle, shifted % cycle
    ids = np.unique(block)
    order = rng.permutation(ids.size)
    follower = np.empty_like(ids)
    follower[order] = ids[np.roll(order, 1)]  # one ring through all cycles: none keeps its place
    where = {(int(b), int(p)): i for i, (b, p) in enumerate(zip(block, phase, strict=True))}
    wanted = follower[np.searchsorted(ids, block)]
    donors = np.array(
        [where.get((int(b), int(p)), -1) for b, p in zip(wanted, phase, strict=True)],
        dtype=np.int64,
    )
    for i in np.flatnonzero(donors < 0):
        same = np.flatnonzero((phase == phase[i]) & (block != block[i]))
        donors[i] = rng.choice(same) if same.size else (i + len(positions) // 2) % len(positions)
    return donors


def _separate(
    donors: IntArray, positions: IntArray, window: int, rng: np.random.Generator
) -> IntArray:
    """Swap donors that are too near their window with some that are far from both."""
    near = np.flatnonzero(np.abs(positions[donors] - positions) < window)
    for i in near:
        if abs(positions[donors[i]] - positions[i]) >= window:
            continue  # mended by an earlier swap
        far_from_me = np.abs(positions[donors] - positions[i]) >= window
        far_from_mine = np.abs(positions[donors[i]] - positions) >= window
        partners = np.flatnonzero(far_from_me & far_from_mine)
        if partners.size:
            j = rng.choice(partners)
            donors[i], donors[j] = donors[j], donors[i]
    return donors


def over_time(values: FloatArray, times: IntArray | None) -> FloatArray:
    """Add up the values (M, ...) of windows that share a time, in time order.

    They are divided by the mean number of windows per time, so the mean over times is that over
    windows. Without ``times`` (M,) every window has a time of its own.
    """
    if times is None:
        return values
    found, place = np.unique(times, return_inverse=True)
    total = np.zeros((found.size, *values.shape[1:]))
    np.add.at(total, place, values)
    return total * (found.size / len(values))


def block_length(series: FloatArray, *, minimum: int, multiple: int = 1) -> int:
    """Length of blocks that may be taken as independent of each other.

    ``multiple`` times the first lag at which the autocorrelation falls below 0.1, at least
    ``minimum`` and at most a quarter of the series.
    """
    most = max(1, series.size // 4)
    below = np.flatnonzero(_autocorrelation(series, most) < 0.1)
    first = int(below[0]) if below.size else most
    return min(max(multiple * first, minimum), most)


def _autocorrelation(series: FloatArray, longest: int) -> FloatArray:
    """Autocorrelation at lags 0 to ``longest``; zero beyond lag 0 for a constant series."""
    n = series.size
    centred = series - series.mean()
    centred = centred / (np.abs(centred).max() or 1.0)
    power = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(power)[: longest + 1]
    scale = covariance[0] if covariance.size and covariance[0] > 0 else 1.0
    return np.asarray(covariance / scale)


@dataclass(frozen=True)
class BlockBootstrap:
    """Joint resamples of members and of blocks of times; the same seed, the same resamples.

    Times are gathered in cells of a few neighbours, so that a resample is a short vector of counts
    and thousands of them are one matrix product. Blocks wrap around the end, which gives every time
    the same chance.
    """

    n_times: int
    n_members: int
    draws: int
    cell: int  # times per cell
    seed: int

    @property
    def edges(self) -> IntArray:
        """First time of every cell."""
        return np.arange(0, self.n_times, self.cell)

    def cells(self, values: FloatArray) -> FloatArray:
        """Sum ``values`` of shape (M, ...) within cells, giving (cells, ...)."""
        return np.asarray(np.add.reduceat(values, self.edges, axis=0))

    def members(self) -> FloatArray:
        """Weights of the members in every resample, shape (draws, K), rows summing to one."""
        k = self.n_members
        rng = np.random.default_rng([self.seed, 1])
        return np.asarray(rng.multinomial(k, np.full(k, 1.0 / k), size=self.draws) / k)

    def times(self, length: int, *, chunk: int = 500) -> Iterator[tuple[slice, FloatArray]]:
        """Weights (chunk, cells) of the cells for blocks of ``length`` times, in chunks of draws.

        They are counts divided by the number of times drawn; the slice says which draws.
        """
        rng = np.random.default_rng([self.seed, 2, length])
        sizes = self.cells(np.ones(self.n_times))
        n = sizes.size
        per_block = int(np.clip(round(length / self.cell), 1, n))
        blocks = -(-n // per_block)
        for start in range(0, self.draws, chunk):
            rows = slice(start, min(start + chunk, self.draws))
            count = rows.stop - rows.start
            first = rng.integers(n, size=(count, blocks, 1))
            drawn = (first + np.arange(per_block)) % n
            drawn = drawn.reshape(count, -1)[:, :n] + n * np.arange(count)[:, None]
            counts = np.bincount(drawn.reshape(-1), minlength=n * count).reshape(count, n)
            yield rows, counts / (counts @ sizes)[:, None]
