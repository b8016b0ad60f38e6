"""Structural model and ARIMA against statsmodels' own filtering; scrambling."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

import mvlstm as mv
from mvlstm.methods.statespace import choose_orders
from mvlstm.problem.inputs import Windows

from .learned import own_importance, windows_at

QUICK = {"window": 5, "verbose": 0, "max_iterations": 15}


def make_table(rows: int = 300) -> pd.DataFrame:
    """An ARMA series around twice the value x had the row before; z does nothing."""
    rng = np.random.default_rng(1)
    x, z, noise = rng.normal(size=(3, rows))
    u = np.zeros(rows)
    for t in range(1, rows):
        u[t] = 0.7 * u[t - 1] + 0.3 * noise[t]
    return pd.DataFrame({"x": x, "z": z, "y": 5.0 + np.r_[0.0, 2.0 * x[:-1]] + u})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


def build(name: str, **changes: object) -> mv.STRX | mv.ARIMAX:
    settings = {**QUICK, **({"order": (1, 0, 1)} if name == "ARIMAX" else {}), **changes}
    model: mv.STRX | mv.ARIMAX = getattr(mv, name)(**settings)
    return model


@pytest.fixture(scope="module", params=["STRX", "ARIMAX"])
def model(request: pytest.FixtureRequest, table: pd.DataFrame) -> mv.STRX | mv.ARIMAX:
    return build(request.param, horizon=2).fit(table, "y", test=0.2)


def test_forecasts_are_those_of_statsmodels(
    model: mv.STRX | mv.ARIMAX, table: pd.DataFrame
) -> None:
    values = table.to_numpy()
    center, scale = values[:210].mean(axis=0), values[:210].std(axis=0)
    scaled = (values - center) / scale
    y, x = scaled[1:, -1], scaled[:-1, :-1]
    if isinstance(model, mv.STRX):
        direct = UnobservedComponents(y[:209], "local linear trend", exog=x[:209])
    else:
        options = {"enforce_stationarity": False, "enforce_invertibility": False}
        direct = SARIMAX(y[:209], exog=x[:209], order=(1, 0, 1), **options)
    with warnings.catch_warnings(action="ignore"):  # it may say that it has not converged
        results = direct.fit(disp=False, maxiter=15, cov_type="none")
    one = results.append(y[209:], exog=x[209:], refit=False).predict(start=209)
    mean = model.predict(table).members[0]
    expected = one[:-1] * scale[-1] + center[-1]
    np.testing.assert_allclose(mean[-len(expected) :, 0], expected, rtol=0, atol=1e-4)
    row = 251 - 4  # origin 251 knows y up to row 251, which is y[250]
    again = results.append(y[209:251], exog=x[209:251], refit=False)
    held = again.forecast(2, exog=np.repeat(scaled[251:252, :-1], 2, axis=0))
    np.testing.assert_allclose(mean[row], held * scale[-1] + center[-1], rtol=0, atol=1e-4)


def test_it_uses_the_row_before(model: mv.STRX | mv.ARIMAX, table: pd.DataFrame) -> None:
    forecast = model.predict(table)
    error = (forecast.members[0] - forecast.actual)[forecast.part[:, 0] == "new"]
    assert np.sqrt(np.mean(error[:, 0] ** 2)) < 0.4 < 1.8 < table["y"].std()
    own = own_importance(model)
    assert own is not None
    assert own[0] > 0.9 and own[-1] == 0.0 and own.sum() == pytest.approx(1.0)


def test_scrambling_exchanges_shares(model: mv.STRX | mv.ARIMAX, table: pd.DataFrame) -> None:
    learned, windows = model.fitted_.learned, windows_at(model, table, np.arange(104, 144))
    plain = learned.predict(windows).members
    donors = np.roll(np.arange(40), 11)
    nothing = learned.scrambled(windows, np.array([0, 1]), np.arange(40))
    np.testing.assert_allclose(nothing, plain, atol=1e-9)
    everything = learned.scrambled(windows, np.array([0, 1, 2]), donors)
    np.testing.assert_allclose(everything, plain[:, donors], atol=1e-9)
    moved = [
        np.mean((learned.scrambled(windows, np.array([n]), donors) - plain) ** 2) for n in (0, 1)
    ]
    assert moved[0] > 20 * moved[1]


def test_a_window_is_filtered_from_its_start(
    model: mv.STRX | mv.ARIMAX, table: pd.DataFrame
) -> None:
    window = windows_at(model, table, np.array([64])).values
    alone = model.fitted_.learned.predict(Windows.of(window)).members
    cut = model.predict(table.iloc[60:67]).members[:, 0]
    np.testing.assert_allclose(alone[:, 0], cut, atol=1e-9)


def test_saved_and_loaded_without_statsmodels(
    model: mv.STRX | mv.ARIMAX,
    table: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model.save(tmp_path / "m.safetensors")
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    again = mv.load(tmp_path / "m.safetensors")
    pd.testing.assert_series_equal(again.predict(table).mean, model.predict(table).mean)
    with pytest.raises(mv.errors.MissingExtraError, match=r"mvlstm\[baselines\]"):
        build(type(model).__name__).fit(table, "y")


def test_segments_are_filtered_apart(table: pd.DataFrame) -> None:
    gapped = table.set_axis(pd.RangeIndex(300).where(pd.RangeIndex(300) < 255, range(10, 310)))
    model = build("ARIMAX", gaps="respect").fit(gapped, "y", test=0.2)
    late = gapped.loc[265:]
    np.testing.assert_allclose(
        model.predict(gapped).mean.loc[late.index[5:]], model.predict(late).mean, atol=1e-9
    )


def direct_model(name: str, y: np.ndarray, x: np.ndarray) -> UnobservedComponents | SARIMAX:
    """Return statsmodels' own model of a target and the regressors of the row before."""
    if name == "STRX":
        return UnobservedComponents(y, "local linear trend", exog=x)
    free = {"enforce_stationarity": False, "enforce_invertibility": False}
    return SARIMAX(y, exog=x, order=(1, 0, 1), **free)


