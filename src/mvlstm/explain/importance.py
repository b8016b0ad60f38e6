r"""What a variable adds to a forecast, with interval, p-value and verdict; and what it leans on.

A variable's windows are exchanged between times, as a rule only the part that the other variables
do not explain (`mvlstm.explain.conditional`), so that no input comes about that could not occur.
With R exchanges, the mean of the exchanged forecasts is what could be said without the variable,
and the product of the errors of two exchanges estimates its squared error without bias:

.. math::
    \Delta L_n = \operatorname{mean}_m \left[ \operatorname{mean}_{r \ne q}
    (\hat y_r - y)(\hat y_q - y) - (\hat y - y)^2 \right].

So the size agrees with what a model learned without the variable would lose, while an exchange
alone counts the noise of the exchanged values too. For member weights :math:`a` that sum to one the
squared error is the quadratic form :math:`a^\top E_m a` of the members' error products, so members
and times are resampled jointly by adding up small matrices; no forecast is made twice.

A time has a hand in the result where it receives another window and where it gives its own away;
intervals count both. Tests are those of `mvlstm.explain.evidence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mvlstm.explain.blocks import BlockBootstrap, block_length, interval, over_time
from mvlstm.explain.conditional import Others
from mvlstm.explain.evidence import SIGNIFICANCE, STAYING, Finding, judge, recent_size
from mvlstm.explain.held_out import HeldOut
from mvlstm.results import VERDICTS
from mvlstm.types import BoolArray, FloatArray, IntArray

Predict = Callable[[FloatArray], FloatArray]
"""Windows (M, T, C) in raw units to the members' point forecasts (K, M, H)."""

Scrambled = Callable[[tuple[int, ...], IntArray], FloatArray]
"""Forecasts (K, M, H) with the given variables' windows taken from the donors (M,)."""

PATIENCE = 4  # block length in multiples of a slow rise's memory
CORRELATED = 0.9  # from which two variables are also judged together
RELEVANCE = 0.005  # an important variable's share of the model's squared error, at least


@dataclass(frozen=True, eq=False)
class ErrorIncrease:
    """Outcome of exchanges, for each of N variables (or groups of them)."""

    estimate: FloatArray  # (N,) rise in squared error, with its 90 % interval
    low: FloatArray
    high: FloatArray
    findings: list[Finding]  # (N,) of the test that the variable adds nothing; not adjusted
    per_step: FloatArray  # (N, H) with its 90 % interval over times
    per_step_low: FloatArray
    per_step_high: FloatArray
    per_member: FloatArray  # (K, N)
    draws: FloatArray  # (B, N) joint bootstrap draws
    error: float  # mean squared error of the members' mean with all variables
    blocks: int  # of times that the intervals rest on, for the worst variable
    by_window: FloatArray  # (M, N)

    def times(self, square: float) -> ErrorIncrease:
        """Return it in another unit: all that is squared, multiplied."""
        kept = ("findings", "blocks")
        scaled = {k: v * square for k, v in vars(self).items() if k not in kept}
        return replace(self, **scaled, findings=[one.times(square) for one in self.findings])


