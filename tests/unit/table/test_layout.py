"""What a fitted model knows of its table, and how it finds that again in another one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import DataError, ModelFileError
from mvlstm.table.frame import build_frame, rebuild_frame
from mvlstm.table.layout import Layout

from .conftest import holed, table, with_gap


def test_layout_survives_json() -> None:
    frame = build_frame(table(), target="pm25", exclude="wind", missing="fill", gaps="respect")
    text = json.dumps(frame.layout.to_dict())
    assert Layout.from_dict(json.loads(text)) == frame.layout


@pytest.mark.parametrize(
    "damage",
    [
        {"missing": "maybe"},
        {"step": {"duration": "soon"}},
        {"step": {"duration": "P0DT0H0M0S"}},
        {"step": {"integer": -1}},
        {"step": 7},
        {"target": 3},
        {"variables": [1, 2]},
        {"variables": 5},
        {"time_kind": "moon"},
        {"time_zone": 1},
        {"day_first": "yes"},
        {"surprise": 1},
        {"fill_limit": "many"},
    ],
)
def test_a_damaged_layout_is_refused(damage: dict[str, object]) -> None:
    values = build_frame(table(), target="pm25").layout.to_dict()
    with pytest.raises(ModelFileError, match="damaged or of a newer version"):
        Layout.from_dict({**values, **damage})


def test_rebuilding_finds_columns_by_name_and_ignores_others() -> None:
    frame = build_frame(table(), target="pm25")
    other = table(extra="text")[["extra", "pm25", "temp", "wind"]]
    again = rebuild_frame(other, frame.layout)
    np.testing.assert_array_equal(again.values, frame.values)
    assert again.notes == ("Ignored columns that fit() did not see: ['extra'].",)


def test_rebuilding_names_missing_columns() -> None:
    layout = build_frame(table(), target="pm25").layout
    with pytest.raises(DataError) as caught:
        rebuild_frame(table()[["pm25", "wind"]], layout)
    assert str(caught.value).startswith(
        "predict() received ['pm25', 'wind'] but fit() saw ['wind', 'temp', 'pm25']; "
        "missing: ['temp']."
    )
    with pytest.raises(DataError, match=r"^evaluate\(\) received"):
        rebuild_frame(table()[["pm25", "wind"]], layout, caller="evaluate")


def test_rebuilding_allows_short_and_constant_tables() -> None:
    layout = build_frame(table(), target="pm25").layout
    one = rebuild_frame(table(wind=1.0).iloc[:1], layout)
    assert one.n_rows == 1 and one.step == pd.Timedelta(hours=1)
    assert rebuild_frame(table(pm25=2.0).iloc[:5], layout).n_rows == 5
    with pytest.raises(DataError, match="empty table"):
        rebuild_frame(table().iloc[:0], layout)


@pytest.mark.parametrize("gaps", ["error", "close", "respect"])
def test_rebuilding_refuses_another_sampling(gaps: str) -> None:
    layout = build_frame(table(), target="pm25", gaps=gaps).layout  # type: ignore[arg-type]
    for freq, words in (("10min", "10 minutes"), ("D", "1 day")):
        other = table().set_axis(pd.date_range("2014", periods=50, freq=freq))
        with pytest.raises(DataError, match=f"rows {words} apart, but fit.. saw rows 1 hour apart"):
            rebuild_frame(other, layout)


def test_rebuilding_keeps_to_what_gaps_said() -> None:
    for gaps, segments in (("close", 1), ("respect", 2)):
        layout = build_frame(table(), target="pm25", gaps=gaps).layout  # type: ignore[arg-type]
        assert len(set(rebuild_frame(with_gap(), layout).segments)) == segments
    layout = build_frame(table(), target="pm25").layout
    with pytest.raises(
        DataError, match=r"not evenly spaced.*supply rows 1 hour apart, or fit again"
    ):
        rebuild_frame(with_gap(), layout)


def test_rebuilding_wants_the_same_kind_of_times() -> None:
    layout = build_frame(table(), target="pm25").layout
    with pytest.raises(DataError, match=r"received integers as times but fit\(\) saw dates"):
        rebuild_frame(table().reset_index(drop=True), layout)
    with pytest.raises(DataError, match=r"times in zone UTC but fit\(\) saw times without"):
        rebuild_frame(table().tz_localize("UTC"), layout)


def test_rebuilding_cleans_as_fit_did() -> None:
    layout = build_frame(table(), target="pm25", missing="drop", gaps="close").layout
    assert rebuild_frame(holed(), layout).n_rows == 47
    with pytest.raises(DataError, match=r"no value at all\. Correct the table"):
        rebuild_frame(table(wind=np.nan), layout)
    layout = build_frame(table(), target="pm25").layout
    with pytest.raises(DataError, match=r"2 missing values.*fitted with missing='error'"):
        rebuild_frame(holed(), layout)
    with pytest.raises(DataError, match="fitted on numbers there: turn it into numbers"):
        rebuild_frame(table(wind="NW"), layout)
    layout = build_frame(table(), target="pm25", missing="fill", fill_limit=1).layout
    with pytest.raises(DataError, match="Fit again with missing='mask'"):
        rebuild_frame(holed(), layout)
    with pytest.raises(DataError, match=r"no value at all\. Correct the table"):
        rebuild_frame(table(wind=np.nan), layout)
