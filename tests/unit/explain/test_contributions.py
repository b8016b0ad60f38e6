"""Contributions add up, exactly so for a linear forecast."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm.explain.contributions import integrated_gradients

RNG = np.random.default_rng(0)
WINDOWS, BACKGROUND = RNG.standard_normal((7, 5, 3)), RNG.standard_normal((4, 5, 3))


def test_a_linear_forecast_is_taken_apart_exactly() -> None:
    weights = RNG.standard_normal((2, 5, 3))

    def forecast(x):
        return np.einsum("mtc,htc->mh", x, weights)

    def gradient(x):
        return np.broadcast_to(weights, (len(x), *weights.shape))

    parts, _ = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-9)
    want = weights * (WINDOWS - BACKGROUND.mean(axis=0))[:, None]
    np.testing.assert_allclose(parts, want, atol=1e-12)


@pytest.mark.parametrize("steepness", [1.0, 12.0])
def test_a_curved_forecast_adds_up_within_the_tolerance(steepness: float) -> None:
    """A steep one needs more points than the first try has."""
    weights = RNG.standard_normal((5, 3))

    def inner(x):
        return steepness * np.einsum("mtc,tc->m", x, weights)

    def forecast(x):
        return np.tanh(inner(x))[:, None]

    def gradient(x):
        slope = steepness / np.cosh(inner(x)) ** 2
        return (slope[:, None, None] * weights)[:, None]

    parts, missed = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-3)
    assert (missed.max() <= 1e-3) == (steepness == 1.0)  # the steep one is told to be rough
    total = forecast(WINDOWS) - forecast(BACKGROUND).mean(axis=0)
    np.testing.assert_allclose(parts.sum(axis=(2, 3)), total, atol=1e-3)


def test_a_variable_without_effect_contributes_nothing() -> None:
    def forecast(x):
        return x[:, -1, :1] ** 2

    def gradient(x):
        slope = np.zeros((len(x), 1, 5, 3))
        slope[:, 0, -1, 0] = 2 * x[:, -1, 0]
        return slope

    parts, _ = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-9)
    assert (parts[..., 1:] == 0).all()
    assert (parts[:, :, :-1] == 0).all()
