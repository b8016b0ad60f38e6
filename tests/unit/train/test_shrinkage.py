"""Weights on variables that are shrunk together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import Readers, count, unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.shrinkage import Shrinkage

READERS = Readers(torch.tensor([[1, 2], [4, 7], [3, 6]]), torch.tensor([0, 0, 1]))
OWNER = np.array([-1, 0, 0, 1, 0, -1, 1, 0])  # the variable that each of eight parameters reads


def shrunk(flat: torch.Tensor, strength: list[float], rate: float) -> torch.Tensor:
    found = flat.clone()
    each = torch.tensor(strength, dtype=flat.dtype).unsqueeze(1)
    Shrinkage(READERS, each)(found, torch.full_like(each, rate))
    return found


def test_it_is_the_formula() -> None:
    flat = torch.randn((2, 8), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, expected = shrunk(flat, [0.1, 0.4], 0.05).numpy(), flat.numpy().copy()
    for k, s in enumerate([0.1, 0.4]):
        for variable in (0, 1):
            own = np.array([one == variable for one in OWNER])
            norm = np.linalg.norm(expected[k, own])
            expected[k, own] *= max(0.0, 1 - 0.05 * s * np.sqrt(own.sum()) / norm)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_weights_of_no_variable_and_members_without_it_stay_as_they_are() -> None:
    flat = torch.randn((2, 8), generator=torch.Generator().manual_seed(0))
    found = shrunk(flat, [0.0, 100.0], 1.0)
    torch.testing.assert_close(found[0], flat[0], rtol=0, atol=0)
    torch.testing.assert_close(found[1, [0, 5]], flat[1, [0, 5]], rtol=0, atol=0)
    assert not found[1, OWNER >= 0].any(), "no further than to zero"


def test_weights_that_are_zero_stay_zero() -> None:
    assert not shrunk(torch.zeros((1, 8)), [0.5], 1.0).any()


def parameters_read(network: MVLSTMNetwork) -> dict[int, dict[str, set[tuple[int, ...]]]]:
    """Return for every variable the places of the parameters that take it in, by name."""
    places, variables = network.readers
    found: dict[int, dict[str, set[tuple[int, ...]]]] = {}
    for row, variable in zip(places, variables.tolist(), strict=True):
        mark = torch.zeros((1, count(network.shapes)))
        mark[0, row] = 1.0
        for name, values in unflatten(mark, network.shapes).items():
            hit = {tuple(place) for place in values[0].nonzero().tolist()}
            if hit:
                found.setdefault(variable, {}).setdefault(name, set()).update(hit)
    return found


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("gates", ["full", "variable"])
def test_a_variable_is_read_by_the_weights_on_its_columns(gates, cell) -> None:
    network = MVLSTMNetwork((0, 0, 1, 2), 3, 2, gates=gates, cell=cell, layers=2)
    found = parameters_read(network)
    assert set(found) == {0, 1}, "the own past is left alone"
    for variable, columns in ((0, (0, 1)), (1, (2,))):
        assert found[variable].pop("Wx_0") == {(c, k) for c in columns for k in range(2)}
        if gates == "full":
            rows = network.shapes["W_0"][0]
            assert found[variable].pop("W_0") == {(r, c) for r in range(rows) for c in columns}
        else:
            _, G, d = network.shapes["Gx_0"]
            expected = {(c, g, k) for c in columns for g in range(G) for k in range(d)}
            assert found[variable].pop("Gx_0") == expected
        assert not found[variable]


def trained(columns: slice) -> tuple[MVLSTMNetwork, torch.Tensor]:
    """Train a member without and with shrinkage on a useful, a useless and the own column."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn((900, 3), generator=generator, dtype=torch.float64)
    labels = 2 * table[:, :1].tanh() + 0.1 * table[:, 2:]
    table = table[:, columns]
    origins = torch.arange(3, 899)
    data = WindowData(table, labels, origins[:700], origins[700:], 4)
    C = table.shape[1]
    network = MVLSTMNetwork(tuple(range(C)), C, 3, loss_name="mse", attention="free")
    members = [Member(0, 0.02), Member(0, 0.02, shrinkage=0.3)]
    config = TrainConfig(batch_size=64, max_epochs=15, patience=15)
    return network, train(network, data, members, config, dtype=torch.float64).best


def test_a_useless_variable_is_dropped_and_a_useful_one_is_not() -> None:
    network, best = trained(slice(None))
    useful, useless = (best[:, row].norm(dim=1) for row in network.readers.places)
    assert float(useless[0]) > 0.1 and float(useless[1]) == 0.0
    assert float(useful[1]) > 0.5


def test_a_target_alone_has_nothing_to_shrink() -> None:
    network, best = trained(slice(2, None))
    assert network.readers is None
    torch.testing.assert_close(best[0], best[1], rtol=0, atol=0)
