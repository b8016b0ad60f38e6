"""The whole state of a training run as named tensors: what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from mvlstm.nn.parameters import flatten
from mvlstm.train.config import Member
from mvlstm.train.protocol import Network
from mvlstm.train.streams import member_key

HISTORY = ("losses", "errors")  # epochs first


@dataclass
class TrainState:
    """Everything a run needs to go on: weights, optimiser, best weights, counters, history.

    All tensors have the members axis first, except the counters and the two histories (epochs
    first).
    """

    flat: Tensor  # (K, P) weights now
    first: Tensor  # (K, P) Adam's running mean of the gradient
    second: Tensor  # (K, P) and of its square
    mean: Tensor  # (K, P) running mean of the weights, where they are averaged
    best: Tensor  # (K, P) weights with the lowest validation error so far
    best_error: Tensor  # (K,)
    best_epoch: Tensor  # (K,) int64, counted from 1; 0 before the first
    lowered: Tensor  # (K,) int64, epochs done when the rate was lowered; 0 before
    running: Tensor  # (K,) bool, not yet stopped
    epoch: Tensor  # () int64, epochs done
    step: Tensor  # () int64, optimiser steps done
    batch: Tensor  # () int64, steps done in the epoch that has begun
    loss_sum: Tensor  # (K,) losses of these steps, added up
    losses: Tensor  # (E, K) mean training loss by epoch, NaN for members that had stopped
    errors: Tensor  # (E, K) validation RMSE by epoch, likewise

    @classmethod
    def start(
        cls, network: Network, members: Sequence[Member], device: torch.device, dtype: torch.dtype
    ) -> TrainState:
        """Return the state before the first step: each member drawn from its own seed."""
        drawn = []
        for member in members:
            generator = torch.Generator().manual_seed(member_key(member.seed))
            one = network.initial(generator)
            drawn.append(flatten({k: v.unsqueeze(0) for k, v in one.items()}, network.shapes))
        flat = torch.cat(drawn).to(device, dtype)
        K = len(members)
        return cls(
            flat=flat,
            first=torch.zeros_like(flat),
            second=torch.zeros_like(flat),
            mean=flat.clone(),
            best=flat.clone(),
            best_error=torch.full((K,), torch.inf, dtype=dtype, device=device),
            best_epoch=torch.zeros(K, dtype=torch.int64, device=device),
            lowered=torch.zeros(K, dtype=torch.int64, device=device),
            running=torch.ones(K, dtype=torch.bool, device=device),
            epoch=torch.zeros((), dtype=torch.int64),
            step=torch.zeros((), dtype=torch.int64),
            batch=torch.zeros((), dtype=torch.int64),
            loss_sum=torch.zeros(K, dtype=dtype, device=device),
            losses=torch.empty((0, K), dtype=torch.float64),
            errors=torch.empty((0, K), dtype=torch.float64),
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as named tensors, ready for a safetensors file."""
        return {f.name: getattr(self, f.name).detach().cpu().contiguous() for f in fields(self)}

    def each(self) -> list[TrainState]:
        """Return the state of every member by itself."""
        own: list[dict[str, Tensor]] = [{} for _ in self.running]
        for name, tensor in ((f.name, getattr(self, f.name)) for f in fields(self)):
            for k, one in enumerate(own):
                place = (slice(None), slice(k, k + 1)) if name in HISTORY else slice(k, k + 1)
                one[name] = (tensor[place] if tensor.dim() else tensor).clone()
        return [TrainState(**one) for one in own]

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], device: torch.device) -> TrainState:
        """Rebuild a state from `tensors`; counters and histories stay on the CPU."""
        here = {"epoch", "step", "batch", "losses", "errors"}
        return cls(**{k: v if k in here else v.to(device) for k, v in tensors.items()})
