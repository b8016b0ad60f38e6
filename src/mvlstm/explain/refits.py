r"""What variables add, by forecasts learned anew without them: kernel ridge regression.

Networks are too dear to train again without each variable; a regression on the windows is not. Its
kernel k(s), with s the product of two windows summed over variables and lags, is linear, quadratic
or Gaussian; which one, how lags fade and how strong the penalty is, left-out rows decide. Leaving
a variable out takes its part from s.

Two things are learned for every family of variables left out. Sizes: the rise in squared error,
every tenth of the rows forecast from the other nine. Tests: one step ahead, the score test of
`mvlstm.explain.links`, for which all rows serve. Errors of several steps, or of several series at
one time, hang together: then errors of the later rows are compared, each forecast from earlier ones
alone, so that they hang together no more than those of real forecasts.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mvlstm.explain.blocks import HARMONICS, BlockBootstrap, block_length, interval, over_time
from mvlstm.explain.evidence import LEARNING, Finding, either, judge, recent_size
from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import ErrorIncrease, unit_of
from mvlstm.explain.links import FADING, WINDOWS, Past, find_links, on_one_thread, slow_waves
from mvlstm.types import FloatArray, IntArray

FEWEST = 60  # rows that a regression is worth trying with
FOLDS = 10  # of rows that are forecast from the others
START = 0.4  # of the rows are learned from before the first is forecast
STEPS = 6  # times that is learned again on the way to the last row
TRIED = 150  # rows on which is tried how long regressions take; with n times as many, about n * n
TICK = 1e-6  # seconds
CHOICE = 400  # rows that decide on the kernel, at most
PENALTIES = 10.0 ** np.arange(-6, 3)
CONSTANT = 10.0  # variance of the constant, against one of all variables

SHAPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "linear": lambda s: s,
    "slightly quadratic": lambda s: s + 0.1 * s * s,
    "quadratic": lambda s: s + s * s,
    "gaussian": lambda s: np.exp(-0.1 * (s.diagonal()[:, None] + s.diagonal() - 2.0 * s)),
}
OWN = (1.0, 10.0, 100.0)  # how much more the own past may vary than a variable


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows that regressions may learn from, in time order.

    Shapes
    ------
    windows : (n, T, C) scaled
    labels : (n, H)
    level : (n,) the last value known, in the labels' units; labels may be taken as changes from it
    positions : (n,) rows in the table
    times : (n,) where several series share times, else None
    """

    windows: FloatArray
    labels: FloatArray
    level: FloatArray
    positions: IntArray
    groups: Sequence[int]  # (C,) variable of each column, the target the last
    period: int = 1
    times: IntArray | None = None
    wandering: bool = False  # whether the target has a unit root

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, count: int) -> Rows:
        """Return ``count`` of the rows, spread evenly."""
        kept = np.linspace(0, len(self) - 1, count).astype(np.int64)
        times = None if self.times is None else self.times[kept]
        return replace(
            self,
            windows=self.windows[kept],
            labels=self.labels[kept],
            level=self.level[kept],
            positions=self.positions[kept],
            times=times,
        )


@dataclass(frozen=True, eq=False)
class Left:
    """What leaving out each of F families of variables does to the regressions."""

    rises: FloatArray  # (n, F) in squared error, of every row learned from
    times: IntArray | None  # (n,) of these rows, where several series share times
    error: float  # with all variables
    findings: list[Finding]
    later: FloatArray  # (m, H) errors with all variables, of the later rows
    positions: IntArray  # (m,) rows in the table of these


@on_one_thread
def leave_out(
    rows: Rows,
    families: Sequence[tuple[int, ...]],
    progress: Callable[[int], None] | None = None,
    deadline: float = np.inf,
) -> Left | None:
    """Learn regressions with all variables, and without each family of them.

    Until a ``deadline``, of the monotonic clock, they learn from as many rows as there is time for,
    which is tried on a few. None where numbers are too large, or time too short, for any.
    """
    if deadline == np.inf:
        return _leave_out(rows, families, progress)
    few, started = rows.take(min(TRIED, len(rows))), clock.monotonic()
    found, now = _leave_out(few, families, None, deadline), clock.monotonic()
    if found is None:
        return None
    count = int(len(few) * np.sqrt(max(deadline - now, 0.0) / max(now - started, TICK)))
    if min(count, len(rows)) <= len(few):
        return found
    return _leave_out(rows.take(min(count, len(rows))), families, progress, deadline) or found


