"""Made-up series whose true drivers are known: a coupled ARMA mixture and Lorenz-96."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import pi, sqrt
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.errors import ParameterError, check_whole, is_number
from mvlstm.types import FloatArray

BURN_IN = 500
N_EXOGENOUS = 10


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known about a made-up series."""

    drivers: tuple[str, ...]  # exogenous variables that really act on the target
    lags: dict[str, int]  # of each driver and the target itself: the longest that acts directly
    oracle: FloatArray | None = None  # (rows,) the best possible one-step forecast of the target
    oracle_rmse: float | None = None  # its expected errors
    oracle_mae: float | None = None
    parameters: dict[str, Any] = field(default_factory=dict)  # the drawn coefficients


def synthetic(
    n: int = 10_000, *, seed: int = 0, snr: float = 2.0, lin: float = 0.5
) -> tuple[pd.DataFrame, Truth]:
    r"""Ten ARMA series of which two drive the target.

    The target is :math:`y_t = \sum_k \phi_k y_{t-k} + e_t + \sum_l \theta_l e_{t-l} + g_t` with
    :math:`e \sim N(0, 1)`; :math:`g_t` mixes a linear and a product term of the past of x2 and x3.
    The best possible forecast therefore has RMSE 1 and MAE :math:`\sqrt{2/\pi}`. The paper's
    40,000 windows of length T need 40,000 + T rows. ``snr`` is the variance of :math:`g` over that
    of :math:`e`, and ``lin`` the linear term's share in the variance of :math:`g`, 0 to 1.

    Examples
    --------
    >>> table, truth = synthetic(100)
    >>> table.shape, truth.drivers
    ((100, 11), ('x2', 'x3'))
    """
    check_whole("n", n, 2)
    check_whole("seed", seed, 0)
    if not (is_number(snr) and is_number(lin) and snr >= 0 and 0 <= lin <= 1):
        raise ParameterError(f"snr={snr} must be 0 or more and lin={lin} between 0 and 1.")
    rng = np.random.default_rng(seed)
    length = n + BURN_IN
    x = np.stack([_exogenous(rng, length) for _ in range(N_EXOGENOUS)])  # (10, length)
    lags2, lags3 = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    a, b = _coupling_weights(rng, lags2), _coupling_weights(rng, lags3)
    u = _standardise(_lagged_sum(x[2], a))
    v = _standardise(_lagged_sum(x[3], b))
    linear, product = _standardise(u + v), _standardise((u - v) * v)
    g = sqrt(snr) * _standardise(sqrt(lin) * linear + sqrt(1 - lin) * product)
    p, q = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    phi = from_partials(rng.uniform(-0.5, 0.5, p))
    theta = -from_partials(rng.uniform(-0.5, 0.5, q))
    e = rng.standard_normal(length)
    y = _arma(phi, theta, e, g)
    kept = slice(BURN_IN, None)
    names = [f"x{i}" for i in range(N_EXOGENOUS)]
    table = pd.DataFrame(np.vstack([x, y[None]])[:, kept].T, columns=[*names, "y"])
    drawn = {"a": a, "b": b, "phi": phi, "theta": theta}
    truth = Truth(
        drivers=("x2", "x3"),
        lags={"x2": lags2, "x3": lags3, "y": p},
        oracle=(y - e)[kept].copy(),
        oracle_rmse=1.0,
        oracle_mae=sqrt(2 / pi),
        parameters={name: x.tolist() for name, x in drawn.items()}
        | {"snr": snr, "lin": lin, "seed": seed},
    )
    return table, truth


def from_partials(partials: FloatArray) -> FloatArray:
    """Stationary AR coefficients from partial autocorrelations (Durbin-Levinson)."""
    coefficients = np.empty(0)
    for r in partials:
        coefficients = np.append(coefficients - r * coefficients[::-1], r)
    return coefficients


