"""DUAL: its network against a numpy forward pass, its attention, its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import mvlstm as mv
from mvlstm.nn.dual import DUALNetwork, grow, scores

from .learned import own_importance, windows_at

SMALL = {"window": 5, "hidden_size": 6, "members": 2, "max_epochs": 2, "verbose": 0}


@pytest.fixture(scope="module")
def table():
    return mv.datasets.load("synthetic", n=500).frame


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def softmax(a):
    e = np.exp(a - a.max())
    return e / e.sum()


def lstm_step(p, prefix, x, h, s):
    """One step of a standard LSTM whose gates are stacked i, f, o, g; forget bias + 1."""
    m = len(h)
    a = x @ p[f"{prefix}_x"] + h @ p[f"{prefix}_h"] + p[f"{prefix}_b"]
    i, f, o, g = a[:m], a[m : 2 * m] + 1, a[2 * m : 3 * m], a[3 * m :]
    s = sigmoid(f) * s + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(s), s


def dual_forward(p, window):
    """Forecasts (H,) and mean attention (n,) of one member for one window (T, C)."""
    x, y = window[:, :-1], window[:, -1]
    T, m = len(x), len(p["bd"])
    h, s, states, alphas = np.zeros(m), np.zeros(m), [], []
    for t in range(T):
        query = np.concatenate([h, s]) @ p["We"]
        e = [p["ve"] @ np.tanh(query + x[:, k] @ p["Ue"] + p["be"]) for k in range(x.shape[1])]
        alpha = softmax(np.array(e))
        h, s = lstm_step(p, "enc", alpha * x[t], h, s)
        states.append(h)
        alphas.append(alpha)
    d, s = np.zeros(m), np.zeros(m)
    for t in range(T):
        query = np.concatenate([d, s]) @ p["Wd"]
        scored = [p["vd"] @ np.tanh(query + state @ p["Ud"] + p["bd"]) for state in states]
        context = softmax(np.array(scored)) @ np.array(states)
        mixed = p["w"] @ np.concatenate([[y[t]], context]) + p["b"]
        d, s = lstm_step(p, "dec", mixed, d, s)
    inner = np.concatenate([d, context]) @ p["Wy"] + p["by"]
    return inner @ p["vy"] + p["bo"], np.mean(alphas, axis=0)


@pytest.mark.parametrize("T", [2, 6])
def test_the_network_matches_a_numpy_forward_pass(T: int) -> None:
    network = DUALNetwork(n_columns=4, window=T, hidden_size=5, horizon=2)
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(3, *shape)) for name, shape in network.shapes.items()}
    p = {name: torch.as_tensor(a) for name, a in arrays.items()}
    x = rng.normal(size=(3, T, 4, 4))
    mean = network(p, torch.as_tensor(x)).mean.numpy()
    attention = network.attention(p, torch.as_tensor(x)).numpy()
    for k in range(3):
        own = {name: a[k] for name, a in arrays.items()}
        for b in range(4):
            expected, alpha = dual_forward(own, x[k, :, b])
            np.testing.assert_allclose(mean[k, b], expected, atol=1e-10)
            np.testing.assert_allclose(attention[k, b], alpha, atol=1e-10)


def test_fast_scores_have_the_gradients_of_the_formula() -> None:
    torch.manual_seed(0)
    keys, query, v = (
        torch.randn(shape, dtype=torch.float64).requires_grad_(True)
        for shape in ((2, 3, 4, 5), (2, 3, 5), (2, 5))
    )
    plain = torch.tanh(keys + query[:, :, None]) @ v[:, None, :, None]
    weight = torch.randn(2, 3, 4, dtype=torch.float64)
    a = (torch.softmax(plain.squeeze(-1), -1) * weight).sum()
    b = (torch.softmax(scores(keys, grow(keys), query, v), -1) * weight).sum()
    expected = torch.autograd.grad(a, (keys, query, v))
    for want, have in zip(expected, torch.autograd.grad(b, (keys, query, v)), strict=True):
        torch.testing.assert_close(have, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("q", [-39.0, 0.0, 39.0])
def test_fast_scores_bear_extreme_values(q: float) -> None:
    keys = torch.tensor([-1e4, -35.0, 0.0, 35.0, 1e4]).view(1, 1, 5, 1)
    found = 1 + scores(keys, grow(keys), torch.full((1, 1, 1), q), torch.ones(1, 1))[0, 0]
    inner = slice(1, 4)  # beyond 40 a key counts as 40
    expected = torch.tanh(keys.flatten() + q)
    torch.testing.assert_close(found[inner], expected[inner], rtol=0, atol=1e-5)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("settings", [{}, {"horizon": 3, "link": "linear"}, {"window": 2}])
def test_fit_attention_save_load(table, settings: dict, tmp_path: Path) -> None:
    model = mv.DUAL(**(SMALL | settings)).fit(table, target="y", test=0.2)
    forecast = model.predict(table)
    importance = own_importance(model)
    assert np.isnan(importance[-1])
    assert np.isclose(importance[:-1].sum(), 1)
    prior = model.fitted_.learned.attention(windows_at(model, table, np.arange(50, 60))).prior
    assert prior.shape == (2, 10, model.horizon, 11)
    np.testing.assert_allclose(prior.sum(axis=-1), 1, atol=1e-6)
    assert (prior[..., -1] == 0).all()
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(table).means, forecast.means)
    np.testing.assert_array_equal(own_importance(again), importance)


def test_a_target_alone_is_refused(table) -> None:
    with pytest.raises(mv.errors.DataError, match="variables besides the target"):
        mv.DUAL(**SMALL).fit(table[["y"]], target="y")
