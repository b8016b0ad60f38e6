"""Networks trained for real: planted drivers are found, and nothing where there is nothing."""

from __future__ import annotations

import pytest

from experiments.controls import make_control
from experiments.ranking import auroc
from mvlstm.datasets.synthetic import synthetic
from mvlstm.methods.mvlstm import MVLSTM

pytestmark = pytest.mark.slow

SETTINGS = {"window": 8, "hidden_size": 8, "members": 5, "verbose": 0, "device": "cpu"}


def exogenous(model, table, **options):
    explanation = model.fit(table, "y", test=0.25).explain(table, contributions=0, **options)
    return explanation.importance.set_index("variable").drop("y")


@pytest.mark.parametrize("seed", [0, 1])
def test_two_drivers_among_ten_are_found(seed) -> None:
    table, truth = synthetic(4_000, seed=seed)
    rows = exogenous(MVLSTM(**SETTINGS), table)
    assert set(rows.index[:2]) == set(truth.drivers)
    assert set(rows.index[rows["verdict"] == "important"]) == set(truth.drivers)


@pytest.mark.parametrize("name", ["noise", "cycle"])
def test_nothing_is_found_where_there_is_nothing(name) -> None:
    table, _ = make_control(name, 3_000, seed=7)
    rows = exogenous(MVLSTM(**SETTINGS, max_epochs=20), table)
    assert not (rows["verdict"] == "important").any()


def test_isolated_gates_make_attention_faithful() -> None:
    table, truth = synthetic(4_000, seed=0)
    faithful = {"link": "none", "loss": "mse", "sigma": "calibrated", "isolation": 1e-2}
    rows = exogenous(MVLSTM(**SETTINGS, **faithful), table, effort="quick")
    assert auroc(rows["posterior"], rows.index.isin(truth.drivers)) == 1.0
