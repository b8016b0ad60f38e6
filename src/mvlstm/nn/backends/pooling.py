r"""Temporal attention with its backward pass written out: few passes over the states.

The states are the largest tensor of a step, and products this thin are faster as a
multiplication and a sum than as matrix products. With :math:`g` the gradient of the context,

.. math::
    \partial a^n_t = g^n \cdot h^n_t, \quad
    \partial e^n_t = a^n_t (\partial a^n_t - \textstyle\sum_s a^n_s \partial a^n_s), \quad
    \partial h^n_t = a^n_t g^n + (1 - (e^n_t)^2)\, \partial e^n_t\, W_s^n .
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class TemporalPooling(torch.autograd.Function):
    """Join each variable's last state to its context; equal to the plain formula.

    Shapes
    ------
    h (K, T, B, N, d), Ws (K, N, d), bs (K, N) to vectors (K, B, N, 2 d), weights (K, T - 1, B, N)
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, Ws: Tensor, bs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summary vectors and the weights."""
        memory, last = h[:, :-1], h[:, -1]  # (K, T - 1, B, N, d), (K, B, N, d)
        products = memory * Ws[:, None, None]
        e = products.sum(dim=-1).add_(bs[:, None, None]).tanh_()  # (K, T - 1, B, N)
        a = torch.softmax(e, dim=1)
        context = torch.mul(memory, a.unsqueeze(-1), out=products).sum(dim=1)
        ctx.save_for_backward(h, e, a, Ws)
        return torch.cat([last, context], dim=-1), a

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the states, Ws and bs."""
        h, e, a, Ws = ctx.saved_tensors
        d = h.shape[-1]
        memory, g = h[:, :-1], grad[..., d:].unsqueeze(1)  # (K, 1, B, N, d)
        products = memory * g
        da = products.sum(dim=-1).add_(grad_a)  # (K, T - 1, B, N)
        de = a * (da - (a * da).sum(dim=1, keepdim=True)) * (1 - e * e)
        dWs = torch.mul(memory, de.unsqueeze(-1), out=products).sum(dim=(1, 2))
        dh = torch.empty_like(h)
        torch.mul(a.unsqueeze(-1), g, out=dh[:, :-1])
        dh[:, :-1].addcmul_(de.unsqueeze(-1), Ws[:, None, None])
        dh[:, -1] = grad[..., :d]
        return dh, dWs, de.sum(dim=(1, 2))
