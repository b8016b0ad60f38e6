"""Training: members do not depend on one another, runs repeat and resume, the best is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mvlstm.errors import TrainingError
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import of_layer, unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train, validation_errors
from mvlstm.train.predict import gpu_chunk
from mvlstm.train.state import TrainState

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 4, attention="free", loss_name="mse")
CONFIG = TrainConfig(batch_size=16, max_epochs=3, patience=3)
MEMBERS = [
    Member(seed=1, learning_rate=1e-2, dropout=0.3),
    Member(seed=2, learning_rate=3e-3, l2=1e-3),
    Member(seed=3, learning_rate=1e-2, dropout=0.1),
]


def make_data(dtype: torch.dtype = torch.float64, rows: int = 300, T: int = 6) -> WindowData:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((rows, 3))
    labels = np.full((rows, 1), np.nan)
    labels[:-1, 0] = np.tanh(table[:-1, 0]) + 0.5 * table[:-1, 2]
    origins = torch.arange(T - 1, rows - 1)
    return WindowData(
        torch.tensor(table, dtype=dtype),
        torch.tensor(labels, dtype=dtype),
        origins[:200],
        origins[200:],
        T,
    )


@pytest.fixture(scope="module")
def together() -> TrainState:
    return train(NETWORK, make_data(), MEMBERS, CONFIG, dtype=torch.float64)


@pytest.mark.parametrize("k", range(3))
def test_a_member_does_not_depend_on_its_neighbours(together, k) -> None:
    alone = train(NETWORK, make_data(), [MEMBERS[k]], CONFIG, dtype=torch.float64)
    torch.testing.assert_close(alone.best[0], together.best[k], rtol=0, atol=1e-9)
    torch.testing.assert_close(alone.errors[:, 0], together.errors[:, k], rtol=0, atol=1e-9)


def test_variants_of_members_learn_their_own_labels_under_their_own_penalty() -> None:
    data = make_data()
    network = replace(NETWORK, isolation=(0.0, 0.1))
    both = replace(data, labels=torch.stack([data.labels, -2 * data.labels]))
    members = [replace(MEMBERS[0], variant=1), MEMBERS[1], replace(MEMBERS[2], variant=1)]
    together = train(network, both, members, CONFIG, dtype=torch.float64)
    for k, member in enumerate(members):
        alone = train(
            replace(NETWORK, isolation=network.isolation[member.variant]),
            replace(data, labels=both.labels[member.variant]),
            [replace(member, variant=0)],
            CONFIG,
            dtype=torch.float64,
        )
        torch.testing.assert_close(alone.best[0], together.best[k], rtol=0, atol=1e-9)
        torch.testing.assert_close(alone.errors[:, 0], together.errors[:, k], rtol=0, atol=1e-9)


def test_the_error_shown_is_that_of_one_kind() -> None:
    data = make_data()
    both = replace(data, labels=torch.stack([data.labels, 100 * data.labels]))
    shown = []
    members = [MEMBERS[0], replace(MEMBERS[1], variant=1)]
    state = train(
        NETWORK, both, members, CONFIG, dtype=torch.float64, on_epoch=lambda p, _: shown.append(p)
    )
    assert shown[-1].error == pytest.approx(float(state.best_error[0]))
    assert shown[-1].members == 2


def test_a_member_depends_little_on_its_neighbours_in_float32() -> None:
    data = make_data(torch.float32)
    together = train(NETWORK, data, MEMBERS, CONFIG)
    alone = train(NETWORK, data, MEMBERS[2:], CONFIG)
    torch.testing.assert_close(alone.best[0], together.best[2], rtol=0, atol=1e-4)


def test_the_same_seeds_give_the_same_bits(together) -> None:
    again = train(NETWORK, make_data(), MEMBERS, CONFIG, dtype=torch.float64)
    assert torch.equal(again.best, together.best)


def test_other_seeds_give_other_weights(together) -> None:
    assert not torch.equal(together.best[0], together.best[2])


def test_the_best_weights_are_restored_and_their_error_is_recorded(together) -> None:
    data = make_data()
    errors = validation_errors(NETWORK, together.best, data, data.stop)
    torch.testing.assert_close(errors, together.best_error)
    assert (
        together.best_error <= torch.from_numpy(np.nanmin(together.errors, axis=0)) + 1e-12
    ).all()


def test_a_run_resumed_from_its_tensors_ends_with_the_same_bits(together) -> None:
    data = make_data()
    first = train(
        NETWORK, data, MEMBERS, TrainConfig(16, max_epochs=1, patience=3), dtype=torch.float64
    )
    stored = {name: tensor.clone() for name, tensor in first.tensors().items()}
    state = TrainState.from_tensors(stored, torch.device("cpu"))
    resumed = train(NETWORK, data, MEMBERS, CONFIG, state=state, dtype=torch.float64)
    for name, tensor in together.tensors().items():
        np.testing.assert_array_equal(resumed.tensors()[name], tensor, err_msg=name)


def test_training_learns(together) -> None:
    state = train(NETWORK, make_data(), MEMBERS[:1], TrainConfig(16, 40, 40), dtype=torch.float64)
    assert float(state.best_error[0]) < 0.5 * float(make_data().labels[:-1].std())


def test_each_member_stops_on_its_own() -> None:
    members = [Member(0, learning_rate=1e-2), Member(1, learning_rate=3.0)]
    config = TrainConfig(batch_size=16, max_epochs=12, patience=2)
    state = train(NETWORK, make_data(), members, config, dtype=torch.float64)
    epochs = torch.isfinite(state.errors).sum(dim=0)
    assert epochs[0] > epochs[1] >= 3
    assert state.best_epoch[0] > state.best_epoch[1]


def test_l2_adds_the_gradient_of_the_squared_norm() -> None:
    """After one step Adam's mean is a tenth of the gradient, so the penalty's share shows."""
    data = make_data()
    config = TrainConfig(batch_size=len(data.train), max_epochs=1, gradient_clip=1e12)
    means = [
        train(NETWORK, data, [Member(0, 1e-3, l2=l2)], config, dtype=torch.float64).first
        for l2 in (0.0, 0.37)
    ]
    start = TrainState.start(NETWORK, [Member(0)], torch.device("cpu"), torch.float64).flat
    torch.testing.assert_close(10 * (means[1] - means[0]), 2 * 0.37 * start)


def test_nan_loss_stops_with_a_message_that_names_the_setting() -> None:
    data = make_data()
    data.labels[50] = torch.inf
    with pytest.raises(TrainingError, match=r"epoch 1 .*learning_rate=0\.01.*Lower"):
        train(NETWORK, data, MEMBERS, CONFIG, dtype=torch.float64)


def test_a_failed_member_can_be_dropped_from_a_grid() -> None:
    members = [Member(0, 1e-2), Member(1, float("inf"))]
    config = TrainConfig(16, 3, 3, drop_failed=True)
    state = train(NETWORK, make_data(), members, config, dtype=torch.float64)
    assert torch.isfinite(state.best_error[0])
    assert not torch.isfinite(state.best_error[1])


def test_parameters_outside_the_masks_do_not_exist() -> None:
    """Compact parameters: the assembled weights are zero off the blocks after training too."""
    from oracles.standard_cell import assemble

    state = train(NETWORK, make_data(), MEMBERS, CONFIG, dtype=torch.float64)
    layer = NETWORK.stack[0]
    p = unflatten(state.flat, NETWORK.shapes)
    weight_ih, weight_hh, _, _ = assemble(layer, of_layer(p, layer.shapes, 0))
    D, d = layer.size, layer.hidden_size
    candidate = weight_hh[:, 2 * D : 3 * D].view(3, 3, d, 3, d)
    for n in range(3):
        for m in range(3):
            block = candidate[:, n, :, m]
            assert (block == 0).all() if n != m else (block != 0).all()
    candidate_x = weight_ih[:, 2 * D : 3 * D].view(3, 3, d, 3)
    off = ~torch.eye(3, dtype=torch.bool)
    assert (candidate_x.permute(0, 1, 3, 2)[:, off] == 0).all()


@pytest.mark.parametrize(("members", "window"), [(1, 2), (1, 7), (5, 30), (100, 1000)])
def test_a_gpu_is_given_no_more_windows_than_a_launch_can_have(members: int, window: int) -> None:
    assert 256 <= gpu_chunk(members, window) <= 65_535
