"""Links between series: what acts is found, what does not is not."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm.explain import links
from mvlstm.explain.links import (
    Past,
    Squares,
    choose_kernel,
    find_links,
    inverted,
    shared_cycles,
    slow_waves,
    wanders,
)


def past(series, window=3, rows=1_000):
    origins = np.arange(window - 1, len(series) - 1)
    columns = np.arange(series.shape[1])
    return Past(
        windows=np.stack([series[origins - lag] for lag in range(window)], axis=1),
        labels=series[origins + 1],
        levels=series[origins],
        owner=columns,
        targets=columns,
        wandering=np.array([wanders(column) for column in series.T]),
        periods=shared_cycles(series),
        positions=origins,
        drift=slow_waves(origins, rows),
    )


@pytest.fixture(scope="module")
def chain():
    """Let a act on b at lag 2, linearly, and a times b on c at lag 1; d is alone."""
    noise = np.random.default_rng(3).standard_normal((300, 4))
    x = noise.copy()
    for t in range(2, len(x)):
        x[t, 0] += 0.5 * x[t - 1, 0]
        x[t, 1] += 0.7 * x[t - 2, 0]
        x[t, 2] += x[t - 1, 0] * x[t - 1, 1]
    return find_links(past(x), choose_lags=False)[0]


def test_links_are_found_with_their_lags(chain):
    found = chain.p_value < 0.05 / 16
    assert [(j, i) for j, i in zip(*np.nonzero(found), strict=True) if i != j] == [
        (1, 0),
        (2, 0),
        (2, 1),
    ]
    assert chain.lag[1, 0] == 2 and chain.lag[2, 1] == 1
    assert (chain.low <= chain.strength).all() and (chain.strength <= chain.high).all()


def test_strength_is_the_share_of_the_error_taken_away(chain):
    # b has variance 1 given a, and 1 + 0.49 * var(a) without; a keeps half of its past
    assert chain.strength[1, 0] == pytest.approx(0.49 / 1.49 * 1.2, abs=0.12)
    assert abs(chain.strength[3, :3]).max() < 0.05


def test_what_is_found_is_stronger_than_what_would_have_been(chain):
    strong = chain.p_value < 1e-8
    assert (chain.strength[strong] > 0.5 * chain.detectable[strong]).all()
    assert (chain.strength[3, :3] < chain.detectable[3, :3]).all()


@pytest.mark.parametrize("kind", ["walks", "noise", "cycle"])
def test_nothing_is_found_where_nothing_acts(kind):
    rng = np.random.default_rng(11)
    x = rng.standard_normal((300, 5))
    if kind == "walks":
        x = np.cumsum(x, axis=0)
    if kind == "cycle":
        x += 2 * np.sin(2 * np.pi * np.arange(300)[:, None] / 24 + rng.uniform(0, 6, 5))
    links, _ = find_links(past(x, window=2))
    apart = ~np.eye(5, dtype=bool)
    assert links.p_value[apart].min() > 0.05 / 20


def test_noise_on_a_drifting_level_is_no_link():
    rng = np.random.default_rng([6, 77])
    x = rng.standard_normal((500, 5)) + 0.1 * np.cumsum(rng.standard_normal((500, 5)), axis=0)
    links, _ = find_links(past(x, window=3), choose_lags=False)
    assert links.p_value[~np.eye(5, dtype=bool)].min() > 0.05 / 20


def test_errors_that_change_in_size_are_no_link():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((300, 2))
    x[1:, 1] *= np.exp(x[:-1, 0])
    links, _ = find_links(past(x, window=2))
    assert links.p_value[1, 0] > 0.01


def test_units_do_not_matter():
    x = np.random.default_rng(2).standard_normal((120, 3))
    x[1:, 2] += 0.8 * x[:-1, 0]
    one, _ = find_links(past(x, window=2))
    other, _ = find_links(past(x * [1e-3, 10.0, 1e5] + [0.0, 7.0, -4.0], window=2))
    assert other.p_value == pytest.approx(one.p_value, rel=1e-3)
    assert other.strength == pytest.approx(one.strength, abs=1e-6)


def test_evidence_of_many_rows_adds_up():
    x = np.random.default_rng(6).standard_normal((600, 3))
    x[1:, 2] += 0.2 * x[:-1, 0] + 0.2 * x[:-1, 0] * x[:-1, 1]
    few, _ = find_links(past(x[:151], window=2))
    many, _ = find_links(past(x, window=2, rows=150), rows=150)
    whole, _ = find_links(past(x, window=2))
    assert few.p_value[2, :2].min() > 0.01 and many.p_value[2, :2].max() < 1e-4
    assert np.log(many.p_value[2, :2]) == pytest.approx(np.log(whole.p_value[2, :2]), rel=0.4)
    assert many.p_value[:2].min() > 1e-3


def test_a_kernel_that_is_not_positive_is_inverted_too():
    kernel = np.diag([1.0, -1e-3])
    assert inverted(kernel) @ kernel == pytest.approx(np.eye(2))
    mixed = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert inverted(mixed) @ mixed == pytest.approx(np.eye(2))


def test_more_lags_are_read_where_they_are_needed():
    x = np.random.default_rng(4).standard_normal((300, 2))
    x[5:, 1] += 1.5 * x[:-5, 0]
    kernel = choose_kernel(past(x, window=10))
    assert len(kernel.weights) >= 5


def test_walks_wander_and_noise_does_not():
    noise = np.random.default_rng(0).standard_normal(400)
    assert wanders(np.cumsum(noise))
    assert not wanders(noise)


def test_columns_share_a_cycle():
    t = np.arange(400)
    noise = 0.3 * np.random.default_rng(0).standard_normal((400, 3))
    waves = np.column_stack([np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), 0 * t])
    assert shared_cycles(waves + noise).tolist() == [24, 24, 1]
    assert shared_cycles((waves + noise)[:, [0, 2]]).tolist() == [1, 1]


def test_a_cycle_that_is_found_threefold_is_the_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waves = np.sin(2 * np.pi * np.arange(400)[:, None] / 24 + np.arange(4))
    lengths = iter([24, 23, 72, 130])
    monkeypatch.setattr(links, "find_period", lambda *_, **__: next(lengths))
    assert shared_cycles(waves).tolist() == [24, 24, 24, 1]


def test_chances_of_a_sum_of_squares():
    draws = np.random.default_rng(1).standard_normal((200_000, 3)) ** 2 @ [3.0, 1.0, 0.5]
    null = Squares.of(np.diag([3.0, 1.0, 0.5]))
    for chance in (0.05, 0.005):
        assert np.mean(draws > null.reach(chance)) == pytest.approx(chance, rel=0.15)
        assert null.beyond(null.reach(chance)) == pytest.approx(chance)
    assert Squares.of(np.zeros((2, 2))).beyond(0.0) == 1.0
