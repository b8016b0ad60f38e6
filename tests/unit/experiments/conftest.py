"""A small suite with the study's protocol, kinds of jobs and tables, and records of one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvlstm.bench.records import Records, read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Suite
from mvlstm.bench.suite_files import parse_suite
from unit.bench.conftest import small_tree

STUDY = str(Path(__file__).resolve().parents[3] / "experiments" / "study.py")
GRANGER = {"name": "granger", "kind": "granger", "datasets": ["synthetic"]}


@pytest.fixture(scope="session")
def suite() -> Suite:
    tree = small_tree()
    tree["parts"] = [*tree["parts"], GRANGER]
    return parse_suite({**tree, "study": STUDY}, default_name="small", budget="quick")


@pytest.fixture(scope="session")
def folder(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("records")
    summary = run_suite(suite, place, device="cpu", verbose=0)
    assert summary.failed == 0, summary.errors
    return place


@pytest.fixture(scope="session")
def records(folder: Path) -> Records:
    return read_records(folder)
