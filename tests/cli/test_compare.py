"""The command `mvlstm compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from .conftest import Run, make_table

QUICK = ("--target", "y", "--time", "when", "--window", "4", "--quiet")


def test_it_prints_a_table(run: Run, table: Path) -> None:
    done = run("compare", table, *QUICK, "--methods", "ar,seasonal")
    assert done.code == 0, done.stderr
    for words in ("AR", "Persistence", "rmse", "budget of AR: 19 penalties", "note: dm_p"):
        assert words in done.stdout
    assert done.stderr == ""


def test_json_is_a_list_of_rows(run: Run, table: Path) -> None:
    done = run("compare", table, *QUICK, "--methods", "ar", "--json")
    assert done.code == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["method"] for row in rows] == ["AR", "Persistence"]
    assert rows[0]["error"] is None
    assert rows[0]["rmse"] < 0.2 < rows[1]["rmse"]
    assert rows[0]["top_variables"] == ["x1"] or rows[0]["top_variables"][0] == "x1"


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_out_and_with(run: Run, table: Path, tmp_path: Path, suffix: str) -> None:
    frame = make_table()
    own = pd.DataFrame({"time": frame["when"], "value": frame["y"]})
    own.to_csv(tmp_path / "oracle.csv", index=False)
    out = tmp_path / f"rows{suffix}"
    words = (*QUICK, "--methods", "ar", "--with", tmp_path / "oracle.csv", "--out", out)
    done = run("compare", table, *words, "--folds", "2")
    assert done.code == 0, done.stderr
    rows = (pd.read_csv if suffix == ".csv" else pd.read_json)(out)
    assert list(rows["method"]) == ["oracle", "AR", "Persistence"]
    assert rows["rmse"][0] == pytest.approx(0.0, abs=1e-6)
    assert rows["n"].tolist() == [48, 48, 48]


def test_progress_is_on_standard_error(run: Run, table: Path) -> None:
    done = run("compare", table, *QUICK[:-1], "--methods", "ar", "--json")
    assert "compare: 1/2 AR: RMSE" in done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--methods", "arr"), "There is no method 'arr'"),
        (("--budget", "small"), "choose 'quick' or 'full'"),
        (("--folds", "0"), "folds=0"),
        (("--target", "z"), "'z'"),
        (("--with", "nowhere.csv"), "nowhere.csv"),
        (("--out", "rows.txt"), "does not end in"),
    ],
)
def test_bad_input_ends_with_two(
    run: Run, table: Path, words: tuple[str, ...], message: str
) -> None:
    done = run("compare", table, *QUICK, "--methods", "ar", *words)
    assert done.code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_shows_an_example(run: Run) -> None:
    assert "Example: mvlstm compare" in run("compare", "--help").stdout
