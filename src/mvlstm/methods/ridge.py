"""Ridge regression on whole windows, in pieces, with the penalty chosen on later windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError
from mvlstm.model.learned import Arrays, Saved
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import FloatArray, IntArray

Part = tuple[IntArray, FloatArray]  # rows (M,) at which windows end, and labels (M, H), or NaN

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-6, 13))
MOST_FEATURES = 3_000  # beyond this many, the oldest lags are left out


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear map of the last lags of a window."""

    weights: FloatArray  # (L, C, H), oldest lag first
    intercept: FloatArray  # (H,)
    penalty: FloatArray  # (H,); (H, 2) of an elastic net

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

    def gradient(self, window: int) -> FloatArray:
        """Return the gradient (H, T, C), the same for every window."""
        lags, C, H = self.weights.shape
        slope = np.zeros((H, window, C))
        slope[:, window - lags :] = np.moveaxis(self.weights, -1, 0)
        return slope

    def arrays(self, prefix: str = "") -> Arrays:
        """Return the arrays under names that start with ``prefix``, for the model file."""
        return {f"{prefix}{name}": array for name, array in vars(self).items()}

    @classmethod
    def restore(cls, saved: Saved, window: int, horizon: int, prefix: str = "") -> Ridge:
        """Take the arrays of `arrays` back, checking their shapes."""
        weights = saved.take(f"{prefix}weights", (None, saved.n_columns, horizon), np.float64)
        if not 1 <= len(weights) <= window:
            raise ModelFileError(f"its '{prefix}weights' have {len(weights)} lags, not {window}.")
        intercept = saved.take(f"{prefix}intercept", (horizon,), np.float64)
        pairs = saved.arrays.get(f"{prefix}penalty", intercept).ndim == 2
        shape = (horizon, 2) if pairs else (horizon,)
        return cls(weights, intercept, saved.take(f"{prefix}penalty", shape, np.float64))

    @classmethod
    def of_steps(cls, steps: Sequence[Ridge]) -> Ridge:
        """Join maps of one step each, of the same lags."""
        names = ("weights", "intercept", "penalty")
        return cls(*(np.concatenate([getattr(one, n) for one in steps], axis=-1) for n in names))


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over windows, from which least squares of any penalty and lags follow."""

    x: FloatArray  # (p,) means of the features, oldest lag first
    y: FloatArray  # (H,) means of the labels
    xx: FloatArray  # (p, p) sums of products about the means
    xy: FloatArray  # (p, H)
    rows: int  # number of windows

    @classmethod
    def each(cls, table: NDArray[np.floating], lags: int, part: Part) -> Iterator[Moments]:
        """Yield the moments of all steps ahead or, where labels are unknown, of one after another.

        Each step has windows of its own then: those without its label are taken off the products
        of all or, where they are most, the others are added up.
        """
        origins, labels = part
        unknown = np.isnan(labels)
        if not unknown.any():
            x, xx, xy = _sums(table, lags, origins, labels)
            yield cls._about(x / len(origins), labels.mean(axis=0), xx, xy, len(origins))
            return
        masked = np.hstack([np.where(unknown, 0.0, labels), ~unknown])
        _, whole, products = _sums(table, lags, origins, masked)
        for h, (gone, xy, x) in enumerate(zip(unknown.T, *np.split(products.T, 2), strict=True)):
            rows = int((~gone).sum())
            most_gone = rows < len(gone) / 2
            fewer = ~gone if most_gone else gone
            xx = _sums(table, lags, origins[fewer], labels[fewer, :0])[1]
            y = labels[~gone, h : h + 1].mean(axis=0)
            yield cls._about(x / rows, y, xx if most_gone else whole - xx, xy[:, None], rows)

    @classmethod
    def _about(
        cls, x: FloatArray, y: FloatArray, xx: FloatArray, xy: FloatArray, rows: int
    ) -> Moments:
        """Take the means x and y off the products, in place."""
        xx -= rows * np.outer(x, x)
        xy -= rows * np.outer(x, y)
        return cls(x, y, xx, xy, rows)

    def latest(self, features: int) -> Moments:
        """Return the moments of the last ``features`` features, those of the latest lags."""
        last = slice(len(self.x) - features, None)
        return Moments(self.x[last], self.y, self.xx[last, last], self.xy[last], self.rows)

    def path(self, penalties: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
        """Return weights (penalties, p, H) and intercepts (penalties, H) of ridge regression."""
        values, vectors = np.linalg.eigh(self.xx)
        rotated = vectors.T @ self.xy
        values = np.maximum(values, 0.0)[:, None]
        path = np.stack([vectors @ (rotated / (values + penalty)) for penalty in penalties])
        return path, self.y - self.x @ path


def _sums(
    table: NDArray[np.floating], lags: int, origins: IntArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up windows (p,) and their products with themselves (p, p) and y (p, H), in pieces."""
    p = lags * table.shape[1]
    xx, xy = np.zeros((p, p)), np.zeros((p, y.shape[1]))
    x, done = np.zeros(p), 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
        xx += X.T @ X
        xy += X.T @ y[done : done + len(rows)]
        x += X.sum(axis=0)
        done += len(rows)
    return x, xx, xy


def join_steps(parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Join paths, and their intercepts, of some steps ahead each."""
    path, intercept = (np.concatenate(one, axis=-1) for one in zip(*parts, strict=True))
    return path, intercept


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
    every penalty, and every step ahead unless labels are unknown. The penalty with the lowest
    squared error on ``choose`` is taken. The table (rows, C) is scaled.
    """
    C, H = table.shape[1], train[1].shape[1]
    lags = most_lags(window, C)
    steps = [moments.path(penalties) for moments in Moments.each(table, lags, train)]
    path, intercept = join_steps(steps)
    best = squared_errors(path, intercept, table, choose, lags).argmin(axis=0)  # (H,)
    weights = np.stack([path[best[h], :, h] for h in range(H)], axis=-1)  # (p, H)
    chosen = intercept[best, np.arange(H)]
    return Ridge(weights.reshape(lags, C, H), chosen, np.asarray(penalties)[best])


def squared_errors(
    path: FloatArray, intercept: FloatArray, table: NDArray[np.floating], choose: Part, lags: int
) -> FloatArray:
    """Return the squared errors (penalties, H) on the stopping windows, known ones added up."""
    origins, y = choose
    n, p, H = path.shape
    joined = np.moveaxis(path, 0, 1).reshape(p, n * H)
    sums, done = np.zeros((n, H)), 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
        guess = (X @ joined).reshape(len(rows), n, H) + intercept
        label = y[done : done + len(rows), None]
        sums += (np.where(np.isnan(label), 0.0, guess - label) ** 2).sum(axis=0)
        done += len(rows)
    return sums
