"""Targets modelled as log(1 + y): bounds, units, files, explanations, comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from made_results import contribution_sums
from mvlstm.errors import DataError, ParameterError
from mvlstm.evaluate import backtest as rolling
from mvlstm.model import decomposition, explaining
from mvlstm.model.registry import FORECASTERS, forecaster_class

OTHERS: dict[str, dict[str, Any]] = {"ARIMAX": {"order": (1, 0, 0)}}
PLAIN = [n for n in FORECASTERS if "transform" not in forecaster_class(n)().get_params()]


def counts(n: int = 500, seed: int = 0, base: float = 1.5) -> pd.DataFrame:
    """Hourly counts, often zero, with a level that follows x and the hour."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = 0.9 * x[i - 1] + 0.3 * rng.normal()
    level = base + 0.8 * np.sin(2 * np.pi * t / 24) + np.r_[0.0, x[:-1]]
    y = rng.poisson(np.exp(level + 0.3 * rng.normal(size=n)))
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    return pd.DataFrame({"x": x, "y": y.astype(float)}, index=times)


def corrected_by_all(model: Any) -> Any:
    """Return a model whose mean is corrected by all of the intervals' variance."""
    fitted = model.fitted_
    whole = replace(fitted.calibration, mean_factor=np.ones(fitted.horizon))
    return model.holding(replace(fitted, calibration=whole))


def fitted(name: str = "MVLSTM", table: pd.DataFrame | None = None, **changes: Any) -> Any:
    few = {"max_epochs": 3, "batch_size": 64} if forecaster_class(name).ensemble else {}
    few = {**FORECASTERS[name].small, **few, **OTHERS.get(name, {})}
    settings = {"window": 6, "verbose": 0, "transform": "log1p"} | few | changes
    data = counts() if table is None else table
    return forecaster_class(name)(**settings).fit(data, "y", test=0.2, valid=0.2)


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("name", [n for n in FORECASTERS if n not in PLAIN])
def test_no_interval_below_zero(name: str) -> None:
    table = counts()
    model = fitted(name, table)
    forecast = model.predict(table)
    low, high = forecast.interval(0.98)
    assert (low >= 0).all() and (low == 0).any() and (high > low).all()
    assert (forecast.members >= 0).all()
    np.testing.assert_array_equal(forecast.actual[:, 0], table["y"][6:])
    later = table.copy()
    later.iloc[-20:] = later.iloc[-20:].to_numpy()[::-1] * 1.5
    known = np.asarray(forecast.origin < table.index[-20])  # no look ahead
    again = model.predict(later).members[:, known]
    np.testing.assert_array_equal(again, forecast.members[:, known])
    scores = model.evaluate(table).scores
    assert np.isnan(scores.pop("mape")).all()  # of values of both signs
    assert np.isfinite(scores.to_numpy(dtype=float)).all()
    assert scores["coverage"].between(0.75, 1.0).all()


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_ones_have_no_transform(name: str) -> None:
    assert "transform" not in forecaster_class(name)().get_params()


def test_the_mean_is_that_of_the_mixture() -> None:
    forecast = corrected_by_all(fitted()).predict(counts())
    levels = (np.arange(400) + 0.5) / 400
    rows = replace(forecast.take(slice(0, 10)), shape=None, knots=None)
    drawn = np.mean([rows.quantile(q).to_numpy() for q in levels], axis=0)
    np.testing.assert_allclose(rows.mean, drawn, rtol=0.03)


def test_the_mean_of_a_log_normal_target_is_right() -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"y": np.exp(3.0 + 0.5 * rng.normal(size=3000))})
    model = mv.AR(window=2, transform="log1p", verbose=0).fit(table, "y", test=0.2)
    assert not any("corrected by" in note for note in model.notes_)  # but by all of the variance
    (factor,) = model.fitted_.calibration.mean_factor
    assert 0.7 < factor < 1.0  # of the intervals' variance, which has a margin
    forecast = model.predict(table)
    assert forecast.mean.mean() == pytest.approx(float(table["y"].mean()), rel=0.04)
    assert forecast.median.mean() == pytest.approx(np.exp(3.0), rel=0.05)


def test_the_correction_shrinks_where_errors_are_not_normal(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"y": 1000.0 * (rng.random(1500) < 0.8)})  # far from normal
    model = mv.AR(window=2, transform="log1p", verbose=0).fit(table, "y", test=0.2)
    assert model.fitted_.calibration.mean_factor[0] < 1.0
    assert any("corrected by" in note for note in model.notes_)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    shrunk = again.evaluate(table).scores.loc["AR", "rmse"]
    assert shrunk < 0.8 * corrected_by_all(again).evaluate(table).scores.loc["AR", "rmse"]


