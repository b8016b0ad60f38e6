"""Contributions add up, exactly so for a linear forecast."""

from __future__ import annotations

import numpy as np
import pytest

from mvlstm.explain.contributions import AGAIN, NODES, integrated_gradients

RNG = np.random.default_rng(0)
WINDOWS, BACKGROUND = RNG.standard_normal((7, 5, 3)), RNG.standard_normal((4, 5, 3))


def test_a_linear_forecast_is_taken_apart_exactly() -> None:
    weights = RNG.standard_normal((2, 5, 3))

    def forecast(x):
        return np.einsum("mtc,htc->mh", x, weights)

    def gradient(x):
        return np.broadcast_to(weights, (1, len(x), *weights.shape))

    taken = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-9)
    parts = taken.mean
    assert taken.missed.max() < 1e-12
    want = weights * (WINDOWS - BACKGROUND.mean(axis=0))[:, None]
    np.testing.assert_allclose(parts, want, atol=1e-12)


@pytest.mark.parametrize("steepness", [1.0, 12.0, 1e3, 1e5])
def test_the_integral_of_a_steep_forecast_adds_up(steepness: float) -> None:
    """However steep: the path is divided where it must be, and a jump is told by its border."""
    weights = RNG.standard_normal((5, 3))

    def inner(x):
        return steepness * np.einsum("mtc,tc->m", x, weights)

    def forecast(x):
        return np.tanh(inner(x))[:, None]

    def gradient(x):
        slope = steepness * (1 - np.tanh(inner(x)) ** 2)
        return (slope[:, None, None] * weights)[None, :, None]

    taken = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-3)
    assert taken.missed.max() <= 1e-3
    total = forecast(WINDOWS) - forecast(BACKGROUND).mean(axis=0)
    np.testing.assert_allclose(taken.mean.sum(axis=(2, 3)), total, atol=1e-12)
    # with one inner product the direction is known: contributions share each path's rise by it
    parts = weights * (WINDOWS[:, None] - BACKGROUND)  # (M, B, T, C)
    rise = forecast(WINDOWS) - forecast(BACKGROUND)[:, 0]  # (M, B)
    want = (parts * (rise / parts.sum(axis=(2, 3)))[..., None, None]).mean(axis=1)
    np.testing.assert_allclose(taken.mean[:, 0], want, atol=2e-3 * np.abs(want).max())


def test_a_variable_without_effect_contributes_nothing() -> None:
    def forecast(x):
        return x[:, -1, :1] ** 2

    def gradient(x):
        slope = np.zeros((1, len(x), 1, 5, 3))
        slope[0, :, 0, -1, 0] = 2 * x[:, -1, 0]
        return slope

    parts = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-9).mean
    assert (parts[..., 1:] == 0).all()
    assert (parts[:, :, :-1] == 0).all()


@pytest.mark.parametrize("rough", [np.nan, 1.0])
def test_gradients_that_never_add_up_are_paid_for_once(rough: float) -> None:
    """The cost is known beforehand, whatever the forecast: no path is halved for ever."""
    asked = []

    def forecast(x):
        return np.sin(1e9 * x).sum(axis=(1, 2))[:, None]

    def gradient(x):
        asked.append(len(x))
        return np.full((1, len(x), 1, *x.shape[1:]), rough)

    taken = integrated_gradients(gradient, forecast, WINDOWS, BACKGROUND, tolerance=1e-9)
    assert sum(asked) <= (1 + AGAIN) * NODES * len(WINDOWS) * len(BACKGROUND)
    assert taken.members.shape == (1, 7, 1, 5, 3)
    assert np.isfinite(taken.members).all()
