r"""Proximal training: networks whose weights are zero, exactly, for inputs they can do without.

For each of several penalties :math:`\lambda`, trained side by side as members,

.. math::
    \min_\theta\; L(\theta) + \rho \lVert \theta_{rest} \rVert^2
    + \lambda \sum_j \lVert \theta_j \rVert_2 ,

where :math:`\theta_j` holds every weight on input j. After each gradient step of size
:math:`\eta_j` the group is shrunk, :math:`\theta_j \leftarrow \theta_j \max(0, 1 - \eta_j \lambda /
\lVert \theta_j \rVert)`, which is where the zeros come from.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from mvlstm.train.adam import clip
from mvlstm.train.config import BETA1, BETA2, EPSILON
from mvlstm.train.shrinkage import kept_share
from mvlstm.train.streams import ORDER_SITE, member_key, random_bits
from mvlstm.train.workers import run_all

Loss = Callable[[Tensor, Tensor], Tensor]  # (k, P) weights and (k, B) origins to losses (k,)


@dataclass(frozen=True)
class SparseConfig:
    """How a sparse path is trained."""

    learning_rate: float = 3e-3  # of the mini-batch steps
    batch_size: int = 256
    warm_steps: int = 200  # mini-batch steps without penalty
    steps: int = 500  # and with it
    finish_steps: int = 40  # steps on one large fixed batch
    finish_windows: int = 2048  # windows of that batch
    decay: float = 1e-5  # rho, the coefficient of the squared weights outside the groups
    clip: float = 5.0  # largest norm of a gradient


@dataclass(frozen=True, eq=False)
class Groups:
    """Which weights belong to which input."""

    membership: Tensor  # (P, N): one where a weight belongs to input j; some belong to none

    @cached_property
    def free(self) -> Tensor:
        """One for every weight that belongs to no input, (P,)."""
        return 1.0 - self.membership.sum(dim=1)

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of per-weight values (k, P) over every group, (k, N)."""
        return (values @ self.membership) / self.membership.sum(dim=0)

    def spread(self, values: Tensor) -> Tensor:
        """Give every weight its group's value (k, P), and zero to those without a group."""
        return values @ self.membership.T

    def norms(self, flat: Tensor) -> Tensor:
        """Return the norm of every group, (k, N)."""
        return (flat.square() @ self.membership).sqrt()

    def shrink(self, flat: Tensor, threshold: Tensor) -> Tensor:
        """Move every group towards zero by ``threshold`` (k, N), and no further."""
        return flat * (self.spread(kept_share(self.norms(flat), threshold)) + self.free)


def sparse_path(
    loss: Loss,
    start: Tensor,
    groups: Groups,
    origins: Tensor,
    penalties: Tensor,
    *,
    seed: int,
    config: SparseConfig,
    ends: float = math.inf,
) -> Tensor:
    """Train one network for each penalty (L,) from a common start (1, P); return weights (L, P).

    ``seed`` sets the order of the training windows that end at ``origins`` (M,), the same for every
    penalty. ``ends`` is when to stop, however few steps were taken, by the monotonic clock.
    """
    key = torch.tensor([member_key(seed)], dtype=torch.int32, device=start.device)
    steps = partial(
        minibatch_steps, loss, groups=groups, origins=origins, key=key, config=config, ends=ends
    )
    flat = steps(start, penalties=torch.zeros_like(penalties[:1]), n_steps=config.warm_steps)
    flat = steps(flat.repeat(len(penalties), 1), penalties=penalties, n_steps=config.steps)
    fixed = origins[_shuffle(key, 0, len(origins))[: config.finish_windows]]
    return full_batch_steps(loss, flat, groups, fixed, penalties, config, ends)


def _shuffle(key: Tensor, index: int, n: int) -> Tensor:
    step = torch.tensor(index, dtype=torch.int32, device=key.device)
    return random_bits(key, step, ORDER_SITE, n)[0].argsort(stable=True)


