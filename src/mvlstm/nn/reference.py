r"""The network's equations as they read: what the fast paths are proven equal to.

Nothing here runs in a fit. The tests compare every path of `mvlstm.nn.recurrence` and
`mvlstm.nn.attention`, values and gradients, with these functions, and the benchmarks time them
beside it. Letters are those of `mvlstm.nn.cell`: ``K`` members, ``B`` windows, ``T`` steps, ``C``
input columns, ``N`` variables, ``d`` hidden units a variable, ``D = N d``, ``G`` gates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.attention import Summary
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters


def reference_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run `reference_step` over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    K, T, B, _ = x.shape
    h = c = x.new_zeros(K, B, layer.n_variables, layer.hidden_size)
    states = []
    for t in range(T):
        h, c = reference_step(layer, p, x[:, t], h, c)
        states.append(h)  # (K, B, N, d)
    return torch.stack(states, dim=1)  # (K, T, B, N, d)


def reference_step(
    layer: Layer, p: Parameters, x: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Advance one time step, written as in the paper (equations 1 to 4).

    .. math::
        j^n_t &= \tanh(W_h^n h^n_{t-1} + W_x^n x^n_t + b_j^n) \\
        c_t &= f \odot c_{t-1} + i \odot \mathrm{vec}\,J_t \\
        H_t &= \mathrm{mat}(o \odot \tanh c_t)

    and of the GRU

    .. math::
        j^n_t &= \tanh(W_x^n x^n_t + b_j^n + r^n \odot (W_h^n h^n_{t-1} + b_h^n)) \\
        h^n_t &= (1 - z^n) \odot j^n_t + z^n \odot h^n_{t-1}

    Parameters
    ----------
    x : (K, B, C)
    h, c : (K, B, N, d)
        State and memory; the GRU leaves c alone.

    Returns
    -------
    h, c : (K, B, N, d)
    """
    Wx_x = torch.einsum("kbc,kcd,cn->kbnd", x, p["Wx"], membership(layer, x))  # (K, B, N, d)
    Wh_h = torch.einsum("knij,kbnj->kbni", p["Wh"], h)  # (K, B, N, d)
    bj = p["bj"].unsqueeze(1)  # (K, 1, N, d)
    gates = torch.sigmoid(gate_activations(layer, p, x, h))  # (K, B, G, N, d)
    if layer.cell == "lstm":
        i, f, o = gates.unbind(2)  # (K, B, N, d) each
        j = torch.tanh(Wh_h + Wx_x + bj)  # (K, B, N, d)
        c = f * c + i * j  # (K, B, N, d)
        return o * torch.tanh(c), c
    r, z = gates.unbind(2)  # (K, B, N, d) each
    bh = p["bh"].unsqueeze(1)  # (K, 1, N, d)
    j = torch.tanh(Wx_x + bj + r * (Wh_h + bh))  # (K, B, N, d)
    return (1 - z) * j + z * h, c


def gate_activations(layer: Layer, p: Parameters, x: Tensor, h: Tensor) -> Tensor:
    r"""Return the gates before the sigmoid, (K, B, G, N, d), forget bias included.

    .. math::
        a = W [x_t; \mathrm{vec}\,H_{t-1}] + b, \qquad \text{or, variable by variable,} \qquad
        a^n = G_x^n x^n_t + G_h^n h^n_{t-1} + b^n
    """
    K, B = h.shape[:2]
    G, N, d = layer.n_gates, layer.n_variables, layer.hidden_size
    b = p["b"].view(K, 1, G, N, d)
    if layer.gates == "full":
        xh = torch.cat([x, h.flatten(2)], dim=2)  # (K, B, C + D)
        a = torch.einsum("kgc,kbc->kbg", p["W"], xh).view(K, B, G, N, d) + b
    else:
        Gx_x = torch.einsum("kbc,kcgi,cn->kbgni", x, p["Gx"], membership(layer, x))
        Gh_h = torch.einsum("kngij,kbnj->kbgni", p["Gh"], h)  # (K, B, G, N, d)
        a = Gx_x + Gh_h + b
    if layer.cell == "lstm":  # the forget gate's constant 1, outside the parameters
        a = a + torch.tensor([0.0, 1.0, 0.0], dtype=a.dtype, device=a.device).view(G, 1, 1)
    return a  # (K, B, G, N, d)


def reference_attention(h: Tensor, Ws: Tensor, bs: Tensor) -> Summary:
    r"""Weigh the first T - 1 states of each variable (paper, equations 5 to 8).

    .. math::
        e^n_t = \tanh(W_s^n \cdot h^n_t + b_s^n), \quad a^n = \operatorname{softmax}_t(e^n), \quad
        \tilde h^n = [h^n_T ; \textstyle\sum_{t<T} a^n_t h^n_t]

    Shapes as in `mvlstm.nn.attention.temporal_attention`, whose meaning this is.
    """
    memory, last = h[:, :-1], h[:, -1]  # (K, T - 1, B, N, d), (K, B, N, d)
    e = torch.tanh(torch.einsum("ktbnd,knd->kbnt", memory, Ws) + bs[:, None, :, None])
    a = torch.softmax(e, dim=-1)  # (K, B, N, T - 1)
    context = torch.einsum("kbnt,ktbnd->kbnd", a, memory)  # (K, B, N, d)
    return Summary(torch.cat([last, context], dim=-1), a)


def membership(layer: Layer, like: Tensor) -> Tensor:
    """Return the matrix E (C, N) with E[c, n] = 1 where column c belongs to variable n."""
    index = torch.tensor(layer.groups, device=like.device)
    return torch.nn.functional.one_hot(index, layer.n_variables).to(like.dtype)  # (C, N)


# ------------------------------------------------------------------- the layer as a standard cell


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
