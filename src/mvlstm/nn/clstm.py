"""What cLSTM (Tank et al.) asks of a plain LSTM: a forecast at every step, weights by input."""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.lstm import LSTMNetwork
from mvlstm.nn.parameters import Parameters


def every_step_loss(network: LSTMNetwork, p: Parameters, x: Tensor, y: Tensor) -> Tensor:
    r"""Return each member's mean squared error (K,) of forecasts made at every step of a window.

    .. math:: \hat y_{t+1} = w \cdot h_t + b, \qquad t = 1, \dots, T

    Labels y (K, T, B, H) of every step are NaN where unknown, which leaves the step out.
    """
    states = network.states(p, x).flatten(1, 2)  # (K, T B, hidden)
    means = torch.baddbmm(p["bo"].unsqueeze(1), states, p["wo"].transpose(1, 2)).view(y.shape)
    known = ~torch.isnan(y)
    squared = torch.where(known, means - y, 0.0).square()
    return squared.sum(dim=(1, 2, 3)) / known.sum(dim=(1, 2, 3))


def input_membership(network: LSTMNetwork, groups: tuple[int, ...]) -> Tensor:
    """Say which weights read which variable: (P, N), one where they do.

    The group of a variable holds the weights of all gates and of the candidate on its columns.
    """
    n_columns, n_variables = network.n_columns, max(groups) + 1
    owner = torch.nn.functional.one_hot(torch.tensor(groups), n_variables).float()  # (C, N)
    parts = []
    for name, shape in network.shapes.items():
        part = torch.zeros(*shape, n_variables)
        if name == "Wx_0":
            part[:] = owner.unsqueeze(1)
        elif name == "W_0":
            part[:, :n_columns] = owner
        parts.append(part.view(-1, n_variables))
    return torch.cat(parts)
