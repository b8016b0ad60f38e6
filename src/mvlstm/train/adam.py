"""Adam over rows of one flat tensor, one row per member, each with its own learning rate."""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.backends import kernels_run_on
from mvlstm.train.config import BETA1, BETA2, EPSILON


def take_step(
    flat: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    decay: Tensor,
    largest: float,
    learning_rate: Tensor,
    count: Tensor,
    beta2: float = BETA2,
) -> None:
    """Penalise, clip and apply the gradients of all members (k, P), by the device's best path.

    ``decay`` and ``learning_rate`` are (k, 1), ``count`` () int32: the steps with this one.
    """
    if kernels_run_on(flat):
        from mvlstm.train._kernels import clipped_adam

        clipped_adam(flat, gradient, first, second, decay, largest, learning_rate, count, beta2)
        return
    gradient.addcmul_(decay, flat)
    clip(gradient, largest)
    count = count.to(flat.dtype)
    adam(flat, gradient, first, second, learning_rate=learning_rate, count=count, beta2=beta2)


def clip(gradient: Tensor, largest: float) -> None:
    """Shorten each row of a gradient (k, P) to a norm, in place."""
    norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    if not gradient.is_cuda and bool((norm <= largest).all()):
        return
    gradient.mul_((largest / (norm + 1e-6)).clamp_(max=1.0))


def adam(
    flat: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    learning_rate: Tensor,
    count: Tensor,
    beta2: float = BETA2,
) -> None:
    r"""Move ``flat`` (k, P) in place, after ``count`` steps with this one.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        \theta \leftarrow \theta -
        \eta\, \frac{m / (1 - \beta_1^s)}{\sqrt{v / (1 - \beta_2^s)} + \epsilon}
    """
    first.lerp_(gradient, 1 - BETA1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    size = learning_rate / (1 - BETA1**count)  # (k, 1)
    spread = (second / (1 - beta2**count)).sqrt_().add_(EPSILON)
    flat.addcmul_(first / spread, size, value=-1.0)


def fused_adam(
    flat: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    rate: float,
    count: Tensor,
    beta2: float = BETA2,
) -> None:
    """Do what `adam` does for one member, in the library's single pass over memory."""
    torch._fused_adam_(
        [flat],
        [gradient],
        [first],
        [second],
        [],
        [count],
        lr=rate,
        beta1=BETA1,
        beta2=beta2,
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )
