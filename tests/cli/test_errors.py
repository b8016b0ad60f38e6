"""Bad input ends with exit code 2, one message that names culprit and remedy, and no file."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mvlstm as mv

from .conftest import TINY, Result, Run, make_table


def assert_refused(done: Result, *parts: str, code: int = 2) -> None:
    assert done.code == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def _with(**columns: object) -> pd.DataFrame:
    return make_table().assign(**columns)


def _changed(row: int, column: str, value: object) -> pd.DataFrame:
    table = make_table()
    table[column] = table[column].astype(object)
    table.loc[row, column] = value
    return table


BAD_TABLES = {
    "text in a column": (_changed(7, "x1", "high"), ("x1", "high", "--exclude")),
    "missing values": (_changed(7, "y", None), ("y", "2024-01-01 07:00", "--missing")),
    "infinite values": (_changed(7, "x2", float("inf")), ("x2", "--missing")),
    "a constant column": (_with(x2=1.0), ("x2", "--exclude")),
    "a time twice": (make_table().iloc[[0, 0, *range(1, 240)]], ("2024-01-01",)),
    "irregular times": (make_table().drop(index=50), ("2024-01-03", "--gaps")),
    "too few rows": (make_table(12), ("12 rows", "at least 17", "--valid")),
    "no rows": (make_table(0), ("row",)),
    "no target": (make_table().drop(columns="y"), ("'y'", "--target")),
    "no time": (make_table().drop(columns="when"), ("'when'", "--time")),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(run: Run, tmp_path: Path, case: str) -> None:
    table, parts = BAD_TABLES[case]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--time", "when", "--test", "0.2", *TINY)
    done = run("fit", tmp_path / "t.csv", *words, "--out", tmp_path / "m.safetensors")
    assert_refused(done, *parts)
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


BAD_OPTIONS = {
    "gates": (("--gates", "fulll"), ("fulll", "'full' or 'variable'")),
    "preset": (("--preset", "papr"), ("papr", "'paper'")),
    "test": (("--test", "lots"), ("--test", "lots", "0.2")),
    "all for test": (("--test", "0.95"), ("test",)),
    "window": (("--window", "1"), ("window", "2")),
    "sigma": (("--sigma", "large"), ("sigma", "large", "learned")),
    "dropout": (("--dropout", "1.5"), ("dropout", "1.5")),
    "members": (("--members", "0"), ("members", "0")),
    "device": (("--device", "quantum"), ("device", "quantum", "cpu")),
    "missing": (("--missing", "skip"), ("missing", "skip", "drop")),
    "gaps": (("--gaps", "ignore"), ("gaps", "ignore", "respect")),
    "unknown variable": (("--variables", "x1,x9"), ("x9",)),
    "unknown exclusion": (("--exclude", "x9"), ("x9",)),
    "separator": (("--sep", "|"), ("--sep ','",)),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_option(run: Run, table: Path, tmp_path: Path, case: str) -> None:
    words, parts = BAD_OPTIONS[case]
    base = ("fit", table, "--target", "y", "--time", "when", *TINY)
    done = run(*base, *words, "--out", tmp_path / "m.safetensors")
    assert_refused(done, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resume", [(), ("--resume",), ("--no-resume",)])
def test_a_file_is_no_folder_for_checkpoints(
    run: Run, table: Path, tmp_path: Path, resume: tuple[str, ...]
) -> None:
    base = ("fit", table, "--target", "y", "--time", "when", *TINY)
    done = run(*base, "--checkpoint", table, *resume, "--out", tmp_path / "m.safetensors")
    assert_refused(done, "is a file", "--checkpoint")


def test_unknown_option_and_missing_argument_are_usage_errors(run: Run, table: Path) -> None:
    for words in (("fit", table), ("forecast",), ("fit", table, "--widow", "3"), ("fitt",)):
        done = run(*words)
        assert done.code == 2
        assert "Usage" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("out", "part"),
    [
        ("nowhere/m.safetensors", "mkdir -p"),
        ("m.pickle", ".safetensors"),
        ("folder.safetensors", "is a folder"),
    ],
)
def test_output_is_checked_before_the_work(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, part: str
) -> None:
    (tmp_path / "folder.safetensors").mkdir()
    monkeypatch.setattr(mv.MVLSTM, "fit", lambda *_, **__: pytest.fail("started to fit"))
    done = run("fit", table, "--target", "y", "--out", tmp_path / out)
    assert_refused(done, out.split("/")[0], part)


def test_output_may_not_replace_the_input(run: Run, model: Path, table: Path) -> None:
    before = table.read_bytes()
    assert_refused(run("forecast", model, table, "--out", table), "another name")
    assert table.read_bytes() == before


def test_input_files(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    junk = tmp_path / "junk.safetensors"
    junk.write_bytes(b"\x00" * 100)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model.read_bytes()[:-100])
    assert_refused(run("forecast", junk, table), "junk.safetensors")
    assert_refused(run("forecast", cut, table), "cut.safetensors")
    assert_refused(run("forecast", table, table), "table.csv")
    assert_refused(run("forecast", tmp_path / "none.safetensors", table), "none.safetensors")
    assert_refused(run("forecast", model, tmp_path / "none.csv"), "none.csv")
    assert_refused(run("forecast", model, tmp_path), str(tmp_path))


def test_columns_seen_in_fit_are_demanded(run: Run, model: Path, tmp_path: Path) -> None:
    make_table().drop(columns="x1").to_csv(tmp_path / "t.csv", index=False)
    for command in ("forecast", "evaluate", "explain"):
        assert_refused(run(command, model, tmp_path / "t.csv"), "x1")
    make_table(3).to_csv(tmp_path / "short.csv", index=False)
    assert_refused(run("forecast", model, tmp_path / "short.csv"), "3 usable rows", "needs 4")


def test_debug_adds_the_traceback(run: Run, table: Path, tmp_path: Path) -> None:
    words = ("fit", table, "--target", "z", "--out", tmp_path / "m.safetensors", "--debug")
    done = run(*words)
    assert done.code == 2
    assert "Traceback" in done.stderr
    assert "error: " in done.stderr


@pytest.mark.parametrize(
    ("raised", "code", "part"),
    [
        (RuntimeError("boom"), 1, "--debug"),
        (mv.errors.TrainingError("Loss became NaN in epoch 3."), 1, "epoch 3"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), 1, "No space left"),
        (mv.errors.MissingExtraError("pip install 'mvlstm[baselines]'"), 2, "pip install"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_faults(
    run: Run,
    model: Path,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    code: int,
    part: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(mv.MVLSTM, "forecast", fail)
    done = run("forecast", model, table)
    assert done.code == code
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_failed_write_leaves_the_old_file(
    run: Run, model: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "next.csv"
    out.write_text("earlier result")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(out))

    monkeypatch.setattr("os.replace", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    done = run("forecast", model, table, "--out", out)
    assert_refused(done, "No space left", "choose another place", code=1)
    assert out.read_text() == "earlier result"
    assert [p.name for p in tmp_path.iterdir()] == ["next.csv"]


def test_warnings_are_told_apart(
    run: Run, model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = mv.MVLSTM.forecast

    def warn(self: mv.MVLSTM, rows: pd.DataFrame, **options: Any) -> mv.Forecast:
        for _ in range(2):
            warnings.warn("Values lie far outside.", mv.MVLSTMWarning, stacklevel=2)
        warnings.warn("a library's own business", DeprecationWarning, stacklevel=2)
        print("a stray print")
        return plain(self, rows, **options)

    monkeypatch.setattr(mv.MVLSTM, "forecast", warn)
    done = run("forecast", model, table, "--json")
    assert json.loads(done.stdout)["warnings"] == ["Values lie far outside."]
    assert done.stderr.count("warning: Values lie far outside.") == 1
    assert "library" not in done.stderr

    def noted(self: mv.MVLSTM, rows: pd.DataFrame, **options: Any) -> mv.Forecast:
        return replace(warn(self, rows, **options), notes=("Values lie far outside.",))

    monkeypatch.setattr(mv.MVLSTM, "forecast", noted)
    assert "far outside" not in run("forecast", model, table).stdout  # a warning is no note too


def test_the_installed_command(table: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mvlstm", "fit", str(table), "--target", "nope"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "m.safetensors")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "nope" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "mvlstm", "data", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=600) == 1


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    make_table().to_csv(tmp_path / "t.csv", index=False)
    words = ["mvlstm", "fit", "t.csv", "--target", "y", "--out", "m.safetensors"]
    code = f"import sys; sys.modules['torch'] = None; sys.argv = {words}; "
    code += "from mvlstm.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: This needs torch, which is not installed. Install it with: pip install mvlstm\n"
    )