def _arma(
    ar: FloatArray, ma: FloatArray, noise: FloatArray, drive: FloatArray | float = 0.0
) -> FloatArray:
    """Run ``y_t = sum ar_k y_{t-k} + e_t + sum ma_l e_{t-l} + drive_t`` from zero."""
    from scipy.signal import lfilter

    moved = lfilter(np.append(1.0, ma), [1.0], noise) + drive
    return np.asarray(lfilter([1.0], np.append(1.0, -ar), moved), dtype=np.float64)


def _exogenous(rng: np.random.Generator, length: int) -> FloatArray:
    p, q = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    ar = from_partials(rng.uniform(-0.7, 0.7, p))
    ma = -from_partials(rng.uniform(-0.7, 0.7, q))
    return _standardise(_arma(ar, ma, rng.standard_normal(length)))


def _coupling_weights(rng: np.random.Generator, count: int) -> FloatArray:
    size = rng.uniform(0.3, 1.0, count)
    sign = rng.choice([-1.0, 1.0], count)
    return np.asarray(size * sign)


def _lagged_sum(x: FloatArray, weights: FloatArray) -> FloatArray:
    """``sum_j weights[j-1] x_{t-j}`` for j = 1, 2, ..., taking x before its start as zero."""
    return np.convolve(x, np.append(0.0, weights))[: len(x)]


def _standardise(x: FloatArray) -> FloatArray:
    """Mean 0 and deviation 1 over the part after the burn-in."""
    kept = x[BURN_IN:]
    return np.asarray((x - kept.mean()) / kept.std())


def lorenz96(
    n: int = 20_000, *, p: int = 10, forcing: float = 10.0, noise: float = 0.1, seed: int = 0
) -> tuple[pd.DataFrame, Truth]:
    r"""Run the Lorenz-96 system, sampled every 0.1 and seen through noise; the target is last.

    :math:`dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F`, indices modulo p, integrated by
    classical Runge-Kutta with step 0.01 from :math:`N(0, 0.01^2)` after 1,000 samples of burn-in.

    Returns ``n`` rows of the columns ``x0 .. x{p-1}``, and the drivers of the target, which are its
    neighbours i-2, i-1 and i+1. A ``forcing`` F of 10 is mildly chaotic, 40 wildly; ``noise`` is
    the standard deviation of the observation noise.
    """
    check_whole("n", n, 2)
    check_whole("p", p, 4)
    check_whole("seed", seed, 0)
    rng = np.random.default_rng(seed)
    start = 0.01 * rng.standard_normal(p)
    states = np.array(list(_lorenz96_states(start.tolist(), float(forcing), n)))
    states += noise * rng.standard_normal(states.shape)
    table = pd.DataFrame(states, columns=[f"x{i}" for i in range(p)])
    drivers = tuple(f"x{i}" for i in sorted({(p - 3) % p, (p - 2) % p, 0}))
    lags = dict.fromkeys([*drivers, f"x{p - 1}"], 1)
    parameters = {"p": p, "forcing": forcing, "noise": noise, "seed": seed}
    return table, Truth(drivers=drivers, lags=lags, parameters=parameters)


def _lorenz96_states(x: list[float], forcing: float, n: int) -> Iterator[list[float]]:
    """Yield n samples after the burn-in. Plain lists: for this few numbers they beat arrays."""
    burn_in, substeps, dt = 1000, 10, 0.01

    def slope(x: list[float]) -> list[float]:
        return [
            (after - before2) * before1 - here + forcing
            for after, before2, before1, here in zip(
                x[1:] + x[:1], x[-2:] + x[:-2], x[-1:] + x[:-1], x, strict=True
            )
        ]

    for sample in range(burn_in + n):
        if sample >= burn_in:
            yield x
        for _ in range(substeps):
            k1 = slope(x)
            k2 = slope([xi + dt / 2 * k for xi, k in zip(x, k1, strict=True)])
            k3 = slope([xi + dt / 2 * k for xi, k in zip(x, k2, strict=True)])
            k4 = slope([xi + dt * k for xi, k in zip(x, k3, strict=True)])
            x = [
                xi + dt / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
                for xi, s1, s2, s3, s4 in zip(x, k1, k2, k3, k4, strict=True)
            ]
