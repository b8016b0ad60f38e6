"""The trials of `experiments/trials.py`: each does what it says, and nothing where it is off."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import mvlstm as mv
from mvlstm.bench.suite_files import load_suite
from mvlstm.errors import ParameterError
from mvlstm.evaluate.methods import own_class
from mvlstm.nn.parameters import unflatten
from mvlstm.problem.inputs import Windows
from mvlstm.train.stepper import Stepper

PROJECT = Path(__file__).parents[3]
FILE = PROJECT / "experiments" / "trials.py"
SMALL: dict[str, Any] = {"window": 5, "hidden_size": 3, "max_epochs": 2, "device": "cpu"}
TRIALS: dict[str, dict[str, Any]] = {
    "StudentT": {},
    "WindowNormal": {},
    "InputNoise": {},
    "InputDropout": {"dropout": 0.3},
    "ForgetBias": {},
    "Orthogonal": {},
    "Scheduled": {},
    "Kinds": {"size": 2},
}


def trial(name: str, **settings: Any) -> Any:
    few = {} if name == "Kinds" else {"members": 2}
    return own_class(f"{FILE}:{name}")(**{**SMALL, **few, "verbose": 0, **settings})


@lru_cache(maxsize=1)
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=300).frame[["x2", "x3", "y"]]


def fitted(model: Any) -> Any:
    return model.fit(table(), "y", test=0.2)


def plain(**settings: Any) -> mv.MVLSTM:
    return fitted(mv.MVLSTM(**{**SMALL, "members": 2, "verbose": 0, **settings}))


def means(model: Any) -> np.ndarray:
    return model.predict(table()).mean.to_numpy()


@pytest.mark.parametrize("name", TRIALS)
def test_a_trial_is_a_forecaster(name: str) -> None:
    model = trial(name, **TRIALS[name])
    assert clone(model).get_params() == model.get_params()
    assert set(mv.MVLSTM().get_params()) <= set(model.get_params())
    with pytest.raises(TypeError, match="hiddensize"):
        type(model)(hiddensize=3)
    forecast = fitted(model).predict(table())
    low, high = forecast.interval(0.9)
    assert np.isfinite(forecast.mean).all() and (low < high).all()
    if name != "Kinds":  # which keeps the defaults, in other members
        assert not np.array_equal(forecast.mean, means(plain()))


def test_a_student_with_many_degrees_of_freedom_is_normal() -> None:
    normal = means(plain())
    assert np.allclose(means(fitted(trial("StudentT", freedom=1e6))), normal, atol=1e-3)
    assert not np.allclose(means(fitted(trial("StudentT", freedom=4.0))), normal, atol=1e-3)


def test_nothing_added_and_nothing_dropped_change_nothing() -> None:
    assert np.array_equal(means(fitted(trial("InputNoise", noise=0.0))), means(plain()))
    assert np.array_equal(means(fitted(trial("InputDropout"))), means(plain()))
    assert np.array_equal(means(fitted(trial("ForgetBias", forget=1.0))), means(plain()))


def test_noise_is_for_training_only() -> None:
    model = fitted(trial("InputNoise", noise=1.0))
    assert np.array_equal(means(model), means(model))


def test_forecasts_follow_the_level_of_the_window() -> None:
    model = fitted(trial("WindowNormal", sigma="learned"))
    windows = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    trained = model.fitted_.learned.trained
    network, flat = trained.network, torch.as_tensor(trained.flat)
    moved = windows * [1, 1, 2] + [0, 0, 10]  # the target's column, the last

    def answer(given: np.ndarray) -> Any:
        x = torch.as_tensor(given, dtype=torch.float32).transpose(0, 1).expand(2, 5, 4, 3)
        return network(unflatten(flat, network.shapes), x)

    before, after = answer(windows), answer(moved)
    assert torch.allclose(after.mean, 2 * before.mean + 10, atol=0.1)
    assert torch.allclose(after.mu, 2 * before.mu + 10, atol=0.1)
    sigma2 = (after.log_sigma2 - before.log_sigma2).exp()
    assert torch.allclose(sigma2, torch.full_like(sigma2, 4.0), atol=0.1)
    with pytest.raises(ParameterError, match="link='last'"):
        fitted(trial("WindowNormal", link="last"))


@pytest.mark.parametrize("gates", ["full", "variable"])
def test_recurrent_weights_are_orthogonal(gates: str) -> None:
    model = fitted(trial("Orthogonal", gates=gates))
    network = model.fitted_.learned.trained.network
    drawn = network.initial(torch.Generator().manual_seed(0))
    again = network.initial(torch.Generator().manual_seed(0))
    assert all(torch.equal(drawn[name], again[name]) for name in drawn)
    squares = [drawn["Wh_0"]]
    squares += [drawn["W_0"][:, 3:].reshape(3, 9, 9)] if gates == "full" else [drawn["Gh_0"]]
    for square in squares:
        one = torch.eye(square.shape[-1], dtype=torch.float64).expand(square.shape)
        assert torch.allclose(square @ square.mT, one)


def test_the_forget_gate_begins_where_it_is_told_to() -> None:
    network = fitted(trial("ForgetBias", forget=2.0)).fitted_.learned.trained.network
    biases = network.initial(torch.Generator().manual_seed(0))["b_0"].reshape(3, 9)
    assert biases.mean(dim=1).tolist() == [0.0, 1.0, 0.0]  # beside the one that is always there


@pytest.mark.parametrize("schedule", ["cosine", "halving"])
def test_the_rate_falls(monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    rates: list[list[float]] = []
    run = Stepper.run_epoch

    def watched(stepper: Stepper, *args: Any) -> Any:
        rates.append((stepper.learning_rate[:, 0] / 0.05).tolist())
        return run(stepper, *args)

    monkeypatch.setattr(Stepper, "run_epoch", watched)
    settings = {"learning_rate": 0.05, "max_epochs": 20, "patience": 2, "averaging": 0.0}
    fitted(trial("Scheduled", schedule=schedule, members=8, finish=0.0, **settings))
    assert len(rates[-1]) < len(rates[0])  # some members stopped before the others
    for epoch, found in enumerate(rates):
        falls = {"cosine": 0.5 + 0.5 * np.cos(np.pi * epoch / 20), "halving": 0.5 ** (epoch // 8)}
        assert found == pytest.approx([falls[schedule]] * len(found))
    assert Stepper.run_epoch is watched


def test_one_kind_is_that_kind() -> None:
    found = fitted(trial("Kinds", kinds=["link=last"], size=2)).predict(table())
    expected = plain(link="last").predict(table())
    assert np.array_equal(found.mean, expected.mean)
    assert np.allclose(found.quantile(0.9), expected.quantile(0.9))


def test_two_kinds_are_their_mean() -> None:
    both = means(fitted(trial("Kinds", kinds=["link=last", "loss=mse"], size=2)))
    assert np.allclose(both, (means(plain(link="last")) + means(plain(loss="mse"))) / 2)


def test_a_bad_kind_gets_little_weight() -> None:
    kinds = ["link=linear", "link=none,learning_rate=1e-9"]
    model = fitted(trial("Kinds", kinds=kinds, size=2, combine="weights"))
    learned = model.fitted_.learned
    assert learned.shares.sum() == pytest.approx(1.0) and (learned.shares >= 0).all()
    assert learned.shares[1] < 0.3
    windows = Windows.of(model.fitted_.background.windows)
    each = [one.predict(windows).members.mean(axis=0) for one in learned.every]
    together = learned.predict(windows).members.mean(axis=0)
    assert np.allclose(together, np.tensordot(learned.shares, each, axes=1))
    assert np.allclose(model.predict(table()).weights.sum(axis=-1), 1.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kinds": "link=none"}, "must be a list"),
        ({"kinds": ["linc=none"]}, "linc"),
        ({"kinds": ["link=nothing"]}, "link='nothing'"),
        ({"combine": "median"}, "combine='median'"),
    ],
)
def test_wrong_kinds_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fitted(trial("Kinds", **settings))


def test_the_search_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    suite = load_suite("search")
    used = {job.base.partition(":")[2] for job in suite.jobs} - {""}
    assert used == set(TRIALS)
