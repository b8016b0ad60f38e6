"""Scores against values worked out by hand or by another route."""

from __future__ import annotations

import time

import numpy as np
import pytest

from experiments import ranking
from mvlstm import metrics
from mvlstm.errors import DataError, ParameterError


def _mixture(rng, rows=(50,), components=4):
    weights = rng.dirichlet(np.ones(components), size=rows)
    means = rng.normal(scale=2.0, size=(*rows, components))
    variances = rng.uniform(0.05, 2.0, size=(*rows, components))
    return weights, means, variances


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_point_scores():
    actual, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 1.0])
    assert metrics.rmse(actual, predicted) == pytest.approx(np.sqrt(13 / 3))
    assert metrics.mae(actual, predicted) == pytest.approx(5 / 3)
    assert metrics.skill(0.5, 2.0) == 0.75
    assert np.isnan(metrics.skill(0.5, 0.0))
    assert np.isnan(metrics.rmse([], []))


def test_shapes_must_match():
    with pytest.raises(DataError, match=r"\(3,\).*\(3, 1\)"):
        metrics.rmse(np.zeros(3), np.zeros((3, 1)))


@pytest.mark.parametrize(
    "score",
    [
        lambda: metrics.coverage(np.zeros(3), np.zeros(2), np.ones(3)),
        lambda: metrics.coverage(np.zeros(3), np.zeros(3), np.ones(2)),
        lambda: metrics.interval_score(np.zeros(3), np.zeros(2), np.ones(2)),
        lambda: ranking.auroc([0.1, 0.2, 0.3], [True, False]),
        lambda: ranking.auprc([0.1, 0.2, 0.3], [True, False]),
        lambda: metrics.kendall_tau([1, 2, 3], [1, 2]),
    ],
)
def test_lengths_must_match(score):
    with pytest.raises(DataError, match=r"shape \(3,\) but .* \(2,\)\. Pass arrays that match"):
        score()


def test_ends_of_intervals_may_be_one_number():
    assert metrics.coverage([0.0, 3.0], 0, 2) == 0.5
    assert metrics.interval_score([0.0, 3.0], -1.0, 1.0, level=0.5) == 6.0


def test_scores_relative_to_a_seasonal_repeat(rng):
    cycle = np.tile([1.0, 5.0, 3.0], 40) + 0.1 * rng.normal(size=120)
    history, actual, repeat = cycle[:-3], cycle[-3:], cycle[-6:-3]
    usual = np.mean(np.abs(history[3:] - history[:-3]))
    want = np.mean(np.abs(actual - repeat)) / usual
    assert metrics.mase(actual, repeat, history, period=3) == pytest.approx(want)
    assert metrics.mase(actual, repeat, history) < 0.1  # the last value is a poor rival
    one_off = metrics.rmsse(actual, actual + 2 * usual, history, period=3)
    assert one_off == pytest.approx(2 * usual / np.sqrt(np.mean((history[3:] - history[:-3]) ** 2)))
    with pytest.raises(DataError, match="3 values of history are too few for period=3"):
        metrics.mase(actual, actual, actual, period=3)


def test_shares_of_the_actual_value():
    assert metrics.mape([0.0, 2.0], [0.0, 1.0]) == 0.25
    assert metrics.mape([0.0], [1.0]) == np.inf
    assert metrics.smape([0.0, 1.0, -1.0], [0.0, 0.0, 1.0]) == pytest.approx(4 / 3)


def test_pinball_loss_is_least_at_the_quantile(rng):
    sample, tried = rng.normal(size=20_001), np.linspace(-2, 2, 81)
    losses = [metrics.pinball(sample, np.full_like(sample, x), q=0.8) for x in tried]
    assert tried[int(np.argmin(losses))] == pytest.approx(np.quantile(sample, 0.8), abs=0.05)


def test_coverage_includes_the_borders():
    assert metrics.coverage([0.0, 1.0, 1.1], [0, 0, 0], [1, 1, 1]) == pytest.approx(2 / 3)


def test_interval_score_punishes_misses_by_their_distance():
    inside = metrics.interval_score([0.0], [-1.0], [1.0], level=0.9)
    outside = metrics.interval_score([1.5], [-1.0], [1.0], level=0.9)
    assert inside == pytest.approx(2.0)
    assert outside == pytest.approx(2.0 + 20 * 0.5)


def test_mixture_moments_against_samples(rng):
    w, mu, v = _mixture(rng, rows=(1,), components=3)
    which = rng.choice(3, p=w[0], size=200_000)
    sample = rng.normal(mu[0, which], np.sqrt(v[0, which]))
    assert metrics.mixture_mean(w, mu)[0] == pytest.approx(sample.mean(), abs=0.02)
    assert metrics.mixture_variance(w, mu, v)[0] == pytest.approx(sample.var(), rel=0.02)
    for q in (0.05, 0.5, 0.9):
        assert metrics.mixture_quantile(w, mu, v, q)[0] == pytest.approx(
            np.quantile(sample, q), abs=0.05
        )


