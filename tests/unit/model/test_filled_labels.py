"""Targets that were filled in are inputs, and nothing is learned or chosen by forecasting them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as SklearnRidge

from mvlstm.methods import ridge, robust
from mvlstm.methods.network import kinds as mixed
from mvlstm.methods.network.kinds import keeps_its_levels
from mvlstm.methods.network.members import member_errors, with_all_rows
from mvlstm.methods.network.trained import labels_by_row, learn_labels
from mvlstm.methods.ridge import PENALTIES, Ridge, fit_ridge
from mvlstm.methods.robust import fit_robust, refit_robust
from mvlstm.model.calibration import calibrate
from mvlstm.model.fitting import begin
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import forecaster_class
from mvlstm.problem import moments
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import gather_windows, iterate_windows, measured_labels
from mvlstm.table.frame import build_frame
from mvlstm.train.config import Member

H = 6
NETWORK = {"hidden_size": 4, "members": 2, "max_epochs": 2, "device": "cpu"}
METHODS: dict[str, dict[str, Any]] = {
    "AR": {},
    "ENET": {"grid": "quick"},
    "RF": {"grid": "quick", "max_trees": 5, "n_jobs": 1},
    "GBT": {"grid": "quick", "max_rounds": 10},
    "MVLSTM": NETWORK,
    "LSTM": NETWORK | {"link": "linear"},
    "DUAL": NETWORK,
    "RETAIN": NETWORK,
    "CLSTM": NETWORK | {"penalties": (0.1, 0.01)},
}


def wave(n: int = 600, *, missing: float = 0.3) -> pd.DataFrame:
    """Return a sine with noise, of which some values are missing."""
    rng = np.random.default_rng(0)
    y = 3 * np.sin(2 * np.pi * np.arange(n) / 12) + 0.3 * rng.normal(size=n)
    gone = rng.uniform(size=n) < missing
    gone[:3] = False
    return pd.DataFrame({"x": rng.normal(size=n), "y": np.where(gone, np.nan, y)})


def make(name: str, **changes: Any) -> Any:
    settings = {"window": 12, "horizon": H, "missing": "fill", "verbose": 0}
    return forecaster_class(name)(**settings | METHODS[name] | changes)


def start(model: AbstractForecaster, table: pd.DataFrame, valid: float = 0.2) -> Problem:
    frame = build_frame(table, target="y", missing="fill")
    return begin(model, frame, test=0.2, valid=valid).problem


def otherwise_filled(problem: Problem) -> Problem:
    """Return a problem whose inputs are the same, and other values were filled in as labels."""
    prepared = problem.prepared
    values = prepared.frame.values.copy()
    values[~prepared.frame.measured, -1] += 1e3
    frame = replace(prepared.frame, values=values)
    return replace(problem, prepared=replace(prepared, frame=frame))


def learned(model: AbstractForecaster, problem: Problem) -> dict[str, Any]:
    found = model.learn(problem)
    arrays, extra = found.arrays()
    calibration, _ = calibrate(found, problem)
    return {**arrays, **extra, "spread": calibration.spread, "factors": calibration.factors}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_does_not_depend_on_what_was_filled_in(name: str) -> None:
    model = make(name)
    problem = start(model, wave())
    assert_same(learned(model, problem), learned(model, otherwise_filled(problem)))


@pytest.mark.parametrize(
    "changes",
    [
        {"members": 5, "max_epochs": 1},  # of several kinds
        {"loss": "mse", "link": "none"},  # the variance is found on the stopping rows
        {"leave_out": 0.2, "link": "last"},
        {"head": "fusion", "sigma": "learned", "loss": "nll+mse"},
    ],
)
def test_nor_does_one_of_other_settings(changes: dict[str, Any]) -> None:
    model = make("MVLSTM", **changes)
    problem = start(model, wave())
    assert_same(learned(model, problem), learned(model, otherwise_filled(problem)))


def test_an_lstm_of_horizon_one_does_not_learn_from_them_at_every_step() -> None:
    model = make("CLSTM", horizon=1)
    problem = start(model, wave())
    assert_same(learned(model, problem), learned(model, otherwise_filled(problem)))
    every = model._every_label(problem, learn_labels("none", problem))
    measured = measured_labels(problem.prepared.frame, np.arange(len(every)), 1)
    assert not np.isfinite(every[~measured]).any() and np.isfinite(every[measured]).any()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("AR", {}),
        ("ENET", {}),
        ("GBT", {"max_rounds": 60}),
        ("MVLSTM", {"hidden_size": 6, "max_epochs": 10}),
        ("LSTM", {"hidden_size": 12, "max_epochs": 20, "link": "none"}),
    ],
)
def test_the_first_step_of_several_is_forecast_as_one_alone(
    name: str, settings: dict[str, Any]
) -> None:
    table, rmse = wave(1500), {}
    for horizon in (1, H):
        model = make(name, horizon=horizon, **settings).fit(table, "y", test=0.2)
        forecast = model.predict(table)
        new = (forecast.part == "new").all(axis=1)
        errors = (forecast.members.mean(axis=0) - forecast.actual)[new, 0]
        rmse[horizon] = np.sqrt(np.nanmean(errors**2))
    assert rmse[H] < 1.1 * rmse[1], rmse


def test_ar_is_ridge_on_each_steps_measured_labels() -> None:
    model = make("AR")
    problem = start(model, wave())
    linear, prepared = model.learn(problem).linear, problem.prepared

    def measured(part: str, h: int) -> tuple[Any, Any]:
        rows = problem.origins[part]
        rows = rows[measured_labels(prepared.frame, rows, H)[:, h]]
        windows = gather_windows(prepared.table, rows, 12)
        return windows.reshape(len(rows), -1), prepared.labels(rows, H)[:, h]

    for h in range(H):
        fits = [SklearnRidge(alpha=penalty).fit(*measured("train", h)) for penalty in PENALTIES]
        X, y = measured("stop", h)
        errors = [np.mean((fit.predict(X) - y) ** 2) for fit in fits]
        best = fits[int(np.argmin(errors))]
        assert linear.penalty[h] == pytest.approx(best.alpha)
        np.testing.assert_allclose(linear.weights[..., h].ravel(), best.coef_, atol=1e-8)
        assert linear.intercept[h] == pytest.approx(best.intercept_)


def test_the_links_steps_have_lags_in_common_and_rows_of_their_own() -> None:
    problem = start(make("MVLSTM"), wave())
    table = problem.prepared.table
    parts = [(problem.origins[part], problem.labels(part)) for part in ("train", "stop")]
    link = fit_robust(table, 12, *parts)
    lags = len(link.weights)
    for h in range(H):
        rows, labels = parts[0]
        known = np.isfinite(labels[:, h])
        alone = refit_robust(
            table, lags, link.penalty[h : h + 1], (rows[known], labels[known, h : h + 1])
        )
        np.testing.assert_allclose(link.weights[..., h], alone.weights[..., 0], rtol=1e-9)
        np.testing.assert_allclose(link.intercept[h], alone.intercept[0], rtol=1e-9)


def fitted_maps(problem: Problem) -> list[Ridge]:
    """Fit ridge regression and the link to a problem's windows."""
    parts = [(problem.origins[part], problem.labels(part)) for part in ("train", "stop")]
    return [fit(problem.prepared.table, 12, *parts) for fit in (fit_ridge, fit_robust)]


