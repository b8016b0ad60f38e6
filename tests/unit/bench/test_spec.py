"""Suites: names are checked, grids and budgets are taken apart, jobs have stable keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mvlstm.bench.records import read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Job, Suite
from mvlstm.bench.suite_files import load_suite, parse_suite, suite_names
from mvlstm.bench.tables import make_tables
from mvlstm.errors import ParameterError
from unit.bench.conftest import SMALL, small_tree


def parse(tree: dict[str, Any], **options: Any) -> Suite:
    return parse_suite(tree, default_name="small", **options)


def test_suites_are_found_by_name_in_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert suite_names() == ()
    with pytest.raises(ParameterError, match=r"no suite 'small'.*has no folder.*a \.toml file"):
        load_suite("small")
    (tmp_path / "experiments" / "suites").mkdir(parents=True)
    (tmp_path / "experiments" / "suites" / "small.toml").write_text(SMALL)
    assert suite_names() == ("small",)
    assert load_suite("small").jobs == load_suite("experiments/suites/small.toml").jobs
    with pytest.raises(ParameterError, match=r"no suite 'smal'.*Did you mean 'small'"):
        load_suite("smal")


STUDY = """
from mvlstm.bench.cells import load_rows, plain_cell
from mvlstm.bench.studies import Kind, Protocol, Study

def halves(job, *, local):
    return plain_cell(load_rows(job), end=100, test=50, valid=10)

def count(job, device):
    return {"counted": len(job.dataset), "timings": {"total": 0.0}}

def listed(part, repeats, members):
    yield {"part": part, "dataset": "made", "method": "m", "data": {"made": True}}

