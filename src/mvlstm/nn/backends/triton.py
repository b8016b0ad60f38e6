"""The recurrence and the temporal attention on a GPU, with backward passes, through Triton.

See `mvlstm.nn.backends.kernels` for the arithmetic and `mvlstm.nn.backends.packed` for the layout
of weights. The gradients that run back through time are stored in half precision after scaling
each member's by a power of two that puts the largest incoming one at `TOP`; the scale is taken out
of the sums.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
from torch import Tensor

from mvlstm.nn.backends import kernels as _kernels
from mvlstm.nn.backends.packed import Packing, flat_parameters, packing
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters

STORAGE = torch.float16
LARGEST = 6e4  # that STORAGE holds; gates are saturated long before
TOP = 64.0
BLOCK = 1024


class Tile(NamedTuple):
    """How a step's product is cut: windows, units and inner columns per program, and its warps."""

    windows: int
    units: int
    inner: int
    warps: int
    stages: int


def tiles(members: int, windows: int, columns: int) -> tuple[Tile, Tile]:
    """Return the tiles of the forward and the backward step, by what measured best on an H200."""
    inner = 64 if columns % 64 == 0 else 32
    if members * -(-windows // 64) < 5:  # too few programs to fill the GPU with wide tiles
        return Tile(64, 16, inner, 4, 3), Tile(64, 16, 128, 4, 3)
    if members * -(-windows // 64) < 30:
        return Tile(64, 32, inner, 8, 3), Tile(64, 16, 64, 4, 4)
    return Tile(64, 32, inner, 8, 3), Tile(64, 32, 128, 8, 3)


def triton_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    flat = flat_parameters(layer, p)
    needed = torch.is_grad_enabled() and (flat.requires_grad or x.requires_grad)
    states: Tensor = Recurrence.apply(layer, needed, x, flat)  # type: ignore[no-untyped-call]
    return states


class Recurrence(torch.autograd.Function):
    """A layer over a window, all members in each launch."""

    @staticmethod
    def forward(ctx: Any, layer: Layer, needed: bool, x: Tensor, flat: Tensor) -> Tensor:
        """Return the states; keep gates and memory for the backward pass if needed."""
        K, T, B, C = x.shape
        packed = packing(layer, x.device)
        U, D, gru = packed.units, layer.size, layer.cell == "gru"
        w = gather(flat, packed.places, _ones(K, x.device), STORAGE)
        z = x.new_zeros((K, T, B, packed.columns), dtype=STORAGE)
        z[..., U : U + C] = x.clamp(-LARGEST, LARGEST)
        z[..., U + C] = 1.0
        h = x.new_empty(K, T, B, D)
        gates = x.new_empty((K, T, B, 4, U) if needed else (1,), dtype=STORAGE)
        c = x.new_empty((1,) if gru else (K, T if needed else 1, B, U))
        tile = tiles(K, B, packed.columns)[0]
        grid = (U // tile.units, triton.cdiv(B, tile.windows), K)
        for t in range(T):
            _kernels.forward_kernel[grid](
                *(z, w, gates, c, h, t, T, B, D, U, packed.columns),
                *tile[:3],
                *(gru, needed),
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        if needed:
            ctx.layer, ctx.packed = layer, packed
            ctx.save_for_backward(z, w, gates, c, h)
        return h.view(K, T, B, layer.n_variables, layer.hidden_size)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor | None, Tensor]:
        """Return the gradients of x, if asked for, and of the flat parameters."""
        z, w, gates, c, h = ctx.saved_tensors
        layer: Layer = ctx.layer
        packed: Packing = ctx.packed
        K, T, B, _ = z.shape
        U, D = packed.units, layer.size
        grad = grad.contiguous()
        scale = scale_of(grad)
        carry = grad.new_empty(K, B, U)
        grad_a = torch.empty_like(gates)
        tile = tiles(K, B, packed.columns)[1]
        grid = (U // tile.units, triton.cdiv(B, tile.windows), K)
        for t in reversed(range(T)):
            _kernels.backward_kernel[grid](
                *(grad, scale, w, gates, c, h, carry, grad_a, t, T, B, D, U, packed.columns),
                *tile[:3],
                *(layer.cell == "gru", t == T - 1),
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        rows = grad_a.view(K, T * B, 4 * U)
        grad_w = product(rows.transpose(1, 2), z.view(K, T * B, packed.columns))
        grad_flat = gather(grad_w, packed.origins, 1.0 / scale, torch.float32)
        grad_x = None
        if ctx.needs_input_grad[2]:
            C = layer.n_columns
            grad_x = product(rows, w.view(K, 4 * U, packed.columns)[:, :, U : U + C])
            grad_x = grad_x.view(K, T, B, C) / scale.view(K, 1, 1, 1)
        return None, None, grad_x, grad_flat


def gather(source: Tensor, index: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``source[k, index] * scale[k]`` for every k, zero where an index is -1."""
    K = len(source)
    target = torch.empty((K, *index.shape), dtype=dtype, device=source.device)
    grid = (triton.cdiv(index.numel(), BLOCK), K)
    _kernels.gather_kernel[grid](
        source, index, scale, target, source[0].numel(), index.numel(), BLOCK
    )
    return target


def scale_of(grad: Tensor) -> Tensor:
    """Return for each member the power of two that brings its largest gradient near `TOP`."""
    largest = torch.linalg.vector_norm(grad.flatten(1), ord=torch.inf, dim=1)
    return torch.exp2(torch.floor(torch.log2(TOP / largest.clamp(min=1e-20))))


def product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply half-precision matrices into single precision, member by member."""
    if a.is_cuda:
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())


@lru_cache(maxsize=8)
def _ones(members: int, device: torch.device) -> Tensor:
    return torch.ones(members, device=device)


class Pooling(torch.autograd.Function):
    """`mvlstm.nn.backends.pooling.TemporalPooling` in one launch each way."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, Ws: Tensor, bs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summary vectors (K, B, N, 2 d) and the weights (K, T - 1, B, N)."""
        h, Ws, bs = h.contiguous(), Ws.contiguous(), bs.contiguous()
        K, T, B, N, d = h.shape
        vectors = h.new_empty(K, B, N, 2 * d)
        weights = h.new_empty(K, T - 1, B, N)
        sizes = (T, B, N, d, triton.next_power_of_2(T - 1), triton.next_power_of_2(d))
        _kernels.pool_kernel[(N, B, K)](h, Ws, bs, vectors, weights, *sizes, num_warps=_warps(T))
        ctx.save_for_backward(h, Ws, bs)
        ctx.set_materialize_grads(False)
        return vectors, weights

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, grad: Tensor | None, grad_weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the states, Ws and bs."""
        h, Ws, bs = ctx.saved_tensors
        K, T, B, N, d = h.shape
        grad = h.new_zeros(K, B, N, 2 * d) if grad is None else grad.contiguous()
        given = grad_weights is not None
        weights = grad_weights.contiguous() if grad_weights is not None else grad
        dh, dWs, dbs = torch.empty_like(h), h.new_empty(K, B, N, d), h.new_empty(K, B, N)
        sizes = (T, B, N, d, triton.next_power_of_2(T - 1), triton.next_power_of_2(d))
        _kernels.pool_backward_kernel[(N, B, K)](
            h, Ws, bs, grad, weights, dh, dWs, dbs, *sizes, given, num_warps=_warps(T)
        )
        return dh, dWs.sum(dim=1), dbs.sum(dim=1)


def _warps(T: int) -> int:
    return 1 if T <= 33 else 4