def test_crps_of_the_distribution_beats_that_of_its_neighbour_on_the_plain_scale() -> None:
    table = counts(1500)
    logarithm = fitted(table=table).evaluate(table).scores.loc["MVLSTM", "crps"]
    plain = fitted(table=table, transform="none").evaluate(table).scores.loc["MVLSTM", "crps"]
    assert logarithm < plain


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"difference": "auto", "horizon": 2},
        {"link": "last"},
        {"transform": "asinh", "horizon": 2},
    ],
)
def test_contributions_add_up_to_the_forecast(changes: dict[str, Any]) -> None:
    table = counts()
    model = fitted(**changes)
    explanation = model.explain(table, effort="quick", contributions=6)
    sums = contribution_sums(explanation)
    rows = model.predict(table).to_frame().set_index(["origin", "step"])["mean"]
    known = sums.index.intersection(rows.index)
    assert len(known) >= 4
    spread = float(table["y"].std())
    np.testing.assert_allclose(sums[known], rows[known], atol=1e-3 * spread)
    words = "asinh of the target" if "transform" in changes else "log(1 + target)"
    assert any(words in note for note in explanation.notes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("MVLSTM", {}),
        ("MVLSTM", {"loss": "nll", "sigma": 1.0, "link": "none", "max_epochs": 12}),  # as the paper
        ("MVLSTM", {"loss": "mse"}),
        ("LSTM", {"loss": "nll", "horizon": 2}),
        ("AR", {}),
    ],
)
def test_explanations_rest_on_the_forecasts_of_predict(name: str, changes: dict[str, Any]) -> None:
    """Also where a member's spread is not its squared error, by which forecasts were moved once."""
    table = counts(900, base=3.0)
    model = fitted(name, table, **changes)
    held = model.fitted_
    prepared = held.prepare(held.read(table, "explain"))
    origins = prepared.origins(6, model.horizon)[-150:]
    made = held.forecast(prepared, origins).members
    np.testing.assert_allclose(explaining._forecasts(held, prepared, origins), made, rtol=1e-9)
    scrambled = explaining._scrambler(held, prepared, origins)
    np.testing.assert_allclose(scrambled((0, 1), np.arange(150)), made, rtol=1e-4)
    level = held.predict(prepared, origins).members.mean(axis=0)
    means = decomposition._mean_scale(held, held.preparation.transform)
    mean = means(level).mean(axis=0)
    np.testing.assert_allclose(mean, made.mean(axis=(0, 1)), rtol=0.01)


def test_responses_are_changes_of_the_forecasts_of_predict() -> None:
    table = counts(900, base=3.0)
    model = fitted(table=table, link="none", difference="none")
    found = model.explain(table, effort="quick", contributions=4).response["x"]
    raised = table.assign(x=table["x"] + model.fitted_.preparation.scaler.scale[0])
    now, then = (
        model.predict(one).to_frame().set_index("origin")["mean"] for one in (table, raised)
    )
    known = found.index.intersection(now.index)
    assert len(known) >= 3
    np.testing.assert_allclose(found[known], (then - now)[known], rtol=1e-3, atol=1e-4)


def test_error_increase_is_in_squared_units_of_the_target() -> None:
    table = counts(1200)
    model = fitted("AR", table)
    explanation = model.explain(table, effort="quick")
    increase = explanation.importance.set_index("variable")["error_increase"]
    errors = model.evaluate(table).scores
    assert 0.02 < increase["x"] / float(errors.loc["AR", "rmse"]) ** 2 < 5.0


@pytest.mark.parametrize("value", [-0.5, -3.0])
def test_negative_values_are_refused_at_fit_and_later(value: float) -> None:
    table = counts()
    model = fitted("AR", table)
    wrong = table.copy()
    wrong.iloc[470, 1] = value
    for call in (model.predict, model.forecast, model.evaluate, lambda t: fitted("AR", t)):
        with pytest.raises(
            DataError,
            match=r"'y' has 1 value below zero, the first -.* transform='asinh' or 'none'\.",
        ):
            call(wrong)


def test_a_zero_below_the_training_minimum_is_fine() -> None:
    table = counts(base=4.0)
    table["y"] = table["y"].clip(lower=5.0)
    model = fitted("AR", table)
    table.iloc[-1, 1] = 0.0
    low, _ = model.forecast(table).interval()
    assert low.iloc[0] >= 0


def test_save_and_load(tmp_path: Path) -> None:
    table = counts()
    model = fitted(transform="auto")
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    assert again.fitted_.preparation.transform.name == "log1p"
    one, two = model.predict(table), again.predict(table)
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    assert one.to_dict()["transform"] == "log1p"


def test_an_unknown_transform_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"transform='sqrt'.*'log1p', 'asinh' or 'auto'"):
        mv.AR(transform="sqrt").fit(counts(), "y")


def test_folds_share_one_choice() -> None:
    table = counts(600)
    model = mv.AR(window=6, transform="auto", verbose=0)
    found = rolling.backtest(model, table, "y", folds=3)
    assert found.forecast.transform.name == "log1p"
    assert found.forecast.interval()[0].min() >= 0


def test_compare_gives_every_method_the_transform() -> None:
    from mvlstm.evaluate.compare import compare

    table = counts(600)
    settings: dict[str, Any] = {"methods": ["ar", "mvlstm"], "window": 6, "members": 2}
    settings |= {"verbose": 0}
    found = [compare(table, "y", transform=word, **settings) for word in ("auto", "none")]
    assert any("took log1p" in note for note in found[0].notes)
    ours, theirs = (one.rows.set_index(["method", "kind"])["crps"] for one in found)
    assert ours[("AR", "single")] < theirs[("AR", "single")]
    assert ours[("Persistence", "single")] == theirs[("Persistence", "single")]
    for kind in ("single", "ensemble"):
        assert ours[("MVLSTM", kind)] < theirs[("MVLSTM", kind)]
