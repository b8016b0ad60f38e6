"""The page of a comparison of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mvlstm import plot
from mvlstm.report.build import render_page
from mvlstm.report.data import Block, Page, Panel, Section, Table, records
from mvlstm.report.encode import are_days, number, percent, time_text
from mvlstm.report.words import even
from mvlstm.results import Comparison

SCORES = {
    "rmse": "Root of the mean squared error of the mean forecast.",
    "mae": "Mean absolute error of the median forecast.",
    "crps": "Continuous ranked probability score: error of the whole predictive distribution.",
}
LEVEL = 0.05  # of the tests
SHOWN = ("method", "kind", "rmse", "mae", "crps", "coverage", "skill", "dm_p", "n")
COSTS = ("method", "kind", "fit_seconds", "forecasts_per_second", "top_variables", "budget")


def comparison_page(
    comparison: Comparison | pd.DataFrame, *, title: str | None = None, command: str = ""
) -> str:
    """Return a comparison of methods as one HTML page.

    Parameters
    ----------
    comparison : Comparison or DataFrame
        What `mvlstm.compare` returns, or its rows: ``method``, any of ``kind, rmse, mae, crps,
        coverage, skill, dm_p, n``, costs, and ``error`` where a method failed.
    title : str, optional
        Heading; by default made from the target's name.
    command : str
        What repeats the work.
    """
    rows: Comparison | pd.DataFrame = comparison
    notes: tuple[str, ...] = ()
    references: Mapping[str, str] = {}
    heading, subtitle = "Methods compared", ""
    if isinstance(comparison, Comparison):
        rows, notes = comparison.to_frame(), comparison.notes
        references = comparison.best_on_validation
        days = are_days(comparison.period)
        first, last = (time_text(t, days=days) for t in comparison.period)
        subtitle = f"Unseen rows, {first} to {last}"
        heading = f"{comparison.target}: methods compared"
    assert isinstance(rows, pd.DataFrame)
    sections = [
        Section(
            "scores",
            "How do the methods compare?",
            "All methods forecast the same unseen rows. Skill is the share of persistence's RMSE "
            f"that is removed.{_test_words(rows, references)}",
            _comparison_blocks(rows, references),
        ),
        *_notes(notes, command),
    ]
    return render_page(
        Page(
            title=title or heading,
            subtitle=subtitle,
            summary=_comparison_summary(rows, references),
            sections=sections,
            footer="Made with mvlstm",
        )
    )


def _comparison_blocks(
    rows: pd.DataFrame, references: Mapping[str, str]
) -> list[Panel | Table | Block]:
    failed = rows["error"].map(_given) if "error" in rows else pd.Series(False, index=rows.index)
    good = rows[~failed]
    scores, costs = (good[[c for c in names if c in rows]] for names in (SHOWN, COSTS))
    hint = "Choose a column's name to sort."
    blanks = {"dm_p": _references(good, references)}
    blocks: list[Panel | Table | Block] = [Table("methods", "Scores", hint, scores, blanks=blanks)]
    panels: list[Panel] = []
    for score, caption in SCORES.items():
        if score in good and pd.to_numeric(good[score], errors="coerce").notna().any():
            table = plot.comparison_table(good, score=score)
            words = [f"{r['method']} {number(float(r['mean']), 4)}" for r in records(table)]
            panels.append(
                Panel(
                    key=score,
                    title=score.upper(),
                    caption=f"{caption} The dotted line is persistence.",
                    alt=f"{score.upper()} of each method: {'; '.join(words)}",
                    figure=plot.comparison(good, score=score),
                    table=table,
                )
            )
    blocks += even(panels)
    if len(costs.columns) > 2:
        blocks.append(Table("costs", "Cost, and what they rest on", hint, costs))
    if failed.any():
        text = "The other methods went on without them."
        blocks.append(Table("failed", "Failed", text, rows.loc[failed, ["method", "error"]]))
    return blocks


def _references(rows: pd.DataFrame, references: Mapping[str, str]) -> list[str]:
    """Return "reference" for the method of each kind that the others are held against."""
    pairs = zip(rows["method"], rows.get("kind", rows["method"]), strict=True)
    return ["reference" if references.get(str(kind)) == method else "" for method, kind in pairs]


def _test_words(rows: pd.DataFrame, references: Mapping[str, str]) -> str:
    """Explain the p-values, and name the methods they refer to."""
    if "dm_p" not in rows:
        return ""
    several = len(references) > 1
    if several:
        named = " and ".join(f"{method} ({kind})" for kind, method in references.items())
        which = f"The references are the methods best on validation rows in each kind, {named}"
    else:
        which = "The reference is the method best on validation rows"
    return (
        f" {which}; dm p says how often a difference as large would come by chance if the "
        f"reference{' of its kind' if several else ''} were no better than this method (one-sided "
        "Diebold-Mariano test, after Holm)."
    )


def _told_apart(rows: pd.DataFrame, references: Mapping[str, str]) -> str:
    """Say whether the tests tell the best method from the next of its kind; empty if they do."""
    if "dm_p" not in rows or "kind" not in rows or not references:
        return ""
    known = rows[pd.to_numeric(rows["rmse"], errors="coerce").notna()]
    known = known.sort_values("rmse", kind="stable")
    best = known.iloc[0]
    kind = str(best["kind"])
    reference, family = references.get(kind), known[known["kind"].astype(str) == kind]
    if reference is None or len(known) < 2:
        return ""
    if len(family) < 2:
        return f"It is the only one of its kind ({kind}), and methods are tested within a kind."
    if reference != best["method"]:
        return (
            f"That it is better than the others is not tested: the tests are of {reference}, "
            f"the best{_of_kind(kind, references)} on validation rows."
        )
    second = family.iloc[1]
    p = float(second["dm_p"])
    if not p >= LEVEL:
        return ""
    return (
        f"It cannot be told from the next{_of_kind(kind, references)}, {second['method']} "
        f"(p = {p:.2f}): a difference as large may be chance."
    )


def _of_kind(kind: str, references: Mapping[str, str]) -> str:
    return f" of its kind ({kind})" if len(references) > 1 else ""


def _comparison_summary(rows: pd.DataFrame, references: Mapping[str, str]) -> list[str]:
    table = plot.comparison_table(rows)
    if not len(table):
        return ["No method could be scored."]
    best = table.iloc[0]
    text = f"{best['method']} has the least RMSE, {number(float(best['mean']), 4)}"
    plainest = table["method"].astype(str).str.lower() == "persistence"
    level = float(table.loc[plainest, "mean"].iloc[0]) if plainest.any() else 0.0
    if level > 0 and not plainest.iloc[0]:
        less = percent(1.0 - float(best["mean"]) / level, 1)
        same = less == percent(0.0, 1)
        text += ", no less than persistence's" if same else f", {less} less than persistence"
    if len(table) > 1 and not plainest.iloc[1]:
        second = table.iloc[1]
        text += f"; next is {second['method']}, {number(float(second['mean']), 4)}"
    sentences = [text + ".", *filter(None, [_told_apart(rows, references)])]
    if "error" in rows:
        failed = [str(m) for m, e in zip(rows["method"], rows["error"], strict=True) if _given(e)]
        if failed:
            sentences.append(f"Not scored: {', '.join(dict.fromkeys(failed))}; see the table.")
    return sentences


def _notes(notes: Sequence[str], command: str) -> list[Section]:
    blocks: list[Panel | Table | Block] = []
    if notes:
        blocks.append(Block("notes", "Notes", list(notes)))
    if command:
        blocks.append(Block("code", "To repeat it", command))
    return [Section("notes", "What to bear in mind", "", blocks)] if blocks else []


def _given(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
