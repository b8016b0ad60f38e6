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
    assert list(choose_methods("all").values()) == list(METHODS)
    assert list(choose_methods("gbt, AR").values()) == ["gbt", "ar", "persistence"]
    assert list(choose_methods(["persistence", "ar"])) == ["Persistence", "AR"]
    with pytest.raises(mv.errors.ParameterError, match="Did you mean 'arimax'"):
        choose_methods("arima")
    with pytest.raises(mv.errors.ParameterError, match="No method is named"):
        choose_methods(" ,")


def test_forecasters_are_taken_besides_names() -> None:
    short, long = mv.AR(window=3), mv.AR(window=9)
    found = choose_methods(["ar", short, long])
    assert list(found) == ["AR", "AR #2", "AR #3", "Persistence"]
    model, words = build(long, budget="quick", n_train=99, shared={"horizon": 1, "verbose": 0})
    assert model is not long and model.window == 9 and words == "its own settings"
    with pytest.raises(ParameterError, match=r"AR\(horizon=1\) is compared with horizon=2"):
        build(short, budget="quick", n_train=99, shared={"horizon": 2, "verbose": 0})
    with pytest.raises(ParameterError, match="neither a name nor a forecaster"):
        choose_methods([3])  # type: ignore[list-item]
