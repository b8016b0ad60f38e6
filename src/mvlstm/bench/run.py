"""Running a suite: what is not done yet, on this machine or on Ray."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvlstm import datasets
from mvlstm.bench.cells import load_rows
from mvlstm.bench.execution import attempt, failed_record, failure, run_and_write
from mvlstm.bench.pool import pool_records
from mvlstm.bench.records import Arrays, Record, Records, Writer, read_records
from mvlstm.bench.spec import Job, Suite
from mvlstm.engine import check_engine, opened
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError, check_whole, reachable
from mvlstm.progress import show_tasks
from mvlstm.settings import RunningSettings, expanded
from mvlstm.storage import hold_lock


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    folder: Path  # of the records
    done: int  # jobs finished now
    failed: int
    skipped: int  # finished or failed before
    errors: dict[str, str]  # key of each failed job: why
    problems: tuple[str, ...] = ()  # records of earlier runs that could not be read
    failed_before: int = 0  # how many of those skipped had failed


@expanded(running=RunningSettings)
def run_suite(
    suite: Suite,
    folder: str | Path,
    running: RunningSettings,
    *,
    device: str = "auto",
    retry_failed: bool = False,
    verbose: int = 1,
) -> Summary:
    """Run the jobs of a suite that are not done yet; each leaves one durable record in a folder."""
    check_engine(running.engine)
    check_whole("workers", running.workers, 1)
    place = reachable(folder)
    check_data(outstanding(suite.jobs, read_records(place), retry_failed=retry_failed))
    check_folder(place)
    with _alone(suite, place):
        before = read_records(place)  # once more: another run may have ended meanwhile
        jobs = outstanding(suite.jobs, before, retry_failed=retry_failed)
        errors: dict[str, str] = {}
        finished = 0
        with show_tasks(verbose, f"bench {suite.name}", len(jobs), every=0.0) as advance:
            for record in _records(jobs, place, running, device):
                finished += record["status"] == "done"
                if record["status"] != "done":
                    errors[record["key"]] = record["error"]["message"]
                advance(describe(record))
    left = {job.key for job in suite.jobs} - {job.key for job in jobs}
    return Summary(
        folder=place,
        done=finished,
        failed=len(errors),
        skipped=len(left),
        errors=errors,
        problems=before.problems,
        failed_before=len(left & before.failed.keys()),
    )


def _alone(suite: Suite, folder: Path) -> AbstractContextManager[None]:
    """Wait until no other process runs a suite into a folder, saying so, and keep others waiting.

    What that process has done by then needs not be done again.
    """
    what = f"Suite '{suite.name}' in '{folder}'"

    def waiting(holder: str) -> None:
        words = f"{what} is being run by {holder}. Waiting for it to end; then what is left is run."
        warnings.warn(words, MVLSTMWarning, stacklevel=6)

    name = "".join(c for c in suite.name if c.isalnum())[:40]
    return hold_lock(folder / f".{name}.lock", what, patience=math.inf, waiting=waiting)


def outstanding(jobs: Sequence[Job], before: Records, *, retry_failed: bool) -> list[Job]:
    """Return the jobs to run: those without a record, and failed ones if wished."""
    seen = set(before.done) | (set() if retry_failed else set(before.failed))
    return [job for job in jobs if job.key not in seen]


def check_data(jobs: Sequence[Job]) -> None:
    """Raise `DataError` if a data set of the jobs is absent or damaged, before any work.

    Tables of one's own are read, so that a wrong column is told of at once and not by every job.
    """
    tables = {json.dumps(job.data, sort_keys=True): job for job in jobs if "file" in job.data}
    for job in tables.values():
        try:
            load_rows(job)
        except DataError as error:
            raise DataError(f"Data set '{job.dataset}': {error}") from error
    own = ("file", "folder", "made")  # the last two are read or made when a job needs them
    names = dict.fromkeys(job.dataset for job in jobs if not any(k in job.data for k in own))
    absent = [name for name in names if not datasets.is_present(name)]
    if absent:
        rest = [name for name in names if name not in absent]
        other = f" Or leave them out: datasets={rest}." if rest else ""
        to_get = [name for name in absent if datasets.describe(name).archive]
        get = f", or get them: mvlstm data fetch {' '.join(to_get)}" if to_get else ""
        raise DataError(
            f"Not in the data folder '{datasets.data_folder()}': {', '.join(absent)}. Set "
            f"MVLSTM_DATA to the folder that holds them{get}.{other}"
        )
    for name in names:
        datasets.verify(name)


def check_folder(folder: Path) -> None:
    """Make the folder of records; raise `ParameterError` if nothing can be written there."""
    try:
        reachable(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            f"Records cannot be written to '{folder}': {error.strerror or error}. Choose another "
            "folder."
        ) from error


def _records(
    jobs: Sequence[Job], folder: Path, running: RunningSettings, device: str
) -> Iterator[Record]:
    """Yield the record of each job when it is on disk."""
    if running.engine != "local":
        where: Any = {"engine": running.engine, "address": running.address}
        yield from ray_records(jobs, Writer(folder), **where, device=device)
    elif running.workers > 1 and len(jobs) > 1:
        yield from pool_records(jobs, folder, workers=running.workers, device=device)
    else:
        writer = Writer(folder)
        for job in jobs:
            yield run_and_write(job, writer, device)


def ray_records(
    jobs: Sequence[Job], writer: Writer, *, engine: str, address: str | None, device: str
) -> Iterator[Record]:
    """Yield each job's record when it is on disk.

    Workers send what they found to this process, which writes it: no file system need be shared.
    """

    def lost(values: dict[str, Any], error: Exception) -> tuple[Record, Arrays]:
        return failed_record(Job.from_dict(values), device, failure(error)), {}

    with opened(engine, device, address) as spread:
        tasks = [job.to_dict() for job in jobs]
        for _, (record, arrays) in spread.results(_run, device, tasks, lost):
            writer.add(record, arrays)
            yield record


def _run(device: str, values: dict[str, Any]) -> tuple[Record, Arrays]:
    """Run one job in a worker."""
    return attempt(Job.from_dict(values), device)


def describe(record: Record) -> str:
    """Say in a few words how a job went."""
    job = record["job"]
    where = f"{job['dataset']} {job['protocol']} T={job['window']}"
    name = " ".join(word for word in (job["label"], job["setting"]) if word)
    if record["status"] != "done":
        return f"{where} {name}: failed: {record['error']['message']}"
    if job["kind"] != "forecast":
        return f"{where} {name}: done in {record['timings']['total']:.0f} s"
    kind = "ensemble" if record["ensemble"] else "single"
    rmse = record[kind]["rmse"][0]
    return f"{where} {name}: RMSE {rmse:.4g} ({kind}), {record['timings']['total']:.0f} s"
