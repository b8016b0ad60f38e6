"""Which variables Granger-cause the target: the reference set for importance on real data."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.bench.cells import load_rows, shares_of
from mvlstm.bench.protocols import PROTOCOLS
from mvlstm.bench.spec import Job
from mvlstm.data.splits import chronological
from mvlstm.data.stationarity import choose_differencing, difference
from mvlstm.errors import DataError
from mvlstm.explain.granger import granger_tests

FloatArray = NDArray[np.float64]


def granger_record(job: Job) -> dict[str, Any]:
    """Test every variable on the training rows, conditionally on the others and in a pair.

    Series are standardised, and differenced where their tests say so; categories and the calendar
    are left out. A variable is important if
    its p-value, corrected by Holm over all variables, is below 0.01. With many rows nearly every
    variable is, so the share of the remaining variance that it explains is recorded too.
    """
    started = clock.monotonic()
    found = load_rows(job)
    protocol = PROTOCOLS[job.protocol]
    if protocol.ranges:
        end = protocol.ranges[job.dataset].rows[0]
        end -= round(protocol.valid_of_train * end)
    else:
        test, valid = shares_of(job, protocol)
        end = chronological(found.frame.n_rows, test=test, valid=valid).a
    measured = np.flatnonzero(found.frame.layout.measured)
    names = [found.frame.columns[column] for column in measured]  # the target is the last
    if len(names) < 2:
        raise DataError(f"Data set '{job.dataset}' has no variable of numbers to test.")
    values = found.frame.values[:end, measured]
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
        "notes": list(choice.notes),
        "data": found.facts,
        "timings": {"total": clock.monotonic() - started},
    }


def _standardised(series: FloatArray) -> FloatArray:
    scale = series.std(axis=0)
    return np.asarray((series - series.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
