"""`LSTM`: a plain LSTM on all variables, the first rival of `MVLSTM`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from mvlstm.errors import check_option
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.link import LINKS, LinkName
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.forecaster import Difference
from mvlstm.model.learned import Saved
from mvlstm.nn.lstm import Loss, LSTMNetwork
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Mixture, Predictive
from mvlstm.problem.transform_choice import TransformChoice
from mvlstm.table.calendar import Calendar
from mvlstm.table.layout import Layout


class LSTM(AbstractNetwork):
    """Plain LSTM on all variables, with the members, losses and links of `MVLSTM`.

    What `MVLSTM` adds to it is the state kept apart by variable, attention and the mixture.
    It has no importance of its own; scrambling a variable (`explain`) works as for every model.

    Parameters
    ----------
    window : int
        Rows a forecast looks back on.
    horizon : int
        Steps ahead.
    hidden_size : int
        Hidden units of a layer.
    layers : int
        Stacked recurrent layers.
    loss : {"mse", "nll", "nll+mse"}
        Squared error, likelihood of one normal with a learned variance, or both.
    link : {"none", "last", "linear"}
        What the network's forecast is added to: nothing, the last value, or a robust linear map of
        the latest rows.
    dropout, l2, learning_rate : float
        Share of the last state dropped in training; coefficient of the squared weights beside the
        mean loss; Adam's step size.
    batch_size, max_epochs, patience : int
        Windows a step; most epochs; epochs without progress before a member stops.
    averaging : float
        Share of the running mean of the weights kept at each step; the mean is used.
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
    >>> model = mv.LSTM(window=5, hidden_size=8, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        hidden_size: int = 64,
        layers: int = 1,
        loss: Loss = "nll+mse",
        link: LinkName = "linear",
        dropout: float = 0.0,
        l2: float = 1e-4,
        learning_rate: float = 5e-3,
        batch_size: int = 64,
        max_epochs: int = 100,
        patience: int = 15,
        averaging: float = 0.995,
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
        self.layers = layers
        self.loss = loss
        self.link = link
        self.dropout = dropout
        self.l2 = l2
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.averaging = averaging
        self.members = members
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.calendar = calendar
        self.difference = difference
        self.transform = transform
        self.device = device
        self.verbose = verbose

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("loss", self.loss, get_args(Loss))
        check_option("link", self.link, LINKS)

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
        sigma2 = np.exp(self.trained.parameter("log_sigma2")) * self.trained.labels.scale**2
        return Predictive(members, Mixture.of_members(members, sigma2))
