"""`MVLSTM`: the multi-variable LSTM as a forecaster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch

from mvlstm.errors import ParameterError, check_option, is_number
from mvlstm.explain.attention import calibrated_sigma2, posterior
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.kinds import fit_mixed
from mvlstm.methods.network.link import LINKS, LinkChoice
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.methods.network.training import (
    Details,
    Outcome,
    Training,
    fit_network,
    network_details,
)
from mvlstm.model.forecaster import Difference
from mvlstm.model.learned import Arrays, AttentionArrays, Saved
from mvlstm.nn.cell import Cell, Gates
from mvlstm.nn.leakage import leakage
from mvlstm.nn.mvlstm import Attention, Head, Loss, MVLSTMNetwork
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem, known_places
from mvlstm.problem.target_scale import LabelScale
from mvlstm.problem.transform_choice import TransformChoice
from mvlstm.problem.windows import spread_evenly
from mvlstm.table.calendar import Calendar
from mvlstm.table.layout import Layout
from mvlstm.train.data import gather_windows
from mvlstm.train.protocol import Network
from mvlstm.types import FloatArray

LEAKAGE_WINDOWS = 64
SIGMAS = ("learned", "predicted", "calibrated")
BARE_ISOLATION = 10.0  # how much more isolated members without a link are


class MVLSTM(AbstractNetwork):
    """Multi-variable LSTM: one hidden state a variable, and a mixture over variables.

    Parameters
    ----------
    window : int
        Rows a forecast looks back on, T >= 2.
    horizon : int
        Steps ahead. The paper: 1.
    hidden_size : int
        Hidden units a variable, d. The paper: 10 to 25.
    layers : int
        Stacked recurrent layers. The paper: 1.
    cell : {"lstm", "gru"}
        The paper: "lstm".
    gates : {"full", "variable"}
        Whether a variable's gates see all variables (paper) or its own alone (MV-Indep).
    attention : {"bounded", "free"}
        Scores over variables through tanh (paper) or as they are.
    head : {"mixture", "fusion"}
        Blend the variables' predictions (paper) or their states (MV-Fusion).
    loss : {"nll", "mse", "nll+mse"}
        Likelihood of the mixture (paper), squared error of its mean, or both.
    sigma : float, "learned", "predicted" or "calibrated"
        Spread of the mixture's components in standard deviations of the target: fixed (paper: 1),
        one learned with the weights, predicted for every component and window (where there is a
        mixture; else learned), or found on the validation rows afterwards.
    link : {"none", "last", "linear", "auto"}
        What the network's forecast is added to: nothing (paper), the last value, or a robust
        linear map of the latest rows, as many as validation asks for. With "auto" four of five
        members read variables sparingly and two of these do without that map, if there are five
        and the ensemble is then better on validation rows.
    isolation : float
        Penalty on what other variables tell a variable's gates (paper: 0); a large one
        approaches ``gates="variable"``. It makes the attention over variables more faithful.
        Members that do without the link have ten times as much.
    clock_penalty : float
        Penalty on the weights that read the calendar (paper: no calendar), by which a network can
        learn a few weeks by heart.
    dropout, l2, learning_rate : float
        Share of summaries dropped in training; coefficient of the squared weights beside the mean
        loss; Adam's step size. The paper: 0.5, and grids for the others.
    batch_size, max_epochs, patience : int
        Windows a step (paper: 64); most epochs; epochs without progress before a member stops.
    averaging : float
        Share of the running mean of the weights kept at each step; the mean is used. The paper: 0,
        the weights as they are.
    finish : float
        Share of the learning rate at which a member goes on from its best weights, when it has
        stopped improving or reached the last fifth of ``max_epochs``, until five epochs no longer
        help. The paper: 0, it ends there.
    leave_out : float
        Share of the training rows that each member does without, a stretch of its own, and stops
        on besides the stopping rows (paper: 0). On a drifting series it keeps members from going
        astray; on a short one rows are missed.
    members : int
        Networks trained side by side, from different seeds. The paper repeats 10 times.
    seed : int
        Fixes everything random.
    target_scale : {"standard", "raw"}
        Scale on which ``sigma`` is meant: standard deviations of the target, or its own units.
    l2_sum : bool
        Read ``l2`` as the paper writes it, beside the *sum* of the losses over all windows.
    missing, gaps, difference : str
        Missing values "error", "drop", "fill"; uneven spacing "error", "close", "respect";
        differencing "none" or "auto" (by ADF and KPSS tests).
    calendar : "none", "auto" or sequence of str
        Cycles of the clock to add as one variable known ahead: "hour", "weekday", "yearday"; or
        those that the times span at least twice. The paper: "none".
    transform : {"none", "log1p", "auto"}
        Model the target as it is (paper), or log(1 + y) of one that cannot be negative; "auto"
        takes that if the training rows have no negative value and are clearly skewed or uneven.
    device : str
        "auto", "cpu" or "cuda".
    verbose : int
        0 is silent.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.MVLSTM(window=5, hidden_size=4, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        hidden_size: int = 15,
        layers: int = 1,
        cell: Cell = "lstm",
        gates: Gates = "full",
        attention: Attention = "free",
        head: Head = "mixture",
        loss: Loss = "nll+mse",
        sigma: float | Literal["learned", "predicted", "calibrated"] = "predicted",
        link: LinkChoice = "auto",
        isolation: float = 1e-3,
        clock_penalty: float = 3e-3,
        dropout: float = 0.0,
        l2: float = 1e-4,
        learning_rate: float = 5e-3,
        batch_size: int = 64,
        max_epochs: int = 100,
        patience: int = 15,
        averaging: float = 0.995,
        finish: float = 0.1,
        leave_out: float = 0.0,
        members: int = 5,
        seed: int = 0,
        target_scale: Literal["standard", "raw"] = "standard",
        l2_sum: bool = False,
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
        self.cell = cell
        self.gates = gates
        self.attention = attention
        self.head = head
        self.loss = loss
        self.sigma = sigma
        self.link = link
        self.isolation = isolation
        self.clock_penalty = clock_penalty
        self.dropout = dropout
        self.l2 = l2
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.averaging = averaging
        self.finish = finish
        self.leave_out = leave_out
        self.members = members
        self.seed = seed
        self.target_scale = target_scale
        self.l2_sum = l2_sum
        self.missing = missing
        self.gaps = gaps
        self.calendar = calendar
        self.difference = difference
        self.transform = transform
        self.device = device
        self.verbose = verbose

    # ------------------------------------------------------------------------------------ presets

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's MV-LSTM to the letter; ``changes`` are constructor arguments."""
        settings: dict[str, Any] = {
            "hidden_size": 15,
            "gates": "full",
            "attention": "bounded",
            "head": "mixture",
            "loss": "nll",
            "sigma": 1.0,
            "link": "none",
            "isolation": 0.0,
            "clock_penalty": 0.0,
            "dropout": 0.5,
            "l2": 1e-3,
            "learning_rate": 1e-3,
            "l2_sum": True,
            "max_epochs": 100,
            "patience": 10,
            "averaging": 0.0,
            "finish": 0.0,
            "leave_out": 0.0,
            "members": 10,
        }
        return cls(**(settings | changes))

    @classmethod
    def indep(cls, **changes: Any) -> Self:
        """Return the paper's MV-Indep: an independent recurrence for each variable."""
        return cls.paper(**({"gates": "variable"} | changes))

    @classmethod
    def fusion(cls, **changes: Any) -> Self:
        """Return the paper's MV-Fusion: states blended in place of predictions."""
        return cls.paper(**({"head": "fusion"} | changes))

    # ----------------------------------------------------------------------------------- learning

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        options: dict[str, Any] = {
            "cell": Cell,
            "gates": Gates,
            "attention": Attention,
            "head": Head,
            "loss": Loss,
        }
        for name, choices in options.items():
            check_option(name, getattr(self, name), get_args(choices))
        check_option("link", self.link, (*LINKS, "auto"))
        check_option("target_scale", self.target_scale, ("standard", "raw"))
        if not is_number(self.sigma) or not 0 < self.sigma < np.inf:
            check_option("sigma", self.sigma, ("a positive number", *SIGMAS))
        fixed = self.sigma not in ("learned", "predicted")
        if self.link == "auto" and self.target_scale == "raw" and fixed:
            raise ParameterError(
                f"sigma={self.sigma!r} in the target's own units (target_scale='raw') has no one "
                "meaning with link='auto'. Use link='linear', 'last' or 'none'."
            )
        for name in ("isolation", "clock_penalty"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < np.inf:
                raise ParameterError(f"{name}={value!r} must be a number, 0 or more.")
        if not isinstance(self.l2_sum, bool | np.bool_):
            raise ParameterError(f"l2_sum={self.l2_sum!r} must be True or False.")

    def network(self, layout: Layout, label_scale: float) -> MVLSTMNetwork:
        """Describe the network for the columns of a table."""
        sigma = float(self.sigma) if is_number(self.sigma) else self.sigma
        sigma = 1.0 if sigma == "calibrated" else sigma
        if sigma == "predicted" and not self._has_mixture:
            sigma = "learned"
        if isinstance(sigma, int | float) and self.target_scale == "raw":
            sigma = float(sigma) / label_scale
        return MVLSTMNetwork(
            groups=layout.groups,
            n_variables=len(layout.names),
            hidden_size=int(self.hidden_size),
            layers=int(self.layers),
            horizon=int(self.horizon),
            cell=self.cell,
            gates=self.gates,
            attention=self.attention,
            head=self.head,
            loss_name=self.loss,
            sigma=sigma,
            isolation=(
                (self.isolation, BARE_ISOLATION * self.isolation)
                if self.link == "auto"
                else self.isolation
            ),
            clocks=layout.clock_columns,
            clock_penalty=self.clock_penalty,
        )

    @property
    def _has_mixture(self) -> bool:
        return "nll" in self.loss and self.head == "mixture"

    def fit_members(self, network: Network, problem: Problem, labels: LabelScale) -> Outcome:
        """Train the members; with ``link="auto"`` they are of several kinds."""
        fit = fit_mixed if self.link == "auto" else fit_network
        return fit(network, problem, labels, Training.of(self))

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedMixture:
        """Return what was learned; the components' variance is found later, or in the file."""
        shape = (len(trained.flat), int(self.horizon))
        sigma2 = np.ones(shape) if saved is None else saved.take("sigma2", shape, np.float64)
        return LearnedMixture(
            trained=trained, sigma2=sigma2, mixture=self._has_mixture, calibrated=self._calibrated
        )

    @property
    def _calibrated(self) -> bool:
        """Whether the components' variance is found on the validation rows."""
        return self.sigma == "calibrated" or "nll" not in self.loss


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedMixture(LearnedNetwork):
    """Members whose forecasts are mixtures over variables.

    Parameters
    ----------
    sigma2 : (K, H)
        The components' variance in scaled units, where it is not predicted for each.
    mixture : bool
        Whether the mixture is the predictive distribution, or its mean alone counts.
    calibrated : bool
        Whether ``sigma2`` is found on the validation rows.
    """

    trained: TrainedNetwork[MVLSTMNetwork]
    sigma2: FloatArray
    mixture: bool
    calibrated: bool

    def take(self, rows: slice) -> LearnedMixture:
        """Return some of the members."""
        return replace(self, trained=self.trained.take(rows), sigma2=self.sigma2[rows])

    def judged(self, problem: Problem) -> LearnedMixture:
        """Find the components' variance: fixed, learned or calibrated."""
        return replace(self, sigma2=self._find_sigma2(problem))

    def _find_sigma2(self, problem: Problem) -> FloatArray:
        K, H = len(self.trained.flat), problem.horizon
        network = self.trained.network
        if isinstance(network.sigma, int | float) and not self.calibrated:
            return np.full((K, H), float(network.sigma) ** 2)
        if network.sigma == "predicted":
            return np.ones((K, H))  # not used: every component and window has its own
        if network.sigma == "learned" and "nll" in network.loss_name:
            return np.asarray(np.exp(self.trained.parameter("log_sigma2")))
        if network.head == "fusion":
            return np.ones((K, H))
        windows = problem.at("stop")
        q = network_details(self.trained, windows)
        assert q.mu is not None
        y = self._outputs(windows)  # (K, M, H)
        known = [known_places(labels) for labels in problem.labels("stop").T]
        each = [
            calibrated_sigma2(*(one[:, :, h][:, known[h]] for one in (q.log_prior, q.mu, y)))
            for h in range(H)
        ]
        return np.stack(each, axis=1)

    def _outputs(self, windows: Windows) -> FloatArray:
        """Return the labels of windows as each member sees them, (K, M, H)."""
        prepared, origins = windows.prepared, windows.origins
        assert prepared is not None and origins is not None
        labels = prepared.labels(origins, self.trained.labels.link.horizon)
        return self.trained.scale.outputs(labels, self.trained.guess(windows))

    # --------------------------------------------------------------------------------- forecasting

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Return the members' mixtures on the scale of labels."""
        if not self.mixture or not spread:
            return Predictive(self.trained.forecasts(windows, exact=exact))
        q = network_details(self.trained, windows, exact=exact)
        assert q.mu is not None
        return self.trained.scale.mixture(
            np.exp(q.log_prior), q.mu, self._variance(q), self.trained.guess(windows)
        )

    def _variance(self, q: Details) -> FloatArray:
        """Return the components' variance, scaled; it broadcasts against (K, M, H, N)."""
        return self.sigma2[:, None, :, None] if q.sigma2 is None else q.sigma2

    # ---------------------------------------------------------------------------------- explaining

    def experts(self, windows: Windows) -> FloatArray | None:
        """Return prior weight times expert's forecast (M, H, N)."""
        if self.trained.network.head == "fusion":
            return None
        q = network_details(self.trained, windows)
        assert q.mu is not None
        shares = np.exp(q.log_prior) * q.mu * self.trained.scale.scale[..., None]
        return np.asarray(shares.mean(axis=0))

    def attention(self, windows: Windows) -> AttentionArrays:
        """Return attention over variables, before and after seeing the value, and over time."""
        q = network_details(self.trained, windows)
        prior = np.exp(q.log_prior)
        if q.mu is None:
            return AttentionArrays(prior, temporal=q.temporal)
        after = posterior(q.log_prior, q.mu, self._outputs(windows), self._variance(q))
        return AttentionArrays(prior, after, q.temporal, self._leakage(windows))

    def _leakage(self, windows: Windows) -> FloatArray:
        """Measure the leakage on a few of the windows, spread evenly."""
        assert windows.prepared is not None and windows.origins is not None
        chosen = spread_evenly(windows.origins, LEAKAGE_WINDOWS)
        few = Windows.at(windows.prepared, chosen, windows.length)
        flat = torch.as_tensor(self.trained.flat)
        ends = torch.as_tensor(few.ends).expand(len(flat), -1)
        x = gather_windows(torch.as_tensor(few.table), ends, few.length)
        return leakage(self.trained.network, flat, x)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return weights, link and the components' variance."""
        arrays, extra = self.trained.arrays()
        return {**arrays, "sigma2": self.sigma2}, extra
