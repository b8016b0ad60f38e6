"""Weights on variables that are shrunk together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.shrinkage import Shrinkage

OWNER = torch.tensor([-1, 0, 0, 1, 0, -1, 1])


def shrunk(flat: torch.Tensor, strength: list[float], rate: float) -> torch.Tensor:
    found = flat.clone()
    each = torch.tensor(strength, dtype=flat.dtype).unsqueeze(1)
    Shrinkage(OWNER, each)(found, torch.full_like(each, rate))
    return found


def test_it_is_the_formula() -> None:
    flat = torch.randn((2, 7), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, expected = shrunk(flat, [0.1, 0.4], 0.05).numpy(), flat.numpy().copy()
    for k, s in enumerate([0.1, 0.4]):
        for variable in (0, 1):
            own = OWNER.numpy() == variable
            norm = np.linalg.norm(expected[k, own])
            expected[k, own] *= max(0.0, 1 - 0.05 * s * np.sqrt(own.sum()) / norm)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_weights_of_no_variable_and_members_without_it_stay_as_they_are() -> None:
    flat = torch.randn((2, 7), generator=torch.Generator().manual_seed(0))
    found = shrunk(flat, [0.0, 100.0], 1.0)
    torch.testing.assert_close(found[0], flat[0], rtol=0, atol=0)
    torch.testing.assert_close(found[1, [0, 5]], flat[1, [0, 5]], rtol=0, atol=0)
    assert not found[1, 1:5].any() and not found[1, 6], "no further than to zero"


def test_weights_that_are_zero_stay_zero() -> None:
    assert not shrunk(torch.zeros((1, 7)), [0.5], 1.0).any()


@pytest.mark.parametrize("gates", ["full", "variable"])
def test_a_weight_belongs_to_the_variable_it_takes_in(gates) -> None:
    network = MVLSTMNetwork((0, 0, 1, 2), 3, 2, gates=gates, layers=2)
    owner = unflatten(network.owner[None], network.shapes)
    assert owner["Wx_0"][0].tolist() == [[0, 0], [0, 0], [1, 1], [-1, -1]]
    if gates == "full":
        columns = owner["W_0"][0]  # (G D, C + D)
        assert (columns == torch.tensor([0, 0, 1, -1, *[-1] * 6])).all()
        read = {"Wx_0", "W_0"}
    else:
        assert (owner["Gx_0"][0].flatten(1) == torch.tensor([[0], [0], [1], [-1]])).all()
        read = {"Wx_0", "Gx_0"}
    assert {name for name, values in owner.items() if (values >= 0).any()} == read


@pytest.mark.parametrize("own_past_alone", [True, False])
def test_a_useless_variable_is_dropped_and_a_useful_one_is_not(own_past_alone) -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn((900, 3), generator=generator, dtype=torch.float64)
    labels = 2 * table[:, :1].tanh() + 0.1 * table[:, 2:]
    if own_past_alone:
        table = table[:, 2:]
    origins = torch.arange(3, 899)
    data = WindowData(table, labels, origins[:700], origins[700:], 4)
    C = table.shape[1]
    network = MVLSTMNetwork(tuple(range(C)), C, 3, loss_name="mse", attention="free")
    members = [Member(0, 0.02), Member(0, 0.02, shrinkage=0.3)]
    config = TrainConfig(batch_size=64, max_epochs=15, patience=15)
    state = train(network, data, members, config, dtype=torch.float64)
    owner = network.owner
    if own_past_alone:  # nothing to shrink
        torch.testing.assert_close(state.best[0], state.best[1], rtol=0, atol=0)
        return
    useful, useless = (state.best[:, owner == k].norm(dim=1) for k in (0, 1))
    assert float(useless[0]) > 0.1 and float(useless[1]) == 0.0
    assert float(useful[1]) > 0.5
