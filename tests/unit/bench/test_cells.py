"""Cells: the published window counts, the label filter, scaling by step, folds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mvlstm import datasets
from mvlstm.bench import cells
from mvlstm.bench.cells import StepScaler, build_cell, load_rows, step_preparation, window_rows
from mvlstm.bench.protocols import PROTOCOLS, Ranges
from mvlstm.bench.spec import Job, file_digest
from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.windows import origin_rows

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
JOB = Job(suite="s", part="p", dataset="synthetic", method="ar", base="ar", window=10)
COUNTS = {"pm25": (12452, 3379), "energy": (8200, 2127), "plant": (3157, 676)}


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> None:
    if BESIDE.is_dir():
        monkeypatch.setenv("MVLSTM_DATA", str(BESIDE))
    if not all(datasets.is_present(name) for name in COUNTS):
        pytest.skip("the real data sets are not in the data folder (set MVLSTM_DATA)")


@pytest.mark.parametrize("name", COUNTS)
def test_the_authors_windows_come_out(name: str, real_data: None) -> None:
    cell = build_cell(replace(JOB, dataset=name, protocol="authors"))
    length = JOB.window + 1
    windows = cell.frame.n_rows // length
    train, test = COUNTS[name]
    assert (windows - cell.test // length, cell.test // length) == (train, test)
    origins = origin_rows(cell.frame, JOB.window)
    assert len(origins) == windows  # no window crosses into the next
    low, high = PROTOCOLS["authors"].ranges[name].labels or (0, 0)
    labels = cell.series[cell.rows[origins + 1]]
    assert labels.min() >= low and labels.max() <= high
    assert np.array_equal(labels, cell.frame.target_values[origins + 1])


def test_pm25_has_41727_windows_after_closing_the_gaps(real_data: None) -> None:
    cell = build_cell(replace(JOB, dataset="pm25", window=30))
    assert len(origin_rows(cell.frame, 30)) == 41_727


def test_other_data_than_the_published_are_refused(
    real_data: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    authors = PROTOCOLS["authors"]
    ranges = {"energy": replace(authors.ranges["energy"], windows={10: (8200, 2126)})}
    monkeypatch.setitem(PROTOCOLS, "authors", replace(authors, ranges=ranges))
    with pytest.raises(DataError, match=r"2,127 test windows.*2,126 were published"):
        build_cell(replace(JOB, dataset="energy", protocol="authors"))


def test_methods_of_the_whole_past_get_all_rows_and_are_scored_on_the_same(
    real_data: None,
) -> None:
    job = replace(JOB, dataset="energy", protocol="authors")
    apart, whole = build_cell(job), build_cell(job, local=False)
    assert whole.scored is not None and whole.frame.n_rows == 13_400
    rows = apart.rows[origin_rows(apart.frame, 10) + 1]
    test = np.arange(11_000, 13_400)
    assert np.array_equal(rows[rows >= 11_000], test[whole.scored[test]])


def test_label_filter_and_ranges_on_a_small_series() -> None:
    series = np.arange(30.0)
    ranges = Ranges(rows=(20, 28), labels=(3.0, 26.0))
    chosen = window_rows(series, ranges, 2, 0.1)
    assert list(chosen["train"]) == list(range(3, 18))
    assert list(chosen["valid"]) == [18, 19]
    assert list(chosen["test"]) == list(range(22, 27))  # inputs lie in the test rows as well
    with pytest.raises(DataError, match="needs 28 rows"):
        window_rows(series[:25], ranges, 2, 0.1)


def test_scaling_by_step_is_standard_at_every_step() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 4, 2)) * [[1.0], [2.0], [3.0], [4.0]] + [
        [5.0],
        [6.0],
        [7.0],
        [8.0],
    ]
    preparation = step_preparation(values.reshape(-1, 2), 4)
    assert isinstance(preparation.scaler, StepScaler)
    scaled = preparation.scaler.transform(values.reshape(-1, 2)).reshape(50, 4, 2)
    assert np.allclose(scaled.mean(axis=0), 0) and np.allclose(scaled.std(axis=0), 1)
    last = values[:, 2, 1]  # the window's last row stands for the target as an input
    assert preparation.scaler.target_center == pytest.approx(last.mean())
    assert preparation.scaler.target_scale == pytest.approx(last.std())


def test_synthetic_sequences_are_windows() -> None:
    cell = build_cell(replace(JOB, data={"sequences": 200}))
    assert len(origin_rows(cell.frame, 10)) == 200
    again = build_cell(replace(JOB, data={"sequences": 200}, window=20))
    assert len(origin_rows(again.frame, 20)) == 200


def test_folds_are_consecutive_and_end_with_the_rows() -> None:
    job = replace(JOB, data={"n": 500}, folds=2)
    first, second = (build_cell(replace(job, fold=k)) for k in (1, 2))
    assert first.frame.n_rows == 450 and second.frame.n_rows == 500
    assert first.test == second.test == 50


def test_row_ranges_take_no_folds() -> None:
    with pytest.raises(ParameterError, match="fixed row ranges"):
        build_cell(replace(JOB, dataset="energy", protocol="authors", folds=2))


def test_a_file_that_changed_since_the_job_was_made_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    table = datasets.load("synthetic", n=60).frame
    table.to_csv(file, index=False)
    data = {"file": str(file), "target": "y", "sha256": file_digest(file)}
    job = Job("own", "main", "own", "ar", data=data, base="ar", window=3)
    assert load_rows(job).frame.n_rows == 60
    (1000 * table).to_csv(file, index=False)
    cells._load_rows.cache_clear()
    with pytest.raises(DataError, match=r"own\.csv' changed after this experiment was planned"):
        load_rows(job)


@pytest.mark.parametrize("series", [False, True])
def test_rows_are_found_by_time_where_the_first_target_was_filled_in(
    tmp_path: Path, series: bool
) -> None:
    """The first row is dropped, and with it what filled the second one's target."""
    table = datasets.load("synthetic", n=60).frame[["x1", "y"]].assign(time=range(60))
    table.loc[0, "x1"], table.loc[1, "y"] = np.nan, np.nan
    data = {"file": str(tmp_path / "own.csv"), "target": "y", "time": "time", "missing": "fill"}
    if series:
        table = pd.concat([table.assign(shop=name) for name in "ab"])
        data["series"] = "shop"
    table.to_csv(data["file"], index=False)
    cell = build_cell(Job("own", "main", "own", "ar", data=data, base="ar", window=3))
    assert len(cell.rows) == cell.frame.n_rows
    assert (cell.times[cell.rows] == cell.frame.times).all()
    np.testing.assert_array_equal(cell.series[cell.rows], cell.frame.target_values)