def assert_alike(one: Ridge, other: Ridge, at: slice = slice(None)) -> None:
    for name in ("weights", "intercept", "penalty"):
        found, expected = getattr(one, name), getattr(other, name)[..., at]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("missing", [0.05, 0.8])
def test_each_step_has_the_map_of_its_known_labels(missing: float) -> None:
    problem = start(make("AR"), wave(900, missing=missing))
    parts = [(problem.origins[part], problem.labels(part)) for part in ("train", "stop")]
    table, together = problem.prepared.table, fitted_maps(problem)[0]
    for h in range(H):
        known = [np.isfinite(labels[:, h]) for _, labels in parts]
        own = [(one[0][k], one[1][k, h : h + 1]) for one, k in zip(parts, known, strict=True)]
        assert_alike(fit_ridge(table, 12, *own), together, slice(h, h + 1))


def test_the_links_steps_may_be_fitted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = start(make("AR"), wave())
    _, link = fitted_maps(problem)
    monkeypatch.setattr(robust, "MOST_NUMBERS", 4 * link.weights[..., 0].size ** 2)
    assert_alike(fitted_maps(problem)[1], link)


def test_few_missing_targets_cost_few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = []

    def counting(table: Any, origins: Any, *rest: Any) -> Any:
        gathered[-1] += len(origins)
        return iterate_windows(table, origins, *rest)

    for module in (ridge, moments):
        monkeypatch.setattr(module, "iterate_windows", counting)
    for missing in (0.0, 0.03):
        gathered.append(0)
        fitted_maps(start(make("AR"), wave(900, missing=missing)))
    assert gathered[1] < 2 * gathered[0]  # not as often as there are steps ahead


