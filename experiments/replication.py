"""docs/replication.md: every printed number of the paper next to ours, and how they compare.

    python -m experiments.replication > docs/replication.md

Numbers come from the records; the words around them are in `replication.txt`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from experiments.interpretation import (
    Find,
    divergence,
    granger_line,
    histogram_table,
    ranked_table,
)
from experiments.paper import PAPER_SETS, paper_score, paper_tables
from mvlstm.bench.document import number
from mvlstm.bench.records import Record, Records, read_records

HERE = Path(__file__).parent
WINDOWS = (30, 20, 10)
METRIC_NAMES = {"RMSE": "rmse", "MAE": "mae_mean"}  # the paper's absolute error is of the mean
METRICS = tuple(METRIC_NAMES)
REAL = ("pm25", "energy", "plant")
BUDGETS = ("paper", "medium")  # records of the larger budget are preferred
CLOSE = 0.1  # ratio to the printed number that counts as the same
MARKS = {"same": "🟩", "lower": "🟦", "higher": "🟧", "other data": "⬜", "missing": ""}
ALONE = "†"  # of the first network alone
UNFINISHED = "‡"  # the optimiser had not converged
FIGURES = {  # where the paper draws attention
    "pm25": "the paper's Figures 3 and 4",
    "plant": "its Figure 5",
    "energy": "its Figure 6",
    "synthetic": "its Figure 7",
}


@dataclass(frozen=True)
class PrintedCell:
    """One printed number with ours of the same method, data set and window.

    Parameters
    ----------
    ours : float or None
        Mean over the repeats; the absolute error is that of the mean forecast, as in the paper.
    alone : bool
        Whether ours is of the first network, because the others' was not recorded.
    converged : bool
        Whether the optimiser came to an end, where a method has one.
    choose : str
        Which validation rows chose: "all", or the earlier "half".
    """

    method: str
    dataset: str
    window: int
    metric: str
    printed: float
    ours: float | None = None
    alone: bool = False
    budget: str = ""
    converged: bool = True
    choose: str = "half"

    @property
    def ratio(self) -> float:
        """Ours over the printed number, NaN without a record."""
        return float("nan") if self.ours is None else self.ours / self.printed

    @property
    def outcome(self) -> str:
        """How ours compares with the printed number."""
        if self.ours is None:
            return "missing"
        if self.dataset == "synthetic":
            return "other data"
        if abs(self.ratio - 1) <= CLOSE:
            return "same"
        return "lower" if self.ratio < 1 else "higher"

    def __str__(self) -> str:
        if self.ours is None:
            return f"{self.printed:g} / no record"
        mark = (ALONE if self.alone else "") + ("" if self.converged else UNFINISHED)
        shown = f"{self.printed:g} / {number(self.ours)}{mark}"
        return f"{MARKS[self.outcome]} {shown} ({self.ratio:.2f})"


def printed_cells(records: Records) -> list[PrintedCell]:
    """Return the 264 printed cells, in the paper's order."""
    ours = {_place(record): record for record in sorted(records.found, key=_preference)}
    return [
        _cell(ours.get((label, dataset, window)), label, dataset, window, metric)
        for window in WINDOWS
        for metric in METRICS
        for label in paper_tables()[str(window)][metric]
        for dataset in PAPER_SETS
    ]


def _place(record: Record) -> tuple[str, str, int]:
    job = record["job"]
    return job["label"], job["dataset"], job["window"]


def _preference(record: Record) -> tuple[bool, bool, bool, bool, int]:
    """Order records so that the one that stands for a cell comes last."""
    job = record["job"]
    synthetic = job["dataset"] == "synthetic"
    protocol = "chronological" if synthetic else "authors"
    fits = job["suite"] == "paper" and job["protocol"] == protocol and job["kind"] == "forecast"
    plain = not job["setting"] and job["folds"] == 1 and job["horizon"] == 1
    plain = plain and not job.get("refit")
    budget = job["budget"] if job["budget"] in BUDGETS else "other"
    done = record["status"] == "done"
    rank = -[*BUDGETS, "other"].index(budget)
    return done and fits and plain, plain, converged(record), _chosen_by(record) == "all", rank


def converged(record: Record) -> bool:
    """Say whether the optimiser of a fit came to an end."""
    return not any("not yet converged" in note for note in record.get("notes") or ())


def _chosen_by(record: Record) -> str:
    """Return which validation rows chose the settings."""
    return str(record["job"].get("choose", "half"))


def _cell(record: Record | None, label: str, dataset: str, window: int, metric: str) -> PrintedCell:
    printed = paper_score(label, dataset, window, metric)
    assert printed is not None
    place = (label, dataset, window, metric, printed[0])
    if record is None or not _preference(record)[0]:
        return PrintedCell(*place)
    values = record["single"][METRIC_NAMES[metric]]
    known = [value for value in values if value is not None]
    ours = float(np.mean(known)) if known else None
    budget, choose = record["job"]["budget"], _chosen_by(record)
    alone = len(known) < len(values)
    return PrintedCell(*place, ours, alone, budget, converged(record), choose)


# ------------------------------------------------------------------------------------------- tables


