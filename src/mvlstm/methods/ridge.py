"""Ridge regression on whole windows, in pieces, with the penalty chosen on later windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError
from mvlstm.model.learned import Arrays, Saved
from mvlstm.problem.moments import (
    PENALTIES,
    Moments,
    Part,
    as_lags,
    choosing_errors,
    join_steps,
    most_lags,
)
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import BoolArray, FloatArray, IntArray


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

    def gradient(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the gradient (1, H, T, C), the same for every window (M, T, C)."""
        lags, C, H = self.weights.shape
        slope = np.zeros((1, H, windows.shape[1], C))
        slope[0, :, windows.shape[1] - lags :] = np.moveaxis(self.weights, -1, 0)
        return slope

    @property
    def lags(self) -> int:
        """Rows of a window that are read."""
        return len(self.weights)

    def sizes(self) -> FloatArray:
        """Return how large the weights of each column are, (C,)."""
        return np.asarray(np.abs(self.weights).sum(axis=(0, 2)))

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


def fit_ridge(
    table: NDArray[np.floating],
    window: int,
    train: Part,
    choose: Part,
    read: BoolArray | None = None,
) -> Ridge:
    r"""Minimise :math:`\|y - Xw - b\|^2 + \lambda \|w\|^2`, with :math:`\lambda` chosen by step.

    One pass over the training windows gathers the moments; one eigendecomposition then serves
    every penalty, and every step ahead unless labels are unknown. The penalty with the lowest
    error on ``choose`` is taken, see `choosing_errors`. The table (rows, C) is scaled; ``read``
    (window, C) says which inputs count, by default all.
    """
    C, H = table.shape[1], train[1].shape[1]
    lags = most_lags(window, C)
    steps = [moments.path(PENALTIES) for moments in Moments.each(table, lags, train, read)]
    path, intercept = join_steps(steps)
    errors = choosing_errors(path, intercept, table, train, choose, lags, read)
    best = errors.argmin(axis=0)  # (H,)
    weights = np.stack([path[best[h], :, h] for h in range(H)], axis=-1)  # (p, H)
    chosen = intercept[best, np.arange(H)]
    return Ridge(as_lags(weights, lags, C, read), chosen, np.asarray(PENALTIES)[best])