def scaled_rows(model: mv.STRX | mv.ARIMAX, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the target as the model scales it, NaN where it was not measured, and the others."""
    prepared = model.fitted_.prepare(model.fitted_.read(table, "predict"))
    y = np.where(table["y"].notna(), prepared.table[:, -1], np.nan)
    return y, prepared.table[:, :-1]


def unscaled(model: mv.STRX | mv.ARIMAX, y: object) -> np.ndarray:
    """Return scaled targets in their own units."""
    preparation = model.fitted_.preparation
    return np.asarray(y) * preparation.target_scale + preparation.target_center


def with_holes(table: pd.DataFrame) -> pd.DataFrame:
    gone = np.random.default_rng(3).uniform(size=len(table)) < 0.3
    gone[:3] = False
    gone[240:246] = True
    return table.assign(y=table["y"].where(~gone))


@pytest.mark.parametrize("name", ["STRX", "ARIMAX"])
def test_targets_filled_in_count_as_missing(name: str, table: pd.DataFrame) -> None:
    holes = with_holes(table)
    model = build(name, horizon=3, missing="fill").fit(holes, "y", test=0.2)
    y, x = scaled_rows(model, holes)
    last = 209  # the last row of the training part
    with warnings.catch_warnings(action="ignore"):  # it may say that it has not converged
        direct = direct_model(name, y[1 : last + 1], x[:last])
        results = direct.fit(disp=False, maxiter=15, cov_type="none")
    found = model.predict(holes).members[0]
    for origin in (211, 242, 245, 246, 290):
        later = results.append(y[last + 1 : origin + 1], exog=x[last:origin], refit=False)
        held = later.forecast(3, exog=np.repeat(x[origin : origin + 1], 3, axis=0))
        expected = unscaled(model, held)
        np.testing.assert_allclose(found[origin - 4], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["STRX", "ARIMAX"])
def test_levels_may_jump_where_there_are_gaps(name: str) -> None:
    rng = np.random.default_rng(0)
    x, noise, steps = rng.normal(size=(3, 600))
    y = 0.1 * np.cumsum(steps) + np.r_[0.0, 0.8 * x[:-1]] + noise
    table = pd.DataFrame({"x": x, "y": y})
    number = np.arange(600) // 75
    gapped = table[np.arange(600) % 75 < 65]
    jumps = table.assign(y=y + 20.0 * rng.normal(size=8)[number]).loc[gapped.index]
    order = {"order": (0, 1, 1)} if name == "ARIMAX" else {}
    errors, gains = [], []
    for rows in (gapped, jumps):
        model = build(name, gaps="respect", max_iterations=50, **order).fit(rows, "y", test=0.2)
        errors.append(model.evaluate(rows).scores["rmse"].iloc[0])
        gains.append(model.fitted_.learned.filter.gains(60)[-1])
    assert errors[1] == pytest.approx(errors[0], rel=0.02) and errors[0] < 1.3
    np.testing.assert_allclose(gains[1], gains[0], atol=0.05)


def test_orders_follow_the_correlations() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=3000)
    ma = noise[1:] + 0.8 * noise[:-1]
    assert choose_orders(noise) == (1, 0, 0)
    assert choose_orders(ma)[0] == 5
    assert choose_orders(noise, 1)[1] == 1


def test_orders_are_those_of_what_was_measured() -> None:
    """Filled in, each value that repeats the last one adds to the correlations."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=3000)
    for t in range(1, 3000):
        y[t] -= 0.6 * y[t - 1]
    gone = rng.uniform(size=3000) < 0.3
    assert choose_orders(y) == choose_orders(np.where(gone, np.nan, y)) == (1, 0, 0)
    table = pd.DataFrame({"y": np.where(gone, np.nan, y)})
    model = mv.ARIMAX(window=5, missing="fill", verbose=0).fit(table, "y", test=0.2)
    assert model.order_ == (1, 0, 0)


def test_orders_do_not_rest_on_lags_across_gaps() -> None:
    rng = np.random.default_rng(0)
    jumps = np.cumsum(40 * rng.normal(size=60)).repeat(40)
    steps = rng.normal(size=2400)
    for t in range(2, 2400):
        steps[t] += 0.3 * steps[t - 1] + 0.3 * steps[t - 2]
    y = np.cumsum(steps) + jumps
    times = np.arange(2400) + 7 * (np.arange(2400) // 40)
    table = pd.DataFrame({"y": y}, index=times)
    model = mv.ARIMAX(window=5, gaps="respect", verbose=0).fit(table, "y", test=0.2)
    assert model.order_ == (2, 1, 0)


@pytest.mark.parametrize("torn", ["gaps", "missing"])
def test_nor_on_differences_across_gaps_or_missing_values(torn: str) -> None:
    rng = np.random.default_rng(0)
    y = np.cumsum(np.cumsum(rng.normal(size=1200))) + 1e4 * (np.arange(1200) // 100)
    kept = np.arange(1200) % 100 < 90
    table = pd.DataFrame({"y": y})
    table = table[kept] if torn == "gaps" else table.where(kept[:, None])
    settings = {"window": 5, "fit_rows": 800, "max_iterations": 1, "verbose": 0}
    model = mv.ARIMAX(missing="fill", gaps="respect", **settings).fit(table, "y", test=0.2)
    assert model.order_[1] == 2  # jumps among the differences would hide it


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fit_rows": 0}, "fit_rows=0"),
        ({"order": (1, 0)}, "three whole numbers"),
    ],
)
def test_bad_settings_are_refused(
    table: pd.DataFrame, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(mv.errors.ParameterError, match=words):
        build("ARIMAX", **changes).fit(table, "y")


@pytest.mark.parametrize("name", ["STRX", "ARIMAX"])
@pytest.mark.parametrize("columns", [["y"], ["x", "y"]], ids=["none", "one"])
def test_it_takes_any_number_of_regressors(name: str, columns: list[str]) -> None:
    table = make_table(120)[columns]
    model = build(name).fit(table, "y", test=0.2)
    assert len(model.fitted_.learned.coefficients) == len(columns) - 1
    learned, windows = model.fitted_.learned, windows_at(model, table, np.arange(4, 119))
    expected = learned.predict(windows).members
    moved = learned.scrambled(windows, np.array([len(columns) - 1]), np.arange(115))
    np.testing.assert_allclose(moved, expected, atol=1e-9)
