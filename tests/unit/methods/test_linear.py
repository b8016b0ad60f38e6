"""Ridge and elastic net against direct use of scikit-learn on the same windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import ElasticNet
from sklearn.linear_model import Ridge as SklearnRidge

import mvlstm as mv
from mvlstm.methods.linear import GRIDS, MOST_ROUNDS, TOLERANCE, elastic_net
from mvlstm.methods.ridge import PENALTIES

from .learned import own_importance
from .plain import flat_windows


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=600).frame


def test_ar_is_ridge_with_the_penalty_chosen_on_the_stopping_rows(table: pd.DataFrame) -> None:
    model = mv.AR(window=4, verbose=0).fit(table, "y", test=0.2)
    data = flat_windows(table, window=4)
    fits = [SklearnRidge(alpha=a).fit(*data["train"]) for a in PENALTIES]
    X, y = data["stop"]
    best = min(fits, key=lambda fit: float(np.mean((fit.predict(X) - y) ** 2)))
    assert model.fitted_.learned.linear.penalty[0] == pytest.approx(best.alpha)
    new = model.predict(table).mean.to_numpy()[-len(data["new"][1]) :]
    np.testing.assert_allclose(new, best.predict(data["new"][0]), atol=1e-9)


def test_enet_equals_scikit_learn(table: pd.DataFrame) -> None:
    model = mv.ENET(window=4, grid="quick", verbose=0).fit(table, "y", test=0.2)
    data = flat_windows(table, window=4)
    X, y = data["train"]
    a, b = model.fitted_.learned.linear.penalty[0]
    direct = ElasticNet(
        alpha=a + b, l1_ratio=a / (a + b), precompute=True, tol=TOLERANCE, max_iter=MOST_ROUNDS
    ).fit(X, (y - y.mean()) / y.std())
    expected = direct.predict(data["new"][0]) * y.std() + y.mean()
    new = model.predict(table).mean.to_numpy()[-len(expected) :]
    np.testing.assert_allclose(new, expected, atol=1e-9)


def test_enet_minimises_the_papers_objective() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X -= X.mean(axis=0)
    X = np.linalg.qr(X)[0] * np.sqrt(200)  # orthogonal columns: the optimum is in closed form
    y = X @ [1.0, 0.05, -2.0] + rng.normal(size=200)
    a, b = 0.1, 0.5
    correlation = X.T @ (y - y.mean()) / 200
    expected = np.sign(correlation) * np.maximum(np.abs(correlation) - a, 0) / (1 + b)
    np.testing.assert_allclose(elastic_net(X, y, (a, b)).coef_, expected, atol=1e-6)
    ridge = elastic_net(X, y, (0.0, b)).coef_
    np.testing.assert_allclose(ridge, correlation / (1 + b), atol=1e-9)


def test_grids_are_the_papers_and_an_extension() -> None:
    assert len(GRIDS["paper"]) == 81
    assert set(GRIDS["paper"]) < set(GRIDS["extended"])
    assert set(GRIDS["quick"]) < set(GRIDS["extended"])


def test_steps_ahead_have_a_model_each(table: pd.DataFrame) -> None:
    model = mv.AR(window=4, horizon=2, verbose=0).fit(table, "y", test=0.2)
    X = flat_windows(table, window=4)["train"][0][:-1]  # labels of both steps are training rows
    y = table["y"].to_numpy()[5 : 5 + len(X)]
    direct = SklearnRidge(alpha=model.fitted_.learned.linear.penalty[1]).fit(X, y)
    weights = model.fitted_.learned.linear.weights[..., 1].reshape(-1)
    np.testing.assert_allclose(weights, direct.coef_, atol=1e-9)


def test_own_importance_finds_the_drivers(table: pd.DataFrame) -> None:
    model = mv.AR(window=4, verbose=0).fit(table, "y", test=0.2)
    own = own_importance(model)
    assert own is not None and own.sum() == pytest.approx(1.0)
    assert set(np.argsort(own)[-3:]) == {2, 3, 10}  # the drivers and the target's own past


@pytest.mark.parametrize("name", ["AR", "ENET"])
def test_saved_and_loaded(table: pd.DataFrame, tmp_path: Path, name: str) -> None:
    settings = {"grid": "quick"} if name == "ENET" else {}
    model = getattr(mv, name)(window=3, horizon=2, verbose=0, **settings).fit(table, "y")
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    pd.testing.assert_series_equal(again.predict(table).mean, model.predict(table).mean)
    np.testing.assert_array_equal(
        again.fitted_.learned.linear.penalty, model.fitted_.learned.linear.penalty
    )


def test_unknown_grid_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(mv.errors.ParameterError, match="choose 'paper', 'extended' or 'quick'"):
        mv.ENET(grid="fine").fit(table, "y")
