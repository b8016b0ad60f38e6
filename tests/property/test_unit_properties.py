"""Units do not matter: verdicts, intervals and scores follow the target's and the inputs' scale."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv

DECADES = (-100, -82, -20, 77, 100)
SETTINGS = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 2, "verbose": 0, "seed": 0}


def table(scale: float = 1.0, shift: float = 0.0, *, input_scale: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x, z, noise = rng.normal(size=(3, 260))
    y = np.r_[0.0, x[:-1]] + 0.5 * noise
    return pd.DataFrame({"x": input_scale * x, "z": z, "y": scale * y + shift})


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


def same(found: pd.DataFrame, plain: pd.DataFrame, scale: float, *, near: float) -> None:
    assert dict(found["verdict"]) == dict(plain["verdict"])
    assert plain.loc["x", "verdict"] == "important" and plain.loc["z", "verdict"] != "important"
    names = list(plain.index)
    for column in ("importance", "coverage", "skill"):
        np.testing.assert_allclose(found.loc[names, column], plain[column], atol=near)
    rises = found.loc[names, "error_increase"].to_numpy() / scale / scale
    np.testing.assert_allclose(rises, plain["error_increase"], atol=near)
    assert found["unit"].iloc[0] / scale == pytest.approx(plain["unit"].iloc[0], rel=near)


@pytest.fixture(scope="module")
def plain() -> dict[str, pd.DataFrame]:
    return {"AR": judged(mv.AR(window=4), table())}


@pytest.mark.parametrize("decade", DECADES)
def test_verdicts_do_not_depend_on_the_unit_of_the_target(
    plain: dict[str, pd.DataFrame], decade: int
) -> None:
    scale = 10.0**decade
    same(judged(mv.AR(window=4), table(scale)), plain["AR"], scale, near=1e-6)


@pytest.mark.parametrize("decade", [-100, 100])
def test_nor_on_that_of_an_input_or_on_a_level(plain: dict[str, pd.DataFrame], decade: int) -> None:
    other = judged(mv.AR(window=4), table(input_scale=10.0**decade))
    same(other, plain["AR"], 1.0, near=1e-6)
    high = judged(mv.AR(window=4), table(1.0, 10.0 ** (decade / 20)))
    same(high, plain["AR"], 1.0, near=1e-4)


@pytest.mark.parametrize("decade", [-82, 77])
def test_a_network_judges_alike(decade: int) -> None:
    first = judged(mv.MVLSTM(**SETTINGS), table())
    same(judged(mv.MVLSTM(**SETTINGS), table(10.0**decade)), first, 10.0**decade, near=2e-2)


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("decade", [-100, 100])
def test_links_do_not_depend_on_units(column: str, decade: int) -> None:
    def links(rows: pd.DataFrame) -> pd.DataFrame:
        found = mv.graph(rows, window=2, effort="quick", verbose=0).to_frame()
        return found.set_index(["from", "to"]).sort_index()

    plain, other = links(table()), links(table().assign(**{column: table()[column] * 10.0**decade}))
    assert list(other["verdict"]) == list(plain["verdict"])
    assert other.loc[("x", "y"), "verdict"] == "important"
    assert (other.loc[("z", "y"), "p"], other.loc[("x", "y"), "p"]) == pytest.approx(
        (plain.loc[("z", "y"), "p"], plain.loc[("x", "y"), "p"]), rel=1e-6
    )
    np.testing.assert_allclose(other["strength"], plain["strength"], atol=1e-9)
