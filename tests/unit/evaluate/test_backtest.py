"""Rolling origins: what is past is fitted, what comes is scored."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.evaluate.backtest import backtest, fold_rows, run_fold
from mvlstm.table import build_frame


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=300).frame


def test_each_fold_is_a_fit_on_the_rows_before_it(table: pd.DataFrame) -> None:
    result = backtest(mv.AR(window=3, verbose=0), table, "y", folds=3, test=0.2)
    assert list(result.scores["n"]) == [20, 20, 20, 60]
    for k, end in enumerate((260, 280, 300)):
        alone = mv.AR(window=3, verbose=0).fit(table.iloc[:end], "y", test=20)
        expected = alone.evaluate(table.iloc[:end]).scores.loc["AR"]
        for name in ("rmse", "mae", "crps", "coverage", "skill"):
            assert result.scores.loc[k + 1, name] == pytest.approx(expected[name])
    squares = result.scores["rmse"].iloc[:3] ** 2
    assert result.scores.loc["pooled", "rmse"] == pytest.approx(np.sqrt(squares.mean()))
    assert result.forecast.origin.is_monotonic_increasing
    assert (result.forecast.part == "new").all()
    assert result.periods == ((240, 259), (260, 279), (280, 299))


def test_the_model_given_stays_unfitted(table: pd.DataFrame) -> None:
    model = mv.AR(window=3, verbose=0)
    backtest(model, table, "y", folds=2)
    with pytest.raises(mv.errors.NotFittedError):
        model.predict(table)


def test_later_rows_do_not_change_earlier_folds(table: pd.DataFrame) -> None:
    changed = table.copy()
    changed.iloc[270:] *= 3.0
    model = mv.AR(window=3, verbose=0)
    one, two = (backtest(model, rows, "y", folds=2).forecast for rows in (table, changed))
    np.testing.assert_array_equal(one.mean.loc[:269], two.mean.loc[:269])
    assert np.abs(one.mean - two.mean).max() > 0


def test_a_model_of_the_whole_past_sees_it(table: pd.DataFrame) -> None:
    model = mv.SeasonalPersistence(window=3, period=100, verbose=0)
    result = backtest(model, table, "y", folds=1)
    np.testing.assert_array_equal(result.forecast.mean, table["y"].to_numpy()[140:200])


def test_folds_fill_the_test_rows() -> None:
    rows = fold_rows(103, folds=4, test=0.2, valid=0.1)
    assert rows[0][0] == 82 and rows[-1][1] == 103
    assert all(a[1] == b[0] for a, b in pairwise(rows))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"folds": 0}, "folds=0"), ({"folds": 80}, "80 folds; make it larger or use fewer")],
)
def test_impossible_folds_are_refused(
    table: pd.DataFrame, changes: dict[str, int], words: str
) -> None:
    with pytest.raises(mv.errors.ParameterError, match=words):
        backtest(mv.AR(window=3, verbose=0), table, "y", **changes)


def test_filled_targets_are_not_scored_against_where_something_is_known_ahead(
    table: pd.DataFrame,
) -> None:
    whole = table.assign(holiday=(np.arange(300) % 7 == 0) * 1.0, place="a")
    holed = whole.assign(place="b")
    holed.loc[[250, 257, 258, 259, 281], "y"] = np.nan  # the first fold ends without targets
    model = mv.AR(window=3, missing="fill", verbose=0)
    alone = backtest(model, holed.drop(columns="place"), "y", folds=3, known="holiday")
    assert list(alone.scores["n"]) == [16, 20, 19, 55]
    assert list(alone.forecast.origin) == [*range(239, 256), *range(259, 299)]
    both = pd.concat([whole, holed])
    result = backtest(model, both, "y", folds=3, known="holiday", series="place")
    assert list(result.scores["n"]) == [36, 40, 39, 115]


def test_a_fold_without_any_target_is_named(table: pd.DataFrame) -> None:
    holed = table.assign(holiday=(np.arange(300) % 7 == 0) * 1.0)
    holed.loc[260:279, "y"] = np.nan
    model = mv.AR(window=3, missing="fill", verbose=0)
    with pytest.raises(mv.errors.DataError, match="No target was measured from 260 to 279"):
        backtest(model, holed, "y", folds=3, known="holiday")


@pytest.mark.parametrize("model", [mv.AR, "ar"])
def test_a_class_or_a_name_is_refused_in_words(table: pd.DataFrame, model: object) -> None:
    with pytest.raises(mv.errors.ParameterError, match=r"such as mv\.AR\(window=30\)"):
        backtest(model, table, "y")  # type: ignore[arg-type]


def test_parts_may_be_numbers_of_rows(table: pd.DataFrame) -> None:
    model = mv.AR(window=3, verbose=0)
    one, two = (
        backtest(model, table, "y", folds=1, test=test, valid=valid).scores["rmse"]
        for test, valid in ((0.2, 0.1), (60, 30))
    )
    pd.testing.assert_series_equal(one, two)


def test_rows_filled_in_before_validation_cost_no_forecast(table: pd.DataFrame) -> None:
    """Forecasts of the first validation rows rest on values filled in from long before."""
    holed = table.copy()
    holed.loc[190:208, "y"] = np.nan  # training ends with row 209
    frame = build_frame(holed, target="y", missing="fill")
    run = run_fold(mv.AR(window=5, missing="fill", verbose=0), frame, 60, 30)
    assert (run.stop.sum(), run.calibration.sum(), run.new.sum()) == (15, 15, 60)


# ------------------------------------------------------------------- origins that are rows apart


def hourly(n: int = 1200) -> pd.DataFrame:
    """Hours of a target that follows a known input, by a law that drifts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = np.linspace(1.0, 5.0, n) * x + 0.1 * rng.normal(size=n)
    times = pd.date_range("2024-01-01", periods=n, freq="h", name="time")
    return pd.DataFrame({"x": x, "y": y}, index=times)


