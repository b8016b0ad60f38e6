"""Intervals that follow the outcomes of earlier forecasts, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

import mvlstm as mv
from mvlstm import recalibration
from mvlstm.model.adaptive import adapted
from mvlstm.recalibration import LEVELS, SCORES, Arrivals
from mvlstm.results import Forecast
from mvlstm.types import FloatArray, IntArray

pytestmark = pytest.mark.filterwarnings("ignore:.*far outside the training range")
LOW, HIGH = 2, 8  # of the 90 % interval among the levels


def one_series(rows: int, horizon: int = 1) -> Arrivals:
    """Origins at every row of one series."""
    known = np.maximum(np.arange(rows)[:, None] - np.arange(horizon), 0)
    return Arrivals(np.array([0, rows]), np.arange(rows), known)


def held(scores: FloatArray, knots: FloatArray) -> FloatArray:
    return np.asarray((knots[..., LOW] <= scores) & (scores <= knots[..., HIGH]))


def recalibrate(scores: FloatArray, arrivals: Arrivals) -> FloatArray:
    return recalibration.recalibrate(scores, arrivals).values


def made_table(rows: int = 900, *, wilder_from: int | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=rows)
    if wilder_from is not None:
        noise[wilder_from:] *= 3.0
    x = rng.normal(size=rows)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.5 * y[t - 1] + 0.4 * x[t - 1] + noise[t]
    index = pd.date_range("2024-01-01", periods=rows, freq="h", name="time")
    return pd.DataFrame({"x": x, "y": y}, index)


def fitted_ar(horizon: int = 3, *, rows: int = 500, **settings: object) -> mv.AR:
    table = made_table(wilder_from=600)
    model = mv.AR(window=5, horizon=horizon, verbose=0, **settings)  # type: ignore[arg-type]
    return model.fit(table.iloc[:rows], "y", valid=0.2)


def static(model: mv.AR) -> mv.AR:
    return model.holding(replace(model.fitted_, adaptive=False))


# ------------------------------------------------------------------------------ of scores alone


@pytest.mark.parametrize("broken", ["spread", "centre", "trend"])
def test_coverage_comes_back_after_a_break(broken: str) -> None:
    shares, n = [], 400
    for seed in range(20):
        scores = np.random.default_rng(seed).normal(size=(800, 1))
        if broken == "spread":
            scores[n:] *= 2.0
        elif broken == "centre":
            scores[n:] += 2.0
        else:
            scores[n:, 0] += 0.01 * np.arange(400)
        shares.append(held(scores, recalibrate(scores, one_series(800)))[n + 200 :].mean())
    assert 0.87 <= np.mean(shares) <= 0.93


def test_what_needs_no_correction_hardly_gets_one() -> None:
    widths = []
    for seed in range(20):
        scores = np.random.default_rng(100 + seed).normal(size=(800, 1))
        knots = recalibrate(scores, one_series(800))[200:]
        widths.append(np.mean(knots[..., HIGH] - knots[..., LOW]))
    assert np.mean(widths) == pytest.approx(SCORES[HIGH] - SCORES[LOW], rel=0.03)


def test_each_tail_is_its_own() -> None:
    scores = np.random.default_rng(0).exponential(size=(3000, 1)) - 1.0
    knots = recalibrate(scores, one_series(3000))[1000:]
    below, above = scores[1000:] < knots[..., LOW], scores[1000:] > knots[..., HIGH]
    assert below.mean() == pytest.approx(0.05, abs=0.01)
    assert above.mean() == pytest.approx(0.05, abs=0.01)
    assert -knots[..., LOW].mean() < 0.6 * knots[..., HIGH].mean()


@pytest.mark.parametrize("horizon", [1, 4])
def test_every_level_holds_its_share_of_any_series(horizon: int) -> None:
    t = np.arange(4000)[:, None]
    scores = 3.0 * np.sin(t / 50.0) * (1.0 + (t // 700) % 3) + 0.5 * (-1.0) ** t
    scores = np.repeat(scores, horizon, axis=1)
    knots = recalibrate(scores, one_series(4000, horizon))
    for level, column in zip(LEVELS, np.moveaxis(knots, -1, 0), strict=True):
        assert np.mean(scores <= column) == pytest.approx(level, abs=0.03)


def test_levels_never_cross_and_nothing_known_changes_nothing() -> None:
    scores = np.random.default_rng(1).standard_t(2, size=(500, 2))
    knots = recalibrate(scores, one_series(500, 2))
    assert (np.diff(knots, axis=-1) >= 0).all()
    np.testing.assert_allclose(knots[0], np.broadcast_to(SCORES, (2, len(LEVELS))))
    unknown = recalibrate(np.full((50, 2), np.nan), one_series(50, 2))
    np.testing.assert_allclose(unknown, np.broadcast_to(SCORES, unknown.shape))


def test_a_short_series_leans_on_the_others() -> None:
    """The first scores of a series are judged by what all series show by then."""
    rng = np.random.default_rng(2)
    sizes: IntArray = np.array([300, 300, 300, 20])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    times = np.concatenate([np.arange(300)] * 3 + [np.arange(280, 300)])
    known = np.concatenate([np.arange(n) for n in sizes])[:, None]
    scores = 4.0 * rng.normal(size=(sizes.sum(), 1))
    together = recalibrate(scores, Arrivals(starts, times, known))[-20:]
    alone = recalibrate(scores[-20:], one_series(20))
    assert held(scores[-20:], together).mean() >= held(scores[-20:], alone).mean()
    assert together[1, 0, HIGH] > 1.2 * alone[1, 0, HIGH]


@pytest.mark.parametrize("missing", [0, 6])
def test_quantiles_move_after_every_few_outcomes_of_a_series(missing: int) -> None:
    """Series of several lengths side by side, against one step after another of each alone."""
    rng = np.random.default_rng(5)
    sizes: IntArray = np.array([23, 1, 40, 9])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    standard = 2.0 * rng.normal(size=(sizes.sum(), 2))
    standard[rng.random(standard.shape) < 0.1] = np.nan
    standard[:missing] = np.nan
    known = np.concatenate([np.maximum(np.arange(n)[:, None] - [0, 1], 0) for n in sizes])
    times = np.concatenate([np.arange(n) for n in sizes])
    arrivals = Arrivals(starts, times, known)
    place, quantiles = recalibration.track(standard, arrivals)
    assert arrivals.delay.tolist() == [1, 2]
    rates = recalibration.RATES / arrivals.delay[:, None] ** recalibration.DELAY
    for start, end in pairwise(starts):
        own = standard[start:end]
        measured = np.flatnonzero(np.isfinite(own).any(axis=1))
        shift = -(measured[0] if measured.size else 0) % recalibration.TOGETHER
        for h in range(2):
            states, used = [SCORES], []
            for row in range(end - start):
                passed = (known[start + row, h] + shift) // recalibration.TOGETHER
                used.append(states[passed])
                if (row + shift) % recalibration.TOGETHER == 0 or row == 0:
                    states.append(states[-1].copy())
                if np.isfinite(own[row, h]):
                    states[-1] = states[-1] + rates[h] * (LEVELS - (own[row, h] <= used[-1]))
            found = quantiles[:, place[start:end, h]].T
            np.testing.assert_allclose(found, np.sort(used, axis=1), atol=1e-12)


# --------------------------------------------------------------------------------- of a forecaster


def test_intervals_are_those_of_the_fit_until_there_are_outcomes_after_it() -> None:
    model = fitted_ar()
    table = made_table(wilder_from=600).iloc[:500]
    one, other = model.predict(table), static(model).predict(table)
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
    assert one.knots is None
    pd.testing.assert_frame_equal(
        model.forecast(table).to_frame(), static(model).forecast(table).to_frame()
    )


def test_intervals_widen_with_the_errors_and_the_mean_stays() -> None:
    model = fitted_ar()
    table = made_table(wilder_from=600)
    one, other = model.predict(table), static(model).predict(table)
    np.testing.assert_array_equal(one.members, other.members)
    late = slice(-200, None)
    assert other.take(late).score("all")["coverage"] < 0.75
    assert 0.85 < one.take(late).score("all")["coverage"] < 0.95
    assert one.take(late).score("all")["crps"] < other.take(late).score("all")["crps"]


def test_an_outcome_not_yet_known_changes_no_interval() -> None:
    model, table = fitted_ar(), made_table(wilder_from=600)
    before = model.predict(table)
    for row in (560, 700):
        changed = table.copy()
        changed.iloc[row, -1] += 50.0
        after = model.predict(changed)
        early = np.asarray(before.origin < table.index[row])
        np.testing.assert_array_equal(
            before.take(early).quantile(0.95), after.take(early).quantile(0.95)
        )
        np.testing.assert_array_equal(before.take(early).draw(3), after.take(early).draw(3))
        assert before.knots is not None and after.knots is not None
        assert (before.knots.found.values[~early] != after.knots.found.values[~early]).any()


def test_forecast_and_predict_agree_at_every_origin() -> None:
    model, table = fitted_ar(), made_table(wilder_from=600)
    every = model.predict(table)
    for end in (510, 640, 897):
        row = every.origin.get_loc(table.index[end - 1])
        last = every.take(slice(row, row + 1))
        made = model.forecast(table.iloc[:end])
        np.testing.assert_allclose(made.quantile(0.95), last.quantile(0.95), rtol=1e-9)
        np.testing.assert_allclose(made.draw(5), last.draw(5), rtol=1e-9)


def test_the_option_and_a_saved_model_keep_it(tmp_path: pytest.TempPathFactory) -> None:
    path = f"{tmp_path}/model.safetensors"
    table = made_table(wilder_from=600)
    for calibration, adaptive in (("adaptive", True), ("static", False)):
        model = fitted_ar(calibration=calibration)
        model.save(path)
        again = mv.load(path)
        assert (again.predict(table).knots is not None) is adaptive
        pd.testing.assert_frame_equal(
            again.predict(table).to_frame(), model.predict(table).to_frame()
        )
    with pytest.raises(mv.errors.ParameterError, match="calibration='loose'"):
        fitted_ar(calibration="loose")


@pytest.mark.parametrize("every", [10, 60])
def test_intervals_go_on_after_the_link_was_refitted(every: int, tmp_path: Path) -> None:
    """Errors are three times as large from row 600 on; each refit knows all rows before it."""
    table, model, held, as_fitted = made_table(1200, wilder_from=600), fitted_ar(1), [], []
    followed = {"static": fitted_ar(1, calibration="static"), "adaptive": model}
    fit = model.fitted_.calibration
    for start in range(800, 1200, every):
        for name, one in followed.items():
            one.update(table.iloc[:start], refit="link")
            near = one.predict(table.iloc[start - 10 : start + every])
            part = near.take((near.part == "new").all(axis=1))
            (held if name == "adaptive" else as_fitted).append(part.score("all")["coverage"])
    assert np.mean(as_fitted) < 0.6 and 0.84 < np.mean(held) < 0.95
    assert followed["static"].fitted_.calibration.shape is not model.fitted_.calibration.shape
    np.testing.assert_array_equal(followed["static"].fitted_.calibration.shape, fit.shape)
    model.save(path := tmp_path / "model.safetensors")
    again = mv.load(path).forecast(table.iloc[:1190])
    np.testing.assert_array_equal(
        again.quantile(0.95), model.forecast(table.iloc[:1190]).quantile(0.95)
    )


def test_a_shape_of_another_place_and_width_is_a_unit_of_its_own() -> None:
    """Scores that lie as it does are left as they are."""
    scores = 0.5 + 3.0 * np.random.default_rng(0).normal(size=(2000, 1))
    shape = 0.5 + 3.0 * SCORES[None]
    found = recalibration.recalibrate(scores, one_series(2000), shape).values
    plain = recalibrate((scores - 0.5) / 3.0, one_series(2000))
    np.testing.assert_allclose(found, 0.5 + 3.0 * plain, atol=1e-9)


# ------------------------------------------------------------------- one distribution for all of it


def recalibrated() -> Forecast:
    return fitted_ar().predict(made_table(wilder_from=600)).take(slice(-100, None))


def test_quantiles_and_pit_are_of_one_distribution() -> None:
    forecast = recalibrated()
    for q in (0.003, 0.05, 0.31, 0.5, 0.95, 0.998):
        at = forecast.quantile(q).to_numpy().reshape(forecast.actual.shape)
        np.testing.assert_allclose(forecast.distribution.pit(at), q, atol=1e-6)


def test_crps_is_the_mean_loss_of_the_quantiles() -> None:
    forecast = recalibrated()
    levels = (np.arange(2000) + 0.5) / 2000
    y = forecast.actual.reshape(-1)
    loss = np.zeros(y.size)
    for q in levels[::4]:
        missed = y - forecast.quantile(float(q)).to_numpy()
        loss += 2.0 * np.maximum(q * missed, (q - 1.0) * missed) * 4 / 2000
    np.testing.assert_allclose(forecast.crps().to_numpy().mean(), loss.mean(), rtol=3e-3)


def test_joined_forecasts_keep_their_intervals() -> None:
    forecast = recalibrated()
    one, other = forecast.take(slice(0, 40)), forecast.take(slice(40, None))
    joined = Forecast.join([one, replace(other, knots=None)])
    np.testing.assert_array_equal(joined.take(slice(0, 40)).quantile(0.9), one.quantile(0.9))
    np.testing.assert_allclose(
        joined.take(slice(40, None)).quantile(0.9), replace(other, knots=None).quantile(0.9)
    )


# ------------------------------------------------------------------------------------- joint paths


def test_paths_have_each_steps_distribution_and_the_errors_dependence() -> None:
    model, table = fitted_ar(horizon=6), made_table(wilder_from=600)
    made = model.forecast(table)
    paths = made.draw(4000, seed=1)
    assert paths.shape == (4000, 1, 6)
    for q in (0.1, 0.5, 0.9):
        share = np.mean(paths[:, 0] <= made.quantile(q).to_numpy(), axis=0)
        np.testing.assert_allclose(share, q, atol=0.02)
    assert made.dependence is not None
    assert made.dependence[0, 1] > 0.3  # errors of neighbouring steps of an autoregression
    assert made.dependence[0, 5] < made.dependence[0, 1]
    np.testing.assert_array_equal(made.draw(10, seed=3), made.draw(10, seed=3))
    assert (made.draw(10, seed=3) != made.draw(10, seed=4)).all()


def test_the_sum_over_steps_is_covered_where_independent_steps_are_not() -> None:
    """Errors that last a while add up."""
    rng = np.random.default_rng(0)
    y = np.zeros(2500)
    for t in range(1, 2500):
        y[t] = 0.95 * y[t - 1] + rng.normal()
    table = pd.DataFrame({"x": rng.normal(size=2500), "y": y})
    model = mv.AR(window=3, horizon=12, verbose=0).fit(table.iloc[:1500], "y", valid=0.2)
    forecast = model.predict(table).take(slice(-900, None))
    together, apart = forecast.score_paths(), replace(forecast, dependence=None).score_paths()
    assert 0.84 <= together["sum_coverage"] <= 0.96
    assert apart["sum_coverage"] < together["sum_coverage"] - 0.15
    assert together["energy"] < apart["energy"]
    assert together["variogram"] < apart["variogram"]
    found = model.evaluate(table)
    assert found.paths is not None
    scores = found.paths.set_index("paths")
    joint, independent = (scores.loc[name] for name in ("joint", "independent"))
    assert joint["sum_coverage"] > independent["sum_coverage"] + 0.15
    assert (joint[["energy", "variogram"]] < independent[["energy", "variogram"]]).all()
    assert 300 < joint["n"] <= 1_000  # work is bounded
    assert found.to_dict()["paths"][0]["sum_coverage"] == joint["sum_coverage"]
    high = forecast.path_quantile(0.95).to_numpy()
    total = forecast.actual.sum(axis=1)
    known = np.isfinite(total)
    assert 0.9 <= np.mean(total[known] <= high[known]) <= 0.99


@pytest.mark.parametrize(("alike", "sign"), [(True, 1), (False, -1)])
def test_paths_follow_how_steps_go_together_after_the_fit(alike: bool, sign: int) -> None:
    """Each step alone is as before; the outcomes of one forecast are all alike, or independent."""
    forecast = fitted_ar(horizon=6).predict(made_table(wilder_from=600))
    rng = np.random.default_rng(4)
    normal = rng.normal(size=(len(forecast), 1 if alike else 6))
    actual = forecast.distribution.values_at(np.broadcast_to(normal, (1, len(forecast), 6)))[0]
    later = (forecast.part == "new").all(axis=1)
    actual = np.where(later[:, None] & np.isfinite(forecast.actual), actual, forecast.actual)
    bare = replace(forecast, actual=actual, knots=None, tied=None)
    found = adapted(bare, fitted_ar(horizon=6).fitted_.parts).take(slice(-250, None))
    assert found.tied is not None
    assert sign * found.tied.found[-1] > 0.1
    followed, as_fitted = found.score_paths(), replace(found, tied=None).score_paths()
    assert followed["variogram"] < 0.99 * as_fitted["variogram"]
    assert not alike or followed["sum_coverage"] > as_fitted["sum_coverage"] + 0.05
    marginal = np.mean(found.draw(2000) <= found.actual, axis=0)  # of their shares below, uniform
    known = np.isfinite(found.actual)
    assert 0.8 < np.mean(np.abs(marginal[known] - 0.5) < 0.45) < 0.97


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_a_path_is_joint_over_several_series(common: float, tmp_path: Path) -> None:
    """What all series need together is held; not if they were moved alike, or each alone."""
    rng = np.random.default_rng(3)
    shocks = common**0.5 * rng.normal(size=(1200, 1)) + (1 - common) ** 0.5 * rng.normal(
        size=(1200, 5)
    )
    y = lfilter([1.0], [1.0, -0.7], shocks, axis=0)
    times = pd.date_range("2024", periods=1200, freq="h")
    table = pd.concat([pd.DataFrame({"y": y[:, s], "s": f"s{s}"}, times) for s in range(5)])
    model = mv.AR(window=4, horizon=3, verbose=0)
    model.fit(table[table.index < times[800]], "y", series="s", valid=0.25)
    assert model.fitted_.calibration.shared == pytest.approx(common, abs=0.12)
    model.save(tmp_path / "model.safetensors")
    forecast = mv.load(tmp_path / "model.safetensors").predict(table)
    forecast = forecast.take(np.asarray((forecast.part == "new").all(axis=1)))

    def held(one: Forecast) -> float:
        groups = pd.factorize(one.origin)[0]
        totals = [np.bincount(groups, path) for path in one.draw(200).sum(axis=2)]
        actual = np.bincount(groups, one.actual.sum(axis=1))
        low, high = np.quantile(totals, (0.05, 0.95), axis=0)
        return float(((low <= actual) & (actual <= high))[np.isfinite(actual)].mean())

    assert 0.82 <= held(forecast) <= 0.95
    if common:
        assert held(replace(forecast, shared=0.0)) < 0.7
    else:
        assert held(replace(forecast, shared=1.0)) > 0.97


def test_paths_as_a_table() -> None:
    made = fitted_ar().forecast(made_table(wilder_from=600))
    table = made.sample(4, seed=2)
    assert list(table.columns) == ["path", "origin", "step", "time", "value"]
    assert len(table) == 4 * 3
    np.testing.assert_array_equal(table["value"], made.draw(4, seed=2).reshape(-1))
    with pytest.raises(mv.errors.ParameterError, match="n=0"):
        made.sample(0)


def test_paths_of_an_older_model_file_have_independent_steps() -> None:
    model = fitted_ar()
    older = replace(model.fitted_, calibration=replace(model.fitted_.calibration, dependence=None))
    made = model.holding(older).predict(made_table(wilder_from=600)).take(slice(-1, None))
    assert made.dependence is None
    correlation = np.corrcoef(made.draw(2000)[:, 0], rowvar=False)
    assert np.abs(correlation - np.eye(3)).max() < 0.1
