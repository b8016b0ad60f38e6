"""Trainings that might make attention faithful, tried by `importance.py`.

Full gates let any variable's expert speak for all the others, so nothing ties attention on an
expert to the use of its variable. Three remedies are tried beside the package's own settings: a
penalty on the weights by which gates see other variables, a penalty on the prior's entropy, and
dropping whole variables' summaries in training.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

import mvlstm as mv
from mvlstm.nn.mixture import Prediction
from mvlstm.nn.mvlstm import MVLSTMNetwork


class _Penalise(torch.autograd.Function):
    """Leave a forecast as it is; add the gradient of a penalty on the weights on the way back."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, weights: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(weights, scale)
        return mean.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, scale = ctx.saved_tensors
        return grad, 2 * scale * weights, None


@dataclass(frozen=True)
class FaithfulNetwork(MVLSTMNetwork):
    """An `MVLSTMNetwork` with the remedies; each is off at zero."""

    isolation: float = 0.0  # coefficient of the squared weights from other variables to gates
    sparsity: float = 0.0  # coefficient of the prior's entropy
    variable_dropout: float = 0.0  # share of whole summaries dropped in training

    def __call__(self, p: Any, x: Tensor, dropout: Any = None) -> Prediction:
        inner = dropout
        if dropout is not None and self.variable_dropout:

            def inner(tensor: Tensor, site: int, window_axis: int = 1) -> Tensor:
                # one draw a variable: the fate of its first unit is that of all
                fate = dropout(torch.ones_like(tensor[..., :1]), site, window_axis)
                return tensor * fate

        prediction = super().__call__(p, x, inner)
        if self.isolation and self.gates == "full":
            weights = p["W_0"]
            scale = self.isolation * self._foreign(weights)
            mean = _Penalise.apply(prediction.mean, weights, scale)
            prediction = prediction._replace(mean=mean)
        return prediction

    def _foreign(self, like: Tensor) -> Tensor:
        """Return 1 where a gate's weight (G D, C + D) comes from another variable, else 0."""
        layer = self.stack[0]
        units = [n for n in range(layer.n_variables) for _ in range(layer.hidden_size)]
        owner = torch.tensor([*layer.groups, *units])
        rows = torch.tensor(units * layer.n_gates)
        return (owner != rows[:, None]).to(like.dtype).to(like.device)

    def loss(self, prediction: Prediction, y: Tensor) -> Tensor:
        total = super().loss(prediction, y)
        if self.sparsity and prediction.log_prior is not None:
            log_pi = prediction.log_prior
            total = total - self.sparsity * (log_pi.exp() * log_pi).sum(dim=-1).mean(dim=(1, 2))
        return total


class Candidate(mv.MVLSTM):  # type: ignore[misc]
    """`MVLSTM` with a `FaithfulNetwork`."""

    remedies: ClassVar[dict[str, float]] = {}

    def _network(self, *args: Any, **kwargs: Any) -> MVLSTMNetwork:
        plain = super()._network(*args, **kwargs)
        inherited = {f.name: getattr(plain, f.name) for f in fields(plain)}
        return FaithfulNetwork(**inherited, **self.remedies)


FREE = {"attention": "free", "loss": "mse", "sigma": "calibrated", "link": "none"}
PAPER = {
    "attention": "bounded",
    "loss": "nll",
    "sigma": 1.0,
    "link": "none",
    "dropout": 0.5,
    "learning_rate": 1e-3,
}
BASE = {**FREE, "gates": "full"}

CANDIDATES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    # name: (arguments of MVLSTM, remedies)
    "default": ({}, {}),
    "paper": (PAPER, {}),
    "default, link none": ({"link": "none"}, {}),
    "default, link last": ({"link": "last"}, {}),
    "default, link none, sigma learned": ({"link": "none", "sigma": "learned"}, {}),
    "free+mse": (FREE, {}),
    "free+mse, link linear": ({**FREE, "link": "linear"}, {}),
    "free+mse, dropout 0.3": ({**FREE, "dropout": 0.3}, {}),
    "free+mse, variable gates": ({**FREE, "gates": "variable"}, {}),
    "bounded+mse": ({**FREE, "attention": "bounded"}, {}),
    "nll+mse, variable gates": ({"gates": "variable", "link": "none"}, {}),
    "isolation 1e-3": (FREE, {"isolation": 1e-3}),
    "isolation 1e-2": (FREE, {"isolation": 1e-2}),
    "isolation 1e-1": (FREE, {"isolation": 1e-1}),
    "isolation 1e-3, nll+mse": ({"link": "none"}, {"isolation": 1e-3}),
    "isolation 1e-2, nll+mse": ({"link": "none"}, {"isolation": 1e-2}),
    "isolation 1e-2, link linear": ({}, {"isolation": 1e-2}),
    "sparsity 1e-2": (FREE, {"sparsity": 1e-2}),
    "sparsity 1e-1": (FREE, {"sparsity": 1e-1}),
    "isolation 1e-2, sparsity 1e-2": (FREE, {"isolation": 1e-2, "sparsity": 1e-2}),
    "isolation 1e-3, sparsity 1e-2": (FREE, {"isolation": 1e-3, "sparsity": 1e-2}),
    "variable dropout 0.2": ({**FREE, "dropout": 0.2}, {"variable_dropout": 1.0}),
    "variable dropout 0.5": ({**FREE, "dropout": 0.5}, {"variable_dropout": 1.0}),
    "variable dropout 0.2, isolation 1e-3": (
        {**FREE, "dropout": 0.2},
        {"variable_dropout": 1.0, "isolation": 1e-3},
    ),
}


def build(name: str, **settings: Any) -> Candidate:
    """Return a candidate by name, not fitted."""
    arguments, remedies = CANDIDATES[name]
    kind = type("Candidate", (Candidate,), {"remedies": remedies})
    model: Candidate = kind(**{**arguments, **settings})
    return model
