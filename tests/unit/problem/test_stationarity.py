"""The tests for a unit root, and the rule that follows."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from mvlstm.errors import MissingExtraError, ParameterError
from mvlstm.problem import stationarity
from mvlstm.problem.stationarity import (
    UNIT_ROOT_T,
    choose_differencing,
    unit_root_t,
)

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=600)
WALK = np.cumsum(RNG.normal(size=600))
DOUBLE_WALK = np.cumsum(np.cumsum(RNG.normal(size=600)))


@pytest.fixture(autouse=True)
def _needs_statsmodels() -> None:
    pytest.importorskip("statsmodels", reason="the baselines extra is not installed")


@pytest.mark.parametrize(
    ("series", "verdict", "order"),
    [(NOISE, "stationary", 0), (WALK, "unit root", 1), (DOUBLE_WALK, "unit root", 2)],
    ids=["noise", "walk", "double walk"],
)
def test_known_series_are_told_apart(series: Any, verdict: str, order: int) -> None:
    assert stationarity.test_stationarity(series).verdict == verdict
    chosen = choose_differencing(series[:, None], ["x"])
    assert chosen.orders == (order,)
    assert chosen.tests[-1].verdict == "stationary" and chosen.tests[-1].order == order


@pytest.mark.parametrize(
    ("adf", "kpss", "verdict", "order"),
    [
        (0.01, 0.10, "stationary", 0),
        (0.50, 0.01, "unit root", 2),
        (0.01, 0.01, "difference-stationary", 0),
        (0.50, 0.10, "trend-stationary", 0),
        (0.05, 0.05, "unit root", 2),
    ],
)
def test_the_rule_follows_the_table(
    monkeypatch: pytest.MonkeyPatch, adf: float, kpss: float, verdict: str, order: int
) -> None:
    monkeypatch.setattr(stationarity, "_pvalues", lambda values: (adf, kpss))
    chosen = choose_differencing(NOISE[:, None], ["x"])
    assert chosen.tests[0].verdict == verdict
    assert chosen.orders == (order,)
    assert len(chosen.tests) == order + 1
    assert bool(chosen.notes) == (verdict != "stationary")


def test_p_values_of_objects_and_tuples() -> None:
    class Result:
        pvalue = 0.25

    assert stationarity._pvalue(Result()) == 0.25
    assert stationarity._pvalue((1.0, 0.5)) == 0.5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rows", [25, 150, 300])
def test_lags_are_those_that_aic_chooses(rows: int) -> None:
    from statsmodels.tsa.stattools import adfuller

    rng = np.random.default_rng(rows)
    noise = rng.normal(size=rows)
    waves = np.sin(np.arange(rows) / 3) + 0.1 * noise
    for series in (noise, np.cumsum(noise), waves, np.convolve(noise, np.ones(6))[:rows]):
        chosen = adfuller(series, regression="c", autolag="AIC")
        assert stationarity._best_lag(series) == chosen[2]


def test_a_ramp_becomes_constant_by_differencing() -> None:
    chosen = choose_differencing(np.arange(200.0)[:, None], ["ramp"])
    assert chosen.orders == (1,) and chosen.tests[-1].verdict == "constant"


def test_only_the_latest_rows_of_a_long_series_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stationarity, "MOST_ROWS", 300)
    series = np.concatenate([WALK, NOISE[:300]])
    assert stationarity.test_stationarity(series).verdict == "stationary"


def test_a_long_series_that_is_steady_lately_counts_as_constant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stationarity, "MOST_ROWS", 100)
    steady = np.repeat([0.0, 1.0], [50, 100])
    assert stationarity.test_stationarity(steady).verdict == "constant"
    assert choose_differencing(steady[:, None], ("switch",)).orders == (0,)


def test_scale_does_not_matter() -> None:
    plain = stationarity.test_stationarity(WALK)
    for factor in (1e-12, 1e12, 1e200):
        assert stationarity.test_stationarity(WALK * factor).verdict == plain.verdict


def test_constant_and_short_series() -> None:
    assert stationarity.test_stationarity(np.ones(100)).verdict == "constant"
    with pytest.raises(ParameterError, match="at least 20 rows"):
        stationarity.test_stationarity(np.arange(10.0))


def test_outcome_reads_as_a_sentence() -> None:
    test = stationarity.test_stationarity(np.diff(WALK), name="pm2.5", order=1)
    assert str(test).startswith("'pm2.5' differenced once: stationary (ADF p = ")


def test_without_statsmodels_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.stattools", None)
    with pytest.raises(MissingExtraError, match=r"mvlstm\[baselines\]"):
        stationarity.test_stationarity(NOISE)


@pytest.mark.parametrize("lags", [0, 1, 5])
@pytest.mark.parametrize("series", [NOISE, WALK], ids=["noise", "walk"])
def test_the_t_value_over_windows_is_that_of_dickey_and_fuller(series: Any, lags: int) -> None:
    from statsmodels.tsa.stattools import adfuller

    windows = np.lib.stride_tricks.sliding_window_view(series, lags + 2)
    ours = unit_root_t(windows[:, :-1], windows[:, -1])
    with warnings.catch_warnings(action="ignore"):  # of what it will return one day
        expected = adfuller(series, maxlag=lags, regression="c", autolag=None)
    assert ours == pytest.approx(float(expected[0]), rel=1e-6)
    assert (ours < UNIT_ROOT_T) == (series is NOISE)


def test_what_says_nothing_rejects_nothing() -> None:
    assert unit_root_t(np.ones((50, 3)), np.ones(50)) == 0.0
    for rows in range(1, 9):
        assert unit_root_t(RNG.normal(size=(rows, 7)), RNG.normal(size=rows)) == 0.0


def test_differences_over_a_border_of_segments_are_left_out() -> None:
    segments = np.arange(600) // 100
    torn = (DOUBLE_WALK + 1e4 * segments)[:, None]
    assert choose_differencing(torn, ["torn"]).orders == (1,)  # the jumps hide what is left
    assert choose_differencing(torn, ["torn"], segments=segments).orders == (2,)


def test_differences_too_few_to_be_tested_are_not_differenced_again() -> None:
    segments = np.arange(600)
    chosen = choose_differencing(WALK[:, None], ["walk"], segments=segments)
    assert chosen.orders == (1,) and len(chosen.tests) == 1
