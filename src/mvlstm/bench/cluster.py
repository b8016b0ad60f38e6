"""The same jobs as tasks of Ray: on this machine's cores, or on an existing cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from mvlstm.bench.execution import attempt, failed_record, failure
from mvlstm.bench.records import Arrays, Record, Writer
from mvlstm.bench.spec import Job
from mvlstm.errors import MissingExtraError, ParameterError

RETRIES = 5  # times that a task whose worker died is given to another
SECONDS = 10.0  # for a cluster to answer
GPU_SHARE = 0.25  # of a GPU that a task takes, where there are GPUs


def ray_records(
    jobs: Sequence[Job], writer: Writer, *, address: str | None, device: str
) -> Iterator[Record]:
    """Yield each job's record when it is on disk.

    Workers send what they found to this process, which writes it: no file system need be shared.
    Ray gives the job of a worker that died to another. A Ray that runs in this process already is
    used, and left running.
    """
    with _session(address) as ray:
        there = float(ray.cluster_resources().get("GPU", 0.0))
        gpus = 0.0 if device == "cpu" else min(GPU_SHARE, there)
        task = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=gpus)(_run)
        flying = {task.remote(job.to_dict(), device): job for job in jobs}
        while flying:
            ready, _ = ray.wait(list(flying), num_returns=1)
            for future in ready:
                job = flying.pop(future)
                record, arrays = _result(ray, future, job, device)
                writer.add(record, arrays)
                yield record


def _run(values: dict[str, Any], device: str) -> tuple[Record, Arrays]:
    """Run one job in a worker of Ray."""
    return attempt(Job.from_dict(values), device)


def _result(ray: Any, future: Any, job: Job, device: str) -> tuple[Record, Arrays]:
    try:
        found: tuple[Record, Arrays] = ray.get(future)
    except ray.exceptions.RayError as error:  # its workers died again and again
        return failed_record(job, device, failure(error)), {}
    return found


@contextlib.contextmanager
def _session(address: str | None) -> Iterator[Any]:
    """Yield Ray, started here or connected to its cluster; what was begun is ended afterwards."""
    if address not in (None, "auto"):
        _check_reachable(str(address))
    ray = _load()
    if ray.is_initialized():
        if address is not None:
            raise ParameterError(
                f"Ray runs in this process already, so that address={address!r} cannot be used. "
                "Leave it out to use that Ray, or call ray.shutdown() first."
            )
        yield ray
        return
    try:
        _connect(ray, address)
        yield ray
    finally:
        with contextlib.suppress(Exception):
            ray.shutdown()


def _load() -> Any:
    # Accelerators are shared by hand; tell Ray not to hide them from tasks without a share.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            "The engine 'ray' needs Ray, which is not installed. Install the extra: pip install "
            '"mvlstm[ray]", or use engine="local".'
        ) from error
    return ray


def _connect(ray: Any, address: str | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options |= {"include_dashboard": False, "num_cpus": os.cpu_count()}
    try:
        ray.init(address=address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"the Ray cluster at {address}" if address else "Ray on this machine"
        raise ParameterError(
            f"{where} cannot be reached: {error}. Check address=..., or leave it out to start Ray "
            "here."
        ) from error


def _check_reachable(address: str) -> None:
    """Raise `ParameterError` at once where nobody listens; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"There is no Ray cluster at address={address!r}: {error}. Give HOST:PORT of its head "
            "node, such as 10.0.0.1:6379, or leave it out to start Ray here."
        ) from error
