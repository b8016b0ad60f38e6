"""The rows of one cell: a data set under a protocol, for one window, horizon and fold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import datasets
from mvlstm.bench.spec import Job, file_digest
from mvlstm.bench.studies import load_study
from mvlstm.datasets.synthetic import Truth
from mvlstm.errors import DataError, ParameterError
from mvlstm.evaluate.backtest import fold_frame, fold_rows
from mvlstm.problem.preparation import Preparation
from mvlstm.table.frame import SeriesFrame, build_frame
from mvlstm.table.parts import Choosing, chronological
from mvlstm.types import BoolArray, FloatArray, IntArray

CHRONOLOGICAL = "chronological"  # the first rows train, later ones choose, the last are scored on
TEST, VALID = 0.2, 0.1  # shares of the rows, unless the data set says otherwise


@dataclass(frozen=True, eq=False)
class Cell:
    """What a method is fitted to, and how its forecasts are scored."""

    table: Any  # for ``predict`` and ``explain``
    frame: SeriesFrame  # the same, as the method reads it
    target: str
    options: dict[str, Any]  # constructor arguments that suit the table: ``missing``, ``gaps``
    test: int  # rows at the end that are scored on
    valid: int  # rows before them that choose
    preparation: Preparation | None  # scaling other than by column, where the protocol has its own
    series: FloatArray  # the target by row of the data set, before windows were cut out
    times: pd.Index[Any]
    rows: IntArray  # row of the data set that each row of the frame is
    scored: BoolArray | None  # by row of the data set: whether its forecast counts; None: all do
    truth: Truth | None
    facts: dict[str, Any]  # rows, variables and checksum of the data, for the record
    apart: bool = False  # every window stands for itself: rows are not one stretch of time
    choose: Choosing = "half"  # which validation rows stop training and choose


def build_cell(job: Job, *, local: bool = True) -> Cell:
    """Load a job's data and divide it as its protocol says: in time order, or as its study does.

    A method that is not ``local``, but runs over the whole past, is given all rows, and only its
    forecasts of the chosen windows are scored.
    """
    if job.protocol == CHRONOLOGICAL:
        found = _shares(job, load_rows(job))
    else:
        found = load_study(job.study).protocols[job.protocol].cell(job, local=local)
    return replace(found, choose=job.choose)


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
    if sequences is not None:  # this many windows at this window length
        options["n"] = int(sequences) + max(job.window, 1) + job.horizon - 1
    found = _load_rows(job.dataset, json.dumps(options, sort_keys=True))
    if job.variables is None:
        return found
    given: dict[str, Any] = {**found.options, "calendar": found.calendar}
    frame = build_frame(found.frame, found.frame.target, variables=job.variables, **given)
    return replace(found, frame=frame)


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
    frame = build_frame(table, **given)
    whole = list(frame.layout.calendar) if "holidays" in given else given.get("calendar", "none")
    return _validated(frame, None, whole)


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


def shares_of(job: Job) -> tuple[float, float]:
    """Return the shares of the rows, or their numbers, that score and that choose."""
    return job.data.get("test", TEST), job.data.get("valid", VALID)


def _shares(job: Job, found: Rows) -> Cell:
    test, valid = shares_of(job)
    cuts = fold_rows(len(found.frame.clock), folds=job.folds, test=test, valid=valid)
    start, end = cuts[job.fold - 1]
    parts = chronological(end, test=test if job.folds == 1 else end - start, valid=valid)
    return plain_cell(found, end=end, test=end - start, valid=parts.b - parts.a)


def plain_cell(
    found: Rows, *, end: int, test: int, valid: int, scored: BoolArray | None = None
) -> Cell:
    """Return the rows up to ``end`` as a cell, the last ``test`` of them to be scored on."""
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
