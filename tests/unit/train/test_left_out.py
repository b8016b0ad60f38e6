"""Each member does without a stretch of the training windows, and is judged on it too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.model.fitting import begin
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.table.frame import build_frame
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train, validation_errors

NETWORK = MVLSTMNetwork((0, 1, 2), 3, 4, attention="free", loss_name="mse")
CONFIG = TrainConfig(batch_size=16, max_epochs=1, patience=3, leave_out=0.2)
MEMBERS = [Member(seed=seed, learning_rate=1e-2) for seed in range(5)]


def make_data(n_train: int = 200, T: int = 6) -> WindowData:
    rows = n_train + 100
    table = torch.tensor(np.random.default_rng(0).standard_normal((rows, 3)))
    labels = torch.full((rows, 1), torch.nan, dtype=torch.float64)
    labels[:-1, 0] = torch.tanh(table[:-1, 0]) + 0.5 * table[:-1, 2]
    origins = torch.arange(T - 1, rows - 1)
    return WindowData(table, labels, origins[:n_train], origins[n_train:], T)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 1 / 3, 0.5])
def test_as_many_members_as_the_share_goes_into_the_whole_leave_out_every_window(share) -> None:
    data = make_data(240)
    places = data.without(share, range(7, 7 + round(1 / share))).places()
    assert len(torch.unique(places)) == 240


def test_what_is_kept_is_every_window_but_those_left_out() -> None:
    left_out = make_data(203).without(0.2, range(5))
    kept = left_out.kept(torch.arange(203 - left_out.width).expand(5, -1))
    for mine, others in zip(left_out.places(), kept, strict=True):
        assert sorted(torch.cat([mine, others]).tolist()) == list(range(203))


@pytest.mark.parametrize(("share", "n"), [(0.0, 200), (0.2, 4)])
def test_a_share_of_less_than_a_window_leaves_out_none(share, n) -> None:
    left_out = make_data(n).without(share, [0, 1])
    assert left_out.places().shape == (2, 0)
    assert left_out.kept(torch.arange(n).expand(2, -1)).tolist() == [list(range(n))] * 2


def test_a_member_learns_nothing_from_its_stretch_and_is_judged_on_it() -> None:
    data = make_data()
    place = data.without(0.2, [MEMBERS[1].seed]).places()[0]
    labels = data.labels.clone()
    labels[data.train[place]] += 100.0
    plain = train(NETWORK, data, MEMBERS, CONFIG, dtype=torch.float64)
    other = train(NETWORK, replace(data, labels=labels), MEMBERS, CONFIG, dtype=torch.float64)
    assert torch.equal(plain.flat[1], other.flat[1])
    assert other.errors[0, 1] > 10 * plain.errors[0, 1]
    for k in (0, 2, 3, 4):
        assert not torch.equal(plain.flat[k], other.flat[k])
        torch.testing.assert_close(plain.errors[0, k], other.errors[0, k], rtol=0.5, atol=0)


def test_the_error_is_that_of_the_stretch_and_the_stopping_windows_together() -> None:
    data = make_data()
    state = train(NETWORK, data, MEMBERS, CONFIG, dtype=torch.float64)
    own = data.train[data.without(0.2, range(5)).places()]
    on_own = validation_errors(NETWORK, state.best, data, own).square() * own.shape[1]
    on_stop = validation_errors(NETWORK, state.best, data, data.stop).square() * len(data.stop)
    pooled = ((on_own + on_stop) / (own.shape[1] + len(data.stop))).sqrt()
    torch.testing.assert_close(pooled, state.best_error, rtol=1e-9, atol=0)


def test_a_member_does_not_depend_on_its_neighbours() -> None:
    config = replace(CONFIG, max_epochs=3)
    together = train(NETWORK, make_data(), MEMBERS, config, dtype=torch.float64)
    alone = train(NETWORK, make_data(), MEMBERS[3:4], config, dtype=torch.float64)
    torch.testing.assert_close(alone.best[0], together.best[3], rtol=0, atol=1e-9)


def several() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "place": np.repeat(["a", "b"], 200),
            "time": np.tile(pd.date_range("2024-01-01", periods=200, freq="h"), 2),
            "x": rng.normal(size=400),
            "y": rng.normal(size=400),
        }
    )


def test_of_several_series_a_stretch_of_time_is_left_out() -> None:
    model = mv.MVLSTM(window=5, verbose=0)
    frame = build_frame(several(), target="y", time="time", series="place")
    problem = begin(model, frame, test=0.2, valid=0.2).problem
    rows = problem.in_time_order("train")
    assert sorted(rows) == sorted(problem.origins["train"])
    times = problem.prepared.frame.order[rows]
    assert (np.diff(times) >= 0).all() and len(set(times[:2])) == 1


def test_a_run_that_is_taken_up_again_leaves_out_the_same() -> None:
    data = make_data()
    longer = replace(CONFIG, max_epochs=3)
    whole = train(NETWORK, data, MEMBERS, longer, dtype=torch.float64)
    begun = train(NETWORK, data, MEMBERS, CONFIG, dtype=torch.float64)
    resumed = train(NETWORK, data, MEMBERS, longer, dtype=torch.float64, state=begun)
    assert torch.equal(resumed.best, whole.best) and torch.equal(resumed.errors, whole.errors)


@pytest.mark.parametrize("series", [None, "place"])
def test_fit_leaves_out_what_it_is_told_to(series, monkeypatch) -> None:
    seen: list[tuple[WindowData, TrainConfig]] = []

    def spy(network, data, members, config, **rest):
        seen.append((data, config))
        return train(network, data, members, config, **rest)

    monkeypatch.setattr("mvlstm.methods.network.training.train", spy)
    table = several() if series else several().iloc[:200].drop(columns="place")
    for share in (0.0, 0.2):
        model = mv.MVLSTM(window=5, hidden_size=2, members=2, max_epochs=1, leave_out=share)
        model.set_params(link="linear", verbose=0).fit(table, "y", time="time", series=series)
        assert seen[-1][1].leave_out == share
    plain, ordered = (data.train for data, _ in seen)
    assert sorted(plain.tolist()) == sorted(ordered.tolist())
    assert torch.equal(plain, ordered) == (series is None)


def test_a_saved_model_knows_what_was_left_out(tmp_path) -> None:
    table = several().iloc[:200]
    model = mv.MVLSTM(window=5, hidden_size=2, members=2, max_epochs=1, leave_out=0.2, verbose=0)
    model.fit(table, "y", time="time", exclude=["place"]).save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    assert again.get_params()["leave_out"] == 0.2
    np.testing.assert_array_equal(again.predict(table).members, model.predict(table).members)


@pytest.mark.parametrize("value", [-0.1, 0.6, "much", float("nan")])
def test_a_share_that_cannot_be_is_refused(value) -> None:
    table = mv.datasets.load("synthetic", n=200).frame
    with pytest.raises(ParameterError, match="leave_out"):
        mv.MVLSTM(window=5, leave_out=value, verbose=0).fit(table, "y")
