r"""Additive attention asked again and again about the same items, cheaply.

The score of item i is :math:`v \cdot \tanh(k_i + q)`. A recurrence asks it at every step with a new
query q about the same keys k, and the tanh of a tensor of all items is what costs the time. Since

.. math::
    \tanh(k + q) = 1 - 2 r, \qquad r = \frac{1}{1 + e^{2k} e^{2q}},

:math:`e^{2k}` is computed once, and a step takes a product and a reciprocal.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

LARGEST = 40.0  # exp(2 LARGEST) is finite in float32, so a product is 0 or infinite but never NaN


def grow(tensor: Tensor) -> Tensor:
    """Return exp(2 tensor), kept finite and positive, without a gradient."""
    return tensor.detach().clamp(-LARGEST, LARGEST).mul_(2.0).exp_()


def scores(keys: Tensor, grown: Tensor, query: Tensor, v: Tensor) -> Tensor:
    r"""Return :math:`v \cdot \tanh(k_i + q)` up to a constant that a softmax over i removes.

    Keys and ``grow(keys)`` (K, B, I, a), a query (K, B, a) and v (K, a) give scores (K, B, I).
    """
    result: Tensor = AdditiveScores.apply(keys, grown, query, v)  # type: ignore[no-untyped-call]
    return result


class AdditiveScores(torch.autograd.Function):
    r"""The scores :math:`-2 v \cdot r`; the derivative of r by k or q is :math:`-2 r (1 - r)`."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, grown: Tensor, query: Tensor, v: Tensor) -> Tensor:
        """Return the scores (K, B, I)."""
        K, B, items, a = grown.shape
        r = (grown * grow(query).unsqueeze(2)).add_(1.0).reciprocal_()  # (K, B, I, a)
        ctx.save_for_backward(r, v)
        return torch.bmm(r.view(K, B * items, a), v.unsqueeze(2)).view(K, B, items).mul_(-2.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        """Return the gradients of keys, query and v."""
        r, v = ctx.saved_tensors
        K, B, items, a = r.shape
        flat = gradient.reshape(K, 1, B * items)
        grad_v = torch.bmm(flat, r.view(K, B * items, a)).squeeze(1).mul_(-2.0)
        slope = torch.addcmul(r, r, r, value=-1.0)  # r (1 - r)
        grad_keys = slope.mul_(gradient.unsqueeze(3)).mul_((4.0 * v)[:, None, None, :])
        return grad_keys, None, grad_keys.sum(dim=2), grad_v
