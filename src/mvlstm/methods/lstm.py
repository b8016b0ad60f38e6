"""`LSTM`: a plain LSTM on all variables, the first rival of `MVLSTM`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from mvlstm.errors import check_option
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.learned import NetworkForm, Saved
from mvlstm.nn.lstm import Loss, LSTMNetwork
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Mixture, Predictive
from mvlstm.settings import LSTMSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray


@documented
class LSTM(AbstractNetwork, LSTMSettings):
    """Plain LSTM on all variables, with the members, losses and links of `MVLSTM`.

    What `MVLSTM` adds to it is the state kept apart by variable, attention and the mixture.
    It has no importance of its own; scrambling a variable (`explain`) works as for every model.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.LSTM(window=5, hidden_size=8, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("loss", self.loss, get_args(Loss))

    def network(self, layout: Layout, label_scale: float) -> LSTMNetwork:
        """Describe the network for the columns of a table."""
        sizes = int(self.hidden_size), int(self.layers), int(self.horizon)
        return LSTMNetwork(len(layout.groups), *sizes, self.loss)

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedNormal:
        """Return what was learned."""
        return LearnedNormal(trained=trained)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedNormal(LearnedNetwork):
    """Members that forecast one normal each, of a variance learned with the weights."""

    trained: TrainedNetwork[LSTMNetwork]

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Return the members' normals; trained on squared error alone they have no variance."""
        members = self.trained.forecasts(windows, exact=exact)
        if self.trained.network.loss_name == "mse" or not spread:
            return Predictive(members)
        sigma2 = self._sigma2() * self.trained.scale.scale[:, 0] ** 2
        return Predictive(members, Mixture.of_members(members, sigma2))

    def _sigma2(self) -> FloatArray:
        return np.exp(self.trained.parameter("log_sigma2"))

    def form(self) -> NetworkForm:
        """Return the members with the variance learned, if any was."""
        plain = super().form()
        mse = self.trained.network.loss_name == "mse"
        return plain if mse else replace(plain, sigma2=self._sigma2())
