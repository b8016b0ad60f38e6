"""A layer's weights as one matrix per member, for recurrences that batch members.

Every cell becomes four blocks of rows over the columns ``[h | x | 1]``, so that one product gives
all that the element-wise part of a step needs:

=====  ==========  ==========  =================  =================
cell   rows 0      rows 1      rows 2             rows 3
=====  ==========  ==========  =================  =================
LSTM   input gate  forget      candidate          output gate
GRU    reset gate  update      candidate from x   candidate from h
=====  ==========  ==========  =================  =================

Units are padded with zeros to ``units`` and columns to ``columns``, which are multiples of what a
GPU's matrix units like. Every parameter has exactly one place, so packing and its backward pass
are both a gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters, count

MULTIPLE = 32


@dataclass(frozen=True, eq=False)
class Packing:
    """Where each parameter of a layer goes."""

    units: int
    columns: int
    places: Tensor  # (4 units, columns) int32, index into the layer's flat parameters, -1: zero
    origins: Tensor  # (P,) int32, index into the flattened matrix of each parameter


def _padded(n: int) -> int:
    return -(-n // MULTIPLE) * MULTIPLE


@lru_cache(maxsize=32)
def packing(layer: Layer, device: torch.device) -> Packing:
    """Work out the packing of a layer by packing the numbers of its parameters."""
    C, D, G = layer.n_columns, layer.size, layer.n_gates
    units, columns = _padded(D), _padded(_padded(D) + C + 1)
    numbers = torch.arange(count(layer.shapes))
    sizes = [prod(shape) for shape in layer.shapes.values()]
    parts = dict(zip(layer.shapes, torch.split(numbers, sizes), strict=True))
    p = {name: parts[name].view(shape) for name, shape in layer.shapes.items()}
    places = torch.full((4, units, columns), -1)
    bias = units + C
    rows = [0, 1, 3] if layer.cell == "lstm" else [0, 1]
    candidate_x, candidate_h = (2, 2) if layer.cell == "lstm" else (2, 3)
    for g, row in enumerate(rows):
        places[row, :D, bias] = p["b"].view(G, D)[g]
        if layer.gates == "full":
            W = p["W"].view(G, D, C + D)[g]
            places[row, :D, units : units + C] = W[:, :C]
            places[row, :D, :D] = W[:, C:]
        else:
            _own(places[row], p["Gx"][:, g], p["Gh"][:, g], layer.groups, units)
    _own(places[candidate_x], p["Wx"], None, layer.groups, units)
    _own(places[candidate_h], None, p["Wh"], layer.groups, units)
    places[candidate_x, :D, bias] = p["bj"].flatten()
    if layer.cell == "gru":
        places[candidate_h, :D, bias] = p["bh"].flatten()
    flat = places.flatten()
    origins = torch.empty_like(numbers)
    used = (flat >= 0).nonzero().flatten()
    origins[flat[used]] = used
    assert len(used) == len(numbers), "every parameter has one place"
    return Packing(
        units,
        columns,
        places.view(4 * units, columns).to(device, torch.int32),
        origins.to(device, torch.int32),
    )


def _own(
    places: Tensor, x: Tensor | None, h: Tensor | None, groups: tuple[int, ...], units: int
) -> None:
    """Enter weights that see one variable: x (C, d) and h (N, d, d)."""
    if x is not None:
        d = x.shape[1]
        for c, n in enumerate(groups):
            places[n * d : (n + 1) * d, units + c] = x[c]
    if h is not None:
        d = h.shape[1]
        for n in range(len(h)):
            places[n * d : (n + 1) * d, n * d : (n + 1) * d] = h[n]


def flat_parameters(layer: Layer, p: Parameters) -> Tensor:
    """Join a layer's parameters: (K, P)."""
    return torch.cat([p[name].flatten(1) for name in layer.shapes], dim=1)


def pack(packed: Packing, flat: Tensor) -> Tensor:
    """Return the matrices (K, 4 units, columns) of flat parameters (K, P); differentiable."""
    padded = torch.cat([flat, flat.new_zeros(len(flat), 1)], dim=1)  # place -1 is the zero
    places = packed.places.long().flatten()
    places = torch.where(places < 0, flat.shape[1], places)
    return padded.index_select(1, places).view(-1, *packed.places.shape)


def batched_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window with one product per step for all members.

    Any device and type; for GPUs on which no faster path runs. Shapes as in `recurrence`.
    """
    K, T, B, C = x.shape
    D = layer.size
    packed = packing(layer, x.device)
    U = packed.units
    weights = pack(packed, flat_parameters(layer, p))  # (K, 4 U, columns)
    inputs = torch.cat([x, x.new_ones(K, T, B, 1)], dim=3)
    from_x = inputs.flatten(1, 2) @ weights[:, :, U : U + C + 1].transpose(1, 2)
    from_x = from_x.view(K, T, B, 4, U)[..., :D]
    from_h = weights.view(K, 4, U, -1)[:, :, :D, :D].reshape(K, 4 * D, D).transpose(1, 2)
    h = c = x.new_zeros(K, B, D)
    states = []
    for t in range(T):
        a = (h @ from_h).view(K, B, 4, D) + from_x[:, t]
        if layer.cell == "lstm":
            i, f, j, o = a.unbind(2)
            c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(j)
            h = torch.sigmoid(o) * torch.tanh(c)
        else:
            r, z, jx, jh = a.unbind(2)
            z = torch.sigmoid(z)
            h = (1 - z) * torch.tanh(jx + torch.sigmoid(r) * jh) + z * h
        states.append(h)
    out = torch.stack(states, dim=1)
    return out.view(K, T, B, layer.n_variables, layer.hidden_size)
