"""Files: what can be read, what is refused and how, and writing whole files only."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.storage import write_atomic
from mvlstm.table import files as io
from mvlstm.table.files import read_table, write_table
from mvlstm.table.frame import build_frame, rebuild_frame


def text_file(folder: Path, text: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def fails(path: Path, match: str, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read_table(path, **options)
    assert match in str(caught.value), str(caught.value)
    return str(caught.value)


def test_an_index_in_a_zone_is_read_over_a_change_of_the_clock(tmp_path: Path) -> None:
    hours = pd.date_range("2024-10-26 12:00", periods=40, freq="h", tz="Europe/Berlin")
    source = pd.DataFrame({"x": np.arange(40), "y": np.arange(40.0)}, index=hours)
    source.to_csv(tmp_path / "all.csv")
    found = read_table(tmp_path / "all.csv")
    assert list(found) == ["x", "y"] and str(found.index.tz) == "UTC"  # type: ignore[attr-defined]
    assert list(found.index) == list(hours)
    source.iloc[:12].to_csv(tmp_path / "early.csv")
    layout = build_frame(read_table(tmp_path / "early.csv"), target="y").layout
    assert list(rebuild_frame(found, layout).times) == list(hours)


def test_an_index_with_and_without_offsets_is_no_time(tmp_path: Path) -> None:
    lines = ",y\n2024-10-26 12:00:00+02:00,1\n2024-10-26 13:00:00+01:00,2\n2024-10-26 14:00,3\n"
    assert isinstance(read_table(text_file(tmp_path, lines)).index, pd.RangeIndex)


# Reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path: Path, mark: str) -> None:
    path = text_file(tmp_path, f"a{mark}b\n1{mark}2.5\n3{mark}4\n")
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame({"a": [1, 3], "b": [2.5, 4]}))


def test_a_separator_inside_quotes_does_not_count(tmp_path: Path) -> None:
    path = text_file(tmp_path, '"a;b;c;d",e\n1,2\n')
    assert list(read_table(path)) == ["a;b;c;d", "e"]


def test_semicolons_with_decimal_commas(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a;b\n1,5;2\n2,5;4\n")
    assert read_table(path, decimal=",")["a"].tolist() == [1.5, 2.5]
    with pytest.raises(DataError, match="decimal=','"):
        build_frame(read_table(path), target="b")


@pytest.mark.parametrize("mark", [" ", "\u00a0", "\u202f", "."])
def test_spaces_and_dots_mark_thousands_where_commas_are_decimal(tmp_path: Path, mark: str) -> None:
    path = text_file(tmp_path, f"a;b\n1{mark}234,5;x 1\n-12{mark}345{mark}678;x 2\n 999,25;x 3\n")
    table = read_table(path, decimal=",")
    assert table["a"].tolist() == [1234.5, -12345678.0, 999.25]
    assert table["b"].tolist() == ["x 1", "x 2", "x 3"]


def test_commas_mark_thousands_where_no_number_is_in_doubt(tmp_path: Path) -> None:
    path = text_file(tmp_path, 'a,b\n"1,234.5","1,234"\n999.25,950\n"-12,345,678","2,000"\n')
    table = read_table(path)
    assert table["a"].tolist() == [1234.5, 999.25, -12345678.0]
    assert table["b"].tolist() == ["1,234", "950", "2,000"]  # these may be decimal commas


def test_one_column_with_decimal_commas(tmp_path: Path) -> None:
    assert read_table(text_file(tmp_path, "a\n1,5\n"), decimal=",")["a"].tolist() == [1.5]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "utf-16"])
def test_byte_order_marks_and_unicode(tmp_path: Path, encoding: str) -> None:
    path = text_file(tmp_path, "größe,y\n1,2\n3,4\n".encode(encoding))
    assert list(read_table(path)) == ["größe", "y"]


def test_other_encodings_are_refused_by_name(tmp_path: Path) -> None:
    fails(text_file(tmp_path, "größe,y\n1,2\n".encode("latin-1")), "file type 'CSV UTF-8'")


def test_gzip_and_parquet(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "y": [3, 4]})
    packed = tmp_path / "data.csv.gz"
    packed.write_bytes(gzip.compress(b"a,y\n1.0,3\n2.0,4\n"))
    pd.testing.assert_frame_equal(read_table(packed), table)
    stored = tmp_path / "data.parquet"
    table.set_axis(pd.date_range("2013", periods=2, name="when")).to_parquet(stored)
    assert isinstance(read_table(stored).index, pd.DatetimeIndex)
    fails(text_file(tmp_path, b"\x1f\x8bbroken", "bad.csv.gz"), "gz")
    fails(text_file(tmp_path, b"PAR1 nothing", "bad.parquet"), "not a readable Parquet file")


def test_an_index_written_by_pandas_comes_back(tmp_path: Path) -> None:
    for index in (pd.date_range("2013", periods=3, freq="h"), pd.RangeIndex(5, 8)):
        table = pd.DataFrame({"a": [1.0, 2.0, 4.0]}, index=index)
        table.to_csv(tmp_path / "data.csv")
        back = read_table(tmp_path / "data.csv")
        assert list(back.index) == list(index) and list(back) == ["a"]
    text_file(tmp_path, ",a\nr1,1\nr2,2\n")
    assert list(read_table(tmp_path / "data.csv")) == ["Unnamed: 0", "a"]


def test_numbers_come_back_as_written(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    write_table(tmp_path / "data.csv", pd.DataFrame({"a": values}))
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv")["a"], values)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    text_file(tmp_path, "a\n1\n", "weather.csv")
    assert "weather.csv'?" in fails(tmp_path / "wether.csv", "does not exist. Did you mean")
    fails(tmp_path / "zzz.bin", "does not exist. Check the path")
    text_file(tmp_path, "a\n1\n", "wide.csv")
    fails(tmp_path / "nofile.csv", "does not exist. Check the path")
    fails(tmp_path / "no" / "data.csv", "nor does the folder")
    fails(tmp_path, "is a folder")


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    fails(text_file(tmp_path, ""), "is empty")
    fails(text_file(tmp_path, "\n\n"), "is empty")
    fails(text_file(tmp_path, b"\x00\x01\x02"), "is not a text file")
    fails(text_file(tmp_path, "x", "data.xlsx"), "is a spreadsheet")
    with pytest.raises(DataError, match="The table is empty"):
        build_frame(read_table(text_file(tmp_path, "a,b\n")), target="b")


def test_duplicate_names_and_ragged_rows(tmp_path: Path) -> None:
    fails(text_file(tmp_path, "a,b,a\n1,2,3\n"), "has 2 columns named 'a'")
    fails(
        text_file(tmp_path, "a,b\n1,2,3\n4,5,6\n"), "has 3 fields, and the header names 2 columns"
    )
    fails(text_file(tmp_path, "a,b\n1,2\n1,2,3,4\n"), "Line 3 of ")


def test_reading_options_are_checked(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a,b\n1,2\n")
    for options in ({"decimal": "x"}, {"sep": "::"}, {"sep": ",", "decimal": ","}):
        with pytest.raises(ParameterError):
            read_table(path, **options)  # type: ignore[arg-type]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs file permissions")
def test_unreadable_file(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a\n1\n")
    path.chmod(0)
    fails(path, "cannot be read: Permission denied")


# Writing ------------------------------------------------------------------------------------


def test_writing_replaces_the_whole_file_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert write_atomic(path, "first, longer") == path
    path.chmod(0o640)
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second" and path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.txt"
    write_atomic(path, "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io.os, "fsync", full)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_an_interruption_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(io.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "out.txt", "new")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        write_atomic(tmp_path, "x")
    with pytest.raises(DataError, match="does not exist; create it first"):
        write_atomic(tmp_path / "no" / "out.txt", "x")


def test_a_link_stays_one_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    assert write_atomic(link, "new") == link
    assert link.is_symlink() and real.read_text() == "new"
    assert [path.name for path in real.parent.iterdir()] == ["real.txt"]


def test_a_device_or_a_stream_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a device or a stream"):
        write_atomic(pipe, "new")
    assert pipe.is_fifo()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_tables_are_written_by_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    table = pd.DataFrame(
        {"time": pd.date_range("2013", periods=2, freq="h"), "mean": [1 / 3, np.nan], "part": "new"}
    )
    write_table(path, table)
    back = pd.read_json(path) if suffix == "json" else read_table(path)
    assert list(back) == ["time", "mean", "part"]
    assert list(pd.to_datetime(back["time"])) == list(table["time"])
    np.testing.assert_allclose(back["mean"], table["mean"], rtol=1e-14)


def test_the_index_is_written_on_request(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="when"))
    write_table(tmp_path / "out.csv", table, index=True)
    assert (tmp_path / "out.csv").read_text().startswith("when,a\n5,1\n")


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"use \.csv, \.parquet or \.json"):
        write_table(tmp_path / "out.xyz", pd.DataFrame({"a": [1]}))


def test_spaces_around_column_names_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time , x, y \n1, 2, 3\n2, 4, 6\n")
    assert list(read_table(tmp_path / "a.csv").columns) == ["time", "x", "y"]


def test_a_stream_is_refused_in_words(tmp_path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "-"):
        with pytest.raises(DataError, match="write the table to a file first"):
            read_table(path)


def test_columns_without_name_and_value_are_left_out(tmp_path) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text("time,x,y,,\n1,2,3,,\n2,3,4,,\n")
    assert list(read_table(file).columns) == ["time", "x", "y"]
    file.write_text("time,x,y,,\n1,2,3,,\n2,3,4,5,\n")
    assert list(read_table(file).columns) == ["time", "x", "y", "Unnamed: 3"]


def test_lines_above_the_header_are_refused(tmp_path: Path) -> None:
    lines = "Report of May;;;\n;;;\ntime;x;y;z\n1;2;3;4\n"
    fails(text_file(tmp_path, lines), "names 1 column of 4: 'Report of May;;;'. It must name them")


def test_a_file_without_a_header_is_told_so(tmp_path: Path) -> None:
    path = text_file(tmp_path, "2024-01-01 00:00,1.5,-7\n2024-01-01 01:00,1.25,-8\n")
    with pytest.raises(DataError, match="the first line of a file must name its columns"):
        build_frame(read_table(path), target="y")


def test_rows_at_the_end_without_any_value_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text("time;x;y\n1;2;3\n;;\n3;;4\n;;\n;;\n")
    assert len(read_table(file)) == 3
    file.write_text(";x;y\n1;2;3\n2;3;4\n;;\n;;\n")
    table = read_table(file)
    assert table.index.tolist() == [1, 2] and table["x"].dtype == np.int64
    file.write_text("time;x\n;\n;\n")
    assert len(read_table(file)) == 2
    file.write_text("y\n1\n2\nNA\n\n")  # a value that is missing is no empty row
    assert len(read_table(file)) == 3


def test_parquet_without_pyarrow_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match="Reading Parquet needs pyarrow"):
        read_table(tmp_path / "old.parquet")
    with pytest.raises(DataError, match="Writing Parquet needs pyarrow"):
        write_table(tmp_path / "new.parquet", pd.DataFrame({"a": [1]}))
    assert not (tmp_path / "new.parquet").exists()


def test_dots_that_look_like_marks_of_thousands_are_doubted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    grouped = ["1.234", "950", "2.000", "1.071", "3.500", "1.188", "12.000"]
    path.write_text("y;x\n" + "".join(f"{y};1.5\n" for y in grouped))
    with pytest.warns(MVLSTMWarning, match=r"dots in column 'y'.*decimal=','"):
        read_table(path)
    path.write_text("y;x\n" + "".join(f"{y};1.5\n" for y in [*grouped, "2.5"]))
    read_table(path)  # a warning would be an error


def test_a_header_of_any_length_is_read_whole(tmp_path: Path) -> None:
    names = [f"variable_{k}" for k in range(10_000)]  # beyond 64 KiB
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert list(read_table(path).columns) == names
    path.write_text(",".join([*names, names[-1]]) + "\n" + ",".join("1" * 10_001) + "\n")
    with pytest.raises(DataError, match=f"2 columns named '{names[-1]}'"):
        read_table(path)


@pytest.mark.parametrize(
    "first", ['"a\nb"', "a\u2028b", "a\x85b", '\n \n"a"', f'"{"n" * 9_000}\n"']
)
@pytest.mark.parametrize("mark", [",", ";"])
def test_names_that_go_on_in_the_next_line_hide_no_duplicate(
    tmp_path: Path, first: str, mark: str
) -> None:
    def lines(*names: str) -> str:
        return "\n".join(mark.join(row) for row in [(first, *names), "1234", "5678"])

    fails(text_file(tmp_path, lines("x", "y", "x")), "has 2 columns named 'x'")
    assert list(read_table(text_file(tmp_path, lines("x", "y", "z"))))[1:] == ["x", "y", "z"]


def test_a_quotation_mark_that_is_never_closed_is_told_of(tmp_path: Path) -> None:
    fails(text_file(tmp_path, 'a,"b\n' + "1,2\n" * 50_000), "Look for a quotation mark")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n3,4,5,6\n7,8\n", "Line 3 of {} has 4 fields, and the header names 2 columns"),
        ('a,b\n1,"x\ny"\n3,4,5\n', "Line 4 of {} has 3 fields"),
        ('a,b\n1,2\n3,"4\n5,6\n7,8\n', "Line 3 of {} opens a quotation mark"),
    ],
)
def test_the_line_that_is_no_row_is_named(tmp_path: Path, text: str, told: str) -> None:
    for name, data in (("t.csv", text.encode()), ("t.csv.gz", gzip.compress(text.encode()))):
        path = text_file(tmp_path, data, name)
        fails(path, told.format(f"'{path}'"))
