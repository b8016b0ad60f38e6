"""What of a variable the others do not already say: the part that exchanges may move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mvlstm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Others:
    """What columns of windows (M, T, C) say of one another, by linear regression.

    A value is explained by the other columns at its own row and at the two next to it.
    """

    windows: FloatArray

    @cached_property
    def _features(self) -> FloatArray:
        """Standardised columns at a row, the one before and the one after, (M * T, 3 C)."""
        values = self.windows.astype(np.float64)
        centred = values - values.mean(axis=(0, 1))
        scale = centred.std(axis=(0, 1))
        unit = centred / np.where(scale > 0, scale, 1.0)
        before = np.concatenate([unit[:, :1], unit[:, :-1]], axis=1)
        after = np.concatenate([unit[:, 1:], unit[:, -1:]], axis=1)
        stacked = np.concatenate([unit, before, after], axis=2)
        return stacked.reshape(-1, stacked.shape[2])

    @cached_property
    def _moments(self) -> FloatArray:
        return np.asarray(self._features.T @ self._features / len(self._features))

    def explained(self, columns: IntArray) -> FloatArray:
        """Return the part of ``columns`` that the other columns explain, (M, T, columns)."""
        M, T, C = self.windows.shape
        apart = np.setdiff1d(np.arange(C), columns)
        mean = self.windows[:, :, columns].astype(np.float64).mean(axis=(0, 1))
        if not apart.size:
            return np.broadcast_to(mean, (M, T, len(columns)))
        others = np.concatenate([apart, apart + C, apart + 2 * C])
        shrinkage = (others.size / M + 1e-6) * np.eye(others.size)  # of few windows, more
        moments = self._moments
        weights = np.linalg.solve(
            moments[np.ix_(others, others)] + shrinkage * 0.1, moments[np.ix_(others, columns)]
        )
        scale = self.windows[:, :, columns].std(axis=(0, 1), dtype=np.float64)
        part = (self._features[:, others] @ weights).reshape(M, T, -1)
        return np.asarray(mean + part * scale)

    def exchanged(self, columns: IntArray, donors: IntArray) -> FloatArray:
        """Return the windows with what is left of ``columns`` taken from the ``donors`` (M,)."""
        kept = self.explained(columns)
        left = self.windows[:, :, columns] - kept
        changed = self.windows.copy()
        changed[:, :, columns] = kept + left[donors]
        return changed
