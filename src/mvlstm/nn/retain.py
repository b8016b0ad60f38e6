r"""RETAIN (Choi et al. 2016) with a regression head, all members at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.mixture import Prediction, mean_loss
from mvlstm.nn.parameters import Dropout, Parameters, Shapes, glorot, of_layer, tagged
from mvlstm.nn.recurrence import recurrence


class Gates(NamedTuple):
    """What RETAIN's two recurrences say of each step: how much it counts, and in what respect."""

    alpha: Tensor  # (K, T, B), sums to one over time
    beta: Tensor  # (K, T, B, m), in (-1, 1)


@dataclass(frozen=True)
class RETAINNetwork:
    r"""A forecast that is linear in the inputs, with coefficients two recurrences compute.

    With :math:`v_t = W_{emb} x_t` and two GRUs that read the window from its end to its start,

    .. math::
        e_t = w_a \cdot g_t + b_a, \quad \alpha = \operatorname{softmax}_t(e), \quad
        \beta_t = \tanh(W_b u_t + b_b), \quad
        \hat y = w \cdot \textstyle\sum_t \alpha_t (\beta_t \odot v_t) + b_o ,

    so that the contribution of input k at step t is
    :math:`\omega_{tk} = \alpha_t\, w \cdot (\beta_t \odot W_{emb}[:, k])\, x_{tk}`, and all of them
    add up to :math:`\hat y - b_o`.

    Shapes
    ------
    x : (K, T, B, C)
    emb (C, m); GRUs a and b of m inputs and m units; wa (m), ba (1), Wb (m, m), bb (m), wo (H, m),
    bo (H)
    """

    n_columns: int  # C
    hidden_size: int  # m, of the embedding and of both GRUs
    horizon: int = 1  # H; each step ahead has its own w and b

    @cached_property
    def layer(self) -> Layer:
        """The GRU, of one variable that owns all of the embedding."""
        return Layer((0,) * self.hidden_size, 1, self.hidden_size, cell="gru")

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        m, H = self.hidden_size, self.horizon
        shapes: Shapes = {"emb": (self.n_columns, m)}
        for which in ("a", "b"):
            shapes |= tagged(self.layer.shapes, which)
        shapes |= {"wa": (m,), "ba": (1,), "Wb": (m, m), "bb": (m,)}
        return shapes | {"wo": (H, m), "bo": (H,)}

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        m = self.hidden_size
        drawn: Parameters = {"emb": glorot((self.n_columns, m), self.n_columns, m, generator)}
        for which in ("a", "b"):
            drawn |= tagged(self.layer.initial(generator), which)
        drawn["wa"] = glorot((m,), m, 1, generator)
        drawn["Wb"] = glorot((m, m), m, m, generator)
        drawn["wo"] = glorot((self.horizon, m), m, 1, generator)
        for name in ("ba", "bb", "bo"):
            drawn[name] = torch.zeros(self.shapes[name], dtype=torch.float64)
        return drawn

    def __call__(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Prediction:
        """Return the prediction for windows x (K, T, B, C); dropout acts on v and the context."""
        v = self._embed(p, x)
        if dropout is not None:
            v = dropout(v, 0, 2)
        alpha, beta = self._gates(p, v)
        context = torch.einsum("ktb,ktbm->kbm", alpha, beta * v)
        if dropout is not None:
            context = dropout(context, 1)
        mean = torch.baddbmm(p["bo"].unsqueeze(1), context, p["wo"].transpose(1, 2))  # (K, B, H)
        return Prediction(mean, torch.zeros_like(p["bo"]))

    def coefficients(self, p: Parameters, x: Tensor) -> Tensor:
        """Return the coefficient of every input, (K, B, H, T, C): times x it is omega."""
        alpha, beta = self._gates(p, self._embed(p, x))
        weighted = torch.einsum("khm,kcm->khcm", p["wo"], p["emb"])
        return torch.einsum("ktb,ktbm,khcm->kbhtc", alpha, beta, weighted)

    def _embed(self, p: Parameters, x: Tensor) -> Tensor:
        K, T, B, C = x.shape
        return torch.bmm(x.reshape(K, T * B, C), p["emb"]).view(K, T, B, -1)

    def _gates(self, p: Parameters, v: Tensor) -> Gates:
        """Run both recurrences backwards over the embedded window v (K, T, B, m)."""
        K, T, B, m = v.shape
        backwards = v.flip(1)
        g, u = (
            recurrence(self.layer, of_layer(p, self.layer.shapes, which), backwards).reshape(
                K, T * B, m
            )
            for which in ("a", "b")
        )
        e = torch.baddbmm(p["ba"].unsqueeze(1), g, p["wa"].unsqueeze(2)).view(K, T, B)
        beta = torch.baddbmm(p["bb"].unsqueeze(1), u, p["Wb"].transpose(1, 2)).tanh()
        return Gates(torch.softmax(e, dim=1).flip(1), beta.view(K, T, B, m).flip(1))

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        """Return each member's mean squared error (K,) of the labels y (K, B, H) that are known."""
        return mean_loss((y - prediction.mean).square(), known)