def test_rows_of_both_parts_are_learned_where_measured_alone() -> None:
    """Of every eighth value measured, the few rows watched may all have it at the same step."""
    table = wave(900, missing=0.0)
    table.loc[np.arange(900) % 8 != 0, "y"] = np.nan
    model = make("LSTM", horizon=4)
    problem = with_all_rows(start(model, table))
    rows = problem.origins["stop"] = problem.origins["train"][::4]
    measured = measured_labels(problem.prepared.frame, rows, 4)
    assert not measured.any(axis=0).all()
    by_row = labels_by_row(learn_labels("last", problem), problem)
    np.testing.assert_array_equal(np.isfinite(by_row[rows]), measured)


def test_members_are_judged_by_measured_values(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    find = mixed.find_harmful
    monkeypatch.setattr(mixed, "find_harmful", lambda e, *rest: seen.append(e) or find(e, *rest))
    model = make("MVLSTM", members=5, max_epochs=1)
    problem = start(model, wave())
    assert keeps_its_levels(problem, learn_labels("auto", problem))
    model.learn(problem)
    measured = measured_labels(problem.prepared.frame, problem.origins["stop"], H)
    assert seen[0].shape == (5, measured.sum(), 1) and np.isfinite(seen[0]).all()


def test_settings_are_compared_by_measured_values() -> None:
    table = wave()
    frame = build_frame(table, target="y", missing="fill")
    members = [Member(0), Member(1), Member(2, 1e20), Member(3)]
    found = member_errors(make("MVLSTM"), frame, members, test=0.2, valid=0.2, together=2)
    assert np.isfinite(found[0]) and found[1] == np.inf


@pytest.mark.parametrize("name", ["AR", "ENET", "GBT", "MVLSTM", "LSTM", "CLSTM"])
def test_a_step_that_was_never_measured_stops_no_fit(name: str) -> None:
    table = wave(240, missing=0.0)
    table.loc[120:, "y"] = table.loc[120:, "y"].where(np.arange(120) % 4 == 0)
    model = make(name, horizon=2, window=5).fit(table, "y", valid=8)
    stop = start(model, table, valid=8).origins["stop"]
    assert not measured_labels(build_frame(table, target="y", missing="fill"), stop, 2).all()
    assert np.isfinite(model.predict(table).members).all()


@pytest.mark.parametrize("refit", ["newest", "full"])
def test_updates_learn_from_measured_values(refit: str) -> None:
    table = wave(900)
    model = make("MVLSTM").fit(table.iloc[:600], "y")
    model.update(table, refit=refit)
    update = model.updates_[-1]
    assert np.isfinite([update.rmse_before, update.rmse_after]).all()
    assert update.rmse_after <= update.rmse_before


def test_a_checkpoint_belongs_to_what_was_measured() -> None:
    problem = start(make("LSTM"), wave())
    frame = replace(problem.prepared.frame, measured=None)
    other = replace(problem, prepared=replace(problem.prepared, frame=frame))
    assert problem.checksum() != other.checksum()
