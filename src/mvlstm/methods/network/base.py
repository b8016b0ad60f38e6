"""`AbstractNetwork`: what the forecasters made of networks have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mvlstm.methods.network.link import LinkChoice
from mvlstm.methods.network.trained import Labels, TrainedNetwork, restore_labels
from mvlstm.methods.network.training import check_training
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.results import History
from mvlstm.train.protocol import Network
from mvlstm.types import FloatArray, IntArray


class AbstractNetwork(AbstractForecaster):
    """Members of one network, trained side by side, added to a link.

    A subclass supplies `_network`, and `_summarise` where something else follows from the weights.
    The settings below are those that every network has, or the values they have where a
    constructor does not take them.
    """

    ensemble: ClassVar[bool] = True
    table_dtype: ClassVar[type] = np.float32

    hidden_size: int
    link: LinkChoice
    dropout: float
    l2: float
    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    members: int
    seed: int
    device: str
    averaging: float = 0.0
    finish: float = 0.0
    leave_out: float = 0.0
    l2_sum: bool = False

    trained_: TrainedNetwork[Any]
    device_: str

    @abstractmethod
    def _network(self, groups: tuple[int, ...], n_variables: int, label_scale: float) -> Network:
        """Describe the network for input columns of the variables ``groups``."""

    def _find_spread(self, problem: Problem) -> None:
        """Find the spread of what newly trained members say, for networks that have one."""
        return None

    def _summarise(self, problem: Problem) -> None:
        """Work out what else follows from the weights and the training rows, if anything does."""
        return None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_training(self)

    def _learn(self, problem: Problem) -> None:
        labels = Labels.learn(self.link, problem)
        network = self._network(problem.groups, problem.n_variables, labels.scale)
        self._train(network, problem, labels)

    def _train(self, network: Network, problem: Problem, labels: Labels) -> None:
        """Train the members, and work out what follows from their weights."""
        self.trained_, self.history_ = self._fit_members(network, problem, labels)
        self.device_ = self.trained_.device
        self._find_spread(problem)
        self._summarise(problem)

    def _fit_members(
        self, network: Network, problem: Problem, labels: Labels
    ) -> tuple[TrainedNetwork[Any], History]:
        return TrainedNetwork.fit(network, problem, labels, self)

    def _take(self, rows: slice) -> None:
        """Keep some of the members only."""
        self.trained_ = self.trained_.take(rows)
        self.members = len(self.trained_.flat)
        self.settings_ = self.get_params()

    def _predict_rows(self, prepared: Prepared, origins: IntArray) -> Predictive:
        return Predictive(self.trained_.rows(*prepared.windows_at(origins, self.window)))

    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        return self.trained_.windows(windows)

    def _gradient(self, windows: FloatArray) -> FloatArray | None:
        return self.trained_.gradient(windows)

    def _predict_exactly(self, windows: FloatArray) -> FloatArray:
        return self.trained_.exact(windows)

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return self.trained_.arrays(), self.trained_.extra()

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        labels = restore_labels(self, arrays, extra)
        layout = self.layout_
        network = self._network(layout.groups, len(layout.names), labels.scale)
        self.trained_ = TrainedNetwork.restore(network, labels, self.members, arrays, extra)
        self.device_ = self.trained_.device
