"""Units do not matter: verdicts, intervals and scores follow the target's and the inputs' scale."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv

SEED = int(os.environ.get("MVLSTM_TEST_SEED", "0"))
TABLES, UNITS = 3, 4  # generated tables, and units that each is given in
SHIFTS = (0.0, 3.0, -50.0, 1e4)  # of the target, in standard deviations
SETTINGS = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 2, "verbose": 0, "seed": 0}


def table(scale: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x, z, noise = rng.normal(size=(3, 260))
    y = np.r_[0.0, x[:-1]] + 0.5 * noise
    return pd.DataFrame({"x": x, "z": z, "y": scale * y})


def judged(model: object, rows: pd.DataFrame) -> pd.DataFrame:
    """Return importance and verdicts, by variable, and the width and coverage of intervals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mv.errors.MVLSTMWarning)
        fitted = model.fit(rows, "y", test=0.3)  # type: ignore[attr-defined]
        found = fitted.explain(rows, effort="quick", contributions=4)
        scores = fitted.evaluate(rows).scores.iloc[0]
    return found.importance.set_index("variable").assign(
        coverage=scores["coverage"], skill=scores["skill"], unit=scores["rmse"]
    )


def generated(seed: int) -> pd.DataFrame:
    """Return a table of which one variable, or none, acts on the target, which may remember."""
    rng = np.random.default_rng([SEED, seed])
    x, z, noise = rng.normal(size=(3, 260))
    memory, acts = rng.uniform(0, 0.9), rng.choice([0.0, 0.3, 1.0])
    y = np.zeros(260)
    for t in range(1, 260):
        y[t] = memory * y[t - 1] + acts * x[t - 1] + 0.5 * noise[t] * (1 + 0.5 * abs(z[t]))
    return pd.DataFrame({"x": x, "z": z, "y": y / y.std()})


def same(found: pd.DataFrame, plain: pd.DataFrame, scale: float, *, near: float) -> None:
    assert dict(found["verdict"]) == dict(plain["verdict"])
    names = list(plain.index)
    for column in ("importance", "coverage", "skill"):
        np.testing.assert_allclose(found.loc[names, column], plain[column], atol=near)
    rises = found.loc[names, "error_increase"].to_numpy() / scale / scale
    np.testing.assert_allclose(rises, plain["error_increase"], atol=near)
    assert found["unit"].iloc[0] / scale == pytest.approx(plain["unit"].iloc[0], rel=near)


@pytest.mark.parametrize("seed", range(TABLES))
def test_verdicts_do_not_depend_on_units_or_levels(seed: int) -> None:
    """Units of the target from 1e-100 to 1e100, evenly, and any of the inputs."""
    rows, rng = generated(seed), np.random.default_rng([SEED, seed, 1])
    plain = judged(mv.AR(window=4), rows)
    decades = np.linspace(-100, 100, TABLES * UNITS)[seed::TABLES]
    for decade, shift in zip(decades, rng.permutation(SHIFTS), strict=True):
        scale, (x, z) = 10.0**decade, 10.0 ** rng.uniform(-100, 100, 2)
        other = rows.assign(x=x * rows["x"], z=z * rows["z"], y=scale * (rows["y"] + shift))
        same(judged(mv.AR(window=4), other), plain, scale, near=1e-4 if shift else 1e-6)


@pytest.fixture(scope="module")
def network() -> pd.DataFrame:
    return judged(mv.MVLSTM(**SETTINGS), table())


@pytest.mark.parametrize("decade", [-82, 77])
def test_a_network_judges_alike(network: pd.DataFrame, decade: int) -> None:
    assert network.loc["x", "verdict"] == "important" != network.loc["z", "verdict"]
    same(judged(mv.MVLSTM(**SETTINGS), table(10.0**decade)), network, 10.0**decade, near=2e-2)


def links(rows: pd.DataFrame) -> pd.DataFrame:
    found = mv.graph(rows, window=2, effort="quick", verbose=0).to_frame()
    return found.set_index(["from", "to"]).sort_index()


@pytest.fixture(scope="module")
def plain_links() -> pd.DataFrame:
    return links(table())


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("decade", [-100, 100])
def test_links_do_not_depend_on_units(plain_links: pd.DataFrame, column: str, decade: int) -> None:
    plain, other = plain_links, links(table().assign(**{column: table()[column] * 10.0**decade}))
    assert list(other["verdict"]) == list(plain["verdict"])
    assert other.loc[("x", "y"), "verdict"] == "important"
    assert (other.loc[("z", "y"), "p"], other.loc[("x", "y"), "p"]) == pytest.approx(
        (plain.loc[("z", "y"), "p"], plain.loc[("x", "y"), "p"]), rel=1e-6
    )
    np.testing.assert_allclose(other["strength"], plain["strength"], atol=1e-9)
