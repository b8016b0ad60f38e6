"""RESULTS.md is what the records in experiments/records give, and short enough to be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.results import results
from mvlstm.cli.app import app

PROJECT = Path(__file__).parents[2]
RECORDS = PROJECT / "experiments" / "records"
MOST_LINES = 300
SUITES = ("accuracy", "grid", "importance", "paper, budget medium", "paper, budget paper", "search")


@pytest.fixture(scope="module")
def printed() -> str:
    """All that `mvlstm bench tables` prints of the records."""
    answer = CliRunner().invoke(app, ["bench", "tables", str(RECORDS)])
    assert answer.exit_code == 0, answer.output
    assert not answer.stderr  # every record can be read
    return answer.stdout


def test_results_are_what_the_records_give(printed: str) -> None:
    written = (PROJECT / "RESULTS.md").read_text(encoding="utf-8")
    assert results(RECORDS) == written, "run: make results"
    assert len(written.splitlines()) <= MOST_LINES
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert rows and set(printed.splitlines()).issuperset(rows)


def test_every_suite_is_printed_in_full(printed: str) -> None:
    titles = [line for line in printed.splitlines() if line.startswith("## ")]
    assert titles == [f"## Suite {name}" for name in SUITES]
    assert printed.count("\n**") == 503  # tables
