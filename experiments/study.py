"""What the suites here add to `mvlstm bench`: protocol, kinds of jobs, printed numbers, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.ablation import LATEST
from experiments.ablation_tables import ablation_sections
from experiments.attention import attention
from experiments.authors import AUTHORS, DIFFERENCED
from experiments.epf import price_jobs, price_record, price_sections
from experiments.error_tables import ERRORS_TEXT, fold_tables, layout_tables, step_tables
from experiments.granger import granger_record
from experiments.importance import importance_jobs, importance_record
from experiments.importance_tables import (
    ATTENTION_TEXT,
    IMPORTANCE_TEXT,
    attention_tables,
    granger_tables,
    importance_tables,
)
from experiments.omitting import omitting_jobs, omitting_record
from experiments.power import power_jobs, power_record
from experiments.power_tables import power_sections
from experiments.search_tables import search_tables
from experiments.truth_tables import TRUTH_TEXT, truth_tables
from mvlstm.bench.document import Section
from mvlstm.bench.records import Record, Records
from mvlstm.bench.score_tables import CELLS_TEXT, cell_tables, score_frame
from mvlstm.bench.studies import Kind, Study
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.problem import Problem


def evidence(model: AbstractForecaster, problem: Problem) -> dict[str, Any]:
    """Return what a record holds in addition: attention over the training windows."""
    return {"attention": attention(model, problem)}


def of_part(
    title: str, mine: list[Record], every: list[Record], records: Records, histograms: bool
) -> Iterator[Section]:
    """Yield errors, cells, settings side by side, importance, and histograms if wanted."""
    if mine[0]["job"]["suite"] == "ablation":
        yield from ablation_sections(mine, records)
    scores = score_frame(mine)
    errors = layout_tables(scores, {one["key"]: one for one in mine})
    tables = (*errors, *step_tables(scores), *fold_tables(scores))
    yield Section(f"{title}: errors", (ERRORS_TEXT,), tables)
    yield Section(f"{title}: every cell", (CELLS_TEXT,), tuple(cell_tables(scores, records)))
    searched = tuple(search_tables(scores))
    if searched:
        yield Section(f"{title}: settings side by side", (), searched)
    importance = tuple(importance_tables(mine, every))
    if importance:
        yield Section(f"{title}: importance of variables", (IMPORTANCE_TEXT,), importance)
    counted = tuple(attention_tables(mine)) if histograms else ()
    if counted:
        yield Section(f"{title}: attention", (ATTENTION_TEXT,), counted)


def of_suite(every: Sequence[Record]) -> Iterator[Section]:
    """Yield importance against the truth, one section per stage, and Granger tests."""
    found = [one["found"] for one in every if "found" in one]
    for stage in dict.fromkeys(one["stage"] for one in found):
        title = f"{stage}: importance against the truth"
        yield Section(title, (TRUTH_TEXT,), tuple(truth_tables(found, stage)))
    yield from power_sections(every)
    tests = tuple(granger_tables(every))
    if tests:
        yield Section("Which variables Granger-cause the target", tables=tests)
    yield from price_sections(every)


STUDY = Study(
    protocols={"authors": AUTHORS, "differenced": DIFFERENCED, "latest": LATEST},
    kinds={
        "granger": Kind(granger_record, "Granger"),
        "importance": Kind(importance_record, "", importance_jobs),
        "prices": Kind(price_record, "", price_jobs),
        "power": Kind(power_record, "", power_jobs),
        "omitting": Kind(omitting_record, "", omitting_jobs),
    },
    evidence=evidence,
    of_part=of_part,
    of_suite=of_suite,
)
