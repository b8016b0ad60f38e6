"""The same jobs as tasks of Ray: on this machine's cores, or on an existing cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mvlstm.bench.execution import attempt, failed_record, failure
from mvlstm.bench.records import Arrays, Record, Writer
from mvlstm.bench.spec import Job
from mvlstm.engine import opened


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
