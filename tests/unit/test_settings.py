"""Settings are declared once: constructors, docstrings and the command line follow from that."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args

import pytest
from sklearn.base import BaseEstimator, clone

import mvlstm as mv
from mvlstm import settings as all_settings
from mvlstm.model.registry import FORECASTERS
from mvlstm.settings import (
    CleaningSettings,
    ForecastingSettings,
    MVLSTMSettings,
    NetworkSettings,
    declared,
    documented,
    parameters_section,
    setting,
    settings,
)


@pytest.mark.parametrize("name", FORECASTERS)
def test_declarations_are_the_constructor(name: str) -> None:
    declaration = getattr(all_settings, f"{name}Settings")
    arguments = inspect.signature(getattr(mv, name)).parameters
    assert {one.name: one.default for one in declared(declaration)} == {
        argument.name: argument.default for argument in arguments.values()
    }
    assert all(one.doc and one.doc[-1] == "." for one in declared(declaration))


@pytest.mark.parametrize("name", FORECASTERS)
def test_every_choice_is_one_of_the_forecaster(name: str) -> None:
    declaration = getattr(all_settings, f"{name}Settings")
    for one in declared(declaration):
        for word in all_settings.choices(one.type):
            getattr(mv, name)(**{one.name: word}).check()


def test_a_subclass_changes_a_default_and_keeps_the_text() -> None:
    ours, theirs = (
        {one.name: one for one in declared(cls)}
        for cls in (NetworkSettings, all_settings.DUALSettings)
    )
    assert (ours["dropout"].default, theirs["dropout"].default) == (0.0, 0.2)
    assert ours["dropout"].doc == theirs["dropout"].doc
    assert theirs["dropout"].panel == "Training"


def test_the_section_of_parameters() -> None:
    section = parameters_section(MVLSTMSettings)
    assert section.startswith("Parameters\n----------\nwindow : int or ")
    for words in (
        'missing : {"error", "drop", "fill", "mask"}, default "error"',
        'sigma : float, "learned", "predicted" or "calibrated", default "predicted"',
        'calendar : str or sequence of str, default "none"',
        "l2_sum : bool, default False",
    ):
        assert words in section.splitlines()
    assert "penalties : sequence of float, optional" in parameters_section(
        all_settings.CLSTMSettings
    )
    assert "order : tuple of int, optional" in parameters_section(all_settings.ARIMAXSettings)
    assert 'period : int or "auto", default "auto"' in parameters_section(
        all_settings.SeasonalPersistenceSettings
    )
    assert max(map(len, section.splitlines())) <= 100


# --------------------------------------------------------- estimators that inherit from settings


@settings(panel="Model")
class ToySettings(CleaningSettings, ForecastingSettings):
    """Settings of `Toy`."""

    window: int = 7
    shrink: float | Literal["auto"] = setting(default="auto", doc="How much to shrink.")


@documented
class Toy(BaseEstimator, ToySettings):
    """An estimator without a constructor of its own.

    Examples
    --------
    >>> Toy(window=3).window
    3
    """

    members_differ = False
    learned_: list[float]  # state, no setting

    def fit(self) -> Toy:
        self.learned_ = [float(self.window)]
        return self


class Own(Toy):
    """A user's own subclass."""

    def __init__(self, *, factor: float = 2.0, window: int = 5) -> None:
        super().__init__(window=window)
        self.factor = factor


def test_an_estimator_takes_its_constructor_from_the_settings() -> None:
    model = Toy(shrink=0.5)
    assert model.get_params() == {
        **{"calibration": "adaptive", "gaps": "error", "horizon": 1, "missing": "error"},
        **{"shrink": 0.5, "verbose": 1, "window": 7, "duplicates": "error", "fill_limit": 24},
    }
    copy = clone(model.set_params(window=4).fit())
    assert copy.get_params() == model.get_params() and not hasattr(copy, "learned_")
    assert "learned_" not in inspect.signature(Toy).parameters
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(Toy).parameters.values())
    assert repr(model) == "Toy(shrink=0.5, window=4)"
    wrong: Any = {"widow": 3}
    with pytest.raises(TypeError, match="widow"):
        Toy(**wrong)
    with pytest.raises(ValueError, match="widow"):
        model.set_params(**wrong)


def test_the_docstring_of_an_estimator_has_the_section_before_the_example() -> None:
    text = inspect.getdoc(Toy) or ""
    assert text.startswith("An estimator without a constructor of its own.\n\nParameters\n------")
    assert text.index("shrink : ") < text.index("\n\nExamples\n--------\n>>> Toy")


def test_a_subclass_may_write_its_own_constructor() -> None:
    model = Own(factor=3.0)
    assert model.get_params() == {"factor": 3.0, "window": 5}
    assert clone(model).get_params() == model.get_params()
    assert (model.missing, model.shrink) == ("error", "auto")
    assert Own().set_params(window=9).fit().learned_ == [9.0]


def test_choices_are_those_the_networks_know() -> None:
    from mvlstm.nn import cell, mvlstm

    types = {one.name: one.type for one in declared(MVLSTMSettings)}
    known = {"cell": cell.Cell, "gates": cell.Gates, "attention": mvlstm.Attention}
    known |= {"head": mvlstm.Head, "loss": mvlstm.Loss}
    assert {name: get_args(types[name]) for name in known} == {
        name: get_args(kind) for name, kind in known.items()
    }
