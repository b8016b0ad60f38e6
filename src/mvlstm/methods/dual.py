"""`DUAL`: the dual-stage attention network DA-RNN as a forecaster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mvlstm.errors import DataError
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork, column_owners
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.learned import AttentionArrays, Saved
from mvlstm.nn.dual import DUALNetwork
from mvlstm.problem.inputs import Windows
from mvlstm.problem.problem import Problem
from mvlstm.settings import DUALSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray


@documented
class DUAL(AbstractNetwork, DUALSettings):
    """DA-RNN of Qin et al. (2017): attention over driving series, then over time.

    Its importance is the mean weight of each driving series in the encoder. The target is no
    driving series, so it has none.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.DUAL(window=5, hidden_size=8, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True
    short_batches: ClassVar[bool] = True

    def network(self, layout: Layout, label_scale: float) -> DUALNetwork:
        """Describe the network for the columns of a table."""
        if len(layout.names) < 2:
            raise DataError(
                f"DUAL attends to variables besides the target, and the table has "
                f"'{layout.target}' alone. Add variables, or use LSTM or AR."
            )
        sizes = int(self.window), int(self.hidden_size), int(self.horizon)
        return DUALNetwork(len(layout.groups), *sizes)

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedDual:
        """Return what was learned; the importance is found later, or in the file."""
        importance = np.empty(0)
        if saved is not None:
            driving = len(saved.layout.names) - 1
            importance = saved.take("importance", (driving,), np.float64)
        return LearnedDual(trained=trained, importance=importance)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedDual(LearnedNetwork):
    """Members, and the mean attention to each driving series over training windows, (N - 1,)."""

    trained: TrainedNetwork[DUALNetwork]
    importance: FloatArray
    saved: ClassVar[tuple[str, ...]] = ("importance",)

    def summarised(self, problem: Problem) -> LearnedDual:
        """Find the mean attention over the training windows."""
        weights = self._series_attention(problem.at("train"))
        return replace(self, importance=weights.mean(axis=(0, 1))[:-1])

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray:
        """Return the mean attention; NaN for the target, which has none."""
        return np.append(self.importance, np.nan)

    def attention(self, windows: Windows, *, quick: bool = False) -> AttentionArrays:
        """Return the weights of the driving series as the prior, with zero for the target."""
        weights = self._series_attention(windows)[:, :, None]  # (K, M, 1, N)
        K, M, _, N = weights.shape
        return AttentionArrays(np.broadcast_to(weights, (K, M, self.trained.network.horizon, N)))

    def _series_attention(self, windows: Windows) -> FloatArray:
        """Return the mean over time of the encoder's weights by variable, (K, M, N)."""
        pieces = self.trained.each(self.trained.network.attention, windows)
        return np.concatenate(list(pieces), axis=1) @ column_owners(windows)[:-1]
