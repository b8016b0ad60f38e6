"""Trainings that might make attention faithful, tried by the suite `importance`.

Full gates let any variable's expert speak for all the others, so nothing ties attention on an
expert to the use of its variable. Beside the package's own settings, ``isolation`` among them, two
remedies are tried that did not make it into the package: a penalty on the prior's entropy, and
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


@dataclass(frozen=True)
class TrialNetwork(MVLSTMNetwork):
    """An `MVLSTMNetwork` with the remedies; each is off at zero."""

    sparsity: float = 0.0  # coefficient of the prior's entropy
    variable_dropout: float = 0.0  # whether dropout takes whole variables

    def __call__(self, p: Any, x: Tensor, dropout: Any = None) -> Prediction:
        inner = dropout
        if dropout is not None and self.variable_dropout:

            def inner(tensor: Tensor, site: int, window_axis: int = 1) -> Tensor:
                # one draw per variable: the fate of its first unit is that of all
                kept: Tensor = dropout(torch.ones_like(tensor[..., :1]), site, window_axis)
                return tensor * kept

        return super().__call__(p, x, inner)

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        total = super().loss(prediction, y, known)
        if self.sparsity and prediction.log_prior is not None:
            log_pi = prediction.log_prior
            total = total - self.sparsity * (log_pi.exp() * log_pi).sum(dim=-1).mean(dim=(1, 2))
        return total


class Candidate(mv.MVLSTM):
    """`MVLSTM` with a `TrialNetwork`."""

    remedies: ClassVar[dict[str, Any]] = {}

    def network(self, *args: Any, **kwargs: Any) -> MVLSTMNetwork:
        plain = super().network(*args, **kwargs)
        if not self.remedies:
            return plain
        inherited = {f.name: getattr(plain, f.name) for f in fields(plain)}
        return TrialNetwork(**inherited, **self.remedies)


FREE = {"attention": "free", "loss": "mse", "sigma": "calibrated", "link": "none"}
PAPER = {
    "attention": "bounded",
    "loss": "nll",
    "sigma": 1.0,
    "link": "none",
    "dropout": 0.5,
    "learning_rate": 1e-3,
}

CANDIDATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name: (arguments of MVLSTM, remedies)
    "default": ({}, {}),
    "paper": (PAPER, {}),
    "default, link none": ({"link": "none"}, {}),
    "free+mse": (FREE, {}),
    "free+mse, link linear": ({**FREE, "link": "linear"}, {}),
    "free+mse, variable gates": ({**FREE, "gates": "variable"}, {}),
    "nll+mse, variable gates": ({"gates": "variable", "link": "none"}, {}),
    "isolation 1e-3": ({**FREE, "isolation": 1e-3}, {}),
    "isolation 1e-2": ({**FREE, "isolation": 1e-2}, {}),
    "isolation 1e-1": ({**FREE, "isolation": 1e-1}, {}),
    "isolation 1e-3, nll+mse": ({"link": "none", "isolation": 1e-3}, {}),
    "isolation 1e-2, nll+mse": ({"link": "none", "isolation": 1e-2}, {}),
    "isolation 1e-3, link linear": ({"isolation": 1e-3}, {}),
    "isolation 1e-2, link linear": ({"isolation": 1e-2}, {}),
    "sparsity 1e-2": (FREE, {"sparsity": 1e-2}),
    "isolation 1e-3, sparsity 1e-2": ({**FREE, "isolation": 1e-3}, {"sparsity": 1e-2}),
    "variable dropout 0.2": ({**FREE, "dropout": 0.2}, {"variable_dropout": 1.0}),
}


def build_candidate(name: str, **settings: Any) -> Candidate:
    """Return a candidate by name, not fitted."""
    arguments, remedies = CANDIDATES[name]
    kind = type("Candidate", (Candidate,), {"remedies": remedies})
    model: Candidate = kind(**{**arguments, **settings})
    return model
