"""The page of a comparison of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mvlstm import plot
from mvlstm._words import number
from mvlstm.report.build import render_page
from mvlstm.report.data import records
from mvlstm.report.encode import are_days, time_text
from mvlstm.report.page import AnyBlock, Block, Page, Section, TableBlock
from mvlstm.report.words import PERSISTENCE, compared, even, listed, panel
from mvlstm.results import Comparison
from mvlstm.results.comparison import COSTS, SHOWN

SCORES = {
    "rmse": "Root mean squared error of the mean forecast.",
    "mae": "Mean absolute error of the median forecast.",
    "crps": "Continuous ranked probability score: error of the whole predictive distribution.",
}
LEVEL = 0.05  # of the tests
HINT = "Choose a column's name to sort by it."


def comparison_page(comparison: Comparison) -> str:
    """Return what `mvlstm.compare` returned as one HTML page."""
    references = comparison.best_on_validation
    days = are_days(comparison.period)
    first, last = (time_text(t, days=days) for t in comparison.period)
    lead = (
        "All methods forecast the same unseen rows. Skill is the share of persistence's RMSE that "
        f"is removed. {_test_words(references)}"
    )
    blocks = _blocks(comparison.to_frame(), references)
    sections = [Section("scores", "How do the methods compare?", lead, blocks)]
    if comparison.notes:
        notes = [Block("notes", "Notes", list(comparison.notes))]
        sections.append(Section("notes", "What to bear in mind", "", notes))
    return render_page(
        Page(
            title=f"{comparison.target}: methods compared",
            subtitle=f"Unseen rows, {first} to {last}",
            summary=_summary(comparison.rows, references),
            sections=sections,
            footer="Made with mvlstm",
        )
    )


def _blocks(rows: pd.DataFrame, references: Mapping[str, str]) -> list[AnyBlock]:
    failed = rows["error"].map(_given)
    good = rows[~failed]
    kinds = zip(good["method"], good["kind"], strict=True)
    blanks = {"dm_p": ["reference" if references.get(str(k)) == m else "" for m, k in kinds]}
    figures = []
    for score, caption in SCORES.items():
        table = plot.comparison_table(good, score=score)
        if not len(table):
            continue
        figures.append(
            panel(
                score,
                score.upper(),
                f"{caption} The dotted line is persistence.",
                plot.comparison(good, score=score),
                table,
                alt=listed(table, "method", "mean", 4),
            )
        )
    costs = good[["method", "kind", *COSTS, "budget"]]
    blocks: list[AnyBlock] = [
        TableBlock("methods", "Scores", HINT, good[[*SHOWN, "n"]], blanks=blanks),
        *even(figures),
        TableBlock("costs", "Cost and leading variables", HINT, costs),
    ]
    if failed.any():
        text = "The comparison went on without them."
        blocks.append(TableBlock("failed", "Failed", text, rows.loc[failed, ["method", "error"]]))
    return blocks


def _test_words(references: Mapping[str, str]) -> str:
    """Explain the p-values, and name the methods they refer to."""
    named = " and ".join(f"{method} ({kind})" for kind, method in references.items())
    return (
        f"The reference is the method of each kind that is best on validation rows: {named}. dm p "
        "says how often a difference as large would come by chance if the reference were no better "
        "than this method (one-sided Diebold-Mariano test, adjusted by Holm's method)."
    )


def _summary(rows: pd.DataFrame, references: Mapping[str, str]) -> list[str]:
    table = plot.comparison_table(rows)
    if not len(table):
        return ["No method could be scored."]
    named = list(zip(table["method"].astype(str), table["mean"].astype(float), strict=True))
    level = next((error for name, error in named if name.lower() == PERSISTENCE), None)
    (best, least), rest = named[0], named[1:]
    text = f"{best} has the smallest RMSE, {number(least, 4)}"
    if level is not None and best.lower() != PERSISTENCE:
        text += f", {compared(least, level, PERSISTENCE)}"
    if rest and rest[0][0].lower() != PERSISTENCE:
        text += f"; next is {rest[0][0]}, {number(rest[0][1], 4)}"
    failed = dict.fromkeys(str(r["method"]) for r in records(rows) if _given(r["error"]))
    sentences = [f"{text}.", _told_apart(rows, references)]
    if failed:
        sentences.append(f"Not scored: {', '.join(failed)}; see the table.")
    return [sentence for sentence in sentences if sentence]


def _told_apart(rows: pd.DataFrame, references: Mapping[str, str]) -> str:
    """Say what the tests leave open about the best method; empty if they leave nothing open."""
    known = rows.dropna(subset="rmse").sort_values("rmse", kind="stable")
    best = known.iloc[0]
    family = known[known["kind"] == best["kind"]]
    reference = references.get(str(best["kind"]))
    if reference is None or len(known) < 2:
        return ""
    if len(family) < 2:
        return f"It is the only {best['kind']} method, and methods are tested within their kind."
    if reference != best["method"]:
        return (
            f"Whether it is better than the others is not tested: the tests are of {reference}, "
            f"the best {best['kind']} method on validation rows."
        )
    second = family.iloc[1]
    p = float(second["dm_p"])
    return (
        f"It cannot be told from the next {best['kind']} method, {second['method']} (p = {p:.2f}): "
        "the difference may be chance."
        if p >= LEVEL
        else ""
    )


def _given(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
