"""When transform='auto' takes log1p: skewed or uneven targets, by the training rows alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mvlstm.problem.transform_choice import choose_transform
from mvlstm.table.frame import build_frame


def chosen(y: np.ndarray) -> tuple[str, str]:
    frame = build_frame(pd.DataFrame({"y": y}), target="y")
    transform, notes = choose_transform("auto", frame, frame.order < int(0.7 * len(y)))
    assert len(notes) == 1
    return transform.name, notes[0]


def walk(n: int = 800, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = np.zeros(n)
    for i in range(1, n):
        z[i] = 0.9 * z[i - 1] + 0.4 * rng.normal()
    return z


def test_auto_takes_log1p_for_skewed_counts() -> None:
    name, note = chosen(np.exp(3 + walk()))
    assert name == "log1p" and "skewness" in note


def test_auto_takes_log1p_where_moves_grow_with_the_level() -> None:
    rng = np.random.default_rng(1)
    level = np.where(np.arange(800) // 100 % 2, 80.0, 20.0)
    name, note = chosen(level * np.exp(0.1 * rng.normal(size=800)))
    assert name == "log1p" and "moves after high values" in note


@pytest.mark.parametrize(
    ("y", "why"),
    [
        (walk(), "negative values"),
        (300.0 + walk(), "not skewed"),
        (np.exp(walk()) / 1000, "not skewed"),  # log1p of thousandths is a straight line
        (np.r_[np.exp(3 + walk())[:-1], -1.0], "negative values"),
    ],
)
def test_auto_leaves_the_rest(y: np.ndarray, why: str) -> None:
    name, note = chosen(y)
    assert name == "none" and why in note


def test_auto_looks_at_training_rows_only() -> None:
    y = np.r_[50 + walk(560), np.exp(3 + 2 * walk(240, seed=1))]
    assert chosen(y)[0] == "none"


def panel_choice(*series: np.ndarray) -> str:
    parts = [pd.DataFrame({"shop": k, "y": y}) for k, y in enumerate(series)]
    frame = build_frame(pd.concat(parts), target="y", series="shop")
    return choose_transform("auto", frame, frame.order < 560)[0].name


def test_auto_does_not_take_the_levels_of_several_series_for_skewness() -> None:
    level = 10 + walk()
    assert panel_choice(level, 3 * level, 100 * level) == "none"
    assert panel_choice(level, level, 30 * level, np.full(800, 7.0)) == "none"


def test_auto_takes_log1p_for_several_skewed_series() -> None:
    assert panel_choice(np.exp(3 + walk()), np.exp(5 + walk(seed=1))) == "log1p"


def test_auto_does_not_count_what_was_filled_in() -> None:
    """Fills at a low value make an even spread of values look skewed."""
    y = np.random.default_rng(0).uniform(0, 200, size=800)
    y[::40] = 30.0
    y[np.arange(800) % 40 % 36 > 12] = np.nan
    y[np.arange(800) % 40 == 12] = 30.0
    frame = build_frame(pd.DataFrame({"y": y}), target="y", missing="fill")
    assert chosen(frame.target_values)[0] == "log1p"
    assert choose_transform("auto", frame, frame.order < 560)[0].name == "none"


def test_auto_does_not_count_moves_over_gaps() -> None:
    """Every stretch rises evenly, and after a gap the next one begins low again."""
    stretch = np.arange(1600) // 8 % 2 == 0
    times = pd.date_range("2024-01-01", periods=1600, freq="h")[stretch]
    y = 10 + 20 * (np.arange(800) % 8) + np.random.default_rng(1).normal(size=800)
    assert chosen(y)[0] == "log1p"
    frame = build_frame(pd.DataFrame({"y": y}, index=times), target="y", gaps="respect")
    assert choose_transform("auto", frame, frame.order < 560)[0].name == "none"
