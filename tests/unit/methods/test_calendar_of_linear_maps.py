"""What linear maps read of the calendar: the rows forecast, with the days as categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv


def sundays(n: int = 24 * 7 * 12) -> pd.DataFrame:
    """Hours of noise that are high on one day of the week alone."""
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    noise = np.random.default_rng(0).normal(size=n)
    return pd.DataFrame({"y": 10.0 * (times.day_of_week == 6) + noise}, index=times)


def fitted(calendar: object, table: pd.DataFrame, **settings: object) -> mv.AR:
    model = mv.AR(window=26, horizon=24, calendar=calendar, verbose=0, **settings)  # type: ignore
    return model.fit(table, "y", test=0.25)


def test_days_tell_a_linear_map_of_sunday() -> None:
    table = sundays()
    mae = {}
    for calendar in ("weekday", "days"):
        forecast = fitted([calendar], table).predict(table)
        mae[calendar] = forecast.score()["mae"]
    assert mae["days"] < 1.0 < mae["weekday"]  # the noise has 0.8


def test_they_are_one_variable_and_its_older_rows_are_not_read() -> None:
    table = sundays()
    model = fitted(["hour", "days"], table)
    assert model.fitted_.layout.inputs[:3] == ("hour sin", "hour cos", "days Monday")
    assert model.fitted_.layout.names == ("calendar", "y")
    weights = model.fitted_.learned.linear.weights  # (T, C, H)
    assert not weights[:2, :9].any() and weights[2:, :9].any(axis=(1, 2)).all()
    assert weights[:, 9].any(axis=1).all()
    rows = model.explain(table, effort="quick").importance
    assert sorted(rows["variable"]) == ["calendar", "y"]


def test_the_future_has_its_days_and_files_keep_them(tmp_path) -> None:
    table = sundays()
    model = fitted(["days"], table)
    model.save(tmp_path / "m.safetensors")
    until_saturday = table[: np.flatnonzero(table.index.day_of_week == 5)[-1] + 1]
    ahead = mv.load(tmp_path / "m.safetensors").forecast(until_saturday)
    assert ahead.time[0, 0].astype("datetime64[D]").astype(object).weekday() == 6
    assert ahead.mean.mean() == pytest.approx(10.0, abs=1.0)


def test_the_link_of_a_network_reads_it_alike() -> None:
    table = sundays(24 * 7 * 6)
    few = {"members": 1, "max_epochs": 1, "hidden_size": 2, "link": "linear", "verbose": 0}
    model = mv.MVLSTM(window=26, horizon=24, calendar=["days"], **few).fit(table, "y")
    ridge = model.fitted_.learned.trained.labels.link.ridge
    assert not ridge.weights[:-24, :7].any() and ridge.weights[-24:, :7].any()
