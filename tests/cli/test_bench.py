"""`mvlstm bench`, `mvlstm tune` and `mvlstm data fetch`: files written, messages, exit codes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from cli.conftest import Run

PROJECT = Path(__file__).resolve().parents[2]
SUITE = """
name = "mine"
data.synthetic.n = 260
[methods.mv]
method = "paper"
settings = { hidden_size = 2, max_epochs = 1 }
[[parts]]
datasets = ["synthetic"]
windows = [3, 4]
methods = ["persistence", "ar", "mv"]
repeats = 2
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "mine.toml"
    path.write_text(SUITE)
    return path


@pytest.fixture(scope="module")
def records(run: Run, suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    done = run("bench", "run", "--suite", suite, "--windows", 3, "--out", folder, "--device", "cpu")
    assert done.code == 0, done.stderr
    assert "3 jobs done, 0 failed, 0 were done before" in done.stdout
    assert "bench mine: 3/3" in done.stderr
    return folder


def test_running_again_skips_and_windows_are_listed_by_spaces(
    run: Run, suite: Path, records: Path
) -> None:
    options = ("--out", records, "--device", "cpu", "--quiet", "--json")
    done = run("bench", "run", "--suite", suite, "--windows", 3, 4, "--methods", "ar", *options)
    assert json.loads(done.stdout)["done"] == 1 and json.loads(done.stdout)["skipped"] == 1
    listed = run("bench", "run", "--suite", suite, "--out", records, "--dry-run")
    assert len(listed.stdout.split()) == 6


def test_a_page_has_a_name_of_its_own_unless_one_is_given(
    run: Run, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("--html",), ("--html", "--json"), ("--html", "page.html")):
        done = run("bench", "tables", records, *words)
        assert done.code == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "tables.html"]
    refused = run("bench", "tables", records, "--out", "page.html")
    assert refused.code == 2 and "'page.html' is a file" in refused.stderr


def test_jobs_that_failed_before_are_not_called_done(run: Run, tmp_path: Path) -> None:
    bad = SUITE.replace(
        "[[parts]]", '[methods.ar]\nsettings = { transform = "log1p" }\n\n[[parts]]', 1
    )
    (tmp_path / "bad.toml").write_text(bad)
    words = ("bench", "run", "--suite", tmp_path / "bad.toml", "--windows", 3, "--methods", "ar")
    options = ("--out", tmp_path / "out", "--device", "cpu", "--quiet")
    assert run(*words, *options).code == 1
    again = run(*words, *options)
    assert again.code == 1
    assert "0 jobs done, 0 failed, 0 were done before, 1 had failed before" in again.stdout
    assert "--retry-failed" in again.stdout


def test_tables_are_printed_as_markdown(run: Run, records: Path) -> None:
    done = run("bench", "tables", records)
    assert done.code == 0
    assert done.stdout.startswith("# Results")
    assert "| MV-LSTM (paper) |" in done.stdout and "| validation RMSE |" in done.stdout


def test_tables_of_one_suite(run: Run, records: Path) -> None:
    every, one = (run("bench", "tables", records, *more) for more in ((), ("--suite", "mine")))
    assert one.code == 0 and one.stdout == every.stdout  # there is no other
    refused = run("bench", "tables", records, "--suite", "large")
    assert refused.code == 2 and "'large'" in refused.stderr and "'mine'" in refused.stderr


