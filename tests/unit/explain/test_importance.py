"""Error increase by scrambling: exact values, power, and silence where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm.explain.blocks import exchange, over_time
from mvlstm.explain.evidence import Finding, top_down
from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import (
    ErrorIncrease,
    correlated_groups,
    error_increase,
    headline,
    leaning,
    scrambler,
    verdicts,
)

NOISE = "not distinguishable from noise"


def autoregression(noise, coefficient):
    out = np.zeros_like(noise)
    for t in range(1, len(noise)):
        out[t] = coefficient * out[t - 1] + noise[t]
    return out


def judged(increase, target):
    """Verdicts on all variables, those on the exogenous ones adjusted."""
    p = np.array([found.p_value for found in increase.findings])
    exogenous = np.arange(p.size) != target
    p[exogenous] = top_down(0.0, [], p[exogenous])[2]
    return verdicts(p, increase.estimate, increase.error)


def simulate(kind, seed, rows=1_500, drivers=5):
    """Five exogenous variables and a target; only of kind "driven" do the first two matter."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, drivers))
    shock = rng.normal(size=rows)
    if kind == "driven":
        x = autoregression(x, 0.5)
        shock[1:] += 0.6 * x[:-1, 0]
        shock[2:] += 0.4 * x[:-2, 1]
    elif kind == "walk":
        x = np.cumsum(x, axis=0)
    elif kind == "cycle":
        clock = 2 * np.pi * np.arange(rows) / 24
        x = np.sin(clock)[:, None] + 0.5 * x
        shock += np.sin(clock + 0.8)
    return np.column_stack([x, autoregression(shock, 0.7)])


def fit_and_measure(table, *, window=6, train=700, members=4, period=1, seed=0):
    """Least squares on resampled training windows; importance on the rest."""
    rng = np.random.default_rng(seed)
    windows = np.lib.stride_tricks.sliding_window_view(table, window, axis=0)[:-1]
    windows = np.ascontiguousarray(windows.transpose(0, 2, 1))
    labels = table[window:, -1]
    centre, scale = table[:train].mean(axis=0), table[:train].std(axis=0)

    def features(w):
        return np.column_stack([np.ones(len(w)), ((w - centre) / scale).reshape(len(w), -1)])

    known = train - window
    coefficients = []
    for _ in range(members):
        rows = rng.choice(known, known)
        a = features(windows[rows])
        coefficients.append(np.linalg.solve(a.T @ a + np.eye(a.shape[1]), a.T @ labels[rows]))
    stacked = np.array(coefficients)

    def predict(w):
        return (features(w) @ stacked.T).T[:, :, None]

    held_out = np.arange(known, len(windows))
    w, y, n = windows[held_out], labels[held_out, None], table.shape[1]
    return error_increase(
        predict(w),
        HeldOut(y, held_out, window, period=period),
        scrambler(predict, w, range(n)),
        [(i,) for i in range(n)],
        repeats=2,
        draws=200,
        seed=seed,
    )


