"""The training data on the device: one table, and windows gathered from it as they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class WindowData:
    """A scaled table, its labels, and which rows are origins of training and stopping windows.

    The window of origin i is rows i - T + 1 to i; its label is ``labels[i]``, the H steps after i
    (scaled, less the link). Nothing of size windows x T is ever held.

    Shapes
    ------
    table : (R, C)
    labels : (R, H), NaN where unknown
    train, stop : (M,), (S,) int64 rows
    """

    table: Tensor
    labels: Tensor
    train: Tensor
    stop: Tensor
    window: int

    @property
    def device(self) -> torch.device:
        """Where the table lives."""
        return self.table.device

    def windows(self, origins: Tensor) -> Tensor:
        """Gather windows for origins (K, B): (K, T, B, C), time-major within a member."""
        return gather_windows(self.table, origins, self.window)


def gather_windows(table: Tensor, origins: Tensor, window: int) -> Tensor:
    """Gather windows ending at rows ``origins`` (K, B) of ``table`` (R, C): (K, T, B, C)."""
    K, B = origins.shape
    back = torch.arange(1 - window, 1, device=table.device)  # (T,)
    rows = origins.unsqueeze(1) + back[None, :, None]  # (K, T, B)
    return table.index_select(0, rows.flatten()).view(K, window, B, table.shape[1])
