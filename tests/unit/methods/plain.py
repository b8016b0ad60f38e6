"""Flattened windows and labels made without the package's own window code."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def flat_windows(table: pd.DataFrame, *, window: int) -> dict[str, Pair]:
    """Windows (M, T*C) scaled on the training rows, and labels one step ahead, by part.

    The split is that of ``fit(test=0.2)``; the target is the table's last column.
    """
    values = table.to_numpy()
    n = len(values)
    a, b = 7 * n // 10, 8 * n // 10
    scaled = (values - values[:a].mean(axis=0)) / values[:a].std(axis=0)
    rows = np.arange(window, n)
    X = np.array([scaled[i - window : i].reshape(-1) for i in rows])
    y = values[rows, -1]
    borders = {"train": (0, a), "stop": (a, (a + b) // 2), "new": (b, n)}
    chosen = {part: (rows >= start) & (rows < end) for part, (start, end) in borders.items()}
    return {part: (X[mask], y[mask]) for part, mask in chosen.items()}
