"""What a network must offer to be trained here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from mvlstm.nn.mixture import Prediction
from mvlstm.nn.parameters import Parameters, Shapes


class Network(Protocol):
    """A pure function of (parameters, windows), with every member's parameters stacked.

    A network may also have ``own_penalty``, coefficients (P,) of its squared parameters next to
    the mean loss, or (G, P) for G variants of members; the L2 term of each member is added to them.
    And it may have ``readers``, the parameters that take in variables, for members that shrink
    these.
    """

    @property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        ...

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters."""
        ...

    def __call__(
        self, p: Parameters, x: Tensor, dropout: Callable[..., Tensor] | None = None
    ) -> Prediction:
        """Return the prediction for windows x (K, T, B, C).

        ``dropout(tensor, site, window_axis=1)`` drops values at one place of the network while
        training; the windows of ``tensor`` lie along ``window_axis``.
        """
        ...

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        """Return each member's mean loss (K,) against labels y (K, B, H).

        Labels that are not ``known`` (K, B, H) are any numbers, whose loss counts as zero; without
        the argument all are known.
        """
        ...