def cell_table(cells: Sequence[PrintedCell], window: int, metric: str) -> str:
    """Return the paper's table of one metric and window, ours next to each number."""
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        if (cell.window, cell.metric) == (window, metric):
            rows.setdefault(cell.method, {})[PAPER_SETS[cell.dataset]] = str(cell)
    return _markdown(pd.DataFrame(rows).T.rename_axis("method").reset_index())


def count_table(cells: Sequence[PrintedCell]) -> str:
    """Count how the real data sets' cells compare, by data set and metric."""
    real = [cell for cell in cells if cell.dataset != "synthetic"]
    kinds = ("same", "higher", "lower", "missing")
    rows = []
    for dataset in (*REAL, None):
        for metric in METRICS if dataset else (None,):
            chosen = [c for c in real if c.dataset == (dataset or c.dataset)]
            chosen = [c for c in chosen if c.metric == (metric or c.metric)]
            found = Counter(cell.outcome for cell in chosen)
            name = f"{PAPER_SETS[dataset]}, {metric}" if dataset else "**all**"
            rows.append([name, *(str(found[kind]) for kind in kinds), str(len(chosen))])
    titles = ["", "within 10 %", "over 10 % worse", "over 10 % better", "no record", "all"]
    return _markdown(pd.DataFrame(rows, columns=titles))


def _real_ranks(cells: Sequence[PrintedCell], label: str = "MV-LSTM") -> list[int]:
    """Return our rank of one method in each column of the real data sets."""
    columns = {(c.window, c.metric, c.dataset) for c in cells if c.dataset in REAL}
    ranks = []
    for place in columns:
        group = [c for c in cells if (c.window, c.metric, c.dataset) == place]
        own = next(cell.ours for cell in group if cell.method == label)
        known = [cell.ours for cell in group if cell.ours is not None]
        ranks.append(1 + sum(one < own for one in known) if own is not None else 0)
    return ranks


def rank_table(cells: Sequence[PrintedCell], label: str = "MV-LSTM") -> str:
    """Return the rank of one method among those of the paper, printed and ours."""
    rows = []
    for window in WINDOWS:
        for metric in METRICS:
            row = [f"{metric}, T = {window}"]
            for dataset in PAPER_SETS:
                place = (window, metric, dataset)
                group = [c for c in cells if (c.window, c.metric, c.dataset) == place]
                own = next(cell for cell in group if cell.method == label)
                printed = 1 + sum(cell.printed < own.printed for cell in group)
                known = [cell.ours for cell in group if cell.ours is not None]
                ours = "" if own.ours is None else str(1 + sum(one < own.ours for one in known))
                row.append(f"{printed} / {ours} of {len(known)}")
            rows.append(row)
    return _markdown(pd.DataFrame(rows, columns=["", *PAPER_SETS.values()]))


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def choice_table(records: Records) -> str:
    """Return what was chosen at the longest window, and which validation rows chose."""
    best = {_place(record): record for record in sorted(records.found, key=_preference)}
    rows = []
    for label in paper_tables()[str(WINDOWS[0])][METRICS[0]]:
        found = [best[label, dataset, WINDOWS[0]] for dataset in REAL]
        rule = {"all": "all", "half": "earlier half"}[_chosen_by(found[0])]
        chosen = [_choice_text(record) for record in found]
        rows.append([label, rule if any(chosen) else "nothing to choose", *chosen])
    titles = ["method", "validation rows that chose", *(PAPER_SETS[one] for one in REAL)]
    return _markdown(pd.DataFrame(rows, columns=titles))


def per_window_table(records: Records) -> str:
    """Return STRX and ARIMAX fitted once and to each window, at the longest one."""
    best = {_place(record): record for record in sorted(records.found, key=_preference)}
    rows = []
    for label in ("STRX", "ARIMAX"):
        for dataset in REAL:
            fresh = _only(records, "per-window", f"{label}, each window", dataset, WINDOWS[0])
            if fresh is None:
                continue
            row = [f"{label}, {PAPER_SETS[dataset]}"]
            for metric, name in METRIC_NAMES.items():
                printed = paper_score(label, dataset, WINDOWS[0], metric)
                assert printed is not None
                once, each = (
                    _mean(one["single"][name]) for one in (best[label, dataset, WINDOWS[0]], fresh)
                )
                persistence = fresh["persistence"][metric.lower()]
                row += [f"{printed[0]:g} / {number(each)} / {number(once)} / {number(persistence)}"]
            rows.append(row)
    return _markdown(pd.DataFrame(rows, columns=["", *METRIC_NAMES]))


def differencing_table(records: Records) -> str:
    """Return errors without and with differenced columns, of what was run both ways."""
    rows = []
    for dataset in REAL:
        for label in ("AR", "ENET", "XGT"):
            row = [f"{label}, {PAPER_SETS[dataset]}"]
            for window in WINDOWS:
                pair = [
                    _only(records, part, label, dataset, window)
                    for part in ("all-rows", "differenced")
                ]
                texts = [number(_mean(one["single"]["rmse"])) for one in pair if one is not None]
                row.append(", ".join(texts) if len(texts) == len(pair) else "")
            if any(row[1:]):
                rows.append(row)
    titles = ["RMSE without, with", *(f"T = {window}" for window in WINDOWS)]
    return _markdown(pd.DataFrame(rows, columns=titles))


