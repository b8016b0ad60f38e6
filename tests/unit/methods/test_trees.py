"""Forests and boosted trees against direct use of their libraries on the same windows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import mvlstm as mv
from mvlstm.methods import trees as module
from mvlstm.methods.tree_arrays import Trees, from_forest, from_histogram

from .learned import own_importance
from .plain import flat_windows

GBT = {"learning_rate": 0.1, "leaves": 8, "least": 20, "features": 0.5, "l2": 1.0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=400).frame


@pytest.fixture(autouse=True)
def small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTS", (3, 10))
    monkeypatch.setitem(mv.RF.grids, "quick", [{"depth": 3}, {"depth": 5}])
    boosting = [{"depth": 3, "penalty": 1.0}, {"penalty": 1e-2}]
    monkeypatch.setitem(mv.XGT.grids, "quick", boosting)
    settings = [{**GBT, "relative": relative} for relative in (False, True)]
    monkeypatch.setitem(mv.GBT.grids, "quick", settings)


MODELS = {
    "RF": {"grid": "quick", "max_trees": 10, "n_jobs": 1, "seed": 3},
    "XGT": {"grid": "quick", "max_rounds": 12, "n_jobs": 1, "seed": 3},
    "GBT": {"grid": "quick", "max_rounds": 8, "seed": 3},
}


def fitted(name: str, table: pd.DataFrame, **changes: object) -> mv.RF | mv.XGT | mv.GBT:
    settings = {"window": 4, "verbose": 0, **MODELS[name], **changes}
    model: mv.RF | mv.XGT | mv.GBT = getattr(mv, name)(**settings).fit(table, "y", test=0.2)
    return model


def new_rows(model: mv.RF | mv.XGT | mv.GBT, table: pd.DataFrame) -> np.ndarray:
    forecast = model.predict(table)
    return forecast.mean.to_numpy()[forecast.part[:, 0] == "new"]


def test_rf_equals_scikit_learn(table: pd.DataFrame) -> None:
    model = fitted("RF", table)
    data = flat_windows(table, window=4)
    chosen = model.fitted_.learned.chosen[0]
    direct = RandomForestRegressor(
        n_estimators=chosen["trees"],
        max_depth=chosen["depth"],
        max_features="sqrt",
        random_state=3,
        n_jobs=1,
    ).fit(*data["train"])
    np.testing.assert_allclose(
        new_rows(model, table), direct.predict(data["new"][0]), rtol=0, atol=1e-12
    )
    own = direct.feature_importances_.reshape(4, 11).sum(axis=0)
    np.testing.assert_allclose(own_importance(model), own, atol=1e-12)


def test_rf_chooses_on_the_stopping_rows(table: pd.DataFrame) -> None:
    model = fitted("RF", table)
    data = flat_windows(table, window=4)
    X, y = data["stop"]

    def error(depth: int, count: int) -> float:
        forest = RandomForestRegressor(
            count, max_depth=depth, max_features="sqrt", random_state=3
        ).fit(*data["train"])
        return float(np.mean((forest.predict(X) - y) ** 2))

    best = min(((d, c) for d in (3, 5) for c in (3, 10)), key=lambda one: error(*one))
    assert model.fitted_.learned.chosen[0] == {"depth": best[0], "trees": best[1]}


def test_xgt_equals_xgboost(table: pd.DataFrame) -> None:
    import xgboost

    model = fitted("XGT", table)
    data = flat_windows(table, window=4)
    chosen = model.fitted_.learned.chosen[0]
    direct = xgboost.XGBRegressor(
        n_estimators=12,
        max_depth=chosen["depth"],
        reg_lambda=chosen["penalty"],
        learning_rate=0.1,
        random_state=3,
        n_jobs=1,
    ).fit(*data["train"])
    expected = direct.predict(data["new"][0], iteration_range=(0, chosen["rounds"]))
    np.testing.assert_array_equal(new_rows(model, table).astype(np.float32), expected)


def test_gbt_equals_scikit_learn(table: pd.DataFrame) -> None:
    model = fitted("GBT", table)
    data = flat_windows(table, window=4)
    chosen = model.fitted_.learned.chosen[0]
    last = {part: table["y"].to_numpy()[-len(y) - 1 : -1] for part, (_, y) in data.items()}
    last["train"] = table["y"].to_numpy()[3:279]
    relative = chosen["relative"]
    X, y = data["train"]
    direct = HistGradientBoostingRegressor(
        learning_rate=chosen["learning_rate"],
        max_iter=chosen["rounds"],
        max_leaf_nodes=chosen["leaves"],
        min_samples_leaf=chosen["least"],
        max_features=chosen["features"],
        l2_regularization=chosen["l2"],
        early_stopping=False,
        random_state=3,
    ).fit(X, y - relative * last["train"])
    expected = direct.predict(data["new"][0]) + relative * last["new"]
    np.testing.assert_allclose(new_rows(model, table), expected, rtol=0, atol=1e-9)


def test_arrays_give_exactly_what_the_libraries_give() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.normal(size=300)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    single = X.astype(np.float32)
    each = np.array([one.predict(single) for one in forest.estimators_])
    np.testing.assert_array_equal(from_forest(forest).leaves(single), each)
    boosted = HistGradientBoostingRegressor(max_iter=5, early_stopping=False).fit(X, y)
    trees, gains = from_histogram(boosted)
    total = np.full(300, boosted._baseline_prediction.item())
    for values in trees.leaves(X):
        total += values
    np.testing.assert_array_equal(total, boosted.predict(X))
    assert set(np.argsort(gains)[-2:]) == {0, 1}


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_with_several_steps(
    name: str, table: pd.DataFrame, tmp_path: Path
) -> None:
    model = fitted(name, table, horizon=2)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    pd.testing.assert_series_equal(again.predict(table).mean, model.predict(table).mean)
    np.testing.assert_array_equal(own_importance(again), own_importance(model))
    assert again.fitted_.learned.chosen == model.fitted_.learned.chosen


@pytest.mark.parametrize("link", ["last", "linear"])
def test_trees_correct_a_link(link: str, tmp_path: Path) -> None:
    """A level that training did not see is followed, which trees alone cannot."""
    rng = np.random.default_rng(0)
    walk = pd.DataFrame(
        {"x": rng.normal(size=400), "y": 0.5 * np.arange(400) + rng.normal(size=400)}
    )
    plain, linked = fitted("XGT", walk), fitted("XGT", walk, link=link)
    errors = [one.evaluate(walk).scores["rmse"].iloc[0] for one in (plain, linked)]
    assert errors[0] > 20 and errors[1] < 3
    linked.save(tmp_path / "trees.mvlstm")
    again = mv.load(tmp_path / "trees.mvlstm")
    np.testing.assert_array_equal(new_rows(again, walk), new_rows(linked, walk))


def test_trees_on_a_link_do_not_learn_changes_as_well(table: pd.DataFrame) -> None:
    chosen = fitted("GBT", table, link="last").fitted_.learned.chosen
    assert not any(one["relative"] for one in chosen)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("scale", "level"), [(1.0, 1e7), (1e-5, 0.0), (1e-9, 0.0), (1e20, 0.0)])
def test_units_of_the_target_do_not_matter(
    name: str, scale: float, level: float, table: pd.DataFrame, tmp_path: Path
) -> None:
    """The libraries hold labels, or gains, in numbers that run out of digits or small values."""
    moved = table.assign(y=level + scale * table["y"])
    model = fitted(name, moved)
    here, there = (
        one.evaluate(t).scores for one, t in ((fitted(name, table), table), (model, moved))
    )
    np.testing.assert_allclose(there["skill"].iloc[0], here["skill"].iloc[0], atol=0.05)
    model.save(tmp_path / "model.safetensors")
    loaded = mv.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(new_rows(loaded, moved), new_rows(model, moved))


def test_labels_of_usual_units_are_learned_as_they_are(table: pd.DataFrame) -> None:
    y = table["y"].to_numpy()
    assert module.label_units(y) == module.label_units(100 + 50 * y) == (0.0, 1.0)
    assert module.label_units(1e7 + y) == pytest.approx((1e7 + y.mean(), y.std()))


def test_seeds_are_honoured(table: pd.DataFrame) -> None:
    one, same, other = (new_rows(fitted("RF", table, seed=s), table) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-6


@pytest.mark.parametrize("name", ["RF", "GBT"])
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_that_the_library_does_not_take_are_refused(
    table: pd.DataFrame, name: str, seed: int
) -> None:
    with pytest.raises(mv.errors.ParameterError, match=rf"seed={seed} must lie between 0 and"):
        fitted(name, table, seed=seed)


def test_trees_that_are_none_are_refused() -> None:
    forest = RandomForestRegressor(2, max_depth=2, random_state=0)
    trees = from_forest(forest.fit(np.arange(20.0).reshape(10, 2), np.arange(10.0)))
    good = trees.arrays("t")
    assert isinstance(Trees.restore(dict(good), "t", 2), Trees)
    nodes = len(trees.feature)
    for key, value in {"left": nodes, "right": 0, "feature": 2, "roots": -1}.items():
        bad = {name: array.copy() for name, array in good.items()}
        bad[f"t.{key}"][0] = value
        with pytest.raises(mv.errors.ModelFileError, match="do not make trees"):
            Trees.restore(bad, "t", 2)


def test_missing_xgboost_names_the_extra(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(mv.errors.MissingExtraError, match=r"mvlstm\[baselines\]"):
        fitted("XGT", table)


def test_boosting_splits_short_tables_too(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mv.GBT.grids, "quick", [{**GBT, "least": 200, "relative": False}])
    model = fitted("GBT", table)
    assert model.fitted_.learned.chosen[0]["least"] == 5
    assert len(model.fitted_.learned.trees[0].feature) > len(model.fitted_.learned.trees[0].roots)


@pytest.mark.parametrize(
    ("n_jobs", "alone", "threads"), [(-1, 10**6, 1), (-1, 100, None), (2, 10**6, 2)]
)
def test_one_thread_boosts_few_values(
    table: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    n_jobs: int,
    alone: int,
    threads: int | None,
) -> None:
    import xgboost

    used = []

    class Watched(xgboost.XGBRegressor):
        def fit(self, *args: object, **kwargs: object) -> xgboost.XGBRegressor:
            used.append(self.n_jobs)
            self.set_params(n_jobs=1)
            return super().fit(*args, **kwargs)

    monkeypatch.setattr(xgboost, "XGBRegressor", Watched)
    monkeypatch.setattr(module, "ALONE", alone)
    fitted("XGT", table, n_jobs=n_jobs, max_rounds=2)
    assert set(used) == {threads}
