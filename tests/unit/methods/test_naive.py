"""Forecasts by the value of a cycle ago."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.methods.naive import find_season
from mvlstm.problem.inputs import Windows
from mvlstm.table.spacing import find_step

from .learned import windows_at


def make_table(rows: int = 400, freq: str = "h") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hours = np.arange(rows)
    y = 10 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=rows)
    times = pd.date_range("2024-01-01", periods=rows, freq=freq)
    return pd.DataFrame({"x": rng.normal(size=rows), "y": y}, index=times)


def test_hourly_data_repeat_their_day() -> None:
    table = make_table()
    model = mv.SeasonalPersistence(window=30, verbose=0).fit(table, "y", test=0.2)
    assert model.period_ == 24
    forecast = model.predict(table)
    np.testing.assert_array_equal(forecast.mean, table["y"].shift(24).iloc[30:])
    scores = model.evaluate(table).scores
    assert scores.loc["SeasonalPersistence", "skill"] == 0.0  # it is the better naive method
    assert scores.loc["seasonal", "rmse"] == scores.loc["SeasonalPersistence", "rmse"]
    assert scores.loc["persistence", "skill"] < -0.3


def test_further_steps_take_the_last_whole_cycle() -> None:
    table = make_table()
    model = mv.SeasonalPersistence(window=4, horizon=3, period=2, verbose=0).fit(table, "y")
    y = table["y"].to_numpy()
    np.testing.assert_array_equal(model.predict(table).members[0, 0], [y[2], y[3], y[2]])
    alone = Windows.of(windows_at(model, table, np.array([3])).values)  # in no table
    members = model.fitted_.learned.predict(alone).members
    np.testing.assert_allclose(members[0, 0], [y[2], y[3], y[2]])


def test_the_cycle_may_be_longer_than_the_window() -> None:
    table = make_table()
    model = mv.SeasonalPersistence(window=4, period=24, verbose=0).fit(table, "y")
    mean = model.predict(table).mean.to_numpy()
    y = table["y"].to_numpy()
    np.testing.assert_array_equal(mean[:20], y[3:23])  # no cycle yet: the last value
    np.testing.assert_array_equal(mean[20:], y[:-24])


def test_without_times_the_autocorrelation_finds_the_cycle() -> None:
    y = make_table()["y"].to_numpy()
    assert find_season(y, 1)[0] == 24
    noise = np.random.default_rng(0).normal(size=400)
    period, note = find_season(noise, 1)
    assert period == 1 and "persistence" in note


def test_the_better_of_day_and_week_is_taken() -> None:
    rng = np.random.default_rng(0)
    week = np.tile(rng.normal(size=7), 60) + 0.01 * rng.normal(size=420)
    assert find_season(week, pd.Timedelta(days=1))[0] == 7
    assert find_season(np.tile(rng.normal(size=12), 9), pd.offsets.MonthEnd())[0] == 12
    year = np.tile(rng.normal(size=12), 9)
    starts = pd.date_range("2000-01-01", periods=len(year), freq="MS")
    assert find_season(year, find_step(starts))[0] == 12
    quarters = pd.date_range("2000-03-31", periods=len(year), freq="QE")
    assert find_season(np.tile(year[:4], 27), find_step(quarters))[0] == 4
    days = pd.date_range("2000-01-01", periods=100, freq="D", tz="Europe/Berlin")
    assert find_season(np.tile(year[:7], 20), find_step(days))[0] == 7


def test_scrambling_takes_the_past_of_the_donor() -> None:
    table = make_table()
    model = mv.SeasonalPersistence(window=4, period=24, verbose=0).fit(table, "y")
    learned, windows = model.fitted_.learned, windows_at(model, table, np.arange(53, 63))
    plain = learned.predict(windows).members
    donors = np.arange(10)[::-1]
    moved = learned.scrambled(windows, np.array([1]), donors)
    np.testing.assert_array_equal(moved, plain[:, donors])
    same = learned.scrambled(windows, np.array([0]), donors)
    np.testing.assert_array_equal(same, plain)


def test_saved_and_loaded(tmp_path: Path) -> None:
    table = make_table()
    model = mv.SeasonalPersistence(window=4, verbose=0).fit(table, "y")
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    pd.testing.assert_series_equal(again.predict(table).mean, model.predict(table).mean)


def test_a_period_that_is_none_is_refused() -> None:
    with pytest.raises(mv.errors.ParameterError, match="period=0"):
        mv.SeasonalPersistence(period=0).fit(make_table(), "y")
