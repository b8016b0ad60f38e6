"""Cells: rows in time order, windows, folds, and tables of a user's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mvlstm import datasets
from mvlstm.bench import cells
from mvlstm.bench.cells import build_cell, load_rows
from mvlstm.bench.spec import Job, file_digest
from mvlstm.errors import DataError
from mvlstm.problem.windows import origin_rows

JOB = Job(suite="s", part="p", dataset="synthetic", method="ar", base="ar", window=10)


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
