"""The designs for several steps ahead read what they say they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from experiments.steps import DESIGNS, case, errors, made, prepared
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import Parameters, count, of_layer, unflatten
from mvlstm.nn.reference import reference_attention, reference_recurrence

K, T, B, N, d, H = 2, 7, 5, 3, 4, 3
SHARED: dict[str, Any] = {"n_variables": N, "hidden_size": d, "horizon": H, "sigma": "predicted"}
KNOWN: dict[str, Any] = {"known": (1,), "known_columns": (2,)}
GROUPS = (0, 0, 1, 2)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def parameters(network: MVLSTMNetwork) -> Parameters:
    return unflatten(0.5 * drawn(K, count(network.shapes)), network.shapes)


def test_the_plain_design_is_the_network_of_today() -> None:
    plain, x = MVLSTMNetwork(GROUPS, **SHARED), drawn(K, T, B, 4, seed=1)
    same = DESIGNS["shared"](GROUPS, **SHARED, **KNOWN)
    p = parameters(plain)
    for one, other in zip(plain(p, x), same(p, x), strict=True):
        torch.testing.assert_close(one, other)


def test_a_known_variable_tells_of_each_step_by_its_state_at_that_row() -> None:
    network, x = DESIGNS["state"](GROUPS, **SHARED, **KNOWN), drawn(K, T, B, 4, seed=1)
    p = parameters(network)
    layer = network.stack[0]
    every = reference_recurrence(layer, of_layer(p, layer.shapes, 0), x)
    weights = reference_attention(every, p["Ws"], p["bs"]).weights.numpy()
    states = every.numpy()
    found = network(p, x)
    for k, b, h in [(0, 0, 0), (1, 4, 1), (1, 2, 2)]:
        mu = np.empty(N)
        for n in range(N):
            row = T - H + h if n == 1 else T - 1
            context = weights[k, b, n] @ states[k, :-1, b, n]
            summary = np.concatenate([states[k, row, b, n], context])
            mu[n] = p["Wo"].numpy()[k, h, n] @ summary + p["bo"].numpy()[k, h, n]
        np.testing.assert_allclose(found.mu[k, b, h], mu, atol=1e-12)


@pytest.mark.parametrize("name", ["also", "read"])
def test_what_is_added_for_a_step_comes_from_known_columns_up_to_the_row_after(name) -> None:
    network = DESIGNS[name](GROUPS, **SHARED, **KNOWN, gates="variable")
    p, x = parameters(network), drawn(K, T, B, 4, seed=1).requires_grad_(True)
    p["Wo"] = torch.zeros_like(p["Wo"])
    mu = network(p, x).mu
    for h in range(H):
        (gradient,) = torch.autograd.grad(mu[:, :, h].sum(), x, retain_graph=True)
        row = T - H + h
        assert gradient[:, row, :, 2].abs().min() > 0
        assert not gradient[:, row + 2 :].any()
        assert not gradient[..., [0, 1, 3]].any()


def test_a_trial_trains_each_design_on_the_same_link(monkeypatch) -> None:
    monkeypatch.setattr("experiments.steps.made", lambda seed: made(seed, rows=400))
    one = case("made", later=False)
    problem, labels = prepared(one)
    small = {"max_epochs": 1, "hidden_size": 2, "seed": 0}
    found = {name: errors(one, problem, labels, name, **small) for name in DESIGNS}
    assert len({each.shape for each in found.values()}) == 1
    assert len({float(each.sum()) for each in found.values()}) == len(DESIGNS)
