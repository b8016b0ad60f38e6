"""The demonstration, made small: what it writes, with and without the extra for pages."""

from __future__ import annotations

import sys

import pytest

from mvlstm import demo

FILES = ["forecast.csv", "importance.csv", "model.safetensors", "scores.json"]
TINY = {"window": 4, "hidden_size": 2, "members": 2, "max_epochs": 2, "seed": 0}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(demo, "ROWS", 600)
    monkeypatch.setattr(demo, "SETTINGS", TINY)


def test_it_writes_a_report(tmp_path):
    result = demo.run_demo(tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted([*FILES, "report.html"])
    assert {p.name for p in result.files} == {*FILES, "report.html"}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Demonstration: x2 and x3 truly drive y" in page
    assert len(page.encode()) < 8e6


def test_without_the_extra_there_is_no_page(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    result = demo.run_demo(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    assert len(result.files) == len(FILES)
