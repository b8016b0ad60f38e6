"""STRX and ARIMAX of one window know nothing but its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.per_window import PerWindow


def made(n: int = 80) -> pd.DataFrame:
    """A level that a variable moves a row later."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = 10 + 3 * np.concatenate([[0.0], x[:-1]]) + 0.5 * rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": y})


@pytest.mark.parametrize("model", ["strx", "arimax"])
def test_a_window_is_fitted_by_itself(model: Any) -> None:
    table = made()
    fitted = PerWindow(window=20, model=model, verbose=0, gaps="close").fit(
        table, target="y", test=0.2
    )
    found = fitted.predict(table)
    errors = found.mean.to_numpy()[-20:] - table["y"].to_numpy()[-20:]
    assert np.abs(errors).mean() < 1.0 < np.abs(np.diff(table["y"])).mean()
    other = table.copy()
    other.iloc[:40, 1] += 5.0  # rows that no later window has
    later = fitted.predict(other).mean.to_numpy()[-20:]
    assert np.array_equal(later, found.mean.to_numpy()[-20:])


def test_a_constant_window_is_repeated() -> None:
    model = PerWindow(window=20, verbose=0, gaps="close").fit(made(), target="y", test=0.2)
    flat = made()
    flat.iloc[-30:] = [0.5, 11.0]
    assert model.predict(flat).mean.to_numpy()[-5:] == pytest.approx(11.0, abs=1e-3)
