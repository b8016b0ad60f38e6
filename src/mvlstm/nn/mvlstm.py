r"""The multi-variable LSTM of Guo and Lin (2018), all members at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm.nn.attention import temporal_attention
from mvlstm.nn.cell import Cell, Gates, Layer
from mvlstm.nn.mixture import Prediction, gaussian_nll, log_prior, mixture_nll, total_loss
from mvlstm.nn.parameters import Dropout, Parameters, Readers, Shapes, count, flatten, unflatten
from mvlstm.nn.recurrence import draw_stack, run_stack, stack_shapes

Attention = Literal["bounded", "free"]
Head = Literal["mixture", "fusion"]
Loss = Literal["nll", "mse", "nll+mse"]
Sigma = float | Literal["learned", "predicted"]
LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2 = -9.0, 6.0  # of a predicted variance
MOST_STEPS = 6  # ahead, whose gradients `leakage` takes for each window


@dataclass(frozen=True)
class MVLSTMNetwork:
    r"""Recurrent layers, temporal attention per variable, and a mixture (or fusion) head.

    A description: parameters come in with each call, ``network(parameters, x)``, every one with
    the members axis first. With the summary :math:`\tilde h^n` of variable n,

    .. math::
        \mu_n = W_o^n \cdot \tilde h^n + b_o^n, \qquad s_n = W_v \cdot \tilde h^n + b_v, \qquad
        \pi = \operatorname{softmax}(\tanh s), \qquad \hat y = \sum_n \pi_n \mu_n .

    ``attention="free"`` leaves out the tanh. ``head="fusion"`` (MV-Fusion) blends the summaries
    in place of the predictions, :math:`\hat y = w_f \cdot \sum_n \pi_n \tilde h^n + b_f`. Each
    step ahead has its own ``Wo, bo, Wv, bv``; one step is the paper's case. The loss is the
    likelihood of the mixture (of one normal, with a fusion head), the squared error of the mean, or
    both.

    ``sigma`` is the standard deviation of the components in units of the scaled target: fixed, one
    learned for all, or a component's own in each window, :math:`\log \sigma_n^2 = W_r^n \cdot
    \tilde h^n + b_r^n` (mixture only). ``isolation`` is the coefficient, next to the mean loss, of
    the squared weights that lead from other variables to a variable's gates: 0 leaves full gates
    free, much of it turns them into a variable's own. ``clock_penalty`` is that of the squared
    weights on columns that tell the time: by the clock, a network can learn weeks of the past by
    heart. The recurrence of variables ``known`` ahead runs on through the rows that are forecast;
    their state at the row of step h is read besides the summary, :math:`\mu_n = W_o^n \cdot
    \tilde h^n + U_h^n \cdot h^n_{T - H + h} + b_o^n`, and so for s and :math:`\log \sigma^2`.

    Shapes
    ------
    x : (K, T, B, C)
    Ws (N, d), bs (N), Wv (H, 2 d), bv (H), and Wo (H, N, 2 d), bo (H, N) or wf (H, 2 d), bf (H);
    log_sigma2 (H) if learned; Wr (H, N, 2 d), br (H, N) if predicted; Us (2 or 3, H, m, d) for m
    variables known ahead
    """

    groups: tuple[int, ...]  # variable of each input column; the target's is the last
    n_variables: int  # N
    hidden_size: int  # d
    layers: int = 1
    horizon: int = 1  # H
    cell: Cell = "lstm"
    gates: Gates = "full"
    attention: Attention = "bounded"
    head: Head = "mixture"
    loss_name: Loss = "nll"
    sigma: Sigma = 1.0
    isolation: float | tuple[float, ...] = 0.0  # several for several variants of members
    clocks: tuple[int, ...] = ()  # input columns that tell the time
    clock_penalty: float = 0.0
    known: tuple[int, ...] = ()  # variables whose state at the row that is forecast counts, too

    @cached_property
    def stack(self) -> tuple[Layer, ...]:
        """The recurrent layers; a layer above the first takes each variable's state below."""
        N, d = self.n_variables, self.hidden_size
        above = tuple(n for n in range(N) for _ in range(d))
        return tuple(
            Layer(self.groups if level == 0 else above, N, d, self.cell, self.gates)
            for level in range(self.layers)
        )

    @cached_property
    def head_shapes(self) -> Shapes:
        """Shapes of the parameters above the recurrence."""
        N, d, H = self.n_variables, self.hidden_size, self.horizon
        shapes: Shapes = {"Ws": (N, d), "bs": (N,), "Wv": (H, 2 * d), "bv": (H,)}
        if self.head == "mixture":
            shapes |= {"Wo": (H, N, 2 * d), "bo": (H, N)}
        else:
            shapes |= {"wf": (H, 2 * d), "bf": (H,)}
        if self.sigma == "learned":
            shapes["log_sigma2"] = (H,)
        if self.sigma == "predicted":
            shapes |= {"Wr": (H, N, 2 * d), "br": (H, N)}
        if self.known:
            shapes["Us"] = (2 + (self.sigma == "predicted"), H, len(self.known), d)
        return shapes

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        return stack_shapes(self.stack) | self.head_shapes

    @property
    def own_penalty(self) -> Tensor | None:
        """Coefficients of the squared parameters besides the L2 term, or None for none.

        They are (P,), or (G, P) with an ``isolation`` for each of G variants of members.
        """
        each = self.isolation if isinstance(self.isolation, tuple) else (self.isolation,)
        isolated = any(each) and self.gates == "full"
        clocks = list(self.clocks) if self.clock_penalty else []
        if not isolated and not clocks:
            return None
        pieces = {name: torch.zeros(len(each), *shape) for name, shape in self.shapes.items()}
        if isolated:
            for level, layer in enumerate(self.stack):
                pieces[f"W_{level}"] += torch.tensor(each)[:, None, None] * layer.foreign()
        pieces["Wx_0"][:, clocks] += self.clock_penalty
        if self.gates == "full":
            pieces["W_0"][..., clocks] += self.clock_penalty
        else:
            pieces["Gx_0"][:, clocks] += self.clock_penalty
        found = flatten(pieces, self.shapes)
        return found if isinstance(self.isolation, tuple) else found[0]

    @property
    def readers(self) -> Readers | None:
        """The parameters that take in other variables than the target; None if there are none."""
        columns = [c for c, variable in enumerate(self.groups) if variable != self.groups[-1]]
        if not columns:
            return None
        places = unflatten(torch.arange(count(self.shapes)).unsqueeze(0), self.shapes)
        gates = places["W_0"][0].T if self.gates == "full" else places["Gx_0"][0].flatten(1)
        each = torch.cat([places["Wx_0"][0], gates[: len(self.groups)]], dim=1)  # (C, q)
        return Readers(each[columns], torch.tensor([self.groups[c] for c in columns]))

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        twice = dict.fromkeys(("Wv", "Wo", "wf", "Us"), 2 * self.hidden_size)
        fans = {"Ws": self.hidden_size} | twice
        drawn = draw_stack(self.stack, self.head_shapes, fans, generator)
        if self.known:
            drawn["Us"][1:] = 0.0  # at first, means alone read the steps
        return drawn

    def __call__(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Prediction:
        """Return the prediction for windows x; dropout acts on summaries and between layers."""
        h = run_stack(self.stack, p, x, dropout)
        summary, weights = temporal_attention(h, p["Ws"], p["bs"])  # (K, B, N, 2 d)
        if dropout is not None:
            summary = dropout(summary, 0)
        return self._head(p, summary, weights, self._ahead(p, h, dropout))

    def _ahead(self, p: Parameters, h: Tensor, dropout: Dropout | None) -> Sequence[Tensor]:
        """Return what states at the rows forecast add to means, scores and log variances.

        They are (K, B, H, N), zero for variables that are not known ahead.
        """
        if not self.known:
            return ()
        state = torch.stack([h[:, -self.horizon :, :, n] for n in self.known], dim=3)
        if dropout is not None:
            state = dropout(state, self.layers, 2)
        found = torch.einsum("khbmd,kjhmd->jkbhm", state, p["Us"])
        each = dict(zip(self.known, found.unbind(4), strict=True))
        nothing = torch.zeros_like(found[..., 0])
        return torch.stack([each.get(n, nothing) for n in range(self.n_variables)], dim=4).unbind(0)

    def _head(
        self, p: Parameters, summary: Tensor, weights: Tensor, ahead: Sequence[Tensor]
    ) -> Prediction:
        scores = torch.einsum("kbnf,khf->kbhn", summary, p["Wv"]) + p["bv"][:, None, :, None]
        if self.known:
            scores = scores + ahead[1]
        log_pi = log_prior(scores, bounded=self.attention == "bounded")  # (K, B, H, N)
        log_sigma2 = self._log_sigma2(p, summary, ahead)
        if self.head == "fusion":
            fused = torch.einsum("kbhn,kbnf->kbhf", log_pi.exp(), summary)
            mean = torch.einsum("kbhf,khf->kbh", fused, p["wf"]) + p["bf"].unsqueeze(1)
            return Prediction(mean, log_sigma2, None, log_pi, weights)
        mu = torch.einsum("kbnf,khnf->kbhn", summary, p["Wo"]) + p["bo"].unsqueeze(1)
        if self.known:
            mu = mu + ahead[0]
        mean = (log_pi.exp() * mu).sum(dim=-1)
        return Prediction(mean, log_sigma2, mu, log_pi, weights)

    def _log_sigma2(self, p: Parameters, like: Tensor, ahead: Sequence[Tensor]) -> Tensor:
        """Return (K, H), or (K, B, H, N) if predicted from the summaries ``like``."""
        if self.sigma == "learned":
            return p["log_sigma2"]
        if self.sigma == "predicted":
            log_sigma2 = torch.einsum("kbnf,khnf->kbhn", like, p["Wr"]) + p["br"].unsqueeze(1)
            log_sigma2 = log_sigma2 + ahead[2] if self.known else log_sigma2
            return log_sigma2.clamp(LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2)
        return like.new_full((like.shape[0], self.horizon), 2 * log(float(self.sigma)))

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        """Return each member's mean loss (K,) of the labels y (K, B, H) that are known."""
        nll = mixture_nll if self.head == "mixture" else gaussian_nll
        return total_loss(self.loss_name, nll, prediction, y, known)


def leakage(network: MVLSTMNetwork, flat: Tensor, x: Tensor) -> NDArray[np.float64]:
    r"""Return the leakage matrix (N, N), rows summing to one.

    .. math::
        L_{nk} = \operatorname{mean}_m \lVert \partial \mu_n / \partial x^k_{1:T} \rVert_2

    divided by its row sum, the mean being over members, windows and steps ahead. Of more than six
    steps each window takes six, the next window the next six. The paper holds that row n of the
    state knows variable n alone, which would make this matrix diagonal. It is, with
    ``gates="variable"``; with full gates the other variables come in through the gates. Weights
    ``flat`` are (K, P), windows x (K, T, B, C).
    """
    x = x.detach().clone().requires_grad_(True)
    prediction = network(unflatten(flat, network.shapes), x)
    assert prediction.mu is not None, "leakage needs a mixture of experts"
    N, H = network.n_variables, prediction.mu.shape[2]
    columns = torch.tensor(network.groups, device=x.device)
    window = torch.arange(x.shape[2], device=x.device)
    several = min(H, MOST_STEPS)
    matrix = torch.zeros(N, N, dtype=torch.float64, device=x.device)
    for k in range(several):
        step = (several * window + k) % H  # (B,)
        mu = prediction.mu[:, window, step].sum(dim=(0, 1))  # (N,), windows do not mix
        for n in range(N):
            (gradient,) = torch.autograd.grad(mu[n], x, retain_graph=True)
            squared = gradient.square().sum(dim=1)  # (K, B, C), over time
            grouped = squared.new_zeros(*squared.shape[:2], N)
            grouped.index_add_(2, columns, squared)
            matrix[n] += grouped.sqrt().mean(dim=(0, 1)) / several
    total = matrix.sum(dim=1, keepdim=True)
    return (matrix / torch.where(total > 0, total, 1.0)).cpu().numpy()