STUDY = Study(
    protocols={"halves": Protocol(halves, {"synthetic"})},
    kinds={"count": Kind(count, "Count"), "list": Kind(count, "List", listed)},
)
"""
STUDIED = """
study = "counting.py"
data.synthetic.n = 100
[[parts]]
name = "halves"
datasets = ["synthetic", "lorenz96"]
protocols = ["halves"]
windows = [3]
methods = ["ar"]
explain = false
[[parts]]
name = "counts"
kind = "count"
datasets = ["synthetic"]
[[parts]]
name = "lists"
kind = "list"
"""


def test_a_study_adds_protocols_and_kinds_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "counting.py").write_text(STUDY)
    (tmp_path / "mine" / "suite.toml").write_text(STUDIED)
    suite = load_suite("mine/suite.toml")
    assert [job.dataset for job in suite.jobs] == ["synthetic", "synthetic", "made"]
    assert {job.study for job in suite.jobs} == {"mine/counting.py"}
    assert suite.jobs[1].window == 0 and suite.jobs[1].label == "Count"
    assert replace(suite.jobs[0], study="").key == suite.jobs[0].key
    summary = run_suite(suite, tmp_path / "out", device="cpu", verbose=0)
    assert summary.failed == 0, summary.errors
    done = read_records(tmp_path / "out").found
    assert done[0]["n"] == 50  # half of the rows
    assert [one["counted"] for one in done[1:]] == [9, 4]
    assert make_tables(tmp_path / "out").problems == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "no attribute 'STUDY'"),
        ("raise OSError('broken')", "OSError: broken"),
        ("STUDY = 3", "STUDY = 3"),
    ],
)
def test_a_study_that_is_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    name = f"study_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "suite.toml").write_text(STUDIED.replace("counting", name))
    with pytest.raises(ParameterError, match=words):
        load_suite(str(tmp_path / "suite.toml"))
    with pytest.raises(ParameterError, match="must be the path of a file"):
        parse({**small_tree(), "study": 3})


def test_a_budget_changes_repeats_data_and_epochs() -> None:
    quick, full = (parse(small_tree(), budget=name) for name in ("quick", "paper"))
    assert parse(small_tree()).budget == "quick"  # the first is the default
    assert quick.jobs[2].repeats == 2 and full.jobs[2].repeats == 3
    assert quick.jobs[2].windows_seen == 600 and full.jobs[2].windows_seen is None
    assert quick.jobs[2].data == {"sequences": 300} and full.jobs[2].data == {}


def test_numbers_given_on_the_call_come_first() -> None:
    suite = parse(small_tree(), changes={"repeats": 7, "members": 4, "seed": 5})
    assert {(job.repeats, job.members, job.seed) for job in suite.jobs} == {(7, 4, 5)}


def test_settings_side_by_side_are_jobs_of_their_own() -> None:
    tree = small_tree()
    tree["methods"]["mv"]["each"] = {"link": ["none", "last"], "layers": [1, 2]}
    jobs = [job for job in parse(tree).jobs if job.method == "mv"]
    assert [job.setting for job in jobs] == [
        "link=none,layers=1",
        "link=none,layers=2",
        "link=last,layers=1",
        "link=last,layers=2",
    ]
    assert jobs[3].settings == {"hidden_size": 2, "link": "last", "layers": 2}
    assert len({job.key for job in jobs}) == 4


def test_a_key_depends_on_the_work_and_on_nothing_else() -> None:
    job = Job(suite="s", part="p", dataset="synthetic", method="ar", settings={"a": 1, "b": 2})
    again = Job.from_dict({**job.to_dict(), "settings": {"b": 2, "a": 1}})
    assert again.key == job.key == replace(job, place=9).key
    changed = [
        replace(job, seed=1),
        replace(job, window=31),
        replace(job, settings={"a": 1, "b": 3}),
        replace(job, data={"n": 5}),
        replace(job, fold=2, folds=3),
    ]
    assert len({job.key, *(one.key for one in changed)}) == 6
    assert "/" not in replace(job, setting="a=b/c d").key


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part": [1]}, ("'part'", "Did you mean 'parts'?")),
        ({"parts": []}, ("no [[parts]]",)),
        ({"parts": [{"datasets": ["pm2.5"], "methods": ["ar"]}]}, ("'pm2.5'", "'pm25'")),
        ({"parts": [{"datasets": ["pm25"], "methods": ["arr"]}]}, ("'arr'", "'ar'")),
        ({"parts": [{"datasets": ["pm25"]}]}, ("lists no methods",)),
        (
            {"parts": [{"datasets": ["pm25"], "methods": ["ar"], "protocols": ["author"]}]},
            ("'author'", "choose from chronological"),
        ),
        ({"parts": [{"datasets": ["pm25"], "methods": ["ar"], "kind": "x"}]}, ("kind", "'x'")),
        ({"parts": [{"datasets": ["pm25"], "methods": ["ar"], "repeats": 0}]}, ("repeats=0",)),
        (
            {"parts": [{"datasets": ["pm25"], "methods": ["ar"], "windows": ["ten"]}]},
            ("windows='ten'", "whole number"),
        ),
        ({"parts": [{"datasets": ["pm25"], "methods": ["ar"], "folds": 0}]}, ("folds=0",)),
        (
            {"methods": {"ar": {"settings": {"windov": 3}}}},
            ("'windov'", "method 'ar'", "Did you mean 'window'?"),
        ),
        ({"methods": {"ar": {"grid": {"window": 3}}}}, ("a list of values", "window")),
        ({"methods": {"mvlsm": {"settings": {}}}}, ("'mvlsm'", "'mvlstm'")),  # used by no part
        ({"data": {"synthetic": {"rows": 3}}}, ("'synthetic' has no option 'rows'",)),
        ({"data": {"pm2.5": {}}}, ("'pm2.5'", "'pm25'")),
        ({"budgets": {"quick": {"windows_seen": "x"}}}, ("windows_seen='x'", "whole number")),
        ({"budgets": {"quick": {"tune_seeds": 0}}}, ("tune_seeds=0",)),
        ({"parts": [{"datasets": [], "methods": ["ar"]}]}, ("datasets must be a list",)),
        (
            {"parts": [{"datasets": ["pm25"], "methods": ["ar"], "windows": [6.5]}]},
            ("windows cannot hold 6.5", "whole numbers"),
        ),
        (
            {
                "data": {"mon": {"file": "mon.csv", "target": "y"}},
                "parts": [{"datasets": ["mox"], "methods": ["ar"]}],
            },
            ("'mox'", "choose from mon, ", "synthetic", "Did you mean 'mon'?"),
        ),
        ({"parts": [{"datasets": 1.5, "methods": ["ar"]}]}, ("datasets must be a list", "1.5")),
    ],
)
def test_what_is_wrong_in_a_suite_is_named(change: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError) as caught:
        parse({**small_tree(), **change})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": {"learning_rate": [0.001, -0.001]}}, "learning_rate=-0.001 must be positive"),
        ({"settings": {"hidden_size": 2.5}}, "hidden_size=2.5 must be a whole number"),
        ({"each": {"cell": ["lstm", "lstn"]}}, "cell='lstn' is not an option"),
    ],
)
def test_values_that_settings_cannot_have_are_refused(change: dict[str, Any], message: str) -> None:
    tree = small_tree()
    tree["methods"]["mv"] |= change
    with pytest.raises(ParameterError, match=f"method 'mv': {message}"):
        parse(tree)


@pytest.mark.parametrize("value", [3, "x", 1.5, True, [], ["x"], [[1]]])
@pytest.mark.parametrize(
    "place",
    [
        ("budgets",),
        ("budgets", "quick"),
        ("budgets", "quick", "data"),
        ("data",),
        ("data", "synthetic"),
        ("methods",),
        ("methods", "mv"),
        ("methods", "mv", "settings"),
        ("methods", "mv", "grid"),
        ("methods", "mv", "each"),
        ("parts",),
        ("parts", 0),
        ("parts", 0, "datasets", 0),
        ("parts", 0, "methods", 0),
    ],
)
def test_entries_of_a_wrong_kind_are_refused(place: tuple[Any, ...], value: Any) -> None:
    tree: Any = small_tree()
    at = tree
    for name in place[:-1]:
        at = at.setdefault(name, {}) if isinstance(at, dict) else at[name]
    at[place[-1]] = value
    with pytest.raises(ParameterError):
        parse(tree)


def test_a_suite_that_lists_a_job_twice_is_refused() -> None:
    tree = small_tree()
    tree["parts"] = [tree["parts"][0], tree["parts"][0]]
    with pytest.raises(ParameterError, match="same job twice"):
        parse(tree)


def test_an_unknown_budget_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"no budget 'fast'.*quick, paper"):
        parse(small_tree(), budget="fast")
    with pytest.raises(ParameterError, match="cannot be read"):
        load_suite(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text("a = [")
    with pytest.raises(ParameterError, match="not valid TOML"):
        load_suite(str(tmp_path / "bad.toml"))


def test_jobs_are_selected_by_what_they_are(suite: Suite) -> None:
    chosen = suite.select(methods=["ar"], windows=[3])
    assert {job.method for job in chosen.jobs} == {"ar"}
    assert {job.part for job in suite.select(parts=["steps"]).jobs} == {"steps"}
    with pytest.raises(ParameterError, match=r"no method 'aar' in suite 'small'.*'ar'"):
        suite.select(methods=["aar"])
    with pytest.raises(ParameterError, match="no window '7'"):
        suite.select(windows=[7])
    with pytest.raises(ParameterError, match="Nothing of suite"):
        suite.select(parts=["steps"], methods=["mv"])


def test_a_suite_beyond_reason_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = small_tree()
    with pytest.raises(ParameterError, match=r"folds=1000000000 is more than 1,000"):
        parse(tree | {"parts": [tree["parts"][0] | {"folds": 10**9}]})
    monkeypatch.setattr("mvlstm.bench.suite_files.MOST_JOBS", 2)
    with pytest.raises(ParameterError, match=r"more than 2 jobs"):
        parse(tree)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 3000)
    with pytest.raises(ParameterError, match="nests its lists too deep"):
        load_suite(str(tmp_path / "deep.toml"))
