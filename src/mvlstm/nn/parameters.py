"""All parameters of all members in one flat tensor, and the named views into it.

A network declares the shapes of *one* member's parameters. Training keeps one tensor of shape
``(K, P)``, a row a member, so that the optimiser, gradient clipping, the best weights seen and
the checkpoint are each a few operations on one tensor, whatever the network.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

Shapes = dict[str, tuple[int, ...]]
Parameters = dict[str, Tensor]


class Readers(NamedTuple):
    """The parameters that take in the columns of a table.

    Shapes
    ------
    places : (C, q) int64, of the q parameters that read a column, in the flat row of all
    variables : (C,) int64, the variable that a column belongs to
    """

    places: Tensor
    variables: Tensor


def count(shapes: Shapes) -> int:
    """Return P, the number of parameters of one member."""
    return sum(prod(shape) for shape in shapes.values())


def unflatten(flat: Tensor, shapes: Shapes) -> Parameters:
    """Return named views of ``flat`` (K, P), each with the members axis before its own shape.

    Made with one `torch.split`, whose backward pass joins all gradients in one copy.
    """
    parts = torch.split(flat, [prod(shape) for shape in shapes.values()], dim=1)
    return {
        name: part.reshape(flat.shape[0], *shape)
        for part, (name, shape) in zip(parts, shapes.items(), strict=True)
    }


def flatten(parameters: Parameters, shapes: Shapes) -> Tensor:
    """Return the flat tensor (K, P) whose views are ``parameters``."""
    return torch.cat([parameters[name].flatten(1) for name in shapes], dim=1)


def glorot(shape: tuple[int, ...], fan_in: int, fan_out: int, generator: torch.Generator) -> Tensor:
    """Draw Glorot-uniform weights in float64 for a block with the given fans."""
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    drawn = torch.empty(shape, dtype=torch.float64)
    return drawn.uniform_(-bound, bound, generator=generator)
