"""The methods of a comparison and their budgets."""

from __future__ import annotations

import pytest

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.evaluate.methods import METHODS, build, choose_methods, quick_epochs
from mvlstm.model.registry import FORECASTERS

SHARED = {"window": 7, "members": 2, "seed": 3, "verbose": 0}


def test_every_forecaster_is_compared() -> None:
    assert {method.forecaster for method in METHODS.values()} >= set(FORECASTERS)


@pytest.mark.parametrize("budget", ["quick", "full"])
@pytest.mark.parametrize("key", METHODS)
def test_every_method_can_be_built(key: str, budget: str) -> None:
    model, words = build(key, budget=budget, n_train=5_000, shared=SHARED)
    assert type(model).__name__ == METHODS[key].forecaster
    assert model.window == 7
    assert words
    model.check()


def test_shared_settings_that_a_method_lacks_are_left_out_and_its_own_are_not() -> None:
    method = METHODS["gbt"]
    assert method.known({"members": 3, "window": 7}) == {"window": 7}
    assert method.create({"window": 7}).get_params() == mv.GBT(window=7).get_params()
    with pytest.raises(TypeError, match="members"):
        method.create({"members": 3})


def test_presets_are_the_papers() -> None:
    model, _ = build("indep", budget="full", n_train=100, shared=SHARED)
    assert isinstance(model, mv.MVLSTM)
    assert model.get_params() == mv.MVLSTM.indep(**SHARED).get_params()


def test_a_quick_network_sees_as_many_windows_whatever_the_rows() -> None:
    assert quick_epochs(100) == quick_epochs(1_000) > quick_epochs(10_000) > quick_epochs(10**6)


def test_names_are_read_and_checked() -> None:
    assert choose_methods("all") == tuple(METHODS)
    assert choose_methods("gbt, AR") == ("gbt", "ar", "persistence")
    assert choose_methods(["persistence", "ar"]) == ("persistence", "ar")
    with pytest.raises(mv.errors.ParameterError, match="Did you mean 'arimax'"):
        choose_methods("arima")
    with pytest.raises(mv.errors.ParameterError, match="No method is named"):
        choose_methods(" ,")


def test_a_forecaster_in_place_of_a_name_is_refused_in_words() -> None:
    with pytest.raises(ParameterError, match="given by name"):
        choose_methods([mv.AR(window=3)])  # type: ignore[list-item]
