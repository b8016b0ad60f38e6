"""Forecasts made on another scale: bounds, quantiles, mean and CRPS in the target's units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from mvlstm import metrics
from mvlstm.transforms import IDENTITY, Transform

LOG = Transform("log1p")


@st.composite
def mixtures(draw):
    count = draw(st.integers(1, 4))

    def numbers(low, high):
        return np.array([draw(st.floats(low, high)) for _ in range(count)])

    weights = numbers(0.05, 1.0)
    return weights / weights.sum(), numbers(-1.0, 4.0), numbers(0.1, 1.0) ** 2


def integrals(mixture, actual):
    """Mean and CRPS from the distribution function alone, on a fine grid of the target."""
    weights, means, variances = mixture
    top = float((means + 9.0 * np.sqrt(variances)).max())
    z = np.linspace(0.0, max(top, np.log1p(actual) + 0.1), 40_001)
    z = np.sort(np.append(z, np.log1p(actual)))
    y = np.expm1(z)
    cdf = ndtr((z[:, None] - means) / np.sqrt(variances)) @ weights
    above = np.trapezoid(1.0 - cdf, y)
    score = np.where(y <= actual, cdf, 0.0) ** 2 + np.where(y > actual, 1.0 - cdf, 0.0) ** 2
    return above, np.trapezoid(score, y)


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.floats(0.0, 60.0))
def test_mean_and_crps_are_those_of_the_distribution(mixture, actual) -> None:
    weights, means, variances = mixture
    mean, score = integrals(mixture, actual)
    assert np.sum(weights * LOG.mean(means, variances)) == pytest.approx(mean, rel=2e-3, abs=1e-3)
    assert LOG.crps(*mixture, actual) == pytest.approx(score, rel=5e-3, abs=5e-3)


@pytest.mark.parametrize(
    ("weight", "mean", "sd", "wide"),
    [(0.8, -0.1, 0.01, 1.5), (0.7, -0.02, 0.005, 1.0), (0.5, -2.0, 1e-7, 3.0)],
)
def test_crps_sees_narrow_components_below_zero(weight, mean, sd, wide) -> None:
    """All of them count as zero, however steeply the CDF rises there."""
    mixture = np.array([weight, 1 - weight]), np.array([mean, 1.0]), np.array([sd, wide]) ** 2
    for actual in (0.0, 2.0):
        _, score = integrals(mixture, actual)
        assert LOG.crps(*mixture, actual) == pytest.approx(score, rel=3e-3)  # of the grid


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.05, 1.0), st.floats(-4.0, 0.0), st.floats(-8.0, 0.5)),
        min_size=1,
        max_size=6,
    )
)
def test_values_below_zero_count_as_zero_whatever_their_spread(components) -> None:
    """By as much as the CDF rises below zero, the target is zero: seen from above alone."""
    weights, means, powers = np.array(components).T
    mixture = weights / weights.sum(), means - 6 * 10**powers, 100.0**powers
    assert LOG.crps(*mixture, 0.0) == pytest.approx(0.0, abs=1e-6)
    assert LOG.crps(*mixture, 3.0) == pytest.approx(3.0, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.floats(0.01, 0.99))
def test_a_quantile_leaves_its_share_below(mixture, q) -> None:
    value = LOG.inverse(metrics.mixture_quantile(*mixture, q))
    below = metrics.mixture_cdf(*mixture, np.log1p(value))
    assert value >= 0
    assert below >= q - 1e-9
    if value > 0:
        assert below == pytest.approx(q, abs=1e-9)


@given(st.lists(st.floats(0.0, 1e12), min_size=1, max_size=20))
def test_there_and_back(values) -> None:
    y = np.array(values)
    np.testing.assert_allclose(LOG.inverse(LOG.forward(y)), y, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(IDENTITY.inverse(IDENTITY.forward(y)), y)


def test_a_sure_forecast_scores_its_absolute_error() -> None:
    one = np.ones(1)
    assert LOG.crps(one, np.log1p([7.0]), 1e-20 * one, 4.0) == pytest.approx(3.0)
    assert LOG.mean(np.log1p([7.0]), 1e-20 * one)[0] == pytest.approx(7.0)


TAILS = Transform("asinh", center=20.0, scale=3.0)


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.floats(-60.0, 90.0))
def test_mean_and_crps_of_asinh_are_those_of_the_distribution(mixture, actual) -> None:
    """By the distribution function alone, on a fine grid of the target."""
    weights, means, variances = mixture
    reach = 9.0 * np.sqrt(variances)
    z = np.linspace(float((means - reach).min()) - 3.0, float((means + reach).max()) + 3.0, 60_001)
    at = TAILS.forward(np.array(actual))
    z = np.sort(np.append(z, at))
    y = TAILS.inverse(z)
    cdf = ndtr((z[:, None] - means) / np.sqrt(variances)) @ weights
    mean = y[-1] - np.trapezoid(cdf, y)
    score = np.trapezoid(np.where(z < at, cdf, 1.0 - cdf) ** 2, y)
    assert np.sum(weights * TAILS.mean(means, variances)) == pytest.approx(mean, rel=5e-3, abs=0.01)
    assert TAILS.crps(*mixture, actual) == pytest.approx(score, rel=1e-2, abs=0.01)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_asinh_there_and_back(values) -> None:
    y = np.array(values)
    own = Transform.asinh(y)
    assert own.scale > 0 and Transform.from_plain(own.to_plain()) == own
    size = np.abs(y).max() + own.scale
    np.testing.assert_allclose(own.inverse(own.forward(y)), y, rtol=1e-9, atol=1e-12 * size)


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.floats(0.01, 0.99))
def test_a_quantile_of_asinh_leaves_its_share_below(mixture, q) -> None:
    value = TAILS.inverse(metrics.mixture_quantile(*mixture, q))
    assert metrics.mixture_cdf(*mixture, TAILS.forward(value)) == pytest.approx(q, abs=1e-8)


def test_an_unknown_actual_value_gives_nan() -> None:
    assert np.isnan(LOG.crps([1.0], [0.0], [1.0], np.nan))
