"""The command `mvlstm graph`."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from .conftest import Run

QUICK = ("--time", "when", "--window", "2", "--quiet")


def test_it_names_the_links(run: Run, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    done = run("graph", table, *QUICK, "--out", page)
    assert done.code == 0, done.stderr
    assert "1 of 6 links are important" in done.stdout and "predictive, not causal" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "table: who drives whom" in text and "x1 to y" in text


def test_a_second_run_reads_the_finished_tasks(run: Run, table: Path, tmp_path: Path) -> None:
    words = (*QUICK, "--targets", "y", "--checkpoint", tmp_path / "unfinished", "--json")
    first = run("graph", table, *words)
    assert first.code == 0, first.stderr
    tasks = sorted((tmp_path / "unfinished").iterdir())
    assert [one.name[:6] for one in tasks] == ["graph-"] * 3
    times = [one.stat().st_mtime_ns for one in tasks]
    assert run("graph", table, *words).stdout == first.stdout
    assert [one.stat().st_mtime_ns for one in tasks] == times


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_json_and_tables(run: Run, table: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"links{suffix}"
    words = ("--targets", "y", "--control", "fdr", "--json", "--out", out)
    done = run("graph", table, *QUICK, *words)
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["targets"] == ["y"] and found["control"] == "fdr"
    assert found["links"][0]["from"] == "x1" and found["links"][0]["verdict"] == "important"
    rows = (pd.read_csv if suffix == ".csv" else pd.read_json)(out)
    assert rows["from"].tolist() == ["x1", "x2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--targets", "z"), "z"),
        (("--window", "1"), "window=1 must be"),
        (("--out", "graph.txt"), "does not end in .html"),
    ],
)
def test_mistakes_are_named(run: Run, table: Path, words: tuple[str, ...], message: str) -> None:
    done = run("graph", table, "--time", "when", "--quiet", *words)
    assert done.code == 2 and message in done.stderr
