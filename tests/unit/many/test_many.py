"""Many series on disk: chosen, forecast in blocks, faults named, runs that finish the rest."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError, StorageError
from mvlstm.many import blocks
from mvlstm.many.dataset import Dataset, chosen
from mvlstm.many.explaining import over_all
from mvlstm.many.memory import Budget

ROWS = 60


def make_series(name: str, k: int, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(k)
    x = rng.normal(size=rows)
    y = 10.0 * k + (k + 1) * (np.r_[0.0, x[:-1]] + 0.3 * rng.normal(size=rows))
    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"id": name, "t": times, "x": x, "y": y})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    place.mkdir()
    for part in range(3):
        some = [make_series(f"s{part}{k}", 3 * part + k) for k in range(3)]
        pd.concat(some).to_parquet(place / f"part{part}.parquet", index=False)
    return place


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SERIES", 2)


def fit(path: Path, **more: Any) -> mv.AR:
    told = {"series": "id", "time": "t", "test": 0.3, **more}
    return mv.many.fit(mv.AR(window=3, verbose=0), path, "y", **told)


def test_a_fit_of_all_is_the_fit_of_their_table(folder: Path) -> None:
    whole = pd.concat([pd.read_parquet(one) for one in sorted(folder.iterdir())])
    expected = mv.AR(window=3, verbose=0).fit(whole, "y", series="id", time="t", test=0.3)
    found = fit(folder)
    pd.testing.assert_frame_equal(
        found.predict(whole).to_frame(), expected.predict(whole).to_frame()
    )
    assert not any("Learned from" in note for note in found.notes_)


def test_a_sample_is_of_whole_series_by_their_names_and_says_so(folder: Path) -> None:
    found = fit(folder, rows=4 * ROWS + 10)
    assert "Learned from 240 rows of 4 series, of 540 rows of 9 series" in found.notes_[-1]
    series = found.fitted_.preparation.series
    assert series is not None
    assert fit(folder, rows=4 * ROWS + 10).fitted_.preparation.series.names == series.names
    indices = [Dataset.open(folder, "id").index(part) for part in range(3)]
    for most in (ROWS, 5 * ROWS, 100 * ROWS):
        spans, count, rows = chosen(indices, most, 0)
        assert rows == sum(one.rows for one in spans) == count * ROWS <= most
    with pytest.raises(DataError, match=r"Not one of the 9 series has room in 10 rows.*rows="):
        fit(folder, rows=10)


def test_every_series_is_forecast_and_scored_by_its_own_scale(folder: Path, tmp_path: Path) -> None:
    model = fit(folder, rows=4 * ROWS)  # of which five are not known
    found = mv.many.forecast(model, folder, tmp_path / "out", verbose=0, quantiles=[0.25])
    assert (found.blocks, found.done, found.series, len(found.failures)) == (6, 6, 9, 0)
    rows = found.read()
    assert rows["series"].tolist() == [f"s{p}{k}" for p in range(3) for k in range(3)]
    assert {"mean", "q25", "q05", "q95", "time"} <= set(rows.columns)
    assert (rows["q05"] < rows["mean"]).all() and (rows["mean"] < rows["q95"]).all()
    scores = found.read("scores").set_index("series")
    assert len(scores) == 9 and (scores["skill"] > 0.3).all()
    assert found.scores is not None and found.scores["n"] == scores["n"].sum()
    assert found.scores["rmse"] == pytest.approx(scores["rmse"].mean())
    again = mv.many.forecast(model, folder, tmp_path / "out", verbose=0, quantiles=[0.25])
    assert (again.done, again.series) == (0, 9)


def test_a_folder_of_each_series_and_one_file_say_the_same(folder: Path, tmp_path: Path) -> None:
    whole = pd.concat([pd.read_parquet(one) for one in sorted(folder.iterdir())])
    whole.to_parquet(tmp_path / "all.parquet", index=False, row_group_size=50)
    whole.to_parquet(tmp_path / "parts", index=False, partition_cols=["id"])
    model = fit(folder)
    one, many = (
        mv.many.forecast(model, tmp_path / name, tmp_path / f"out-{name}", verbose=0)
        for name in ("all.parquet", "parts")
    )
    pd.testing.assert_frame_equal(one.read(), many.read())
    pd.testing.assert_frame_equal(one.read("scores"), many.read("scores"))
    assert fit(tmp_path / "parts").fitted_.n_train == model.fitted_.n_train


def test_what_fails_is_recorded_and_the_next_run_finishes_the_rest(
    folder: Path, tmp_path: Path
) -> None:
    model = fit(folder)
    bad = folder / "part1.parquet"
    good = bad.read_bytes()
    bad.write_bytes(good[: len(good) // 2])
    pd.read_parquet(folder / "part2.parquet").drop(columns="x").to_parquet(folder / "part3.parquet")
    broken = [make_series("short", 1, 2), make_series("gap", 2).drop(index=30), make_series("z", 3)]
    pd.concat(broken).to_parquet(folder / "part4.parquet", index=False)
    found = mv.many.forecast(model, folder, tmp_path / "out", verbose=0)
    reasons = {one.series or one.part: one.reason for one in found.failures.itertuples()}
    assert set(reasons) == {"part1.parquet", "part3.parquet", "short", "gap"}
    assert "cannot be read as Parquet" in reasons["part1.parquet"]
    assert "has no column 'x'" in reasons["part3.parquet"]
    assert "has 2 rows; a forecast needs 3" in reasons["short"]
    whole = {*(f"s{p}{k}" for p in (0, 2) for k in range(3)), "z"}
    assert set(found.read()["series"]) == whole and found.series == len(whole)
    bad.write_bytes(good)
    (folder / "part3.parquet").unlink()
    again = mv.many.forecast(model, folder, tmp_path / "out", verbose=0)
    assert set(again.failures["series"]) == {"short", "gap"}
    assert again.done == 2  # those of the part that was damaged
    assert len(again.read()) == 10
    assert mv.many.forecast(model, folder, tmp_path / "out", verbose=0).done == 0
    forced = mv.many.forecast(model, folder, tmp_path / "out", verbose=0, retry=True)
    assert (forced.done, len(forced.failures)) == (1, 2)  # the block that the two are in
    better = [make_series("short", 1), make_series("gap", 2).drop(index=30), make_series("z", 3)]
    pd.concat(better).to_parquet(folder / "part4.parquet", index=False)
    last = mv.many.forecast(model, folder, tmp_path / "out", verbose=0)
    assert (last.done, last.failures["series"].tolist()) == (1, ["gap"])
    assert "short" in set(last.read()["series"])


def test_a_full_disk_leaves_what_was_written_and_the_next_run_does_the_rest(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, plain, left = fit(folder), os.fsync, [9]

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match=r"forecasts.*No space left on device"):
            mv.many.forecast(model, folder, tmp_path / "out", verbose=0, scores=False)
    written = list((tmp_path / "out" / "forecasts").glob("*.parquet"))
    assert 0 < len(written) < 6
    assert sum(len(pd.read_parquet(one)) for one in written)
    found = mv.many.forecast(model, folder, tmp_path / "out", verbose=0, scores=False)
    assert found.done == 6 - len(written)
    assert len(found.read()) == 9


def test_faults_of_a_dataset_stop_a_fit_by_name(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no dataset"):
        fit(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no Parquet file.*convert"):
        fit(tmp_path / "empty")
    mixed = pd.concat([make_series("a", 1), make_series("b", 2), make_series("a", 3)])
    mixed.to_parquet(folder / "part9.parquet", index=False)
    with pytest.raises(DataError, match=r"series 'a' are not together in part 'part9.parquet'"):
        fit(folder)
    mixed.drop(columns="x").to_parquet(folder / "part9.parquet", index=False)
    with pytest.raises(DataError, match=r"'part9.parquet' has no column 'x'"):
        fit(folder)


def test_a_folder_of_another_run_and_models_of_one_series_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    model = fit(folder)
    mv.many.forecast(model, folder, tmp_path / "out", verbose=0, scores=False)
    with pytest.raises(ParameterError, match="holds the forecasts of another model"):
        mv.many.forecast(model, folder, tmp_path / "out", verbose=0)
    alone = mv.AR(window=3, verbose=0).fit(make_series("a", 1), "y", time="t", exclude="id")
    with pytest.raises(ParameterError, match=r"The model is of one series.*series="):
        mv.many.forecast(alone, folder, tmp_path / "other", verbose=0)


def test_a_budget_bounds_the_rows_of_a_fit() -> None:
    small, large = Budget.of("1GB"), Budget.of("4GB")
    assert 0 < small.fit_rows(5) < large.fit_rows(5) and large.fit_rows(50) < large.fit_rows(5)
    assert large.fit_rows(5) > 20_000_000  # 10,000 series of 2,000 rows
    more = (large.fit_rows(5, horizon=24), large.fit_rows(5, copied=100), large.fit_rows(10))
    assert max(more) < large.fit_rows(5) / 1.5
    with pytest.raises(ParameterError, match=r"less than the .* GB that the libraries take"):
        Budget.of("100MB")


def test_a_row_group_too_large_for_the_budget_is_named(folder: Path) -> None:
    dataset = Dataset.open(folder, "id")
    dataset.check(0, ["x", "y"], 1e6)
    with pytest.raises(DataError, match=r"'part0.parquet' has 180 rows in one row group.*memory="):
        dataset.check(0, ["x", "y"], 1e3)


def test_a_csv_file_becomes_a_dataset(folder: Path, tmp_path: Path) -> None:
    whole = pd.concat([pd.read_parquet(one) for one in sorted(folder.iterdir())])
    whole.to_csv(tmp_path / "all.csv", index=False)
    assert mv.many.convert(tmp_path / "all.csv", tmp_path / "all.parquet", series="id") == 9 * ROWS
    assert fit(tmp_path / "all.parquet").fitted_.n_train == fit(folder).fitted_.n_train
    with pytest.raises(DataError, match=r"has no column 'name'"):
        mv.many.convert(tmp_path / "all.csv", tmp_path / "b.parquet", series="name")
    whole.sample(frac=1.0, random_state=0).to_csv(tmp_path / "mixed.csv", index=False)
    with pytest.raises(DataError, match=r"not together in part 'mixed\.csv'"):
        mv.many.convert(tmp_path / "mixed.csv", tmp_path / "b.parquet", series="id")
    assert not (tmp_path / "b.parquet").exists()


def test_a_csv_file_may_turn_out_to_hold_fractions(tmp_path: Path) -> None:
    rows = 200_000  # more than the piece by which kinds are told
    table = pd.DataFrame({"id": np.arange(rows) // 100, "y": "1", "late": ""})
    table.loc[rows - 1, ["y", "late"]] = "1.5", "2.5"
    table.to_csv(tmp_path / "all.csv", index=False)
    assert mv.many.convert(tmp_path / "all.csv", tmp_path / "all.parquet", series="id") == rows
    assert pd.read_parquet(tmp_path / "all.parquet").iloc[-1].tolist() == [1999, 1.5, 2.5]


def test_importance_is_measured_in_every_series_and_over_all(folder: Path, tmp_path: Path) -> None:
    model = fit(folder, rows=4 * ROWS)
    broken = [make_series("old", 1, 38), make_series("z", 3)]  # which ends before those
    pd.concat(broken).to_parquet(folder / "part4.parquet", index=False)
    found = mv.many.explain(model, folder, tmp_path / "out", effort="quick", verbose=0)
    assert (found.series, found.failures["series"].tolist()) == (10, ["old"])
    assert "has fewer than 3 windows that the model has not seen" in found.failures["reason"][0]
    each = found.read("importance")
    assert set(each["series"]) == {*(f"s{p}{k}" for p in range(3) for k in range(3)), "z"}
    alone = each[each["variable"] == "x"].set_index("series")
    assert (alone["importance"] > 0.5).all() and (alone["n_windows"] >= 18).all()
    table = found.importance
    assert table is not None
    first = table.iloc[0]
    assert (first["variable"], first["verdict"], first["series"]) == ("x", "important", 1.0)
    rises = alone["error_increase"]
    assert first["error_increase"] == pytest.approx(rises.mean(), rel=0.3)
    again = mv.many.explain(model, folder, tmp_path / "out", effort="quick", verbose=0)
    assert again.done == 0
    pd.testing.assert_frame_equal(again.importance, table)
    with pytest.raises(ParameterError, match=r"holds the explanations of another model"):
        mv.many.explain(model, folder, tmp_path / "out", verbose=0)


def test_of_p_values_that_disagree_the_larger_count_too() -> None:
    block = pd.DataFrame({"variable": ["x", "z"], "error_increase": [0.5, 0.2]})
    ends = {"error_increase_low": 0.1, "error_increase_high": 0.9, "squared_error": 1.0}
    block = block.assign(**ends, n_windows=50, series=5, found=[5, 0])
    several = [block.assign(p_value=[1e-9, p]) for p in (1e-9, 0.9)]
    table = over_all(pd.concat(several)).set_index("variable")
    assert table.loc["x", "p_value"] == pytest.approx(np.e * 1e-4)
    assert table.loc["z", "p_value"] == pytest.approx(np.e * np.sqrt(0.9e-4))
    assert table["series"].tolist() == [1.0, 0.0]
    assert over_all(several[1]).set_index("variable").loc["z", "p_value"] == pytest.approx(0.9)
