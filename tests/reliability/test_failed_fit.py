"""A fit that fails leaves the model as it was: fitted before, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mvlstm as mv
from mvlstm.errors import NotFittedError, ParameterError

SMALL = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 1, "verbose": 0}


@pytest.fixture(scope="module")
def table():
    return mv.datasets.load("synthetic", n=300).frame[["x2", "x3", "y"]]


@pytest.mark.parametrize("error", [ParameterError("too large"), KeyboardInterrupt()])
def test_the_fit_of_before_goes_on_forecasting(table, monkeypatch, error, tmp_path: Path) -> None:
    model = mv.MVLSTM(**SMALL).fit(table, "y", test=0.2)
    before = model.predict(table).mean

    def fails(self, problem):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(mv.MVLSTM, "learn", fails)
        with pytest.raises(type(error)):
            model.fit(5 * table + 1, "y")
    np.testing.assert_array_equal(model.predict(table).mean, before)
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        mv.load(tmp_path / "model.safetensors").predict(table).mean, before
    )


def test_a_first_fit_that_fails_leaves_none(table, monkeypatch) -> None:
    def fails(self, problem):
        raise ParameterError("too large")

    monkeypatch.setattr(mv.AR, "learn", fails)
    model = mv.AR(window=4, verbose=0)
    with pytest.raises(ParameterError):
        model.fit(table, "y")
    with pytest.raises(NotFittedError):
        model.predict(table)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_what_could_not_be_read_back_is_not_written(table, tmp_path: Path) -> None:
    class Mine(mv.AR):
        """A forecaster of one's own."""

    class AR(mv.AR):
        """One that goes by the name of another."""

    for kind in (Mine, AR):
        model = kind(window=4, verbose=0).fit(table, "y")
        with pytest.raises(ParameterError, match=r"not a forecaster of mvlstm.*pickle"):
            model.save(tmp_path / "mine.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["isolation", "clock_penalty", "sigma", "l2", "finish"])
def test_numbers_may_be_those_of_numpy_but_not_truth_values(table, name: str) -> None:
    value = np.float32(0.5)
    mv.MVLSTM(**SMALL, **{name: value}).fit(table, "y")
    with pytest.raises(ParameterError, match=f"{name}=True"):
        mv.MVLSTM(**SMALL, **{name: True}).fit(table, "y")


def test_other_words_are_refused(table) -> None:
    with pytest.raises(ParameterError, match="l2_sum='x' must be True or False"):
        mv.MVLSTM(**SMALL, l2_sum="x").fit(table, "y")
    with pytest.raises(ParameterError, match="device=None is not a device"):
        mv.MVLSTM(**SMALL, device=None).fit(table, "y")
    with pytest.raises(ParameterError, match="time_limit=True"):
        mv.MVLSTM(**SMALL).fit(table, "y", time_limit=True)
