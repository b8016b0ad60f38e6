"""Which variables Granger-cause the target: the reference set for importance on real data."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np

from experiments.authors import RANGES
from experiments.granger_tests import difference, fewest_rows, granger_tests, longest_stretch
from mvlstm.bench.cells import CHRONOLOGICAL, load_rows, shares_of
from mvlstm.bench.spec import Job
from mvlstm.errors import DataError
from mvlstm.problem.stationarity import choose_differencing
from mvlstm.table.parts import chronological
from mvlstm.types import FloatArray


def granger_record(job: Job, device: str = "cpu") -> dict[str, Any]:
    """Test every variable on the training rows, conditionally on the others and in a pair.

    Of rows with gaps that are not closed, or with targets that were filled in, the longest stretch
    without is tested. Series are standardised, and differenced where their tests say so; categories
    and the calendar are left out. A variable is important if its p-value, corrected by Holm over
    all variables, is below 0.01. With many rows nearly every variable is, so the share of the
    remaining variance that it explains is recorded too.
    """
    started = clock.monotonic()
    found = load_rows(job)
    if job.protocol == CHRONOLOGICAL:
        test, valid = shares_of(job)
        end = chronological(len(found.frame.clock), test=test, valid=valid).a
    else:
        end = RANGES[job.dataset].end_of_training
    measured = np.flatnonzero(found.frame.layout.measured)
    names = [found.frame.columns[column] for column in measured]  # the target is the last
    if len(names) < 2:
        raise DataError(f"Data set '{job.dataset}' has no variable of numbers to test.")
    train = found.frame.order < end
    known = None if found.frame.measured is None else found.frame.measured[train]
    stretch = longest_stretch(found.frame.segments[train], known)
    values = found.frame.values[train][:, measured][stretch]
    notes = _notes_on_gaps(len(values), int(train.sum()), len(names), job.dataset)
    choice = choose_differencing(values, names)
    series = _standardised(difference(values, choice.orders))
    tested = granger_tests(series)
    rows = [
        {"variable": name, **{key: column[n] for key, column in tested["columns"].items()}}
        for n, name in enumerate(names[:-1])
    ]
    return {
        "target": found.frame.target,
        "lags": tested["lags"],
        "differenced": [n for n, d in zip(names, choice.orders, strict=True) if d],
        "rows": len(series),
        "granger": rows,
        "notes": [*notes, *choice.notes],
        "data": found.facts,
        "timings": {"total": clock.monotonic() - started},
    }


def _notes_on_gaps(rows: int, train: int, columns: int, dataset: str) -> tuple[str, ...]:
    """Say that gaps leave some of the training rows to test; refuse too few."""
    if rows == train:
        return ()
    least = fewest_rows(columns)
    if rows < least:
        raise DataError(
            f"The longest stretch of data set '{dataset}' without a gap or a missing target has "
            f"{rows:,} training rows; Granger's tests of {columns} columns need {least:,}. Use "
            "gaps='close' and missing='drop', or fewer variables."
        )
    return (
        f"Granger's tests rest on {rows:,} of {train:,} training rows, the longest stretch without "
        "a gap or a missing target.",
    )


def _standardised(series: FloatArray) -> FloatArray:
    scale = series.std(axis=0)
    return np.asarray((series - series.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
