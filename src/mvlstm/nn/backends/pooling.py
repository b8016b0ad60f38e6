r"""Temporal attention with its backward pass written out: few passes over the states.

The states are the largest tensor of a step. On the CPU they come with windows last in memory (see
`mvlstm.nn.backends.loops`), and the passes run along these. With :math:`g` the gradient of the
context,

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
        states = h.permute(0, 1, 3, 4, 2)  # (K, T, N, d, B)
        memory, last = states[:, :-1], states[:, -1]
        e = torch.matmul(Ws[:, None, :, None], memory).squeeze(3)  # (K, T - 1, N, B)
        e.add_(bs[:, None, :, None]).tanh_()
        a = torch.softmax(e, dim=1)
        context = (memory * a.unsqueeze(3)).sum(dim=1)  # (K, N, d, B)
        ctx.save_for_backward(h, e, a, Ws)
        vectors = torch.cat([last, context], dim=2)
        return vectors.permute(0, 3, 1, 2), a.transpose(2, 3)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the states, Ws and bs."""
        h, e, a, Ws = ctx.saved_tensors
        memory = h.permute(0, 1, 3, 4, 2)[:, :-1]
        d = memory.shape[3]
        grad = grad.permute(0, 2, 3, 1).contiguous()  # (K, N, 2 d, B)
        g = grad[:, None, :, d:]
        da = (memory * g).sum(dim=3).add_(grad_a.transpose(2, 3))  # (K, T - 1, N, B)
        de = a * (da - (a * da).sum(dim=1, keepdim=True)) * (1 - e * e)
        dWs = (memory * de.unsqueeze(3)).sum(dim=(1, 4))
        dh = torch.empty_like(h.permute(0, 1, 3, 4, 2), memory_format=torch.contiguous_format)
        torch.mul(a.unsqueeze(3), g, out=dh[:, :-1])
        dh[:, :-1].addcmul_(de.unsqueeze(3), Ws[:, None, :, :, None])
        dh[:, -1] = grad[:, :, :d]
        return dh.permute(0, 1, 4, 2, 3), dWs, de.sum(dim=(1, 3))