def test_quantile_keeps_leading_shape_and_passes_nan_on(rng):
    w, mu, v = _mixture(rng, rows=(6, 2))
    mu[3, 1, 0] = np.nan
    answer = metrics.mixture_quantile(w, mu, v, 0.3)
    assert answer.shape == (6, 2)
    assert np.isnan(answer[3, 1])
    assert np.isfinite(np.delete(answer.reshape(-1), 7)).all()


def test_quantile_in_a_gap_between_far_components():
    w, mu, v = np.array([0.5, 0.5]), np.array([-1e6, 1e6]), np.array([1.0, 1.0])
    answer = metrics.mixture_quantile(w, mu, v, 0.25)
    assert answer == pytest.approx(-1e6, abs=1e-3)
    assert metrics.mixture_cdf(w, mu, v, metrics.mixture_quantile(w, mu, v, 0.6)) == pytest.approx(
        0.6
    )


def test_quantile_ignores_components_without_weight():
    answer = metrics.mixture_quantile([1.0, 0.0], [0.0, 1e9], [1.0, 1.0], 0.5)
    assert answer == pytest.approx(0.0, abs=1e-9)


def test_quantile_of_a_certain_forecast():
    assert metrics.mixture_quantile([1.0], [3.0], [0.0], 0.9) == pytest.approx(3.0)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 90])
def test_quantile_refuses_what_is_no_probability(q):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        metrics.mixture_quantile([1.0], [0.0], [1.0], q)


def test_quantiles_of_many_wide_mixtures_are_fast(rng):
    w, mu, v = _mixture(rng, rows=(4_000, 1), components=70)
    start = time.process_time()
    metrics.mixture_quantile(w, mu, v, 0.05)
    assert time.process_time() - start < 1.0  # a tenth of 41,000 x 70: about 0.1 s


def test_crps_of_one_normal_has_the_textbook_form():
    # Gneiting and Raftery: sd * (z (2 Phi - 1) + 2 phi - 1/sqrt(pi)) at z = 0
    expected = 2.0 * (2 / np.sqrt(2 * np.pi) - 1 / np.sqrt(np.pi))
    assert metrics.crps_mixture([1.0], [5.0], [4.0], 5.0) == pytest.approx(expected)


def test_crps_of_a_certain_forecast_is_the_absolute_error():
    assert metrics.crps_mixture([1.0], [5.0], [1e-20], 7.5) == pytest.approx(2.5)


def test_crps_does_not_depend_on_chunks(rng, monkeypatch):
    w, mu, v = _mixture(rng, rows=(30,), components=5)
    whole = metrics.crps_mixture(w, mu, v, np.zeros(30))
    monkeypatch.setattr(metrics, "_CHUNK", 7)
    np.testing.assert_array_equal(metrics.crps_mixture(w, mu, v, np.zeros(30)), whole)


def test_pit_is_uniform_for_draws_from_the_forecast(rng):
    w, mu, v = _mixture(rng, rows=(20_000,), components=2)
    first = rng.random(20_000) < w[:, 0]
    which = np.where(first, 0, 1)[:, None]
    mean, variance = (np.take_along_axis(a, which, 1)[:, 0] for a in (mu, v))
    values = metrics.pit(w, mu, v, rng.normal(mean, np.sqrt(variance)))
    shares = np.histogram(values, bins=10, range=(0, 1))[0] / 20_000
    assert np.abs(shares - 0.1).max() < 0.012


