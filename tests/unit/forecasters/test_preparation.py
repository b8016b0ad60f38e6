"""Differencing and scaling, learned from the training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.data.frame import build_frame
from mvlstm.forecasters.preparation import Preparation, differenced


def torn_walk(jump: float, rows: int = 900) -> pd.DataFrame:
    """Make a walk with stretches left out, over each of which it jumps."""
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=rows)) + jump * (np.arange(rows) // 90)
    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    table = pd.DataFrame({"x": rng.normal(size=rows), "y": y}, index=times)
    return table[np.arange(rows) % 90 < 80]


def test_differences_stay_within_segments() -> None:
    values = np.array([[0.0, 1.0], [0.0, 4.0], [5.0, 9.0], [7.0, 50.0], [7.0, 53.0], [1.0, 60.0]])
    segments = np.array([0, 0, 0, 1, 1, 1])
    found = differenced(values, np.array([1, 2]), segments)
    np.testing.assert_array_equal(found[:, 0], [0.0, 0.0, 5.0, 0.0, 0.0, -6.0])
    np.testing.assert_array_equal(found[:, 1], [0.0, 0.0, 2.0, 0.0, 0.0, 4.0])


def test_scales_are_those_of_differences_within_segments() -> None:
    frame = build_frame(torn_walk(400.0), target="y", gaps="respect")
    orders = np.array([0, 1])
    learned = Preparation.learn(frame.values, orders, segments=frame.segments)
    inside = frame.segments[1:] == frame.segments[:-1]
    moves = np.diff(frame.target_values)[inside]
    assert len(moves) == 10 * 79
    np.testing.assert_allclose(learned.scaler.center[1], moves.mean())
    np.testing.assert_allclose(learned.scaler.scale[1], moves.std())
    table = learned.apply(frame).table[:, 1]
    assert np.abs(table).max() < 5.0  # no jump, though no window would have read it


def test_jumps_over_gaps_leave_a_differenced_fit_as_it_is() -> None:
    pytest.importorskip("statsmodels", reason="the baselines extra is not installed")
    scales = []
    for jump in (0.0, 400.0):
        settings = {"window": 3, "members": 1, "hidden_size": 2, "max_epochs": 1, "verbose": 0}
        model = mv.LSTM(gaps="respect", difference="auto", **settings)
        model.fit(torn_walk(jump), "y", test=0.2)
        assert model.preparation_.orders[-1] == 1
        scales.append(model.preparation_.scaler.target_scale)
    assert scales[0] == pytest.approx(scales[1])
    assert scales[0] == pytest.approx(1.0, rel=0.1)
