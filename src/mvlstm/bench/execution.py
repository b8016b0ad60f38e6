"""One job as a record: run where a worker is, written where the run says."""

from __future__ import annotations

import time as clock
import traceback
import warnings
from pathlib import Path
from typing import Any

from mvlstm.bench.circumstances import circumstances
from mvlstm.bench.job import Arrays, run_job
from mvlstm.bench.records import SCHEMA, Record, Writer
from mvlstm.bench.spec import KINDS, Job
from mvlstm.bench.studies import load_study
from mvlstm.errors import MVLSTMError
from mvlstm.results._tables import plain


def run_and_write(job: Job, writer: Writer, device: str) -> Record:
    """Run a job and put its record on disk."""
    record, arrays = attempt(job, device)
    writer.add(record, arrays)
    return record


def attempt(job: Job, device: str) -> tuple[Record, Arrays]:
    """Run a job; a failure becomes a record too."""
    started = clock.monotonic()
    try:
        found, arrays = _run(job, device)
    except Exception as error:  # whatever it is, the other jobs go on
        seconds = clock.monotonic() - started
        return failed_record(job, device, failure(error), seconds), {}
    done = {"status": "done", "error": None}
    return plain({**heading(job), **done, **found, **circumstances(device)}), arrays


def _run(job: Job, device: str) -> tuple[Record, Arrays]:
    if job.kind in KINDS:
        outcome = run_job(job, device=device)
        return outcome.record, outcome.arrays
    with warnings.catch_warnings(action="ignore"):
        return load_study(job.study).kinds[job.kind].run(job, device), {}


def heading(job: Job) -> dict[str, Any]:
    """Return what every record of a job begins with."""
    written = clock.strftime("%Y-%m-%dT%H:%M:%SZ", clock.gmtime())
    return {"schema": SCHEMA, "key": job.key, "job": job.to_dict(), "written": written}


def failed_record(
    job: Job, device: str, error: dict[str, Any], seconds: float | None = None
) -> Record:
    """Return the record of a job that failed."""
    timings = {} if seconds is None else {"total": seconds}
    rest = {"status": "failed", "error": error, "timings": timings}
    return {**heading(job), **rest, **circumstances(device)}


def failure(error: BaseException) -> dict[str, Any]:
    """Return what a record says about what went wrong."""
    ours = isinstance(error, MVLSTMError)
    message = str(error) if ours else f"{type(error).__name__}: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in last]
    return {"kind": type(error).__name__, "message": message, "where": where}