def _leave_out(
    rows: Rows,
    families: Sequence[tuple[int, ...]],
    progress: Callable[[int], None] | None,
    deadline: float = np.inf,
) -> Left | None:
    """Learn from all rows; None after the deadline."""
    unit = unit_of(rows.labels - rows.labels.mean(axis=0))
    rows = replace(rows, labels=rows.labels / unit, level=rows.level / unit)
    first = int(START * len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        sizes, tests = _choose(rows, len(rows)), _choose(rows, first)
    if sizes is None or tests is None:
        return None
    labels, ahead = rows.labels, tests.ahead(tests.similarity, first)
    plain, later = labels - sizes.out(sizes.similarity), labels[first:] - ahead
    apart = rows.times is None and labels.shape[1] == 1
    rises: list[FloatArray] = []
    findings = scored(rows, families, float(np.mean(plain**2))) if apart else []
    for family in families:
        if clock.monotonic() > deadline:
            return None
        less = sizes.without(family)
        rises.append(np.mean((labels - less.out(less.similarity)) ** 2 - plain**2, axis=1))
        if not apart:
            findings.append(_compared(tests, family, ahead, first))
        if progress is not None:
            progress(1)
    square = unit * unit
    return Left(
        np.stack(rises, axis=1) * square,
        rows.times,
        float(np.mean(plain**2)) * square,
        [one.times(square) for one in findings],
        later * unit,
        rows.positions[first:],
    )


def scored(rows: Rows, families: Sequence[tuple[int, ...]], error: float) -> list[Finding]:
    """Test by scores, for which all rows serve, that a family adds nothing one step ahead.

    ``error`` is the squared error with all variables.
    """
    owner = np.asarray(rows.groups)
    past = Past(
        windows=rows.windows[:, : -max(WINDOWS) - 1 : -1].astype(np.float64),
        labels=rows.labels,
        levels=rows.level[:, None],
        owner=owner,
        targets=np.array([int(np.argmax(owner))]),
        wandering=np.array([rows.wandering]),
        periods=np.array([rows.period]),
        positions=rows.positions,
        drift=slow_waves(rows.positions, len(rows)),
    )
    links, _ = find_links(past, rows=len(rows), families=families)
    found = zip(links.p_value[0], links.detectable[0] * error, strict=True)
    return [Finding.of(p_value, least, max(1, int(owner.max()))) for p_value, least in found]


def combine(
    increase: ErrorIncrease, left: Left, base: FloatArray, held: HeldOut, *, seed: int
) -> tuple[ErrorIncrease, float]:
    """Weight what the model and the regressions say by how well each forecasts the same rows.

    Returns the outcome for both and the model's weight: the share of its forecasts in the best
    mean of both.
    """
    _, mine, theirs = np.intersect1d(held.positions, left.positions, return_indices=True)
    model, other = (np.mean(base, axis=0) - held.labels)[mine], -left.later[theirs]
    unit = unit_of(other)
    other, model = other / unit, model / unit
    apart = float(np.sum((other - model) ** 2))
    share = float(np.clip(np.sum(other * (other - model)) / apart, 0, 1)) if apart else 0.5
    by_time = over_time(left.rises, left.times)
    length = max(block_length(one, minimum=held.labels.shape[1]) for one in by_time.T)
    boot = BlockBootstrap(len(by_time), 1, len(increase.draws), cell=1, seed=seed)
    draws = np.concatenate([weights @ by_time for _, weights in boot.times(length)])
    rise = left.rises.mean(axis=0)
    low, high = interval(draws - draws.mean(axis=0) + rise, rise)
    estimate = share * increase.estimate + (1 - share) * rise

    def reach(model: FloatArray, regression: FloatArray) -> FloatArray:
        return np.hypot(share * model, (1 - share) * regression)

    return replace(
        increase,
        estimate=estimate,
        low=estimate - reach(increase.estimate - increase.low, rise - low),
        high=estimate + reach(increase.high - increase.estimate, high - rise),
        findings=[either(both) for both in zip(increase.findings, left.findings, strict=True)],
        draws=share * increase.draws + (1 - share) * (draws - draws.mean(axis=0) + rise),
        error=share * increase.error + (1 - share) * left.error,
    ), share


# ------------------------------------------------------------------------------------- inner parts


@dataclass(frozen=True, eq=False)
class _Regression:
    rows: Rows
    shape: str
    fading: str
    own: float
    changes: bool  # whether labels are taken as changes from the level
    penalty: float
    scale: float  # of the similarity
    similarity: FloatArray  # (n, n)

    def kernel(self, similarity: FloatArray) -> FloatArray:
        return CONSTANT + _cycle(self.rows) + SHAPES[self.shape](similarity)

    def without(self, family: tuple[int, ...]) -> _Regression:
        parts = _similarity(self.rows, self.fading, self.own, family) / self.scale
        target = max(self.rows.groups)
        changes = self.changes and target not in family
        left = self.similarity - parts
        return _Regression(**(vars(self) | {"similarity": left, "changes": changes}))

    @property
    def _base(self) -> FloatArray:
        return self.rows.level[:, None] if self.changes else np.zeros((len(self.rows), 1))

    def _ridge(self, kernel: FloatArray) -> FloatArray:
        """Add the penalty, and what rounding may take away."""
        rounding = len(kernel) * 1e-15 * float(kernel.diagonal().max())
        return np.asarray(kernel + (self.penalty + rounding) * np.eye(len(kernel)))

    def out(self, similarity: FloatArray) -> FloatArray:
        """Forecast every tenth of the rows from the other nine."""
        kernel = self.kernel(similarity)
        y = self.rows.labels - self._base
        centred = y - y.mean(axis=0)
        inverse = np.linalg.inv(self._ridge(kernel))
        solved, errors = inverse @ centred, np.empty_like(y)
        for fold in _folds(len(y)):
            errors[fold] = np.linalg.solve(inverse[np.ix_(fold, fold)], solved[fold])
        return np.asarray(self.rows.labels - errors)

    def ahead(self, similarity: FloatArray, first: int) -> FloatArray:
        """Forecast the rows from ``first`` on, each from earlier ones whose labels are known."""
        kernel = self.kernel(similarity)
        y, H = self.rows.labels - self._base, self.rows.labels.shape[1]
        borders = np.linspace(first, len(y), STEPS + 1).astype(int)
        pieces = []
        for start, end in pairwise(borders):
            known = max(2, start - (H - 1))
            mean = y[:known].mean(axis=0)
            ridge = self._ridge(kernel[:known, :known])
            solved = cho_solve(cho_factor(ridge, lower=True), y[:known] - mean)
            pieces.append(mean + kernel[start:end, :known] @ solved)
        return np.asarray(np.concatenate(pieces) + self._base[first:])


def _compared(
    tests: _Regression, family: tuple[int, ...], ahead: FloatArray, first: int
) -> Finding:
    """Test whether later rows are forecast worse without a family, each from earlier rows alone."""
    rows, fewer = tests.rows, tests.without(family)
    times = None if rows.times is None else rows.times[first:]
    moved = fewer.ahead(fewer.similarity, first)
    errors = rows.labels[first:] - moved
    products = over_time((ahead - moved) * errors, times)
    return judge(products, recent_size(over_time(errors, times)), frequencies=LEARNING)


def _choose(rows: Rows, end: int) -> _Regression | None:
    """Choose the kernel by rows before ``end``, each tenth of these forecast from the others."""
    size = min(end, CHOICE) // FOLDS  # of a fold
    early = slice(end - FOLDS * size, end)
    labels = rows.labels[early]
    sets = np.hstack([labels - rows.level[early, None], labels])  # changes, and labels themselves
    centred = sets - sets.mean(axis=0)
    every = tuple(range(max(rows.groups) + 1))
    cycle = _cycle(rows)
    cycle = cycle[early, early] if isinstance(cycle, np.ndarray) else cycle
    least, best = np.inf, None
    for fading in FADING:
        others = _similarity(rows, fading, 1.0, every[:-1])
        target = _similarity(rows, fading, 1.0, every[-1:])
        scale = float((others + target).diagonal().mean()) or 1.0
        for own in OWN:
            similarity = (others + own * target) / scale
            part = similarity[early, early]
            for shape, make in SHAPES.items():
                kernel = CONSTANT + cycle + make(part)
                if not np.isfinite(kernel).all():
                    continue
                values, vectors = np.linalg.eigh(kernel)
                values = np.maximum(values, 0.0)
                turned, mine = vectors.T @ centred, vectors.reshape(FOLDS, size, -1)
                for penalty in PENALTIES:
                    scaled = mine / (values + penalty)
                    solved = np.linalg.solve(scaled @ mine.transpose(0, 2, 1), scaled @ turned)
                    errors = np.square(solved).reshape(-1, 2, labels.shape[1]).sum(axis=(0, 2))
                    if errors.min() < least:
                        least, changes = float(errors.min()), not errors.argmin()
                        best = (shape, fading, own, changes, float(penalty), scale, similarity)
    return None if best is None else _Regression(rows, *best)


def _similarity(rows: Rows, fading: str, own: float, variables: tuple[int, ...]) -> FloatArray:
    """Return products of windows (n, n), summed over the lags and columns of some variables."""
    lags = np.arange(rows.windows.shape[1], 0, -1, dtype=np.float64)
    weights = np.sqrt(FADING[fading](lags) / FADING[fading](lags).sum())
    owner, target = np.asarray(rows.groups), max(rows.groups)
    columns = np.flatnonzero(np.isin(owner, variables))
    values = rows.windows[:, :, columns].astype(np.float64)
    values -= values.mean(axis=(0, 1))
    spread = values.std(axis=(0, 1))
    size = np.where(owner[columns] == target, np.sqrt(own), 1.0) / np.where(spread > 0, spread, 1.0)
    flat = (values * size * weights[:, None]).reshape(len(rows), -1)
    return np.asarray(flat @ flat.T)


def _cycle(rows: Rows) -> FloatArray | float:
    """Return the kernel of the target's cycle, which no variable is to stand in for."""
    if rows.period == 1:
        return 0.0
    angle = 2 * np.pi * rows.positions[:, None] / rows.period * np.arange(1, HARMONICS + 1)
    waves = np.hstack([np.sin(angle), np.cos(angle)])
    return np.asarray(waves @ waves.T / HARMONICS)


def _folds(n: int) -> list[IntArray]:
    return np.array_split(np.arange(n), FOLDS)
