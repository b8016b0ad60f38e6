r"""The multi-variable recurrent cell: a hidden state that is a matrix, one row per variable.

Letters are the paper's. ``K`` members, ``B`` windows, ``T`` steps, ``C`` input columns, ``N``
variables, ``d`` hidden units per variable, ``D = N d``. A variable may own several columns (a
category one-hot encoded, a stacked layer's state); ``groups[c]`` is the variable of column c. In
the paper every variable owns one column. `tests/oracles/equations.py` holds the equations as code,
`mvlstm.nn.recurrence` what runs.
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
    r"""One recurrent layer, as a description; its parameters are kept apart from it.

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

    Shapes
    ------
    Wx (C, d), Wh (N, d, d), bj (N, d), bh (N, d; GRU), b (G D) with G = 3 (LSTM) or 2 (GRU)
    gates, and W (G D, C + D) or Gx (C, G, d) with Gh (N, G, d, d). Units are variable-major:
    unit k of variable n has index n d + k.
    """

    groups: tuple[int, ...]  # variable of each input column, length C
    n_variables: int  # N
    hidden_size: int  # d
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

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        d, D, C = self.hidden_size, self.size, self.n_columns
        owned = [self.groups.count(n) for n in self.groups]  # columns of the same variable
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
