"""Suites with forecasters of one's own: found, checked, run and told apart by their code."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvlstm.bench.job import run_job
from mvlstm.bench.records import read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Job, Suite
from mvlstm.bench.suite_files import parse_suite
from mvlstm.bench.tables import make_tables
from mvlstm.bench.tuning import is_batched, is_network
from mvlstm.errors import ParameterError
from mvlstm.evaluate.methods import find_method

OWN = """
from dataclasses import dataclass
from mvlstm import LSTM
from mvlstm.methods.naive import LastValue, Persistence
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.predictive import Predictive
from mvlstm.settings import MODEL, NetworkSettings, PersistenceSettings, setting, settings

@settings(panel=MODEL)
class Raised(AbstractForecaster, PersistenceSettings):
    by: float = setting(default=0.5, doc="What is added to the last value.")

    def learn(self, problem):
        return LastValuePlus(by=self.by, **vars(Persistence.learn(self, problem)))

    def restore(self, saved):
        return LastValuePlus(by=self.by, **vars(Persistence.restore(self, saved)))

@dataclass(frozen=True, eq=False, kw_only=True)
class LastValuePlus(LastValue):
    by: float

    def predict(self, windows, *, spread=True, exact=False):
        return Predictive(super().predict(windows).members + self.by)

class Small(LSTM):
    pass

class Alike(AbstractNetwork, NetworkSettings):
    def network(self, layout, label_scale):
        pass

    def wrap(self, trained, saved=None):
        pass

class Loose(Persistence):
    def __init__(self, **settings):
        super().__init__(**settings)

class Needy(Persistence):
    def __init__(self, *, depth, window=1, horizon=1, missing="error", gaps="error", verbose=1):
        super().__init__(window=window, horizon=horizon)

class Half(AbstractForecaster):
    pass

class Nothing:
    pass
"""
SUITE = """
name = "own"

[data.walk]
file = "walk.csv"
target = "y"

[methods.raised]
method = "own.py:Raised"
each = { by = [0.0, 2.0] }

[methods.small]
method = "own.py:Small"
settings = { hidden_size = 2, max_epochs = 1 }
grid = { learning_rate = [0.001, 0.01] }

[[parts]]
datasets = ["walk"]
windows = [3]
methods = ["persistence", "raised", "small"]
members = 2
explain = false
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = np.random.default_rng(0).normal(size=(120, 2)).cumsum(axis=0)
    pd.DataFrame(values, columns=["x", "y"]).to_csv(tmp_path / "walk.csv", index_label="t")
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(**changes: Any) -> Suite:
    tree = tomllib.loads(SUITE)
    tree["data"]["walk"]["time"] = "t"
    tree["methods"]["raised"] |= changes
    return parse_suite(tree, default_name="own")


def test_own_forecasters_are_run_beside_the_packages(folder: Path) -> None:
    summary = run_suite(read(), folder / "out", device="cpu", verbose=0)
    assert (summary.done, summary.failed) == (4, 0), summary.errors
    found = {
        (r["job"]["label"], r["job"]["setting"]): r for r in read_records(folder / "out").found
    }
    same = found["Raised", "by=0.0"]["single"]["rmse"]
    assert same == found["Persistence", ""]["single"]["rmse"]
    assert found["Raised", "by=2.0"]["single"]["rmse"][0] > same[0]
    assert found["Raised", "by=2.0"]["settings"]["by"] == 2.0
    assert found["Small", ""]["chosen"]["learning_rate"] in (0.001, 0.01)
    assert found["Small", ""]["ensemble"]
    text = make_tables(folder / "out").markdown()
    assert "Raised, by=2.0" in text and "Small, mean of 2" in text


@pytest.mark.slow  # every process loads torch anew
def test_processes_find_them_too(folder: Path) -> None:
    few = read().select(methods=["raised"])
    summary = run_suite(few, folder / "out", workers=2, device="cpu", verbose=0)
    assert (summary.done, summary.failed) == (2, 0), summary.errors


