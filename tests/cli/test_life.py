"""Life with a model: appending forecasts, updating, scoring what has arrived since."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv

from .conftest import TINY, Run, make_table


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table with 120 rows more than the model was fitted to."""
    path = tmp_path_factory.mktemp("grown") / "table.csv"
    make_table(360).to_csv(path, index=False)
    return path


def test_forecasts_are_appended_once(run: Run, model: Path, grown: Path, tmp_path: Path) -> None:
    table, file = tmp_path / "now.csv", tmp_path / "forecasts.csv"
    added = []
    for rows in (300, 301, 301, 302, 300):
        pd.read_csv(grown).head(rows).to_csv(table, index=False)
        done = run("forecast", model, table, "--append", file, "--json")
        assert done.code == 0, done.stderr
        added.append(json.loads(done.stdout)["appended"])
    assert added == [1, 1, 0, 1, 0]
    back = pd.read_csv(file, parse_dates=["origin", "time"])
    assert list(back.columns) == ["origin", "step", "time", "mean", "median", "q05", "q95"]
    assert (back["time"] - back["origin"] == pd.Timedelta(hours=1)).all()
    assert back["origin"].is_unique


def test_append_says_what_it_did(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    done = run("forecast", model, table, "--append", tmp_path / "f.csv")
    assert f"appended 1 of 1 rows to {tmp_path / 'f.csv'}" in done.stdout
    refused = run("forecast", model, table, "--append", tmp_path / "f.parquet")
    assert refused.code == 2 and "--append" in refused.stderr


def test_update_writes_another_model(run: Run, model: Path, grown: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    out = tmp_path / "new.safetensors"
    done = run("update", model, grown, "--out", out, "--quiet")
    assert done.code == 0, done.stderr
    assert "168 new rows" in done.stdout and f"wrote {out}" in done.stdout
    assert done.stderr == ""
    assert model.read_bytes() == before
    again = run("update", out, grown, "--out", out, "--quiet")
    assert again.code == 2 and "no rows after" in again.stderr
    assert len(mv.load(out).updates_) == 1


def test_update_in_place_and_as_json(run: Run, model: Path, grown: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(model.read_bytes())
    done = run("update", path, grown, "--out", path, "--refit", "full", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["update"]["refit"] == "full" and found["warnings"] == []
    assert found["update"]["rmse_after"] <= found["update"]["rmse_before"]
    assert "update: epoch" in done.stderr  # plain lines, without a terminal
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_update_tells_what_was_done_to_the_table(run: Run, grown: Path, tmp_path: Path) -> None:
    table, path = pd.read_csv(grown), tmp_path / "ar.safetensors"
    model = mv.AR(window=4, gaps="close", verbose=0).fit(table.head(240), "y", time="when")
    model.save(path)
    table.drop(index=300).to_csv(tmp_path / "gap.csv", index=False)
    given = ("update", path, tmp_path / "gap.csv", "--out", tmp_path / "m.safetensors", "--quiet")
    shown, found = run(*given), json.loads(run(*given, "--json").stdout)
    assert any("gap" in note for note in found["notes"])
    assert all(f"note: {note}" in shown.stdout for note in found["notes"])


def test_a_bad_refit_is_refused(run: Run, model: Path, grown: Path, tmp_path: Path) -> None:
    done = run("update", model, grown, "--out", tmp_path / "m.safetensors", "--refit", "half")
    assert done.code == 2 and "choose 'newest', 'full' or 'link'" in done.stderr


def test_evaluate_since(run: Run, model: Path, grown: Path) -> None:
    done = run("evaluate", model, grown, "--since", "2024-01-10")
    assert done.code == 0, done.stderr
    assert "Scores by day" in done.stdout and "Skill has not slipped" in done.stdout
    assert "on new rows since 2024-01-10 00:00, " in done.stdout
    unclear = run("evaluate", model, grown, "--since", "10.1.2024")
    assert unclear.code == 2 and "2024-01-10 or 2024-10-01" in unclear.stderr
    found = json.loads(run("evaluate", model, grown, "--since", "2024-01-10", "--json").stdout)
    assert [row["score"] for row in found["slips"]] == ["skill", "coverage"]
    assert sum(row["n"] for row in found["periods"]) == found["scores"]["MVLSTM"]["n"] == 144
    assert "Rolling coverage of the 90 % interval" in done.stdout
    assert all(row["low"] < 0.9 < row["high"] for row in found["rolling"])
    assert found["rolling"][-1]["time"] == found["period"][1]


def test_a_slip_is_a_warning(run: Run, model: Path, grown: Path, tmp_path: Path) -> None:
    table = pd.read_csv(grown)
    table.loc[240:, "x1"] = np.random.default_rng(1).permutation(table.loc[240:, "x1"])
    worse = tmp_path / "worse.csv"
    table.to_csv(worse, index=False)
    done = run("evaluate", model, worse, "--since", "2024-01-11", "--json")
    assert done.code == 0
    found = json.loads(done.stdout)
    assert any("Skill has slipped" in warning for warning in found["warnings"])
    assert "warning: Skill has slipped" in done.stderr


def test_the_file_of_scores_holds_the_periods_too(
    run: Run, model: Path, grown: Path, tmp_path: Path
) -> None:
    given = ("evaluate", model, grown, "--since", "2024-01-10", "--out", tmp_path / "scores.csv")
    found = json.loads(run(*given, "--json").stdout)
    written = pd.read_csv(tmp_path / "scores.csv")
    days = [row["day"] for row in found["periods"]]
    assert written["period"].isna().tolist()[:3] == [True] * 3
    assert written["period"].tolist()[3:] == days
    assert written["model"].tolist()[1:] == ["persistence", "seasonal", *["MVLSTM"] * len(days)]
    rmse = [row["rmse"] for row in found["periods"]]
    np.testing.assert_allclose(written["rmse"][3:], rmse)


def test_periods_of_numbered_rows_have_a_name(run: Run, tmp_path: Path) -> None:
    table, model = tmp_path / "table.csv", tmp_path / "m.safetensors"
    make_table(240).drop(columns="when").to_csv(table, index=False)
    done = run("fit", table, "--target", "y", "--test", 0.3, *TINY, "--out", model)
    assert done.code == 0, done.stderr
    done = run("evaluate", model, table, "--since", 180)
    assert done.code == 0 and "Scores by period" in done.stdout


def test_since_must_be_a_time(run: Run, model: Path, grown: Path) -> None:
    done = run("evaluate", model, grown, "--since", "lately")
    assert done.code == 2 and "since='lately'" in done.stderr
    done = run("evaluate", model, grown, "--since", "2031-01-01")
    assert done.code == 2 and "Supply newer rows" in done.stderr


def test_a_log_scale_from_the_command_line(run: Run, tmp_path: Path) -> None:
    table = make_table(300)
    table["y"] = np.exp(table["y"]).round()
    table.to_csv(tmp_path / "t.csv", index=False)
    common = ("--target", "y", "--time", "when", *TINY, "--out", tmp_path / "m.safetensors")
    done = run("fit", tmp_path / "t.csv", *common, "--transform", "auto")
    assert done.code == 0, done.stderr
    assert "took log1p for 'y'" in done.stdout
    rows = json.loads(
        run("forecast", tmp_path / "m.safetensors", tmp_path / "t.csv", "--json").stdout
    )
    assert rows["transform"] == "log1p" and rows["rows"][0]["q05"] >= 0


def test_rows_of_a_list_have_the_warnings_too(run: Run, table: Path) -> None:
    words = ("--target", "y", "--time", "when", "--window", "4", "--quiet", "--methods", "ar")
    rows = json.loads(run("compare", table, *words, "--json").stdout)
    assert all(row["warnings"] == [] for row in rows)
