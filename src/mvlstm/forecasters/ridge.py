"""Ridge regression on whole windows, in pieces, with the penalty chosen on later windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.data.windows import iterate_windows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-6, 13))
MOST_FEATURES = 3_000  # beyond this many, the oldest lags are left out


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map of the last lags of a window.

    Shapes
    ------
    weights : (L, C, H), oldest lag first
    intercept, penalty : (H,)
    """

    weights: FloatArray
    intercept: FloatArray
    penalty: FloatArray

    def __call__(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return predictions (M, H) for windows (M, T, C)."""
        lags = self.weights.shape[0]
        inputs = windows[:, windows.shape[1] - lags :].astype(np.float64, copy=False)
        flat = inputs.reshape(len(windows), -1)
        return np.asarray(flat @ self.weights.reshape(flat.shape[1], -1) + self.intercept)

    def rows(self, table: NDArray[np.floating], origins: IntArray) -> FloatArray:
        """Return predictions (M, H) for windows ending at ``origins`` of a table, in pieces."""
        lags = self.weights.shape[0]
        pieces = [self(windows) for _, windows in iterate_windows(table, origins, lags)]
        return np.concatenate(pieces) if pieces else np.empty((0, len(self.intercept)))


def fit_ridge(
    table: NDArray[np.floating],
    window: int,
    train: tuple[IntArray, FloatArray],
    choose: tuple[IntArray, FloatArray],
    penalties: tuple[float, ...] = PENALTIES,
) -> Ridge:
    r"""Minimise :math:`\|y - Xw - b\|^2 + \lambda \|w\|^2`, with :math:`\lambda` chosen by step.

    One pass over the training windows gathers the moments; one eigendecomposition then serves
    every penalty. The penalty with the lowest squared error on ``choose`` is taken.

    Parameters
    ----------
    table : (rows, C), scaled
    window : int
    train, choose : (origins, labels)
        Rows (M,) at which windows end, and labels (M, H).
    """
    lags = max(1, min(window, MOST_FEATURES // table.shape[1]))
    origins, y = train
    n, p = len(origins), lags * table.shape[1]
    gram, cross, total = np.zeros((p, p)), np.zeros((p, y.shape[1])), np.zeros(p)
    done = 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
        gram += X.T @ X
        cross += X.T @ y[done : done + len(rows)]
        total += X.sum(axis=0)
        done += len(rows)
    x_mean, y_mean = total / n, y.mean(axis=0)
    values, vectors = np.linalg.eigh(gram - n * np.outer(x_mean, x_mean))
    rotated = vectors.T @ (cross - n * np.outer(x_mean, y_mean))  # (p, H)
    values = np.maximum(values, 0.0)[:, None]

    def solve(penalty: float) -> Ridge:
        weights = vectors @ (rotated / (values + penalty))
        intercept = y_mean - x_mean @ weights
        shape = (lags, table.shape[1], y.shape[1])
        return Ridge(weights.reshape(shape), intercept, np.full(y.shape[1], penalty))

    candidates = [solve(penalty) for penalty in penalties]
    errors = _errors(candidates, table, choose, lags)  # (penalties, H)
    best = errors.argmin(axis=0)
    steps = range(y.shape[1])
    return Ridge(
        np.stack([candidates[best[h]].weights[..., h] for h in steps], axis=-1),
        np.array([candidates[best[h]].intercept[h] for h in steps]),
        np.array([penalties[best[h]] for h in steps]),
    )


def _errors(
    candidates: list[Ridge],
    table: NDArray[np.floating],
    choose: tuple[IntArray, FloatArray],
    lags: int,
) -> FloatArray:
    origins, y = choose
    sums = np.zeros((len(candidates), y.shape[1]))
    done = 0
    for rows, windows in iterate_windows(table, origins, lags):
        labels = y[done : done + len(rows)]
        sums += [((candidate(windows) - labels) ** 2).sum(axis=0) for candidate in candidates]
        done += len(rows)
    return sums
