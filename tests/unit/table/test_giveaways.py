"""Variables that give the target away, or repeat it, are told; honest ones are not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import MVLSTMWarning
from mvlstm.table.frame import build_frame

ROWS = 400
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(3, ROWS + 60))


def target() -> pd.Series:
    y = np.zeros(ROWS + 60)
    for t in range(1, len(y)):
        y[t] = 0.8 * y[t - 1] + NOISE[0, t]
    return pd.Series(y[60:] + 50.0)


def told(known: list[str] | None = None, **columns: object) -> tuple[str, str]:
    source = pd.DataFrame({"x": NOISE[1, 60:], **columns}).assign(y=target())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MVLSTMWarning)
        frame = build_frame(source.ffill().bfill(), target="y", known=known or [])
    return " ".join(str(one.message) for one in caught), " ".join(frame.notes)


@pytest.mark.parametrize("shift", [1, 24])
def test_a_later_target(shift: int) -> None:
    warned, _ = told(z=9.0 - 2.0 * target().shift(-shift))
    rows = "1 row" if shift == 1 else "24 rows"
    assert f"'z' tells the target 'y' {rows} later" in warned and "exclude=['z']" in warned


def test_known_inputs_that_add_up_to_the_target() -> None:
    part = np.abs(NOISE[2, 60:])
    warned, _ = told(["casual", "rest"], casual=part, rest=target() - part)
    assert "['casual', 'rest'], known ahead, give the target 'y' away" in warned
    warned, _ = told(["casual"], casual=part, rest=target() - part)
    assert not warned  # the rest is not known when a forecast is made


@pytest.mark.parametrize("give", [np.exp, np.cbrt, np.cumsum], ids=lambda one: one.__name__)
def test_a_known_input_that_bends_or_adds_up_the_target(give) -> None:
    warned, _ = told(["z"], z=give(target() - 50.0))
    assert "['z'], known ahead, gives the target 'y' away" in warned


@pytest.mark.parametrize(("shift", "words"), [(0, "over again"), (3, "of 3 rows before")])
def test_copies_are_noted(shift: int, words: str) -> None:
    warned, noted = told(z=3.0 * target().shift(shift))
    assert not warned and f"'z' is the target 'y' {words}" in noted


def test_honest_variables_are_not_told() -> None:
    hours = np.arange(ROWS) * 2 * np.pi / 24
    assert told(["good"], good=target() + 0.3 * NOISE[2, 60:]) == ("", "")
    assert told(wave=np.sin(hours), other=np.cos(hours)) == ("", "")
    assert told(near=target().shift(-1) + 0.5 * NOISE[2, 60:]) == ("", "")
    assert told(["trend"], trend=np.arange(ROWS) ** 1.5) == ("", "")
    assert told(["total"], total=(target() + 0.3 * NOISE[2, 60:]).cumsum()) == ("", "")
    assert told(["bent"], bent=np.exp(target() - 50.0 + 0.3 * NOISE[2, 60:])) == ("", "")


def test_a_clean_wave_is_no_secret() -> None:
    hours = np.arange(ROWS) * 2 * np.pi / 24
    source = pd.DataFrame({"x": np.sin(hours), "y": np.cos(hours)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_frame(source, target="y")


def test_values_whose_squares_are_too_small_for_a_number() -> None:
    y = target()
    y[2] = 1e200
    source = pd.DataFrame({"z": y.shift(-1).ffill(), "y": y})
    with pytest.warns(MVLSTMWarning, match="spoil the whole fit"):
        assert build_frame(source, target="y", na_values=[]).n_rows == ROWS
