"""The authors' protocol: the published window counts, the label filter, scaling by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.authors import RANGES, Ranges, StepScaler, step_preparation, window_rows
from mvlstm import datasets
from mvlstm.bench.cells import build_cell
from mvlstm.bench.spec import Job
from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.windows import origin_rows

PROJECT = Path(__file__).resolve().parents[3]
BESIDE = PROJECT.parent / "shared" / "data"
STUDY = str(PROJECT / "experiments" / "study.py")
JOB = Job("s", "p", "energy", "ar", base="ar", window=10, protocol="authors", study=STUDY)
COUNTS = {"pm25": (12452, 3379), "energy": (8200, 2127), "plant": (3157, 676)}


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> None:
    if BESIDE.is_dir():
        monkeypatch.setenv("MVLSTM_DATA", str(BESIDE))
    if not all(datasets.is_present(name) for name in COUNTS):
        pytest.skip("the real data sets are not in the data folder (set MVLSTM_DATA)")


@pytest.mark.parametrize("name", COUNTS)
def test_the_authors_windows_come_out(name: str, real_data: None) -> None:
    cell = build_cell(replace(JOB, dataset=name))
    length = JOB.window + 1
    windows = cell.frame.n_rows // length
    train, test = COUNTS[name]
    assert (windows - cell.test // length, cell.test // length) == (train, test)
    origins = origin_rows(cell.frame, JOB.window)
    assert len(origins) == windows  # no window crosses into the next
    low, high = RANGES[name].labels or (0, 0)
    labels = cell.series[cell.rows[origins + 1]]
    assert labels.min() >= low and labels.max() <= high
    assert np.array_equal(labels, cell.frame.target_values[origins + 1])


def test_pm25_has_41727_windows_after_closing_the_gaps(real_data: None) -> None:
    cell = build_cell(replace(JOB, dataset="pm25", protocol="chronological", window=30))
    assert len(origin_rows(cell.frame, 30)) == 41_727


def test_other_data_than_the_published_are_refused(
    real_data: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RANGES, "energy", replace(RANGES["energy"], windows={10: (8200, 2126)}))
    with pytest.raises(DataError, match=r"2,127 test windows.*2,126 were published"):
        build_cell(replace(JOB, dataset="energy"))


def test_methods_of_the_whole_past_get_all_rows_and_are_scored_on_the_same(
    real_data: None,
) -> None:
    job = replace(JOB, dataset="energy")
    apart, whole = build_cell(job), build_cell(job, local=False)
    assert whole.scored is not None and whole.frame.n_rows == 13_400
    rows = apart.rows[origin_rows(apart.frame, 10) + 1]
    test = np.arange(11_000, 13_400)
    assert np.array_equal(rows[rows >= 11_000], test[whole.scored[test]])


def test_label_filter_and_ranges_on_a_small_series() -> None:
    series = np.arange(30.0)
    ranges = Ranges(rows=(20, 28), labels=(3.0, 26.0))
    chosen = window_rows(series, ranges, 2)
    assert list(chosen["train"]) == list(range(3, 18))
    assert list(chosen["valid"]) == [18, 19]
    assert list(chosen["test"]) == list(range(22, 27))  # inputs lie in the test rows as well
    with pytest.raises(DataError, match="needs 28 rows"):
        window_rows(series[:25], ranges, 2)


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
    assert preparation.scaler.center[-1] == pytest.approx(last.mean())
    assert preparation.scaler.scale[-1] == pytest.approx(last.std())


def test_row_ranges_take_no_folds() -> None:
    with pytest.raises(ParameterError, match="fixed row ranges"):
        build_cell(replace(JOB, dataset="energy", folds=2))