def test_tables_go_to_files_and_a_page(run: Run, records: Path, tmp_path: Path) -> None:
    page = tmp_path / "tables.html"
    done = run("bench", "tables", records, "--out", tmp_path / "t", "--html", page)
    assert done.code == 0, done.stderr
    assert (tmp_path / "t" / "tables.md").exists()
    scores = pd.read_csv(
        tmp_path / "t" / "synthetic-window-3-protocol-chronological-all-scores.csv"
    )
    assert set(scores["method"]) >= {"AR", "Persistence"}
    text = page.read_text("utf-8")
    assert (
        "window 3, protocol chronological: all scores" in text
        and "importance by scrambling" in text
    )
    found = json.loads(run("bench", "tables", records, "--json").stdout)
    assert found["tables"][0]["title"] == "synthetic, window 3, protocol chronological: all scores"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--suite", "papr"), "no suite 'papr'"),
        (("--methods", "xgboost"), "no method 'xgboost' in suite 'paper'"),
        (("--datasets", "pm2.5"), "no dataset 'pm2.5' in suite 'paper'"),
        (("--windows", "11"), "no window '11'"),
        (("--windows", "ten"), "--windows ten: give whole numbers"),
        (("--budget", "huge"), "no budget 'huge'"),
        (("--protocol", "author"), "Did you mean 'authors'?"),
        (("--engine", "slurm"), "engine='slurm' is not an option"),
    ],
)
def test_bad_input_is_one_message(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(PROJECT)  # where the paper's suites are
    done = run("bench", "run", *words, "--out", tmp_path / "none")
    assert done.code == 2
    assert done.stderr.count("\n") == 1 and message in done.stderr
    assert not (tmp_path / "none").exists()


def test_without_a_clone_suites_are_files_of_ones_own(
    run: Run, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("bench", "run", "--suite", "paper", "--out", "out")
    assert done.code == 2 and done.stderr.count("\n") == 1
    assert "no suite 'paper'" in done.stderr and "has no folder 'experiments/suites'" in done.stderr
    assert run("bench", "run", "--suite", suite, "--out", "out", "--dry-run").code == 0


def test_a_suite_with_a_study_runs_and_has_its_tables(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = os.path.relpath(PROJECT / "experiments" / "study.py")
    text = SUITE.replace('name = "mine"', f'name = "mine"\nstudy = "{study}"')
    (tmp_path / "mine.toml").write_text(text)
    words = ("--suite", "mine.toml", "--windows", 3, "--methods", "mv", "--device", "cpu")
    done = run("bench", "run", *words, "--out", "out", "--quiet")
    assert done.code == 0, done.stderr
    assert run("bench", "tables", "out", "--html").code == 0
    assert "attention" in Path("tables.html").read_text("utf-8")
    with_it, without = (
        run("bench", "tables", "out", *more).stdout for more in ((), ("--no-attention",))
    )
    assert ": attention**" in with_it and ": attention**" not in without


def test_a_cluster_that_is_not_there(run: Run, suite: Path, tmp_path: Path) -> None:
    options = ("--engine", "ray", "--address", "127.0.0.1:9", "--out", tmp_path)
    done = run("bench", "run", "--suite", suite, *options)
    assert done.code == 2 and "no Ray cluster at --address 127.0.0.1:9" in done.stderr


def test_a_truncated_record_is_reported_and_done_anew(
    run: Run, suite: Path, records: Path, tmp_path: Path
) -> None:
    lines = [line for f in records.glob("*.jsonl") for line in f.read_text().splitlines()]
    text = "\n".join(line for line in lines if '"window":3' in line)
    (tmp_path / "records-x.jsonl").write_text(text[:-50])
    shown = run("bench", "tables", tmp_path)
    assert shown.code == 0 and "is cut off and is left out" in shown.stderr
    options = ("--windows", 3, "--out", tmp_path, "--device", "cpu", "--quiet", "--json")
    done = run("bench", "run", "--suite", suite, *options)
    assert json.loads(done.stdout)["done"] == 1 and json.loads(done.stdout)["skipped"] == 2


def test_a_folder_without_records(run: Run, tmp_path: Path) -> None:
    done = run("bench", "tables", tmp_path)
    assert done.code == 2 and "mvlstm bench run" in done.stderr


TUNE = ("--time", "when", "--window", 3, "--max-epochs", 1, "--device", "cpu", "--quiet")


def selecting(model: mv.MVLSTM, path: Path) -> float:
    """Return a model's error at the times that select."""
    forecast = model.predict(pd.read_csv(path))
    rows = model.fitted_.parts.calibration_rows(forecast.time).ravel()
    rows = (forecast.part.ravel() == "validation") & ~rows
    return float(np.sqrt(np.mean((forecast.mean.to_numpy() - forecast.actual.ravel())[rows] ** 2)))


def test_tune_ranks_settings_and_its_command_runs(run: Run, table: Path, tmp_path: Path) -> None:
    words = ("tune", table, "--target", "y", *TUNE, "--grid", "lr=0.001,0.01,hidden=2,3")
    out, state = tmp_path / "ranking.csv", tmp_path / "state"
    done = run(*words, "--out", out, "--records", state, "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    ranking = pd.read_csv(out)
    assert len(ranking) == 4 and ranking["valid_rmse"].is_monotonic_increasing
    assert found["best"]["hidden_size"] == ranking["hidden_size"][0]
    before = sorted(state.iterdir())
    again = json.loads(run(*words, "--records", state, "--json").stdout)
    assert again["ranking"] == found["ranking"] and sorted(state.iterdir()) == before
    command = shlex.split(found["command"])
    model = tmp_path / "model.safetensors"
    assert command[:2] == ["mvlstm", "fit"] and command[-2] == "--out"
    fitted = run(*command[1:-1], model, "--members", 1, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    assert model.exists()


def test_the_ranking_shows_different_settings_as_different(
    run: Run, table: Path, tmp_path: Path
) -> None:
    words = ("tune", table, "--target", "y", *TUNE, "--grid", "hidden=2,l2=0,1e-7,0.0001,1.5")
    done = run(*words, "--records", tmp_path / "state")
    assert done.code == 0, done.stderr
    cells = {word for line in done.stdout.splitlines() for word in line.split()}
    assert {"0", "1e-07", "0.0001", "1.5"} <= cells


def test_tune_by_absolute_errors(run: Run, table: Path, tmp_path: Path) -> None:
    words = ("tune", table, "--target", "y", *TUNE, "--grid", "lr=0.001,0.01,hidden=2,3")
    done = run(*words, "--measure", "mae", "--records", tmp_path / "state")
    assert done.code == 0 and "Settings by validation MAE" in done.stdout, done.stderr
    again = run(*words, "--measure", "mae", "--records", tmp_path / "state", "--json")
    errors = [one["valid_mae"] for one in json.loads(again.stdout)["ranking"]]
    assert errors == sorted(errors) and len(errors) == 4
    wrong = run(*words, "--measure", "mse")
    assert wrong.code == 2 and "choose 'rmse' or 'mae'" in wrong.stderr


def test_the_command_of_a_search_says_the_setting_exactly(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    frame = make_table(150)
    name = next(column for column in frame if column not in ("when", "y"))
    frame = frame.rename(columns={name: "a,b"})
    path = tmp_path / "my table.csv"
    frame.to_csv(path, index=False)
    grid = ("--grid", "lr=0.00123456789", "--grid", "hidden=2,l2_sum=true")
    words = ("tune", path, "--target", "y", *TUNE, *grid, "--exclude", "a,b")
    found = json.loads(run(*words, "--records", tmp_path / "state", "--json").stdout)
    assert found["best"]["learning_rate"] == 0.00123456789
    command = shlex.split(found["command"])
    model = tmp_path / "model.safetensors"
    fitted = run(*command[1:-1], model, "--members", 1, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    loaded = mv.load(model)
    assert loaded.get_params()["learning_rate"] == 0.00123456789
    assert loaded.get_params()["l2_sum"] is True


def test_the_command_of_a_search_has_its_seed(run: Run, table: Path, tmp_path: Path) -> None:
    words = ("tune", table, "--target", "y", *TUNE, "--grid", "hidden=2,link=none", "--seed", 3)
    found = json.loads(run(*words, "--records", tmp_path / "state", "--json").stdout)
    command = shlex.split(found["command"])
    model = tmp_path / "model.safetensors"
    fitted = run(*command[1:-1], model, "--members", 1, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    loaded = mv.load(model)
    assert loaded.get_params()["seed"] == 3
    assert found["ranking"][0]["valid_rmse"] == pytest.approx(selecting(loaded, table), rel=1e-4)


def test_a_search_for_a_target_alone_says_so(run: Run, table: Path, tmp_path: Path) -> None:
    words = ("tune", table, "--target", "y", *TUNE, "--grid", "hidden=2", "--variables", "")
    done = run(*words, "--records", tmp_path / "state", "--json")
    assert done.code == 0, done.stderr
    command = shlex.split(json.loads(done.stdout)["command"])
    model = tmp_path / "model.safetensors"
    fitted = run(*command[1:-1], model, "--members", 1, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    assert mv.load(model).fitted_.layout.names == ("y",)


def test_a_search_takes_columns_as_a_fit_does(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    frame = make_table(200)
    frame = frame.assign(kind=["dry", "wet"] * 100, day=[k % 3 for k in range(200)])
    frame["holiday"], frame["y"] = [float(k % 5 == 0) for k in range(200)], frame["y"].abs()
    path = tmp_path / "shop.csv"
    frame.to_csv(path, index=False)
    columns = ("--known", "holiday", "--categorical", "day", "--calendar", "hour")
    words = ("tune", path, "--target", "y", *TUNE, *columns, "--transform", "log1p")
    done = run(*words, "--grid", "hidden=2,3", "--records", tmp_path / "state", "--json")
    assert done.code == 0, done.stderr
    words = ("tune", path, "--target", "y", *TUNE, "--grid", "hidden=2,3", "--json")
    plain = run(*words, "--records", tmp_path / "plain")
    found, other = json.loads(done.stdout), json.loads(plain.stdout)
    assert found["ranking"] != other["ranking"]
    command = shlex.split(found["command"])
    model = tmp_path / "model.safetensors"
    fitted = run(*command[1:-1], model, "--members", 1, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    loaded = mv.load(model)
    assert loaded.fitted_.layout.known == ("holiday",)
    assert loaded.get_params()["transform"] == "log1p"
    assert set(loaded.fitted_.layout.categories) >= {"kind", "day"}
    assert "calendar" in loaded.fitted_.layout.names


def test_a_search_warns_of_its_table_once(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    rows = make_table(150)
    marked = [f"{v:,}".replace(",", ".") for v in (1000 + 200 * rows["y"]).round().astype(int)]
    path = tmp_path / "marked.csv"
    rows.assign(y=marked).to_csv(path, index=False, sep=";")
    words = ("tune", os.path.relpath(path), "--target", "y", *TUNE, "--grid", "hidden=2")
    done = run(*words, "--records", tmp_path / "state", "--json")
    assert done.code == 0, done.stderr
    assert done.stderr.count("look like marks of thousands") == 1


def test_what_was_done_to_the_table_is_noted(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    rows = make_table(150)
    rows.loc[10:14, "x1"] = np.nan
    path = tmp_path / "holes.csv"
    rows.to_csv(path, index=False)
    columns = (path, "--target", "y", "--missing", "drop", "--gaps", "close")
    tune = ("tune", *columns, *TUNE, "--grid", "hidden=2", "--records", tmp_path / "state")
    compare = ("compare", *columns, "--time", "when", "--window", 4, "--methods", "ar", "--quiet")
    for words in (tune, compare):
        done = run(*words, "--json")
        assert done.code == 0, done.stderr
        found = json.loads(done.stdout)
        for one in found if isinstance(found, list) else [found]:
            assert any("Dropped 5 of 150 rows" in note for note in one["notes"])
        assert "note: Dropped 5 of 150 rows" in run(*words).stdout


def test_a_search_over_several_series(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    north = make_table(150).assign(shop="north")
    south = make_table(150).iloc[50:].assign(shop="south")
    south["y"] = 1000.0 + 50.0 * south["y"]
    path = tmp_path / "shops.csv"
    pd.concat([north, south]).to_csv(path, index=False)
    words = ("tune", path, "--target", "y", "--series", "shop", *TUNE)
    done = run(*words, "--grid", "hidden=2,3,link=none", "--records", tmp_path / "state", "--json")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    command = shlex.split(found["command"])
    model = tmp_path / "model.safetensors"
    fitted = run(*command[1:-1], model, "--members", 1, "--seed", 0, "--device", "cpu", "--quiet")
    assert fitted.code == 0, fitted.stderr
    loaded = mv.load(model)
    assert loaded.fitted_.layout.series == "shop"
    assert found["ranking"][0]["valid_rmse"] == pytest.approx(selecting(loaded, path), rel=1e-4)


def test_tune_notices_that_the_table_has_changed(run: Run, tmp_path: Path) -> None:
    from cli.conftest import make_table

    path = tmp_path / "t.csv"
    words = ("tune", path, "--target", "y", *TUNE, "--grid", "hidden=2")
    rankings = []
    for rows in (200, 220):
        make_table(rows).to_csv(path, index=False)
        done = run(*words, "--records", tmp_path / "state", "--json")
        rankings.append(json.loads(done.stdout)["ranking"])
    assert rankings[0] != rankings[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--grid", "foo=1"), "names 'foo'"),
        (("--grid", "0.1,0.2"), "give names with values"),
        (("--grid", "lr=0.01,x"), "learning_rate the value 'x', which is not a number"),
        (("--preset", "best"), "preset='best'"),
        (("--grid", "cell=lstn"), "cell='lstn' is not an option"),
        (("--grid", "l2=1e-5,-1"), "l2=-1 must not be negative"),
        (("--grid", "dropout=0,2"), "dropout=2 must be"),
        (("--grid", "lr=-1"), "learning_rate=-1 must be positive"),
        (("--grid", "lr=0.001,0"), "learning_rate=0 must be positive"),
        (("--grid", "hidden=2.5"), "hidden_size=2.5 must be a whole number"),
        (("--seeds", "0"), "seeds=0 must be a whole number"),
        (("--seeds", "-1"), "seeds=-1 must be a whole number"),
        (("--window", "1"), "window=1 must be a whole number"),
        (("--window", "1000"), "too few"),
        (("--horizon", "0"), "horizon=0 must be a whole number"),
        (("--max-epochs", "0"), "max_epochs=0 must be a whole number"),
        (("--test", "1.5"), "test=1.5 is neither"),
        (("--test", "nan"), "test=nan must be a fraction"),
        (("--valid", "0"), "valid=0 leaves no rows"),
    ],
)
def test_tune_refuses_bad_input(
    run: Run, table: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = run("tune", table, "--target", "y", *TUNE, *words, "--records", tmp_path / "state")
    assert done.code == 2 and message in done.stderr
    assert not (tmp_path / "state").exists()  # nothing was trained
    missing = run("tune", table, "--target", "z", *TUNE, "--records", tmp_path / "state")
    assert missing.code == 2 and "'z'" in missing.stderr


def test_a_search_that_its_table_forbids_ends_with_the_code_of_bad_input(
    run: Run, tmp_path: Path
) -> None:
    from cli.conftest import make_table

    frame = make_table(150)
    frame.loc[: len(frame) * 3 // 4, "y"] = 1.0  # nothing to learn in the training rows
    path = tmp_path / "flat.csv"
    frame.to_csv(path, index=False)
    words = ("tune", path, "--target", "y", *TUNE, "--grid", "hidden=2,3")
    done = run(*words, "--records", tmp_path / "state")
    assert done.code == 2 and "No setting could be trained: Target 'y' is always 1" in done.stderr


def test_fetch_tells_what_it_cannot_get(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path))
    for words, message in (
        (("plant",), "cannot be downloaded"),
        (("pm25", "--source", "http://127.0.0.1:9/x.zip"), "Check the network"),
        (("pm2.5",), "Did you mean 'pm25'?"),
        (("pm25", "energy", "--source", "a.zip"), "archive of one data set"),
    ):
        done = run("data", "fetch", *words, "--quiet")
        assert done.code == 2 and message in done.stderr
    assert not list(tmp_path.iterdir())
