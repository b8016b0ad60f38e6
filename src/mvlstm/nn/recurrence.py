"""The recurrence over a window, by the fastest path the device has, and layers of it.

Every path computes what `tests/oracles/equations.py` computes:

- on the CPU loops over time, member by member;
- on a GPU one launch per time step for all members, through Triton, in single precision;
- on a GPU without Triton, or in double precision, one product per time step for all members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mvlstm.nn.backends import kernels_run_on
from mvlstm.nn.backends.loops import loop_recurrence
from mvlstm.nn.backends.packed import batched_recurrence
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Dropout, Parameters, Shapes, glorot, of_layer, tagged


def recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    if kernels_run_on(x):
        from mvlstm.nn.backends.triton import triton_recurrence

        return triton_recurrence(layer, p, x)
    return batched_recurrence(layer, p, x) if x.is_cuda else loop_recurrence(layer, p, x)


def run_stack(
    stack: Sequence[Layer], p: Parameters, x: Tensor, dropout: Dropout | None = None
) -> Tensor:
    """Return the states (K, T, B, N, d) of the top layer for x (K, T, B, C)."""
    h = x
    for level, layer in enumerate(stack):
        if level and dropout is not None:
            h = dropout(h, level, 2)
        h = recurrence(layer, of_layer(p, layer.shapes, level), h.flatten(3))
    return h


def stack_shapes(stack: Sequence[Layer]) -> Shapes:
    """Return the shapes of one member's parameters in all layers, in the order they are stored."""
    return {k: v for n, layer in enumerate(stack) for k, v in tagged(layer.shapes, n).items()}


def draw_stack(
    stack: Sequence[Layer], head: Shapes, fans: Mapping[str, int], generator: torch.Generator
) -> Parameters:
    """Draw one member's parameters of all layers and of the head above them.

    They are drawn by Glorot's rule, where ``fans`` says how many inputs a block has; others are 0.
    """
    drawn: Parameters = {}
    for level, layer in enumerate(stack):
        drawn |= tagged(layer.initial(generator), level)
    for name, shape in head.items():
        drawn[name] = torch.zeros(shape, dtype=torch.float64)
        if name in fans:
            drawn[name] = glorot(shape, fans[name], 1, generator)
    return drawn
