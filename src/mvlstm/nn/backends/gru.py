r"""Many small GRUs side by side on the CPU, with the backward pass written out.

The library has no fused GRU for training on the CPU, and its calls would cost more than the
arithmetic of cells this small. Here a step is one product and a few element-wise operations for
all of them, and the weights' gradients are one product after the loop.

Rows of weights are r, z, n as in PyTorch. With :math:`q = W_n h + b_n` (candidate from the state),
:math:`a` the products and :math:`g` the gradient of :math:`h_t`,

.. math::
    \partial n = g (1 - z)(1 - n^2), \quad \partial q = r\,\partial n, \quad
    \partial r = q\, r (1 - r)\, \partial n, \quad \partial z = (h_{t-1} - n) z (1 - z)\, g

and :math:`g z` plus the products' share goes on to step t - 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class SmallGRUs(torch.autograd.Function):
    """``V`` separate cells of ``u`` units each, one product per step for all of them.

    Shapes
    ------
    from_x (T, V, B, 3 u) with the input's bias added, weight (V, u, 3 u), bias (V, u) of the
    candidate from the state, to states (T, V, B, u)
    """

    @staticmethod
    def forward(ctx: Any, from_x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the states."""
        T, V, B, width = from_x.shape
        u = width // 3
        states = from_x.new_empty(T, V, B, u)
        gates = torch.empty_like(from_x)  # r, z, n
        inner = torch.empty_like(states)  # q
        h = from_x.new_zeros(V, B, u)
        for t in range(T):
            a = torch.bmm(h, weight)
            q = torch.add(a[..., 2 * u :], bias.unsqueeze(1), out=inner[t])
            rz = torch.add(a[..., : 2 * u], from_x[t, ..., : 2 * u], out=gates[t, ..., : 2 * u])
            rz.sigmoid_()
            n = gates[t, ..., 2 * u :]
            torch.addcmul(from_x[t, ..., 2 * u :], rz[..., :u], q, out=n).tanh_()
            h = torch.lerp(n, h, rz[..., u:], out=states[t])
        ctx.save_for_backward(weight, states, gates, inner)
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of from_x, weight and bias."""
        weight, states, gates, inner = ctx.saved_tensors
        T, V, B, u = states.shape
        before = torch.cat([torch.zeros_like(states[:1]), states[:-1]])
        grad_x = torch.empty_like(gates)
        grad_a = torch.empty_like(gates)  # r and z as in grad_x, q in the place of n
        back = weight.transpose(1, 2)
        one = gates.new_ones(())
        g = grad[T - 1]
        for t in reversed(range(T)):
            r, z, n = torch.split(gates[t], u, dim=-1)
            q = inner[t]
            direct = g * z
            slope = torch.addcmul(one, n, n, value=-1)
            dn = torch.mul(slope, g - direct, out=grad_x[t, ..., 2 * u :])
            dq = torch.mul(dn, r, out=grad_a[t, ..., 2 * u :])
            torch.mul(torch.addcmul(q, q, r, value=-1), dq, out=grad_a[t, ..., :u])
            dz = torch.addcmul(direct, direct, z, value=-1)
            torch.mul(dz, before[t] - n, out=grad_a[t, ..., u : 2 * u])
            if t:
                direct += grad[t - 1]
                g = direct.baddbmm_(grad_a[t], back)
        grad_x[..., : 2 * u] = grad_a[..., : 2 * u]
        rows = grad_a.transpose(0, 1).reshape(V, T * B, 3 * u)
        columns = before.transpose(0, 1).reshape(V, T * B, u)
        grad_weight = torch.bmm(columns.transpose(1, 2), rows)
        return grad_x, grad_weight, rows[..., 2 * u :].sum(dim=1)
