"""Rows that came after those of a fit, and models fitted to the ones before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mvlstm.model.registry import forecaster_class

SMALL: dict[str, Any] = {"hidden_size": 3, "members": 3, "max_epochs": 4, "batch_size": 64}
OLD, NEW = 500, 200


def table(n: int = OLD + NEW, seed: int = 0, change: int | None = None) -> pd.DataFrame:
    """Hourly; y follows x of the hour before, more strongly from row ``change`` on."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, n))
    factor = np.where(np.arange(n) < (n if change is None else change), 1.0, 2.0)
    y = factor * np.r_[0.0, x[:-1]] + 0.3 * noise
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    return pd.DataFrame({"x": x, "y": y}, index=times)


def fitted(name: str = "MVLSTM", rows: pd.DataFrame | None = None, **changes: Any) -> Any:
    settings = {"window": 4, "verbose": 0} | (SMALL if name == "MVLSTM" else {}) | changes
    data = table() if rows is None else rows
    return forecaster_class(name)(**settings).fit(data.iloc[:OLD], "y", valid=0.2)
