r"""Rise of the forecast error when a variable is scrambled, with interval, p-value and verdict.

Over held-out windows, variable n's whole windows are exchanged between times. With the members'
mean as forecast,

.. math::
    \Delta L_n = \operatorname{mean}_m \left[ (\hat y(X \text{ with } X^n \text{ of another time})
    - y)^2 - (\hat y(X) - y)^2 \right].

For member weights :math:`a` that sum to one the squared error is the quadratic form
:math:`a^\top E_m a` of the members' error products, so members and times are resampled jointly by
adding up small matrices; no forecast is made twice.

A time has a hand in the result twice, where it receives another window and where it gives its own
away. Intervals count both: with the first alone they hold 80 instead of 90 % on a linear model. For
a variable without effect the two cancel, so the test of "no rise" counts the first alone; that is
still cautious, and has the greater power.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from mvlstm.explain.blocks import BlockBootstrap, block_length, interval, over_time
from mvlstm.explain.held_out import HeldOut
from mvlstm.metrics import holm
from mvlstm.results import VERDICTS
from mvlstm.types import BoolArray, FloatArray, IntArray

Predict = Callable[[FloatArray], FloatArray]
"""Windows (M, T, C) in raw units to the members' point forecasts (K, M, H)."""

Scrambled = Callable[[tuple[int, ...], IntArray], FloatArray]
"""Forecasts (K, M, H) with the given variables' windows taken from the donors (M,)."""

SIGNIFICANCE = 0.05
PATIENCE = 4  # block length in multiples of a slow rise's memory; holds random walks in check
LONG_BLOCKS = 8  # of the second test, which slow errors hidden in noise do not fool
RELEVANCE = 0.005  # an important variable's share of the model's squared error, at least


@dataclass(frozen=True, eq=False)
class ErrorIncrease:
    """Outcome of scrambling, for each of N variables (or groups of them)."""

    estimate: FloatArray  # (N,) rise in squared error, with its 90 % interval
    low: FloatArray
    high: FloatArray
    p_value: FloatArray  # (N,) one-sided, of a rise of at most zero; not adjusted
    per_step: FloatArray  # (N, H) with its 90 % interval over times
    per_step_low: FloatArray
    per_step_high: FloatArray
    per_member: FloatArray  # (K, N)
    draws: FloatArray  # (B, N) joint bootstrap draws
    error: float  # mean squared error of the members' mean without scrambling
    blocks: int  # of times that the intervals rest on, for the worst variable
    by_window: FloatArray  # (M, N)


def scrambler(predict: Predict, windows: FloatArray, groups: Sequence[int]) -> Scrambled:
    """Make the scrambling function of a model that forecasts from windows (M, T, C).

    ``groups`` (C,) says which variable owns each column.
    """
    owner = np.asarray(groups)

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        columns = np.flatnonzero(np.isin(owner, variables))
        changed = windows.copy()
        changed[:, :, columns] = windows[donors][:, :, columns]
        return predict(changed)

    return scrambled


