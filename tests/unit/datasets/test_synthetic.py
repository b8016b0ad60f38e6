"""Made-up data: the recipe's facts hold, and one seed gives one table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mvlstm.datasets.synthetic import from_partials, lorenz96, synthetic
from mvlstm.errors import ParameterError


@pytest.mark.parametrize("seed", range(6))
def test_the_recipe_keeps_its_promises(seed: int) -> None:
    table, truth = synthetic(20_000, seed=seed)
    assert list(table) == [*(f"x{i}" for i in range(10)), "y"]
    np.testing.assert_allclose(table.drop(columns="y").mean(), 0, atol=1e-12)
    np.testing.assert_allclose(table.drop(columns="y").std(ddof=0), 1, rtol=1e-12)
    assert 1.6 < table["y"].std() < 2.3
    assert truth.drivers == ("x2", "x3")
    assert all(1 <= truth.lags[name] <= 5 for name in truth.drivers) and 1 <= truth.lags["y"] <= 3
    assert truth.oracle is not None
    errors = table["y"] - truth.oracle
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(1.0, abs=0.03) == truth.oracle_rmse
    assert np.mean(np.abs(errors)) == pytest.approx(truth.oracle_mae, abs=0.03)
    assert abs(np.corrcoef(errors[1:], errors[:-1])[0, 1]) < 0.03  # white: nothing left to know


def test_the_draws_follow_the_stated_order() -> None:
    """An independent, slow reading of the recipe gives the same numbers."""
    n, seed = 40, 5
    rng = np.random.default_rng(seed)
    length = n + 500

    def coefficients(partials: np.ndarray) -> list[float]:
        a: list[float] = []
        for r in partials:
            a = [c - r * d for c, d in zip(a, reversed(a), strict=True)] + [r]
        return a

    def run(ar: list[float], ma: list[float], e: np.ndarray, g: np.ndarray) -> np.ndarray:
        y = np.zeros(length)
        for t in range(length):
            y[t] = e[t] + g[t]
            y[t] += sum(c * y[t - k] for k, c in enumerate(ar, 1) if t >= k)
            y[t] += sum(c * e[t - k] for k, c in enumerate(ma, 1) if t >= k)
        return y

    def std(x: np.ndarray) -> np.ndarray:
        return np.asarray((x - x[500:].mean()) / x[500:].std())

    zero = np.zeros(length)
    x = []
    for _ in range(10):
        p, q = rng.integers(1, 4), rng.integers(0, 3)
        ar = coefficients(rng.uniform(-0.7, 0.7, p))
        ma = [-c for c in coefficients(rng.uniform(-0.7, 0.7, q))]
        x.append(std(run(ar, ma, rng.standard_normal(length), zero)))
    l2, l3 = rng.integers(1, 6), rng.integers(1, 6)
    a = rng.uniform(0.3, 1, l2) * rng.choice([-1.0, 1.0], l2)
    b = rng.uniform(0.3, 1, l3) * rng.choice([-1.0, 1.0], l3)
    u = std(
        np.array(
            [sum(a[j - 1] * x[2][t - j] for j in range(1, l2 + 1) if t >= j) for t in range(length)]
        )
    )
    v = std(
        np.array(
            [sum(b[j - 1] * x[3][t - j] for j in range(1, l3 + 1) if t >= j) for t in range(length)]
        )
    )
    g = np.sqrt(2) * std(np.sqrt(0.5) * std(u + v) + np.sqrt(0.5) * std((u - v) * v))
    p, q = rng.integers(1, 4), rng.integers(0, 3)
    ar = coefficients(rng.uniform(-0.5, 0.5, p))
    ma = [-c for c in coefficients(rng.uniform(-0.5, 0.5, q))]
    y = run(ar, ma, rng.standard_normal(length), g)

    table, truth = synthetic(n, seed=seed)
    np.testing.assert_allclose(table["y"], y[500:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(table["x9"], x[9][500:], rtol=1e-9, atol=1e-9)
    assert truth.lags == {"x2": l2, "x3": l3, "y": p}


def test_one_seed_gives_one_table() -> None:
    pd.testing.assert_frame_equal(synthetic(300, seed=3)[0], synthetic(300, seed=3)[0])
    assert not synthetic(300, seed=3)[0].equals(synthetic(300, seed=4)[0])


def test_the_global_generator_is_left_alone() -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    synthetic(50)
    lorenz96(5)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]


def test_knobs_change_the_coupling() -> None:
    quiet, _ = synthetic(20_000, seed=1, snr=0.0)
    loud, _ = synthetic(20_000, seed=1, snr=4.0)
    assert quiet["y"].std() < loud["y"].std()
    lagged = pd.concat([loud[f"x{i}"].shift(j) for i in (2, 3) for j in range(1, 6)], axis=1).iloc[
        5:
    ]

    def explained(lin: float) -> float:
        y = synthetic(20_000, seed=1, lin=lin, snr=4.0)[0]["y"].iloc[5:].to_numpy()
        fit = np.linalg.lstsq(lagged.to_numpy(), y, rcond=None)[0]
        return 1 - float(np.var(y - lagged.to_numpy() @ fit) / np.var(y))

    assert explained(0.0) < 0.1 < explained(0.5) < explained(1.0)


def test_partial_autocorrelations_give_stationary_coefficients() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        coefficients = from_partials(rng.uniform(-0.99, 0.99, rng.integers(1, 5)))
        roots = np.roots(np.append(1.0, -coefficients))
        assert (np.abs(roots) < 1).all()


@pytest.mark.parametrize(
    "options", [{"n": 1}, {"n": 2.5}, {"snr": -1.0}, {"snr": "2"}, {"lin": 1.5}, {"seed": -1}]
)
def test_synthetic_settings_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        synthetic(**{"n": 100, **options})  # type: ignore[arg-type]


def test_lorenz96_follows_its_equation() -> None:
    table, truth = lorenz96(400, noise=0.0)
    x = table.to_numpy()
    assert x.shape == (400, 10) and truth.drivers == ("x0", "x7", "x8")
    assert 3.0 < x.std() < 6.0
    speed = (np.roll(x, -1, 1) - np.roll(x, 2, 1)) * np.roll(x, 1, 1) - x + 10.0
    chord = (x[2:] - x[:-2]) / 0.2
    assert np.corrcoef(speed[1:-1].ravel(), chord.ravel())[0, 1] > 0.95


def test_lorenz96_agrees_with_an_adaptive_solver() -> None:
    from scipy.integrate import solve_ivp

    x = lorenz96(6, noise=0.0, seed=2)[0].to_numpy()

    def slope(_: float, s: np.ndarray) -> np.ndarray:
        return np.asarray((np.roll(s, -1) - np.roll(s, 2)) * np.roll(s, 1) - s + 10.0)

    solved = solve_ivp(slope, (0, 0.5), x[0], t_eval=np.arange(6) * 0.1, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(x, solved.y.T, atol=1e-4)


def test_lorenz96_truth_noise_and_settings() -> None:
    assert lorenz96(5, p=20)[1].drivers == ("x0", "x17", "x18")
    assert lorenz96(5, p=4)[1].drivers == ("x0", "x1", "x2")
    clean, noisy = lorenz96(2000, noise=0.0)[0], lorenz96(2000)[0]
    assert (noisy - clean).to_numpy().std() == pytest.approx(0.1, rel=0.05)
    for options in ({"n": 0}, {"p": 3}, {"seed": -1}):
        with pytest.raises(ParameterError):
            lorenz96(**{"n": 5, **options})
