"""Rolling coverage with its band, said in words and drawn; scores of joint paths."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mvlstm import metrics, plot
from mvlstm.results import Forecast
from mvlstm.results.coverage import coverage_in_words, rolling_coverage, spread_rows


def made_forecast(factor: float, rows: int = 800) -> Forecast:
    """Standard normal forecasts of outcomes whose spread is another from the middle on."""
    actual = np.random.default_rng(0).normal(size=(rows, 1))
    actual[rows // 2 :] *= factor
    times = pd.date_range("2024-01-01", periods=rows + 1, freq="h")
    ones = np.ones((rows, 1, 1))
    return Forecast(
        origin=times[:-1],
        time=times.to_numpy()[1:, None],
        target="y",
        weights=ones,
        means=0 * ones,
        variances=ones,
        members=np.zeros((1, rows, 1)),
        part=np.full((rows, 1), "new"),
        actual=actual,
    )


@pytest.mark.parametrize(("factor", "state"), [(1.0, "fine"), (1.8, "narrow"), (0.5, "wide")])
def test_the_state_follows_the_outcomes(factor: float, state: str) -> None:
    forecast = made_forecast(factor)
    table = rolling_coverage(forecast)
    assert table["state"].iloc[-1] == state
    assert (table["low"] < 0.9).all() and (table["high"] > 0.9).all()
    words = coverage_in_words(table)
    if state == "fine":
        assert "hold what they promise" in words
        return
    since = table["time"][table["state"].eq(state)].iloc[0]
    middle = forecast.time[400, 0]
    assert middle <= since <= middle + np.timedelta64(200, "h")
    assert f"too {state} since {pd.Timestamp(since).isoformat()}" in words


def test_few_times_cannot_tell() -> None:
    table = rolling_coverage(made_forecast(1.0).take(slice(0, 40)))
    assert table.empty and "cannot be told" in coverage_in_words(table)


def test_few_rows_of_the_table_are_evenly_apart_and_end_with_the_last() -> None:
    table = rolling_coverage(made_forecast(1.0))
    few = spread_rows(table, 10)
    assert len(few) <= 10 and few["time"].iloc[-1] == table["time"].iloc[-1]
    assert few["time"].diff().nunique() == 1
    assert len(spread_rows(table.iloc[:3], 10)) == 3 and spread_rows(table.iloc[:0]).empty


def test_coverage_is_drawn_as_it_is_tabled() -> None:
    forecast = made_forecast(1.8)
    line = plot.coverage_over_time(forecast).data[-1]
    np.testing.assert_allclose(line.y, rolling_coverage(forecast)["coverage"])


def test_the_energy_score_of_one_step_is_the_crps() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(50, 1))
    paths = rng.normal(size=(4000, 50, 1))
    one = np.ones((50, 1))
    exact = metrics.crps_mixture(one, 0 * one, one, y[:, 0])
    np.testing.assert_allclose(metrics.energy_score(y, paths), exact, atol=0.05)


def test_the_variogram_score_prefers_the_right_dependence() -> None:
    rng = np.random.default_rng(2)
    y = np.repeat(rng.normal(size=(300, 1)), 4, axis=1) + 0.1 * rng.normal(size=(300, 4))
    tied = np.repeat(rng.normal(size=(200, 300, 1)), 4, axis=2)
    right = tied + 0.1 * rng.normal(size=(*tied.shape[:2], 4))
    wrong = rng.normal(size=(200, 300, 4))
    assert metrics.variogram_score(y, right).mean() < 0.5 * metrics.variogram_score(y, wrong).mean()
