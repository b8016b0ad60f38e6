"""How wide intervals are made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from mvlstm.forecasters.calibration import _factors


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def one_normal(rows: int, steps: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    one = np.ones((rows, steps, 1))
    return one, 0 * one, one


def true_coverage(factor: float, sd: float = 1.0) -> float:
    """Coverage of normal values by a 90 % interval whose variance is multiplied by a factor."""
    return float(2 * ndtr(ndtri(0.95) * np.sqrt(factor) / sd) - 1)


@pytest.mark.parametrize("rows", [100, 1000])
def test_rows_to_come_are_covered_almost_surely(rng, rows) -> None:
    found = [_factors(one_normal(rows), rng.normal(size=(rows, 1)))[0] for _ in range(200)]
    covered = np.array([true_coverage(factor) for factor in found])
    assert (covered >= 0.9).mean() >= 0.9  # without the margin: a half
    assert covered.mean() <= 0.9 + 2.2 * np.sqrt(0.09 / rows) + 0.01  # and not by much more


def test_rows_that_hang_together_tell_less(rng) -> None:
    alone = rng.normal(size=(1200, 1))
    together = np.repeat(alone[::12], 12, axis=0)
    margins = [true_coverage(_factors(one_normal(1200), y)[0], y.std()) for y in (alone, together)]
    assert margins[1] > margins[0]


def test_unknown_values_count_for_nothing(rng) -> None:
    y = rng.normal(size=(300, 2)) * [1.0, 3.0]
    gaps = y.copy()
    gaps[200:, 1] = np.nan
    factors = _factors(one_normal(300, 2), gaps)
    assert factors[0] == _factors(one_normal(300, 1), y[:, :1])[0]
    assert 6.0 < factors[1] < 16.0


def test_few_rows_get_no_margin(rng) -> None:
    y = rng.normal(size=(19, 1))
    assert np.isfinite(_factors(one_normal(19), y)).all()
    assert _factors(one_normal(0), np.empty((0, 1)))[0] == 1.0
