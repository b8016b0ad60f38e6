"""The demonstration: what it prints and writes, with its fit made small."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import mvlstm as mv
from mvlstm import demo

from .conftest import Run

SMALL = {"window": 4, "hidden_size": 2, "members": 2, "max_epochs": 2, "batch_size": 256}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "ROWS", 600)
    monkeypatch.setattr(demo, "SETTINGS", SMALL)


def test_demo_prints_and_writes(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "demo"
    done = run("demo", "--out", folder, "--quiet")
    assert done.code == 0, done.stderr
    assert "persistence" in done.stdout
    assert "oracle (best possible)" in done.stdout
    assert "True drivers: x2, x3." in done.stdout
    assert "predictive, not causal" in done.stdout
    assert "x2 *" in done.stdout
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["oracle"]["rmse"] == 1.0
    assert scores["scores"]["MVLSTM"]["n"] == 120
    assert len(pd.read_csv(folder / "importance.csv")) == 11
    assert len(pd.read_csv(folder / "forecast.csv")) == 1
    assert mv.load(folder / "model.safetensors").get_params()["window"] == 4
    assert not [p for p in folder.iterdir() if p.suffix == ".tmp"]


def test_demo_as_json_lists_its_files(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path, "--quiet", "--json")
    result = json.loads(done.stdout)
    assert result["drivers"] == ["x2", "x3"]
    assert all(Path(path).is_file() for path in result["files"])


def test_demo_needs_a_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", tmp_path / "file", "--quiet")
    assert done.code == 2
    assert "--out" in done.stderr
