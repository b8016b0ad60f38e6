"""Tables of the search behind the defaults: settings side by side, and what each change does.

    python -m experiments.search_tables [experiments/records]

prints the change of the default's error in percent. A cell has that of the validation RMSE, on rows
nothing was fitted to, and of the test RMSE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.bench.document import Table, number
from mvlstm.bench.records import read_records
from mvlstm.bench.score_tables import groups, percent

DATASETS = ("pm25", "energy", "sml2010", "synthetic", "lorenz96")


def search_tables(scores: pd.DataFrame) -> Iterator[Table]:
    """Yield settings that were run side by side, the best on validation rows first."""
    several = scores[scores["setting"] != ""]
    for (dataset, protocol, window, horizon, method), cell in groups(
        several, ["dataset", "protocol", "window", "horizon", "method"]
    ):
        kind = "ensemble" if (cell["kind"] == "ensemble").any() else "single"
        chosen = cell[cell["kind"] == kind]
        rows = (
            chosen.groupby("setting", sort=False)[["valid_rmse", "rmse", "mae", "crps", "coverage"]]
            .mean()
            .reset_index()
            .sort_values("valid_rmse", kind="stable")
        )
        shown = pd.DataFrame(
            {
                "setting": rows["setting"],
                "validation RMSE": [number(v, 5) for v in rows["valid_rmse"]],
                "test RMSE": [number(v, 5) for v in rows["rmse"]],
                "test MAE": [number(v, 5) for v in rows["mae"]],
                "test CRPS": [number(v, 5) for v in rows["crps"]],
                "coverage": [percent(v) for v in rows["coverage"]],
            }
        )
        ahead = f", {horizon} steps ahead" if int(horizon) > 1 else ""
        title = f"{method} on {dataset}, window {window}{ahead}, {protocol}: settings side by side"
        note = "Choose by the validation column; the test columns are there to look at afterwards."
        yield Table(title, shown, rows, (note,))


def errors_of(record: dict[str, Any]) -> tuple[float, float]:
    """Return the validation and the test RMSE of the mean of a record's members."""
    scores = record["ensemble"] or record["single"]
    return float(np.mean(scores["valid_rmse"])), float(np.mean(scores["rmse"]))


def main(folder: str = "experiments/records") -> None:
    """Print the table as Markdown, the row of the least mean change on validation rows first."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for record in read_records(folder).done.values():
        job = record["job"]
        if job["suite"] != "search" or job["part"] not in ("search", "windows"):
            continue
        words = [job["label"], job["setting"], "" if job["window"] == 30 else f"T={job['window']}"]
        found.setdefault(" ".join(filter(None, words)), {})[job["dataset"]] = errors_of(record)
    base = found.pop("default")
    rows = {
        name: 100 * np.array([np.divide(each[d], base[d]) - 1 for d in DATASETS])  # (5, 2)
        for name, each in found.items()
    }
    print(f"| change | {' | '.join(DATASETS)} | mean of five |")
    print("|---" * (len(DATASETS) + 2) + "|")
    for name, row in sorted(rows.items(), key=lambda one: one[1][:, 0].mean()):
        cells = [f"{valid:+.1f} / {test:+.1f}" for valid, test in [*row, row.mean(axis=0)]]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
