"""How much memory training will take, said before it is taken."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mvlstm.errors import ParameterError
from mvlstm.nn.parameters import count
from mvlstm.train.protocol import Network
from mvlstm.train.stepper import cut_batch

NUMBER = 4  # bytes of a float32
COPIES = 9  # weights, two moments and best, in the state and in training; one more while drawing
KEPT = 12  # values that a step of a cell keeps for each unit until its gradient is known
KEPT_ON_GPU = 7  # the same where most of them are held in half precision


def training_bytes(
    network: Network, *, members: int, batch: int, window: int, device: str = "cpu"
) -> float:
    """Estimate the bytes that training takes in addition to the table.

    The weights count once for every copy and every piece of a batch whose gradient waits to be
    added up; what the recurrence keeps counts for the pieces that are worked on at once. On a GPU
    these are the whole batches of all members.
    """
    weights = count(network.shapes)
    width = getattr(network, "n_variables", 1) * getattr(network, "hidden_size", 1)
    width *= getattr(network, "layers", 1)
    if device == "cuda":
        copies, states = COPIES + 1, members * batch * window * width * KEPT_ON_GPU
    else:
        pieces = cut_batch(batch, weights, window)
        at_once = min(torch.get_num_threads(), members * len(pieces))
        windows = max(piece.stop - piece.start for piece in pieces)
        copies, states = COPIES + len(pieces), at_once * windows * window * width * KEPT
    return float(NUMBER * (members * weights * copies + states))


def check_memory(
    network: Network, *, members: int, batch: int, window: int, device: torch.device
) -> None:
    """Raise `ParameterError` if training would take more memory than is free.

    The remedy names gates that see one variable each, if these are not used and would help.
    """
    sizes: dict[str, Any] = {"members": members, "batch": batch, "window": window}
    sizes["device"] = device.type
    needed, free = training_bytes(network, **sizes), free_bytes(device)
    if free is None or needed <= free:
        return
    variables = getattr(network, "n_variables", None) or getattr(network, "n_columns", None)
    what = f"{variables} variables, " if variables else ""
    remedy = "a smaller hidden_size, fewer members, or fewer variables"
    if getattr(network, "gates", None) == "full":
        less = training_bytes(replace(network, gates="variable"), **sizes)  # type: ignore[type-var]
        if less <= free:
            remedy = f"gates='variable', which needs {_size(less)}; or {remedy}"
    raise ParameterError(
        f"Training with {what}hidden_size={getattr(network, 'hidden_size', '?')} and "
        f"members={members} needs about {_size(needed)} of memory; {_size(free)} are free. "
        f"Use {remedy}."
    )


def free_bytes(device: torch.device) -> float | None:
    """Return the memory that is free on a device; None where that cannot be found out."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    found: list[float] = []
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable"))
        found.append(float(line.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = float((group / "memory.max").read_text(encoding="ascii"))
        found.append(limit - float((group / "memory.current").read_text(encoding="ascii")))
    if not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def _size(n: float) -> str:
    return f"{n / 2**30:.1f} GB" if n >= 2**30 else f"{n / 2**20:.0f} MB"
