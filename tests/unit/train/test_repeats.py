"""Training repeats and resumes to the bit, and learns what the reference learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.state import TrainState
from oracles.equations import reference_attention, reference_recurrence

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 8, isolation=1e-3)
CONFIG = TrainConfig(batch_size=16, max_epochs=4, patience=4, averaging=0.9)
MEMBERS = [Member(seed=1, learning_rate=1e-2), Member(seed=2, learning_rate=1e-2, dropout=0.2)]


def make_data(rows: int = 400, T: int = 6) -> WindowData:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn((rows, 3), generator=generator)
    labels = table[:, :1].tanh() + 0.5 * table[:, 2:].roll(2, 0)
    origins = torch.arange(T - 1, rows)
    return WindowData(table, labels, origins[:300], origins[300:], T)


def run(network: MVLSTMNetwork = NETWORK, config: TrainConfig = CONFIG, **options) -> TrainState:
    return train(network, make_data(), MEMBERS, config, **options)


def test_the_same_seeds_give_the_same_bits() -> None:
    one, other = run(), run()
    assert torch.equal(one.best, other.best)
    assert torch.equal(one.flat, other.flat)


def test_a_resumed_run_ends_with_the_same_bits() -> None:
    short = TrainConfig(batch_size=16, max_epochs=2, patience=4, averaging=0.9)
    stored = {name: tensor.clone() for name, tensor in run(config=short).tensors().items()}
    resumed = run(state=TrainState.from_tensors(stored, torch.device("cpu")))
    for name, tensor in run().tensors().items():
        np.testing.assert_array_equal(resumed.tensors()[name], tensor, err_msg=name)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [1, 2])
def test_it_learns_what_the_reference_learns(cell, layers, monkeypatch) -> None:
    """Weights after four epochs in double precision, from the equations as they read."""
    network = MVLSTMNetwork((0, 1, 2), 3, 8, layers=layers, cell=cell, isolation=1e-3)
    data = make_data()
    data = replace(data, table=data.table.double(), labels=data.labels.double())
    fast = train(network, data, MEMBERS, CONFIG, dtype=torch.float64)
    monkeypatch.setattr("mvlstm.nn.recurrence.recurrence", reference_recurrence)
    monkeypatch.setattr("mvlstm.nn.mvlstm.temporal_attention", reference_attention)
    slow = train(network, data, MEMBERS, CONFIG, dtype=torch.float64)
    torch.testing.assert_close(fast.flat, slow.flat, rtol=0, atol=1e-8)
