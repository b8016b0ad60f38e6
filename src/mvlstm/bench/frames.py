"""From records to tidy frames: one row per cell, method and kind of forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.bench.records import Record

CELL = ["dataset", "protocol", "window", "horizon", "fold", "folds"]
SCORES = ("rmse", "mae", "crps", "coverage", "worst_month", "skill", "valid_rmse")
KINDS = ("single", "ensemble")
NAMES = ("suite", "budget", "part", *CELL, "method", "label", "setting")


def score_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row for every finished job and kind: means and standard errors of its scores.

    Columns: `NAMES`, ``kind, members, repeats, key``, every score of `SCORES`, each with ``_se``
    (the standard error over repeats, NaN with one), ``values`` (RMSE of each repeat),
    ``rmse_by_step``, ``seconds`` and ``n``.
    """
    done = [r for r in records if r["status"] == "done" and r["job"]["kind"] == "forecast"]
    rows = [_row(record, kind) for record in done for kind in KINDS if record[kind]]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*NAMES, "kind"])


def _row(record: Record, kind: str) -> dict[str, Any]:
    job, scores = record["job"], record[kind]
    fits, repeats = len(record["single"]["rmse"]), len(scores["rmse"])
    members = fits if fits > repeats else job["members"]  # the mean of all repeats, or an ensemble
    row: dict[str, Any] = {
        **{name: job[name] for name in NAMES},
        "kind": kind,
        "members": members if kind == "ensemble" else 1,
        "repeats": repeats,
        "key": record["key"],
        "n": record["n"],
        "seconds": record["timings"]["tune"] + record["timings"]["fit"],
    }
    for name in SCORES:
        row[name], row[f"{name}_se"] = mean_and_error(scores[name])
    return row | {"values": list(scores["rmse"]), "rmse_by_step": scores.get("rmse_by_step")}


def mean_and_error(values: Sequence[float | None]) -> tuple[float, float]:
    """Return mean and standard error of repeats; NaN for the error of a single one.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    known = np.array([v for v in values if v is not None], dtype=np.float64)
    if not known.size:
        return float("nan"), float("nan")
    error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else float("nan")
    return float(known.mean()), float(error)


def title_of(row: Any) -> str:
    """Return what a row of scores is called in a table."""
    name = row["label"] if not row["setting"] else f"{row['label']}, {row['setting']}"
    return f"{name}, mean of {row['members']}" if row["kind"] == "ensemble" else str(name)
