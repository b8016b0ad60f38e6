"""Ridge regression on whole windows, in pieces, with the penalty chosen on later windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.data.windows import iterate_windows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Part = tuple[IntArray, FloatArray]  # rows (M,) at which windows end, and labels (M, H), or NaN

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

    @classmethod
    def of_steps(cls, steps: Sequence[Ridge]) -> Ridge:
        """Join maps of one step each, of the same lags."""
        names = ("weights", "intercept", "penalty")
        return cls(*(np.concatenate([getattr(one, n) for one in steps], axis=-1) for n in names))


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over windows, from which least squares of any penalty and lags follow.

    Shapes
    ------
    x : (p,), y : (H,) means
    xx : (p, p), xy : (p, H) sums of products about the means; features oldest lag first
    """

    x: FloatArray
    y: FloatArray
    xx: FloatArray
    xy: FloatArray

    @classmethod
    def gather(cls, table: NDArray[np.floating], lags: int, part: Part) -> Moments:
        """Add up one part's windows, piece by piece."""
        origins, y = part
        p = lags * table.shape[1]
        xx, xy = np.zeros((p, p)), np.zeros((p, y.shape[1]))
        x_sum, done = np.zeros(p), 0
        for rows, windows in iterate_windows(table, origins, lags):
            X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
            xx += X.T @ X
            xy += X.T @ y[done : done + len(rows)]
            x_sum += X.sum(axis=0)
            done += len(rows)
        x_mean, y_mean = x_sum / done, y.mean(axis=0)
        xx -= done * np.outer(x_mean, x_mean)
        xy -= done * np.outer(x_mean, y_mean)
        return cls(x_mean, y_mean, xx, xy)

    def latest(self, features: int) -> Moments:
        """Return the moments of the last ``features`` features, those of the latest lags."""
        last = slice(len(self.x) - features, None)
        return Moments(self.x[last], self.y, self.xx[last, last], self.xy[last])

    def path(self, penalties: tuple[float, ...]) -> FloatArray:
        """Return the weights (penalties, p, H) of ridge regression for every penalty."""
        values, vectors = np.linalg.eigh(self.xx)
        rotated = vectors.T @ self.xy
        values = np.maximum(values, 0.0)[:, None]
        return np.stack([vectors @ (rotated / (values + penalty)) for penalty in penalties])


def has_unknown(*parts: Part) -> bool:
    """Say whether some labels are unknown, so that steps have windows of their own."""
    return any(bool(np.isnan(labels).any()) for _, labels in parts)


def by_step(part: Part) -> list[Part]:
    """Return for each step ahead the windows whose label is known, and these labels (m, 1)."""
    origins, labels = part
    return [(origins[~np.isnan(y)], y[~np.isnan(y), None]) for y in labels.T]


def most_lags(window: int, n_columns: int) -> int:
    """Return how many lags are used at most: the window, or what there is room for."""
    return max(1, min(int(window), MOST_FEATURES // n_columns))


def fit_ridge(
    table: NDArray[np.floating],
    window: int,
    train: Part,
    choose: Part,
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
        Rows (M,) at which windows end, and labels (M, H), NaN where unknown.
    """
    if has_unknown(train, choose):
        steps = zip(by_step(train), by_step(choose), strict=True)
        return Ridge.of_steps([fit_ridge(table, window, *step, penalties) for step in steps])
    C, H = table.shape[1], train[1].shape[1]
    lags = most_lags(window, C)
    moments = Moments.gather(table, lags, train)
    path = moments.path(penalties)  # (penalties, p, H)
    best = squared_errors(path, moments, table, choose, lags).argmin(axis=0)  # (H,)
    weights = np.stack([path[best[h], :, h] for h in range(H)], axis=-1)  # (p, H)
    intercept = moments.y - moments.x @ weights
    return Ridge(weights.reshape(lags, C, H), intercept, np.asarray(penalties)[best])


def squared_errors(
    path: FloatArray, moments: Moments, table: NDArray[np.floating], choose: Part, lags: int
) -> FloatArray:
    """Return the squared errors (penalties, H) on the stopping windows, added up."""
    origins, y = choose
    n, p, H = path.shape
    joined = np.moveaxis(path, 0, 1).reshape(p, n * H)
    shift = moments.y - moments.x @ path  # (penalties, H)
    sums, done = np.zeros((n, H)), 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
        guess = (X @ joined).reshape(len(rows), n, H) + shift
        sums += ((guess - y[done : done + len(rows), None]) ** 2).sum(axis=0)
        done += len(rows)
    return sums
