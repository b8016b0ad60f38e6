"""What the suites here add to `mvlstm bench`: protocol, kinds of jobs, printed numbers, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.authors import AUTHORS
from experiments.granger import granger_record
from experiments.importance import importance_jobs, importance_record
from experiments.importance_tables import (
    ATTENTION_TEXT,
    IMPORTANCE_TEXT,
    attention_tables,
    granger_tables,
    importance_tables,
)
from experiments.paper import paper_notes, paper_score
from experiments.search_tables import search_tables
from experiments.truth_tables import TRUTH_TEXT, truth_tables
from mvlstm.bench.document import Section
from mvlstm.bench.frames import score_frame
from mvlstm.bench.records import Record
from mvlstm.bench.studies import Kind, Study


def of_part(
    title: str, mine: Sequence[Record], every: Sequence[Record], attention: bool
) -> Iterator[Section]:
    """Yield settings side by side, the importance of variables, and histograms if wanted."""
    searched = tuple(search_tables(score_frame(mine)))
    if searched:
        yield Section(f"{title}: settings side by side", (), searched)
    importance = tuple(importance_tables(mine, every))
    if importance:
        yield Section(f"{title}: importance of variables", (IMPORTANCE_TEXT,), importance)
    histograms = tuple(attention_tables(mine)) if attention else ()
    if histograms:
        yield Section(f"{title}: attention", (ATTENTION_TEXT,), histograms)


def of_suite(every: Sequence[Record]) -> Iterator[Section]:
    """Yield importance against the truth, one section per stage, and Granger tests."""
    found = [one["found"] for one in every if "found" in one]
    for stage in dict.fromkeys(one["stage"] for one in found):
        title = f"{stage}: importance against the truth"
        yield Section(title, (TRUTH_TEXT,), tuple(truth_tables(found, stage)))
    tests = tuple(granger_tables(every))
    if tests:
        yield Section("Which variables Granger-cause the target", tables=tests)


STUDY = Study(
    protocols={"authors": AUTHORS},
    kinds={
        "granger": Kind(granger_record, "Granger"),
        "importance": Kind(importance_record, "", importance_jobs),
    },
    printed=paper_score,
    printed_notes=paper_notes,
    of_part=of_part,
    of_suite=of_suite,
)
