"""The paper's importance: posterior, its variance and its spread."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm.explain.attention import (
    calibrated_sigma2,
    posterior,
    summarise_attention,
)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_posterior_by_hand(rng):
    prior = rng.dirichlet(np.ones(3), size=5)
    means, actual = rng.normal(size=(5, 3)), rng.normal(size=5)
    likelihood = np.exp(-((actual[:, None] - means) ** 2) / (2 * 0.7)) / np.sqrt(2 * np.pi * 0.7)
    expected = prior * likelihood / np.sum(prior * likelihood, axis=1, keepdims=True)
    np.testing.assert_allclose(posterior(np.log(prior), means, actual, 0.7), expected)


def test_posterior_uses_each_experts_own_variance():
    q = posterior(np.log([0.5, 0.5]), [0.0, 0.0], 0.0, [1.0, 4.0])
    np.testing.assert_allclose(q, [2 / 3, 1 / 3])


def test_posterior_at_a_residual_of_ten_thousand():
    q = posterior(np.log([0.5, 0.5]), [1e4, 1e4 + 1], 0.0, 1.0)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(), 1.0)
    assert q[0] > 0.99


def test_posterior_broadcasts_over_members(rng):
    log_prior = np.log(rng.dirichlet(np.ones(3), size=(2, 5)))
    means, actual = rng.normal(size=(2, 5, 3)), rng.normal(size=5)
    both = posterior(log_prior, means, actual, np.array([0.5, 2.0]).reshape(2, 1, 1))
    np.testing.assert_allclose(both[1], posterior(log_prior[1], means[1], actual, 2.0))


def test_calibrated_sigma2_finds_the_variance_of_the_right_expert(rng):
    rows = 20_000
    which = rng.integers(3, size=rows)
    means = 10.0 * np.arange(3) * np.ones((2, rows, 1))
    actual = means[0, np.arange(rows), which] + 0.5 * rng.normal(size=rows)
    log_prior = np.full((2, rows, 3), np.log(1 / 3))
    sigma2 = calibrated_sigma2(log_prior, means, actual)
    assert sigma2.shape == (2,)
    np.testing.assert_allclose(sigma2, 0.25, rtol=0.05)


def test_calibrated_sigma2_with_steps_and_perfect_experts():
    means = np.zeros((1, 4, 2, 3))
    sigma2 = calibrated_sigma2(np.full(means.shape, np.log(1 / 3)), means, np.zeros((4, 2)))
    assert sigma2.shape == (1,)
    assert sigma2[0] > 0


class TestSummary:
    def make(self, rng, members=4, rows=400, steps=None):
        shape = (members, rows) if steps is None else (members, rows, steps)
        prior = rng.dirichlet(np.ones(3), size=shape)
        return prior, rng.dirichlet([4.0, 2.0, 1.0], size=shape)

    def test_means_sum_to_one_and_lie_in_their_interval(self, rng):
        prior, post = self.make(rng)
        summary = summarise_attention(prior, post, window=10, draws=300)
        np.testing.assert_allclose(summary.posterior, post.mean(axis=(0, 1)))
        assert summary.prior.sum() == pytest.approx(1.0)
        assert (summary.posterior_low < summary.posterior).all()
        assert (summary.posterior < summary.posterior_high).all()
        assert summary.per_member.shape == (4, 3)

    def test_divergence_and_entropy_add_up(self, rng):
        prior, post = self.make(rng)
        summary = summarise_attention(prior, post, window=10, draws=50)
        kl = np.mean(np.sum(post * np.log(post / prior), axis=-1))
        entropy = -np.mean(np.sum(post * np.log(post), axis=-1))
        assert summary.kl.sum() == pytest.approx(kl)
        assert summary.posterior_entropy.sum() == pytest.approx(entropy)

    def test_members_that_differ_widen_the_interval(self, rng):
        prior, post = self.make(rng)
        same = summarise_attention(prior, post, window=10, draws=300)
        for k in range(4):
            post[k] = np.eye(3)[k % 3]
        apart = summarise_attention(prior, post, window=10, draws=300)
        assert (apart.posterior_high - apart.posterior_low).max() > 0.3
        assert (same.posterior_high - same.posterior_low).max() < 0.1

    def test_steps_ahead_are_averaged(self, rng):
        prior, post = self.make(rng, steps=3)
        summary = summarise_attention(prior, post, window=10, draws=50)
        np.testing.assert_allclose(summary.posterior, post.mean(axis=(0, 1, 2)))

    def test_weights_of_exactly_zero(self, rng):
        post = np.tile([1.0, 0.0], (2, 50, 1))
        summary = summarise_attention(np.full(post.shape, 0.5), post, window=5, draws=50)
        assert summary.kl.sum() == pytest.approx(np.log(2))
