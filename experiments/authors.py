"""The authors' protocol: row ranges and label filter of their notebooks, scaling by step."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from mvlstm.bench.cells import Cell, Rows, load_rows, plain_cell
from mvlstm.bench.spec import Job
from mvlstm.bench.studies import Protocol
from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.scaling import Scaler
from mvlstm.problem.stationarity import choose_differencing
from mvlstm.table.frame import build_frame
from mvlstm.types import FloatArray, IntArray

VALID_OF_TRAIN = 0.1  # share of the training rows, at their end, that choose


@dataclass(frozen=True)
class Ranges:
    """Row ranges of one data set.

    Parameters
    ----------
    rows : pair of int
        End of the training rows, and of the test rows after them.
    labels : pair of float, optional
        Windows are kept if what they forecast lies in this range, bounds included.
    windows : dict
        Window length: how many training and test windows must come out.
    """

    rows: tuple[int, int]
    labels: tuple[float, float] | None = None
    windows: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def end_of_training(self) -> int:
        """Row after the last that trains."""
        return self.rows[0] - round(VALID_OF_TRAIN * self.rows[0])


def _read(text: str) -> dict[str, Ranges]:
    return {
        dataset: Ranges(
            rows=(one["rows"][0], one["rows"][1]),
            labels=tuple(one["labels"]) if "labels" in one else None,
            windows={int(T): (n[0], n[1]) for T, n in one.get("windows", {}).items()},
        )
        for dataset, one in tomllib.loads(text).items()
    }


RANGES = _read(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@dataclass(frozen=True, eq=False)
class StepScaler(Scaler):
    """Standardise by place in the window: rows come in stretches of equal length.

    Parameters
    ----------
    center, scale : (columns,)
        Those of the window's last row.
    centers, scales : (length, columns)
        Those of every row of a stretch, the rows to forecast included.
    """

    centers: FloatArray
    scales: FloatArray

    def transform(self, values: FloatArray, *, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Scale whole stretches of rows."""
        shaped = values.reshape(-1, *self.centers.shape)
        return ((shaped - self.centers) / self.scales).astype(dtype).reshape(values.shape)


def authors_cell(job: Job, *, local: bool = True) -> Cell:
    """Return the cell of a job: windows cut out and laid one after another.

    A method that runs over the whole past (not ``local``) is given all rows, and only its
    forecasts of the chosen windows are scored.
    """
    if job.folds > 1 or job.horizon > 1:
        raise ParameterError(
            f"Protocol '{job.protocol}' has fixed row ranges, one step ahead; it cannot be used "
            f"with folds={job.folds} and horizon={job.horizon}. Use 'chronological'."
        )
    return (_windows if local else _filtered)(job, load_rows(job), RANGES[job.dataset])


def differenced_cell(job: Job, *, local: bool = True) -> Cell:
    """Return the same cell, of columns differenced where ADF and KPSS tests ask for it.

    The paper says so of its data sets. The tests are made on the training rows; no target asks.
    """
    found, ranges = load_rows(job), RANGES[job.dataset]
    values = found.frame.values.copy()
    trained = values[: ranges.end_of_training]
    orders = choose_differencing(trained, found.frame.columns).orders
    if orders[-1]:
        raise DataError(f"The target of '{job.dataset}' would be differenced, which is not done.")
    for column, order in enumerate(orders):
        values[:, column] = np.diff(values[:, column], n=order, prepend=[values[0, column]] * order)
    found = replace(found, frame=replace(found.frame, values=values))
    return (_windows if local else _filtered)(job, found, ranges)


def window_rows(series: FloatArray, ranges: Ranges, window: int) -> dict[str, IntArray]:
    """Return the rows to forecast, kept by the label filter, of "train", "valid" and "test"."""
    end_train, end_test = ranges.rows
    if len(series) < end_test:
        raise DataError(f"The protocol needs {end_test:,} rows; the data set has {len(series):,}.")
    keep = np.ones(len(series), dtype=bool)
    if ranges.labels is not None:
        keep = (series >= ranges.labels[0]) & (series <= ranges.labels[1])
    first_valid = ranges.end_of_training
    spans = {
        "train": (window, first_valid),
        "valid": (first_valid, end_train),
        "test": (end_train + window, end_test),
    }
    return {part: np.flatnonzero(keep[a:b]) + a for part, (a, b) in spans.items()}


def check_counts(job: Job, ranges: Ranges, chosen: dict[str, IntArray]) -> None:
    """Raise `DataError` unless as many windows come out as were published."""
    expected = ranges.windows.get(job.window)
    counts = (len(chosen["train"]) + len(chosen["valid"]), len(chosen["test"]))
    if expected is not None and counts != expected:
        raise DataError(
            f"Protocol '{job.protocol}' on '{job.dataset}' gives {counts[0]:,} training and "
            f"{counts[1]:,} test windows of length {job.window}; {expected[0]:,} and "
            f"{expected[1]:,} were published. The data differ: fetch them anew."
        )


def _windows(job: Job, found: Rows, ranges: Ranges) -> Cell:
    """Cut the chosen windows out and lay them one after another, each with its label."""
    series, T = found.frame.target_values, job.window
    chosen = window_rows(series, ranges, T)
    check_counts(job, ranges, chosen)
    length = T + 1
    labels = np.concatenate([chosen[part] for part in ("train", "valid", "test")])
    rows = (labels[:, None] + np.arange(-T, 1)).reshape(-1)
    values = found.frame.values[rows]
    # Whole numbers as times, with a gap after every window, so that none crosses into the next.
    times = np.arange(len(rows)) + np.repeat(np.arange(len(labels)), length)
    table = pd.DataFrame(values, columns=list(found.frame.columns), index=times)
    options: dict[str, Any] = {"missing": "error", "gaps": "respect"}
    frame = build_frame(table, target=found.frame.target, **options)
    trained = values[: len(chosen["train"]) * length]
    return Cell(
        table=table,
        frame=frame,
        target=found.frame.target,
        options=options,
        test=len(chosen["test"]) * length,
        valid=len(chosen["valid"]) * length,
        preparation=step_preparation(trained, length),
        series=series,
        times=found.frame.times,
        rows=rows,
        scored=None,
        truth=found.truth,
        facts=found.facts,
        apart=True,
    )


def step_preparation(values: FloatArray, length: int) -> Preparation:
    """Learn means and deviations by step of the window and variable from training windows."""
    shaped = values.reshape(-1, length, values.shape[1])
    steps = [Scaler.fit(shaped[:, t]) for t in range(length)]
    centers = np.stack([step.center for step in steps])
    scales = np.stack([step.scale for step in steps])
    scaler = StepScaler(centers[-2], scales[-2], centers, scales)
    orders = np.zeros(values.shape[1], dtype=np.int64)
    return Preparation(orders, scaler, values.min(axis=0), values.max(axis=0))


def _filtered(job: Job, found: Rows, ranges: Ranges) -> Cell:
    """Give all rows up to the end of the test rows; mark those whose forecasts count."""
    chosen = window_rows(found.frame.target_values, ranges, job.window)
    check_counts(job, ranges, chosen)
    end_train, end_test = ranges.rows
    scored = np.zeros(found.frame.n_rows, dtype=bool)
    scored[chosen["valid"]] = scored[chosen["test"]] = True
    return plain_cell(
        found,
        end=end_test,
        test=end_test - end_train,
        valid=end_train - ranges.end_of_training,
        scored=scored,
    )


AUTHORS = Protocol(authors_cell, RANGES)
DIFFERENCED = Protocol(differenced_cell, RANGES)
