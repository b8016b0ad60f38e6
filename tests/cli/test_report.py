"""The command `mvlstm report`, and the page of `mvlstm compare`."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def test_report_writes_one_page(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = run("report", model, table, "--out", out, "--effort", "quick", "--title", "A <b>test")
    assert done.code == 0, done.stderr
    assert f"wrote {out}" in done.stdout
    page = out.read_text(encoding="utf-8")
    assert "<h1>A &lt;b&gt;test</h1>" in page
    for words in ("What will happen next?", "persistence", "mvlstm fit DATA.csv --target y"):
        assert words in page
    assert list(tmp_path.iterdir()) == [out]


def test_report_as_json(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = run("report", model, table, "--out", out, "--effort", "quick", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bytes"] == out.stat().st_size < 8e6
    assert {"MVLSTM", "persistence", "AR"} <= set(found["evaluation"]["scores"])


def test_a_wrong_ending_is_found_before_the_work(run: Run, model: Path, table: Path) -> None:
    done = run("report", model, table, "--out", "report.pdf")
    assert done.code == 2
    assert "does not end in .html" in done.stderr


def test_compare_writes_a_page(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "methods.html"
    words = ("--target", "y", "--time", "when", "--window", "4", "--quiet", "--methods", "ar")
    done = run("compare", table, *words, "--html", out)
    assert done.code == 0, done.stderr
    page = out.read_text(encoding="utf-8")
    assert "AR has the smallest RMSE" in page and "y: methods compared" in page
    done = run("compare", table, *words, "--html", tmp_path / "methods.pdf")
    assert done.code == 2 and "--html" in done.stderr
