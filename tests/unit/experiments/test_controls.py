"""Controls are what they say: drivers act at their lags, null series do not act at all."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.controls import CONTROLS, NULL_CONTROLS, make_control
from mvlstm.errors import ParameterError

ROWS = 4_000


def partial_gain(table, name: str, lags, *, controls: int = 4) -> float:
    """Share of what the target's own past leaves that one variable's lags explain, linearly."""
    y = table["y"].to_numpy()
    longest = max([*lags, controls])

    def past(column, which):
        values = table[column].to_numpy()
        return [values[longest - lag : len(values) - lag] for lag in which]

    own = np.column_stack([np.ones(len(y) - longest), *past("y", range(1, controls + 1))])
    both = np.column_stack([own, *past(name, lags)])

    def rest(X):
        return float(np.sum((y[longest:] - X @ np.linalg.lstsq(X, y[longest:])[0]) ** 2))

    return 1 - rest(both) / rest(own)


@pytest.mark.parametrize("name", CONTROLS)
def test_the_same_seed_gives_the_same_table(name) -> None:
    table, truth = make_control(name, 300, seed=3)
    again, _ = make_control(name, 300, seed=3)
    other, _ = make_control(name, 300, seed=4)
    assert table.equals(again)
    assert not table.equals(other)
    assert table.shape[0] == 300
    assert table.columns[-1] == "y"
    assert np.isfinite(table.to_numpy()).all()
    assert set(truth.drivers) <= set(table.columns[:-1])


@pytest.mark.parametrize("name", NULL_CONTROLS)
def test_null_controls_have_no_drivers(name) -> None:
    assert make_control(name, 300, seed=0)[1].drivers == ()


@pytest.mark.parametrize("name", ["noise", "shifted"])
def test_stationary_null_series_tell_nothing(name) -> None:
    table, _ = make_control(name, ROWS, seed=1)
    gains = [partial_gain(table, c, (1, 2, 3)) for c in table.columns[:-1]]
    assert max(gains) < 0.01


def test_a_shared_cycle_correlates_without_acting() -> None:
    table, _ = make_control("cycle", ROWS, seed=1)
    correlation = table.corr()["y"].drop("y").abs()
    assert correlation.max() > 0.3  # a careless measure would speak
    phase = np.arange(ROWS) % 24
    left = table - table.groupby(phase).transform("mean")
    assert left.corr()["y"].drop("y").abs().max() < 0.1


def test_linear_drivers_act_at_their_planted_lags() -> None:
    table, truth = make_control("var", ROWS, seed=2)
    for name, lags in truth.parameters["planted"].items():
        assert partial_gain(table, name, lags) > 0.02
    others = set(table.columns[:-1]) - set(truth.drivers)
    assert len(others) == 7


def test_only_the_first_of_a_pair_acts() -> None:
    table, truth = make_control("correlated", ROWS, seed=2)
    assert truth.drivers == ("a0", "a1")
    assert table["a0"].corr(table["b0"]) == pytest.approx(0.8, abs=0.06)
    lag = truth.parameters["planted"]["a0"]
    assert partial_gain(table, "a0", lag) > partial_gain(table, "b0", lag) > 0.02


def test_planted_lags_are_told() -> None:
    table, truth = make_control("lags", ROWS, seed=5)
    planted = truth.parameters["planted"]
    assert len(planted) == 5
    assert all(1 <= lag <= 15 for lags in planted.values() for lag in lags)
    strong = 0
    for name, lags in planted.items():
        wrong = [lag for lag in range(1, 16) if all(abs(lag - true) > 4 for true in lags)][:1]
        right = partial_gain(table, name, lags)
        strong += right > 0.03 and (not wrong or right > 3 * partial_gain(table, name, wrong))
    assert strong >= 3  # one acts through its absolute value, which a line cannot see


def test_a_duplicate_is_one() -> None:
    table, truth = make_control("duplicated", 500, seed=0)
    assert table["x2"].corr(table["x2_copy"]) > 0.99
    assert "x2" in truth.drivers


def test_an_unknown_control_is_refused() -> None:
    with pytest.raises(ParameterError, match="control='walk'"):
        make_control("walk", 10, seed=0)
