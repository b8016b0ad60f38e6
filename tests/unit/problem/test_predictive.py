"""Members' point forecasts and the mixture they make."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm import metrics
from mvlstm.problem.predictive import Mixture, Predictive

K, M, H, J = 2, 5, 3, 4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def mixture_of(rng: np.random.Generator) -> Mixture:
    weights, means, variances = rng.uniform(0.1, 1.0, size=(3, M, H, K, J))
    return Mixture(weights / weights.sum(axis=(2, 3), keepdims=True), means, variances)


def assert_same(one: Mixture, other: Mixture) -> None:
    for name in ("weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_some_windows_can_be_taken(rng) -> None:
    members, mixture = rng.normal(size=(K, M, H)), mixture_of(rng)
    rows = np.array([True, False, True, False, True])
    part = Predictive(members, mixture).take(rows)
    np.testing.assert_array_equal(part.members, members[:, rows])
    for name in ("weights", "means", "variances"):
        np.testing.assert_array_equal(getattr(part.mixture, name), getattr(mixture, name)[rows])
    np.testing.assert_array_equal(Predictive(members).take(rows).members, members[:, rows])
    assert Predictive(members).take(rows).mixture is None


def test_members_without_a_mixture_are_one_normal_each(rng) -> None:
    members, spread = rng.normal(size=(K, M, H)), rng.uniform(0.1, 1.0, size=(K, H))
    found = Predictive(members).with_spread(spread)
    assert found.means.shape == (M, H, K, 1)
    np.testing.assert_array_equal(found.weights, 1 / K)
    for k in range(K):
        np.testing.assert_array_equal(found.means[:, :, k, 0], members[k])
        np.testing.assert_array_equal(found.variances[2, :, k, 0], spread[k])
    weights, means, _ = found.joined
    np.testing.assert_allclose((weights * means).sum(axis=-1), members.mean(axis=0))


def test_a_mixture_of_its_own_needs_no_spread(rng) -> None:
    mixture = mixture_of(rng)
    found = Predictive(rng.normal(size=(K, M, H)), mixture).with_spread(np.full((K, H), np.nan))
    assert found is mixture


def test_members_lie_one_after_another_when_joined(rng) -> None:
    mixture = mixture_of(rng)
    for found, given in zip(
        mixture.joined, (mixture.weights, mixture.means, mixture.variances), strict=True
    ):
        assert found.shape == (M, H, K * J)
        np.testing.assert_array_equal(found[..., J : 2 * J], given[:, :, 1])


def test_each_step_is_widened_by_its_factor(rng) -> None:
    mixture, factors = mixture_of(rng), np.array([1.0, 4.0, 0.25])
    found = mixture.widened(factors)
    np.testing.assert_array_equal(found.means, mixture.means)
    for h in range(H):
        wanted = mixture.variances[:, h] * factors[h]
        np.testing.assert_array_equal(found.variances[:, h], wanted)


def test_pieces_are_joined_in_order(rng) -> None:
    members, mixture = rng.normal(size=(K, M, H)), mixture_of(rng)
    rows = np.arange(M)
    for whole in (Predictive(members, mixture), Predictive(members)):
        again = Predictive.gathered([whole.take(rows < 2), whole.take(rows >= 2)], M)
        np.testing.assert_array_equal(again.members, members)
        if whole.mixture is None:
            assert again.mixture is None
        else:
            assert again.mixture is not None
            assert_same(again.mixture, mixture)
        assert Predictive.gathered([whole], M) is whole


def test_a_shift_moves_every_quantile(rng) -> None:
    baseline = rng.normal(size=(M, H))
    whole = Predictive(rng.normal(size=(K, M, H)), mixture_of(rng))
    moved = whole.shifted(baseline)
    np.testing.assert_array_equal(moved.members, whole.members + baseline)
    assert whole.mixture is not None and moved.mixture is not None
    before, after = (
        metrics.mixture_quantile(*m.joined, 0.3) for m in (whole.mixture, moved.mixture)
    )
    np.testing.assert_allclose(after, before + baseline, atol=1e-9)
