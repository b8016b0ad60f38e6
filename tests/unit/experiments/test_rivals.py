"""Methods that the package's own intervals are compared with: causal, and right in the long run."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.rivals import METHODS
from mvlstm.recalibration import LEVELS, SCORES, Arrivals

ROWS, STEPS = 1200, 3
SHAPE = np.tile(1.1 * SCORES, (STEPS, 1))


def arrivals(rows: int = ROWS) -> Arrivals:
    known = np.maximum(np.arange(rows)[:, None] - np.arange(STEPS), 0)
    return Arrivals(np.array([0, rows]), np.arange(rows), known)


def scores() -> np.ndarray:
    found = np.random.default_rng(0).normal(size=(ROWS, STEPS))
    found[300:] *= 1.5
    found[::50, 1] = np.nan
    return found


@pytest.mark.parametrize("name", METHODS)
def test_quantiles_rise_begin_at_the_fit_and_know_no_later_outcome(name: str) -> None:
    one = METHODS[name](scores(), arrivals(), SHAPE)
    assert one.shape == (ROWS, STEPS, len(LEVELS)) and (np.diff(one, axis=-1) >= 0).all()
    np.testing.assert_allclose(one[0], SHAPE, atol=0.4 if name in ("rolling", "AgACI") else 1e-9)
    changed = scores()
    changed[700, 2] += 9.0  # known from row 703 on
    other = METHODS[name](changed, arrivals(), SHAPE)
    np.testing.assert_array_equal(one[:703], other[:703])
    assert name == "static" or (one[703:] != other[703:]).any()


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"static"}))
def test_levels_get_their_share_after_a_break(name: str) -> None:
    late, y = METHODS[name](scores(), arrivals(), SHAPE)[900:], scores()[900:, :, None]
    known = np.isfinite(y[..., 0])
    shares = (y <= late)[known].mean(axis=0)
    assert np.abs(shares - LEVELS).max() < 0.05
