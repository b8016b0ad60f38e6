r"""The network's equations as they read: what the fast paths are proven equal to.

The tests compare every path of `mvlstm.nn.recurrence` and `mvlstm.nn.attention`, values and
gradients, with these functions, and the benchmarks time them too. Letters are those of
`mvlstm.nn.cell`: ``K`` members, ``B`` windows, ``T`` steps, ``C`` input columns, ``N`` variables,
``d`` hidden units per variable, ``D = N d``, ``G`` gates.
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
    """Advance state h and memory c (K, B, N, d) by inputs x (K, B, C); the GRU leaves c alone.

    These are the equations of `mvlstm.nn.cell.Layer`, line by line.
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
    """Weigh the first T - 1 states: the equations of `mvlstm.nn.attention.temporal_attention`."""
    memory, last = h[:, :-1], h[:, -1]  # (K, T - 1, B, N, d), (K, B, N, d)
    e = torch.tanh(torch.einsum("ktbnd,knd->kbnt", memory, Ws) + bs[:, None, :, None])
    a = torch.softmax(e, dim=-1)  # (K, B, N, T - 1)
    context = torch.einsum("kbnt,ktbnd->kbnd", a, memory)  # (K, B, N, d)
    return Summary(torch.cat([last, context], dim=-1), a)


def membership(layer: Layer, like: Tensor) -> Tensor:
    """Return the matrix E (C, N) with E[c, n] = 1 where column c belongs to variable n."""
    index = torch.tensor(layer.groups, device=like.device)
    return torch.nn.functional.one_hot(index, layer.n_variables).to(like.dtype)  # (C, N)
