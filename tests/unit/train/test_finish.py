"""Members that no longer improve go on from their best weights at a lower rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import ModelFileError, MVLSTMWarning, ParameterError, TrainingError
from mvlstm.methods.network import further_training
from mvlstm.methods.network.training import patience_notes
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.results import History
from mvlstm.train import loop
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.state import TrainState
from mvlstm.train.stepper import Stepper

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 4, attention="free", loss_name="mse")
CONFIG = TrainConfig(batch_size=16, max_epochs=60, patience=3, averaging=0.9, finish=0.1)
MEMBERS = [Member(seed=seed, learning_rate=3e-2) for seed in range(4)]


@pytest.fixture(scope="module")
def data() -> WindowData:
    rng = np.random.default_rng(0)
    table = torch.tensor(rng.standard_normal((300, 3)))
    labels = torch.full((300, 1), torch.nan, dtype=torch.float64)
    noise = torch.tensor(0.5 * rng.standard_normal(299))
    labels[:-1, 0] = torch.tanh(table[:-1, 0]) + 0.5 * table[:-1, 2] + noise
    origins = torch.arange(5, 299)
    return WindowData(table, labels, origins[:200], origins[200:], 6)


def run(data: WindowData, config: TrainConfig = CONFIG, **options) -> TrainState:
    return train(NETWORK, data, MEMBERS, config, dtype=torch.float64, **options)


@pytest.fixture(scope="module")
def finished(data) -> TrainState:
    return run(data)


@pytest.fixture(scope="module")
def ended(data) -> TrainState:
    return run(data, replace(CONFIG, finish=0.0))


def test_up_to_there_nothing_changes_and_the_best_error_can_only_fall(finished, ended) -> None:
    assert not ended.lowered.any() and finished.lowered.all()
    for k in range(4):
        until = int(finished.lowered[k])
        assert until == int(ended.best_epoch[k]) + CONFIG.patience
        torch.testing.assert_close(finished.errors[:until, k], ended.errors[:until, k])
    assert (finished.best_error <= ended.best_error).all()
    assert (finished.best_error < ended.best_error).any()


def test_a_member_goes_on_from_its_best_weights_at_the_lower_rate(data, monkeypatch) -> None:
    begun: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    rates: set[float] = set()
    run_epoch = Stepper.run_epoch

    def watched(stepper: Stepper, epoch: int, *args):
        for place, k in enumerate(stepper.rows.tolist()):
            rates.add(round(float(stepper.learning_rate[place, 0]), 12))
            if int(stepper.lowered[place]) == epoch > 0:
                begun[k] = (stepper.flat[place].detach().clone(), stepper.mean[place].clone())
        return run_epoch(stepper, epoch, *args)

    monkeypatch.setattr(Stepper, "run_epoch", watched)
    best: list[torch.Tensor] = []

    def keep(_, state: TrainState) -> None:
        best.append(state.best.clone())

    state = run(data, on_epoch=keep)
    assert rates == {3e-2, 3e-3}
    for k, (flat, mean) in begun.items():
        until = int(state.lowered[k])
        assert torch.equal(flat, best[until - 1][k]) and torch.equal(mean, flat)
    assert sorted(begun) == list(range(4))


@pytest.mark.parametrize(("patience", "wait"), [(3, 3), (8, 5)])
def test_it_ends_when_a_few_epochs_no_longer_help(data, patience, wait) -> None:
    state = run(data, replace(CONFIG, patience=patience))
    assert not state.running.any()
    for k in range(4):
        last = int(torch.isfinite(state.errors[:, k]).nonzero()[-1]) + 1
        assert last == max(int(state.best_epoch[k]), int(state.lowered[k])) + wait


def test_the_last_fifth_of_the_epochs_is_at_the_lower_rate(data) -> None:
    short = replace(CONFIG, max_epochs=6, patience=10)
    assert short.full_epochs == 5 and replace(short, finish=0.0).full_epochs == 6
    state = run(data, short)
    assert state.lowered.tolist() == [5] * 4 and len(state.errors) == 6
    assert not run(data, replace(short, max_epochs=4)).lowered.any()


def test_a_member_does_not_depend_on_when_others_finish(data, finished) -> None:
    for k, member in enumerate(MEMBERS):
        alone = train(NETWORK, data, [member], CONFIG, dtype=torch.float64)
        torch.testing.assert_close(alone.best[0], finished.best[k], rtol=0, atol=1e-9)
        assert int(alone.lowered[0]) == int(finished.lowered[k])


def test_a_run_stopped_while_finishing_goes_on_to_the_same_bits(
    data, finished, monkeypatch
) -> None:
    monkeypatch.setattr("mvlstm.train.stepper.PAUSE_EVERY", 0.0)  # it asks after every step
    middle = int(finished.lowered.min()) + 1

    class Stop(Control):
        steps = 0

        def must_stop(self, closing: float) -> bool:
            self.steps += 1
            return self.steps == 13 * middle + 5  # in the midst of an epoch

    half = run(data, control=Stop())
    assert int(half.batch) > 0 and (half.lowered > 0).any()
    stored = TrainState.from_tensors(half.tensors(), torch.device("cpu"))
    again = run(data, state=stored)
    assert torch.equal(again.best, finished.best) and torch.equal(again.lowered, finished.lowered)
    assert torch.equal(again.errors.nan_to_num(), finished.errors.nan_to_num())


# ------------------------------------------------------------------------------- what is kept of it

SETTINGS = {"window": 4, "hidden_size": 3, "members": 3, "max_epochs": 40, "patience": 2}
SETTINGS |= {"effort": "best"}  # a constant rate


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=400).frame


@pytest.fixture(scope="module")
def model(table) -> mv.MVLSTM:
    return mv.MVLSTM(**SETTINGS, learning_rate=0.05, verbose=0).fit(table, "y", test=0.2)


def test_the_history_tells_when_and_what_led_to_the_kept_weights(model) -> None:
    history = model.history_
    full, slow = history.epochs_found
    assert (history.lowered > 0).all() and (slow > 0).any()
    for k in range(3):
        upto = history.valid_rmse[k, : history.lowered[k]]
        assert full[k] == upto.argmin() + 1
        assert slow[k] == max(history.best_epoch[k] - history.lowered[k], 0)
    again = History.from_dict(history.to_dict())
    np.testing.assert_array_equal(again.lowered, history.lowered)
    older = {name: value for name, value in history.to_dict().items() if name != "lowered"}
    before = History.from_dict(older)
    np.testing.assert_array_equal(before.epochs_found[0], history.best_epoch)
    assert not before.epochs_found[1].any()


@pytest.mark.parametrize("shift", [100, -1000])
def test_a_file_that_lowers_a_rate_where_no_epoch_was_is_refused(model, tmp_path, shift) -> None:
    history = model.history_
    model.save(tmp_path / "good.safetensors")
    kept = mv.load(tmp_path / "good.safetensors").history_
    np.testing.assert_array_equal(kept.lowered, history.lowered)
    shifted = replace(history, lowered=history.lowered + shift)
    bad = model.holding(replace(model.fitted_, history=shifted))
    bad.save(tmp_path / "bad.safetensors")
    with pytest.raises(ModelFileError, match="lowers the rate of member 0"):
        mv.load(tmp_path / "bad.safetensors")


def test_the_note_counts_members_cut_short_at_the_full_rate(model) -> None:
    history = replace(
        model.history_,
        lowered=np.array([32, 32, 20]),
        best_epoch=np.array([31, 20, 18]),
        valid_rmse=np.full((3, 40), 1.0),
        train_loss=np.full((3, 40), 1.0),
    )
    config = TrainConfig(max_epochs=40, patience=5, finish=0.1)
    (note,) = patience_notes(history, config)
    assert note.startswith("1 of 3 members") and "after 32 epochs at the full rate" in note
    (plain,) = patience_notes(
        replace(history, lowered=np.zeros(3, int), best_epoch=np.array([39, 20, 18])),
        replace(config, finish=0.0),
    )
    assert plain.startswith("1 of 3 members") and "after 40 epochs;" in plain


def test_training_again_takes_both_rates_for_the_steps_found(table, monkeypatch) -> None:
    seen: list[dict[int, float]] = []
    run_epoch = Stepper.run_epoch

    def watched(stepper: Stepper, *args):
        rates = (stepper.learning_rate[:, 0] / 0.05).tolist()
        seen.append(dict(zip(stepper.rows.tolist(), rates, strict=True)))
        return run_epoch(stepper, *args)

    monkeypatch.setattr(Stepper, "run_epoch", watched)
    again = mv.MVLSTM(**SETTINGS, learning_rate=0.05, verbose=0).fit(table, "y", test=0.2)
    seen.clear()
    again.update(table, refit="full")
    had, windows = again.fitted_.n_train, again.updates_[-1].trained
    full, slow = again.epochs_over(again.history_, had, windows)
    for k in range(3):
        rates = [epoch[k] for epoch in seen if k in epoch]
        assert rates == pytest.approx([1.0] * full[k] + [0.1] * slow[k])


def test_epochs_over_other_numbers_of_windows_make_as_many_steps() -> None:
    rmse = np.array([[3.0, 1.0, 2.0, 0.9, 0.8, 1.0]])
    model = mv.MVLSTM(batch_size=10)
    history = History(rmse, rmse, np.array([5]), lowered=np.array([3]))

    def over(had: int, windows: int) -> list[int]:
        return [int(epochs[0]) for epochs in model.epochs_over(history, had, windows)]

    assert over(100, 100) == [2, 2]
    assert over(100, 109) == [2, 2], "as many whole batches"
    assert over(100, 200) == [1, 1]
    assert over(100, 1000) == [1, 1], "at least one of each"
    assert over(5, 9) == [2, 2], "less than a batch is one step"
    model.set_params(leave_out=0.5)
    assert over(200, 100) == [2, 2]


@pytest.mark.parametrize(
    "changes", [{}, {"leave_out": 0.3}, {"batch_size": 200}, {"effort": "quick"}]
)
def test_training_again_takes_the_steps_found(table, monkeypatch, changes) -> None:
    model = mv.MVLSTM(**SETTINGS | changes, verbose=0).fit(table, "y", test=0.2)
    steps: list[int] = []
    run_epoch = Stepper.run_epoch

    def watched(stepper: Stepper, *args):
        steps.append(stepper.n_batches)
        return run_epoch(stepper, *args)

    monkeypatch.setattr(Stepper, "run_epoch", watched)
    best = sum(model.history_.epochs_found).max()
    left = model.fitted_.n_train - int(model.leave_out * model.fitted_.n_train)
    found = best * (left // model.training.batch(left))
    model.update(table, refit="full")
    assert abs(sum(steps) - found) <= 2 * steps[0]  # whole epochs at either rate


def test_training_again_turns_from_the_weights_that_a_fit_would_keep(table, monkeypatch) -> None:
    settings = SETTINGS | {"averaging": 0.9, "learning_rate": 0.05}
    model = mv.MVLSTM(**settings, verbose=0).fit(table, "y", test=0.2)
    assert model.history_.epochs_found[1].any()
    turned: list[float] = []
    run_epoch = Stepper.run_epoch

    def watched(stepper: Stepper, epoch: int, *args):
        begins = (stepper.lowered == epoch) & (stepper.lowered > 0)
        if begins.any():
            turned.append(float((stepper.flat.detach() - stepper.mean)[begins].abs().max()))
        return run_epoch(stepper, epoch, *args)

    monkeypatch.setattr(Stepper, "run_epoch", watched)
    model.update(table, refit="full")
    assert turned and set(turned) == {0.0}


def test_a_member_that_fails_when_trained_again_stays_as_it_was(table, monkeypatch) -> None:
    model = mv.MVLSTM(**SETTINGS | {"members": 2}, verbose=0).fit(table, "y", test=0.2)
    before, kept = model.fitted_.learned.trained.flat.copy(), []
    run = further_training._run

    def failing(*args):
        *most, keep = args

        def fail(progress, state) -> None:
            state.mean[1] = torch.nan
            keep(progress, state)

        return run(*most, fail)

    train_again = mv.MVLSTM.train_again

    def watched(self, *args):
        found = train_again(self, *args)
        kept.append(found.trained.flat)
        return found

    monkeypatch.setattr(further_training, "_run", failing)
    monkeypatch.setattr(mv.MVLSTM, "train_again", watched)
    with pytest.warns(MVLSTMWarning, match="1 member could not be trained again"):
        model.update(table, refit="full")
    np.testing.assert_array_equal(kept[0][1], before[1])
    assert not np.array_equal(kept[0][0], before[0])
    assert model.updates_[-1].changed <= 1


def test_a_file_of_before_was_trained_without_it(model, tmp_path, monkeypatch) -> None:
    path = tmp_path / "m.safetensors"
    settings = model.get_params()
    del settings["finish"]
    monkeypatch.setattr(model, "get_params", lambda deep=True: settings)
    monkeypatch.setattr(model, "settings_", settings)
    model.save(path)
    assert mv.load(path).finish == 0.0


@pytest.mark.parametrize("value", [-0.1, 1.5, "slow", True, float("nan")])
def test_other_rates_are_refused(table, value) -> None:
    with pytest.raises(ParameterError, match="finish"):
        mv.MVLSTM(window=5, finish=value, verbose=0).fit(table, "y")


def test_the_paper_s_models_just_end(table) -> None:
    assert mv.MVLSTM.paper().finish == mv.MVLSTM.fusion().finish == 0.0
    paper = mv.MVLSTM.paper(window=4, hidden_size=2, members=1, max_epochs=6, patience=1, verbose=0)
    assert not paper.fit(table, "y", test=0.2).history_.lowered.any()


def test_if_all_fail_when_trained_again_nothing_changes(table, monkeypatch) -> None:
    model = mv.MVLSTM(**SETTINGS | {"members": 2}, verbose=0).fit(table, "y", test=0.2)
    before = model.fitted_.learned.trained.flat.copy()
    errors = loop.validation_errors
    monkeypatch.setattr(loop, "validation_errors", lambda *args: errors(*args) * torch.nan)
    with pytest.raises(TrainingError, match="trained again"):
        model.update(table, refit="full")
    np.testing.assert_array_equal(model.fitted_.learned.trained.flat, before)
