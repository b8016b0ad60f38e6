"""RETAIN: its network against a numpy forward pass, contributions that add up, its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import mvlstm as mv
from experiments.attention import signed_attention
from mvlstm.nn.retain import RETAINNetwork

from .learned import own_importance, windows_at

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


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"horizon": 3, "link": "linear", "difference": "auto"},
        {"horizon": 2, "transform": "log1p"},
    ],
)
def test_contributions_add_up_to_the_forecast(table, changes: dict) -> None:
    rows = table.assign(y=np.exp(table["y"] / 3)) if "transform" in changes else table
    model = mv.RETAIN(**SMALL, **changes).fit(rows, target="y", test=0.2)
    explanation = model.explain(rows, effort="quick", contributions=6)
    steps = range(1, model.horizon + 1)
    forecast = model.predict(rows)
    known = explanation.contribution.index.get_level_values("origin").unique()
    known = known.intersection(forecast.origin)
    assert len(known) >= 5
    for origin in known:
        row = forecast.origin.get_loc(origin)
        for step in steps:
            point = explanation.at(origin, step)
            total = point.background + point.by_variable["contribution"].sum()
            assert point.forecast == pytest.approx(total, rel=1e-9)
            members = forecast.members[:, row, step - 1]
            assert point.forecast == pytest.approx(members.mean(), abs=1e-3 * rows["y"].std())


def test_signed_attention_is_the_sum_of_the_coefficients(table, model) -> None:
    learned, windows = model.fitted_.learned, windows_at(model, table, np.array([40, 200]))
    found = signed_attention(learned, windows)
    assert found.shape == (2, 2, 1, 11)
    names = learned.trained.network.shapes
    for k in range(2):
        own = {name: learned.trained.parameter(name)[k] for name in names}
        for place, window in enumerate(windows.values):
            _, coefficients = retain_forward(own, window.astype(np.float64))
            np.testing.assert_allclose(found[k, place], coefficients.sum(axis=1), atol=1e-5)


def test_both_importances_sum_to_one(table, model) -> None:
    absolute, signed = model.fitted_.learned.importance
    assert (absolute >= 0).all()
    assert np.isclose(absolute.sum(), 1)
    assert np.isclose(signed.sum(), 1)
    np.testing.assert_array_equal(absolute, own_importance(model))
    windows = windows_at(model, table, np.arange(4, 349))  # of the training rows
    mean = signed_attention(model.fitted_.learned, windows).mean(axis=(0, 1, 2))
    np.testing.assert_allclose(signed, mean / mean.sum(), rtol=1e-3)


def test_save_and_load(table, model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(table).means, model.predict(table).means)
    np.testing.assert_array_equal(
        again.fitted_.learned.importance, model.fitted_.learned.importance
    )


def test_the_shortest_window(table) -> None:
    model = mv.RETAIN(**(SMALL | {"window": 2})).fit(table, target="y")
    assert model.predict(table).mean.shape == (498,)
