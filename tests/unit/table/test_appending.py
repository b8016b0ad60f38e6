"""Rows added to a CSV file: no row twice, earlier text untouched, one writer at a time."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mvlstm.errors import DataError
from mvlstm.storage import hold_lock
from mvlstm.table.appending import append_rows

KEY = ("origin", "step")


def rows(*origins: str, value: float = 1.5, zone: str | None = None) -> pd.DataFrame:
    times = pd.to_datetime(list(origins), format="ISO8601").tz_localize(zone)
    return pd.DataFrame({"origin": times, "step": 1, "mean": value})


def test_rows_are_added_once(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    assert append_rows(file, rows("2024-01-01", "2024-01-01 01:00"), key=KEY) == 2
    first = file.read_text()
    assert append_rows(file, rows("2024-01-01 01:00", value=9.0), key=KEY) == 0
    assert file.read_text() == first
    assert append_rows(file, rows("2024-01-01 01:00", "2024-01-01 02:00"), key=KEY) == 1
    assert file.read_text().startswith(first)
    back = pd.read_csv(file, parse_dates=["origin"])
    assert list(back["origin"].dt.hour) == [0, 1, 2]
    assert list(back["mean"]) == [1.5] * 3


def test_midnight_alone_is_written_in_full(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    append_rows(file, rows("2024-01-01"), key=KEY)
    append_rows(file, rows("2024-01-01 01:00"), key=KEY)
    assert append_rows(file, rows("2024-01-01", "2024-01-01 01:00"), key=KEY) == 0


def test_the_same_row_twice_at_once(tmp_path: Path) -> None:
    twice = pd.concat([rows("2024-01-01")] * 2)
    assert append_rows(tmp_path / "f.csv", twice, key=KEY) == 1


def test_a_file_without_a_last_line_end(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    append_rows(file, rows("2024-01-01"), key=KEY)
    file.write_text(file.read_text().rstrip("\n"))
    append_rows(file, rows("2024-01-02", zone=None), key=KEY)
    assert len(pd.read_csv(file)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("origin,step\n", "has the columns origin, step; the rows to append have"),
        ("origin,step,mean\n2024-01-01 00:00:00,1\n", "Line 2 .* does not have 3 fields"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "f.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        append_rows(file, rows("2024-01-01"), key=KEY)
    assert file.read_text() == text


def test_no_folder_and_a_locked_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        append_rows(tmp_path / "no" / "f.csv", rows("2024-01-01"), key=KEY)
    file = tmp_path / "f.csv"
    held = hold_lock(tmp_path / ".f.csv.lock", "it")
    with held, pytest.raises(DataError, match=rf"f.csv' is in use by process {os.getpid()} on "):
        append_rows(file, rows("2024-01-01"), key=KEY, patience=0.1)
    assert append_rows(file, rows("2024-01-01"), key=KEY) == 1


def _write(path: str, start: int) -> None:
    for day in range(start, start + 20):
        append_rows(path, rows(f"2024-01-{day % 28 + 1:02d}"), key=KEY)


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write, args=(str(file), k)) for k in (0, 7, 14)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers)
    back = pd.read_csv(file)
    assert len(back) == back["origin"].nunique() == 28


@settings(max_examples=25, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), max_size=5),
    name=st.text(alphabet='ab,"\n; ', max_size=5),
)
def test_any_order_of_appends_gives_the_union(batches, name, tmp_path_factory) -> None:
    file = tmp_path_factory.mktemp("append") / "f.csv"
    expected: dict[int, float] = {}
    for turn, batch in enumerate(batches):
        frame = pd.DataFrame({"origin": batch, "step": 1, "mean": float(turn), "series": name})
        added = append_rows(file, frame, key=("series", "origin", "step"))
        fresh = {origin: float(turn) for origin in batch if origin not in expected}
        assert added == len(fresh)
        expected |= fresh
    if batches:
        back = pd.read_csv(file, keep_default_na=False)
        assert dict(zip(back["origin"], back["mean"], strict=True)) == expected
        assert set(back["series"]) == {name}


def test_times_with_and_without_a_zone_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    append_rows(file, rows("2024-01-01"), key=KEY)
    before = file.read_text()
    with pytest.raises(DataError, match="times without a time zone, and the rows to append with"):
        append_rows(file, rows("2024-01-02", zone="UTC"), key=KEY)
    assert file.read_text() == before
    zoned = tmp_path / "z.csv"
    assert append_rows(zoned, rows("2024-01-01", zone="UTC"), key=KEY) == 1
    assert append_rows(zoned, rows("2024-01-02", zone="Asia/Tokyo"), key=KEY) == 1
    with pytest.raises(DataError, match="times with a time zone"):
        append_rows(zoned, rows("2024-01-03"), key=KEY)
