"""One training step of all members, and an epoch of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mvlstm.nn.parameters import unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.protocol import Network
from mvlstm.train.state import TrainState
from mvlstm.train.streams import KeyedDropout, member_key, shuffled

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual constants


class Stepper:
    """The members still running, as compact tensors, and the step that moves them.

    The step reads its batch through counters that live on the device and never looks at a value
    on the host, so that a GPU can replay it as one recorded graph.
    """

    def __init__(
        self,
        network: Network,
        data: WindowData,
        config: TrainConfig,
        members: Sequence[Member],
        state: TrainState,
    ) -> None:
        self.network, self.data, self.config = network, data, config
        self.rows = state.running.nonzero().flatten()  # (k,) members of the state in work
        chosen = [members[k] for k in self.rows.tolist()]
        device, dtype = data.device, state.flat.dtype

        def each(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        keys = [member_key(member.seed) for member in chosen]
        self.keys = torch.tensor(keys, dtype=torch.int32, device=device)
        self.learning_rate = each([member.learning_rate for member in chosen]).unsqueeze(1)
        self.decay = each([2 * member.l2 for member in chosen]).unsqueeze(1)
        self.rates = each([member.dropout for member in chosen])
        self.drops = any(member.dropout > 0 for member in chosen)
        self.flat = state.flat[self.rows].clone().requires_grad_(True)
        self.first = state.first[self.rows].clone()
        self.second = state.second[self.rows].clone()
        self.step_count = state.step.to(device, torch.int32, copy=True)
        self.batch = min(config.batch_size, len(data.train))
        self.n_batches = len(data.train) // self.batch
        self.order = torch.zeros(
            (len(chosen), self.n_batches, self.batch), dtype=torch.int64, device=device
        )
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss_sum = torch.zeros(len(chosen), dtype=dtype, device=device)

    def run_epoch(self, epoch: int) -> Tensor:
        """Take every step of an epoch; return each running member's mean loss (k,)."""
        index = torch.tensor(epoch, dtype=torch.int32, device=self.data.device)
        order = shuffled(self.keys, index, len(self.data.train))
        used = order[:, : self.n_batches * self.batch]  # the few windows left over vary by epoch
        self.order.copy_(used.reshape(self.order.shape))
        self.cursor.zero_()
        self.loss_sum.zero_()
        for _ in range(self.n_batches):
            self.step()
        return self.loss_sum / self.n_batches

    def step(self) -> None:
        """Move every member by one batch of its own."""
        positions = self.order.index_select(1, self.cursor).squeeze(1)  # (k, B)
        origins = self.data.train[positions]
        x = self.data.windows(origins)  # (k, T, B, C)
        y = self.data.labels[origins]  # (k, B, H)
        dropout = KeyedDropout(self.keys, self.step_count, self.rates) if self.drops else None
        prediction = self.network(unflatten(self.flat, self.network.shapes), x, dropout)
        loss = self.network.loss(prediction, y)  # (k,)
        (gradient,) = torch.autograd.grad(loss.sum(), self.flat)
        with torch.no_grad():
            self.step_count += 1
            self.cursor += 1
            self.loss_sum += loss
            self._update(gradient)

    def _update(self, gradient: Tensor) -> None:
        """Adam on the penalised, clipped gradient (k, P), each member with its own rate."""
        gradient.addcmul_(self.decay, self.flat)  # from l2 ||theta||^2
        norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        gradient.mul_((self.config.gradient_clip / (norm + 1e-6)).clamp_(max=1.0))
        self.first.lerp_(gradient, 1 - BETA1)
        self.second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        count = self.step_count.to(self.flat.dtype)
        size = self.learning_rate / (1 - BETA1**count)  # (k, 1)
        spread = (self.second / (1 - BETA2**count)).sqrt_().add_(EPSILON)
        self.flat.addcmul_(self.first / spread, size, value=-1.0)

    def write_back(self, state: TrainState) -> None:
        """Put the members' tensors back into the whole state."""
        state.flat[self.rows] = self.flat.detach()
        state.first[self.rows] = self.first
        state.second[self.rows] = self.second
        state.step = self.step_count.to("cpu", torch.int64)