def panel_p_value(seed, *, series=20, times=240, by_time=True):
    """P-value where scrambling changes nothing on average, and all series err together."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(3, times))
    label, plain, moved = (np.tile(one, series) for one in common)
    own = rng.normal(size=(3, times * series))
    label, plain, moved = (a + 0.3 * b for a, b in zip((label, plain, moved), own, strict=True))
    increase = error_increase(
        plain[None, :, None],
        HeldOut(
            label[:, None],
            np.arange(times * series),
            window=4,
            series=np.repeat(np.arange(series), times),
            times=np.tile(np.arange(times), series) if by_time else None,
        ),
        lambda variables, donors: moved[donors][None, :, None],
        [(0,)],
        repeats=1,
        draws=200,
        seed=seed,
    )
    return increase.findings[0].p_value


class TestSeveralSeries:
    def test_series_that_err_together_do_not_count_as_many(self):
        alarms = [np.mean([panel_p_value(s, by_time=b) < 0.05 for s in range(60)]) for b in (1, 0)]
        assert alarms[0] <= 0.07 < 0.1 < alarms[1]

    def test_sums_over_series_keep_the_mean(self):
        values = np.arange(10.0).reshape(5, 2)
        found = over_time(values, np.array([0, 2, 7, 0, 2]))
        np.testing.assert_allclose(found.mean(axis=0), values.mean(axis=0))
        np.testing.assert_allclose(found[0], (values[0] + values[3]) * 3 / 5)
        assert over_time(values, None) is values


class TestVerdictsOnSimulatedData:
    @pytest.mark.parametrize(("kind", "period"), [("noise", 1), ("walk", 1), ("cycle", 24)])
    def test_variables_without_effect_are_rarely_called_important(self, kind, period):
        alarms = 0
        for seed in range(40):
            increase = fit_and_measure(simulate(kind, seed), period=period, seed=seed)
            words = judged(increase, target=5)
            alarms += (words[:-1] != NOISE).any()
            assert words[-1] == "important"
        assert alarms <= 5  # 2 of 40 expected

    def test_a_cycle_that_all_share_misleads_free_exchanges(self):
        alarms = 0
        for seed in range(10):
            increase = fit_and_measure(simulate("cycle", seed), seed=seed)
            alarms += (judged(increase, target=5)[:-1] == "important").any()
        assert alarms >= 5  # why exchanges keep the phase

    def test_planted_drivers_are_found(self):
        found, false = 0, 0
        for seed in range(20):
            increase = fit_and_measure(simulate("driven", seed), seed=seed)
            words = judged(increase, target=5)
            found += (words[:2] == "important").all()
            false += (words[2:-1] != NOISE).any()
            shares = headline(increase, target=5)["importance_exogenous"]
            assert set(np.argsort(-shares[:-1])[:2]) == {0, 1}
        assert found == 20
        assert false <= 3


def linear_case(coefficients, *, rows=600, window=5, horizon=1, seed=0):
    """A predict function with known weights on the last row, members slightly apart."""
    rng = np.random.default_rng(seed)
    weights = np.asarray(coefficients, dtype=float)[:, :, None] * np.ones(horizon)  # (K, N, H)
    windows = rng.normal(size=(rows, window, weights.shape[1]))
    labels = np.einsum("mn,nh->mh", windows[:, -1], weights.mean(axis=0))
    labels = labels + rng.normal(size=labels.shape)

    def predict(w):
        return np.einsum("mn,knh->kmh", w[:, -1], weights)

    return predict, windows, labels


def run(predict, windows, labels, families=None, groups=None, **options):
    n = windows.shape[2]
    families = [(i,) for i in range(n)] if families is None else families
    held = HeldOut(labels, np.arange(len(windows)), windows.shape[1])
    return error_increase(
        predict(windows),
        held,
        scrambler(predict, windows, groups or range(n)),
        families,
        **{"repeats": 2, "draws": 300, **options},
    )


class TestErrorIncrease:
    def test_equals_the_definition(self):
        predict, windows, labels = linear_case([[1.0, 0.5], [1.2, 0.3]], horizon=2)
        increase = run(predict, windows, labels, seed=5)
        before = np.mean((predict(windows).mean(axis=0) - labels) ** 2)
        errors = []
        for repeat in range(2):
            donors = exchange(
                np.arange(len(windows)), window=5, rng=np.random.default_rng([5, 0, repeat])
            )
            changed = windows.copy()
            changed[:, :, 0] = windows[donors][:, :, 0]
            errors.append(predict(changed).mean(axis=0) - labels)
        rise = np.mean(errors[0] * errors[1]) - before
        assert increase.error == pytest.approx(before)
        assert increase.estimate[0] == pytest.approx(rise)
        assert increase.per_step[0].mean() == pytest.approx(rise)
        assert increase.per_member.shape == (2, 2)

    def test_size_is_the_explained_variance_and_an_exchange_alone_counts_it_twice(self):
        predict, windows, labels = linear_case([[2.0, 0.0]], rows=5_000)
        increase = run(predict, windows, labels)
        assert increase.estimate[0] == pytest.approx(2.0**2, rel=0.1)
        held = HeldOut(labels, np.arange(len(windows)), 5)
        alone = leaning(predict(windows), held, scrambler(predict, windows, range(2)), [(0,), (1,)])
        assert alone[0] == pytest.approx(2 * 2.0**2, rel=0.1)

    def test_of_twins_each_adds_what_the_other_does_not_say(self):
        rng = np.random.default_rng(0)
        predict, windows, _ = linear_case([[2.0, 2.0]], rows=4_000)
        windows[:, :, 1] = 0.95 * windows[:, :, 0] + np.sqrt(1 - 0.95**2) * windows[:, :, 1]
        labels = 4.0 * windows[:, -1, :1] + rng.normal(size=(4_000, 1))
        held = HeldOut(labels, np.arange(4_000), 5)
        kept = scrambler(predict, windows, range(2), conditional=True)
        found = error_increase(
            predict(windows), held, kept, [(0,), (1,), (0, 1)], repeats=2, draws=100
        )
        free = leaning(predict(windows), held, scrambler(predict, windows, range(2)), [(0,)])
        best = np.mean((labels - predict(windows).mean(axis=0)) ** 2)
        refit = np.mean((labels - 4.0 * 0.95 * windows[:, -1, 1:]) ** 2) - best
        assert found.estimate[0] < 1.5 * refit < free[0]
        assert found.estimate[1] < 0.1 * found.estimate[2]

    def test_an_unused_variable_has_exactly_no_effect(self):
        predict, windows, labels = linear_case([[1.0, 0.0], [1.0, 0.0]])
        increase = run(predict, windows, labels)
        assert increase.estimate[1] == pytest.approx(0.0, abs=1e-12)
        assert increase.findings[1].p_value == 1.0

    def test_members_that_disagree_widen_the_interval(self):
        agree = run(*linear_case([[1.0, 1.0]] * 4))
        differ = run(*linear_case([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0], [0.0, 1.0]]))
        width = agree.high[0] - agree.low[0]
        assert differ.high[0] - differ.low[0] > 1.5 * width

    def test_interval_covers_the_expected_rise(self):
        """Over many data sets the 90 % interval holds the true value about 90 % of the time."""
        hits = 0
        for seed in range(60):
            increase = run(*linear_case([[1.0, 0.0]], rows=300, seed=seed), draws=200, seed=seed)
            hits += increase.low[0] <= 1.0 <= increase.high[0]
        assert hits >= 52

    def test_families_and_columns_are_exchanged_together(self):
        predict, windows, labels = linear_case([[1.0, 1.0, 0.5]])
        by_columns = run(predict, windows, labels, families=[(0,)], groups=[0, 0, 1])
        by_family = run(predict, windows, labels, families=[(0, 1)])
        np.testing.assert_array_equal(by_columns.estimate, by_family.estimate)

    def test_same_seed_same_numbers_and_windows_unchanged(self):
        predict, windows, labels = linear_case([[1.0, 0.5], [0.8, 0.4]])
        before = windows.copy()
        first, second = (run(predict, windows, labels, seed=1) for _ in range(2))
        np.testing.assert_array_equal(first.draws, second.draws)
        np.testing.assert_array_equal(windows, before)

    def test_few_rows_stay_finite_and_cautious(self):
        predict, windows, labels = linear_case([[0.3, 0.0], [0.2, 0.1]], rows=12)
        increase = run(predict, windows, labels)
        assert np.isfinite(increase.draws).all()
        assert all(found.p_value > 0.01 for found in increase.findings)

    def test_progress_counts_forward_passes(self):
        calls = []
        run(*linear_case([[1.0, 0.5]]), progress=calls.append)
        assert sum(calls) == 4  # two variables, two repeats


def _increase(estimate, error=100.0):
    values = np.asarray(estimate, dtype=float)
    n = values.size
    return ErrorIncrease(
        estimate=values,
        low=values - 1,
        high=values + 1,
        findings=[Finding(0.0, 1.0, 10)] * n,
        per_step=values[:, None],
        per_step_low=values[:, None],
        per_step_high=values[:, None],
        by_window=values[None],
        per_member=values[None],
        draws=np.stack([values - 0.1, values, values + 0.1]),
        error=error,
        blocks=20,
    )


class TestHeadlineAndVerdicts:
    def test_shares_leave_out_negative_rises(self):
        shares = headline(_increase([3.0, -2.0, 1.0]), target=2)
        np.testing.assert_allclose(shares["importance"], [0.75, 0.0, 0.25])
        np.testing.assert_allclose(shares["importance_exogenous"], [1.0, 0.0, np.nan])
        assert (shares["low"] <= shares["importance"]).all()
        assert (shares["high"] >= shares["importance"]).all()

    def test_nothing_helps(self):
        shares = headline(_increase([-3.0, -2.0]), target=1)
        assert all(np.isnan(values).all() for values in shares.values())

    def test_verdicts(self):
        # Error 100: 0.5 is the border of relevance.
        words = verdicts(np.array([0.003, 0.003, 0.06]), np.array([0.6, 0.4, 5.0]), 100.0)
        assert list(words) == ["important", "weak", NOISE]


class TestTopDown:
    def test_nothing_is_found_within_what_is_not_found(self):
        root, groups, single = top_down(0.2, [((0, 1), 0.001)], np.array([0.02, 0.5, 0.5]))
        assert root == pytest.approx(0.12)  # two chances: all together, or the best of three
        assert groups[0] == single.min() == root

    def test_a_group_is_found_where_neither_of_its_variables_is(self):
        root, groups, single = top_down(1e-6, [((0, 1), 0.001)], np.array([0.2, 0.3, 0.5]))
        assert root < 0.05
        assert groups[0] == pytest.approx(2 * 0.001 * 3 / 2)
        assert (single > 0.05).all()

    def test_a_clear_single_one_opens_the_way(self):
        root, _, single = top_down(0.9, [], np.array([1e-6, 0.5, 0.5]))
        assert root == pytest.approx(6e-6)
        assert single[0] < 0.05

    def test_the_share_of_false_findings_is_held_where_asked(self):
        rng = np.random.default_rng(1)
        p = np.append(np.full(60, 4e-4), rng.uniform(size=240))
        strict, shares = top_down(0.0, [], p)[2], top_down(0.0, [], p, "fdr")[2]
        assert not (strict < 0.05).any()
        assert (shares[:60] < 0.05).all() and np.sum(shares[60:] < 0.05) < 10
        root, _, single = top_down(0.4, [((0, 1), 0.3)], np.array([0.01, 0.3, 0.3, 0.3]), "fdr")
        assert single.min() == root == pytest.approx(0.08)

    def test_false_findings_are_rare(self):
        rng = np.random.default_rng(0)
        p = rng.uniform(size=(2_000, 8))
        alarms = [top_down(one[0], [((0, 1), one[1])], one[2:]) for one in p]
        assert np.mean([(single < 0.05).any() or root < 0.05 for root, _, single in alarms]) < 0.06


class TestCorrelatedGroups:
    def test_chains_are_joined_and_the_target_left_out(self):
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 500))
        noise = 0.05 * rng.normal(size=(500, 3))
        values = np.column_stack([a, b, -a + noise[:, 0], a + noise[:, 1], b + noise[:, 2]])
        assert correlated_groups(values, range(5), target=4) == [(0, 2, 3)]
        assert correlated_groups(values, range(5)) == [(0, 2, 3), (1, 4)]

    def test_columns_of_one_variable_are_no_group(self):
        a = np.random.default_rng(0).normal(size=300)
        values = np.column_stack([a, a, a**2])
        assert correlated_groups(values, [0, 0, 1]) == []

    def test_constant_columns_are_harmless(self):
        assert correlated_groups(np.ones((50, 3)), range(3)) == []


def test_slow_errors_of_a_model_of_walks_do_not_make_variables_important() -> None:
    """Levels of walks mislead a model slowly; single rises look independent and are not."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        walks = np.cumsum(rng.standard_normal((900, 5)), axis=0)
        level = (walks - walks.mean(axis=0)) / walks.std(axis=0)
        rate, phase = rng.uniform(0.5, 2.0, 5), rng.uniform(0.0, 6.0, 5)

        def forecast(x, rate=rate, phase=phase):
            return 0.3 * np.sin(rate * x + phase).sum(axis=-1)[None, :, None]  # all of it wrong

        def scrambled(variables, donors, level=level, forecast=forecast):
            moved = level.copy()
            moved[:, list(variables)] = level[donors][:, list(variables)]
            return forecast(moved)

        found = error_increase(
            forecast(level),
            # nothing can be forecast
            HeldOut(rng.standard_normal((900, 1)), np.arange(900), window=10),
            scrambled,
            [(i,) for i in range(5)],
            repeats=2,
            draws=200,
        )
        alarms += any(judged(found, 4)[:4] == "important")
    assert alarms <= 2
