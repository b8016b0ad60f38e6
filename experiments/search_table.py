"""What each change of `search.toml` does to the error of the default, in percent.

    python -m experiments.search_table [experiments/records]

A cell has the change of the validation RMSE, on rows nothing was fitted to, and of the test RMSE.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mvlstm.bench.records import read_records

DATASETS = ("pm25", "energy", "sml2010", "synthetic", "lorenz96")


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
