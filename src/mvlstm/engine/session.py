"""Ray in this process: one that runs already, one started here, or a cluster's."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

from mvlstm.errors import ParameterError, load_extra

SECONDS = 10.0  # for a cluster to answer
_ours: list[str | None] = []  # address of the session that was begun here, while it lasts


@contextlib.contextmanager
def session(address: str | None) -> Iterator[Any]:
    """Yield Ray, started here or connected to its cluster; what was begun is ended afterwards.

    A Ray that runs in this process already is used, and left running.
    """
    if address not in (None, "auto", *_ours):
        _check_reachable(str(address))
    ray = _load()
    if ray.is_initialized():
        if address is not None and address not in _ours:
            raise ParameterError(
                f"Ray runs in this process already, so that address={address!r} cannot be used. "
                "Leave it out to use that Ray, or call ray.shutdown() first."
            )
        yield ray
        return
    try:
        _connect(ray, address)
        _ours.append(address)
        yield ray
    finally:
        _ours.clear()
        with contextlib.suppress(Exception):
            ray.shutdown()


def is_ours() -> bool:
    """Tell whether the Ray of this process was begun by `session`, which will end it."""
    return bool(_ours)


def _load() -> Any:
    # Accelerators are shared by hand; tell Ray not to hide them from tasks without a share.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return load_extra("ray", "The engine 'ray'", "ray")


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
