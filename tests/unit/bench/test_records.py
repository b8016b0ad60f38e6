"""Records: durable, mergeable, and a damaged line costs that line alone."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.compact import write_compact
from made_records import assert_alike, comparable
from mvlstm.bench.records import Records, Writer, pack, read_compact, read_records, unpack
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Job, Suite
from mvlstm.bench.tables import make_tables
from mvlstm.errors import DataError
from mvlstm.results._tables import plain


def record(key: str, status: str = "done", **more: Any) -> dict[str, Any]:
    job = Job(suite="s", part="p", dataset="synthetic", method="ar").to_dict()
    return {"schema": 1, "key": key, "status": status, "job": job, **more}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "new")
    errors = {"rows": np.array([7, 8, 12]), "single": np.array([0.5, -1.0, 2.0])}
    writer.add(record("a", value=[1.0, float("nan")]), errors)
    writer.add(record("b", "failed", error={"message": "no"}), {})
    found = read_records(tmp_path / "new")
    assert found.done["a"]["value"] == [1.0, None] and list(found.failed) == ["b"]
    arrays = found.arrays(found.done["a"])
    assert arrays is not None
    assert list(arrays["rows"]) == [7, 8, 12] and list(arrays["single"]) == [0.5, -1.0, 2.0]
    assert found.arrays(found.failed["b"]) is None
    assert len(list((tmp_path / "new").glob("records-*.jsonl"))) == 1


def test_folders_merge_by_copying(tmp_path: Path) -> None:
    for name in ("one", "two"):
        writer = Writer(tmp_path / name)
        writer.add(record(name), {"rows": np.arange(3), "single": np.ones(3)})
        writer.add(record("both", "done" if name == "two" else "failed", of=name), {})
    shutil.copytree(tmp_path / "one", tmp_path / "two", dirs_exist_ok=True)
    found = read_records(tmp_path / "two")
    assert set(found.done) == {"one", "two", "both"} and not found.failed
    assert found.done["both"]["of"] == "two"  # finished counts before failed
    assert all(found.arrays(found.done[name]) is not None for name in ("one", "two"))


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_truncated_file_loses_its_last_record_only(tmp_path: Path, cut: int) -> None:
    writer = Writer(tmp_path)
    for key in ("a", "b", "c"):
        writer.add(record(key), {})
    (file,) = tmp_path.glob("records-*.jsonl")
    file.write_bytes(file.read_bytes()[:-cut])
    found = read_records(tmp_path)
    kept = {"a", "b", "c"} if cut == 1 else {"a", "b"}  # one byte: the line break alone
    assert set(found.done) == kept
    assert len(found.problems) == (cut > 1)
    if cut > 1:
        assert "Line 3" in found.problems[0] and "cut off" in found.problems[0]


def test_a_damaged_line_in_the_middle_is_reported(tmp_path: Path) -> None:
    lines = [json.dumps(record("a")), "{broken", "[1]", json.dumps(record("b", schema=99))]
    lines += [json.dumps(record("c"))]
    (tmp_path / "records-x.jsonl").write_text("\n".join(lines) + "\n")
    found = read_records(tmp_path)
    assert set(found.done) == {"a", "c"}
    assert [text.split(" of ")[0] for text in found.problems] == ["Line 2", "Line 3", "Line 4"]
    assert "schema 99" in found.problems[2]


def test_a_damaged_sidecar_is_no_sidecar(tmp_path: Path) -> None:
    Writer(tmp_path).add(record("a"), {"rows": np.arange(3), "single": np.ones(3)})
    (tmp_path / "forecasts" / "a.npz").write_bytes(b"nonsense")
    found = read_records(tmp_path)
    assert found.arrays(found.done["a"]) is None


def compact(records: Records, folder: Path) -> Path:
    """Write a folder's records as one file in another."""
    folder.mkdir()
    arrays = [records.arrays(one) for one in records.found]
    write_compact(records.found, arrays, folder / "records-small.parquet")
    return folder


def test_a_compact_file_holds_the_same_records_and_tables(
    folder: Path, records: Records, tmp_path: Path
) -> None:
    small = compact(records, tmp_path / "small")
    again = read_records(small)
    assert_alike(list(again.found), list(records.found))
    for one in records.found:
        mine, theirs = again.arrays(one), records.arrays(one)
        assert mine is not None and theirs is not None
        assert np.array_equal(mine["rows"], theirs["rows"])
        for name in ("single", "ensemble"):
            tested = theirs.get(f"{name}s", theirs.get(name))
            assert (name in mine) == (tested is not None)
            if tested is not None:
                unit = np.sqrt(np.mean(np.square(tested))) / 2**14
                assert np.abs(mine[name] - tested).max() <= 0.51 * unit
    assert_same_but_for_last_digits(make_tables(small).markdown(), make_tables(folder).markdown())


