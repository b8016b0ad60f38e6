"""Notes on columns and values that were probably meant to be something else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import MVLSTMWarning
from mvlstm.table.frame import build_frame

ROWS = 300


def notes(**columns: object) -> str:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=ROWS), "y": rng.normal(10.0, 2.0, size=ROWS)})
    frame = build_frame(table.assign(**columns), target="y", missing="drop")
    return " ".join(frame.notes)


def changed(rows: list[int], value: float) -> np.ndarray:
    column = np.random.default_rng(1).normal(10.0, 2.0, size=ROWS)
    column[rows] = value
    return column


@pytest.mark.parametrize(
    ("rows", "value", "words"),
    [
        ([40], 1e6, "is 1e+06 in 1 row, the first at row 40; all other values lie between"),
        ([40, 41], -50.0, "is -50 in 2 rows, the first at row 40"),
        ([5], -1e4, "is -10000 in 1 row, the first at row 5"),
    ],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_values_far_from_all_others_are_noted_and_warned_of(
    rows: list[int], value: float, words: str, name: str
) -> None:
    with pytest.warns(MVLSTMWarning, match="can spoil the whole fit"):
        found = notes(**{name: changed(rows, value)})
    assert f"Column '{name}' {words}" in found and "stands for a missing value" in found


@pytest.mark.parametrize("wild", [[1e6, 2e6], [1e6, -1e6], [3e7, -1e6, 2e6, 1e6]])
def test_several_wild_values_do_not_hide_one_another(wild: list[float]) -> None:
    column = changed([], 0.0)
    column[30 : 30 + len(wild)] = wild
    with pytest.warns(MVLSTMWarning, match="can spoil the whole fit"):
        found = notes(y=column)
    assert f"'y' has {len(wild)} values far from all others, the first {wild[0]:g} at" in found


@pytest.mark.parametrize(
    "column",
    [
        np.arange(ROWS) % 7 == 0,  # on and off
        np.exp(np.random.default_rng(2).normal(size=ROWS)),  # skewed
        np.random.default_rng(3).pareto(3.0, size=ROWS),  # a heavy tail
        np.where(np.arange(ROWS) < 150, 0.0, 1.0) + np.random.default_rng(4).normal(size=ROWS) / 99,
        np.where(np.arange(ROWS) % 3 > 0, 0.0, np.random.default_rng(5).gamma(2.0, size=ROWS)),
        np.repeat([1.0, 2.0, 500.0], 100),
    ],
)
def test_columns_of_usual_shapes_are_not_noted(column: np.ndarray) -> None:
    assert "all other values" not in notes(x=column.astype(float))


def test_series_have_values_of_their_own() -> None:
    rng = np.random.default_rng(0)
    one = pd.DataFrame({"x": rng.normal(size=ROWS), "y": rng.normal(1000.0, 2.0, size=ROWS)})
    shops = [one.assign(shop=str(k)) for k in range(12)]
    shops[3]["y"] = 0.0
    frame = build_frame(pd.concat(shops), target="y", series="shop")
    assert "all other values" not in " ".join(frame.notes)


def test_a_wild_value_of_one_series_is_warned_of() -> None:
    shops = [pd.DataFrame({"x": changed([], 0.0), "y": changed([], 0.0) * 10.0**k}) for k in (0, 6)]
    shops[0].loc[70, "y"] = 1e6
    table = pd.concat([shop.assign(shop=name) for shop, name in zip(shops, "ab", strict=True)])
    with pytest.warns(MVLSTMWarning, match=r"'y' has 1 value far .* in series 'a'"):
        build_frame(table, target="y", series="shop")


def test_row_numbers_are_noted() -> None:
    for number in (np.arange(ROWS) + 1, 1_700_000_000 + 3_600 * np.arange(ROWS)):
        assert "'No' looks like a row number or a time" in notes(No=number)
