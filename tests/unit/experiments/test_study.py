"""What the study adds to `mvlstm bench`: printed numbers, importance, attention, Granger tests."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from experiments.compact import compact
from experiments.importance_tables import _text, precision_at, spark
from experiments.paper import (
    OTHER_ROWS,
    SAME_ROWS,
    SYNTHETIC,
    paper_notes,
    paper_score,
    paper_tables,
)
from experiments.study import STUDY
from made_records import assert_alike
from mvlstm.bench.records import Records, read_records
from mvlstm.bench.spec import Suite
from mvlstm.bench.studies import load_study
from mvlstm.bench.suite_files import load_suite, suite_names
from mvlstm.bench.tables import make_tables
from mvlstm.errors import ParameterError
from unit.bench.test_tables import find, rewritten

PROJECT = Path(__file__).resolve().parents[3]
BUDGETS = {"paper": ("medium", "paper")}


@pytest.fixture
def in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def test_the_papers_numbers_are_carried() -> None:
    assert paper_score("MV-LSTM", "pm25", 10, "RMSE") == (24.73, 0.06)
    assert paper_score("ENET", "plant", 10, "MAE") == (137.16, 0.6)
    assert paper_score("AR", "pm25", 30, "RMSE") is None
    assert paper_score("MV-LSTM", "lorenz96", 30, "RMSE") is None
    cells = sum(
        len(by_set)
        for window in ("10", "20", "30")
        for by_method in paper_tables()[window].values()
        for by_set in by_method.values()
    )
    assert cells == 264


def test_printed_numbers_stand_beside_ours(folder: Path, records: Records, tmp_path: Path) -> None:
    table = find(make_tables(folder).tables, "RMSE, window 3, protocol chronological")
    assert "synthetic, paper" not in table.shown  # the paper has no window of 3
    lines = json.loads(json.dumps(list(records.found)))
    for one in lines:
        one["job"]["window"] = 10
    tables = make_tables(rewritten(folder, tmp_path / "b", lines)).tables
    table = find(tables, "RMSE, window 10, protocol chronological")
    mean, error = paper_score("MV-LSTM", "synthetic", 10, "RMSE") or (0.0, 0.0)
    row = table.numbers.set_index("method").loc["MV-LSTM"]
    assert (row["paper"], row["paper_standard_error"]) == (mean, error)
    assert table.notes == (SYNTHETIC,)
    assert paper_notes("authors", {"pm25"}) == [SAME_ROWS]
    assert paper_notes("chronological", {"pm25", "synthetic"}) == [OTHER_ROWS, SYNTHETIC]


def test_importance_marks_the_truth_and_measures_rankings(folder: Path) -> None:
    tables = make_tables(folder).tables
    table = find(tables, "window 3, protocol chronological: importance.")
    marked = [name for name in table.shown["variable"] if "★" in name]
    assert marked == ["x2 ★", "x3 ★"]
    assert "MV-LSTM, posterior" in table.shown and "MV-LSTM, paper" in table.shown
    assert find(tables, "importance by scrambling").shown["MV-LSTM"].str.len().gt(0).any()
    quality = find(tables, "window 3, protocol chronological: how well").numbers
    assert quality["auroc"].between(0, 1).all()
    tests = find(tables, "Granger tests")
    assert set(tests.numbers["variable"]) == {f"x{k}" for k in range(10)}


def test_histograms_add_up(folder: Path) -> None:
    table = find(make_tables(folder).tables, "MV-LSTM on synthetic, window 3")
    totals = table.numbers.groupby(["variable", "attention"])["count"].sum()
    assert totals.nunique() == 1 and totals.iloc[0] > 0
    assert table.figure is not None


def test_histograms_can_be_left_out(folder: Path) -> None:
    every, some = (make_tables(folder, attention=wanted) for wanted in (True, False))
    left_out = [one for one in every.sections if one.title.endswith(": attention")]
    titles = [one.title for one in some.sections]
    assert left_out and titles == [s.title for s in every.sections if s not in left_out]


def test_importance_of_methods_of_one_label_is_told_apart(
    folder: Path, records: Records, tmp_path: Path
) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    twin = json.loads(json.dumps(next(one for one in lines if one["job"]["method"] == "mv")))
    twin["key"], twin["job"]["method"] = "twin", "mv2"
    twin["attention"]["posterior"] = [[0.5] + [0.05] * 10] * 2
    tables = make_tables(rewritten(folder, tmp_path / "b", [*lines, twin])).tables
    importance = find(tables, "window 3, protocol chronological: importance.").shown
    (first,) = importance.index[importance["variable"].str.startswith("x0")]
    assert importance["MV-LSTM (mv2), posterior"][first] == "0.500 ± 0.000"
    assert importance["MV-LSTM (mv), posterior"][first] != "0.500 ± 0.000"
    ranked = [float(text.split()[0]) for text in importance.iloc[:, 1]]
    assert ranked == sorted(ranked, reverse=True)


def test_numbers_are_written_in_short() -> None:
    shares = [_text(m, e) for m, e in ((0.0264, 0.0062), (0.05812, 0.00023), (0.5, 0.0))]
    assert shares == ["0.026 ± 0.006", "0.0581 ± 0.0002", "0.500 ± 0.000"]
    assert spark([0, 0, 0, 0], bins=4) == "    "
    assert precision_at(np.array([3.0, 1.0, 2.0]), np.array([True, True, False])) == 0.5


def test_jobs_without_a_window_are_kept_for_every_window(suite: Suite) -> None:
    chosen = suite.select(methods=["ar"], windows=[3])
    assert {job.method for job in chosen.jobs} == {"ar", "granger"}
    with pytest.raises(ParameterError, match="Nothing of suite"):
        suite.select(parts=["granger"], methods=["ar"])


def test_records_whose_study_is_gone_still_have_tables(
    folder: Path, records: Records, tmp_path: Path
) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    for one in lines:
        one["job"]["study"] = "nowhere/study.py"
    document = make_tables(rewritten(folder, tmp_path / "b", lines))
    assert find(document.tables, "synthetic, window 3, protocol chronological: all")
    assert not [table for table in document.tables if "Granger" in table.title]
    (problem,) = document.problems
    assert "'nowhere/study.py', which is not here" in problem


def test_every_suite_here_can_be_read(in_the_clone: None) -> None:
    assert set(suite_names()) == {
        *("ablation", "accuracy", "epf", "granger", "grid", "importance", "paper", "search"),
    }
    for name in suite_names():
        suite = load_suite(name)
        assert suite.jobs and all(job.study == "experiments/study.py" for job in suite.jobs)
        assert load_study(suite.jobs[0].study) is STUDY


@pytest.mark.parametrize("name", ["accuracy", "grid", "paper"])
def test_finished_work_is_not_run_again(in_the_clone: None, name: str) -> None:
    """Keys of jobs are those of the records: another key would run the cell anew."""
    done = read_records("experiments/records").done
    suites = [load_suite(name, budget=budget) for budget in BUDGETS.get(name, (None,))]
    keys = {job.key for suite in suites for job in suite.jobs}
    assert {key for key, one in done.items() if one["job"]["suite"] == name} <= keys
    assert keys & done.keys()


def test_the_papers_suite_holds_the_papers_experiments(in_the_clone: None) -> None:
    suite = load_suite("paper", budget="paper")
    windows = {(j.dataset, j.protocol, j.window) for j in suite.jobs if j.kind == "forecast"}
    for window in (10, 20, 30):
        for dataset in ("energy", "pm25"):
            assert (dataset, "authors", window) in windows
            assert (dataset, "chronological", window) in windows
        assert ("plant", "authors", window) in windows
        assert ("synthetic", "chronological", window) in windows
    assert not any(dataset == "synthetic" and p == "authors" for dataset, p, _ in windows)
    labels = {job.label for job in suite.jobs}
    papers = {"STRX", "ARIMAX", "RF", "XGT", "ENET", "DUAL", "RETAIN", "cLSTM"}
    assert labels >= papers | {"MV-LSTM", "MV-Indep", "MV-Fusion", "MV-GRU", "MV-LSTM, 2 layers"}
    ours = next(job for job in suite.jobs if job.label == "MV-LSTM")
    assert ours.repeats == 10
    assert ours.grid == {
        "hidden_size": [10, 15, 20, 25],
        "learning_rate": [0.0005, 0.001, 0.005, 0.01, 0.05],
        "l2": [0.0001, 0.001, 0.01, 0.1, 1.0],
    }
    made_up = next(job for job in suite.jobs if job.dataset == "synthetic")
    assert made_up.data == {"sequences": 40000}


def test_the_package_never_imports_experiments() -> None:
    for path in (PROJECT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [one for one in names if one.split(".")[0] == "experiments"], path


def test_settings_are_put_side_by_side(folder: Path, records: Records, tmp_path: Path) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    ours = [one for one in lines if one["job"]["method"] == "mv"]
    other = json.loads(json.dumps(ours[0]))
    ours[0]["job"]["setting"], other["job"]["setting"], other["key"] = "link=none", "link=last", "b"
    other["ensemble"]["valid_rmse"] = [ours[0]["ensemble"]["valid_rmse"][0] / 2]
    tables = make_tables(rewritten(folder, tmp_path / "b", [*lines, other])).tables
    rows = find(tables, "mv on synthetic, window 3, chronological: settings side by side").shown
    assert rows["setting"].tolist() == ["link=last", "link=none"]  # the best first


def test_a_run_is_added_to_what_is_kept(folder: Path, records: Records, tmp_path: Path) -> None:
    (file,) = compact(folder, tmp_path / "kept")
    assert file.name == "records-small.parquet"
    kept = read_records(tmp_path / "kept")
    assert_alike(list(kept.found), list(records.found))
    again = json.loads(json.dumps(next(o for o in records.found if o["job"]["method"] == "mv")))
    again["written"], again["job"]["repeats"], again["key"] = "2999-01-01", 3, "again"
    compact(rewritten(folder, tmp_path / "new", [again]), tmp_path / "kept")
    after = read_records(tmp_path / "kept").done
    assert len(after) == len(kept.done) and "again" in after
    assert make_tables(tmp_path / "kept").problems == ()
