"""`DUAL`: the dual-stage attention network DA-RNN as a forecaster."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import DataError, check_option
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.methods.network.link import LINKS, LinkName
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.forecaster import Difference
from mvlstm.model.saving import take_array
from mvlstm.nn.dual import DUALNetwork
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import AttentionArrays, Problem
from mvlstm.problem.transform_choice import TransformChoice
from mvlstm.table.calendar import Calendar
from mvlstm.types import FloatArray, IntArray


class DUAL(AbstractNetwork):
    """DA-RNN of Qin et al. (2017): attention over driving series, then over time.

    Its importance is the mean weight of each driving series in the encoder. The target is no
    driving series, so it has none.

    Parameters
    ----------
    window : int
        Rows a forecast looks back on.
    horizon : int
        Steps ahead. The paper: 1.
    hidden_size : int
        Units of the encoder and of the decoder. The paper: 16 to 512.
    link : {"none", "last", "linear"}
        What the network's forecast is added to: nothing (paper), the last value, or a
        robust linear map of the latest rows.
    dropout, l2, learning_rate : float
        Share of the last state and context dropped in training (paper: 0.5); coefficient of the
        squared weights beside the mean loss; Adam's step size.
    batch_size, max_epochs, patience : int
        Most windows a step (paper: 64), fewer on a short table; most epochs; epochs without
        progress before a member stops.
    members : int
        Networks trained side by side, from different seeds.
    seed : int
        Fixes everything random.
    missing, gaps, calendar, difference, transform : str
        As in `MVLSTM`.
    device : str
        "auto", "cpu" or "cuda".
    verbose : int
        0 is silent.

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
    trained_: TrainedNetwork[DUALNetwork]

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        hidden_size: int = 32,
        link: LinkName = "none",
        dropout: float = 0.2,
        l2: float = 1e-5,
        learning_rate: float = 3e-3,
        batch_size: int = 256,
        max_epochs: int = 40,
        patience: int = 6,
        members: int = 5,
        seed: int = 0,
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        calendar: Calendar = "none",
        difference: Difference = "none",
        transform: TransformChoice = "none",
        device: str = "auto",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.hidden_size = hidden_size
        self.link = link
        self.dropout = dropout
        self.l2 = l2
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.members = members
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.calendar = calendar
        self.difference = difference
        self.transform = transform
        self.device = device
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("link", self.link, LINKS)

    def _network(
        self, groups: tuple[int, ...], n_variables: int, label_scale: float
    ) -> DUALNetwork:
        sizes = int(self.window), int(self.hidden_size), int(self.horizon)
        return DUALNetwork(len(groups), *sizes)

    def _learn(self, problem: Problem) -> None:
        if problem.n_variables < 2:
            target = problem.prepared.frame.target
            raise DataError(
                f"DUAL attends to variables beside the target, and the table has '{target}' alone. "
                "Add variables, or use LSTM or AR."
            )
        super()._learn(problem)

    def _summarise(self, problem: Problem) -> None:
        weights = self._series_attention(problem.prepared, problem.origins["train"])
        self.importance_ = weights.mean(axis=(0, 1))[:-1]  # (N - 1,)

    def _model_importance(self) -> FloatArray:
        """Return the mean attention over training windows; NaN for the target, which has none."""
        return np.append(self.importance_, np.nan)

    def _attention(self, prepared: Prepared, origins: IntArray) -> AttentionArrays | None:
        """Return the weights of the driving series as the prior, with zero for the target."""
        weights = self._series_attention(prepared, origins)[:, :, None]  # (K, M, 1, N)
        K, M, _, N = weights.shape
        prior = np.broadcast_to(weights, (K, M, self.horizon, N))
        return AttentionArrays(prior=prior, posterior=None, temporal=None, leakage=None)

    def _series_attention(self, prepared: Prepared, origins: IntArray) -> FloatArray:
        """Return the mean over time of the encoder's weights by variable, (K, M, N)."""
        network = self.trained_.network
        pieces = self.trained_.each(network.attention, *prepared.windows_at(origins, self.window))
        weights = np.concatenate([piece.cpu().numpy() for piece in pieces], axis=1)
        owner = np.eye(prepared.frame.n_variables)[list(prepared.frame.groups[:-1])]  # (n, N)
        return weights.astype(np.float64) @ owner

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, extra = super()._weights()
        return {**arrays, "importance": self.importance_}, extra

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        super()._set_weights(arrays, extra)
        n_driving = len(self.layout_.names) - 1
        self.importance_ = take_array(arrays, "importance", (n_driving,), np.float64)
