"""The rows of one cell: a data set under a protocol, for one window, horizon and fold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from mvlstm import datasets
from mvlstm.bench.protocols import PROTOCOLS, Protocol, Ranges
from mvlstm.bench.spec import Job, file_digest
from mvlstm.datasets.synthetic import Truth
from mvlstm.errors import DataError, ParameterError
from mvlstm.evaluate.backtest import fold_frame, fold_rows
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.scaling import Scaler
from mvlstm.table.frame import SeriesFrame, build_frame
from mvlstm.table.parts import chronological
from mvlstm.types import BoolArray, FloatArray, IntArray


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


@dataclass(frozen=True, eq=False)
class Cell:
    """What a method is fitted to, and how its forecasts are scored.

    Parameters
    ----------
    table : DataFrame or SeriesFrame
        For ``predict`` and ``explain``.
    frame : SeriesFrame
        The same, as the method reads it.
    target : str
    options : dict
        Constructor arguments that suit the table: ``missing``, ``gaps``.
    test, valid : int
        Rows at the end that are scored on, and before them that choose.
    preparation : Preparation, optional
        Scaling by step, where the protocol asks for it.
    series, times : array
        The target and its times by row of the data set, before windows were cut out.
    rows : int array, (rows of the frame,)
        Row of the data set that a row of the frame is.
    scored : bool array or None
        By row of the data set: whether its forecast counts; None if all of the test rows do.
    truth : Truth or None
    facts : dict
        Rows, variables and checksum of the data, for the record.
    apart : bool
        Whether every window stands for itself, so that rows are not one stretch of time.
    """

    table: Any
    frame: SeriesFrame
    target: str
    options: dict[str, Any]
    test: int
    valid: int
    preparation: Preparation | None
    series: FloatArray
    times: pd.Index[Any]
    rows: IntArray
    scored: BoolArray | None
    truth: Truth | None
    facts: dict[str, Any]
    apart: bool = False


def build_cell(job: Job, *, local: bool = True) -> Cell:
    """Load a job's data and divide it as its protocol says.

    Parameters
    ----------
    job : Job
    local : bool
        Whether the method looks at windows alone. One that runs over the whole past is given all
        rows, and only its forecasts of the chosen windows are scored.
    """
    protocol = PROTOCOLS[job.protocol]
    if not protocol.ranges:
        return _shares(job, load_rows(job), protocol)
    if job.folds > 1 or job.horizon > 1:
        raise ParameterError(
            f"Protocol '{protocol.name}' has fixed row ranges, one step ahead; it cannot be used "
            f"with folds={job.folds} and horizon={job.horizon}. Use 'chronological'."
        )
    ranges = protocol.ranges[job.dataset]
    return (_windows if local else _filtered)(job, load_rows(job), protocol, ranges)


@dataclass(frozen=True, eq=False)
class Rows:
    """A data set as validated rows."""

    frame: SeriesFrame
    truth: Truth | None
    options: dict[str, Any]
    calendar: str | list[str]
    facts: dict[str, Any]


def load_rows(job: Job) -> Rows:
    """Load a job's data set; the last few are kept, since many jobs share one."""
    options = dict(job.data)
    sequences = options.pop("sequences", None)
    if sequences is not None:  # so many windows at this window length
        options["n"] = int(sequences) + max(job.window, 1) + job.horizon - 1
    return _load_rows(job.dataset, json.dumps(options, sort_keys=True))


@lru_cache(maxsize=2)
def _load_rows(name: str, options_text: str) -> Rows:
    options = json.loads(options_text)
    if "file" in options:
        return _user_rows(name, options)
    if "folder" not in options:
        datasets.verify(name)
    data = datasets.load(name, **options)
    frame = build_frame(data.frame, **data.frame_options)
    return _validated(frame, data.truth)


def _user_rows(name: str, options: dict[str, Any]) -> Rows:
    """Read a user's own table, as `mvlstm fit` does."""
    from mvlstm.table.files import read_table

    given = {k: v for k, v in options.items() if k not in ("sha256", "test", "valid")}
    reading = {key: given.pop(key) for key in ("sep", "decimal") if key in given}
    file = given.pop("file")
    if options.get("sha256") not in (None, file_digest(file)):
        raise DataError(
            f"'{file}' changed after this experiment was planned; run it again, so that its "
            "records are of the file as it is."
        )
    table = read_table(file, **reading)
    if "target" not in given:
        raise ParameterError(f"Data set '{name}' needs a target: the column to forecast.")
    return _validated(build_frame(table, **given), None, given.get("calendar", "none"))