def gradients(loss: Loss, flat: Tensor, origins: Tensor) -> tuple[Tensor, Tensor]:
    """Return every member's loss (k,) and its gradient (k, P) on the same windows (B,)."""

    def one(rows: Tensor) -> tuple[Tensor, Tensor]:
        leaf = rows.detach().requires_grad_(True)
        value = loss(leaf, origins.expand(len(rows), -1))
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), gradient

    if flat.device.type != "cpu":
        return one(flat)
    outcomes = run_all([partial(one, flat[k : k + 1]) for k in range(len(flat))])
    return torch.cat([value for value, _ in outcomes]), torch.cat([g for _, g in outcomes])


def values(loss: Loss, flat: Tensor, origins: Tensor) -> Tensor:
    """Return every member's loss (k,) on the same windows (B,)."""

    @torch.no_grad()
    def one(rows: Tensor) -> Tensor:
        return loss(rows, origins.expand(len(rows), -1))

    if flat.device.type != "cpu":
        return one(flat)
    return torch.cat(run_all([partial(one, flat[k : k + 1]) for k in range(len(flat))]))


def minibatch_steps(
    loss: Loss,
    flat: Tensor,
    *,
    penalties: Tensor,
    n_steps: int,
    groups: Groups,
    origins: Tensor,
    key: Tensor,
    config: SparseConfig,
    ends: float = math.inf,
) -> Tensor:
    """Take proximal Adam steps from ``flat`` (k, P).

    Adam's second moment is averaged over each group, so that a group has one step size: then
    shrinking the group by step size times penalty is the exact proximal step, and what the
    steps come to rest at is a minimum of the stated objective.
    """
    flat = flat.clone()
    first, second = torch.zeros_like(flat), torch.zeros_like(flat)
    batch = min(config.batch_size, len(origins))
    per_epoch = len(origins) // batch
    order = origins
    for step in range(n_steps):
        if clock.monotonic() > ends:
            break
        epoch, place = divmod(step, per_epoch)
        if place == 0:
            order = origins[_shuffle(key, epoch + 1, len(origins))]
        _, gradient = gradients(loss, flat, order[place * batch : (place + 1) * batch])
        gradient += 2 * config.decay * groups.free * flat
        clip(gradient, config.clip)
        first.lerp_(gradient, 1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        unbiased = second / (1 - BETA2 ** (step + 1))
        shared = groups.mean(unbiased).sqrt() + EPSILON  # (k, N)
        size = config.learning_rate / (
            groups.spread(shared) + groups.free * (unbiased.sqrt() + EPSILON)
        )
        flat -= size * first / (1 - BETA1 ** (step + 1))
        flat = groups.shrink(flat, config.learning_rate * penalties[:, None] / shared)
    return flat


def full_batch_steps(
    loss: Loss,
    flat: Tensor,
    groups: Groups,
    origins: Tensor,
    penalties: Tensor,
    config: SparseConfig,
    ends: float = math.inf,
) -> Tensor:
    """Finish with proximal gradient steps on one batch, each member with its own step size.

    A step is taken if the penalised loss falls by at least half of what its length promises
    (GISTA's rule); otherwise the member stays where it is and its step size shrinks.
    """
    size = torch.full_like(penalties, 0.02)

    def penalty(weights: Tensor) -> Tensor:
        smooth = config.decay * (weights.square() * groups.free).sum(dim=1)
        return smooth + penalties * groups.norms(weights).sum(dim=1)

    for _ in range(config.finish_steps):
        if clock.monotonic() > ends:
            break
        value, gradient = gradients(loss, flat, origins)
        gradient += 2 * config.decay * groups.free * flat
        moved = groups.shrink(flat - size[:, None] * gradient, (size * penalties)[:, None])
        gain = value + penalty(flat) - values(loss, moved, origins) - penalty(moved)
        taken = gain >= 0.25 / size * (moved - flat).square().sum(dim=1)
        flat = torch.where(taken[:, None], moved, flat)
        size = torch.where(taken, size * 1.25, size * 0.6)
    return flat
