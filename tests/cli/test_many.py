"""`mvlstm fit` and `mvlstm forecast` with many series that stay on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from .conftest import TINY, Run, make_table


@pytest.fixture
def panel(tmp_path: Path) -> Path:
    folder = tmp_path / "panel"
    folder.mkdir()
    for name, size in (("north", 1.0), ("south", 5.0)):
        table = make_table(120)
        table.assign(id=name, y=size * table["y"]).to_parquet(folder / f"{name}.parquet")
    return folder


def test_a_folder_is_fitted_and_forecast_in_pieces(run: Run, panel: Path, tmp_path: Path) -> None:
    model, into = tmp_path / "panel.safetensors", tmp_path / "forecasts"
    told = ("--target", "y", "--series", "id", "--time", "when", "--test", "0.2")
    done = run("fit", panel, *told, *TINY, "--memory", "2GB", "--out", model)
    assert done.code == 0, done.stderr
    assert f"next: mvlstm forecast {model} {panel} --into forecasts" in done.stdout
    make_table(2).assign(id="short").to_parquet(panel / "short.parquet")
    done = run("forecast", model, panel, "--into", into, "--quantiles", "0.25", "--json", "--quiet")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["series"], found["done"]) == (2, 3)
    assert found["scores"]["skill"] > 0 and found["scores"]["n"] == 48
    assert [one["series"] for one in found["failures"]] == ["short"]
    rows = pd.concat([pd.read_parquet(one) for one in sorted((into / "forecasts").iterdir())])
    assert rows["series"].tolist() == ["north", "south"] and "q25" in rows
    again = run("forecast", model, panel, "--into", into, "--quantiles", "0.25", "--quiet")
    assert "2 series forecast, 0 of 3 blocks now" in again.stdout
    assert "means over all series" in again.stdout
    assert "a forecast needs 4 without a gap" in again.stderr
    more = run("forecast", model, panel, "--into", into, "--quantiles", "0.25", "--retry")
    assert "2 series forecast, 1 of 3 blocks now" in more.stdout
    told = ("--into", tmp_path / "why", "--effort", "quick", "--quiet")
    done = run("explain", model, panel, *told, "--out", tmp_path / "why.csv", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["series"], [one["series"] for one in found["failures"]]) == (2, ["short"])
    table = pd.read_csv(tmp_path / "why.csv")
    assert table["variable"].tolist() == [one["variable"] for one in found["importance"]]
    again = run("explain", model, panel, *told)
    assert "2 series explained, 0 of 3 blocks now" in again.stdout
    assert "Importance over all series" in again.stdout
    done = run("explain", model, panel, *told, "--time-limit", "9")
    assert done.code == 2 and "--time-limit and --control are for one table" in done.stderr


def test_what_pieces_need_is_asked_for(run: Run, panel: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    done = run("fit", panel, "--target", "y", *TINY, "--out", model)
    assert done.code == 2 and "--series says which column names them" in done.stderr
    done = run("fit", panel, "--target", "y", "--series", "id", "--memory", "a lot", "--out", model)
    assert done.code == 2 and "is not a size" in done.stderr
    model.touch()
    for command in ("forecast", "explain"):
        done = run(command, model, panel)
        assert done.code == 2 and "Add --into DIR" in done.stderr


def test_an_engine_that_is_none_is_named(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    done = run(
        "fit", table, "--target", "y", "--time", "when", *TINY, "--engine", "k8s", "--out", out
    )
    assert done.code == 2 and "choose 'local', 'ray' or the address" in done.stderr
