"""`RETAIN`: reverse-time attention, a rival that is linear in its inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork, column_owners
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.learned import Saved
from mvlstm.nn.parameters import Parameters
from mvlstm.nn.retain import RETAINNetwork
from mvlstm.problem.problem import Problem
from mvlstm.settings import RETAINSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray


@documented
class RETAIN(AbstractNetwork, RETAINSettings):
    """RETAIN of Choi et al. (2016) with a regression head, trained on squared error.

    Its forecast is linear in the inputs, with coefficients that two recurrences compute from the
    window. Its own importance of a variable is the mean over training windows of the sizes of the
    coefficients times inputs, as shares of one.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.RETAIN(window=5, hidden_size=8, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True
    short_batches: ClassVar[bool] = True

    def network(self, layout: Layout, label_scale: float) -> RETAINNetwork:
        """Describe the network for the columns of a table."""
        return RETAINNetwork(len(layout.groups), int(self.hidden_size), int(self.horizon))

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedRetain:
        """Return what was learned; the importance is found later, or in the file."""
        importance = np.empty((2, 0))
        if saved is not None:
            importance = saved.take("importance", (2, len(saved.layout.names)), np.float64)
        return LearnedRetain(trained=trained, importance=importance)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedRetain(LearnedNetwork):
    r"""Members, and two kinds of importance over the training windows, (2, N).

    The first is the mean over windows of :math:`\sum_t |\omega_{tk}|`, divided by its sum. The
    second (the paper's tables) is the mean of :math:`\sum_t` of the coefficients, divided by the
    signed total; where that is close to zero, the means themselves.
    """

    trained: TrainedNetwork[RETAINNetwork]
    importance: FloatArray
    saved: ClassVar[tuple[str, ...]] = ("importance",)

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray:
        """Return the shares of the sizes."""
        return np.array(self.importance[0])

    def summarised(self, problem: Problem) -> LearnedRetain:
        """Find both kinds of importance, mean over members, training windows and steps."""
        network, sums = self.trained.network, np.zeros((2, len(problem.groups)))

        def both(p: Parameters, x: Tensor) -> Tensor:
            coefficients = network.coefficients(p, x)  # (K, B, H, T, C)
            omega = coefficients * x.permute(0, 2, 1, 3).unsqueeze(2)
            mean = [omega.abs().sum(dim=3), coefficients.sum(dim=3)]  # (K, B, H, C)
            return torch.stack([part.mean(dim=(0, 2)).sum(dim=0) for part in mean])

        windows = problem.at("train")
        for piece in self.trained.each(both, windows):
            sums += piece
        grouped = sums @ column_owners(windows) / len(windows)  # (2, N)
        total = float(grouped[1].sum())
        degenerate = abs(total) < 1e-3 * np.abs(grouped[1]).sum()
        signed = grouped[1] / (1 if degenerate else total)
        return replace(self, importance=np.stack([grouped[0] / grouped[0].sum(), signed]))
