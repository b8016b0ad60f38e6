"""The look: colours that can be told apart, names shown as they are."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest

from mvlstm.errors import MissingExtraError, ParameterError
from mvlstm.plot import THEMES, get_theme, label, styles
from mvlstm.plot.theme import graph_objects

# How the two common kinds of colour blindness see linear RGB (Machado et al. 2009, severity 1).
SIGHT = {
    "normal": np.eye(3),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def _linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _contrast(a: str, b: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    dark, light = sorted(float(_linear(c) @ weights) for c in (a, b))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_variables_can_be_told_apart(name, sight):
    theme = get_theme(name)
    colours = [*theme.variables, theme.target, theme.forecast]
    for a, b in combinations(colours, 2):
        seen = [_lab(SIGHT[sight] @ _linear(c)) for c in (a, b)]
        assert np.linalg.norm(seen[0] - seen[1]) > 10, (a, b)


@pytest.mark.parametrize("name", THEMES)
def test_contrast_with_the_background(name):
    theme = get_theme(name)
    for text in (theme.ink, theme.muted, theme.alarm):
        assert _contrast(text, theme.paper) >= 4.5
    for drawn in (*theme.variables, theme.target, theme.forecast):
        assert _contrast(drawn, theme.paper) >= 2.5, drawn


def test_themes_map_colour_to_colour():
    light, dark = (get_theme(name).colours() for name in ("light", "dark"))
    assert len(light) == len(dark)
    assert len(set(light)) == len(light), "a colour must not stand for two things"


def test_a_variable_keeps_its_colour_whatever_its_rank():
    theme = get_theme("light")
    names = [f"v{i}" for i in range(20)]
    found = styles([*names, "y"], "y", theme)
    assert found["y"].colour == theme.target
    assert [found[n].colour for n in names[:7]] == list(theme.variables)
    assert len({(s.colour, s.hatching) for s in found.values()}) == len(found)


@pytest.mark.parametrize("name", ["<b>x</b>", "a & b", "%{y}", "<a href='javascript:1'>x</a>"])
def test_labels_hold_no_markup(name):
    shown = label(name)
    assert "<" not in shown and ">" not in shown and "%{" not in shown


def test_unknown_theme():
    with pytest.raises(ParameterError, match="choose 'light' or 'dark'"):
        get_theme("blue")


def test_without_plotly_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"mvlstm\[report\]"):
        graph_objects()
