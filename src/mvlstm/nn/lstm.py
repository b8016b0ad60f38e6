r"""A plain LSTM on all columns, all members at once; and what cLSTM asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.mixture import Prediction, gaussian_nll, total_loss
from mvlstm.nn.parameters import Dropout, Parameters, Shapes
from mvlstm.nn.recurrence import draw_stack, run_stack, stack_shapes

Loss = Literal["mse", "nll", "nll+mse"]


@dataclass(frozen=True)
class LSTMNetwork:
    r"""Stacked LSTM layers and a linear map of the last state: :math:`\hat y = w \cdot h_T + b`.

    A multi-variable layer with one variable that owns every column is the plain LSTM, so the
    recurrences are those of `mvlstm.nn.recurrence`.

    Shapes
    ------
    x : (K, T, B, C)
    wo (H, hidden_size), bo (H); log_sigma2 (H) where the loss has a likelihood
    """

    n_columns: int  # C
    hidden_size: int  # units of each layer
    layers: int = 1
    horizon: int = 1  # H
    loss_name: Loss = "mse"  # squared error, likelihood of one normal of learned variance, or both
    columns: tuple[int, ...] | None = None  # those it looks at; None: all

    @cached_property
    def stack(self) -> tuple[Layer, ...]:
        """The recurrent layers."""
        below = [self.n_columns if self.columns is None else len(self.columns)]
        below += [self.hidden_size] * (self.layers - 1)
        return tuple(Layer((0,) * width, 1, self.hidden_size) for width in below)

    @cached_property
    def head_shapes(self) -> Shapes:
        """Shapes of the parameters above the recurrence."""
        shapes: Shapes = {"wo": (self.horizon, self.hidden_size), "bo": (self.horizon,)}
        if "nll" in self.loss_name:
            shapes["log_sigma2"] = (self.horizon,)
        return shapes

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        return stack_shapes(self.stack) | self.head_shapes

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        return draw_stack(self.stack, self.head_shapes, {"wo": self.hidden_size}, generator)

    def states(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Tensor:
        """Return the top layer's states (K, T, B, hidden_size) for windows x (K, T, B, C)."""
        read = x if self.columns is None else x.index_select(3, _index(self.columns, x.device))
        return run_stack(self.stack, p, read, dropout).flatten(3)

    def __call__(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Prediction:
        """Return the prediction for windows x (K, T, B, C); dropout acts on the last state."""
        last = self.states(p, x, dropout)[:, -1]  # (K, B, hidden_size)
        if dropout is not None:
            last = dropout(last, 0)
        mean = torch.baddbmm(p["bo"].unsqueeze(1), last, p["wo"].transpose(1, 2))  # (K, B, H)
        return Prediction(mean, p.get("log_sigma2", torch.zeros_like(p["bo"])))

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        """Return each member's mean loss (K,) of the labels y (K, B, H) that are known."""
        return total_loss(self.loss_name, gaussian_nll, prediction, y, known)


@lru_cache(maxsize=64)
def _index(columns: tuple[int, ...], device: torch.device) -> Tensor:
    """Return columns as an index on a device, made once: a recorded step may not copy it there."""
    return torch.tensor(columns, device=device)


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
