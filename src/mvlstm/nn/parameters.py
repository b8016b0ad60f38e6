"""All parameters of all members in one flat tensor, and the named views into it.

A network declares the shapes of *one* member's parameters. Training keeps one tensor of shape
``(K, P)``, one row per member, so that the optimiser, gradient clipping, the best weights seen and
the checkpoint are each a few operations on one tensor, whatever the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

Shapes = dict[str, tuple[int, ...]]
Parameters = dict[str, Tensor]
Dropout = Callable[..., Tensor]  # (tensor, site, window_axis=1): drops values while training
T = TypeVar("T")


class Readers(NamedTuple):
    """The parameters that take in the columns of a table."""

    places: Tensor  # (C, q) int64, of the q parameters that read a column, in the flat row of all
    variables: Tensor  # (C,) int64, the variable that a column belongs to


def tagged(entries: Mapping[str, T], tag: int | str) -> dict[str, T]:
    """Return what belongs to one of several layers under the names it has in the whole network.

    Examples
    --------
    >>> tagged({"Wx": (3, 5), "b": (15,)}, 0)
    {'Wx_0': (3, 5), 'b_0': (15,)}
    """
    return {f"{name}_{tag}": entry for name, entry in entries.items()}


def of_layer(p: Parameters, shapes: Shapes, tag: int | str) -> Parameters:
    """Return the parameters of one of several layers under the layer's own names."""
    return {name: p[f"{name}_{tag}"] for name in shapes}


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