def error_increase(
    base: FloatArray,
    held: HeldOut,
    scrambled: Scrambled,
    families: Sequence[tuple[int, ...]],
    *,
    repeats: int,
    draws: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> ErrorIncrease:
    """Measure the rise in squared error for every family of variables exchanged together.

    ``base`` (K, M, H) are the members' forecasts of the windows as they are; a family is a tuple of
    variables, usually one each. ``progress`` is called with 1 after every forward pass.
    """
    errors = np.asarray(base, dtype=np.float64) - held.labels  # (K, M, H)
    loss = over_time(np.mean(errors.mean(axis=0) ** 2, axis=1), held.times)  # (times,)
    shortest = block_length(loss, minimum=max(held.window, held.labels.shape[1]))
    boot = BlockBootstrap(loss.size, len(base), draws, cell=max(1, held.window // 5), seed=seed)

    def drawn(keep_phase: bool) -> list[IntArray]:
        sources = [np.random.default_rng([seed, 0, r]) for r in range(repeats)]
        return [held.donors(rng, keep_phase=keep_phase) for rng in sources]

    kept, free = drawn(True), drawn(False) if held.tells_phase else []
    rises = []
    for family in families:
        exchanges = free if free and any(v in held.clocks for v in family) else kept
        forecasts = (scrambled(family, donors) for donors in exchanges)
        rises.append(_measure(errors, held, forecasts, exchanges, boot, shortest, progress))
    return _infer(rises, boot, error=float(loss.mean()), shortest=shortest)


def headline(increase: ErrorIncrease, target: int | None) -> dict[str, FloatArray]:
    """Share of each variable in the sum of the rises, with its interval.

    Returns ``importance``, ``low``, ``high`` and ``importance_exogenous``, each (N,), the last
    without the target's own past. The shares sum to one; all are NaN if no variable helps.
    """
    exogenous = np.arange(increase.estimate.size) != target
    point = _shares(increase.estimate[None], np.ones_like(exogenous))[0]
    draws = _shares(increase.draws, np.ones_like(exogenous))
    draws = draws[np.isfinite(draws).all(axis=1)]
    low = high = np.full(point.shape, np.nan)
    if draws.size and np.isfinite(point).all():
        low, high = interval(draws, point)
    alone = _shares(increase.estimate[None], exogenous)[0]
    return {"importance": point, "low": low, "high": high, "importance_exogenous": alone}


def verdicts(
    increase: ErrorIncrease, target: int | None = None
) -> tuple[FloatArray, NDArray[np.object_]]:
    """Judge all variables: adjusted p-values and verdicts.

    Holm's adjustment runs over the exogenous variables; the target's own past is judged by itself.
    ``important`` needs an adjusted p below 5 % and a rise of at least 0.5 % of the model's squared
    error, ``weak`` the former only.
    """
    p = increase.p_value.copy()
    exogenous = np.arange(p.size) != target
    p[exogenous] = holm(p[exogenous])
    sure = p < SIGNIFICANCE
    large = increase.estimate >= RELEVANCE * increase.error
    words = np.where(sure & large, VERDICTS[0], np.where(sure, VERDICTS[1], VERDICTS[2]))
    return p, words.astype(object)


def correlated_groups(
    values: FloatArray, groups: Sequence[int], *, target: int | None = None, threshold: float = 0.9
) -> list[tuple[int, ...]]:
    """Find sets of two or more exogenous variables linked by correlations above ``threshold``.

    ``values`` (rows, C) are the columns over time and ``groups`` (C,) the variable that owns each;
    variables with several columns are linked by any of them. ``target`` is left out.
    """
    owner = np.asarray(groups)
    centred = values - values.mean(axis=0)
    scale = np.sqrt(np.sum(centred**2, axis=0))
    unit = centred / np.where(scale > 0, scale, 1.0)
    linked = np.abs(unit.T @ unit) > threshold
    parent = list(range(int(owner.max(initial=-1)) + 1))

    def root(v: int) -> int:
        while parent[v] != v:
            v = parent[v]
        return v

    for i, j in zip(*np.nonzero(np.triu(linked, 1)), strict=True):
        a, b = int(owner[i]), int(owner[j])
        if target not in (a, b):
            parent[root(b)] = root(a)
    sets: dict[int, list[int]] = {}
    for v in range(len(parent)):
        sets.setdefault(root(v), []).append(v)
    return [tuple(members) for members in sets.values() if len(members) > 1]


# ------------------------------------------------------------------------------------- inner parts


class _Rise(NamedTuple):
    """What scrambling one family did; matrices are K x K and summed within cells of times."""

    received: FloatArray  # (cells, K, K) rises where other windows were received
    influence: FloatArray  # the same, with the hand in other times' rises added
    estimate: float
    length: int  # of independent blocks
    steps: FloatArray  # (cells, H) influence by step ahead, of the members' mean
    per_step: FloatArray  # (H,)
    per_member: FloatArray  # (K,)
    by_window: FloatArray  # (M,)
    by_time: FloatArray  # (times,)


def _measure(
    errors: FloatArray,
    held: HeldOut,
    forecasts: Iterable[FloatArray],
    exchanges: Sequence[IntArray],
    boot: BlockBootstrap,
    shortest: int,
    progress: Callable[[int], None] | None,
) -> _Rise:
    """Compare the errors of scrambled forecasts, one set for each exchange, with the plain ones."""
    plain = _products(errors)  # (M, K, K)
    received, given = np.zeros_like(plain), np.zeros_like(plain)
    steps, steps_given = np.zeros(held.labels.shape), np.zeros(held.labels.shape)  # (M, H)
    before = errors.mean(axis=0) ** 2  # (M, H)
    for donors, scrambled in zip(exchanges, forecasts, strict=True):
        moved = scrambled - held.labels
        rise = (_products(moved) - plain) / len(exchanges)
        received += rise
        np.add.at(given, donors, rise)
        step_rise = (moved.mean(axis=0) ** 2 - before) / len(exchanges)
        steps += step_rise
        np.add.at(steps_given, donors, step_rise)
        if progress is not None:
            progress(1)
    ensemble = received.mean(axis=(1, 2))  # (M,)
    by_time = over_time(ensemble, held.times)

    def cells(values: FloatArray) -> FloatArray:
        return boot.cells(over_time(values, held.times))

    return _Rise(
        received=cells(received),
        influence=cells(received + given - received.mean(axis=0)),
        estimate=float(ensemble.mean()),
        length=block_length(by_time, minimum=shortest, multiple=PATIENCE),
        steps=cells(steps + steps_given - steps.mean(axis=0)),
        per_step=steps.mean(axis=0),
        per_member=received.diagonal(axis1=1, axis2=2).mean(axis=0),
        by_window=ensemble,
        by_time=by_time,
    )


def _infer(
    rises: Sequence[_Rise], boot: BlockBootstrap, *, error: float, shortest: int
) -> ErrorIncrease:
    """Intervals and p-values of all families from joint resamples."""
    estimate = np.array([rise.estimate for rise in rises])
    lengths = [rise.length for rise in rises]
    longest = [max(lengths)] * len(rises)
    influences = [rise.influence for rise in rises]
    own = _resample(influences, estimate, boot, lengths)
    tests = _resample([rise.received for rise in rises], estimate, boot, lengths)
    # Draws common to all families, for their shares, need one length of block.
    joint = own if lengths == longest else _resample(influences, estimate, boot, longest)
    low, high = interval(own, estimate)
    blocks = boot.n_times / np.array(lengths)
    per_step = np.stack([rise.per_step for rise in rises])  # (N, H)
    step_low, step_high = _step_intervals(rises, per_step, boot)
    return ErrorIncrease(
        estimate=estimate,
        low=low,
        high=high,
        p_value=np.maximum(
            _p_values(estimate, tests, blocks, error),
            [_long_block_p(rise.by_time, shortest) for rise in rises],
        ),
        per_step=per_step,
        per_step_low=step_low,
        per_step_high=step_high,
        per_member=np.stack([rise.per_member for rise in rises], axis=1),
        draws=joint,
        error=error,
        blocks=int(blocks.min()),
        by_window=np.stack([rise.by_window for rise in rises], axis=1),
    )


def _step_intervals(
    rises: Sequence[_Rise], per_step: FloatArray, boot: BlockBootstrap
) -> tuple[FloatArray, FloatArray]:
    """Return the ends (N, H) of the intervals at every step ahead, from resampled times."""
    low, high = np.empty_like(per_step), np.empty_like(per_step)
    for i, rise in enumerate(rises):
        draws = np.concatenate([weights @ rise.steps for _, weights in boot.times(rise.length)])
        below, above = interval(draws - draws.mean(axis=0), np.zeros_like(per_step[i]))
        low[i], high[i] = per_step[i] + below, per_step[i] + above
    return low, high


def _products(errors: FloatArray) -> FloatArray:
    """Products of the members' errors, mean over the steps ahead: (K, M, H) to (M, K, K)."""
    by_time = np.moveaxis(errors, 0, 1)  # (M, K, H)
    return np.asarray(by_time @ np.swapaxes(by_time, 1, 2) / errors.shape[2])


def _resample(
    rises: Sequence[FloatArray], estimate: FloatArray, boot: BlockBootstrap, lengths: Sequence[int]
) -> FloatArray:
    """Bootstrap draws (B, N), centred at the estimate and widened for few blocks."""
    out = np.empty((boot.draws, len(rises)))
    members = boot.members()
    for length in sorted(set(lengths)):
        chosen = [i for i, own in enumerate(lengths) if own == length]
        for rows, weights in boot.times(length):
            a = members[rows]
            for i in chosen:
                form = np.tensordot(weights, rises[i], axes=1)  # (b, K, K)
                out[rows, i] = np.einsum("bk,bkl,bl->b", a, form, a)
    blocks = boot.n_times / np.array(lengths)
    widened = np.sqrt(blocks / np.maximum(blocks - 1.0, 1.0))
    return np.asarray(estimate + widened * (out - out.mean(axis=0)))


def _p_values(
    estimate: FloatArray, draws: FloatArray, blocks: FloatArray, error: float
) -> FloatArray:
    """One-sided p-values: the larger of the bootstrap's and Student's with blocks - 1 degrees."""
    spread = draws.std(axis=0)
    silent = spread <= 1e-12 * max(error, np.finfo(np.float64).tiny)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(silent, 0.0, estimate / spread)
    student = 1.0 - stdtr(np.maximum(blocks - 1.0, 1.0), t)
    counted = np.mean(draws <= 0.0, axis=0)
    return np.asarray(np.where(silent, 1.0, np.maximum(student, counted)))


def _long_block_p(by_time: FloatArray, shortest: int) -> float:
    """One-sided p-value of Student's test on the means of eight long blocks.

    A model of slow series errs slowly too, and its slow errors go along with a slow variable by
    chance. In single rises this hides behind noise, so that short blocks look independent; the
    means of long blocks show it. Without room for eight blocks the answer is 0: no objection.
    """
    size = len(by_time) // LONG_BLOCKS
    if size < shortest:
        return 0.0
    means = by_time[len(by_time) - LONG_BLOCKS * size :].reshape(LONG_BLOCKS, size).mean(axis=1)
    spread = float(means.std(ddof=1)) / np.sqrt(LONG_BLOCKS)
    if spread == 0:
        return 0.0
    return float(1.0 - stdtr(LONG_BLOCKS - 1, means.mean() / spread))


def _shares(rises: FloatArray, among: BoolArray) -> FloatArray:
    """Positive parts of (B, N) divided by their sum over ``among``; NaN elsewhere or if none."""
    positive = np.where(among, np.maximum(rises, 0.0), 0.0)
    total = positive.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = positive / total
    return np.where(among & (total > 0), shares, np.nan)
