"""The recurrence over a window, by the fastest path the device has.

Every path computes what `mvlstm.nn.cell.reference_recurrence` computes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer, assemble
from mvlstm.nn.parameters import Parameters


def recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    return _masked_library(layer, p, x)


def _masked_library(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Call the library's own LSTM or GRU once a member, with assembled weights (SPEC 1.7)."""
    K, T, B, _ = x.shape
    weights = [list(w.unbind(0)) for w in assemble(layer, p)]
    zero = x.new_zeros(1, B, layer.size)
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)  # biases, layers, dropout, ...
    states = []
    for k in range(K):
        flat = [weight[k] for weight in weights]
        if layer.cell == "lstm":
            output = torch.lstm(x[k], (zero, zero), flat, *options)[0]
        else:
            output = torch.gru(x[k], zero, flat, *options)[0]
        states.append(output)  # (T, B, D)
    return torch.stack(states).view(K, T, B, layer.n_variables, layer.hidden_size)
