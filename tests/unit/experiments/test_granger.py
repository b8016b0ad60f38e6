"""Granger tests find what acts, given the others and in a pair, and leave out what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from experiments.granger import granger_record
from experiments.granger_tests import difference, granger_tests
from mvlstm.bench.spec import Job
from mvlstm.errors import DataError

pytest.importorskip("statsmodels")


def series(rows: int = 1500) -> np.ndarray:
    """Columns: a driver, its lagged copy without effect of its own, noise, and the target."""
    rng = np.random.default_rng(0)
    driver = rng.normal(size=rows)
    echo = np.r_[0.0, driver[:-1]] + 0.5 * rng.normal(size=rows)
    target = np.zeros(rows)
    for t in range(2, rows):
        target[t] = 0.3 * target[t - 1] + 0.8 * driver[t - 2] + rng.normal()
    values = np.stack([driver, echo, rng.normal(size=rows), target], axis=1)
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def test_the_conditional_test_sees_through_an_echo() -> None:
    found = granger_tests(series())["columns"]
    assert found["conditional"] == [True, False, False]
    assert found["pairwise"] == [True, True, False]  # in a pair the echo helps
    assert found["gain"][0] > 0.1 and max(found["gain"][1:]) < 0.02


def test_the_pairwise_test_is_that_of_statsmodels() -> None:
    from statsmodels.tsa.stattools import grangercausalitytests

    values = series(400)
    found = granger_tests(values)
    lags = found["lags"]
    for k in range(3):
        pair = np.column_stack([values[:, -1], values[:, k]])
        expected = grangercausalitytests(pair, maxlag=[lags])[lags][0]["ssr_ftest"][1]
        assert found["columns"]["pairwise_p"][k] == pytest.approx(expected, abs=1e-12)


def test_no_row_is_used_that_a_users_table_sets_aside(tmp_path: Path) -> None:
    frame = mv.datasets.load("synthetic", n=500).frame
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = {"file": str(tmp_path / "t.csv"), "target": "y", "test": 0.5, "valid": 0.1}
    record = granger_record(
        Job(suite="s", part="p", dataset="t", method="granger", kind="granger", data=data)
    )
    assert record["rows"] <= 200


def test_categories_and_the_calendar_are_left_out(tmp_path: Path) -> None:
    frame = mv.datasets.load("synthetic", n=500).frame[["x2", "x3", "y"]]
    plain = frame.assign(when=pd.date_range("2024-01-01", periods=500, freq="h"))
    plain.assign(sky=np.tile(["blue", "grey"], 250)).to_csv(tmp_path / "t.csv", index=False)
    plain.to_csv(tmp_path / "plain.csv", index=False)
    found = []
    for name, more in (("t", {"calendar": ["hour"]}), ("plain", {})):
        data = {"file": str(tmp_path / f"{name}.csv"), "target": "y", "time": "when", **more}
        job = Job(suite="s", part="p", dataset=name, method="granger", kind="granger", data=data)
        found.append(granger_record(job)["granger"])
    assert [row["variable"] for row in found[0]] == ["x2", "x3"]
    assert found[0] == found[1]


def granger_of(table: pd.DataFrame, folder: Path, **options: object) -> dict[str, Any]:
    table.to_csv(folder / "t.csv", index=False)
    data = {"file": str(folder / "t.csv"), "target": "y", "time": "t", **options}
    return granger_record(
        Job(suite="s", part="p", dataset="t", method="granger", kind="granger", data=data)
    )


def torn(lengths: list[int]) -> pd.DataFrame:
    """A driver and a walk in stretches with gaps between, over each of which both jump."""
    rows, stretch = sum(lengths), np.repeat(np.arange(len(lengths)), lengths)
    table = pd.DataFrame(series(rows)[:, [0, 2, 3]], columns=["driver", "noise", "y"])
    table["y"] = table["y"].cumsum() + 1e3 * stretch
    return table.assign(driver=table["driver"] + 1e3 * stretch, t=np.arange(rows) + 50 * stretch)


def test_no_difference_or_lag_reaches_across_a_gap(tmp_path: Path) -> None:
    table = torn([300, 700, 500])
    found = granger_of(table, tmp_path, gaps="respect", test=0.1, valid=0.1)
    alone = granger_of(table.iloc[300:1000], tmp_path, test=1, valid=0)
    assert found["differenced"] == ["y"] and found["rows"] == 699
    assert [row["conditional"] for row in found["granger"]] == [True, False]
    assert found["granger"][0]["gain"] == pytest.approx(alone["granger"][0]["gain"], abs=0.01)
    assert "rest on 700 of 1,200 training rows, the longest stretch without a gap" in str(
        found["notes"]
    )


def test_no_target_that_was_filled_in_is_tested(tmp_path: Path) -> None:
    table = torn([1000])
    table.loc[[200, 210], "y"] = np.nan
    found = granger_of(table, tmp_path, missing="fill", test=0.2, valid=0.1)
    assert found["rows"] == 700 - 211  # what follows the last one
    assert "rest on 489 of 700 training rows" in str(found["notes"])


def test_several_series_are_not_joined(tmp_path: Path) -> None:
    frames = [torn([rows]).assign(who=f"s{rows}") for rows in (400, 600)]
    found = granger_of(pd.concat(frames), tmp_path, series="who", exclude=["noise"], test=0.2)
    assert found["rows"] == 419  # differences of the training rows of the longer one


def test_stretches_too_short_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has 60 training rows; .* need 93. Use gaps='close'"):
        granger_of(torn([60] * 10), tmp_path, gaps="respect")


def test_differences_are_aligned() -> None:
    noise, steps = np.random.default_rng(0).normal(size=(2, 600))
    walk, twice = np.cumsum(steps), np.cumsum(np.cumsum(steps))
    changed = difference(np.column_stack([noise, walk, twice]), (0, 1, 2))
    assert changed.shape == (598, 3)
    np.testing.assert_array_equal(changed[:, 0], noise[2:])
    np.testing.assert_array_equal(changed[:, 1], np.diff(walk)[1:])
    np.testing.assert_array_equal(changed[:, 2], np.diff(twice, n=2))
