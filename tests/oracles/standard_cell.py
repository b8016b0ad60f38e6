"""A layer of `mvlstm.nn.cell` as the standard LSTM or GRU that it is equal to."""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters
from oracles.equations import membership


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
    candidate = (_spread(layer, p["Wx"]), _block_diagonal(p["Wh"]))
    if layer.gates == "full":
        W = p["W"].view(K, G, D, C + D)
        gates = [(W[:, g, :, :C], W[:, g, :, C:]) for g in range(G)]
    else:
        gates = [
            (_spread(layer, p["Gx"][:, :, g]), _block_diagonal(p["Gh"][:, :, g])) for g in range(G)
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


def _spread(layer: Layer, weights: Tensor) -> Tensor:
    """Place per-column weights (K, C, d) in a matrix (K, D, C), zero off each column's variable."""
    E = membership(layer, weights)
    return torch.einsum("kcd,cn->kndc", weights, E).flatten(1, 2)


def _block_diagonal(blocks: Tensor) -> Tensor:
    """Place blocks (K, N, i, j) on the diagonal of a zero matrix (K, N i, N j)."""
    K, N, i, j = blocks.shape
    spread = torch.diag_embed(blocks.permute(0, 2, 3, 1))  # (K, i, j, N, N)
    return spread.permute(0, 3, 1, 4, 2).reshape(K, N * i, N * j)
