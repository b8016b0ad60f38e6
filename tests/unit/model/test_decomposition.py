"""Forecasts taken apart: contributions add up, exactly so for a linear model, and tell lags."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.controls import make_control
from mvlstm import datasets
from mvlstm.errors import DataError, ParameterError
from mvlstm.explain.refits import Left, Rows, leave_out
from mvlstm.methods.linear import AR
from mvlstm.methods.mvlstm import MVLSTM
from mvlstm.model import decomposition
from mvlstm.model.decomposition import TOLERANCE, count_apart, take_apart
from mvlstm.model.scoring import explained_origins
from mvlstm.results import Explanation


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_control("lags", 900, seed=3)[0]


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_linear_model_is_taken_apart_exactly(table, horizon) -> None:
    fitted = AR(window=16, horizon=horizon).fit(table, "y", test=0.2).fitted_
    prepared = fitted.prepare(fitted.read(table, "explain"))
    unseen, _, _ = explained_origins(fitted, prepared)
    parts = take_apart(fitted, prepared, unseen, 15, "full", verbose=0, deadline=math.inf).tables[
        "contribution"
    ]
    origins = parts.index.get_level_values("origin").unique()
    windows = fitted.windows(prepared, np.asarray(origins)).values
    distance = windows - fitted.background.windows.mean(axis=0)  # (M, T, C)
    linear = fitted.learned.linear.weights  # (L, C, H)
    weights = np.zeros((horizon, 16, distance.shape[2]))
    weights[:, 16 - len(linear) :] = np.moveaxis(linear, -1, 0)
    want = distance[:, None] * weights  # (M, H, T, C)
    found = parts.to_numpy().reshape(len(origins), horizon, distance.shape[2], 16)
    np.testing.assert_allclose(found, np.moveaxis(want, 2, 3)[..., ::-1], atol=1e-9)


@pytest.fixture(scope="module")
def network(table) -> MVLSTM:
    settings = {"hidden_size": 6, "members": 2, "max_epochs": 25, "verbose": 0, "device": "cpu"}
    return MVLSTM(window=16, learning_rate=2e-2, **settings).fit(table, "y", test=0.2)


@pytest.fixture(scope="module")
def explanation(table, network) -> Explanation:
    return network.explain(table, contributions=25)


def test_a_network_s_contributions_add_up(table, network, explanation) -> None:
    assert not any("miss their total" in note for note in explanation.notes)
    forecast = network.predict(table)
    made = pd.Series(forecast.members.mean(axis=(0, 2)), index=forecast.origin)
    sums = explanation.contribution.sum(axis=1) + explanation.background[0]
    known = sums.index.intersection(made.index)
    assert len(known) == 24  # the last one's value is not known yet
    gap = np.abs(sums[known] - made[known]).max() / table["y"].std()
    assert gap < TOLERANCE


def test_a_time_limit_is_kept_by_doing_less_which_notes_tell(table, monkeypatch) -> None:
    monkeypatch.setattr(decomposition, "windows_at_once", lambda *_: 2)
    model = AR(window=16).fit(table, "y", test=0.3)
    explanation = model.explain(table, effort="quick", time_limit=1e-3)
    assert explanation.n_windows == 100
    assert "To keep the time limit, importance was measured on 100 windows only." in (
        explanation.notes
    )
    latest = explanation.contribution.index
    assert list(latest) == list(table.index[-2:])
    assert any("the latest 2 were taken apart" in note for note in explanation.notes)
    whole = model.explain(table, effort="quick", time_limit=600)
    assert not any("limit" in note for note in whole.notes)


def test_fewer_rows_for_regressions_serve_several_series(monkeypatch) -> None:
    module = sys.modules["mvlstm.explain.measure"]

    def few(rows: Rows, families: Any, *_: Any) -> Left | None:
        return leave_out(rows.take(100), families)

    monkeypatch.setattr(module, "leave_out", few)
    one = datasets.load("synthetic", n=200).frame.assign(time=range(200))
    table = pd.concat([one.assign(name=name) for name in "abc"])
    model = AR(window=4).fit(table, "y", time="time", series="name", test=0.3)
    found = model.explain(table, effort="quick")
    assert any("learned anew without each variable from 100 rows" in note for note in found.notes)


@pytest.mark.parametrize("limit", [0, "1", float("nan")])
def test_time_limits_that_cannot_be(table, limit) -> None:
    model = AR(window=16).fit(table, "y", test=0.3)
    with pytest.raises(ParameterError, match=r"time_limit=.* positive number of seconds"):
        model.explain(table, time_limit=limit)


def test_of_many_steps_fewer_forecasts_are_taken_apart() -> None:
    counts = [count_apart("default", horizon) for horizon in (1, 4, 24, 10_000)]
    assert counts == [60, 30, 12, 8]


def test_lags_have_intervals_and_shares(explanation) -> None:
    lags = explanation.lags
    assert len(lags) == 9 * 16
    assert (lags["low"] <= lags["contribution"]).all()
    assert (lags["contribution"] <= lags["high"]).all()
    assert (lags["high"] > lags["low"]).mean() > 0.9
    np.testing.assert_allclose(lags.groupby("variable")["share"].sum(), 1.0)
    assert lags.loc[lags["lag"] == 1, "attention"].isna().all()  # enters directly
    assert lags.loc[lags["lag"] > 1, "attention"].notna().all()


def test_a_linear_driver_contributes_at_its_lag() -> None:
    table, truth = make_control("correlated", 3_000, seed=1)
    lags = AR(window=8).fit(table, "y", test=0.2).explain(table, effort="quick").lags
    for name, planted in truth.parameters["planted"].items():
        own = lags[lags["variable"] == name].set_index("lag")["contribution"]
        assert own.idxmax() in planted


def test_steps_ahead_have_importance_of_their_own(table) -> None:
    model = AR(window=16, horizon=3).fit(table, "y", test=0.2)
    explanation = model.explain(table, effort="quick")
    steps = explanation.by_step
    assert steps.groupby("step")["importance"].sum().to_numpy() == pytest.approx(1.0)
    assert (steps["error_increase_low"] <= steps["error_increase"]).all()
    assert (steps["error_increase"] <= steps["error_increase_high"]).all()
    mean = steps.groupby("variable")["error_increase"].mean()
    whole = explanation.importance.set_index("variable")["model_increase"]
    np.testing.assert_allclose(mean[whole.index], whole, rtol=1e-9)
    single = AR(window=4).fit(table, "y", test=0.2)
    assert single.explain(table, effort="quick", contributions=0).by_step is None


def test_values_that_cannot_be_forecast_from_are_refused_not_integrated() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": 1e-3 * rng.normal(size=300), "y": rng.normal(size=300).cumsum()})
    small = {"window": 4, "hidden_size": 2, "members": 1, "max_epochs": 1, "verbose": 0}
    model = MVLSTM(**small).fit(table, "y", test=0.3)
    table.iloc[-3, 0] = -3.4028235e38  # a common mark of a missing value
    with pytest.raises(DataError, match="at row 297, too far from the training rows"):
        model.explain(table, effort="quick")