def scrambler(
    predict: Predict, windows: FloatArray, groups: Sequence[int], *, conditional: bool = False
) -> Scrambled:
    """Make the scrambling function of a model that forecasts from windows (M, T, C).

    ``groups`` (C,) says which variable owns each column. If ``conditional``, what the other columns
    explain stays in place.
    """
    owner = np.asarray(groups)
    others = Others(windows) if conditional else None

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        columns = np.flatnonzero(np.isin(owner, variables))
        if others is not None:
            return predict(others.exchanged(columns, donors))
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
    """Measure the rise in squared error without every family of variables, exchanged together.

    ``base`` (K, M, H) are the members' forecasts of the windows as they are; a family is a tuple of
    variables, usually one each. ``progress`` is called with 1 after every forward pass.
    """
    unit = unit_of(np.asarray(base, dtype=np.float64) - held.labels)
    held, base = replace(held, labels=held.labels / unit), base / unit
    errors = np.asarray(base, dtype=np.float64) - held.labels  # (K, M, H)
    loss = over_time(np.mean(errors.mean(axis=0) ** 2, axis=1), held.times)  # (times,)
    shortest = block_length(loss, minimum=max(held.window, held.labels.shape[1]))
    boot = BlockBootstrap(loss.size, len(base), draws, cell=max(1, held.window // 5), seed=seed)

    rises = []
    for exchanges, family in _exchanges(held, families, max(2, repeats), seed):
        forecasts = (scrambled(family, donors) / unit for donors in exchanges)
        rises.append(_measure(errors, held, forecasts, exchanges, boot, shortest, progress))
    return _infer(rises, boot, error=float(loss.mean())).times(unit * unit)


def leaning(
    base: FloatArray,
    held: HeldOut,
    scrambled: Scrambled,
    families: Sequence[tuple[int, ...]],
    *,
    seed: int = 0,
) -> FloatArray:
    """Return the rise in squared error (N,) by one exchange of whole windows: the model's reliance.

    Of correlated variables this leaves the data: inputs come about that cannot occur.
    """
    unit = unit_of(np.asarray(base, dtype=np.float64) - held.labels)

    def error(forecasts: FloatArray) -> float:
        return float(np.mean(((forecasts.mean(axis=0) - held.labels) / unit) ** 2))

    moved = [
        error(scrambled(family, donors))
        for (donors,), family in _exchanges(held, families, 1, seed)
    ]
    return np.asarray((np.array(moved) - error(base)) * (unit * unit))


def part(increase: ErrorIncrease, chosen: slice) -> ErrorIncrease:
    """Return the outcome for some of the families."""
    last = ("per_member", "draws", "by_window")
    kept = {
        name: value[:, chosen] if name in last else value[chosen]
        for name, value in vars(increase).items()
        if name not in ("error", "blocks")
    }
    return replace(increase, **kept)


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


def verdicts(adjusted: FloatArray, estimate: FloatArray, error: float) -> NDArray[np.object_]:
    """Judge by adjusted p-values and rises in squared error.

    ``important`` needs an adjusted p below 5 % and a rise of at least 0.5 % of the squared error,
    ``weak`` the former only.
    """
    sure, large = adjusted < SIGNIFICANCE, estimate >= RELEVANCE * error
    words = np.where(sure & large, VERDICTS[0], np.where(sure, VERDICTS[1], VERDICTS[2]))
    return words.astype(object)


def correlated_groups(
    values: FloatArray, groups: Sequence[int], *, target: int | None = None
) -> list[tuple[int, ...]]:
    """Find sets of two or more exogenous variables linked by correlations above `CORRELATED`.

    ``values`` (rows, C) are the columns over time and ``groups`` (C,) the variable that owns each;
    variables with several columns are linked by any of them. ``target`` is left out.
    """
    owner = np.asarray(groups)
    centred = values - values.mean(axis=0)
    scale = np.sqrt(np.sum(centred**2, axis=0))
    unit = centred / np.where(scale > 0, scale, 1.0)
    linked = owner[np.argwhere(np.abs(unit.T @ unit) > CORRELATED)]  # (pairs, 2) variables
    linked = linked[(linked != target).all(axis=1)]
    size = int(owner.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(linked)), tuple(linked.T)), shape=(size, size))
    count, places = connected_components(graph, directed=False)
    sets = (np.flatnonzero(places == one) for one in range(count))
    return [tuple(one.tolist()) for one in sets if len(one) > 1]


# ------------------------------------------------------------------------------------- inner parts


def unit_of(errors: FloatArray) -> float:
    """Return a power of two near the size of errors, in which no power of them is out of range."""
    return float(2.0 ** np.floor(np.log2(np.abs(errors).max(initial=0.0) or 1.0)))


class _Rise(NamedTuple):
    """What exchanging one family did; matrices are K x K and summed within cells of times."""

    influence: FloatArray  # (cells, K, K) rises, with the hand in other times' rises
    estimate: float
    length: int  # of independent blocks
    steps: FloatArray  # (cells, H) influence by step ahead, of the members' mean
    per_step: FloatArray  # (H,)
    per_member: FloatArray  # (K,)
    by_window: FloatArray  # (M,)
    finding: Finding


