"""RESULTS.md is what the records in experiments/records give, and short enough to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.replication import page, printed_cells
from experiments.results import results
from mvlstm.bench.document import Document
from mvlstm.bench.records import read_records
from mvlstm.bench.tables import make_tables

PROJECT = Path(__file__).parents[2]
MOST_LINES = 300
SUITES = ("ablation, budget short", "accuracy", "epf", "granger", "grid", "importance")
SUITES += ("paper, budget medium", "paper, budget paper", "search")


@pytest.fixture(scope="module")
def document() -> Document:
    """What `mvlstm bench tables experiments/records` prints."""
    return make_tables(PROJECT / "experiments" / "records")


def test_results_are_what_the_records_give(document: Document) -> None:
    written = (PROJECT / "RESULTS.md").read_text(encoding="utf-8")
    assert results(document) == written, "run: make results"
    assert len(written.splitlines()) <= MOST_LINES
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert rows and set(document.markdown().splitlines()).issuperset(rows)


def test_every_suite_is_printed_in_full(document: Document) -> None:
    assert document.problems == ()  # every record can be read, and its study is found
    chapters = [section.title for section in document.sections if section.level == 1]
    assert chapters == [f"Suite {name}" for name in SUITES]
    assert len(document.tables) == 605


def test_every_printed_number_of_the_paper_stands_next_to_ours() -> None:
    records = read_records(PROJECT / "experiments" / "records")
    cells = printed_cells(records)
    assert len(cells) == 264 and all(cell.ours is not None for cell in cells)
    written = (PROJECT / "docs" / "replication.md").read_text(encoding="utf-8")
    assert page(records) == written, "run: make results"
    rows = {line for line in written.splitlines() if line.startswith("| ")}
    assert all(any(str(cell) in row for row in rows) for cell in cells)
