"""Properties of scores and attention that hold for any mixture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad
from scipy.stats import kendalltau

from mvlstm import metrics
from mvlstm.explain import posterior

_number = st.floats(-50.0, 50.0)
_size = st.integers(1, 6)
FAR_APART = (  # a step of Newton's method between its parts exceeds half the largest number
    np.full(3, 1 / 3),
    np.array([-46.25, 0.0, 0.0]),
    np.array([0.01, 0.0078125, 0.0078125]),
)
quick = settings(deadline=None, max_examples=60)  # two shared cores: time says nothing


@st.composite
def mixtures(draw, smallest_variance=1e-3):
    """One mixture of one to six normals."""
    size = draw(_size)
    raw = draw(hnp.arrays(float, size, elements=st.floats(0.01, 1.0)))
    means = draw(hnp.arrays(float, size, elements=_number))
    variances = draw(hnp.arrays(float, size, elements=st.floats(smallest_variance, 25.0)))
    return raw / raw.sum(), means, variances


@quick
@given(mixtures(), st.floats(0.001, 0.999))
def test_quantile_inverts_cdf(mixture, q):
    x = metrics.mixture_quantile(*mixture, q)
    assert abs(metrics.mixture_cdf(*mixture, x) - q) < 1e-8


@quick
@given(mixtures(), st.floats(0.001, 0.998), st.floats(1e-4, 0.001))
@example(FAR_APART, 0.203125, 0.0004890699751667917)
def test_quantiles_increase(mixture, q, more):
    assert metrics.mixture_quantile(*mixture, q) <= metrics.mixture_quantile(*mixture, q + more)


@quick
@given(mixtures(smallest_variance=0.05), _number)
def test_crps_equals_its_integral(mixture, actual):
    w, mu, v = mixture
    low = min(mu.min(), actual) - 12 * np.sqrt(v.max())
    high = max(mu.max(), actual) + 12 * np.sqrt(v.max())

    def integrand(x: float) -> float:
        return float((metrics.mixture_cdf(w, mu, v, x) - (x >= actual)) ** 2)

    breaks = sorted({float(m) for m in mu} | {actual})
    edges = [low, *breaks, high]
    numeric = sum(quad(integrand, a, b, limit=200)[0] for a, b in pairwise(edges))
    assert abs(metrics.crps_mixture(w, mu, v, actual) - numeric) < 1e-5


@quick
@given(mixtures(), _number, st.floats(-100, 100), st.floats(0.1, 10))
def test_crps_moves_and_scales_with_the_units(mixture, actual, shift, scale):
    w, mu, v = mixture
    before = metrics.crps_mixture(w, mu, v, actual)
    after = metrics.crps_mixture(w, scale * mu + shift, scale**2 * v, scale * actual + shift)
    np.testing.assert_allclose(after, scale * before, rtol=1e-6, atol=1e-8)


@quick
@given(mixtures(), _number)
def test_crps_is_not_negative_nor_above_the_mean_distance(mixture, actual):
    w, mu, v = mixture
    score = float(metrics.crps_mixture(w, mu, v, actual))
    distance = float(np.sum(w * metrics._expected_abs(actual - mu, np.sqrt(v))))
    assert -1e-9 <= score <= distance + 1e-9


@quick
@given(hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_orders_and_bounds(p):
    adjusted = metrics.holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= 1.0)
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(adjusted[order]) >= 0)
    assert adjusted.min() == min(1.0, p.min() * p.size)


@quick
@given(
    hnp.arrays(float, 7, elements=st.integers(0, 5).map(float)),
    hnp.arrays(float, 7, elements=st.integers(0, 5).map(float)),
)
def test_kendall_tau_agrees_with_scipy(a, b):
    expected = kendalltau(a, b).statistic
    np.testing.assert_allclose(metrics.kendall_tau(a, b), expected, atol=1e-12)


@quick
@given(
    hnp.arrays(float, (3, 4), elements=st.floats(-20, 0)),
    hnp.arrays(float, (3, 4), elements=st.floats(-1e4, 1e4)),
    hnp.arrays(float, 3, elements=st.floats(-1e4, 1e4)),
    st.floats(1e-3, 10),
)
def test_posterior_is_a_distribution_for_any_residual(log_prior, means, actual, sigma2):
    log_prior = log_prior - np.logaddexp.reduce(log_prior, axis=-1, keepdims=True)
    q = posterior(log_prior, means, actual, sigma2)
    assert np.isfinite(q).all()
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=-1), 1.0, rtol=1e-12)