def _exchanges(
    held: HeldOut, families: Sequence[tuple[int, ...]], repeats: int, seed: int
) -> Iterator[tuple[list[IntArray], tuple[int, ...]]]:
    """Yield each family with its donors, one set for each repeat."""

    def drawn(keep_phase: bool) -> list[IntArray]:
        sources = [np.random.default_rng([seed, 0, r]) for r in range(repeats)]
        return [held.donors(rng, keep_phase=keep_phase) for rng in sources]

    kept, free = drawn(True), drawn(False) if held.tells_phase else []
    for family in families:
        yield free if free and any(v in held.clocks for v in family) else kept, family


def _measure(
    errors: FloatArray,
    held: HeldOut,
    forecasts: Iterable[FloatArray],
    exchanges: Sequence[IntArray],
    boot: BlockBootstrap,
    shortest: int,
    progress: Callable[[int], None] | None,
) -> _Rise:
    """Compare products of errors of two exchanges, summed over all pairs, with the plain ones."""
    moved = []
    for forecast in forecasts:
        moved.append(forecast - held.labels)
        if progress is not None:
            progress(1)
    R, total, plain = len(moved), np.sum(moved, axis=0), _products(errors)
    received, given = np.zeros_like(plain), np.zeros_like(plain)
    mean = errors.mean(axis=0)  # (M, H)
    steps, steps_given, products = np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    for donors, one in zip(exchanges, moved, strict=True):
        rest = (total - one) / (R - 1)
        rise = (_products(one, rest) - plain) / R
        received += rise
        np.add.at(given, donors, 2.0 * rise)  # a donor serves in either place of a pair
        ahead, other = one.mean(axis=0), rest.mean(axis=0)
        step_rise = (ahead * other - mean**2) / R
        steps += step_rise
        np.add.at(steps_given, donors, 2.0 * step_rise)
        products += (ahead - mean) * other / R
    ensemble = received.mean(axis=(1, 2))  # (M,)
    by_time = over_time(ensemble, held.times)
    without = over_time(total.mean(axis=0) / R, held.times)

    def cells(values: FloatArray) -> FloatArray:
        return boot.cells(over_time(values, held.times))

    return _Rise(
        influence=cells(received + given - 2.0 * received.mean(axis=0)),
        estimate=float(ensemble.mean()),
        length=block_length(by_time, minimum=shortest, multiple=PATIENCE),
        steps=cells(steps + steps_given - 2.0 * steps.mean(axis=0)),
        per_step=steps.mean(axis=0),
        per_member=received.diagonal(axis1=1, axis2=2).mean(axis=0),
        by_window=ensemble,
        finding=judge(over_time(products, held.times), recent_size(without), frequencies=STAYING),
    )


def _infer(rises: Sequence[_Rise], boot: BlockBootstrap, *, error: float) -> ErrorIncrease:
    """Intervals of all families from joint resamples."""
    estimate = np.array([rise.estimate for rise in rises])
    lengths = [rise.length for rise in rises]
    longest = [max(lengths)] * len(rises)
    influences = [rise.influence for rise in rises]
    own = _resample(influences, estimate, boot, lengths)
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
        findings=[rise.finding for rise in rises],
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


def _products(errors: FloatArray, others: FloatArray | None = None) -> FloatArray:
    """Products of the members' errors, mean over the steps ahead: (K, M, H) to (M, K, K)."""
    by_time = np.moveaxis(errors, 0, 1)  # (M, K, H)
    second = by_time if others is None else np.moveaxis(others, 0, 1)
    products = by_time @ np.swapaxes(second, 1, 2) / errors.shape[2]
    return np.asarray(0.5 * (products + np.swapaxes(products, 1, 2)))


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


def _shares(rises: FloatArray, among: BoolArray) -> FloatArray:
    """Positive parts of (B, N) divided by their sum over ``among``; NaN elsewhere or if none."""
    positive = np.where(among, np.maximum(rises, 0.0), 0.0)
    total = positive.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = positive / total
    return np.where(among & (total > 0), shares, np.nan)
