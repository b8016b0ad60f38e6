"""A graph of a table: what it holds, how it is adjusted, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    x = np.random.default_rng(1).standard_normal((160, 3))
    x[1:, 2] += 1.2 * x[:-1, 0]
    times = pd.date_range("2024-01-01", periods=160, freq="h")
    return pd.DataFrame(x, columns=["rain", "wind", "level"], index=times)


@pytest.fixture(scope="module")
def found(table: pd.DataFrame) -> mv.Graph:
    return mv.graph(table, window=2, verbose=0)


def test_the_link_that_acts_is_found(found: mv.Graph) -> None:
    assert found.important[["from", "to", "lag"]].to_numpy().tolist() == [["rain", "level", 1]]
    assert len(found.links) == 6 and len(found.own) == 3
    assert not (found.links["from"] == found.links["to"]).any()
    strength = found.matrix()
    assert strength.loc["level", "rain"] == found.links["strength"][0] > 0.4
    assert np.isnan(strength.loc["rain", "rain"])


def test_targets_are_looked_at_alone(table: pd.DataFrame, found: mv.Graph) -> None:
    one = mv.graph(table, targets="level", window=2, verbose=0)
    assert one.targets == ("level",) and one.variables == ("rain", "wind", "level")
    assert set(one.links["to"]) == {"level"} and len(one.links) == 2
    assert one.links["strength"][0] == pytest.approx(found.links["strength"][0], abs=0.05)


def test_control_of_the_family_is_stricter(table: pd.DataFrame, found: mv.Graph) -> None:
    other = mv.graph(table, window=2, control="fdr", verbose=0)
    both = found.links.merge(other.links, on=["from", "to"])
    assert (both["p_x"] >= both["p_y"]).all() and (both["p_x"] > both["p_y"]).any()


def test_text_gaps_and_series_are_taken(table: pd.DataFrame) -> None:
    shown = table.assign(sky=np.where(table["wind"] > 0, "clear", "grey"))
    texts = mv.graph(shown.drop(columns="wind"), window=2, verbose=0)
    assert texts.targets == ("rain", "level") and "sky" in set(texts.links["from"])
    both = pd.concat([table.assign(where="a"), 100 * table.assign(where="b").drop(columns="where")])
    both["where"] = both["where"].fillna("b")
    panel = mv.graph(both, series="where", window=2, verbose=0)
    assert panel.important["from"].tolist() == ["rain"]
    holes = table.drop(table.index[90:95])
    assert mv.graph(holes, gaps="respect", window=2, verbose=0).important["to"].tolist() == [
        "level"
    ]


def test_a_dirty_table_is_taken_as_it_is(table: pd.DataFrame) -> None:
    dirty = table.mask(np.random.default_rng(2).random(table.shape) < 0.1, -200.0)
    dirty = pd.concat([dirty, dirty.iloc[[70]]]).sort_index()
    cleaned = {"na_values": [-200], "missing": "mask", "duplicates": "mean", "fill_limit": 2}
    links = mv.graph(dirty, window=2, verbose=0, **cleaned).important
    assert links[["from", "to", "lag"]].to_numpy().tolist() == [["rain", "level", 1]]


def test_it_turns_into_tables_and_json(found: mv.Graph) -> None:
    assert found.to_frame().equals(found.links)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["links"][0]["from"] == "rain" and plain["window"] == 2
    assert "1 of 6 links important" in repr(found) and "<table" in found._repr_html_()


@pytest.mark.parametrize("kind", ["network", "matrix"])
def test_it_is_drawn(found: mv.Graph, kind: str) -> None:
    figure = found.plot(kind)
    if kind == "matrix":
        assert np.nanmax(figure.data[0].z) == pytest.approx(found.links["strength"][0])
        assert list(zip(figure.data[1].x, figure.data[1].y, strict=True)) == [(0, 0)]
    else:
        arrows = [one for one in figure.layout.annotations if one.showarrow]
        assert len(arrows) == 1 and "rain to level" in figure.data[0].text[0]
    with pytest.raises(ParameterError, match="choose 'network' or 'matrix'"):
        found.plot("tree")


def test_names_are_untrusted(table: pd.DataFrame) -> None:
    named = table.rename(columns={"rain": "<b>%{x}</b>"})
    text = mv.graph(named, targets="level", window=2, verbose=0).plot().to_json()
    assert "<b>" not in text and "%{x}" not in text


def test_progress_says_how_long(table: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    mv.graph(table, targets="level", window=2, verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"targets": "snow"}, DataError, "snow"),
        ({"control": "none"}, ParameterError, "choose 'family' or 'fdr'"),
        ({"window": 1}, ParameterError, "window=1"),
        ({"window": "long"}, ParameterError, "window='long'"),
        ({"window": 150}, DataError, "too few for a graph"),
        ({"exclude": ["rain", "wind"]}, DataError, "a graph takes 2 to"),
        ({"effort": "most"}, ParameterError, "effort"),
    ],
)
def test_what_cannot_be_done_is_refused(table, changes, error, message) -> None:
    with pytest.raises(error, match=message):
        mv.graph(table, verbose=0, **changes)


def test_a_table_without_numbers_is_refused() -> None:
    with pytest.raises(DataError, match="no column of numbers"):
        mv.graph(pd.DataFrame({"a": ["x", "y"] * 50, "b": ["u", "v"] * 50}), verbose=0)
