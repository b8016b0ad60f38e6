"""Every forecaster against every check of the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mvlstm as mv
from mvlstm.methods.network import kinds
from mvlstm.model.registry import FORECASTERS, forecaster_class
from mvlstm.testing import CHECKS, check_forecaster
from mvlstm.testing.checks import check_save_and_load, example_table, fitted
from mvlstm.train.config import Kind

SMALL_NETWORK = {"hidden_size": 3, "members": 2, "max_epochs": 2, "batch_size": 32}
SMALL: dict[str, dict[str, Any]] = {
    "MVLSTM": SMALL_NETWORK,
    "LSTM": SMALL_NETWORK,
    "DUAL": SMALL_NETWORK,
    "RETAIN": SMALL_NETWORK,
    "CLSTM": SMALL_NETWORK | {"penalties": (0.1,)},
    "ENET": {"grid": "quick"},
    "RF": {"grid": "quick", "max_trees": 5, "n_jobs": 1},
    "XGT": {"grid": "quick", "max_rounds": 5, "n_jobs": 1},
    "GBT": {"grid": "quick", "max_rounds": 10},
    "STRX": {"max_iterations": 5},
    "ARIMAX": {"max_iterations": 5, "order": (1, 0, 1)},
}


def small(name: str, **changes: Any) -> Any:
    """Return an unfitted forecaster with settings that train in a moment."""
    settings: dict[str, Any] = {"window": 6, "verbose": 0}
    return forecaster_class(name)(**(settings | SMALL.get(name, {}) | changes))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", FORECASTERS)
def test_contract(name, check) -> None:
    check(clone(small(name)))


VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"loss": "nll", "sigma": 1.0, "link": "none", "attention": "bounded", "l2_sum": True},
    "fusion": {"head": "fusion", "link": "last"},
    "horizon": {"horizon": 3, "loss": "nll+mse", "sigma": "learned"},
    "gru": {"cell": "gru", "layers": 2, "gates": "variable", "horizon": 2},
    "differenced": {"difference": "auto", "horizon": 2},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("variant", VARIANTS)
def test_contract_of_variants(variant, check) -> None:
    check(clone(small("MVLSTM", **VARIANTS[variant])))


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let members of all kinds stay, whatever they do."""
    monkeypatch.setattr(
        kinds, "find_harmful", lambda errors, plain, ensembles: np.zeros(len(plain), bool)
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_of_members_of_several_kinds(keep, check) -> None:
    check(clone(small("MVLSTM", members=5)))


def test_the_contracts_table_gives_members_of_several_kinds(keep) -> None:
    model = fitted(small("MVLSTM", members=5), example_table())
    assert set(model.fitted_.learned.trained.kinds.tolist()) == set(Kind)


class Own(mv.Persistence):
    """A forecaster of one's own, which `mvlstm.load` does not know."""


class Careless(Own):
    """It writes a file that cannot be read back."""

    def save(self, path: str | Path) -> None:
        Path(path).write_bytes(b"lost")


def test_a_forecaster_of_ones_own_keeps_the_contract() -> None:
    check_forecaster(Own(window=6, verbose=0))


def test_it_must_refuse_to_be_saved() -> None:
    with pytest.raises(AssertionError, match=r"save\(\) of Careless, which .* cannot read back"):
        check_save_and_load(Careless(window=6, verbose=0))


def test_a_forecaster_of_mvlstm_must_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: mv.Persistence, path: str | Path) -> None:
        raise mv.errors.ParameterError("not today")

    monkeypatch.setattr(mv.Persistence, "save", refuse)
    with pytest.raises(mv.errors.ParameterError, match="not today"):
        check_save_and_load(mv.Persistence(window=6, verbose=0))
