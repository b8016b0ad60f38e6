r"""The multi-variable recurrent cell: a hidden state that is a matrix, one row a variable.

Letters are the paper's. ``K`` members, ``B`` windows, ``T`` steps, ``C`` input columns, ``N``
variables, ``d`` hidden units a variable, ``D = N d``. A variable may own several columns (a
category one-hot encoded, a stacked layer's state); ``groups[c]`` is the variable of column c. In
the paper every variable owns one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from mvlstm.nn.parameters import Parameters, Shapes, glorot

Cell = Literal["lstm", "gru"]
Gates = Literal["full", "variable"]


@dataclass(frozen=True)
class Layer:
    r"""One recurrent layer, as a description; its parameters are passed to the functions below.

    LSTM (paper, equations 1 to 4), with gates ``i, f, o`` stacked in ``W`` and ``b``:

    .. math::
        j^n_t &= \tanh(W_h^n h^n_{t-1} + W_x^n x^n_t + b_j^n) \\
        [i; f; o] &= \sigma(W [x_t; \mathrm{vec}\,H_{t-1}] + b) \\
        c_t &= f \odot c_{t-1} + i \odot \mathrm{vec}\,J_t \\
        H_t &= \mathrm{mat}(o \odot \tanh c_t)

    GRU, with gates ``r, z``:

    .. math::
        j^n_t &= \tanh(W_x^n x^n_t + b_j^n + r^n \odot (W_h^n h^n_{t-1} + b_h^n)) \\
        h^n_t &= (1 - z^n) \odot j^n_t + z^n \odot h^n_{t-1}

    With ``gates="variable"`` (MV-Indep) the gates of row n see variable n alone: ``Gx`` and
    ``Gh`` take the place of ``W``. The forget gate's bias has a constant 1 added, outside the
    parameter, so that weight decay does not pull it down.

    Parameters
    ----------
    groups : tuple of int
        Variable of each input column, length C.
    n_variables, hidden_size : int
        N and d.
    cell : {"lstm", "gru"}
    gates : {"full", "variable"}

    Shapes
    ------
    Wx (C, d), Wh (N, d, d), bj (N, d), bh (N, d; GRU), b (G D) with G = 3 (LSTM) or 2 (GRU)
    gates, and W (G D, C + D) or Gx (C, G, d) with Gh (N, G, d, d). Units are variable-major:
    unit k of variable n has index n d + k.
    """

    groups: tuple[int, ...]
    n_variables: int
    hidden_size: int
    cell: Cell = "lstm"
    gates: Gates = "full"

    @property
    def n_columns(self) -> int:
        """C, the number of input columns."""
        return len(self.groups)

    @property
    def n_gates(self) -> int:
        """G, the number of sigmoid gates."""
        return 3 if self.cell == "lstm" else 2

    def foreign(self) -> Tensor:
        """Return 1 where a weight of ``W`` leads from another variable to a gate, else 0."""
        units = [n for n in range(self.n_variables) for _ in range(self.hidden_size)]
        source = torch.tensor([*self.groups, *units])  # (C + D,)
        gate = torch.tensor(units * self.n_gates)  # (G D,)
        return (gate[:, None] != source).to(torch.float32)

    @property
    def size(self) -> int:
        """D, the length of the whole hidden state."""
        return self.n_variables * self.hidden_size

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        C, N, d, G, D = self.n_columns, self.n_variables, self.hidden_size, self.n_gates, self.size
        shapes: Shapes = {"Wx": (C, d), "Wh": (N, d, d), "bj": (N, d)}
        if self.cell == "gru":
            shapes["bh"] = (N, d)
        if self.gates == "full":
            shapes["W"] = (G * D, C + D)
        else:
            shapes |= {"Gx": (C, G, d), "Gh": (N, G, d, d)}
        shapes["b"] = (G * D,)
        return shapes

    def membership(self, like: Tensor) -> Tensor:
        """Return the matrix E (C, N) with E[c, n] = 1 where column c belongs to variable n."""
        index = torch.tensor(self.groups, device=like.device)
        return torch.nn.functional.one_hot(index, self.n_variables).to(like.dtype)  # (C, N)

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        d, D, C = self.hidden_size, self.size, self.n_columns
        owned = [self.groups.count(n) for n in self.groups]  # columns beside each column
        drawn: Parameters = {}
        for name, shape in self.shapes.items():
            if name in ("Wx", "Gx"):
                rows = [glorot(shape[1:], fan, d, generator) for fan in owned]
                drawn[name] = torch.stack(rows)
            elif name in ("Wh", "Gh"):
                drawn[name] = glorot(shape, d, d, generator)
            elif name == "W":
                drawn[name] = glorot(shape, C + D, D, generator)
            else:
                drawn[name] = torch.zeros(shape, dtype=torch.float64)
        return drawn


def gate_activations(layer: Layer, p: Parameters, x: Tensor, h: Tensor) -> Tensor:
    """Return the gates before the sigmoid, (K, B, G, N, d), forget bias included."""
    K, B = h.shape[:2]
    N, d, G = layer.n_variables, layer.hidden_size, layer.n_gates
    if layer.gates == "full":
        xh = torch.cat([x, h.flatten(2)], dim=2)  # (K, B, C + D)
        a = torch.einsum("kgc,kbc->kbg", p["W"], xh).view(K, B, G, N, d)
    else:
        E = layer.membership(x)
        a = torch.einsum("kbc,kcgi,cn->kbgni", x, p["Gx"], E)
        a = a + torch.einsum("kngij,kbnj->kbgni", p["Gh"], h)
    a = a + p["b"].view(K, 1, G, N, d)
    if layer.cell == "lstm":
        a = a + torch.tensor([0.0, 1.0, 0.0], dtype=a.dtype, device=a.device).view(G, 1, 1)
    return a


def reference_step(
    layer: Layer, p: Parameters, x: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor]:
    """Advance one time step, written as in the paper: the meaning all faster paths must have.

    Parameters
    ----------
    x : (K, B, C)
    h, c : (K, B, N, d)
        State and memory; the GRU leaves c alone.

    Returns
    -------
    h, c : (K, B, N, d)
    """
    gates = torch.sigmoid(gate_activations(layer, p, x, h))  # (K, B, G, N, d)
    from_x = torch.einsum("kbc,kcd,cn->kbnd", x, p["Wx"], layer.membership(x))
    from_h = torch.einsum("knij,kbnj->kbni", p["Wh"], h)
    bj = p["bj"].unsqueeze(1)
    if layer.cell == "lstm":
        i, f, o = gates.unbind(2)
        j = torch.tanh(from_h + from_x + bj)  # (K, B, N, d)
        c = f * c + i * j
        return o * torch.tanh(c), c
    r, z = gates.unbind(2)
    j = torch.tanh(from_x + bj + r * (from_h + p["bh"].unsqueeze(1)))
    return (1 - z) * j + z * h, c


def reference_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run `reference_step` over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    K, T, B, _ = x.shape
    h = c = x.new_zeros(K, B, layer.n_variables, layer.hidden_size)
    states = []
    for t in range(T):
        h, c = reference_step(layer, p, x[:, t], h, c)
        states.append(h)
    return torch.stack(states, dim=1)


def block_diagonal(blocks: Tensor) -> Tensor:
    """Place blocks (K, N, i, j) on the diagonal of a zero matrix (K, N i, N j)."""
    K, N, i, j = blocks.shape
    spread = torch.diag_embed(blocks.permute(0, 2, 3, 1))  # (K, i, j, N, N)
    return spread.permute(0, 3, 1, 4, 2).reshape(K, N * i, N * j)


def spread_columns(layer: Layer, weights: Tensor) -> Tensor:
    """Place per-column weights (K, C, d) in a matrix (K, D, C), zero off each column's variable."""
    E = layer.membership(weights)
    return torch.einsum("kcd,cn->kndc", weights, E).flatten(1, 2)