def test_what_descends_from_a_network_is_one() -> None:
    job = Job(suite="s", part="p", dataset="walk", method="m")
    for base, network, batched in [
        ("own.py:Small", True, True),
        ("own.py:Raised", False, False),
        ("own.py:Alike", True, False),
        ("lstm", True, True),
        ("clstm", True, False),
        ("mvlstm.methods.mvlstm:MVLSTM", True, True),
    ]:
        one = replace(job, base=base)
        assert (is_network(one), is_batched(one)) == (network, batched)


def test_each_ensemble_of_clstm_chooses_variables_with_a_seed_of_its_own() -> None:
    settings = {"hidden_size": 3, "max_epochs": 3, "penalties": [0.3, 0.03]}
    both = Job(
        suite="s",
        part="p",
        dataset="synthetic",
        data={"n": 300},
        method="clstm",
        base="clstm",
        window=3,
        settings=settings,
        members=2,
        repeats=2,
        explain=False,
    )
    found = run_job(both, device="cpu").record
    for r in (0, 1):
        alone = run_job(replace(both, seed=r, repeats=1), device="cpu").record
        for kind in ("single", "ensemble"):
            assert found[kind]["rmse"][r] == alone[kind]["rmse"][0]
    assert found["ensemble"]["rmse"][0] != found["ensemble"]["rmse"][1]


def test_a_class_of_a_package_needs_no_file() -> None:
    assert find_method("mvlstm.methods.naive:Persistence").label == "Persistence"
    suite = read(method="mvlstm.methods.naive:Persistence", each={})
    assert [job.source for job in suite.select(methods=["raised"]).jobs] == [""]


def test_other_code_makes_other_jobs(folder: Path) -> None:
    before = read()
    keys = [job.key for job in before.jobs]
    assert [job.key for job in read().jobs] == keys
    (folder / "own.py").write_text(OWN.replace("+ self.by", "- self.by"))
    after = [job.key for job in read().jobs]
    assert after[0] == keys[0] and set(after[1:]).isdisjoint(keys)
    with pytest.raises(ParameterError, match=r"'own.py' has changed since the run began"):
        run_job(before.jobs[1], device="cpu")
    shifted = run_job(read().jobs[2], device="cpu").record
    assert shifted["settings"]["by"] == 2.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "owm.py:Raised"}, ("'owm.py' cannot be read", "No such file")),
        ({"method": "own.py:Rased"}, ("no class 'Rased' in 'own.py'", "Did you mean 'Raised'?")),
        ({"method": "own.py:Nothing"}, ("'own.py:Nothing' is not a forecaster", "subclass")),
        ({"method": "own.py:MODEL"}, ("'own.py:MODEL' is not a forecaster",)),
        ({"method": "own.py:Half"}, ("lacks learn, restore",)),
        ({"method": "own.py:Loose"}, ("'own.py:Loose' does not name window", "without **")),
        ({"method": "own.py:Needy"}, ("'own.py:Needy' has no default for depth",)),
        ({"method": "own.py"}, ("no method 'own.py'", "FILE.py:CLASS")),
        ({"method": "no.such:Raised"}, ("'no.such' cannot be imported", "FILE.py:Raised")),
        ({"settings": {"bye": 1.0}}, ("no argument 'bye'", "Did you mean 'by'?")),
        ({"grid": {"bye": [1.0]}}, ("no argument 'bye'",)),
        ({"each": {"bye": [1.0]}}, ("no argument 'bye'",)),
        ({"each": {"by": 1.0}}, ("by needs a list",)),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ParameterError) as caught:
        read(**changes)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1\nimport no_such_thing", ("ModuleNotFoundError", "no_such_thing", "line 2")),
        ("def f(:", ("SyntaxError", "line 1")),
        ("import sys\nsys.exit(3)", ("SystemExit: 3", "line 2")),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(
    folder: Path, code: str, words: tuple[str, ...]
) -> None:
    (folder / "own.py").write_text(code)
    with pytest.raises(ParameterError) as caught:
        read()
    for word in ("'own.py' cannot be imported", *words):
        assert word in str(caught.value)