DAILY = {"test": 240, "every": 24, "refit_every": 48, "known": "x"}


def ar() -> mv.AR:
    return mv.AR(window=12, horizon=6, verbose=0)


@pytest.mark.parametrize("refit", ["full", "link", "update"])
def test_origins_are_rows_apart_from_the_last_before_the_test_rows(refit: Any) -> None:
    table = hourly()
    found = backtest(ar(), table, "y", refit=refit, **DAILY)
    assert list(found.forecast.origin) == list(table.index[959:-6:24])
    assert list(found.scores.index) == [1, 2, 3, 4, 5, "pooled"]
    assert found.scores.loc["pooled", "n"] == 10 * 6


@pytest.mark.filterwarnings("ignore:.*far outside:mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("refit", ["full", "link", "update"])
def test_no_row_after_an_origin_is_seen_but_what_is_known(refit: Any) -> None:
    table = hourly()
    changed = table.copy()
    changed.iloc[1056:] += 100.0  # 960 + 4 * 24; the origin before is row 1055
    one, two = (backtest(ar(), t, "y", refit=refit, **DAILY).forecast for t in (table, changed))
    before = np.asarray(one.origin < table.index[1055])
    np.testing.assert_array_equal(one.means[before], two.means[before])
    at = int(before.sum())
    target = table.copy()
    target.iloc[1056:, -1] += 100.0  # at row 1055 the input of the next steps is known
    three = backtest(ar(), target, "y", refit=refit, **DAILY).forecast
    np.testing.assert_array_equal(one.means[: at + 1], three.means[: at + 1])
    assert np.abs(one.means[at] - two.means[at]).max() > 1.0


def test_a_refit_of_the_link_follows_a_law_that_drifts() -> None:
    table = hourly()
    often = backtest(ar(), table, "y", refit="link", **DAILY)
    never = backtest(ar(), table, "y", refit="link", **DAILY | {"refit_every": 2400})
    assert often.scores.loc["pooled", "rmse"] < 0.95 * never.scores.loc["pooled", "rmse"]


@pytest.mark.parametrize("holes", [False, True])
def test_refits_that_add_up_are_those_of_all_rows_at_once(holes: bool) -> None:
    """Of `update(refit="link")`, which reads only new windows where no label is missing."""
    table = hourly()
    if holes:
        table.iloc[[300, 301, 980], -1] = np.nan
    model = mv.AR(window=12, horizon=6, missing="fill", calendar=["hour"], verbose=0)
    model.fit(table[:900], "y", known="x")
    steps, once = (clone_fitted(model) for _ in range(2))
    for end in (960, 1001, 1100):
        steps.update(table[:end], refit="link")
    once.update(table[:1100], refit="link")
    one, two = (m.fitted_.learned.linear for m in (steps, once))
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(one.penalty, model.fitted_.learned.linear.penalty)
    assert steps.updates_[-1].refit == "link" and steps.updates_[-1].rows == 99


def clone_fitted(model: mv.AR) -> mv.AR:
    return model.holding(model.fitted_)


def test_a_network_keeps_its_members_when_its_link_is_refitted() -> None:
    few = {"members": 1, "max_epochs": 1, "hidden_size": 2, "link": "linear", "verbose": 0}
    model = mv.MVLSTM(window=12, horizon=6, **few).fit(hourly()[:900], "y", known="x")
    before = model.fitted_.learned.trained
    after = model.update(hourly(), refit="link").fitted_.learned.trained
    np.testing.assert_array_equal(before.flat, after.flat)
    assert np.abs(before.labels.link.ridge.weights - after.labels.link.ridge.weights).max() > 0.01


def wilder() -> pd.DataFrame:
    """Rows whose errors are three times as large from the last before the test rows on."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=1200)
    noise[960:] *= 3.0
    y = lfilter([1.0], [1.0, -0.6], noise)
    return pd.DataFrame({"y": y}, pd.date_range("2024-01-01", periods=1200, freq="h", name="time"))


STRETCHES: dict[str, Any] = {"test": 240, "every": 2, "refit_every": 12}


@pytest.mark.filterwarnings("ignore:.*far outside:mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("refit", ["full", "link"])
def test_intervals_follow_outcomes_through_refits(refit: Any) -> None:
    settings = {"window": 4, "horizon": 2, "verbose": 0}
    one = backtest(mv.AR(**settings), wilder(), "y", refit=refit, **STRETCHES)
    other = mv.AR(calibration="static", **settings)
    static = backtest(other, wilder(), "y", refit=refit, **STRETCHES)
    np.testing.assert_array_equal(one.forecast.members, static.forecast.members)
    late = one.forecast.take(slice(40, None))
    assert late.score()["coverage"] > 0.84
    if refit == "link":  # whose fits do not calibrate again
        before = static.forecast.take(slice(40, None)).score()
        assert before["coverage"] < 0.6 and late.score()["crps"] < before["crps"]
    first = one.forecast.take(slice(0, 1))
    np.testing.assert_allclose(first.quantile(0.95), static.forecast.quantile(0.95).iloc[:2])
    changed = wilder()
    changed.iloc[1100] += 50.0
    again = backtest(mv.AR(**settings), changed, "y", refit=refit, **STRETCHES).forecast
    early = np.asarray(again.origin < changed.index[1100])
    np.testing.assert_array_equal(
        again.take(early).quantile(0.9), one.forecast.take(early).quantile(0.9)
    )


@pytest.mark.filterwarnings("ignore:.*far outside:mvlstm.errors.MVLSTMWarning")
def test_folds_on_scales_of_their_own_keep_their_quantiles() -> None:
    """The middle and unit of asinh are found anew in every fold."""
    table = wilder().assign(y=lambda rows: rows["y"] * np.linspace(1.0, 20.0, len(rows)) + 100.0)
    model = mv.AR(window=4, transform="asinh", verbose=0)
    found = backtest(model, table, "y", folds=2, test=0.4).forecast
    alone = mv.AR(window=4, transform="asinh", verbose=0).fit(table, "y", test=240).predict(table)
    alone = alone.take(np.asarray(alone.origin >= table.index[-241]))
    assert alone.transform != found.transform
    last = found.take(slice(-240, None))
    for q in (0.05, 0.5, 0.9):
        np.testing.assert_allclose(last.quantile(q), alone.quantile(q), rtol=1e-6)
    np.testing.assert_allclose(last.crps().mean(), alone.crps().mean(), rtol=5e-3)


def test_what_cannot_be_refitted_is_refused() -> None:
    with pytest.raises(ParameterError, match="not a multiple of every=24"):
        backtest(ar(), hourly(), "y", **DAILY | {"refit_every": 36})
    with pytest.raises(ParameterError, match="refit='sometimes'"):
        backtest(ar(), hourly(), "y", refit="sometimes", **DAILY)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="GBT has none"):
        model = mv.GBT(window=3, grid="quick", max_rounds=3, verbose=0).fit(hourly()[:900], "y")
        model.update(hourly(), refit="link")
    with pytest.raises(ParameterError, match="fewer than horizon=6"):
        backtest(ar(), hourly(), "y", **DAILY | {"test": 4})