def assemble(layer: Layer, p: Parameters) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the weights of the standard cell that this layer is.

    Row blocks follow PyTorch: i, f, g, o for the LSTM; r, z, n for the GRU.

    Returns
    -------
    weight_ih (K, R D, C), weight_hh (K, R D, D), bias_ih (K, R D), bias_hh (K, R D)
        with R = 4 (LSTM) or 3 (GRU); ``bias_hh`` is zero but for the GRU's ``bh``.
    """
    C, G, D = layer.n_columns, layer.n_gates, layer.size
    K = p["b"].shape[0]
    candidate = (spread_columns(layer, p["Wx"]), block_diagonal(p["Wh"]))
    if layer.gates == "full":
        W = p["W"].view(K, G, D, C + D)
        gates = [(W[:, g, :, :C], W[:, g, :, C:]) for g in range(G)]
    else:
        gates = [
            (spread_columns(layer, p["Gx"][:, :, g]), block_diagonal(p["Gh"][:, :, g]))
            for g in range(G)
        ]
    b = list(p["b"].view(K, G, D).unbind(1))
    bj = p["bj"].flatten(1)
    zero = torch.zeros_like(bj)
    if layer.cell == "lstm":
        blocks = [gates[0], gates[1], candidate, gates[2]]
        bias_ih = torch.cat([b[0], b[1] + 1.0, bj, b[2]], dim=1)
        bias_hh = torch.cat([zero] * 4, dim=1)
    else:
        blocks = [gates[0], gates[1], candidate]
        bias_ih = torch.cat([b[0], b[1], bj], dim=1)
        bias_hh = torch.cat([zero, zero, p["bh"].flatten(1)], dim=1)
    weight_ih = torch.cat([block[0] for block in blocks], dim=1)
    weight_hh = torch.cat([block[1] for block in blocks], dim=1)
    return weight_ih, weight_hh, bias_ih, bias_hh
