"""Prediction over many windows in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from mvlstm.nn.mixture import Prediction
from mvlstm.nn.parameters import Parameters
from mvlstm.train.data import gather_windows
from mvlstm.train.protocol import Network
from mvlstm.train.workers import run_all

CHUNK = 512
CHUNK_ON_GPU = 500_000  # time steps of all windows and members
MOST_ON_GPU = 65_535  # windows of one launch: the limit of a grid's second axis
TASK = 128  # windows of one member that a CPU core takes at once


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Cut 0..n into slices of at most ``size``."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def gpu_chunk(members: int, window: int) -> int:
    """Return the windows of each member that a GPU predicts at once."""
    return min(MOST_ON_GPU, max(CHUNK // 2, CHUNK_ON_GPU // (members * window)))


def predict_rows(
    network: Network, p: Parameters, table: Tensor, origins: Tensor, window: int
) -> Iterator[Prediction]:
    """Yield predictions for windows ending at ``origins`` (S,) or (K, S), piece by piece."""
    members = len(next(iter(p.values())))
    origins = origins.expand(members, -1)  # (K, S)
    every = [slice(k, k + 1) for k in range(members)]
    size = gpu_chunk(members, window) if table.is_cuda else CHUNK
    for piece in chunks(origins.shape[1], size):
        rows = origins[:, piece]
        if table.is_cuda:
            yield _predict(network, p, table, rows, window)
            continue
        parts = list(chunks(rows.shape[1], TASK))
        found = run_all(
            [
                partial(_predict, network, one, table, rows[k, part], window)
                for k, one in [(k, {name: w[k] for name, w in p.items()}) for k in every]
                for part in parts
            ]
        )
        n = len(parts)
        yield _join([_join(found[i : i + n], 1) for i in range(0, len(found), n)], 0)


def mean_rows(
    network: Network, p: Parameters, table: Tensor, origins: Tensor, window: int
) -> Tensor:
    """Return the members' point forecasts (K, S, H) for windows ending at ``origins``.

    These are (S,), or (K, S) where every member has its own.
    """
    return torch.cat([q.mean for q in predict_rows(network, p, table, origins, window)], dim=1)


@torch.no_grad()
def _predict(
    network: Network, p: Parameters, table: Tensor, rows: Tensor, window: int
) -> Prediction:
    return network(p, gather_windows(table, rows, window))


def _join(parts: Sequence[Prediction], axis: int) -> Prediction:
    """Join predictions for other windows (axis 1) or other members (axis 0)."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Tensor | None] = {}
    for name in Prediction._fields:
        tensors = [getattr(part, name) for part in parts]
        shared = name == "log_sigma2" and axis == 1 and tensors[0].dim() == 2  # by all windows
        whole = tensors[0] is None or shared
        joined[name] = tensors[0] if whole else torch.cat(tensors, dim=axis)
    return Prediction(**joined)  # type: ignore[arg-type]
