"""The recurrence on the CPU, member by member.

With full gates the layer is a standard cell with block-structured weights; with
per-variable gates it is N small cells side by side, with N times fewer multiplications. The cells
are PyTorch's own, called once per member or once per variable, but for small GRUs
(`mvlstm.nn.backends.gru`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from mvlstm.nn.backends.gru import SmallGRUs
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters


def library_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    return each_member(PATHS[layer.cell, layer.gates], layer, p, x)


def each_member(
    run: Callable[[Layer, Parameters, Tensor], Tensor], layer: Layer, p: Parameters, x: Tensor
) -> Tensor:
    """Call ``run`` with each member's parameters and windows, and join what it returns."""
    if len(x) == 1:  # views whose backward pass costs nothing
        return run(layer, {name: w.squeeze(0) for name, w in p.items()}, x.squeeze(0)).unsqueeze(0)
    parts = {name: w.unbind(0) for name, w in p.items()}
    members = [{name: w[k] for name, w in parts.items()} for k in range(len(x))]
    return torch.stack([run(layer, one, x[k]) for k, one in enumerate(members)])


def _full_lstm(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member's LSTM with its assembled weights: x (T, B, C) to (T, B, N, d)."""
    T, B, _ = x.shape
    assemble: Any = AssembleWeights.apply
    i, f, o = p["b"].view(3, -1).unbind(0)
    bias = torch.cat([i, f, p["bj"].flatten(), o])
    out = _lstm(x, [*assemble(layer, p["W"], p["Wx"], p["Wh"]), bias, _forget(bias)])
    return out.view(T, B, layer.n_variables, layer.hidden_size)


def _variable_lstm(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member's N separate LSTMs: x (T, B, C) to (T, B, N, d)."""
    N, d = layer.n_variables, layer.hidden_size
    i, f, o = p["b"].view(3, N, d).unbind(0)
    bias = torch.cat([i, f, p["bj"], o], dim=1)  # (N, 4 d)
    weight_ih = _side_by_side(p["Gx"], p["Wx"]).t()  # (4 d, C)
    weight_hh = _side_by_side(p["Gh"], p["Wh"])  # (N, 4 d, d)
    forget = _forget(bias[0])
    states = []
    for n in range(N):
        columns = [c for c, variable in enumerate(layer.groups) if variable == n]
        first, last = columns[0], columns[-1] + 1
        own: Any = slice(first, last) if last - first == len(columns) else columns
        weights = [weight_ih[:, own].contiguous(), weight_hh[n], bias[n], forget]
        states.append(_lstm(x[..., own].contiguous(), weights))  # (T, B, d)
    return torch.stack(states, dim=2)


def _side_by_side(gates: Tensor, candidate: Tensor) -> Tensor:
    """Join gates (n, G, d, ...) and the candidate (n, d, ...) in the library's order."""
    g = list(gates.unbind(1))
    return torch.cat([*g[:2], candidate, *g[2:]], dim=1)


def _lstm(x: Tensor, weights: list[Tensor]) -> Tensor:
    """Call the library's LSTM: x (T, B, columns) to (T, B, size)."""
    zero = x.new_zeros(1, x.shape[1], weights[1].shape[1])
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)  # biases, layers, dropout, ...
    return torch.lstm(x, (zero, zero), weights, *options)[0]


def _forget(bias: Tensor) -> Tensor:
    """Return the constant part of an LSTM's bias (4 size,): one for the forget gate."""
    constant = torch.zeros_like(bias)
    constant[len(bias) // 4 : len(bias) // 2] = 1.0
    return constant


def _full_gru(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member's GRU with its assembled weights: x (T, B, C) to (T, B, N, d)."""
    T, B, _ = x.shape
    assemble: Any = AssembleWeights.apply
    bias_ih = torch.cat([p["b"], p["bj"].flatten()])
    bias_hh = torch.cat([torch.zeros_like(p["b"]), p["bh"].flatten()])
    weights = [*assemble(layer, p["W"], p["Wx"], p["Wh"]), bias_ih, bias_hh]
    zero = x.new_zeros(1, B, layer.size)
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)  # biases, layers, dropout, ...
    out = torch.gru(x, zero, weights, *options)[0]
    return out.view(T, B, layer.n_variables, layer.hidden_size)


def _variable_gru(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member's N separate GRUs side by side: x (T, B, C) to (T, B, N, d)."""
    T, B, C = x.shape
    N, d = layer.n_variables, layer.hidden_size
    r, z = p["b"].view(2, N, d).unbind(0)
    bias = torch.cat([r, z, p["bj"]], dim=1)  # (N, 3 d)
    variables, columns = _ownership(layer.groups, x.device)
    own = _side_by_side(p["Gx"], p["Wx"])  # (C, 3 d)
    weight_ih = own.new_zeros(C, N, 3 * d).index_put((columns, variables), own)
    from_x = torch.addmm(bias.flatten(), x.reshape(T * B, C), weight_ih.flatten(1))
    from_x = from_x.view(T, B, N, 3 * d).transpose(1, 2).contiguous()
    run: Any = SmallGRUs.apply
    weight_hh = _side_by_side(p["Gh"], p["Wh"]).transpose(1, 2)  # (N, d, 3 d)
    states: Tensor = run(from_x, weight_hh, p["bh"])
    return states.transpose(1, 2).contiguous()


PATHS = {
    ("lstm", "full"): _full_lstm,
    ("lstm", "variable"): _variable_lstm,
    ("gru", "full"): _full_gru,
    ("gru", "variable"): _variable_gru,
}


class AssembleWeights(torch.autograd.Function):
    """Lay out one member's compact weights for the library's cell; the backward pass picks them.

    Row blocks follow PyTorch (i, f, g, o or r, z, n) with the candidate (g or n) third, so gate
    rows below 2 D keep their place and the LSTM's output gate moves down by D.

    Shapes
    ------
    W (G D, C + D), Wx (C, d), Wh (N, d, d) to weight_ih (R D, C), weight_hh (R D, D)
    """

    @staticmethod
    def forward(ctx: Any, layer: Layer, W: Tensor, Wx: Tensor, Wh: Tensor) -> tuple[Tensor, Tensor]:
        """Copy the dense gates, and the candidate's blocks onto zeros."""
        ctx.layer = layer
        C, D, G = layer.n_columns, layer.size, layer.n_gates
        weight_ih = W.new_empty((G + 1) * D, C)
        weight_hh = W.new_empty((G + 1) * D, D)
        for source, target in _gate_rows(layer):
            weight_ih[target] = W[source, :C]
            weight_hh[target] = W[source, C:]
        candidate_ih, candidate_hh = weight_ih[2 * D : 3 * D], weight_hh[2 * D : 3 * D]
        candidate_ih.copy_(spread_columns(layer, Wx))
        candidate_hh.zero_()
        _diagonal(layer, candidate_hh).copy_(Wh.permute(1, 2, 0))
        return weight_ih, weight_hh

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_ih: Tensor, grad_hh: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        """Gather the gradients of the free entries."""
        layer: Layer = ctx.layer
        C, D, G = layer.n_columns, layer.size, layer.n_gates
        grad_W = grad_ih.new_empty(G * D, C + D)
        for source, target in _gate_rows(layer):
            grad_W[source, :C] = grad_ih[target]
            grad_W[source, C:] = grad_hh[target]
        grad_Wx = pick_columns(layer, grad_ih[2 * D : 3 * D])
        grad_Wh = _diagonal(layer, grad_hh[2 * D : 3 * D]).permute(2, 0, 1).contiguous()
        return None, grad_W, grad_Wx, grad_Wh


def spread_columns(layer: Layer, Wx: Tensor) -> Tensor:
    """Lay out the candidate's weights of the columns: Wx (C, d) to (D, C), zero elsewhere."""
    variables, columns = _ownership(layer.groups, Wx.device)
    spread = Wx.new_zeros(layer.n_variables, layer.hidden_size, layer.n_columns)
    spread[variables, :, columns] = Wx
    return spread.flatten(0, 1)


def pick_columns(layer: Layer, spread: Tensor) -> Tensor:
    """Undo `spread_columns`: (D, C) to (C, d)."""
    variables, columns = _ownership(layer.groups, spread.device)
    by_variable = spread.reshape(layer.n_variables, layer.hidden_size, layer.n_columns)
    return by_variable[variables, :, columns]


def _gate_rows(layer: Layer) -> list[tuple[slice, slice]]:
    """Return (rows in W, rows in the library's order) of the gates."""
    D = layer.size
    rows = [(slice(0, 2 * D), slice(0, 2 * D))]
    if layer.cell == "lstm":
        rows.append((slice(2 * D, 3 * D), slice(3 * D, 4 * D)))
    return rows


def _diagonal(layer: Layer, candidate: Tensor) -> Tensor:
    """Return the blocks on the diagonal of (D, D) as a view (d, d, N)."""
    N, d = layer.n_variables, layer.hidden_size
    return candidate.view(N, d, N, d).diagonal(dim1=0, dim2=2)


@lru_cache(maxsize=64)
def _ownership(groups: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the variable of each column, and the columns, as indices."""
    return torch.tensor(groups, device=device), torch.arange(len(groups), device=device)
