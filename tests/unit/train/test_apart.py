"""Members trained apart, in turns: the same bits as together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mvlstm as mv
from mvlstm.engine import opened
from mvlstm.errors import MVLSTMWarning, TrainingError
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.train import apart
from mvlstm.train.apart import Shared, train_apart
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.state import HISTORY, TrainState
from mvlstm.train.stepper import Stepper

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 4)
MEMBERS = [
    Member(seed=1, learning_rate=1e-2, dropout=0.3, l2=1e-3),
    Member(seed=2, learning_rate=3e-2, shrinkage=0.3),
    Member(seed=3, learning_rate=5e-3),
]
PLANS = {
    "patience": TrainConfig(batch_size=32, max_epochs=6, patience=1, leave_out=0.2),
    "annealed": TrainConfig(batch_size=32, max_epochs=3, annealing=3, near_rows=3, averaging=0.9),
    "finishing": TrainConfig(batch_size=32, max_epochs=6, patience=1, finish=0.2),
}


def make_data() -> WindowData:
    table = torch.randn((150, 3), generator=torch.Generator().manual_seed(0))
    labels = table[:, :1].roll(-1) + 0.3 * table[:, 1:2]
    return WindowData(table, labels, torch.arange(6, 110), torch.arange(110, 149), 6)


def in_turns(config: TrainConfig, seconds: float, **more: Any) -> Any:
    shared = Shared.of(NETWORK, make_data(), more.pop("members", MEMBERS), config, "cpu")
    with opened("local") as engine:
        states = more.pop("states", [None] * len(shared.members))
        return train_apart(engine, shared, states, seconds=seconds, **more)


def check_same(found: TrainState, expected: TrainState) -> None:
    for name in ("best", "best_error", "best_epoch", "lowered", "running", "epoch", *HISTORY):
        ours, other = getattr(found, name), getattr(expected, name)
        assert torch.allclose(ours, other, rtol=0, atol=0, equal_nan=ours.is_floating_point()), name


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("seconds", [0.0, 60.0])  # a step in each turn, and all in one
def test_members_apart_have_the_bits_they_have_together(plan: str, seconds: float) -> None:
    expected = train(NETWORK, make_data(), MEMBERS, PLANS[plan])
    found, stopped, device = in_turns(PLANS[plan], seconds)
    assert (stopped, device) == (None, "cpu")
    check_same(found, expected)


def test_parameters_of_all_members_begin_alike_in_memory() -> None:
    """What products round to depends on that, in networks that are large enough."""
    data, config = make_data(), PLANS["patience"]
    state = TrainState.start(NETWORK, MEMBERS, data.device, torch.float32)
    assert state.flat.shape[1] % 16  # else rows would be aligned as they lie
    stepper = Stepper(NETWORK, data, config, MEMBERS, state)
    for k in range(len(MEMBERS)):
        leaf = stepper._leaf(slice(k, k + 1))
        assert leaf.data_ptr() % 64 == 0 and torch.equal(leaf[0], state.flat[k])


def test_what_a_turn_brought_can_be_gone_on_from() -> None:
    config = PLANS["patience"]
    kept: dict[int, TrainState] = {}

    class Killed(Exception):
        pass

    def save(member: int, state: TrainState, finished: bool) -> None:
        kept[member] = state
        if int(state.epoch) == 2:
            raise Killed

    with pytest.raises(Killed):
        in_turns(config, 0.0, save=save)
    states = [kept[0], kept[1], None]  # of which two had begun
    found, _, _ = in_turns(config, 60.0, states=states)
    check_same(found, train(NETWORK, make_data(), MEMBERS, config))


def test_members_that_ended_are_not_trained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    config = PLANS["annealed"]
    whole = train(NETWORK, make_data(), MEMBERS, config)
    monkeypatch.setattr(apart, "take_turn", None)
    found, _, _ = in_turns(config, 0.0, states=whole.each())
    check_same(found, whole)


def test_a_time_limit_ends_all_members_with_what_they_have() -> None:
    config = TrainConfig(batch_size=8, max_epochs=10**6, patience=10**6)
    found, stopped, _ = in_turns(config, 60.0, time_limit=0.2)
    assert stopped == "time limit"
    assert len(found.best) == 3 and torch.isfinite(found.best).all()


def test_a_member_that_fails_is_named_by_its_place() -> None:
    members = [*MEMBERS[:2], Member(seed=3, learning_rate=1e30)]
    config = TrainConfig(batch_size=32, max_epochs=3)
    with pytest.raises(TrainingError, match=r"\(member 2\) with learning_rate=1e\+30"):
        in_turns(config, 60.0, members=members)


def test_a_fit_begun_apart_is_gone_on_with_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVLSTM_CHECKPOINT_SECONDS", "0")
    table = mv.datasets.load("synthetic", n=300).frame
    settings = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 2, "batch_size": 64}

    def fit(**more: Any) -> mv.MVLSTM:
        model = mv.MVLSTM(**settings, schedule="constant", link="linear", device="cpu", verbose=0)
        return model.fit(table, "y", test=0.2, **more)

    expected = fit()
    with pytest.warns(MVLSTMWarning, match="time limit"):
        fit(checkpoint=tmp_path, time_limit=1e-9)
    assert [one.name for one in tmp_path.iterdir()] == ["fit.checkpoint.safetensors"]
    from mvlstm.methods.network import training

    together = training._train_together
    monkeypatch.setattr(training, "_train_together", training._train_apart)
    turns = []
    monkeypatch.setattr(apart, "_state", lambda arrays: turns.append(1) or stop(arrays, turns))
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path)
    monkeypatch.undo()
    assert training._train_together is together
    names = {one.name for one in tmp_path.iterdir()}
    assert "fit-0.checkpoint.safetensors" in names
    found = fit(checkpoint=tmp_path)
    mine, theirs = found.fitted_.learned, expected.fitted_.learned
    assert np.array_equal(mine.trained.flat, theirs.trained.flat)
    assert np.array_equal(found.history_.valid_rmse, expected.history_.valid_rmse)


def stop(arrays: Any, turns: list[int]) -> TrainState:
    if len(turns) > 5:
        raise KeyboardInterrupt
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    return TrainState.from_tensors(tensors, torch.device("cpu"))
