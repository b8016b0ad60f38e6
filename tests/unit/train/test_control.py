"""Stopping and saving after any step, and going on from there to the same bits."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from mvlstm.errors import TrainingError
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.train import loop, stepper
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control
from mvlstm.train.data import WindowData
from mvlstm.train.loop import Clock, train, with_weights_now
from mvlstm.train.state import TrainState

NETWORK = MVLSTMNetwork((0, 1), 2, 3, attention="free", loss_name="mse")
CONFIG = TrainConfig(batch_size=16, max_epochs=6, patience=1)
MEMBERS = [Member(1, 1e-2, dropout=0.3), Member(2, 1.0), Member(3, 3e-3, 1e-3)]
STEPS = 5  # an epoch


def make_data() -> WindowData:
    rng = np.random.default_rng(0)
    table = torch.tensor(rng.standard_normal((130, 2)), dtype=torch.float32)
    labels = torch.tanh(table[:, :1]).roll(-1, 0)
    origins = torch.arange(3, 129)
    return WindowData(table, labels, origins[:90], origins[90:], 4)


class StopAfter(Control):
    """Stops after so many questions, and keeps what was saved."""

    def __init__(self, questions: int, every: float = 1e9) -> None:
        self.states: list[tuple[dict[str, torch.Tensor], bool]] = []
        super().__init__(save=self.keep, every=every)
        self.left = questions

    def keep(self, state: TrainState, finished: bool) -> None:
        self.states.append(({k: v.clone() for k, v in state.tensors().items()}, finished))

    def must_stop(self, closing: float) -> bool:
        assert closing > 0
        self.left -= 1
        if self.left == 0:
            self.stopped = "interrupt"
        return super().must_stop(closing)


@pytest.fixture(autouse=True)
def asked_after_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepper, "PAUSE_EVERY", 0.0)


@pytest.fixture(scope="module")
def whole() -> dict[str, torch.Tensor]:
    state = train(NETWORK, make_data(), MEMBERS, CONFIG)
    epochs = torch.isfinite(state.errors).sum(dim=0)
    assert len(set(epochs.tolist())) > 1, "members should stop at different times"
    return state.tensors()


@pytest.mark.parametrize("moment", range(1, 4 * (STEPS + 1), 2))
def test_stopping_anywhere_and_going_on_changes_no_bit(whole: Any, moment: int) -> None:
    control = StopAfter(moment)
    train(NETWORK, make_data(), MEMBERS, CONFIG, control=control)
    assert control.stopped == "interrupt"
    [(stored, finished)] = control.states
    assert not finished
    state = TrainState.from_tensors(stored, torch.device("cpu"))
    resumed = train(NETWORK, make_data(), MEMBERS, CONFIG, state=state).tensors()
    for name, tensor in whole.items():
        np.testing.assert_array_equal(resumed[name], tensor, err_msg=name)


def test_members_that_do_not_wait_for_one_another_change_no_bit(
    whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepper, "PAUSE_EVERY", math.inf)
    control, threads = StopAfter(10**9), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = train(NETWORK, make_data(), MEMBERS, CONFIG, control=control).tensors()
    finally:
        torch.set_num_threads(threads)
    for name, tensor in whole.items():
        np.testing.assert_array_equal(found[name], tensor, err_msg=name)
    assert 10**9 - control.left < int(found["epoch"]) * STEPS, "it asks after several steps"


def test_the_time_an_epoch_takes_is_that_of_this_run_s_epochs() -> None:
    control, seen = StopAfter(2 * (STEPS + 1)), []
    train(NETWORK, make_data(), MEMBERS, CONFIG, control=control)
    state = TrainState.from_tensors(control.states[0][0], torch.device("cpu"))
    before = int(state.epoch)
    watch = lambda progress, state: seen.append(progress)  # noqa: E731
    train(NETWORK, make_data(), MEMBERS, CONFIG, state=state, on_epoch=watch)
    assert before > 0 and seen[0].epoch == before + 1
    assert [one.seconds_each * k for k, one in enumerate(seen, 1)] == [one.seconds for one in seen]


def test_saving_after_every_step_changes_no_bit(whole: Any) -> None:
    control = StopAfter(10**9, every=0.0)
    state = train(NETWORK, make_data(), MEMBERS, CONFIG, control=control)
    np.testing.assert_array_equal(state.best, whole["best"])
    assert control.stopped is None
    assert [finished for _, finished in control.states] == [False] * (len(control.states) - 1) + [
        True
    ]
    assert len(control.states) > 2 * STEPS
    middle = [int(stored["batch"]) for stored, _ in control.states]
    assert {0, 1, 2, 3, 4, 5} == set(middle)


def test_a_run_stopped_before_its_first_validation_keeps_its_weights() -> None:
    data = make_data()
    stopped = train(NETWORK, data, MEMBERS, CONFIG, control=StopAfter(3))
    start = TrainState.start(NETWORK, MEMBERS, data.device, torch.float32)
    assert (stopped.best_epoch == 0).all()
    assert torch.equal(stopped.best, stopped.flat)
    assert not torch.equal(stopped.best, start.best)
    with pytest.raises(TrainingError, match="Lower learning_rate"):
        with_weights_now(replace(stopped, flat=stopped.flat * torch.nan))


def test_a_time_limit_that_is_over_stops_after_one_step() -> None:
    control = Control(time_limit=1e-9)
    state = train(NETWORK, make_data(), MEMBERS, CONFIG, control=control)
    assert control.stopped == "time limit"
    assert int(state.step) == 1


def test_time_for_the_closing_work_is_kept_back() -> None:
    control = Control(time_limit=100.0)
    assert not control.must_stop(closing=10.0)
    assert control.must_stop(closing=101.0)


def test_a_run_that_ends_as_it_is_stopped_has_ended() -> None:
    one = TrainConfig(batch_size=16, max_epochs=1, patience=1)
    control = StopAfter(STEPS + 1)
    train(NETWORK, make_data(), MEMBERS, one, control=control)
    assert control.stopped is None
    assert [finished for _, finished in control.states] == [True]


def test_the_first_ctrl_c_asks_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)
    control = Control()
    with control.listening():
        signal.raise_signal(signal.SIGINT)
        assert control.must_stop(0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:
        control = Control()
        with control.listening():
            signal.raise_signal(signal.SIGINT)
        assert caught == [signal.SIGINT]
        assert control.stopped is None
    finally:
        signal.signal(signal.SIGINT, before)
    seen: list[Any] = []

    def inside() -> None:
        with Control().listening():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]


def test_what_the_first_step_sets_up_is_not_expected_of_others(monkeypatch) -> None:
    moments = iter([0.0, 30.0, 30.5, 31.0])  # the start, and the ends of three steps
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(moments))
    clock = Clock(closing=100)
    assert [clock.closing_seconds() for _ in range(3)] == pytest.approx([3.0, 50.0, 50.0])


def test_a_stop_leaves_members_that_failed_as_they_are() -> None:
    members = [Member(1, 1e-2), Member(2, float("inf"), shrinkage=0.02)]  # sparse: it may fail
    control = StopAfter(STEPS + 3)
    state = train(NETWORK, make_data(), members, CONFIG, control=control)
    assert control.stopped == "interrupt"
    assert state.best_epoch.tolist() == [1, 0]
    assert torch.isfinite(state.best).all()
