"""The training data on the device: one table, and windows gathered from it as they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import torch
from torch import Tensor


@dataclass(frozen=True)
class LeftOut:
    """The stretch of training windows that each of some members does without."""

    start: Tensor  # (k,) places among the training windows
    width: int  # windows in a stretch; 0 for none

    def kept(self, places: Tensor, members: slice = slice(None)) -> Tensor:
        """Turn places (k, B) among the windows that members keep into places among all."""
        if not self.width:
            return places
        return places + self.width * (places >= self.start[members].unsqueeze(1))

    def places(self) -> Tensor:
        """Return the places of the windows left out, (k, width)."""
        return self.start.unsqueeze(1) + torch.arange(self.width, device=self.start.device)


@dataclass(frozen=True)
class WindowData:
    """A scaled table, its labels, and which rows are origins of training and stopping windows.

    The window of origin i is rows i - T + 1 to i; its label is ``labels[i]``, the H steps after i
    (scaled, less the link). Nothing of size windows x T is ever held.
    """

    table: Tensor  # (R, C)
    labels: Tensor  # (R, H), NaN where unknown; or (G, R, H), one set for each kind of member
    train: Tensor  # (M,) int64 rows; stretches of them are left out in their order
    stop: Tensor  # (S,) int64 rows
    window: int

    @property
    def device(self) -> torch.device:
        """Where the table lives."""
        return self.table.device

    @cached_property
    def known_share(self) -> float:
        """The share of the training windows' labels that are known."""
        if self.whole:
            return 1.0
        return float((~self.labels[..., self.train, :].isnan()).double().mean())

    @cached_property
    def whole(self) -> bool:
        """Whether all labels of training and stopping windows are known."""
        rows = torch.cat([self.train, self.stop])
        return not bool(self.labels[..., rows, :].isnan().any())

    def known(self, targets: Tensor) -> Tensor | None:
        """Say which labels (k, B, H) are known; None where all are, which is found out once."""
        return None if self.whole else ~targets.isnan()

    def without(self, share: float, seeds: Sequence[int]) -> LeftOut:
        """Leave out a ``share`` of the training windows for each member, by its seed.

        There are as many stretches as the share goes into the windows, but for a few left over.
        Consecutive seeds take each once before any comes again, apart where that can be.
        """
        n = len(self.train)
        width = int(share * n)
        if not width:
            return LeftOut(torch.zeros(len(seeds), dtype=torch.int64, device=self.device), 0)
        stretches = max(2, round(1 / share))
        apart = next(a for a in range(stretches // 2, 0, -1) if gcd(a, stretches) == 1)
        turns = torch.tensor([seed * apart % stretches for seed in seeds], device=self.device)
        return LeftOut(turns * (n - width) // (stretches - 1), width)

    def targets(self, origins: Tensor, variants: Tensor) -> Tensor:
        """Return the labels (k, B, H) of origins (B,) or (k, B), for members of variants (k,)."""
        if self.labels.dim() == 2:
            return self.labels[origins]
        return self.labels[variants.unsqueeze(1), origins]

    def windows(self, origins: Tensor) -> Tensor:
        """Gather windows for origins (K, B): (K, T, B, C), time-major within a member."""
        return gather_windows(self.table, origins, self.window)


def gather_windows(table: Tensor, origins: Tensor, window: int) -> Tensor:
    """Gather windows ending at rows ``origins`` (K, B) of ``table`` (R, C): (K, T, B, C)."""
    K, B = origins.shape
    window = int(window)
    back = torch.arange(1 - window, 1, device=table.device)  # (T,)
    rows = origins.unsqueeze(1) + back[None, :, None]  # (K, T, B)
    return table.index_select(0, rows.flatten()).view(K, window, B, table.shape[1])
