"""Jobs on processes of this machine, side by side; one that dies costs its own job only."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time as clock
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mvlstm.bench.execution import failed_record, run_and_write
from mvlstm.bench.records import Record, Writer
from mvlstm.bench.spec import Job

ATTEMPTS = 2  # a job whose process was killed is tried once more


@dataclass(eq=False)
class _Worker:
    """A process, the line to it, and the job it is at."""

    process: Any
    line: Connection
    job: Job | None = None


def pool_records(
    jobs: Sequence[Job], folder: Path, *, workers: int, device: str
) -> Iterator[Record]:
    """Yield each job's record when its process has put it on disk.

    Every process writes a file of its own. If one is killed, its job is given to a new one; if
    that is killed too, the job is recorded as failed. One that dies without a job is replaced.
    """
    waiting, attempts = deque(jobs), Counter[str]()
    count = min(workers, len(jobs))
    start = partial(_start, folder, device, max(1, (os.cpu_count() or 1) // count))
    crew = [start() for _ in range(count)]
    own = Writer(folder)
    try:
        while waiting or any(worker.job for worker in crew):
            for place, worker in enumerate(crew):
                crew[place] = _at_work(worker, waiting, start)
            ready = wait([worker.line for worker in crew if worker.job])
            for place, worker in enumerate(crew):
                if worker.line not in ready:
                    continue
                job, worker.job = worker.job, None
                assert job is not None
                attempts[job.key] += 1
                record = _receive(worker)
                if record is None:
                    crew[place] = start()
                    if attempts[job.key] < ATTEMPTS:
                        waiting.append(job)
                        continue
                    record = _killed(job, worker, device)
                    own.add(record, {})
                yield record
    finally:
        for worker in crew:
            worker.line.close()
        for worker in crew:
            worker.process.join(timeout=5 if worker.job is None else 0.1)
            if worker.process.is_alive():
                worker.process.terminate()


def _at_work(worker: _Worker, waiting: deque[Job], start: Callable[[], _Worker]) -> _Worker:
    """Give a worker without a job the next one; return it, or who took the place of a dead one."""
    while worker.job is None and waiting:
        if _send(worker, waiting[0]):
            worker.job = waiting.popleft()
        else:  # it died between two jobs
            worker = start()
    return worker


def _start(folder: Path, device: str, threads: int) -> _Worker:
    """Start a process; one that has no parent left ends itself."""
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    here, there = context.Pipe()
    before = os.environ.get("OMP_NUM_THREADS")
    if not before:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        process = context.Process(
            target=_work, args=(there, str(folder), device, os.getpid()), daemon=True
        )
        process.start()
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
    there.close()
    return _Worker(process, here)


def _send(worker: _Worker, job: Job) -> bool:
    try:
        worker.line.send(job.to_dict())
    except (OSError, ValueError):
        return False
    return True


def _receive(worker: _Worker) -> Record | None:
    """Return a finished job's record; None if the process has died."""
    try:
        found: Record = worker.line.recv()
    except (EOFError, OSError):
        worker.process.join(timeout=5)
        return None
    return found


def _killed(job: Job, worker: _Worker, device: str) -> Record:
    code = worker.process.exitcode
    cause = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    message = (
        f"The process that ran this job ended by {cause}, {ATTEMPTS} times. If memory ran out, "
        "use fewer workers; then run again with retry_failed=True."
    )
    return failed_record(job, device, {"message": message, "where": []})


def _work(line: Connection, folder: str, device: str, parent: int) -> None:
    """Run jobs as they come, until the line is closed."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    writer = Writer(Path(folder))
    while True:
        try:
            job = Job.from_dict(line.recv())
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            record = run_and_write(job, writer, device)
        except KeyboardInterrupt:
            return
        line.send(record)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, so that a killed run leaves nothing running."""
    while os.getppid() == parent:
        clock.sleep(0.5)
    os._exit(1)
