"""Networks that do harm are moved back towards their linear link."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.methods.network.guard import LEAST, kept_share

from .learned import windows_at

SMALL: dict[str, Any] = {"window": 2, "hidden_size": 6, "members": 2, "verbose": 0}
SMALL |= {"link": "linear", "max_epochs": 12, "averaging": 0.0, "finish": 0.0}
SPLIT: dict[str, Any] = {"test": 0.2, "valid": 0.2}


def turning(turns: bool, n: int = 900) -> pd.DataFrame:
    """Return a drifting series with a pattern no linear map can see, which turns round at 0.7 n."""
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(-2, 2, n), 0.1 * rng.normal(size=n)
    sign = np.where(turns & (np.arange(n) >= 0.7 * n), -1.0, 1.0)
    y = np.cumsum(sign * np.abs(x) - sign + noise)
    return pd.DataFrame({"x": np.append(x[1:], 0.0), "y": y})


@pytest.fixture(scope="module")
def guarded() -> mv.MVLSTM:
    return mv.MVLSTM(**SMALL).fit(turning(True), "y", **SPLIT)


def test_a_network_that_does_harm_is_hardly_worse_than_ridge(guarded: mv.MVLSTM) -> None:
    table = turning(True)
    trained = guarded.fitted_.learned.trained
    assert (trained.share == LEAST).all()
    assert any("did worse than their linear link" in note for note in guarded.notes_)
    ridge = mv.AR(window=2, verbose=0).fit(table, "y", **SPLIT)
    error, least = (model.evaluate(table).to_frame().iloc[0]["rmse"] for model in (guarded, ridge))
    assert error < 1.02 * least


def test_a_network_that_helps_stays_as_it_is() -> None:
    model = mv.MVLSTM(**SMALL).fit(turning(False), "y", **SPLIT)
    assert model.fitted_.learned.trained.share is None
    assert not any("linear link" in note for note in model.notes_)


def test_the_share_is_that_of_least_squared_error() -> None:
    rng = np.random.default_rng(1)
    guess, found, actual = rng.normal(size=(3, 200, 2))
    share = kept_share(guess + found, guess, guess + 0.3 * found + 0.01 * actual)
    assert share == pytest.approx(0.3, abs=0.01)
    assert kept_share(guess + found, guess, guess - found) == LEAST
    assert kept_share(guess + found, guess, guess + 0.9 * found) == 1.0
    actual[5] = np.nan
    assert 0 < kept_share(found, guess, actual) <= 1


def test_forecasts_gradients_and_files_know_it(guarded: mv.MVLSTM, tmp_path: Path) -> None:
    table = turning(True)
    learned = guarded.fitted_.learned
    half = replace(learned, trained=replace(learned.trained, share=np.array([0.25, 0.5])))
    whole = replace(learned, trained=replace(learned.trained, share=None))
    at = windows_at(guarded, table, np.array([100, 300, 800]))
    guess = whole.trained.guess(at)
    moved = whole.predict(at).members - guess
    found = half.predict(at)
    np.testing.assert_allclose(found.members - guess, moved * [[[0.25]], [[0.5]]], atol=1e-9)
    assert found.mixture is not None
    slope = half.gradient(at.values.astype(np.float64))
    shift = np.zeros_like(at.values, dtype=np.float64)
    shift[:, -1, 0] = 1e-3
    ends = [half.trained.labels.link(at.values + s * shift) for s in (1, -1)]
    link = (ends[0] - ends[1])[..., 0] / 2e-3
    full = whole.gradient(at.values.astype(np.float64))[:, :, 0, -1, 0]
    np.testing.assert_allclose(
        slope[:, :, 0, -1, 0] - link, (full - link) * [[0.25], [0.5]], atol=1e-6
    )
    guarded.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(table).mean, guarded.predict(table).mean)


def test_an_exported_model_knows_it(guarded: mv.MVLSTM, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    table = turning(True)
    table.index = pd.date_range("2024-01-01", periods=len(table), freq="h", name="time")
    model = mv.MVLSTM(**SMALL).fit(table, "y", **SPLIT)
    assert model.fitted_.learned.trained.share is not None
    model.export(tmp_path / "m.onnx")
    found = import_module("mvlstm.runtime").load(tmp_path / "m.onnx").forecast(table)
    expected = model.forecast(table).mean
    np.testing.assert_allclose(np.ravel(found["mean"]), np.ravel(expected), rtol=1e-5)
