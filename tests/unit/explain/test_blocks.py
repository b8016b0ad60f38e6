"""Stretches, exchanges and resamples of times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from mvlstm.explain.blocks import (
    BlockBootstrap,
    block_length,
    choose_windows,
    exchange,
    find_period,
    keeps_phase,
)
from mvlstm.types import FloatArray


class TestChooseWindows:
    def test_few_origins_are_all_taken(self):
        origins = np.arange(50, 90)
        np.testing.assert_array_equal(choose_windows(origins, window=5, limit=100), origins)

    def test_many_are_cut_to_long_stretches_over_the_whole_period(self):
        origins = np.arange(1_000, 9_000)
        chosen = choose_windows(origins, window=30, limit=2_000)
        assert 1_900 <= len(chosen) <= 2_000
        assert np.isin(chosen, origins).all()
        assert chosen[0] == 1_000
        assert chosen[-1] == 8_999
        stretches = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
        assert min(len(s) for s in stretches) >= 5 * 30

    def test_a_long_window_leaves_one_stretch_at_the_end(self):
        chosen = choose_windows(np.arange(5_000), window=300, limit=1_000)
        np.testing.assert_array_equal(chosen, np.arange(4_000, 5_000))

    def test_a_stretch_holds_several_cycles(self):
        chosen = choose_windows(np.arange(9_000), window=10, limit=2_000, period=144)
        stretches = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
        assert min(len(s) for s in stretches) >= 5 * 144


class TestExchange:
    @pytest.mark.parametrize(("rows", "window"), [(130, 30), (400, 30), (2_000, 30), (41, 10)])
    def test_donors_are_a_permutation_far_from_their_windows(self, rows, window):
        positions = np.arange(rows) + 700
        for seed in range(10):
            donors = exchange(positions, window=window, rng=np.random.default_rng(seed))
            np.testing.assert_array_equal(np.sort(donors), np.arange(rows))
            assert np.abs(donors - np.arange(rows)).min() >= window

    def test_distance_counts_rows_not_windows(self):
        positions = np.concatenate([np.arange(0, 200), np.arange(1_000, 1_200)])
        donors = exchange(positions, window=30, rng=np.random.default_rng(0))
        assert np.abs(positions[donors] - positions).min() >= 30

    def test_neighbours_mostly_keep_together(self):
        donors = exchange(np.arange(3_000), window=20, rng=np.random.default_rng(0))
        assert np.mean(np.diff(donors) == 1) > 0.9

    def test_short_series_are_shifted(self):
        for rows in (2, 3, 7, 20):
            donors = exchange(np.arange(rows), window=10, rng=np.random.default_rng(1))
            np.testing.assert_array_equal(np.sort(donors), np.arange(rows))
            assert (donors != np.arange(rows)).all()

    @pytest.mark.parametrize(("window", "period"), [(10, 24), (30, 24), (24, 24)])
    def test_a_cycle_keeps_its_phase(self, window, period):
        positions = np.arange(500, 1_200)
        donors = exchange(positions, window=window, period=period, rng=np.random.default_rng(0))
        away = positions[donors] - positions
        assert (away % period == 0).all()
        assert np.abs(away).min() >= window

    @pytest.mark.parametrize("rows", [48, 60, 80, 100, 143])
    def test_few_rows_keep_the_phase_and_the_distance_where_they_can(self, rows):
        positions = np.arange(rows) + 7
        for seed in range(10):
            rng = np.random.default_rng(seed)
            donors = exchange(positions, window=30, period=24, rng=rng)
            away = np.abs(donors - np.arange(rows))
            assert (away % 24 == 0).all()
            assert away.min() >= 24
            far = np.maximum(np.arange(rows), rows - 1 - np.arange(rows)) >= 48
            assert (away[far] >= 48).all()
        assert keeps_phase(positions, window=30, period=24)

    def test_two_periods_change_places(self):
        donors = exchange(np.arange(300), window=10, period=150, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort(donors), np.arange(300))
        np.testing.assert_array_equal(np.abs(donors - np.arange(300)), 150)

    def test_a_cycle_too_long_for_the_rows_is_ignored(self):
        donors = exchange(np.arange(280), window=10, period=150, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort(donors), np.arange(280))
        assert not keeps_phase(np.arange(280), window=10, period=150)


def daily(rows: int, seed: int) -> FloatArray:
    noise = np.random.default_rng(seed).normal(size=rows)
    slow = lfilter([1.0], [1.0, -0.7], noise)
    return np.asarray(np.sin(2 * np.pi * np.arange(rows) / 24) + slow / slow.std())


class TestFindPeriod:
    def test_finds_a_noisy_cycle_on_a_drift(self):
        rng = np.random.default_rng(0)
        t = np.arange(2_000)
        drift = np.cumsum(0.1 * rng.normal(size=2_000))
        series = np.sin(2 * np.pi * t / 24) + drift + 0.7 * rng.normal(size=2_000)
        assert find_period(series) == 24

    def test_finds_it_to_the_row_in_noise_with_a_memory(self):
        found = [find_period(daily(1_000, seed)) for seed in range(8)]
        assert all(period % 24 == 0 for period in found), found

    @pytest.mark.parametrize("seed", range(5))
    def test_finds_none_in_noise_or_walks(self, seed):
        noise = np.random.default_rng(seed).normal(size=2_000)
        assert find_period(noise) == 1
        assert find_period(np.cumsum(noise)) == 1

    def test_a_fading_oscillation_is_no_cycle(self):
        rng = np.random.default_rng(0)
        series = np.zeros(5_000)
        for t in range(2, 5_000):  # a damped oscillation of about ten steps
            series[t] = 1.4 * series[t - 1] - 0.75 * series[t - 2] + rng.normal()
        assert find_period(series) == 1

    def test_prefers_a_natural_length_nearby(self):
        rng = np.random.default_rng(0)
        series = np.sin(2 * np.pi * np.arange(3_000) / 145) + 0.1 * rng.normal(size=3_000)
        assert find_period(series) == 145
        assert find_period(series, natural=(24, 144)) == 144

    @pytest.mark.parametrize("rows", [1, 5, 40])
    def test_short_or_constant_series(self, rows):
        assert find_period(np.ones(rows)) == 1


class TestBlockLength:
    def test_white_noise_needs_the_minimum(self):
        noise = np.random.default_rng(0).normal(size=3_000)
        assert block_length(noise, minimum=30) == 30

    def test_slow_series_need_longer_blocks(self):
        noise = np.random.default_rng(0).normal(size=3_000)
        slow = np.convolve(noise, np.ones(100), mode="same")
        assert 70 < block_length(slow, minimum=30) < 130
        assert block_length(slow, minimum=30, multiple=4) > 280

    def test_never_beyond_a_quarter(self):
        assert block_length(np.arange(100.0), minimum=60) == 25


class TestBlockBootstrap:
    def test_every_time_has_the_same_weight_on_average(self):
        boot = BlockBootstrap(n_times=103, n_members=3, draws=4_000, cell=4, seed=0)
        weights = np.concatenate([w for _, w in boot.times(12)])
        sizes = boot.cells(np.ones(103))
        np.testing.assert_allclose(weights @ sizes, 1.0)
        assert weights.mean(axis=0) * 103 == pytest.approx(np.ones(len(sizes)), abs=0.1)

    def test_spread_of_a_mean_of_independent_values(self):
        rng = np.random.default_rng(1)
        values = rng.normal(size=2_000)
        boot = BlockBootstrap(n_times=2_000, n_members=1, draws=2_000, cell=3, seed=0)
        draws = np.concatenate([w for _, w in boot.times(15)]) @ boot.cells(values)
        assert draws.std() == pytest.approx(values.std() / np.sqrt(2_000), rel=0.15)

    def test_member_weights(self):
        boot = BlockBootstrap(n_times=10, n_members=5, draws=3_000, cell=1, seed=0)
        members = boot.members()
        np.testing.assert_allclose(members.sum(axis=1), 1.0)
        np.testing.assert_allclose(members.mean(axis=0), 0.2, atol=0.01)

    def test_same_seed_same_draws(self):
        first, second = (BlockBootstrap(50, 2, 7, cell=2, seed=3) for _ in range(2))
        for (_, a), (_, b) in zip(first.times(6), second.times(6), strict=True):
            np.testing.assert_array_equal(a, b)
