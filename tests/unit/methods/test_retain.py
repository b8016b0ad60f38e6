"""RETAIN: its network against a numpy forward pass, contributions that add up, its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.nn.retain import RETAINNetwork

SMALL = {"window": 5, "hidden_size": 6, "members": 2, "max_epochs": 2, "verbose": 0}


@pytest.fixture(scope="module")
def table():
    return mv.datasets.load("synthetic", n=500).frame


@pytest.fixture(scope="module")
def model(table):
    return mv.RETAIN(**SMALL).fit(table, target="y", test=0.2)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def gru(p, which, inputs):
    """States of a standard GRU over inputs (T, m)."""
    m = inputs.shape[1]
    h, states = np.zeros(m), []
    for v in inputs:
        gates = sigmoid(p[f"W_{which}"] @ np.concatenate([v, h]) + p[f"b_{which}"])
        r, z = gates[:m], gates[m:]
        from_h = p[f"Wh_{which}"][0] @ h + p[f"bh_{which}"][0]
        j = np.tanh(v @ p[f"Wx_{which}"] + p[f"bj_{which}"][0] + r * from_h)
        h = (1 - z) * j + z * h
        states.append(h)
    return np.array(states)


def retain_forward(p, window):
    """Forecasts (H,) and coefficients (H, T, C) of one member for one window."""
    v = window @ p["emb"]  # (T, m)
    g, u = (gru(p, which, v[::-1])[::-1] for which in ("a", "b"))
    e = g @ p["wa"] + p["ba"]
    alpha = np.exp(e - e.max()) / np.exp(e - e.max()).sum()
    beta = np.tanh(u @ p["Wb"].T + p["bb"])
    context = (alpha[:, None] * beta * v).sum(axis=0)
    steps, columns = range(len(p["wo"])), range(window.shape[1])
    coefficients = [
        [[alpha[t] * p["wo"][h] @ (beta[t] * p["emb"][c]) for c in columns] for t in range(len(v))]
        for h in steps
    ]
    return p["wo"] @ context + p["bo"], np.array(coefficients)


@pytest.mark.parametrize("T", [2, 6])
def test_the_network_matches_a_numpy_forward_pass(T: int) -> None:
    network = RETAINNetwork(n_columns=4, hidden_size=5, horizon=2)
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(3, *shape)) for name, shape in network.shapes.items()}
    p = {name: torch.as_tensor(a) for name, a in arrays.items()}
    x = rng.normal(size=(3, T, 4, 4))
    mean = network(p, torch.as_tensor(x)).mean.numpy()
    coefficients = network.coefficients(p, torch.as_tensor(x)).numpy()
    for k in range(3):
        own = {name: a[k] for name, a in arrays.items()}
        for b in range(4):
            expected, coefs = retain_forward(own, x[k, :, b])
            np.testing.assert_allclose(mean[k, b], expected, atol=1e-10)
            np.testing.assert_allclose(coefficients[k, b], coefs, atol=1e-10)
            omega = (coefs * x[k, :, b]).sum(axis=(1, 2))
            np.testing.assert_allclose(omega, mean[k, b] - own["bo"], atol=1e-10)


@pytest.mark.parametrize("by_lag", [False, True])
def test_contributions_add_up_to_the_forecast(table, model, by_lag: bool) -> None:
    parts = model.contributions(table, by_lag=by_lag)
    forecast = model.predict(table).mean
    assert parts.index.equals(forecast.index)
    assert parts.shape[1] == (11 * 5 if by_lag else 11) + 1
    np.testing.assert_allclose(parts.sum(axis=1), forecast, atol=1e-5)


def test_contributions_add_up_with_a_link_and_several_steps(table) -> None:
    model = mv.RETAIN(**SMALL, horizon=3, link="linear", difference="auto")
    model.fit(table, target="y", test=0.2)
    parts, forecast = model.contributions(table), model.predict(table).mean
    assert list(parts.index) == list(forecast.index)
    np.testing.assert_allclose(parts.sum(axis=1), forecast, atol=1e-5)


@pytest.mark.parametrize("panel", [False, True])
def test_contributions_to_a_transformed_target_add_up_in_its_units(table, panel: bool) -> None:
    rows = table.assign(y=np.exp(table["y"] / 3), time=np.arange(len(table)))
    more = {"time": "time"}
    if panel:
        rows = pd.concat([rows.assign(s="a"), rows.assign(s="b", y=9 * rows["y"])])
        more |= {"series": "s"}
    model = mv.RETAIN(**SMALL, horizon=2, transform="log1p").fit(rows, "y", test=0.2, **more)
    parts, forecast = model.contributions(rows, by_lag=True), model.predict(rows).mean
    assert parts.index.equals(forecast.index)
    np.testing.assert_allclose(parts.sum(axis=1), forecast, rtol=1e-6)


def test_a_lags_contribution_vanishes_with_its_input(table, model) -> None:
    parts = model.contributions(table, by_lag=True)
    center = model.preparation_.scaler.center[2]
    changed = table.copy()
    changed.iloc[100, 2] = center  # the scaled input is zero
    row = model.contributions(changed, by_lag=True).iloc[101 - 5]  # the window that ends there
    assert abs(row["x2", 1]) < 1e-6 < abs(parts.iloc[101 - 5]["x2", 1])


def test_both_importances_sum_to_one(model) -> None:
    absolute, signed = model.variable_importance(), model.variable_importance("signed")
    assert (absolute >= 0).all()
    assert np.isclose(absolute.sum(), 1)
    assert np.isclose(signed.sum(), 1)
    np.testing.assert_array_equal(absolute, model._model_importance())


def test_save_and_load(table, model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(table).means, model.predict(table).means)
    np.testing.assert_array_equal(again.importance_, model.importance_)


def test_the_shortest_window(table) -> None:
    model = mv.RETAIN(**(SMALL | {"window": 2})).fit(table, target="y")
    assert model.predict(table).mean.shape == (498,)
