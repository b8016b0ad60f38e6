"""What scores are measured by: the last value, the last cycle, and the usual change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score

import mvlstm as mv
from mvlstm import metrics


def make_table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    day = 10 * np.sin(2 * np.pi * np.arange(rows) / 24)
    x = rng.normal(size=rows)
    y = 50 + day + np.r_[0.0, x[:-1]] + 0.1 * rng.normal(size=rows)
    index = pd.date_range("2024-01-01", periods=rows, freq="h", name="time")
    return pd.DataFrame({"x": x, "y": y}, index=index)


def make_panel(scale: float) -> pd.DataFrame:
    second = make_table().assign(y=lambda t: scale * t["y"] + scale * np.cos(np.arange(400)))
    parts = [make_table().assign(site="a"), second.assign(site="b")]
    return pd.concat(parts).reset_index()


def test_skill_is_against_the_better_naive_method():
    table = make_table()
    scores = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2).evaluate(table).scores
    assert list(scores.index) == ["AR", "persistence", "seasonal"]
    assert scores.loc["seasonal", "rmse"] < scores.loc["persistence", "rmse"]
    repeat = (table["y"] - table["y"].shift(24)).tail(80)
    assert scores.loc["seasonal", "rmse"] == pytest.approx(np.sqrt(np.mean(repeat**2)))
    ratio = scores.loc["AR", "rmse"] / scores.loc["seasonal", "rmse"]
    assert scores.loc["AR", "skill"] == pytest.approx(1 - ratio)


def test_scores_agree_with_the_metrics():
    table = make_table()
    model = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2)
    forecast, history = model.predict(table), table["y"].iloc[:320]
    found = forecast.score(history=history)
    scores = model.evaluate(table).scores.loc["AR"]
    for name in set(scores.index) - {"skill"}:
        assert scores[name] == pytest.approx(found[name]), name
    new = forecast.part[:, 0] == "new"
    actual, median = forecast.actual[new, 0], forecast.median.to_numpy()[new]
    assert found["mase"] == pytest.approx(metrics.mase(actual, median, history))
    assert found["mae"] == pytest.approx(metrics.mae(actual, median))
    assert found["mae_mean"] == pytest.approx(metrics.mae(actual, forecast.mean.to_numpy()[new]))


def test_a_share_of_zero_is_left_out_and_told():
    table = make_table()
    table["y"] -= table["y"].iloc[-3]  # among values as usual
    result = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2).evaluate(table)
    assert np.isnan(result.scores.loc["AR", "mape"])
    assert any("mape is empty" in note for note in result.notes)


def test_the_unit_of_one_series_does_not_decide():
    skills = []
    for scale in (1.0, 1000.0):
        table = make_panel(scale)
        model = mv.AR(window=3, verbose=0)
        model.fit(table, "y", time="time", series="site", test=0.2)
        scores = model.evaluate(table).scores.loc["AR"]
        skills.append([scores["skill"], scores["rmsse"], scores["mase"]])
    np.testing.assert_allclose(*skills, rtol=1e-6)


def test_each_step_has_the_errors_of_naive_methods():
    table = make_table()
    model = mv.AR(window=3, horizon=3, verbose=0).fit(table, "y", test=0.2)
    by_step = model.evaluate(table).by_step
    assert by_step is not None
    assert by_step["persistence_rmse"].is_monotonic_increasing
    naive = by_step[["persistence_rmse", "seasonal_rmse"]].min(axis=1)
    np.testing.assert_allclose(by_step["skill"], 1 - by_step["rmse"] / naive)


def test_cross_validation_of_scikit_learn():
    table, folds = make_table(), TimeSeriesSplit(2, test_size=80)
    model = mv.AR(window=3, verbose=0)
    scores = cross_val_score(model, table, cv=folds, params={"target": "y"})
    for score, (train, test) in zip(scores, folds.split(table), strict=True):
        fitted = mv.AR(window=3, verbose=0).fit(table.iloc[train], "y")
        assert score == fitted.evaluate(table.iloc[test]).scores["skill"].iloc[0]
    search = GridSearchCV(model, {"window": [2, 26]}, cv=folds).fit(table, target="y")
    assert search.best_params_ == {"window": 26}
    assert search.best_estimator_.fitted_.window == 26
