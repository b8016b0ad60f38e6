"""The circumstances of a record: versions, hardware, commit."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mvlstm._version import __version__

LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels", "torch", "xgboost-cpu")
ALSO = {"xgboost-cpu": "xgboost"}  # as it is called where there is no light build


def circumstances(device: str) -> dict[str, Any]:
    """Return versions, hardware, host and commit."""
    return {**_fixed(device), "host": socket.gethostname()}


@lru_cache(maxsize=4)
def _fixed(device: str) -> dict[str, Any]:
    return {"versions": versions(), "hardware": hardware(device), "commit": commit()}


def versions() -> dict[str, str | None]:
    """Return the versions of Python, mvlstm and the libraries that results depend on."""
    found: dict[str, str | None] = {"python": platform.python_version(), "mvlstm": __version__}
    for name in LIBRARIES:
        found[name] = _version(name) or _version(ALSO.get(name, ""))
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package) if package else None
    except metadata.PackageNotFoundError:
        return None


def hardware(device: str) -> dict[str, Any]:
    """Return processor, cores, threads, and the accelerator that networks run on."""
    from mvlstm.train.runtime import device_name

    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "device": device_name(device),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def commit() -> str | None:
    """Return the commit of the checkout the package runs from, if it is one."""
    given = os.environ.get("MVLSTM_COMMIT")
    if given:
        return given
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return done.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