class TestCalibration:
    @pytest.mark.parametrize("true_scale", [0.01, 0.25, 1.0, 30.0])
    def test_interval_covers_its_level_afterwards(self, rng, true_scale):
        mu = rng.normal(size=(2_000, 1, 3)) * 0.1
        w, v = np.full(mu.shape, 1 / 3), np.ones(mu.shape)
        actual = rng.normal(scale=np.sqrt(true_scale), size=(2_000, 1))
        c = metrics.calibrate_variance(w, mu, v, actual)
        low = metrics.mixture_quantile(w, mu, c * v, 0.05)
        high = metrics.mixture_quantile(w, mu, c * v, 0.95)
        assert metrics.coverage(actual, low, high) == pytest.approx(0.9, abs=0.001)
        assert c == pytest.approx(true_scale, rel=0.15, abs=0.01)

    def test_heavy_tails_need_less_than_their_variance(self, rng):
        actual = rng.standard_t(2.1, size=(3_000, 1))
        one = np.ones((3_000, 1, 1))
        c = metrics.calibrate_variance(one, 0 * one, one * actual.var(), actual)
        assert c < 0.7

    def test_unknown_rows_are_left_out(self, rng):
        actual = rng.normal(size=(500, 1))
        one = np.ones((500, 1, 1))
        c = metrics.calibrate_variance(one, 0 * one, one, actual)
        padded = np.concatenate([actual, np.full((100, 1), np.nan)])
        more = np.ones((600, 1, 1))
        assert metrics.calibrate_variance(more, 0 * more, more, padded) == c

    def test_without_rows_nothing_changes(self):
        empty = np.ones((0, 1, 2))
        assert metrics.calibrate_variance(empty, empty, empty, np.ones((0, 1))) == 1.0

    @pytest.mark.parametrize("rows", [1, 2, 5, 10])
    def test_few_rows_give_a_sane_factor(self, rng, rows):
        one = np.ones((rows, 1, 1))
        factors = [
            metrics.calibrate_variance(one, 0 * one, one, rng.normal(size=(rows, 1)))
            for _ in range(50)
        ]
        assert 0.01 < np.median(factors) < 4.0
        assert np.max(factors) < 20.0

    def test_perfect_forecasts_stay_finite(self):
        one = np.ones((30, 1, 1))
        c = metrics.calibrate_variance(one, one, one, np.ones((30, 1)))
        assert 0.0 < c < 1e-6

    def test_experts_that_cover_by_their_spread_do_not_become_spikes(self, rng):
        # Nine experts far apart around every value: any tiny variance would cover.
        mu = np.tile(np.linspace(-4.0, 4.0, 9), (1_000, 1, 1))
        w, v = np.full(mu.shape, 1 / 9), np.ones(mu.shape)
        actual = rng.normal(scale=1.5, size=(1_000, 1))
        c = metrics.calibrate_variance(w, mu, v, actual)
        assert c > 1e-3


class TestDieboldMariano:
    def test_against_a_plain_reference(self, rng):
        e, r = rng.normal(size=200), 1.1 * rng.normal(size=200)
        d = [a * a - b * b for a, b in zip(e, r, strict=True)]
        n, h = 200, 3
        mean = sum(d) / n
        lags = 5  # floor(200 ** (1/3)) = 5 > h - 1
        gamma = [
            sum((d[t] - mean) * (d[t - j] - mean) for t in range(j, n)) / n for j in range(lags + 1)
        ]
        variance = gamma[0] + 2 * sum((1 - j / 6) * gamma[j] for j in range(1, lags + 1))
        expected = mean / (variance / n) ** 0.5 * ((n + 1 - 2 * h + h * (h - 1) / n) / n) ** 0.5
        result = metrics.diebold_mariano(e, r, horizon=h)
        assert result.statistic == pytest.approx(expected)
        assert result.lags == lags
        assert result.difference == pytest.approx(mean)

    def test_cube_root_is_exact(self):
        assert metrics.diebold_mariano(np.arange(1000.0), np.ones(1000)).lags == 10

    def test_sides(self, rng):
        good, bad = rng.normal(size=400), 2 * rng.normal(size=400)
        assert metrics.diebold_mariano(good, bad).p_value < 1e-4
        assert metrics.diebold_mariano(bad, good).p_value > 0.9999

    def test_same_forecast_is_no_better(self, rng):
        errors = rng.normal(size=50)
        result = metrics.diebold_mariano(errors, errors)
        assert (result.statistic, result.p_value) == (0.0, 1.0)

    def test_false_alarms_keep_their_level(self, rng):
        wins = [
            metrics.diebold_mariano(*rng.normal(size=(2, 150))).p_value < 0.05 for _ in range(400)
        ]
        assert 0.015 < np.mean(wins) < 0.10

    def test_too_few_errors(self):
        with pytest.raises(DataError, match="2 errors are too few"):
            metrics.diebold_mariano([1.0, 2.0], [1.0, 2.0])

    def test_lengths_must_match(self):
        with pytest.raises(DataError, match="one length"):
            metrics.diebold_mariano(np.ones(4), np.ones(5))


def test_holm_leaves_nan_out_of_the_family():
    adjusted = metrics.holm([0.01, np.nan, 0.03])
    np.testing.assert_allclose(adjusted, [0.02, np.nan, 0.03])


def test_kendall_tau_counts_ties_as_tau_b():
    # concordant 4, discordant 1, one pair tied in a: 3 / sqrt(5 * 6)
    assert metrics.kendall_tau([1, 1, 2, 3], [2, 1, 4, 3]) == pytest.approx(3 / np.sqrt(5 * 6))
    assert np.isnan(metrics.kendall_tau([1, 1, 1], [1, 2, 3]))
