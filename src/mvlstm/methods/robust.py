r"""The linear map behind ``link="linear"``: few lags, little moved by outliers.

Ridge regression on every lag of every variable spends a coefficient where none is needed and lets
a few extreme labels bend the whole map. Here the number of lags and the penalty are chosen on the
stopping windows, and the coefficients then minimise Huber's loss,

.. math::
    2 s^2 \sum_m \rho\big((y_m - x_m \cdot w - b) / s\big) + \lambda \|w\|^2 ,

quadratic for residuals within 1.345 robust standard deviations s and linear beyond. Residuals are
cut off at that size and regressed on the windows again until nothing changes; the matrix of that
regression is the same in every round and, unless labels are unknown, for every step ahead, so it is
decomposed once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mvlstm.methods.ridge import Ridge
from mvlstm.problem.moments import (
    PENALTIES,
    Moments,
    Part,
    as_lags,
    choosing_errors,
    count_features,
    iterate_features,
    join_steps,
    most_lags,
)
from mvlstm.types import BoolArray, FloatArray

LAGS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)  # numbers of lags tried, and the whole window
HUBER = 1.345  # robust standard deviations beyond which a residual counts linearly
ROUNDS, SCALE_ROUNDS = 30, 15
MOST_NUMBERS = 40_000_000  # of decompositions held at once, where steps have their own
SETTLED = 1e-3  # change of the residuals, in robust standard deviations


def fit_robust(
    table: NDArray[np.floating],
    window: int,
    train: Part,
    choose: Part,
    *,
    least: int = 1,
    read: BoolArray | None = None,
) -> Ridge:
    """Choose lags and penalties on ``choose``, then fit them to ``train`` by Huber's loss.

    ``least`` is the fewest lags to use: the steps ahead of which something is known, so that none
    is missed. The table (rows, C) is scaled; ``read`` (window, C) says which inputs count, by
    default all.
    """
    lags, penalties = _choose(table, window, train, choose, least, read)
    return refit_robust(table, lags, penalties, train, read)


def refit_robust(
    table: NDArray[np.floating],
    lags: int,
    penalties: FloatArray,
    train: Part,
    read: BoolArray | None = None,
) -> Ridge:
    """Fit given lags with given penalties (H,) to ``train`` by Huber's loss."""
    size = max(1, MOST_NUMBERS // (lags * table.shape[1]) ** 2)
    if len(penalties) > size and np.isnan(train[1]).any():
        some = [slice(start, start + size) for start in range(0, len(penalties), size)]
        parts = [(penalties[at], (train[0], train[1][:, at])) for at in some]
        return Ridge.of_steps([refit_robust(table, lags, *part, read) for part in parts])
    C, H = table.shape[1], len(penalties)
    normal = NormalEquations(Moments.each(table, lags, train, read))
    slope = normal.solve(normal.xy, np.ones(H), penalties)  # (p, H): ridge regression
    intercept = normal.y - normal.at_means(slope)
    ridge = Ridge(as_lags(slope, lags, C, read), intercept, penalties)
    residual = train[1] - ridge.rows(table, train[0])  # (M, H)
    change = np.zeros((1 + len(slope), H))
    open_steps = np.ones(H, dtype=bool)
    for done in range(ROUNDS):
        if done < SCALE_ROUNDS:  # then it is held, or it might shrink for ever
            scale = np.array([1.4826 * np.nanmedian(np.abs(one)) for one in residual.T])  # (H,)
        open_steps &= scale > 0
        features = iterate_features(table, train[0], lags, read)
        pull, within, largest = _regress(features, residual, change, HUBER * scale)
        within = np.maximum(within / normal.rows, 0.5)
        open_steps &= (largest >= SETTLED * scale) | (done == 0)
        if not open_steps.any():
            break
        # A step of Newton's method, with the share of residuals within for their pattern.
        mean = pull[0] / normal.rows
        downhill = pull[1:] - normal.rows * (normal.x * mean) - penalties * slope
        step = normal.solve(downhill, within, penalties)
        level = mean / within - normal.at_means(step)
        change = np.where(open_steps, np.vstack([level, step]), 0.0)
        intercept, slope = intercept + change[0], slope + change[1:]
    weights = as_lags(slope, lags, C, read)
    return Ridge(weights, intercept, np.asarray(penalties, dtype=np.float64))


class NormalEquations:
    """Least squares of H steps ahead, decomposed: all at once, or each with windows of its own.

    See `Moments`; here x and xy are (p, H), y and rows (H,).
    """

    def __init__(self, steps: Iterable[Moments]) -> None:
        x, y, xy, rows = [], [], [], []
        self.parts: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for one in steps:
            self.parts.append((one.x, *one.decomposed()))
            x.append(np.repeat(one.x[:, None], len(one.y), axis=1))
            y.append(one.y)
            xy.append(one.xy)
            rows.append(np.full(len(one.y), one.rows))
        self.x, self.y, self.xy, self.rows = (np.concatenate(k, axis=-1) for k in (x, y, xy, rows))

    def solve(self, right: FloatArray, share: FloatArray, penalties: FloatArray) -> FloatArray:
        """Solve ``(share * xx + penalty) w = right`` for each step, (p, H)."""
        sides = zip(*map(self._split, (right, share, penalties)), strict=True)
        found = [
            vectors @ ((vectors.T @ b) / (part * values + penalty))
            for (_, values, vectors), (b, part, penalty) in zip(self.parts, sides, strict=True)
        ]
        return np.concatenate(found, axis=-1)

    def at_means(self, weights: FloatArray) -> FloatArray:
        """Return what weights (p, H) make of the features' means, (H,)."""
        parts = zip(self.parts, self._split(weights), strict=True)
        return np.concatenate([x @ own for (x, _, _), own in parts])

    def _split(self, values: FloatArray) -> list[FloatArray]:
        return np.split(values, len(self.parts), axis=-1)


def _regress(
    features: Iterable[FloatArray], residual: FloatArray, change: FloatArray, limit: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Take a change (1 + p, H) of the map off the residuals (M, H), in place.

    Return the products of inputs and residuals cut off at ``limit`` (1 + p, H), intercept first,
    the number of residuals within it (H,), and the largest change of one (H,).
    """
    pull, within, largest = np.zeros_like(change), np.zeros(len(limit)), np.zeros(len(limit))
    done = 0
    for X in features:
        here = slice(done, done + len(X))
        moved = X @ change[1:] + change[0]
        residual[here] -= moved
        cut = np.clip(residual[here], -limit, limit)
        unknown = np.isnan(cut)
        cut[unknown] = moved[unknown] = 0.0
        pull += np.vstack([cut.sum(axis=0), X.T @ cut])
        within += (np.abs(residual[here]) <= limit).sum(axis=0)
        largest = np.maximum(largest, np.abs(moved).max(axis=0))
        done += len(X)
    return pull, within, largest


def _choose(
    table: NDArray[np.floating],
    window: int,
    train: Part,
    choose: Part,
    least: int,
    read: BoolArray | None,
) -> tuple[int, FloatArray]:
    """Return the number of lags and the penalties (H,) of least squared error on ``choose``."""
    C = table.shape[1]
    most = most_lags(window, C)
    candidates = sorted({lags for lags in (least, *LAGS) if least <= lags < most} | {most})
    steps = [
        [moments.latest(count_features(lags, C, read)).path(PENALTIES) for lags in candidates]
        for moments in Moments.each(table, most, train, read)
    ]
    paths = zip(candidates, *steps, strict=True)
    errors = [
        choosing_errors(*join_steps(parts), table, train, choose, lags, read)
        for lags, *parts in paths
    ]
    error = np.stack(errors)  # (lags, penalties, H)
    tiny = np.finfo(np.float64).tiny
    best = int(np.log(error.min(axis=1) + tiny).sum(axis=1).argmin())
    return candidates[best], np.asarray(PENALTIES)[error[best].argmin(axis=0)]
