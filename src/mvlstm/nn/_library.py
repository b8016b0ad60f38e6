"""The recurrence through PyTorch's own LSTM and GRU, member by member.

With full gates the layer is a standard cell with block-structured weights (SPEC 1.7): one call a
member. With per-variable gates it is N small cells side by side: one call a variable, with N times
fewer multiplications.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters


def library_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    run = _full if layer.gates == "full" else _variable
    if len(x) == 1:  # views whose backward pass costs nothing
        return run(layer, {name: w.squeeze(0) for name, w in p.items()}, x.squeeze(0)).unsqueeze(0)
    parts = {name: w.unbind(0) for name, w in p.items()}
    members = [{name: w[k] for name, w in parts.items()} for k in range(len(x))]
    return torch.stack([run(layer, one, x[k]) for k, one in enumerate(members)])


def _full(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member with its assembled weights: x (T, B, C) to (T, B, N, d)."""
    T, B, _ = x.shape
    assemble: Any = AssembleWeights.apply
    weights = assemble(layer, p["W"], p["Wx"], p["Wh"])
    out = _call(layer, x, layer.size, [*weights, *_biases(layer, p)])
    return out.view(T, B, layer.n_variables, layer.hidden_size)


def _variable(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member's N separate cells: x (T, B, C) to (T, B, N, d)."""
    N, d = layer.n_variables, layer.hidden_size
    order = [0, 1, None, 2] if layer.cell == "lstm" else [0, 1, None]  # None: the candidate
    rows = len(order) * d
    from_x = torch.stack([p["Wx"] if g is None else p["Gx"][:, g] for g in order], dim=1)
    from_h = torch.stack([p["Wh"] if g is None else p["Gh"][:, g] for g in order], dim=1)
    weight_ih = from_x.view(-1, rows).t()  # (R d, C)
    weight_hh = from_h.view(N, rows, d)
    biases = [b.view(len(order), N, d).transpose(0, 1).reshape(N, rows) for b in _biases(layer, p)]
    states = []
    for n in range(N):
        columns = [c for c, variable in enumerate(layer.groups) if variable == n]
        first, last = columns[0], columns[-1] + 1
        if last - first == len(columns):
            own_x, own_w = x[..., first:last], weight_ih[:, first:last]
        else:
            own_x, own_w = x[..., columns], weight_ih[:, columns]
        weights = [own_w.contiguous(), weight_hh[n], biases[0][n], biases[1][n]]
        states.append(_call(layer, own_x.contiguous(), d, weights))  # (T, B, d)
    return torch.stack(states, dim=2)


def _call(layer: Layer, x: Tensor, size: int, weights: list[Tensor]) -> Tensor:
    """Call the library's cell: x (T, B, columns) to (T, B, size)."""
    zero = x.new_zeros(1, x.shape[1], size)
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)  # biases, layers, dropout, ...
    if layer.cell == "lstm":
        return torch.lstm(x, (zero, zero), weights, *options)[0]
    return torch.gru(x, zero, weights, *options)[0]


def _biases(layer: Layer, p: Parameters) -> tuple[Tensor, Tensor]:
    """Return one member's two biases (R D,), as `mvlstm.nn.cell.assemble` does."""
    b, bj = p["b"], p["bj"].flatten()
    if layer.cell == "lstm":
        i, f, o = b.view(3, -1).unbind(0)
        bias_ih = torch.cat([i, f, bj, o])
        return bias_ih, _forget(layer, b)
    return torch.cat([b, bj]), torch.cat([torch.zeros_like(b), p["bh"].flatten()])


def _forget(layer: Layer, like: Tensor) -> Tensor:
    """Return the constant part of the LSTM's bias (4 D,): one for the forget gate."""
    constant = like.new_zeros(4 * layer.size)
    constant[layer.size : 2 * layer.size] = 1.0
    return constant


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
        candidate_ih.zero_()
        candidate_hh.zero_()
        variables, columns = _ownership(layer.groups, W.device)
        candidate_ih.view(layer.n_variables, -1, C)[variables, :, columns] = Wx
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
        variables, columns = _ownership(layer.groups, grad_ih.device)
        grad_Wx = grad_ih[2 * D : 3 * D].view(layer.n_variables, -1, C)[variables, :, columns]
        grad_Wh = _diagonal(layer, grad_hh[2 * D : 3 * D]).permute(2, 0, 1).contiguous()
        return None, grad_W, grad_Wx, grad_Wh


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
