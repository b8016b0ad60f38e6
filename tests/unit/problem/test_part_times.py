"""When the parts of a fit's rows end, and what later rows are to the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import ModelFileError
from mvlstm.problem.part_times import PartTimes
from mvlstm.table.frame import build_frame
from mvlstm.table.parts import chronological

CLOCKS = [
    pd.RangeIndex(100),
    pd.date_range("2024-03-29", periods=100, freq="h"),
    pd.date_range("2024-03-29", periods=100, freq="h", tz="Europe/Vienna"),
]


def of(clock: pd.Index) -> PartTimes:
    return PartTimes.from_rows(clock, chronological(100, test=0.2, valid=0.2))


@pytest.mark.parametrize("clock", CLOCKS, ids=["numbers", "naive", "zone"])
def test_rows_know_their_part(clock: pd.Index) -> None:
    parts = of(clock)
    assert (parts.start, parts.train, parts.stop, parts.calibration) == tuple(
        clock[row] for row in (0, 59, 69, 79)
    )
    times = np.asarray(clock)
    names = parts.names(times)
    assert names.tolist() == ["train"] * 60 + ["validation"] * 20 + ["new"] * 20
    assert np.flatnonzero(parts.calibration_rows(times)).tolist() == list(range(70, 80))
    assert np.flatnonzero(parts.after(times)).tolist() == list(range(80, 100))
    assert np.flatnonzero(parts.after(times, parts.train)).tolist() == list(range(60, 100))
    assert np.flatnonzero(parts.since(times, clock[95])).tolist() == list(range(95, 100))
    assert not parts.before(times).any()


@pytest.mark.parametrize("clock", CLOCKS, ids=["numbers", "naive", "zone"])
def test_rows_before_the_first_one_seen_are_new(clock: pd.Index) -> None:
    parts = PartTimes.from_rows(clock[10:], chronological(90, test=0.2, valid=0.2))
    times = np.asarray(clock)
    assert (parts.names(times)[:10] == "new").all() and parts.before(times).sum() == 10


def test_shapes_are_kept() -> None:
    parts, times = of(CLOCKS[0]), np.arange(100).reshape(20, 5)
    for found in (
        parts.names(times),
        parts.calibration_rows(times),
        parts.after(times),
        parts.before(times),
        parts.since(times, 3),
    ):
        assert found.shape == times.shape


@pytest.mark.parametrize("clock", CLOCKS, ids=["numbers", "naive", "zone"])
def test_a_file_holds_them(clock: pd.Index) -> None:
    parts = of(clock)
    again = PartTimes.from_dict(parts.to_dict())
    assert again == parts
    again.check(build_frame(pd.DataFrame({"y": np.arange(100.0)}, index=clock), target="y").layout)


@pytest.mark.parametrize(
    "change",
    [
        {"start": True},
        {"train": 3.5},
        {"stop": "2024-01-01"},
        {"calibration": {"time": "no time", "zone": None}},
        {"calibration": {"time": "2024-01-01"}},
    ],
)
def test_what_is_no_time_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match="times of its parts are damaged"):
        PartTimes.from_dict(of(CLOCKS[0]).to_dict() | change)


def test_times_of_another_kind_or_out_of_order_are_refused() -> None:
    layouts = [
        build_frame(pd.DataFrame({"y": np.arange(100.0)}, index=clock), target="y").layout
        for clock in CLOCKS
    ]
    for i, clock in enumerate(CLOCKS):
        for k, layout in enumerate(layouts):
            if i != k:
                with pytest.raises(ModelFileError, match="do not fit its columns"):
                    of(clock).check(layout)
    with pytest.raises(ModelFileError, match="do not fit its columns"):
        PartTimes(0, 70, 60, 80).check(layouts[0])
