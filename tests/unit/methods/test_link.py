"""The linear map that a network's forecast is added to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as Reference

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.methods.network.link import Link
from mvlstm.methods.ridge import fit_ridge
from mvlstm.methods.robust import HUBER, fit_robust, refit_robust
from mvlstm.model.fitting import begin
from mvlstm.problem import moments
from mvlstm.problem.moments import Moments
from mvlstm.problem.windows import gather_windows
from mvlstm.table.frame import build_frame

from .learned import fit_frame


@pytest.fixture
def walk() -> np.ndarray:
    """Two columns, the second driven by three of its own lags and one of the first."""
    rng = np.random.default_rng(3)
    x, y, e = rng.normal(size=3000), np.zeros(3000), rng.normal(size=3000)
    for t in range(3, 3000):
        y[t] = 0.5 * y[t - 1] - 0.3 * y[t - 3] + 0.8 * x[t - 2] + 0.3 * e[t]
    return np.stack([x, y], axis=1)


def parts(table: np.ndarray, window: int, border: int = 2000) -> tuple:
    rows = np.arange(window - 1, len(table) - 1)
    labels = table[rows + 1, -1:]
    early = rows < border
    return (rows[early], labels[early]), (rows[~early], labels[~early])


def test_moments_give_ridge_regression(walk) -> None:
    train, _ = parts(walk, 4)
    (found,) = Moments.each(walk, 4, train)
    X = gather_windows(walk, train[0], 4).reshape(len(train[0]), -1)
    for slope, level, penalty in zip(*found.path((0.1, 50.0)), (0.1, 50.0), strict=True):
        reference = Reference(alpha=penalty).fit(X, train[1])
        np.testing.assert_allclose(slope[:, 0], reference.coef_.ravel(), atol=1e-9)
        np.testing.assert_allclose(level, reference.intercept_, atol=1e-9)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("fit", [fit_ridge, fit_robust])
def test_windows_stand_for_products_of_more_features(
    walk, fit, unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = np.hstack([np.random.default_rng(0).normal(size=(90, 60)), walk[:90]])
    train, choose = parts(wide, 3, border=50)
    labels = np.hstack([train[1], np.roll(train[1], -1)])
    if unknown:
        labels[[3, 8, 9], [0, 1, 1]] = np.nan
    train, choose = (train[0], labels), (choose[0], np.hstack([choose[1]] * 2))
    narrow = fit(wide, 3, train, choose)
    monkeypatch.setattr(moments, "check_work", lambda features, windows: True)
    found = fit(wide, 3, train, choose)
    assert (found.penalty == narrow.penalty).all()
    np.testing.assert_allclose(found.weights, narrow.weights, atol=1e-8)
    np.testing.assert_allclose(found.intercept, narrow.intercept, atol=1e-8)


def test_too_many_features_and_windows_are_refused_before_the_work() -> None:
    with pytest.raises(ParameterError, match=r"20,000 inputs in 30,000 windows.*12\.8 GB"):
        moments.check_work(20_000, 30_000)
    assert moments.check_work(20_000, 400)
    assert not moments.check_work(5_000, 10**6) and not moments.check_work(3_000, 10)


def test_the_lags_that_act_are_found(walk) -> None:
    link = fit_robust(walk, 30, *parts(walk, 30))
    assert link.weights.shape[0] in (3, 5)
    np.testing.assert_allclose(link.weights[-2, 0, 0], 0.8, atol=0.05)
    np.testing.assert_allclose(link.weights[-1, 1, 0], 0.5, atol=0.05)


def test_a_few_wild_labels_do_not_bend_the_map(walk) -> None:
    train, _ = parts(walk, 3)
    wild = train[1].copy()
    wild[::40] += 50.0
    calm = refit_robust(walk, 3, np.array([0.1]), train)
    bent = refit_robust(walk, 3, np.array([0.1]), (train[0], wild))
    np.testing.assert_allclose(bent.weights, calm.weights, atol=0.05)
    assert abs(float(bent.intercept[0])) < 0.05  # least squares: 50 / 40


def test_it_minimises_hubers_loss(walk) -> None:
    train, _ = parts(walk, 3)
    link = refit_robust(walk, 3, np.array([1e-6]), train)
    residual = (train[1] - link.rows(walk, train[0]))[:, 0]
    scale = 1.4826 * np.median(np.abs(residual))
    pull = np.clip(residual / scale, -HUBER, HUBER)
    X = gather_windows(walk, train[0], 3).reshape(len(train[0]), -1)
    np.testing.assert_allclose(X.T @ pull / len(X), 0.0, atol=2e-3)
    assert abs(pull.mean()) < 2e-3


def test_each_step_ahead_has_its_own_map(walk) -> None:
    rows = np.arange(4, 2900)
    labels = np.stack([walk[rows + 1, 1], walk[rows + 2, 1]], axis=1)
    both = refit_robust(walk, 5, np.array([0.1, 0.1]), (rows, labels))
    for h in range(2):
        alone = refit_robust(walk, 5, np.array([0.1]), (rows, labels[:, h : h + 1]))
        np.testing.assert_allclose(both.weights[..., h], alone.weights[..., 0])


def test_labels_without_spread_are_left_to_least_squares() -> None:
    table = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.arange(4, 199)
    link = refit_robust(table, 2, np.array([1.0]), (rows, np.zeros((len(rows), 1))))
    np.testing.assert_array_equal(link.weights, 0.0)


def test_the_link_that_is_kept_learned_from_the_stopping_rows_too(walk) -> None:
    frame = build_frame(pd.DataFrame(walk[:900], columns=["x", "y"]), target="y")
    model = mv.MVLSTM(window=4, hidden_size=2, members=1, max_epochs=1, verbose=0)
    model, problem = fit_frame(model, frame, test=0.2, valid=0.1)
    kept = model.fitted_.learned.trained.labels.link.ridge
    rows = np.concatenate([problem.origins["train"], problem.origins["stop"]])
    labels = problem.prepared.labels(rows, 1)
    again = refit_robust(
        problem.prepared.table, kept.weights.shape[0], kept.penalty, (rows, labels)
    )
    np.testing.assert_array_equal(kept.weights, again.weights)


def test_steps_with_penalties_of_their_own_settle_each_by_itself(walk) -> None:
    rows = np.arange(4, 2900)
    labels = np.stack([walk[rows + 1, 1], np.zeros(len(rows)), walk[rows + 2, 1]], axis=1)
    penalties = np.array([0.1, 1.0, 1e4])
    both = refit_robust(walk, 5, penalties, (rows, labels))
    np.testing.assert_array_equal(both.weights[..., 1], 0.0)  # nothing to settle
    for h in (0, 2):
        alone = refit_robust(walk, 5, penalties[h : h + 1], (rows, labels[:, h : h + 1]))
        np.testing.assert_allclose(both.weights[..., h], alone.weights[..., 0])


def test_a_target_that_is_mostly_zero_settles(walk) -> None:
    rows = np.arange(4, 2900)
    labels = np.where(walk[rows + 1, 1:] > 0.8, walk[rows + 1, 1:], 0.0)
    link = refit_robust(walk, 5, np.array([1.0]), (rows, labels))
    error = np.sqrt(np.mean((labels - link.rows(walk, rows)) ** 2))
    assert error < 1.2 * labels.std()


def test_a_window_counts_once_when_fitted_again(walk) -> None:
    frame = build_frame(pd.DataFrame(walk, columns=["x", "y"]), target="y")
    problem = begin(mv.MVLSTM(window=5, verbose=0), frame, test=0.2, valid=0.1).problem
    link = Link.learn("linear", problem)
    train = problem.origins["train"]
    again = [
        link.refit(replace(problem, origins={**problem.origins, "stop": train[-some:]}))
        for some in (1, 500)
    ]
    np.testing.assert_allclose(again[0].ridge.weights, again[1].ridge.weights)


def test_no_step_ahead_is_missed_of_what_is_known(walk) -> None:
    assert len(fit_robust(walk, 30, *parts(walk, 30), least=12).weights) == 12  # else 3
    table = pd.DataFrame({"known": walk[:600, 0], "y": walk[:600, 1]})
    few = {"window": 14, "horizon": 12, "members": 1, "max_epochs": 1, "verbose": 0}
    lags = []
    for known in (None, "known"):
        model = mv.MVLSTM(**few, link="linear").fit(table, "y", known=known, test=0.2)
        lags.append(len(model.fitted_.learned.trained.labels.link.ridge.weights))
    assert lags[0] < 12 <= lags[1]