def assert_same_but_for_last_digits(mine: str, theirs: str) -> None:
    """Errors are rounded to 1/16384 of their size, which may tip the last digit of a p-value."""
    number = re.compile(r"\d+\.\d+")
    assert number.sub("#", mine) == number.sub("#", theirs)
    for a, b in zip(number.findall(mine), number.findall(theirs), strict=True):
        last = 10.0 ** -len(b.partition(".")[2])
        assert abs(float(a) - float(b)) < 1.5 * last, (a, b)


def test_loose_records_are_added_to_a_compact_file(
    suite: Suite, records: Records, tmp_path: Path
) -> None:
    small = compact(records, tmp_path / "small")
    assert run_suite(suite, small, device="cpu", verbose=0).skipped == len(suite.jobs)
    Writer(small).add(record("new"), {"rows": np.arange(3), "single": np.ones(3)})
    again = read_records(small)
    assert set(again.done) == {*records.done, "new"}
    assert again.arrays(again.done["new"]) is not None
    assert again.arrays({"key": "absent"}) is None


def test_errors_of_zero_and_none_at_all_are_kept(tmp_path: Path) -> None:
    arrays = {"rows": np.array([3, 4]), "single": np.zeros(2)}
    write_compact([record("a"), record("b")], [arrays, None], tmp_path / "records-x.parquet")
    again = read_records(tmp_path)
    found = again.arrays(record("a"))
    assert found is not None and found["single"].tolist() == [0.0, 0.0]
    assert again.arrays(record("b")) is None
    assert [one["key"] for one in read_compact(tmp_path / "records-x.parquet")] == ["a", "b"]


def test_a_damaged_compact_file_is_reported(tmp_path: Path) -> None:
    Writer(tmp_path).add(record("a"), {})
    (tmp_path / "records-x.parquet").write_bytes(b"nonsense")
    found = read_records(tmp_path)
    assert set(found.done) == {"a"}
    assert len(found.problems) == 1 and "records-x.parquet' cannot be read" in found.problems[0]
    assert found.arrays(record("b")) is None


def test_a_folder_without_records_says_what_to_do(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none").found == ()
    with pytest.raises(DataError, match="mvlstm bench run"):
        read_records(tmp_path, must_exist=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file"):
        read_records(tmp_path / "file")


def test_errors_stay_small() -> None:
    rng = np.random.default_rng(0)
    rows, errors = np.arange(33_000, 41_352), rng.normal(size=8_352)
    data = pack({"rows": rows, "single": errors, "ensemble": errors})
    assert len(data) < 70_000
    back = unpack(data)
    assert np.array_equal(back["rows"], rows)
    assert np.allclose(back["single"], errors, rtol=1e-6)


def test_comparable_drops_clocks_and_nothing_else() -> None:
    one = record("a", timings={"fit": 1.0}, written="now", host="here", rmse=2.0)
    assert comparable(one) == record("a", rmse=2.0)
    assert plain({"a": (np.float64(2), np.arange(2), float("inf"))}) == {"a": [2.0, [0, 1], None]}


@pytest.mark.parametrize(
    "damage",
    [{"job": 3}, {"job": None}, {"job": {}}, {"job": {"suite": "s"}}, {"key": ["b"]}, {"key": 3}],
)
def test_a_line_without_a_job_or_a_key_is_left_out(
    tmp_path: Path, damage: dict[str, object]
) -> None:
    Writer(tmp_path).add(record("a"), {})
    (tmp_path / "records-x.jsonl").write_text(json.dumps({**record("b"), **damage}) + "\n")
    found = read_records(tmp_path)
    assert set(found.done) == {"a"}
    assert len(found.problems) == 1 and "is not a record" in found.problems[0]


@pytest.mark.parametrize(
    "damage",
    [
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran",
        {"rows": np.arange(3), "single": np.ones(2)},
        {"rows": np.arange(3), "single": np.array(["a", "b", "c"])},
        {"rows": np.arange(3), "single": np.array(1.0)},
        {"single": np.ones(2)},
    ],
)
def test_damaged_errors_are_as_if_they_were_not_there(tmp_path: Path, damage: Any) -> None:
    Writer(tmp_path).add(record("a"), {"rows": np.arange(3), "single": np.ones(3)})
    path = tmp_path / "forecasts" / "a.npz"
    found = read_records(tmp_path)
    assert found.arrays(record("a")) is not None
    if isinstance(damage, bytes):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("rows.npy", damage)
    else:
        np.savez(path, **damage)
    assert found.arrays(record("a")) is None
