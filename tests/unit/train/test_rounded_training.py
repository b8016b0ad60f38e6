"""Training with rounded gradients repeats and resumes to the bit, and learns as well."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mvlstm.nn import precision
from mvlstm.nn.backends import rounded as _rounded
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train, validation_errors
from mvlstm.train.state import TrainState

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 8, isolation=1e-3)
CONFIG = TrainConfig(batch_size=16, max_epochs=4, patience=4, averaging=0.9)
MEMBERS = [Member(seed=1, learning_rate=1e-2), Member(seed=2, learning_rate=1e-2, dropout=0.2)]


def make_data(rows: int = 400, T: int = 6) -> WindowData:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn((rows, 3), generator=generator)
    labels = table[:, :1].tanh() + 0.5 * table[:, 2:].roll(2, 0)
    origins = torch.arange(T - 1, rows)
    return WindowData(table, labels, origins[:300], origins[300:], T)


def train_with(rounded: bool, monkeypatch, network=NETWORK, config=CONFIG, **options) -> TrainState:
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: rounded)
    monkeypatch.setattr(_rounded, "LEAST_WORK", 0)
    return train(network, make_data(), MEMBERS, config, **options)


def test_the_same_seeds_give_the_same_bits(monkeypatch) -> None:
    one, other = train_with(True, monkeypatch), train_with(True, monkeypatch)
    assert torch.equal(one.best, other.best)
    assert torch.equal(one.flat, other.flat)


def test_a_resumed_run_ends_with_the_same_bits(monkeypatch) -> None:
    whole = train_with(True, monkeypatch)
    short = TrainConfig(batch_size=16, max_epochs=2, patience=4, averaging=0.9)
    first = train_with(True, monkeypatch, config=short)
    stored = {name: tensor.clone() for name, tensor in first.tensors().items()}
    state = TrainState.from_tensors(stored, torch.device("cpu"))
    resumed = train_with(True, monkeypatch, state=state)
    for name, tensor in whole.tensors().items():
        np.testing.assert_array_equal(resumed.tensors()[name], tensor, err_msg=name)


@pytest.mark.parametrize("layers", [1, 2])
def test_it_learns_what_exact_gradients_learn(layers, monkeypatch) -> None:
    """Validation errors within 5 % of one another, and half of those of the mean."""
    network = MVLSTMNetwork((0, 1, 2), 3, 8, layers=layers, isolation=1e-3)
    config = TrainConfig(batch_size=16, max_epochs=15, patience=15, averaging=0.9)
    exact = train_with(False, monkeypatch, network, config).best_error
    rounded = train_with(True, monkeypatch, network, config).best_error
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0)
    assert (rounded < 0.5 * make_data().labels.std()).all()


def test_validation_and_prediction_stay_exact(monkeypatch) -> None:
    """What a network says after training does not depend on how its gradients were taken."""
    state = train_with(True, monkeypatch)
    data = make_data()
    errors = validation_errors(NETWORK, state.best, data, data.stop)
    torch.testing.assert_close(errors, state.best_error, rtol=0, atol=0)
    p, windows = unflatten(state.best, NETWORK.shapes), data.windows(data.stop.expand(2, -1))
    found = NETWORK(p, windows).mean
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: False)
    assert torch.equal(NETWORK(p, windows).mean, found)
