"""GPU kernels of the training step outside the network: dropout and Adam.

Imported only where a CUDA device is used, since it needs Triton. Kernels take pointers and sizes
one by one.
"""

# mypy: ignore-errors

from __future__ import annotations

from math import log2
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from mvlstm.train.config import BETA1, EPSILON

BLOCK = 1024


@triton.jit
def _mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def dropout_kernel(
    source, target, keys, step, thresholds, scales, site, n, A, B, R, BLOCK: tl.constexpr
):
    """Drop values of (K, A, B, R), numbered with the windows (B) first as in `random_bits`."""
    k = tl.program_id(1)
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + k).to(tl.uint32, bitcast=True)
    count = tl.load(step).to(tl.uint32, bitcast=True)
    stream = _mix(_mix(key + count * 0x9E3779B9) ^ site.to(tl.uint32))
    rest = e // R
    number = ((rest % B) * A + rest // B) * R + e % R
    bits = _mix(stream ^ _mix(number.to(tl.uint32))).to(tl.int32, bitcast=True)
    kept = bits >= tl.load(thresholds + k)
    place = k.to(tl.int64) * n + e
    value = tl.load(source + place, mask=e < n, other=0.0)
    tl.store(target + place, tl.where(kept, value * tl.load(scales + k), 0.0), mask=e < n)


@triton.jit
def adam_kernel(
    flat,
    gradient,
    first,
    second,
    norms,
    rates,
    count,
    largest,
    P,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    LOG1: tl.constexpr,
    LOG2: tl.constexpr,
    EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Clip and take Adam's step for one block of one member."""
    k = tl.program_id(1)
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = e < P
    place = k.to(tl.int64) * P + e
    steps = tl.load(count).to(tl.float32)
    clip = tl.minimum(largest / (tl.load(norms + k) + 1e-6), 1.0)
    g = tl.load(gradient + place, mask=inside, other=0.0) * clip
    m = BETA1 * tl.load(first + place, mask=inside, other=0.0) + (1 - BETA1) * g
    v = BETA2 * tl.load(second + place, mask=inside, other=0.0) + (1 - BETA2) * g * g
    size = tl.load(rates + k) / (1.0 - tl.exp2(steps * LOG1))
    spread = tl.sqrt(v / (1.0 - tl.exp2(steps * LOG2))) + EPSILON
    w = tl.load(flat + place, mask=inside, other=0.0)
    tl.store(flat + place, w - size * m / spread, mask=inside)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)


def clipped_adam(
    flat: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    decay: Tensor,
    largest: float,
    learning_rate: Tensor,
    count: Tensor,
    beta2: float,
) -> None:
    """Penalise, `clip` and apply `adam` on (k, P) tensors; ``count`` is () int32."""
    gradient.addcmul_(decay, flat)
    norms = torch.linalg.vector_norm(gradient, dim=1)
    k, P = flat.shape
    adam_kernel[(triton.cdiv(P, BLOCK), k)](
        *(flat, gradient, first, second, norms, learning_rate, count, largest, P),
        *(BETA1, beta2, log2(BETA1), log2(beta2), EPSILON, BLOCK),
    )


class Dropout(torch.autograd.Function):
    """Keyed dropout whose mask is never stored: the backward pass computes it again."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, axis: int, site: int, *stream: Tensor) -> Tensor:
        """Drop values of ``tensor`` with windows along ``axis``.

        ``stream`` is keys (K,), step (), thresholds (K,) and scales (K,).
        """
        ctx.axis, ctx.site = axis, site
        ctx.save_for_backward(*stream)
        return drop(tensor, axis, site, stream)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Drop the same values of the gradient."""
        return drop(grad, ctx.axis, ctx.site, ctx.saved_tensors), *(None,) * 6


def drop(tensor: Tensor, axis: int, site: int, stream: tuple[Tensor, ...]) -> Tensor:
    """Return ``tensor`` (K, ...) with values dropped."""
    source = tensor.contiguous()
    target = torch.empty_like(source)
    K, n = len(source), source[0].numel()
    B = source.shape[axis]
    A = source.shape[1:axis].numel()
    place = site * 0x5BD1E995 & 0x7FFFFFFF
    dropout_kernel[(triton.cdiv(n, BLOCK), K)](
        source, target, *stream, place, n, A, B, n // (A * B), BLOCK
    )
    return target
