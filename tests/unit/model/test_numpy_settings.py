"""Whole numbers of numpy as settings, which overflow where Python's do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError

SETTINGS = {
    **{"window": 6, "horizon": 2, "hidden_size": 2, "max_epochs": 3, "batch_size": 32},
    **{"patience": 2, "members": 2, "seed": 1},
}


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int8, np.uint64])
@pytest.mark.parametrize("name", ["MVLSTM", "AR"])
def test_whole_numbers_of_numpy_are_as_good_as_pythons(
    name: str, kind: Any, tmp_path: Path
) -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    cls: Any = getattr(mv, name)
    known = {key: value for key, value in SETTINGS.items() if key in cls().get_params()}
    means = []
    for number in (int, kind):
        given = {key: number(value) for key, value in known.items()}
        model = cls(**given, verbose=0).fit(table, target="y", test=0.2)
        assert all(getattr(model, key) is value for key, value in given.items())
        assert model.evaluate(table).scores["rmse"].notna().all()
        model.save(tmp_path / "model.safetensors")
        again = mv.load(tmp_path / "model.safetensors").predict(table)
        means.append(model.predict(table).mean.to_numpy())
        assert np.array_equal(again.mean.to_numpy(), means[-1])
        assert len(model.forecast(table).mean) == 2
    assert np.array_equal(*means)


@pytest.mark.parametrize("name", ["LSTM", "AR"])
def test_small_types_do_not_overflow_in_series_that_are_new(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = [
        pd.DataFrame({"shop": shop, "x": rng.normal(size=220), "y": rng.normal(size=220)})
        for shop in "abc"
    ]
    table = pd.concat(rows, ignore_index=True)
    settings = {"members": 1, "hidden_size": 2, "max_epochs": 1} if name == "LSTM" else {}
    cls: Any = getattr(mv, name)
    model = cls(window=np.int8(60), horizon=np.int8(2), verbose=0, **settings)
    model.fit(table[table["shop"] != "c"], target="y", series="shop", test=0.4)
    assert np.isfinite(model.predict(table).mean).all()
    found = model.explain(table, effort="quick", contributions=0)
    assert found.importance["variable"].tolist() != []


def test_rows_to_fit_state_space_models_on_may_be_of_a_small_type() -> None:
    table = mv.datasets.load("synthetic", n=300).frame[["x2", "y"]]
    models = [mv.STRX(fit_rows=kind(100), verbose=0) for kind in (int, np.int8)]
    means = [model.fit(table, target="y", test=20).predict(table).mean for model in models]
    assert np.array_equal(*means)


def test_too_few_rows_are_counted_whatever_the_type() -> None:
    table = mv.datasets.load("synthetic", n=900).frame
    model = mv.AR(window=np.int8(100), horizon=np.int8(100), verbose=0)
    model.fit(table, target="y", test=0.3, valid=250)
    for call in (model.predict, model.evaluate, model.explain):
        with pytest.raises(DataError, match="needs 200 rows"):
            call(table.iloc[:50])


def test_backtests_take_small_types() -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    models = [mv.AR(window=kind(6), verbose=0) for kind in (int, np.int8)]
    scores = [mv.backtest(model, table, "y", folds=2).scores["rmse"] for model in models]
    assert np.array_equal(*scores)
