"""One job as a record, its circumstances included: run where a worker is, written where told."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import time as clock
import traceback
import warnings
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mvlstm._version import __version__
from mvlstm.bench.job import run_job
from mvlstm.bench.records import SCHEMA, Arrays, Record, Writer
from mvlstm.bench.spec import KINDS, Job
from mvlstm.bench.studies import load_study
from mvlstm.errors import MVLSTMError
from mvlstm.results._tables import plain

LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels", "torch", "xgboost-cpu")
ALSO = {"xgboost-cpu": "xgboost"}  # as it is called where there is no light build


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


def circumstances(device: str) -> dict[str, Any]:
    """Return versions, hardware, host and commit."""
    return {**_fixed(device), "host": socket.gethostname()}


@lru_cache(maxsize=4)
def _fixed(device: str) -> dict[str, Any]:
    from mvlstm.train.runtime import device_name

    found: dict[str, str | None] = {"python": platform.python_version(), "mvlstm": __version__}
    for name in LIBRARIES:
        found[name] = _version(name) or _version(ALSO.get(name, ""))
    hardware = {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "device": device_name(device),
    }
    return {"versions": found, "hardware": hardware, "commit": _commit()}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package) if package else None
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _commit() -> str | None:
    """Return the commit of the checkout the package runs from, if it is one."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("MVLSTM_COMMIT")
    return os.environ.get("MVLSTM_COMMIT") or done.stdout.strip() or None
