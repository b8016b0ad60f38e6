"""A small suite that takes seconds, and the records of one run of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mvlstm.bench.records import Records, read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Suite
from mvlstm.bench.suite_files import parse_suite

SMALL = """
name = "small"

[budgets.quick]
repeats = 2
windows_seen = 600
data.synthetic.sequences = 300

[budgets.paper]
repeats = 3

[methods.mv]
method = "paper"
label = "MV-LSTM"
settings = { hidden_size = 2 }
grid = { learning_rate = [0.001, 0.01], l2 = [0.01] }

[methods.best]
method = "mvlstm"
settings = { hidden_size = 2, max_epochs = 2 }

[[parts]]
name = "tables"
datasets = ["synthetic"]
windows = [3]
methods = ["persistence", "ar", "mv"]

[[parts]]
name = "steps"
datasets = ["synthetic"]
windows = [3]
horizons = [2]
folds = 2
methods = ["best", "ar"]
members = 2
explain = false
"""


def small_tree() -> dict[str, Any]:
    return tomllib.loads(SMALL)


@pytest.fixture(scope="session")
def suite() -> Suite:
    return parse_suite(small_tree(), default_name="small", budget="quick")


@pytest.fixture(scope="session")
def folder(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("records")
    summary = run_suite(suite, place, device="cpu", verbose=0)
    assert summary.failed == 0, summary.errors
    return place


@pytest.fixture(scope="session")
def records(folder: Path) -> Records:
    return read_records(folder)
