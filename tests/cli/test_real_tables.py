"""Categories, known-ahead variables, calendar and several series on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.cli import evaluate, explain


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Return two stations in one file, the next holidays, and where the model goes."""
    folder = tmp_path_factory.mktemp("stations")
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=300, freq="h")
    parts, ahead = [], []
    for name, scale in (("city", 100.0), ("village", 1.0)):
        wind, holiday = rng.choice(["N", "S"], 300), rng.integers(0, 2, 300)
        y = np.sin(2 * np.pi * times.hour.to_numpy() / 24) + holiday + 0.2 * rng.normal(size=300)
        columns: dict[str, Any] = {"time": times, "station": name, "line": rng.integers(1, 4, 300)}
        columns |= {"wind": wind, "holiday": holiday, "y": scale * y}
        parts.append(pd.DataFrame(columns))
        later = pd.date_range(times[-1] + pd.Timedelta(hours=1), periods=2, freq="h")
        ahead.append(pd.DataFrame({"time": later, "station": name, "holiday": [0, 1]}))
    pd.concat(parts).to_csv(folder / "stations.csv", index=False)
    pd.concat(ahead).to_csv(folder / "holidays.csv", index=False)
    return folder / "stations.csv", folder / "holidays.csv", folder / "model.safetensors"


SMALL = ("--window", 4, "--hidden-size", 3, "--members", 2, "--max-epochs", 2, "--quiet")
COLUMNS = ("--target", "y", "--time", "time", "--series", "station", "--known", "holiday")


def test_fit_forecast_evaluate_and_explain(run: Any, files: tuple[Path, Path, Path]) -> None:
    table, holidays, model = files
    options = ("--categorical", "line", "--calendar", "hour,weekday", "--horizon", 2)
    done = run("fit", table, *COLUMNS, *options, *SMALL, "--test", 0.2, "--out", model, "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["variables"] == ["line", "wind", "holiday", "calendar", "y"]
    lacking = run("forecast", model, table)
    assert lacking.code == 2
    assert "['holiday'], known ahead" in lacking.stderr and "--future" in lacking.stderr
    done = run("forecast", model, table, "--future", holidays, "--json")
    assert done.code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(row["series"], row["step"]) for row in rows] == [
        ("city", 1),
        ("city", 2),
        ("village", 1),
        ("village", 2),
    ]
    page = model.with_suffix(".html")
    words = ("report", model, table, "--effort", "quick", "--out", page, "--json")
    done = run(*words, "--future", holidays)
    assert done.code == 0, done.stderr
    ahead = json.loads(done.stdout)["forecast"]["rows"]
    assert [row["mean"] for row in ahead] == [row["mean"] for row in rows[:2]]
    assert "The next value of y in city" in page.read_text(encoding="utf-8")
    assert run(*words).code == 0
    assert "no look ahead" in page.read_text(encoding="utf-8")
    done = run("evaluate", model, table, "--json")
    assert {row["series"] for row in json.loads(done.stdout)["by_series"]} == {"city", "village"}
    done = run("explain", model, table, "--effort", "quick", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["variable"] for row in found["importance"]} == {
        *("line", "wind", "holiday", "calendar", "y")
    }


def test_compare_passes_the_inputs_on(run: Any, files: tuple[Path, Path, Path]) -> None:
    done = run(
        *("compare", files[0], *COLUMNS, "--calendar", "auto", "--methods", "ar,strx"),
        *("--window", 4, "--quiet", "--json"),
    )
    assert done.code == 0, done.stderr
    rows = {row["method"]: row for row in json.loads(done.stdout)}
    assert rows["AR"]["rmse"] < rows["Persistence"]["rmse"]
    assert "models one series" in rows["STRX"]["error"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--series", "nowhere"), "Series column 'nowhere' is not in the table"),
        (("--series", "station", "--known", "nothing"), "Known variable 'nothing'"),
        (("--series", "station", "--calendar", "daily"), "choose 'none', 'auto' or some of"),
        ((), "say with --series which column"),
    ],
)
def test_bad_options_are_told(
    run: Any, files: tuple[Path, Path, Path], options: tuple[str, ...], part: str, tmp_path: Path
) -> None:
    done = run(
        *("fit", files[0], "--target", "y", "--time", "time", *options, *SMALL),
        *("--out", tmp_path / "m.safetensors"),
    )
    assert done.code == 2
    assert part in done.stderr


def test_people_see_scores_and_importance_of_each_series(
    run: Any, files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.safetensors"
    assert run("fit", files[0], *COLUMNS, *SMALL, "--test", 0.2, "--out", model).code == 0
    scores, drivers = run("evaluate", model, files[0]), run("explain", model, files[0])
    assert "Scores by series" in scores.stdout and "village" in scores.stdout
    assert "Importance within each series" in drivers.stdout and "city" in drivers.stdout
    assert "the first" not in scores.stdout + drivers.stdout
    for module in (evaluate, explain):
        monkeypatch.setattr(module, "SERIES_SHOWN", 1)
    scores, drivers = run("evaluate", model, files[0]), run("explain", model, files[0])
    assert "Scores by series, the first 1 of 2" in scores.stdout and "city" in scores.stdout
    assert "within each series, the first 1 of 2" in drivers.stdout


def test_a_model_fitted_on_an_index_reads_it_as_a_column(run: Any, tmp_path: Path) -> None:
    times = pd.date_range("2024-01-01", periods=200, freq="h", name="time")
    values = np.random.default_rng(0).normal(size=(200, 2))
    table = pd.DataFrame(values, columns=["x", "y"], index=times)
    mv.AR(window=5).fit(table, "y").save(tmp_path / "m.safetensors")
    table.to_csv(tmp_path / "t.csv")
    done = run("forecast", tmp_path / "m.safetensors", tmp_path / "t.csv", "--json")
    assert done.code == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert pd.Timestamp(row["time"]) == times[-1] + pd.Timedelta(hours=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (COLUMNS, "s; RMSE in standard deviations of each series\n"),
        (("--target", "y", "--transform", "log1p"), "s; RMSE of log1p(y)\n"),
        (("--target", "y"), "s\nwrote"),
    ],
)
def test_fit_says_what_its_error_is_measured_in(
    run: Any, files: tuple[Path, Path, Path], tmp_path: Path, options: Any, words: str
) -> None:
    table = files[0]
    if "--series" not in options:
        rows = pd.read_csv(table).query("station == 'city'")
        table = tmp_path / "city.csv"
        rows.assign(y=rows["y"].abs()).drop(columns=["time", "station"]).to_csv(table, index=False)
    done = run("fit", table, *options, *SMALL, "--out", tmp_path / "m.safetensors")
    assert done.code == 0, done.stderr
    assert words in done.stdout


@pytest.mark.parametrize("target", ["y", " y "])
def test_blanks_in_the_head_of_a_file_part_no_model_from_pandas(
    run: Any, tmp_path: Path, target: str
) -> None:
    from cli.conftest import TINY, make_table

    path, model = tmp_path / "blanks.csv", tmp_path / "model.safetensors"
    make_table().rename(columns=lambda name: f" {name}").to_csv(path, index=False)
    words = ("--target", target, "--time", "when", "--test", "0.2", *TINY, "--out", model)
    assert run("fit", path, *words).code == 0
    loaded = mv.load(model)
    assert loaded.fitted_.layout.target == "y"
    rows = pd.read_csv(path)
    assert " x1" in rows
    assert len(loaded.predict(rows).mean) == len(rows) - 4
    loaded.report(rows, effort="quick")
    assert mv.AR(window=5).fit(rows, target, time="when").predict(rows).mean.notna().all()