def own_past_table(records: Records) -> str:
    """Return XGT with all variables and with the target's own past, next to the printed best."""
    rows = []
    for dataset in REAL:
        for metric, name in METRIC_NAMES.items():
            row = [f"{PAPER_SETS[dataset]}, {metric}"]
            for window in WINDOWS:
                pair = [
                    _only(records, "all-rows", label, dataset, window)
                    for label in ("XGT", "XGT, own past")
                ]
                best = paper_score("MV-LSTM", dataset, window, metric)
                assert best is not None
                errors = [number(_mean(one["single"][name])) for one in pair if one is not None]
                row.append(" / ".join([*errors, f"{best[0]:g}"]) if all(pair) else "")
            rows.append(row)
    titles = ["all variables / own past / printed best", *(f"T = {T}" for T in WINDOWS)]
    return _markdown(pd.DataFrame(rows, columns=titles))


def _only(records: Records, part: str, label: str, dataset: str, window: int) -> Record | None:
    """Return the record of one part of the suite with the largest budget, if there is one."""
    found = [
        record
        for record in sorted(records.found, key=_preference)
        if record["job"]["suite"] == "paper"
        and record["job"]["part"] == part
        and _place(record) == (label, dataset, window)
        and record["status"] == "done"
    ]
    return found[-1] if found else None


def _mean(values: Sequence[float | None]) -> float:
    """Return the mean of the repeats that are known."""
    return float(np.mean([value for value in values if value is not None]))


def _choice_text(record: Record) -> str:
    """Write what a record's fit chose: settings of a grid, or what the method itself tries."""
    tried = record.get("choices") or []
    found = {**(tried[0] if tried else {}), **record["chosen"]}
    if not found and record["job"]["base"] in ("rf", "xgt", "enet", "clstm"):
        return "not recorded"
    return ", ".join(f"{name} {_plain(value)}" for name, value in found.items())


def _plain(value: Any) -> str:
    """Write a value; of a list by step ahead, its only entry."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        return " and ".join(map(_plain, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _finder(records: Records) -> Find:
    """Return a search for the record that stands for a method at the longest window."""

    def find(label: str, dataset: str, protocol: str) -> Record | None:
        found = [
            record
            for record in sorted(records.found, key=_preference)
            if record["job"]["suite"] == "paper"
            and _place(record) == (label, dataset, WINDOWS[0])
            and record["job"]["protocol"] == protocol
            and _preference(record)[1]
        ]
        return found[-1] if found else None

    return find


def interpretation(records: Records, dataset: str) -> str:
    """Return Table 5 and the histograms of one data set."""
    find = _finder(records)
    protocol = "chronological" if dataset == "synthetic" else "authors"
    tests = [
        record
        for record in records.found
        if record["job"]["kind"] == "granger"
        and (record["job"]["dataset"], record["job"]["protocol"]) == (dataset, protocol)
    ]
    kl = divergence(find("MV-LSTM", dataset, protocol))
    number_of = FIGURES[dataset]
    return "\n\n".join(
        [
            f"### {PAPER_SETS[dataset]}",
            _rows(ranked_table(find, dataset)),
            granger_line(tests[-1] if tests else None, dataset),
            f"Attention over the training windows ({number_of}), protocol `{protocol}`; from 0 at "
            f"the left to 0.5 and more at the right. Posterior from prior: {kl:.3f} nats.",
            _rows(histogram_table(find, dataset, protocol)),
        ]
    )


def _rows(rows: list[list[str]]) -> str:
    return _markdown(pd.DataFrame(rows[1:], columns=rows[0]))


def page(records: Records) -> str:
    """Return the page as Markdown."""
    cells = printed_cells(records)
    missing = [cell for cell in cells if cell.ours is None]
    known = [cell for cell in cells if cell.ours is not None]
    budgets = Counter(cell.budget for cell in known)
    tables = "\n\n".join(
        f"### {metric}, T = {window}\n\n{cell_table(cells, window, metric)}"
        for window in WINDOWS
        for metric in METRICS
    )
    words = Template((HERE / "replication.txt").read_text("utf-8"))
    return words.substitute(
        n_cells=len(cells),
        n_missing=len(missing),
        n_paper=budgets["paper"],
        n_medium=budgets["medium"],
        n_all=sum(cell.choose == "all" for cell in known),
        n_unfinished=sum(not cell.converged and cell.metric == "RMSE" for cell in known),
        counts=count_table(cells),
        ranks=rank_table(cells),
        choices=choice_table(records),
        per_window=per_window_table(records),
        differencing=differencing_table(records),
        own_past=own_past_table(records),
        n_first=sum(rank == 1 for rank in _real_ranks(cells)),
        tables=tables,
        importance="\n\n".join(interpretation(records, one) for one in FIGURES),
    )


if __name__ == "__main__":
    sys.stdout.write(page(read_records(HERE / "records")))
