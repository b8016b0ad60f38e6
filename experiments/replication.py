"""docs/replication.md: every printed number of the paper next to ours, and how they compare.

    python -m experiments.replication > docs/replication.md

Numbers come from the records; the words around them are in `replication.txt`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from string import Template

import numpy as np
import pandas as pd

from experiments.importance_tables import OWN_PAST, columns_of
from experiments.paper import PAPER_SETS, paper_score, paper_tables
from mvlstm.bench.document import number
from mvlstm.bench.records import Record, Records, read_records

HERE = Path(__file__).parent
WINDOWS = (30, 20, 10)
METRICS = ("RMSE", "MAE")
BUDGETS = ("paper", "medium")  # records of the larger budget are preferred
CLOSE = 0.1  # ratio to the printed number that counts as the same
MARKS = {"same": "🟩", "lower": "🟦", "higher": "🟧", "other data": "⬜", "missing": ""}
ALONE = "†"  # of the first network alone


@dataclass(frozen=True)
class PrintedCell:
    """One printed number with ours of the same method, data set and window.

    Parameters
    ----------
    ours : float or None
        Mean over the repeats; the absolute error is that of the mean forecast, as in the paper.
    alone : bool
        Whether ours is of the first network, because the others' was not recorded.
    """

    method: str
    dataset: str
    window: int
    metric: str
    printed: float
    ours: float | None
    alone: bool
    budget: str

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
        mark = ALONE if self.alone else ""
        shown = f"{self.printed:g} / {number(self.ours)}{mark}"
        return f"{MARKS[self.outcome]} {shown} ({self.ratio:.2f})"


def printed_cells(records: Records) -> list[PrintedCell]:
    """Return the 264 printed cells, in the paper's order."""
    ours = {_place(record): record for record in sorted(records.found, key=_preference)}
    return [
        _cell(records, ours.get((label, dataset, window)), label, dataset, window, metric)
        for window in WINDOWS
        for metric in METRICS
        for label in paper_tables()[str(window)][metric]
        for dataset in PAPER_SETS
    ]


def _place(record: Record) -> tuple[str, str, int]:
    job = record["job"]
    return job["label"], job["dataset"], job["window"]


def _preference(record: Record) -> tuple[bool, bool, int]:
    """Order records so that the one that stands for a cell comes last."""
    job = record["job"]
    synthetic = job["dataset"] == "synthetic"
    protocol = "chronological" if synthetic else "authors"
    fits = job["suite"] == "paper" and job["protocol"] == protocol and job["kind"] == "forecast"
    plain = not job["setting"] and job["folds"] == 1 and job["horizon"] == 1
    budget = job["budget"] if job["budget"] in BUDGETS else "other"
    done = record["status"] == "done"
    return done and fits and plain, plain, -[*BUDGETS, "other"].index(budget)


def _cell(
    records: Records, record: Record | None, label: str, dataset: str, window: int, metric: str
) -> PrintedCell:
    printed = paper_score(label, dataset, window, metric)
    assert printed is not None
    place = (label, dataset, window, metric, printed[0])
    if record is None or not _preference(record)[0]:
        return PrintedCell(*place, None, False, "")
    values = np.array(record["single"][metric.lower()])
    budget = record["job"]["budget"]
    errors = (records.arrays(record) or {}).get("single")
    if metric == "RMSE" or errors is None:
        return PrintedCell(*place, float(values.mean()), False, budget)
    of_mean = float(np.abs(errors.astype(float)).mean())  # the recorded one is of the median
    if isclose(values[0], of_mean, rel_tol=1e-3):
        return PrintedCell(*place, float(values.mean()), False, budget)
    return PrintedCell(*place, of_mean, len(values) > 1, budget)


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
    for dataset in ("pm25", "energy", "plant", None):
        for metric in METRICS if dataset else (None,):
            chosen = [c for c in real if c.dataset == (dataset or c.dataset)]
            chosen = [c for c in chosen if c.metric == (metric or c.metric)]
            found = Counter(cell.outcome for cell in chosen)
            name = f"{PAPER_SETS[dataset]}, {metric}" if dataset else "**all**"
            rows.append([name, *(str(found[kind]) for kind in kinds), str(len(chosen))])
    titles = ["", "within 10 %", "over 10 % worse", "over 10 % better", "no record", "all"]
    return _markdown(pd.DataFrame(rows, columns=titles))


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


def ranked_importance(records: Records, dataset: str, label: str = "MV-LSTM") -> str:
    """Return variables in order of importance, the paper's next to ours, ★ where it boxes them."""
    name = PAPER_SETS[dataset]
    printed = paper_tables()["importance"]["full"][name][label]
    boxed = {row["variable"] for row in printed if row["boxed"]}
    columns = {"the paper's": [(row["variable"], row["importance"]) for row in printed]}
    for record in _read_at(records, dataset, label):
        known = dict(zip(record["data"]["variables"], _variables(dataset), strict=True))
        for column in columns_of(record):
            if column.kind == "paper":
                title = f"{column.title.rpartition(', ')[2]}, {record['job']['protocol']}"
                pairs = [(known[key], value) for key, value in column.mean.items()]
                columns[title] = sorted(pairs, key=lambda pair: -pair[1])
    shown = {
        title: [f"{one}{' ★' if one in boxed else ''} {value:.3g}" for one, value in pairs]
        for title, pairs in columns.items()
    }
    return _markdown(pd.DataFrame({"": range(1, len(printed) + 1), **shown}))


def _read_at(records: Records, dataset: str, label: str) -> Iterator[Record]:
    """Yield the record of each protocol that holds attention at the longest window."""
    for protocol in ("authors", "chronological"):
        found = [
            record
            for record in sorted(records.found, key=_preference)
            if _place(record) == (label, dataset, max(WINDOWS))
            and record["job"]["protocol"] == protocol
            and _preference(record)[1]
            and record.get("attention")
        ]
        yield from found[-1:]


def _variables(dataset: str) -> list[str]:
    """Return the paper's names of the columns in our order, the target last."""
    names: list[str] = paper_tables()["variables"][PAPER_SETS[dataset]]
    return [*names[:-1], OWN_PAST]


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def page(records: Records) -> str:
    """Return the page as Markdown."""
    cells = printed_cells(records)
    missing = [cell for cell in cells if cell.ours is None]
    budgets = Counter(cell.budget for cell in cells if cell.ours is not None)
    tables = "\n\n".join(
        f"### {metric}, T = {window}\n\n{cell_table(cells, window, metric)}"
        for window in WINDOWS
        for metric in METRICS
    )
    importance = "\n\n".join(
        f"### {PAPER_SETS[dataset]}\n\n{ranked_importance(records, dataset)}"
        for dataset in ("pm25", "plant", "energy", "synthetic")
    )
    words = Template((HERE / "replication.txt").read_text("utf-8"))
    return words.substitute(
        n_cells=len(cells),
        n_missing=len(missing),
        n_paper=budgets["paper"],
        n_medium=budgets["medium"],
        counts=count_table(cells),
        ranks=rank_table(cells),
        tables=tables,
        importance=importance,
    )


if __name__ == "__main__":
    sys.stdout.write(page(read_records(HERE / "records")))
