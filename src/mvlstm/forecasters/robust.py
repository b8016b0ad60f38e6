r"""The linear map behind ``link="linear"``: few lags, little moved by outliers.

Ridge regression on every lag of every variable spends a coefficient where none is needed and lets
a few extreme labels bend the whole map. Here the number of lags and the penalty are chosen on the
stopping windows, and the coefficients then minimise Huber's loss,

.. math::
    2 s^2 \sum_m \rho\big((y_m - x_m \cdot w - b) / s\big) + \lambda \|w\|^2 ,

quadratic for residuals within 1.345 robust standard deviations s and linear beyond. Residuals are
cut off at that size and regressed on the windows again until nothing changes; the matrix of that
regression is the same in every round and for every step ahead, so it is decomposed once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mvlstm.data.windows import iterate_windows
from mvlstm.forecasters.ridge import (
    PENALTIES,
    Moments,
    Part,
    Ridge,
    by_step,
    has_unknown,
    most_lags,
    squared_errors,
)

FloatArray = NDArray[np.float64]

LAGS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)  # numbers of lags tried, and the whole window
HUBER = 1.345  # robust standard deviations beyond which a residual counts linearly
ROUNDS, SCALE_ROUNDS = 30, 15
SETTLED = 1e-3  # change of the residuals, in robust standard deviations


def fit_robust(
    table: NDArray[np.floating], window: int, train: Part, choose: Part, *, least: int = 1
) -> Ridge:
    """Choose lags and penalties on ``choose``, then fit them to ``train`` by Huber's loss.

    Parameters
    ----------
    table : (rows, C), scaled
    window : int
    train, choose : (origins, labels)
        Rows (M,) at which windows end, and labels (M, H), NaN where unknown.
    least : int
        Fewest lags to use: the steps ahead of which something is known, so that none is missed.
    """
    lags, penalties = _choose(table, window, train, choose, least)
    return refit_robust(table, lags, penalties, train)


def refit_robust(
    table: NDArray[np.floating], lags: int, penalties: FloatArray, train: Part
) -> Ridge:
    """Fit given lags with given penalties (H,) to ``train`` by Huber's loss."""
    if has_unknown(train):
        steps = zip(penalties[:, None], by_step(train), strict=True)
        return Ridge.of_steps([refit_robust(table, lags, *step) for step in steps])
    C, H = table.shape[1], len(penalties)
    moments = Moments.gather(table, lags, train)
    values, vectors = np.linalg.eigh(moments.xx)
    values = np.maximum(values, 0.0)[:, None]  # (p, 1)
    slope = vectors @ ((vectors.T @ moments.xy) / (values + penalties))  # (p, H): ridge regression
    ridge = Ridge(slope.reshape(lags, C, H), moments.y - moments.x @ slope, penalties)
    residual = train[1] - ridge.rows(table, train[0])  # (M, H)
    intercept, change = ridge.intercept, np.zeros((1 + len(slope), H))
    open_steps = np.ones(H, dtype=bool)
    for done in range(ROUNDS):
        if done < SCALE_ROUNDS:  # then it is held, or it might shrink for ever
            scale = np.array([1.4826 * np.median(np.abs(one)) for one in residual.T])  # (H,)
        open_steps &= scale > 0
        pull, within, largest = _regress(table, lags, train[0], residual, change, HUBER * scale)
        open_steps &= (largest >= SETTLED * scale) | (done == 0)
        if not open_steps.any():
            break
        # A step of Newton's method, with the share of residuals within for their pattern.
        mean = pull[0] / len(residual)
        downhill = pull[1:] - len(residual) * np.outer(moments.x, mean) - penalties * slope
        step = vectors @ ((vectors.T @ downhill) / (within * values + penalties))
        change = np.where(open_steps, np.vstack([mean / within - moments.x @ step, step]), 0.0)
        intercept, slope = intercept + change[0], slope + change[1:]
    return Ridge(slope.reshape(lags, C, H), intercept, np.asarray(penalties, dtype=np.float64))


def _regress(
    table: NDArray[np.floating],
    lags: int,
    origins: NDArray[np.int64],
    residual: FloatArray,
    change: FloatArray,
    limit: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Take a change of the map off the residuals, in place, and multiply inputs by what is left.

    Shapes
    ------
    residual (M, H); change (1 + p, H), intercept first; limit (H,) to the products of inputs and
    residuals cut off at the limit (1 + p, H), the share of residuals within it (H,), and the
    largest change of one (H,)
    """
    pull, within, largest = np.zeros_like(change), np.zeros(len(limit)), np.zeros(len(limit))
    done = 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), -1).astype(np.float64, copy=False)
        here = slice(done, done + len(rows))
        moved = X @ change[1:] + change[0]
        residual[here] -= moved
        cut = np.clip(residual[here], -limit, limit)
        pull += np.vstack([cut.sum(axis=0), X.T @ cut])
        within += (np.abs(residual[here]) <= limit).sum(axis=0)
        largest = np.maximum(largest, np.abs(moved).max(axis=0))
        done += len(rows)
    return pull, np.maximum(within / len(residual), 0.5), largest


def _choose(
    table: NDArray[np.floating], window: int, train: Part, choose: Part, least: int
) -> tuple[int, FloatArray]:
    """Return the number of lags and the penalties (H,) of least squared error on ``choose``."""
    most = most_lags(window, table.shape[1])
    candidates = sorted({lags for lags in (least, *LAGS) if least <= lags < most} | {most})
    error = _errors(table, candidates, train, choose)
    tiny = np.finfo(np.float64).tiny
    best = int(np.log(error.min(axis=1) + tiny).sum(axis=1).argmin())
    return candidates[best], np.asarray(PENALTIES)[error[best].argmin(axis=0)]


def _errors(
    table: NDArray[np.floating], candidates: list[int], train: Part, choose: Part
) -> FloatArray:
    """Return the squared errors on ``choose`` of each number of lags, (lags, penalties, H)."""
    if has_unknown(train, choose):
        steps = zip(by_step(train), by_step(choose), strict=True)
        return np.concatenate([_errors(table, candidates, *step) for step in steps], axis=-1)
    moments = Moments.gather(table, candidates[-1], train)
    errors = []
    for lags in candidates:
        own = moments.latest(lags * table.shape[1])
        errors.append(squared_errors(own.path(PENALTIES), own, table, choose, lags))
    return np.stack(errors)
