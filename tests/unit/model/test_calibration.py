"""How wide intervals are made."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

import mvlstm as mv
from mvlstm.model.calibration import calibrate, cover_factors, score_shape
from mvlstm.model.fitting import fit
from mvlstm.recalibration import LEVELS, SCORES
from mvlstm.results import Forecast
from mvlstm.table.frame import build_frame


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def one_normal(rows: int, steps: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    one = np.ones((rows, steps, 1))
    return one, 0 * one, one


def factors(y: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
    rows, steps = y.shape
    return cover_factors(one_normal(rows, steps), y, np.arange(rows) if times is None else times)


def true_coverage(factor: float, sd: float = 1.0) -> float:
    """Coverage of normal values by a 90 % interval whose variance is multiplied by a factor."""
    return float(2 * ndtr(ndtri(0.95) * np.sqrt(factor) / sd) - 1)


@pytest.mark.parametrize("rows", [100, 1000])
def test_rows_to_come_are_covered_almost_surely(rng, rows) -> None:
    found = [factors(rng.normal(size=(rows, 1)))[0] for _ in range(200)]
    covered = np.array([true_coverage(factor) for factor in found])
    assert (covered >= 0.9).mean() >= 0.9  # without the margin: a half
    assert covered.mean() <= 0.9 + 2.2 * np.sqrt(0.09 / rows) + 0.01  # and not by much more


def test_rows_that_hang_together_tell_less(rng) -> None:
    alone = rng.normal(size=(1200, 1))
    together = np.repeat(alone[::12], 12, axis=0)
    margins = [true_coverage(factors(y)[0], y.std()) for y in (alone, together)]
    assert margins[1] > margins[0] + 0.015


def test_series_that_share_their_shocks_tell_less(rng) -> None:
    shocks = rng.normal(size=60)
    y = np.tile(shocks, 20)[:, None]  # twenty series, one after another
    times = np.tile(np.arange(60), 20)
    assert factors(y, times)[0] > factors(y)[0]
    covered = (np.abs(y[:, 0]) <= ndtri(0.95) * np.sqrt(factors(y, times)[0])).mean()
    assert covered >= 0.94  # as sixty rows would ask for


def test_at_most_95_percent_are_asked_for(rng) -> None:
    y = rng.normal(size=(44, 1))
    covered = (np.abs(y) <= ndtri(0.95) * np.sqrt(factors(y)[0])).sum()
    assert covered == 42  # 95 % of 44, rounded up


def test_unknown_values_count_for_nothing(rng) -> None:
    y = rng.normal(size=(300, 2)) * [1.0, 3.0]
    gaps = y.copy()
    gaps[200:, 1] = np.nan
    found = factors(gaps)
    assert found[0] == factors(y[:, :1])[0]
    assert found[1] == factors(y[:200, 1:])[0]


@pytest.mark.parametrize(("rows", "least"), [(2, 0.8), (6, 0.87), (15, 0.88)])
def test_few_rows_make_intervals_as_wide_as_they_leave_in_doubt(rng, rows, least) -> None:
    found = [factors(rng.normal(size=(rows, 1)))[0] for _ in range(300)]
    assert least < np.mean([true_coverage(factor) for factor in found]) < 0.95
    assert factors(np.empty((0, 1)))[0] == 1.0


def test_training_rows_help_where_validation_rows_are_few(rng) -> None:
    y, times, prior = rng.normal(size=(40, 1)), np.arange(40), np.array([9.0])
    wide, plain = (
        [cover_factors(one_normal(n), y[:n], times[:n], one)[0] for n in (4, 20, 40)]
        for one in (prior, None)
    )
    assert wide[0] > 2 * plain[0] and wide[1] > plain[1] and wide[2] == plain[2]


def walk_back(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """A series that returns to its mean slowly."""
    y = lfilter([1.0], [1.0, -0.9], rng.normal(size=rows + 200))
    return pd.DataFrame({"y": y[200:]})


@pytest.mark.filterwarnings("ignore:.*far outside the training range")
@pytest.mark.parametrize("kind", ["static", "adaptive"])
def test_intervals_of_short_tables_cover_rows_to_come(kind) -> None:
    inside = []
    for seed in range(25):
        table = walk_back(100, np.random.default_rng([40, seed]))
        model = mv.AR(window=10, calibration=kind, verbose=0).fit(table.iloc[:40], "y")
        inside.append(model.predict(table).score("new")["coverage"])
    assert np.mean(inside) >= 0.85


@pytest.mark.parametrize(("rows", "few"), [(60, True), (300, False)])
def test_every_forecast_says_that_its_intervals_rest_on_few_rows(tmp_path, rows, few) -> None:
    table = walk_back(rows, np.random.default_rng(0))
    mv.AR(window=5, verbose=0).fit(table, "y").save(tmp_path / "model.safetensors")
    model = mv.load(tmp_path / "model.safetensors")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.forecast(table), model.predict(table)
    words = [str(one.message) for one in caught if "intervals rest on" in str(one.message)]
    assert len(words) == (2 if few else 0)
    for forecast in found:
        assert any("intervals rest on" in one for one in forecast.warnings) == few


def test_both_halves_of_the_validation_rows_calibrate() -> None:
    table = mv.datasets.load("synthetic", n=900).frame
    frame = build_frame(table, target="y")
    fitted, problem = fit(mv.AR(window=3, verbose=0), frame, test=0.2, valid=0.2)
    rows = np.concatenate([problem.origins["stop"], problem.origins["calibration"]])
    found = fitted.calibration
    mixture = fitted.predict(problem.prepared, rows).with_spread(found.spread)
    again = cover_factors(mixture.joined, problem.prepared.labels(rows, 1), rows)
    np.testing.assert_allclose(found.factors, again)


def test_calibrating_again_finds_the_same() -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    frame = build_frame(table, target="y")
    fitted, problem = fit(mv.AR(window=3, verbose=0), frame, test=0.2, valid=0.04)
    again, notes = calibrate(fitted.learned, problem)
    for name in ("spread", "factors", "persistence", "mean_factor"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted.calibration, name))
    assert again.reference == fitted.calibration.reference
    assert len(notes) == 1 and set(notes) <= set(fitted.notes)


@pytest.mark.parametrize(("rows", "few"), [(120, True), (400, False)])
def test_intervals_that_rest_on_few_windows_are_noted(rows, few) -> None:
    table = mv.datasets.load("synthetic", n=rows).frame
    model = mv.AR(window=5, verbose=0).fit(table, "y", test=0.2)
    assert any("The intervals rest on" in note for note in model.notes_) == few


def test_targets_that_were_filled_in_do_not_calibrate(rng) -> None:
    """Of several steps ahead one may be filled in and another measured; only that one counts."""
    walk = np.cumsum(rng.normal(size=3000))
    table = pd.DataFrame({"x": rng.normal(size=3000), "y": walk})
    table.loc[rng.random(3000) < 0.6, "y"] = np.nan
    table.loc[0, "y"] = 0.0
    settings = {"window": 5, "missing": "fill", "verbose": 0}
    model = mv.AR(horizon=3, **settings).fit(table, "y", test=0.3, valid=0.3)
    alone = mv.AR(**settings).fit(table, "y", test=0.3, valid=0.3)
    found, wanted = model.fitted_.calibration, alone.fitted_.calibration
    assert found.spread[0, 0] == pytest.approx(wanted.spread[0, 0], rel=0.1)
    assert found.persistence[0] == pytest.approx(wanted.persistence[0], rel=0.1)
    forecast = model.predict(table)
    low, high = (end.to_numpy().reshape(-1, 3) for end in forecast.interval(0.9))
    new = (forecast.part == "new") & np.isfinite(forecast.actual)
    inside = (low <= forecast.actual) & (forecast.actual <= high)
    assert inside[:, 0][new[:, 0]].mean() > 0.88


def test_a_step_that_was_never_measured_keeps_an_interval(rng) -> None:
    table = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    table.loc[120:, "y"] = table.loc[120:, "y"].where(np.arange(80) % 4 == 0)
    model = mv.AR(window=5, horizon=2, missing="fill", verbose=0).fit(table, "y", valid=8)
    found = model.fitted_.calibration
    assert np.isfinite(found.spread).all() and np.isfinite(found.factors).all()


# --------------------------------------------------------------------------------- other levels


def test_intervals_of_all_levels_hold_where_errors_are_not_normal(rng, tmp_path) -> None:
    """Most errors are small, some large: a normal's 50 % interval would hold far more."""
    noise = rng.normal(size=6000) * np.where(rng.random(6000) < 0.2, 4.0, 1.0)
    table = pd.DataFrame({"y": lfilter([1.0], [1.0, -0.6], noise)})
    model = mv.AR(window=3, verbose=0, calibration="static")
    model.fit(table.iloc[:3000], "y", valid=0.3).save(tmp_path / "model.safetensors")
    forecast = mv.load(tmp_path / "model.safetensors").predict(table).take(slice(-2900, None))
    plain = replace(forecast, shape=None)

    def held(one: Forecast, level: float) -> float:
        low, high = one.interval(level)
        return float(np.mean((low <= one.actual[:, 0]) & (one.actual[:, 0] <= high)))

    assert held(plain, 0.5) > 0.57
    assert held(forecast, 0.5) == pytest.approx(0.5, abs=0.04)
    assert held(forecast, 0.98) > 0.975  # with the margin of the 90 % interval
    for one, other in zip(forecast.interval(0.9), plain.interval(0.9), strict=True):
        np.testing.assert_allclose(one, other)
    assert forecast.crps().mean() < plain.crps().mean()


def test_the_shape_of_few_errors_is_nearly_a_normals_and_rises(rng) -> None:
    few, many = rng.laplace(size=(6, 2)), rng.laplace(size=(4000, 2))
    nearly, found = score_shape(few), score_shape(many)
    np.testing.assert_allclose(nearly, np.broadcast_to(SCORES, nearly.shape), rtol=0.25)
    true = -np.log(2.0 * (1.0 - LEVELS[6:]))  # a Laplace distribution's own ends
    np.testing.assert_allclose(found[0, 6:8], np.minimum(true[:2], SCORES[8]), rtol=0.06)
    np.testing.assert_allclose(found[0, 8:] / SCORES[8], true[2:] / true[2], rtol=0.06)
    np.testing.assert_allclose(found[:, ::-1], -found)
    rarely = np.where(np.arange(50)[:, None] < 48, 0.0, 4.0)  # most errors are nil
    for scores in (np.zeros((50, 1)), np.full((50, 1), np.nan), 1e9 * many, rarely):
        assert (np.diff(score_shape(scores), axis=1) >= 0).all()
