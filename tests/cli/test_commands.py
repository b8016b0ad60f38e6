"""What the commands print and write when all goes well."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.model import explaining
from mvlstm.progress import show_tasks

from .conftest import TINY, Run, make_table


def test_fit_writes_a_model_that_loads(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    done = run(
        "fit", table, "--target", "y", "--time", "when", *TINY, "--loss", "mse", "--out", out
    )
    assert done.code == 0, done.stderr
    assert f"wrote {out}" in done.stdout
    assert done.stderr == ""
    model = mv.load(out)
    assert model.get_params()["loss"] == "mse"
    assert model.get_params()["window"] == 4
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_fit_leaves_defaults_to_the_constructor(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def fit(self: mv.MVLSTM, table: pd.DataFrame, target: str, **options: object) -> None:
        seen.update(self.get_params(), **options)
        raise mv.errors.DataError("enough seen")

    monkeypatch.setattr(mv.MVLSTM, "fit", fit)
    run("fit", table, "--target", "y", "--quiet", "--out", tmp_path / "m.safetensors")
    assert {k: seen[k] for k in mv.MVLSTM().get_params()} == {
        **mv.MVLSTM().get_params(),
        "verbose": 0,
    }
    run(
        *("fit", table, "--target", "y", "--preset", "paper", "--sigma", "0.5", "--test", "48"),
        *("--time", "when", "--exclude", "x1,x2", "--out", tmp_path / "m.safetensors"),
    )
    assert seen["loss"] == mv.MVLSTM.paper().get_params()["loss"]
    assert seen["sigma"] == 0.5
    assert seen["test"] == 48
    assert seen["time"] == ["when"]
    assert seen["exclude"] == ["x1", "x2"]
    assert "valid" not in seen


def test_fit_reads_several_time_columns(run: Run, tmp_path: Path) -> None:
    frame = make_table()
    when = frame.pop("when").dt
    frame = frame.assign(year=when.year, month=when.month, day=when.day, hour=when.hour)
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    done = run(
        *("fit", tmp_path / "t.csv", "--target", "y", "--time", "year,month,day,hour", *TINY),
        *("--sep", ";", "--decimal", ",", "--out", tmp_path / "m.safetensors", "--json"),
    )
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["variables"] == ["x1", "x2", "y"]


def test_fit_shows_plain_lines_where_there_is_no_terminal(
    run: Run, table: Path, tmp_path: Path
) -> None:
    loud = [word for word in TINY if word != "--quiet"]
    out = tmp_path / "m.safetensors"
    done = run("fit", table, "--target", "y", "--time", "when", *loud, "--out", out, "--json")
    assert "epoch" in done.stderr
    assert "\r" not in done.stderr
    json.loads(done.stdout)


def test_forecast(run: Run, model: Path, table: Path) -> None:
    done = run("forecast", model, table)
    assert done.code == 0, done.stderr
    assert "2024-01-11 00:00:00" in done.stdout
    assert "q95" in done.stdout


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_forecast_writes_the_table(
    run: Run, model: Path, table: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"next{suffix}"
    done = run("forecast", model, table, "--out", out)
    assert done.code == 0, done.stderr
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".json": pd.read_json}[suffix]
    rows = read(out)
    assert list(rows.columns) == ["origin", "step", "time", "mean", "median", "q05", "q95", "part"]
    assert len(rows) == 1
    expected = mv.load(model).forecast(pd.read_csv(table)).mean.iloc[0]
    assert rows["mean"][0] == pytest.approx(expected, rel=1e-6)
    assert [p.name for p in tmp_path.iterdir()] == [out.name]


def test_evaluate(run: Run, model: Path, table: Path) -> None:
    done = run("evaluate", model, table)
    assert done.code == 0, done.stderr
    assert "persistence" in done.stdout
    scores = json.loads(run("evaluate", model, table, "--json").stdout)
    assert scores["part"] == "new"
    assert scores["scores"]["persistence"]["n"] == 48
    times = pd.read_csv(table)["when"]
    first, last = (pd.Timestamp(time) for time in (times.iloc[-48], times.iloc[-1]))
    assert scores["period"] == [first.isoformat(), last.isoformat()]


def test_what_to_run_next_reads_the_table_in_the_same_way(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "german.csv", tmp_path / "m.safetensors"
    make_table().to_csv(path, sep=";", decimal=",", index=False)
    reading = ("--sep", ";", "--decimal", ",")
    done = run("fit", path, "--target", "y", "--time", "when", *reading, *TINY, "--out", out)
    assert done.code == 0, done.stderr
    following = next(line for line in done.stdout.splitlines() if line.startswith("next: "))
    words = shlex.split(following.removeprefix("next: mvlstm "))
    assert words == ["evaluate", str(out), str(path), *reading]
    assert run(*words).code == 0


def test_explain(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "importance.csv"
    done = run("explain", model, table, "--effort", "quick", "--control", "fdr", "--out", out)
    assert done.code == 0, done.stderr
    assert "predictive, not causal" in done.stdout and "at most 5 % are false" in done.stdout
    assert set(pd.read_csv(out)["variable"]) == {"x1", "x2", "y"}


def test_explain_shows_what_moves_together(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "twins.csv", tmp_path / "m.safetensors"
    rows = make_table()
    rows.assign(x3=2 * rows["x1"] + 1).to_csv(path, index=False)
    mv.AR(window=4).fit(pd.read_csv(path), "y", time="when", test=0.2).save(out)
    done = run("explain", out, path, "--effort", "quick", "--quiet")
    assert done.code == 0, done.stderr
    assert "Variables that move together" in done.stdout
    assert "x1 + x3" in done.stdout
    assert "All other variables together are " in done.stdout


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_of_explain_and_report(
    run: Run, model: Path, table: Path, tmp_path: Path, monkeypatch, quiet
) -> None:
    monkeypatch.setattr(explaining, "show_tasks", partial(show_tasks, every=0.0))
    asked = ("--effort", "quick", *["--quiet"] * quiet)
    for command in (("explain",), ("report", "--out", tmp_path / "page.html")):
        done = run(command[0], model, table, *command[1:], *asked)
        assert done.code == 0, done.stderr
        assert ("explain: 1/" in done.stderr) != quiet


@pytest.mark.parametrize(
    "words",
    [("forecast",), ("evaluate",), ("explain", "--effort", "quick")],
    ids=lambda words: words[0],
)
def test_json_is_all_there_is_on_stdout(
    run: Run, model: Path, table: Path, words: tuple[str, ...]
) -> None:
    done = run(words[0], model, table, *words[1:], "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["warnings"] == []


def test_every_command_says_what_was_done_to_the_table(run: Run, tmp_path: Path) -> None:
    holed, model = tmp_path / "holed.csv", tmp_path / "m.safetensors"
    rows = make_table()
    rows.loc[[40, 41], rows.columns[1]] = float("nan")
    rows.to_csv(holed, index=False)
    fit = ("fit", holed, "--target", "y", "--time", "when", "--missing", "fill", "--test", "0.2")
    quick = ("--effort", "quick")
    for words in (
        (*fit, *TINY, "--out", model),
        ("forecast", model, holed),
        ("evaluate", model, holed),
        ("explain", model, holed, *quick),
        ("report", model, holed, *quick, "--out", tmp_path / "page.html"),
    ):
        shown, found = run(*words), json.loads(run(*words, "--json").stdout)
        assert "Filled 2 missing values with the last known one." in found["notes"], words[0]
        told = [line[6:] for line in shown.stdout.splitlines() if line.startswith("note: ")]
        assert told == list(dict.fromkeys(found["notes"])), words[0]


def test_data_list_and_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path))
    assert run("data", "path").stdout.strip() == str(tmp_path)
    listed = json.loads(run("data", "list", "--json").stdout)["datasets"]
    assert {"synthetic", "lorenz96"} <= {row["name"] for row in listed}
    assert "synthetic" in run("data", "list").stdout


@pytest.mark.parametrize(
    "command", ["demo", "fit", "forecast", "evaluate", "update", "explain", "data"]
)
def test_help_shows_an_example(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.code == 0
    assert f"Example: mvlstm {command}" in done.stdout


def test_no_command_shows_the_list(run: Run) -> None:
    assert "forecast" in run("--help").stdout
    assert run("--version").stdout == f"mvlstm {mv.__version__}\n"


def test_forecast_writes_the_quantiles_asked_for(
    run: Run, model: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "next.csv"
    done = run("forecast", model, table, "--quantiles", "0.1,0.9", "--json", "--out", out)
    row, written = json.loads(done.stdout)["rows"][0], pd.read_csv(out).iloc[0]
    assert row["q05"] < row["q10"] < row["median"] < row["q90"] < row["q95"]
    assert written["q90"] == pytest.approx(row["q90"])
    for wrong, words in (
        ("10,90", "strictly between 0 and 1"),
        ("a", "give numbers such as 0.1,0.9"),
    ):
        done = run("forecast", model, table, "--quantiles", wrong)
        assert done.code == 2 and words in done.stderr


def test_forecast_writes_joint_paths(run: Run, model: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "paths.csv"
    assert run("forecast", model, table, "--paths", "3", "--out", out).code == 0
    written = pd.read_csv(out)
    assert list(written.columns) == ["path", "origin", "step", "time", "value"]
    assert written["path"].nunique() == 3
    done = run("forecast", model, table, "--paths", "0", "--out", out)
    assert done.code == 2
    assert "--paths=0 must be a whole number" in done.stderr
    done = run("forecast", model, table, "--paths", "3")
    assert done.code == 2 and "add --out FILE" in done.stderr


def test_importance_is_written_alike_however_small() -> None:
    import io

    from rich.console import Console

    from mvlstm.cli.explain import importance_table

    share = [0.99, 0.0004, 4e-6]
    rows = {"variable": ["y", "a", "b"], "error_increase": [7.856, 0.004, -2e-5], "verdict": "weak"}
    rows |= dict.fromkeys(("importance", "low", "high", "posterior"), share)
    stream = io.StringIO()
    Console(file=stream, width=100).print(importance_table(pd.DataFrame(rows), title="t"))
    lines = [line.split() for line in stream.getvalue().splitlines() if "weak" in line]
    assert [line[1:4] for line in lines] == [["0.990"] * 3, ["0.000"] * 3, ["0.000"] * 3]
    assert [line[4] for line in lines] == ["7.86", "0.00", "0.00"]


def test_numbers_of_very_different_size_all_show() -> None:
    from mvlstm.cli.session import _numbers

    assert _numbers([3e6, 0.00125, 0.0], 4) == ["3000000", "0.001250", "0.000"]
    close = [1000.003, 1000.009, 0.02]
    assert _numbers(close, 4, finest=0.002) == ["1000.0030", "1000.0090", "0.0200"]
    assert _numbers([3.0861, 0.001], 4) == ["3.086", "0.001"]


def test_narrow_intervals_at_a_high_level_can_be_read() -> None:
    from mvlstm.cli.session import _numbers

    assert _numbers([1000.0103, 1000.0107], 4) == ["1000", "1000"]
    assert _numbers([1000.0103, 1000.0107], 4, 4e-4) == ["1000.01030", "1000.01070"]
    assert _numbers([1.0009e10, 1.0013e10], 4, 4e6) == ["1.00090e+10", "1.00130e+10"]
    assert _numbers([1.0009e-7, 1.0013e-7], 4, 4e-11) == ["1.00090e-07", "1.00130e-07"]
