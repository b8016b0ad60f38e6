"""What a method learns from: parts in time order, few of many held-out windows, a checksum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.model.fitting import begin
from mvlstm.problem.problem import Problem, known_places, of_known
from mvlstm.table.frame import build_frame

PARTS = ("train", "stop", "calibration", "new")


def table(rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=rows), "y": rng.normal(size=rows).cumsum()})


def problem(rows: pd.DataFrame | None = None, window: int = 4, **columns: Any) -> Problem:
    frame = build_frame(table() if rows is None else rows, target="y", **columns)
    return begin(mv.AR(window=window, verbose=0), frame, test=0.2, valid=0.2).problem


@pytest.fixture
def panel() -> Problem:
    parts = [table(80).assign(t=range(80), shop=name) for name in "abc"]
    return problem(pd.concat(parts), time="t", series="shop")


def test_windows_and_labels_are_those_of_the_parts_origins() -> None:
    found = problem()
    for part in PARTS:
        windows = found.at(part)
        np.testing.assert_array_equal(windows.values, found.windows(part))
        np.testing.assert_array_equal(windows.origins, found.origins[part])
        y = found.prepared.frame.target_values[found.origins[part] + 1]
        np.testing.assert_array_equal(found.labels(part)[:, 0], y)


def test_several_series_are_put_in_time_order(panel: Problem) -> None:
    order = panel.prepared.frame.order
    assert (np.diff(order[panel.origins["train"]]) < 0).any()
    found = panel.in_time_order("train")
    assert sorted(found) == sorted(panel.origins["train"])
    assert (np.diff(order[found]) >= 0).all()
    one = problem()
    assert one.in_time_order("train") is one.origins["train"]


def test_the_checksum_tells_problems_apart() -> None:
    whole, rows = problem(), table()
    assert problem().checksum() == whole.checksum()
    changed = rows.copy()
    changed.loc[7, "x"] += 1e-9
    shorter = {**whole.origins, "train": whole.origins["train"][1:]}
    others = [
        problem(changed),
        problem(rows.rename(columns={"x": "z"})),
        problem(window=5),
        replace(whole, horizon=2),
        replace(whole, origins=shorter),
        replace(whole, origins={**whole.origins, "stop": whole.origins["stop"][1:]}),
    ]
    assert len({one.checksum() for one in [whole, *others]}) == 1 + len(others)


def test_errors_of_known_labels_alone_count() -> None:
    labels = np.array([[1.0, np.nan], [2.0, 3.0]])
    errors = np.arange(12.0).reshape(3, 2, 2)
    found = of_known(errors, labels)
    np.testing.assert_array_equal(found[..., 0], errors[:, [0, 1, 1], [0, 0, 1]])
    whole = np.ones((2, 2))
    assert of_known(errors, whole) is errors
    assert known_places(whole) == slice(None)
    np.testing.assert_array_equal(known_places(labels), ~np.isnan(labels))
