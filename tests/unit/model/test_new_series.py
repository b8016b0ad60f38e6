"""Series that training did not have: windows, forecasts and explanations on one scale each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import forecaster_class
from mvlstm.problem import preparation
from mvlstm.problem.inputs import Windows

SMALL: dict[str, Any] = {"hidden_size": 3, "members": 2, "max_epochs": 2, "device": "cpu"}
SETTINGS: dict[str, dict[str, Any]] = {
    "AR": {},
    "GBT": {"grid": "quick", "max_rounds": 10},
    "LSTM": SMALL | {"loss": "nll"},
    "MVLSTM": SMALL,
    "RETAIN": SMALL | {"link": "linear"},
}
WINDOW = 6


def series(name: str, seed: int, rows: int = 120) -> pd.DataFrame:
    """Make a cycle with noise, at a level and of a size of its own, that drifts."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    level, size = rng.uniform(100, 500), rng.uniform(5, 20)
    y = level + size * (np.sin(t / 3) + 0.02 * t + 0.2 * rng.normal(size=rows))
    return pd.DataFrame({"time": t, "shop": name, "x": rng.normal(size=rows), "y": y})


@cache
def fitted(name: str) -> AbstractForecaster:
    known = pd.concat([series(f"old {k}", k) for k in range(3)])
    settings: dict[str, Any] = {"window": WINDOW, "verbose": 0} | SETTINGS[name]
    return forecaster_class(name)(**settings).fit(
        known, "y", time="time", series="shop", test=0.2, valid=0.2
    )


def by_hand(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return windows of a series scaled by its rows up to their ends, and mean and deviation."""
    values = table[["x", "y"]].to_numpy()
    windows, center, scale = [], [], []
    for end in range(WINDOW, len(values) + 1):
        mean, deviation = values[:end].mean(axis=0), values[:end].std(axis=0)
        windows.append((values[end - WINDOW : end] - mean) / deviation)
        center.append(mean[1])
        scale.append(deviation[1])
    return np.array(windows), np.array(center), np.array(scale)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_window_has_the_scale_of_its_forecast(name: str) -> None:
    """All of its rows have, by what is known at its end; training had them on one scale too."""
    model, table = fitted(name), series("new", 9)
    windows, center, scale = by_hand(table.iloc[:-1])
    labels = model.fitted_.learned.predict(Windows.of(windows)).members
    expected = labels[..., 0] * scale + center
    forecast = model.predict(table)
    np.testing.assert_allclose(forecast.members[..., 0], expected, rtol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_old_and_new_series_in_one_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, old, new = fitted(name), series("old 1", 1), series("new", 9)
    model = model.holding(replace(model.fitted_, adaptive=False))  # series learn from one another
    apart = [model.predict(one).to_frame() for one in (new, old)]
    both = pd.concat([old, new])
    pd.testing.assert_frame_equal(
        model.predict(both).to_frame(), pd.concat(apart, ignore_index=True), rtol=1e-6
    )
    monkeypatch.setattr(preparation, "MOST_NUMBERS", 40 * 2 * WINDOW)  # forty windows at once
    pd.testing.assert_frame_equal(
        model.predict(both).to_frame(), pd.concat(apart, ignore_index=True), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["AR", "MVLSTM", "RETAIN"])
def test_explanations_see_the_same_windows(name: str) -> None:
    model, table = fitted(name), series("new", 9)
    held = model.fitted_
    prepared = held.prepare(held.read(table, "explain"))
    origins = prepared.origins(WINDOW, 1)
    plain = held.predict(prepared, origins).members
    windows = held.windows(prepared, origins).scrambled(np.arange(2), np.arange(len(origins)))
    same = held.learned.predict(windows).members
    np.testing.assert_allclose(same, plain, rtol=1e-4, atol=1e-5)
    explanation = model.explain(table, effort="quick", contributions=5)
    sums = explanation.contribution.sum(axis=1) + explanation.background[0]
    times = sums.index.get_level_values("origin")
    known = times < 119  # the last one's value is not known yet
    made = plain.mean(axis=0)[np.asarray(times)[known] - WINDOW + 1, 0]
    np.testing.assert_allclose(sums[known], made, atol=2e-3)
