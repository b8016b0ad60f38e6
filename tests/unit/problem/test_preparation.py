"""Differencing and scaling, learned from the training rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.problem.preparation import Preparation, differenced
from mvlstm.table.frame import build_frame


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
        assert model.fitted_.preparation.orders[-1] == 1
        scales.append(model.fitted_.preparation.target_scale)
    assert scales[0] == pytest.approx(scales[1])
    assert scales[0] == pytest.approx(1.0, rel=0.1)


def with_holes(rows: int, level: float, rng: np.random.Generator) -> pd.DataFrame:
    """Make a walk of which values are missing in bursts, most often after high ones."""
    y = level + np.cumsum(rng.normal(size=rows)) + 5 * rng.normal(size=rows)
    gone = rng.uniform(size=rows) < np.where(np.r_[0.0, y[:-1]] > np.median(y), 0.6, 0.1)
    gone[0] = False
    return pd.DataFrame({"x": rng.normal(size=rows), "y": np.where(gone, np.nan, y)})


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_targets_scale_is_of_measured_values(order: int) -> None:
    table = with_holes(600, 20.0, np.random.default_rng(0))
    frame = build_frame(table, target="y", missing="fill")
    orders = np.array([0, order])
    learned = Preparation.learn(frame.values, orders, measured=frame.measured)
    moves = np.diff(table["y"], n=order)
    np.testing.assert_allclose(learned.scaler.center[-1], np.nanmean(moves))
    np.testing.assert_allclose(learned.scaler.scale[-1], np.nanstd(moves))
    plain = Preparation.learn(frame.values, orders)
    assert learned.scaler.center[0] == plain.scaler.center[0]
    assert learned.scaler.scale[-1] != pytest.approx(plain.scaler.scale[-1], rel=0.01)


def test_where_no_difference_was_measured_all_count() -> None:
    table = with_holes(600, 20.0, np.random.default_rng(0))
    table.loc[1::2, "y"] = np.nan
    frame = build_frame(table, target="y", missing="fill")
    found, plain = (
        Preparation.learn(frame.values, np.array([0, 1]), measured=measured)
        for measured in (frame.measured, None)
    )
    np.testing.assert_array_equal(found.scaler.scale, plain.scaler.scale)


def test_a_fit_scales_by_measured_values_of_the_training_rows() -> None:
    table = with_holes(600, 20.0, np.random.default_rng(0))
    model = mv.AR(window=3, missing="fill").fit(table, "y", test=0.2)
    y = table["y"][:420]
    assert model.fitted_.preparation.target_center == pytest.approx(y.mean())
    assert model.fitted_.preparation.target_scale == pytest.approx(y.std(ddof=0))


def test_each_series_is_scaled_by_its_measured_values() -> None:
    rng = np.random.default_rng(0)
    parts = [with_holes(300, 100.0 * k, rng).assign(who=f"s{k}", t=range(300)) for k in range(4)]
    table = pd.concat(parts, ignore_index=True)
    settings = {"time": "t", "series": "who"}
    model = mv.AR(window=3, missing="fill").fit(table[table["who"] < "s3"], "y", **settings)
    series = model.fitted_.preparation.series
    assert series is not None
    for k in range(3):
        y = parts[k]["y"][:270]
        np.testing.assert_allclose(series.center[k, -1], y.mean())
        np.testing.assert_allclose(series.scale[k, -1], y.std(ddof=0))
    frame = model.fitted_.read(parts[3], "predict")
    units = model.fitted_.prepare(frame).units
    assert units is not None
    y = parts[3]["y"]
    np.testing.assert_allclose(units[0][3:], y.expanding().mean()[3:])
    np.testing.assert_allclose(units[1][3:], y.expanding().std(ddof=0)[3:])


@pytest.mark.parametrize("series", [{}, {"series": "who"}])
def test_values_filled_in_after_the_training_rows_change_nothing(series: dict[str, str]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=600), "y": rng.normal(size=600).cumsum()})
    if series:
        table = table.assign(who=np.repeat(["a", "b"], 300))
    holes = table.assign(y=table["y"].where(table.index != 599))
    found = [
        mv.AR(window=3, missing="fill").fit(one, "y", test=0.2, **series).fitted_.preparation
        for one in (table, holes)
    ]
    assert found[0].to_dict() == found[1].to_dict()
