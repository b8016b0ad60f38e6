"""Linear maps with weights of their own at each time of day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.evaluate.backtest import backtest
from mvlstm.methods.daily import Clock, Daily, _robust, convex_weights
from mvlstm.methods.ridge import Ridge
from mvlstm.model.fitting import begin
from mvlstm.problem.bend import Bend
from mvlstm.table.frame import build_frame
from mvlstm.transforms import Transform

from .learned import windows_at

AHEAD: dict[str, Any] = {"window": 12, "horizon": 6, "calendar": ["hour"], "verbose": 0}


def by_hour(days: int = 110, start: str = "2024-01-01 00:30") -> pd.DataFrame:
    """Hours at which an input known ahead acts by the time of day: up at noon, down at night."""
    times = pd.date_range(start, periods=24 * days, freq="h")
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=(2, len(times)))
    wave = 2.0 * np.cos(2 * np.pi * times.hour.to_numpy() / 24)
    y = wave * x + 0.3 * noise
    return pd.DataFrame({"x": x, "y": y}, index=times)


@pytest.fixture(scope="module", params=["none", "asinh"])
def fitted(request: pytest.FixtureRequest) -> mv.AR:
    return mv.AR(**AHEAD, transform=request.param).fit(by_hour(), "y", known="x", test=0.2)


def test_weights_follow_the_time_of_day(fitted: mv.AR) -> None:
    table = by_hour()
    learned = fitted.fitted_.learned
    assert isinstance(learned.linear, Daily)
    plain = mv.AR(**AHEAD | {"calendar": "none"}).fit(table, "y", known="x", test=0.2)
    errors = [model.evaluate(table).to_frame().loc["AR", "mae"] for model in (fitted, plain)]
    assert errors[0] < 0.36 < 0.7 < errors[1]  # the noise has 0.24


def test_where_the_time_of_day_does_not_matter_one_map_stays() -> None:
    table = by_hour()
    noise = np.random.default_rng(3).normal(size=len(table))
    table["y"] = table["x"] + noise
    model = mv.AR(**AHEAD).fit(table, "y", known="x", test=0.2)
    assert not isinstance(model.fitted_.learned.linear, Daily)


def test_the_gradient_is_exact_between_times_of_day_too(fitted: mv.AR) -> None:
    linear = fitted.fitted_.learned.linear
    at = windows_at(fitted, by_hour(), np.array([700, 705, 1234])).values.astype(np.float64)
    between = 0.6 * at + 0.4 * at[::-1]  # some are at no time of day
    for windows in (between, 0.5 * at):
        slope = linear.gradient(windows)
        for place in [(0, 2, 3), (1, 11, 0), (2, 11, 1), (0, 9, 2)]:
            m, row, column = place
            moved = np.repeat(windows[m : m + 1], 2, axis=0)
            moved[:, row, column] += [1e-6, -1e-6]
            up, down = linear(moved)
            np.testing.assert_allclose(slope[m, :, row, column], (up - down) / 2e-6, atol=1e-6)


def test_shares_add_up_and_a_phase_has_all() -> None:
    clock = Clock(np.array([0, 1]), np.zeros(2), np.ones(2), 0.3, 24)
    places = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_allclose(clock.shares(clock.turns(places)).sum(axis=1), 1.0)
    angle = 0.3 + 2 * np.pi * np.arange(24) / 24
    phases = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    np.testing.assert_array_equal(clock.shares(clock.turns(phases)), np.eye(24))
    np.testing.assert_allclose(clock.shares(np.zeros(1, dtype=complex)), 1 / 24)


def test_files_keep_it(fitted: mv.AR, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    one, two = (model.predict(by_hour()[-200:]).mean for model in (fitted, again))
    np.testing.assert_array_equal(one, two)


def test_a_refit_follows_a_law_that_changes_and_sees_no_later_row() -> None:
    table = by_hour(130)
    table.iloc[24 * 100 :, 1] += table["x"].to_numpy()[24 * 100 :]
    daily: dict[str, Any] = {"known": "x", "test": 24 * 20, "every": 24, "refit": "link"}
    often = backtest(mv.AR(**AHEAD), table, "y", **daily, refit_every=96)
    never = backtest(mv.AR(**AHEAD), table, "y", **daily, refit_every=24 * 20)
    assert often.scores.loc["pooled", "rmse"] < never.scores.loc["pooled", "rmse"]
    changed = table.copy()
    changed.iloc[24 * 120 :, 1] *= 0.5
    other = backtest(mv.AR(**AHEAD), changed, "y", **daily, refit_every=96).forecast
    before = np.asarray(often.forecast.origin < table.index[24 * 120])
    np.testing.assert_array_equal(often.forecast.means[before], other.means[before])


def test_a_span_has_the_scale_of_its_own_rows() -> None:
    table = by_hour(130)
    table.iloc[24 * 80 :] *= 20.0  # the newest days: another unit
    model = mv.AR(**AHEAD, transform="asinh").fit(table, "y", known="x", test=24 * 10)
    linear = model.fitted_.learned.linear
    problem = begin(
        model, build_frame(table, target="y", known="x", calendar=["hour"]), test=240, valid=0.1
    ).problem
    rows = np.arange(24 * 90, 24 * 110)
    early, late = Bend.of(problem, np.arange(24 * 70)), Bend.of(problem, rows)
    assert late.ratio[-1] < 0.1 * early.ratio[-1] and late.ratio[0] < 0.1 * early.ratio[0]
    assert (late.ratio[[1, 2]] == 0).all()  # the clock stays as it is
    y = problem.prepared.known_labels(rows, 6)
    np.testing.assert_allclose(late.back(late.labels(y)), y, atol=1e-9)
    own = Transform.asinh(table["y"].to_numpy()[rows])
    bent = late.labels(problem.prepared.known_labels(rows, 1)[:, 0])
    np.testing.assert_allclose(bent, own.forward(table["y"].to_numpy()[rows + 1]), atol=1e-9)
    plain = begin(
        mv.AR(**AHEAD), build_frame(table, target="y", calendar=["hour"]), test=240, valid=0.1
    ).problem
    assert Bend.of(plain, rows).straight and isinstance(linear, Ridge | Daily)


def test_a_network_corrects_such_a_map() -> None:
    table = by_hour()
    few = {"members": 1, "max_epochs": 1, "hidden_size": 2, "link": "linear"}
    model = mv.MVLSTM(**AHEAD, **few).fit(table, "y", known="x", test=0.2)
    trained = model.fitted_.learned.trained
    assert isinstance(trained.labels.link.ridge, Daily)
    assert model.evaluate(table).to_frame().loc["MVLSTM", "mae"] < 0.4
    again = model.update(table, refit="link").fitted_.learned.trained.labels.link.ridge
    assert isinstance(again, Daily) and again.share == trained.labels.link.ridge.share


def test_weights_of_a_mean_are_those_of_least_error() -> None:
    rng = np.random.default_rng(0)
    experts = rng.normal(size=(3, 500))
    actual = 0.7 * experts[0] + 0.3 * experts[2]
    np.testing.assert_allclose(convex_weights(experts, actual), [0.7, 0.0, 0.3], atol=1e-3)
    same = np.ones((2, 10))
    assert convex_weights(same, same[0]).sum() == pytest.approx(1.0)


def test_a_few_extreme_labels_do_not_bend_the_map() -> None:
    """Huber's loss: spikes in one hour of a hundred, all on the same side."""
    table = by_hour()
    spiked = table.copy()
    at = np.random.default_rng(2).choice(int(0.7 * len(table)), size=len(table) // 100)
    spiked.iloc[at, 1] += 30.0
    errors = []
    for one in (table, spiked):
        model = mv.AR(**AHEAD).fit(one, "y", known="x", test=0.2)
        assert isinstance(model.fitted_.learned.linear, Daily)
        errors.append(model.evaluate(table).to_frame().loc["AR", "mae"])
    assert errors[1] < 1.3 * errors[0]


def test_where_most_residuals_are_zero_the_map_is_not_shrunk_round_by_round() -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    for y in (2 * X[:, :1], np.full((80, 1), 3.0)):
        (slope,), (level,) = _robust(X, y, (1.0,))
        np.testing.assert_allclose(X @ slope + level, y, atol=0.1)
