"""Made-up series that put a measure of importance to the test: known drivers, or none at all.

Each function takes a number of rows and a seed and returns a table, the target ``y`` last, and its
`Truth`. In the null controls no variable acts on the target, each for another reason why a careless
measure would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.datasets.synthetic import BURN_IN, Truth, synthetic
from mvlstm.errors import check_option
from mvlstm.types import FloatArray

Made = tuple[pd.DataFrame, Truth]

DAY = 24  # rows of the shared daily cycle


def sparse_var(n: int, *, seed: int, p: int = 10, parents: int = 2) -> Made:
    """Simulate a stable vector autoregression in which every series has a few parents.

    The target is one of ``p`` series; its parents act at lag 1 or 2 with weights of 0.3 to 0.5.
    """
    rng = np.random.default_rng([seed, 1])
    while True:
        weights = np.zeros((2, p, p))
        for row in range(p):
            weights[0, row, row] = rng.uniform(0.2, 0.5)
            others = rng.choice([k for k in range(p) if k != row], parents, replace=False)
            for other in others:
                lag, sign = int(rng.integers(2)), rng.choice([-1.0, 1.0])
                weights[lag, row, other] = sign * rng.uniform(0.3, 0.5)
        companion = np.block([[weights[0], weights[1]], [np.eye(p), np.zeros((p, p))]])
        if np.abs(np.linalg.eigvals(companion)).max() < 0.95:
            break
    noise = rng.standard_normal((n + BURN_IN, p))
    x = np.zeros_like(noise)
    for t in range(2, len(x)):
        x[t] = weights[0] @ x[t - 1] + weights[1] @ x[t - 2] + noise[t]
    names = [*(f"x{k}" for k in range(p - 1)), "y"]
    planted = {
        names[k]: [lag + 1 for lag in range(2) if weights[lag, -1, k]]
        for k in range(p - 1)
        if weights[:, -1, k].any()
    }
    table, truth = pd.DataFrame(x[BURN_IN:], columns=names), _truth(planted, seed)
    links = (weights != 0).any(axis=0) | np.eye(p, dtype=bool)  # a row per target
    return table, replace(truth, parameters={**truth.parameters, "links": links.tolist()})


def correlated_drivers(
    n: int, *, seed: int, correlation: Sequence[float] = (0.8, 0.8, 0.8, 0.8), acting: str = "one"
) -> Made:
    """Simulate pairs of series with a common part, each with a correlation of its own.

    In half of the pairs ``acting`` members act on the target, "one" (the first), "both" or "none";
    an idle one tells nothing that its twin does not.
    """
    rng, pairs = np.random.default_rng([seed, 2]), len(correlation)
    length, alike = n + BURN_IN, np.array(correlation)[:, None]
    firsts = np.stack([_slow(rng, length) for _ in range(pairs)])
    own = np.stack([_slow(rng, length) for _ in range(pairs)])
    both = {"a": firsts, "b": alike * firsts + np.sqrt(1 - alike**2) * own}
    lags = rng.integers(1, 4, size=pairs)
    kinds = {"one": "a", "both": "ab", "none": ""}[acting]
    drive = sum(
        rng.choice([-1.0, 1.0]) * _lagged(both[kind][k], int(lags[k]))
        for kind in kinds
        for k in range(pairs // 2)
    )
    y = _autoregression(rng.standard_normal(length) + drive, 0.5)
    names = [f"{kind}{k}" for kind in both for k in range(pairs)]
    planted = {f"{kind}{k}": [int(lags[k])] for kind in kinds for k in range(pairs // 2)}
    values = np.vstack([*both.values(), y[None]]).T[BURN_IN:]
    return pd.DataFrame(values, columns=[*names, "y"]), _truth(planted, seed)


def alike_pairs(n: int, *, seed: int, acting: str = "one") -> Made:
    """Simulate four pairs with correlations of 0.9 to 0.99, two of which may act."""
    order = np.random.default_rng([seed, 9]).permutation([0.9, 0.93, 0.96, 0.99])
    return correlated_drivers(n, seed=seed, correlation=order.tolist(), acting=acting)


def planted_lags(n: int, *, seed: int, longest: int = 15) -> Made:
    """Simulate eight series of which five act on the target, each at one or two lags of its own.

    Three act linearly, one through its hyperbolic tangent and one through its absolute value.
    """
    rng = np.random.default_rng([seed, 3])
    length = n + BURN_IN
    x = np.stack([_slow(rng, length) for _ in range(8)])
    drivers = np.sort(rng.choice(8, 5, replace=False))
    shapes: list[Callable[[FloatArray], FloatArray]] = [
        *[lambda v: v] * 3,
        lambda v: np.tanh(2 * v) * 1.2,
        lambda v: (np.abs(v) - np.sqrt(2 / np.pi)) * 1.6,
    ]
    planted: dict[str, list[int]] = {}
    drive = np.zeros(length)
    for place, k in enumerate(rng.permutation(drivers)):
        lags = np.sort(rng.choice(np.arange(1, longest + 1), rng.integers(1, 3), replace=False))
        planted[f"x{k}"] = [int(lag) for lag in lags]
        for lag in lags:
            size = rng.uniform(0.6, 1.0) * rng.choice([-1.0, 1.0]) / np.sqrt(len(lags))
            drive += size * shapes[place](_lagged(x[k], int(lag)))
    y = _autoregression(rng.standard_normal(length) + drive, 0.3)
    names = [*(f"x{k}" for k in range(8)), "y"]
    return pd.DataFrame(np.vstack([x, y[None]]).T[BURN_IN:], columns=names), _truth(planted, seed)


def duplicated(n: int, *, seed: int) -> Made:
    """Take the coupled series of `synthetic` and add a copy of the driver ``x2``, ``x2_copy``."""
    table, truth = synthetic(n, seed=seed)
    noise = np.random.default_rng([seed, 4]).standard_normal(n)
    table.insert(3, "x2_copy", table["x2"] + 0.05 * noise)
    return table, truth


def null_noise(n: int, *, seed: int, p: int = 8) -> Made:
    """Simulate an autoregressive target among series of independent noise."""
    rng = np.random.default_rng([seed, 5])
    y = _autoregression(rng.standard_normal(n + BURN_IN), 0.8)
    x = rng.standard_normal((n + BURN_IN, p))
    return _without_drivers(x, y, seed)


def null_walks(n: int, *, seed: int, p: int = 8) -> Made:
    """Simulate independent random walks: any two of them look related."""
    rng = np.random.default_rng([seed, 6])
    walks = np.cumsum(rng.standard_normal((n + BURN_IN, p + 1)), axis=0)
    return _without_drivers(walks[:, :-1], walks[:, -1], seed)


def null_cycle(n: int, *, seed: int, p: int = 8) -> Made:
    """Simulate series that share a daily cycle with the target and nothing else."""
    rng = np.random.default_rng([seed, 7])
    length = n + BURN_IN
    phase = rng.uniform(0, 2 * np.pi, p + 1)
    size = rng.uniform(0.7, 1.5, p + 1)
    hours = 2 * np.pi * np.arange(length)[:, None] / DAY
    own = np.stack([_slow(rng, length) for _ in range(p + 1)], axis=1)
    both = size * np.sin(hours + phase) + own
    return _without_drivers(both[:, :-1], both[:, -1], seed)


def null_shifted(n: int, *, seed: int) -> Made:
    """Take the coupled series and turn each variable's record in a circle, past the target's."""
    table, _ = synthetic(n, seed=seed)
    rng = np.random.default_rng([seed, 8])
    for name in table.columns[:-1]:
        shift = int(rng.integers(n // 10, n - n // 10))
        table[name] = np.roll(table[name].to_numpy(), shift)
    return table, _truth({}, seed)


CONTROLS: dict[str, Callable[..., Made]] = {
    "var": sparse_var,
    "correlated": correlated_drivers,
    "pairs": alike_pairs,
    "lags": planted_lags,
    "duplicated": duplicated,
    "noise": null_noise,
    "walks": null_walks,
    "cycle": null_cycle,
    "shifted": null_shifted,
}
NULL_CONTROLS = ("noise", "walks", "cycle", "shifted")


def make_control(name: str, n: int, *, seed: int, **options: Any) -> Made:
    """Make a control by name, with options of its own.

    Examples
    --------
    >>> table, truth = make_control("noise", 100, seed=0)
    >>> table.shape, truth.drivers
    ((100, 9), ())
    """
    check_option("control", name, CONTROLS)
    return CONTROLS[name](n, seed=seed, **options)


# ------------------------------------------------------------------------------------- inner parts


def _slow(rng: np.random.Generator, length: int) -> FloatArray:
    """Return an autoregression of first order with variance one."""
    strength = rng.uniform(0.2, 0.7)
    noise = np.sqrt(1 - strength**2) * rng.standard_normal(length)
    return _autoregression(noise, strength)


def _autoregression(drive: FloatArray, strength: float) -> FloatArray:
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], [1.0, -strength], drive), dtype=np.float64)


def _lagged(x: FloatArray, lag: int) -> FloatArray:
    return np.concatenate([np.zeros(lag), x[:-lag]])


def _without_drivers(x: FloatArray, y: FloatArray, seed: int) -> Made:
    names = [*(f"x{k}" for k in range(x.shape[1])), "y"]
    return pd.DataFrame(np.column_stack([x, y])[BURN_IN:], columns=names), _truth({}, seed)


def _truth(planted: dict[str, list[int]], seed: int) -> Truth:
    return Truth(
        drivers=tuple(planted),
        lags={name: max(lags) for name, lags in planted.items()},
        parameters={"planted": planted, "seed": seed},
    )