def _validated(frame: SeriesFrame, truth: Truth | None, calendar: str | list[str] = "none") -> Rows:
    values = np.char.mod("%.12g", frame.values)  # readers may differ in the last bit of a number
    digest = hashlib.sha256("\n".join(values.ravel()).encode())
    digest.update("\n".join(frame.columns).encode())
    facts = {
        "rows": frame.n_rows,
        "variables": list(frame.variables),
        "target": frame.target,
        "sha256": digest.hexdigest(),
        "drivers": None if truth is None else list(truth.drivers),
    }
    respect = bool(len(np.unique(frame.segments)) > 1)
    missing = "error" if frame.measured is None else "fill"
    options = {"missing": missing, "gaps": "respect" if respect else "close"}
    return Rows(frame, truth, options, calendar, facts)


# ----------------------------------------------------------------------------------- shares of rows


def shares_of(job: Job, protocol: Protocol) -> tuple[float, float]:
    """Return the shares of the rows, or their numbers, that score and that choose."""
    return job.data.get("test", protocol.test), job.data.get("valid", protocol.valid)


def _shares(job: Job, found: Rows, protocol: Protocol) -> Cell:
    test, valid = shares_of(job, protocol)
    cuts = fold_rows(len(found.frame.clock), folds=job.folds, test=test, valid=valid)
    start, end = cuts[job.fold - 1]
    parts = chronological(end, test=test if job.folds == 1 else end - start, valid=valid)
    return _plain(found, end=end, test=end - start, valid=parts.b - parts.a)


def _plain(
    found: Rows,
    *,
    end: int,
    test: int,
    valid: int,
    scored: BoolArray | None = None,
) -> Cell:
    table, test = fold_frame(found.frame, end - test, end)
    # Levels of categories are those of the training rows.
    settings: dict[str, Any] = {**found.options, "calendar": found.calendar}
    frame = build_frame(table, target=table.target, **settings, test=test, valid=valid)
    return Cell(
        table=table,
        frame=frame,
        target=found.frame.target,
        options=found.options,
        test=test,
        valid=valid,
        preparation=None,
        series=found.frame.target_values,
        times=found.frame.times,
        rows=found.frame.find(frame.times, frame.names_of(np.arange(frame.n_rows))),
        scored=scored,
        truth=found.truth,
        facts=found.facts,
    )


# ---------------------------------------------------------------------- row ranges and label filter


def window_rows(
    series: FloatArray, ranges: Ranges, window: int, valid_of_train: float
) -> dict[str, IntArray]:
    """Return the rows to forecast, kept by the label filter, of "train", "valid" and "test"."""
    end_train, end_test = ranges.rows
    if len(series) < end_test:
        raise DataError(f"The protocol needs {end_test:,} rows; the data set has {len(series):,}.")
    keep = np.ones(len(series), dtype=bool)
    if ranges.labels is not None:
        keep = (series >= ranges.labels[0]) & (series <= ranges.labels[1])
    first_valid = end_train - round(valid_of_train * end_train)
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


def _windows(job: Job, found: Rows, protocol: Protocol, ranges: Ranges) -> Cell:
    """Cut the chosen windows out and lay them one after another, each with its label."""
    series, T = found.frame.target_values, job.window
    chosen = window_rows(series, ranges, T, protocol.valid_of_train)
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
    preparation = None
    if protocol.scale == "step":
        n_train = len(chosen["train"])
        preparation = step_preparation(values[: n_train * length], length)
    return Cell(
        table=table,
        frame=frame,
        target=found.frame.target,
        options=options,
        test=len(chosen["test"]) * length,
        valid=len(chosen["valid"]) * length,
        preparation=preparation,
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


def _filtered(job: Job, found: Rows, protocol: Protocol, ranges: Ranges) -> Cell:
    """Give all rows up to the end of the test rows; mark those whose forecasts count."""
    chosen = window_rows(found.frame.target_values, ranges, job.window, protocol.valid_of_train)
    check_counts(job, ranges, chosen)
    end_train, end_test = ranges.rows
    scored = np.zeros(found.frame.n_rows, dtype=bool)
    scored[chosen["valid"]] = scored[chosen["test"]] = True
    valid = round(protocol.valid_of_train * end_train)
    where: dict[str, Any] = {"end": end_test, "test": end_test - end_train, "valid": valid}
    return _plain(found, scored=scored, **where)
