"""One training step of all members, and an epoch of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from mvlstm.nn.parameters import count, unflatten
from mvlstm.train.adam import clip, fused_adam, take_step
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.graph import recorded
from mvlstm.train.protocol import Network
from mvlstm.train.shrinkage import Shrinkage
from mvlstm.train.state import TrainState
from mvlstm.train.streams import KeyedDropout, member_key, shuffled
from mvlstm.train.workers import run_all, run_chains

PIECE_WINDOWS = 64  # fewest windows worth a piece of their own
PIECE_WORK = 2e9  # multiplications and additions worth one: smaller ones cost up to a third more
MOST_PIECES = 8
PAUSE_EVERY = 0.2  # seconds of steps in a row, for which an interruption waits
Outcome = tuple[Tensor, Tensor]  # losses (k,) and gradients (k, P)


class Stepper:
    """The members still running, as compact tensors, and the step that moves them.

    Members do not see one another, so a step may be taken in any order. On the CPU the cores work
    through the members, or through pieces of their batches where these are large. How a batch is
    cut depends on the network alone: a member has the same bits on any number of cores, whoever
    trains with it. On a GPU all members move at once; the step reads its batch through counters
    that live on the device and never looks at a value on the host, so that it can be replayed as
    one recorded graph.
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
        self.rows = state.running.nonzero().flatten()  # (k,) members of the state that are trained
        chosen = [members[k] for k in self.rows.tolist()]
        device, dtype = data.device, state.flat.dtype

        def each(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        keys = [member_key(member.seed) for member in chosen]
        self.keys = torch.tensor(keys, dtype=torch.int32, device=device)
        self.lowered = state.lowered[self.rows]
        rate = each([member.learning_rate for member in chosen])
        rate = torch.where(self.lowered > 0, config.finish * rate, rate)
        self.learning_rate = rate.unsqueeze(1)
        self.shares: Tensor | None = None  # (S,) of the rate at each step, where it changes
        self.decay = each([2 * member.l2 for member in chosen]).unsqueeze(1)
        variants = [member.variant for member in chosen]  # none, where a finished run is resumed
        self.variants = torch.tensor(variants, dtype=torch.int64, device=device)
        own = getattr(network, "own_penalty", None)  # (P,) or (G, P), for networks that have one
        self.own_decay = None  # (k, P)
        if own is not None:
            own = 2 * own.to(device, dtype)
            self.own_decay = own[self.variants] if own.dim() == 2 else own.expand(len(chosen), -1)
        self.penalty = self.decay if self.own_decay is None else self.decay + self.own_decay
        readers: Any = getattr(network, "readers", None)  # for networks that read them apart
        shrinks = readers is not None and any(member.shrinkage for member in chosen)
        strength = each([member.shrinkage for member in chosen]).unsqueeze(1)
        self.shrinkage = Shrinkage(readers, strength) if shrinks else None
        rates = each([member.dropout for member in chosen])
        self.drops = any(member.dropout > 0 for member in chosen)
        self.flat = state.flat[self.rows].clone().requires_grad_(True)
        self.first = state.first[self.rows].clone()
        self.second = state.second[self.rows].clone()
        self.mean = state.mean[self.rows].clone()
        self.step_count = state.step.to(device, torch.int32, copy=True)
        self.dropout = KeyedDropout(self.keys, self.step_count, rates)
        self.left_out = data.without(config.leave_out, [member.seed for member in chosen])
        self.n_windows = len(data.train) - self.left_out.width
        self.batch = min(config.batch_size, self.n_windows)
        self.n_batches = self.n_windows // self.batch
        if config.annealing:
            self.shares = torch.tensor(config.shares(self.n_batches), dtype=dtype, device=device)
        self.known_share = data.known_share  # found out here: a step does not wait for values
        self.order = torch.zeros(
            (len(chosen), self.n_batches, self.batch), dtype=torch.int32, device=device
        )
        self.cursor = state.batch.to(device, copy=True).reshape(1)
        self.loss_sum = state.loss_sum[self.rows].clone()
        self.pieces = cut_batch(self.batch, count(network.shapes), data.window)
        self.step_seconds = math.inf  # until a step tells: the first is taken alone

    def matches(self, state: TrainState) -> bool:
        """Say whether these are the members being trained, at their present rates."""
        rows = state.running.nonzero().flatten()
        return torch.equal(rows, self.rows) and torch.equal(state.lowered[rows], self.lowered)

    def run_epoch(
        self, epoch: int, stops: Callable[[int], bool] = lambda steps: False
    ) -> Tensor | None:
        """Take the steps that are left of an epoch; return each running member's mean loss (k,).

        ``stops`` is asked after every step, or a few, and told how many; if it says yes, the answer
        is None and the epoch can be taken up again later.
        """
        index = torch.tensor(epoch, dtype=torch.int32, device=self.data.device)
        order = shuffled(self.keys, index, self.n_windows)
        used = order[:, : self.n_batches * self.batch]  # the few windows left over vary by epoch
        self.order.copy_(used.reshape(self.order.shape))
        while left := self.n_batches - int(self.cursor):
            steps = self._steps_in_a_row(left)
            started = time.perf_counter()
            self.step(steps)
            self.step_seconds = (time.perf_counter() - started) / steps
            if stops(steps):
                return None
        losses = self.loss_sum / self.n_batches
        self.cursor.zero_()
        self.loss_sum.zero_()
        return losses

    @property
    def weights(self) -> Tensor:
        """The weights to validate and use, (k, P): their running mean, if they are averaged."""
        return self.mean if self.config.averaging else self.flat.detach()

    @property
    def judged_on(self) -> Tensor:
        """The windows that stop each member, (k, S): the stopping ones, and those it left out."""
        stop = self.data.stop.expand(len(self.rows), -1)
        return torch.cat([stop, self.data.train[self.left_out.places()]], dim=1)

    def _steps_in_a_row(self, left: int) -> int:
        """Return after how many steps to ask whether to stop: several, where members go apart."""
        if self.data.device.type != "cpu" or len(self.pieces) > 1:
            return 1
        return max(1, int(min(left, PAUSE_EVERY / self.step_seconds)))

    def step(self, count: int = 1) -> None:
        """Move every member by one batch of its own, or by several."""
        if self.data.device.type != "cpu":
            for _ in range(count):
                self._replay()
        elif len(self.pieces) > 1:
            for _ in range(count):
                self._step_by_pieces()
        else:
            every = [slice(k, k + 1) for k in range(len(self.rows))]
            run_chains([partial(self._move_whole, k) for k in every], count)
            self.step_count += count
            self.cursor += count

    @cached_property
    def _replay(self) -> Callable[[], object]:
        moments = [self.flat, self.first, self.second, self.mean]
        changed = [*moments, self.step_count, self.cursor, self.loss_sum]
        return recorded(self.step_at_once, changed)

    def step_at_once(self) -> None:
        """Move every member by one batch, all in the same operations."""
        loss, gradient = self._gradient(self.flat, slice(None), slice(None))
        rate = self.learning_rate
        if self.shares is not None:
            rate = rate * self.shares.index_select(0, self.step_count.reshape(1))
        self.step_count += 1
        self.cursor += 1
        self.loss_sum += loss
        with torch.no_grad():
            if self.own_decay is not None:
                gradient.addcmul_(self.own_decay, self.flat)
            take_step(
                self.flat,
                gradient,
                self.first,
                self.second,
                decay=self.decay,
                largest=self.config.gradient_clip,
                learning_rate=rate,
                count=self.step_count,
                beta2=self.config.beta2,
            )
            if self.shrinkage is not None:
                self.shrinkage(self.flat, rate)
            if self.config.averaging:
                share = 1.0 / self.step_count.to(self.mean.dtype)
                share = share.clamp(min=1 - self.config.averaging)
                self.mean.lerp_(self.flat.detach(), share)

    def _step_by_pieces(self) -> None:
        every, n = [slice(k, k + 1) for k in range(len(self.rows))], len(self.pieces)
        leaves = [(k, self._leaf(k)) for k in every]
        pairs = [(k, leaf, piece) for k, leaf in leaves for piece in self.pieces]
        parts = run_all([partial(self._gradient, leaf, k, piece) for k, leaf, piece in pairs])
        moves = [(k, parts[n * i : n * (i + 1)]) for i, k in enumerate(every)]
        run_all([partial(self._move, k, pieces) for k, pieces in moves])
        self.step_count += 1
        self.cursor += 1

    def _move_whole(self, member: slice, ahead: int) -> None:
        """Move a member by one batch, some steps ahead of those that are counted."""
        leaf = self._leaf(member)
        self._move(member, [self._gradient(leaf, member, slice(0, self.batch), ahead)], ahead)

    def _leaf(self, member: slice) -> Tensor:
        """Return a member's parameters, copied: where they begin decides how products are rounded.

        In a copy they begin as those of a member trained alone do.
        """
        return self.flat.detach()[member].clone().requires_grad_(True)

    def _gradient(self, flat: Tensor, members: slice, piece: slice, ahead: int = 0) -> Outcome:
        """Return some members' loss on some windows of the batch, and its gradient.

        Both are counted by the piece's share of the batch, so that pieces add up. Where labels are
        unknown, a batch is taken to have as many of them as all have on average: then each known
        label counts the same, and a batch may have none.
        """
        cursor = self.cursor + ahead if ahead else self.cursor
        positions = self.order[members].index_select(1, cursor)[:, 0, piece]  # (k, B)
        origins = self.data.train[self.left_out.kept(positions.long(), members)]
        x = self.data.windows(origins)  # (k, T, B, C)
        y = self.data.targets(origins, self.variants[members])  # (k, B, H)
        dropout = self.dropout.part(members, piece, ahead) if self.drops else None
        prediction = self.network(unflatten(flat, self.network.shapes), x, dropout)
        known = self.data.known(y)
        labels = (y,) if known is None else (y.masked_fill(~known, 0.0), known)
        share = origins.shape[1] / (self.batch * self.known_share)
        loss = self.network.loss(prediction, *labels) * share  # (k,)
        (gradient,) = torch.autograd.grad(loss.sum(), flat)
        return loss.detach(), gradient

    @torch.no_grad()
    def _move(self, member: slice, outcomes: list[Outcome], ahead: int = 0) -> None:
        """Add up a member's pieces and take its step."""
        loss, gradient = outcomes[0]
        for more_loss, more in outcomes[1:]:
            loss += more_loss
            gradient += more
        self.loss_sum[member] += loss
        rate, done = self.learning_rate[member], self.step_count + ahead
        if self.shares is not None:
            rate = rate * self.shares[done]
        flat = self.flat.data[member]  # not counted as a change of the rows that others work on
        gradient.addcmul_(self.penalty[member], flat)
        clip(gradient, self.config.gradient_clip)
        fused_adam(
            flat,
            gradient,
            self.first[member],
            self.second[member],
            rate=float(rate),
            count=(done + 1).to(torch.float32),
            beta2=self.config.beta2,
        )
        if self.shrinkage is not None and bool(self.shrinkage.pull[member].any()):
            self.shrinkage(flat, rate, member)
        if self.config.averaging:
            share = max(1 / (int(done) + 1), 1 - self.config.averaging)
            self.mean[member].lerp_(flat, share)

    def write_back(self, state: TrainState) -> None:
        """Put the members' tensors back into the whole state."""
        state.flat[self.rows] = self.flat.detach()
        state.first[self.rows] = self.first
        state.second[self.rows] = self.second
        state.mean[self.rows] = self.mean
        state.step = self.step_count.to("cpu", torch.int64)
        state.batch = self.cursor.to("cpu", copy=True).reshape(())
        state.loss_sum[self.rows] = self.loss_sum


def cut_batch(batch: int, n_parameters: int, window: int) -> list[slice]:
    """Cut a batch into pieces big enough to be worth a task each."""
    work = 6.0 * n_parameters * batch * window
    n = max(1, min(MOST_PIECES, batch // PIECE_WINDOWS, round(work / PIECE_WORK)))
    edges = [batch * i // n for i in range(n + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
