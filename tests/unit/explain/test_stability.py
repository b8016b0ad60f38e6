"""Whether a ranking is settled: agreement of rankings, order under resampling."""

from __future__ import annotations

import numpy as np

from mvlstm.explain.stability import agreement, settled_order, summarise_stability


class TestAgreement:
    def test_same_and_opposite_orders(self):
        same = agreement(np.array([[3, 2, 1], [30, 20, 10]]), top=2)
        assert same == {"kendall_tau": 1.0, "top_overlap": 1.0}
        opposite = agreement(np.array([[4, 3, 2, 1], [1, 2, 3, 4]]), top=2)
        assert opposite == {"kendall_tau": -1.0, "top_overlap": 0.0}

    def test_one_ranking_says_nothing(self):
        assert np.isnan(agreement(np.array([[1.0, 2.0]]), top=1)["kendall_tau"])


class TestSettledOrder:
    NAMES = ("wind", "rain", "dew")

    def test_variables_far_apart_are_settled(self):
        rng = np.random.default_rng(0)
        estimate = np.array([1.0, 3.0, 2.0])
        draws = estimate + 0.1 * rng.standard_normal((400, 3))
        assert settled_order(self.NAMES, estimate, draws) == (True, [])

    def test_neighbours_within_their_spread_are_named(self):
        rng = np.random.default_rng(0)
        estimate = np.array([1.0, 3.0, 1.05])
        draws = estimate + 0.2 * rng.standard_normal((400, 3))
        settled, pairs = settled_order(self.NAMES, estimate, draws)
        assert settled is False
        assert pairs == ["dew ~ wind"]

    def test_draws_that_move_together_keep_the_order(self):
        """What counts is the difference of two variables, not each one's own spread."""
        rng = np.random.default_rng(0)
        estimate = np.array([1.0, 3.0, 1.05])
        draws = estimate + rng.standard_normal((400, 1))
        assert settled_order(self.NAMES, estimate, draws)[0] is True

    def test_one_variable_has_no_order(self):
        assert settled_order(["wind"], np.array([1.0]), np.ones((5, 1))) == (None, [])


def test_only_the_important_variables_are_ordered() -> None:
    rng = np.random.default_rng(1)
    estimate = np.array([5.0, 0.01, 0.011, 2.0])
    draws = estimate + 0.1 * rng.standard_normal((300, 4))
    found = summarise_stability(
        ("a", "b", "c", "y"), [True, False, False, True], estimate, draws[:5], draws, None
    )
    assert found["top"] == 2
    assert found["order_settled"] is True
    assert found["bootstrap_top_overlap"] == 1.0
    assert found["bootstrap_kendall_tau"] < 1.0  # b and c change places
