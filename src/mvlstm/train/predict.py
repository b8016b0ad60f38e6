"""Prediction over many windows in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from mvlstm.nn.mixture import Prediction
from mvlstm.nn.parameters import Parameters
from mvlstm.train.data import gather_windows
from mvlstm.train.protocol import Network

CHUNK = 512


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Cut 0..n into slices of at most ``size``."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


@torch.no_grad()
def predict_rows(
    network: Network, p: Parameters, table: Tensor, origins: Tensor, window: int
) -> Iterator[tuple[slice, Prediction]]:
    """Yield predictions for windows ending at ``origins`` (S,), piece by piece."""
    members = next(iter(p.values())).shape[0]
    for piece in chunks(len(origins)):
        rows = origins[piece].expand(members, -1)
        yield piece, network(p, gather_windows(table, rows, window))


def mean_rows(
    network: Network, p: Parameters, table: Tensor, origins: Tensor, window: int
) -> Tensor:
    """Return the members' point forecasts (K, S, H) for windows ending at ``origins`` (S,)."""
    pieces = [q.mean for _, q in predict_rows(network, p, table, origins, window)]
    return torch.cat(pieces, dim=1)
