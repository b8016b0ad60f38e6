"""`MVLSTM`: the multi-variable LSTM as a forecaster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np
import torch

from mvlstm.errors import ParameterError, check_option, is_number
from mvlstm.explain.attention import calibrated_sigma2, posterior
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.kinds import fit_mixed
from mvlstm.methods.network.link import LINKS
from mvlstm.methods.network.trained import TrainedNetwork, in_double
from mvlstm.methods.network.training import Outcome, fit_network
from mvlstm.model.learned import AttentionArrays, NetworkForm, Saved
from mvlstm.nn.cell import Cell, Gates
from mvlstm.nn.mvlstm import Attention, Head, Loss, MVLSTMNetwork, leakage
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem, known_places
from mvlstm.problem.target_scale import LabelScale
from mvlstm.problem.windows import spread_evenly
from mvlstm.settings import MVLSTMSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.train.data import gather_windows
from mvlstm.train.protocol import Network
from mvlstm.types import FloatArray

LEAKAGE_WINDOWS = 64
STATES = ("shared", "own")
SIGMAS = ("learned", "predicted", "calibrated")
OPTIONS = {"cell": Cell, "gates": Gates, "attention": Attention, "head": Head, "loss": Loss}
MOST_UNITS, FEWEST_UNITS = 15, 2  # of a variable, where their number is left open
UNITS = 300  # of all variables together: the work grows with their square
BARE_ISOLATION = 10.0  # how much more isolated members without a link are


@documented
class MVLSTM(AbstractNetwork, MVLSTMSettings):
    """Multi-variable LSTM: one hidden state per variable, and a mixture over variables.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.MVLSTM(window=5, hidden_size=4, members=2, max_epochs=2, verbose=0)
    >>> model.fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    members_differ: ClassVar[bool] = True
    links: ClassVar[tuple[str, ...]] = (*LINKS, "auto")

    # ------------------------------------------------------------------------------------ presets

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's MV-LSTM; ``changes`` are constructor arguments.

        The equations are those printed. What the paper leaves open is settled so:

        - Weights start by Glorot's rule for each block of a gate and variable, biases at 0, but
          those of forget gates at 1.
        - Adam has its usual constants; gradients, the penalty's included, are clipped at a norm
          of 5.
        - The L2 penalty is of all weights and biases, next to the sum of the losses over all
          training windows (``l2_sum``).
        - Dropout lies between attention and output maps, not within the recurrence.
        - Inputs and target are standardised by the training rows, so that the likelihood's unit
          variance is that of the training target; ``target_scale="raw"`` is the other reading.
        - Training takes at most 100 epochs and stops after ten without a lower error on the
          earlier half of the validation rows; the weights of the best epoch count. A suite
          chooses settings on the same rows, for this as for any other method (with
          ``choose = "all"`` on all validation rows).
        - Size, learning rate and penalty are one setting of the paper's grid; the suites ``grid``
          and ``paper`` search it.
        - Columns are differenced only on demand (``difference="auto"``: where ADF and KPSS tests
          ask for it).
        """
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
            "states": "shared",
            "dropout": 0.5,
            "l2": 1e-3,
            "learning_rate": 1e-3,
            "l2_sum": True,
            "batch_size": 64,
            "max_epochs": 100,
            "patience": 10,
            "schedule": "constant",
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

    @classmethod
    def readable(cls, **changes: Any) -> Self:
        """Return a model whose posterior attention can be read as importance.

        Gates hardly see other variables (`isolation`), so that an expert speaks for its own
        variable alone, and no linear link takes a part of any variable away from attention.
        """
        settings: dict[str, Any] = {
            "isolation": 1e-2,
            "link": "none",
            "loss": "mse",
            "sigma": "calibrated",
        }
        return cls(**(settings | changes))

    # ----------------------------------------------------------------------------------- learning

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        for name, choices in OPTIONS.items():
            check_option(name, getattr(self, name), get_args(choices))
        check_option("states", self.states, STATES)
        if self.states == "own" and self.head == "fusion":
            raise ParameterError(
                "states='own' reads the states of known variables in the experts of a mixture, and "
                "head='fusion' has no experts. Use head='mixture' or states='shared'."
            )
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
            hidden_size=int(self.hidden_size or units_each(len(layout.names))),
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
            known=self._known(layout),
        )

    def _known(self, layout: Layout) -> tuple[int, ...]:
        """Return the variables known ahead, where steps read their states."""
        if self.states == "shared" or int(self.horizon) == 1:
            return ()
        pairs = zip(layout.groups, layout.ahead, strict=True)
        return tuple(sorted({variable for variable, ahead in pairs if ahead}))

    @property
    def _has_mixture(self) -> bool:
        return "nll" in self.loss and self.head == "mixture"

    def fit_members(self, network: Network, problem: Problem, labels: LabelScale) -> Outcome:
        """Train the members; with ``link="auto"`` they are of several kinds."""
        fit = fit_mixed if self.link == "auto" else fit_network
        return fit(network, problem, labels, self.training)

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedMixture:
        """Return what was learned; the components' variance is found later, or in the file."""
        shape = (len(trained.flat), int(self.horizon))
        sigma2 = np.ones(shape) if saved is None else saved.take("sigma2", shape, np.float64)
        calibrated = self.sigma == "calibrated" or "nll" not in self.loss
        return LearnedMixture(
            trained=trained, sigma2=sigma2, mixture=self._has_mixture, calibrated=calibrated
        )


def units_each(variables: int) -> int:
    """Return how many hidden units each variable has, where it is left open.

    Examples
    --------
    >>> [units_each(n) for n in (1, 20, 21, 50, 200)]
    [15, 15, 14, 6, 2]
    """
    return min(MOST_UNITS, max(FEWEST_UNITS, UNITS // variables))


class Details(NamedTuple):
    """The mixture of K members for M windows, scaled, and their attention over time."""

    mu: FloatArray | None  # (K, M, H, N); None for a head without components
    log_prior: FloatArray  # (K, M, H, N)
    sigma2: FloatArray | None  # (K, M, H, N) where the network predicts it
    temporal: FloatArray  # (K, N, T - 1), the windows' mean, or of a piece their sum


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedMixture(LearnedNetwork):
    """Members whose forecasts are mixtures over variables."""

    saved: ClassVar[tuple[str, ...]] = ("sigma2",)

    trained: TrainedNetwork[MVLSTMNetwork]
    sigma2: FloatArray  # (K, H) variance of the components, scaled, unless predicted for each
    mixture: bool  # whether the mixture is the predictive distribution, or its mean alone counts
    calibrated: bool  # whether `sigma2` is found on the validation rows

    def take(self, rows: slice) -> LearnedMixture:
        """Return some of the members."""
        return replace(self, trained=self.trained.take(rows), sigma2=self.sigma2[rows])

    def judged(self, problem: Problem) -> LearnedMixture:
        """Find the components' variance: fixed, learned or calibrated."""
        network, sigma2 = self.trained.network, np.ones_like(self.sigma2)
        if isinstance(network.sigma, int | float) and not self.calibrated:
            sigma2 = np.full_like(sigma2, float(network.sigma) ** 2)
        elif network.sigma == "learned" and "nll" in network.loss_name:
            sigma2 = np.exp(self.trained.parameter("log_sigma2"))
        elif network.sigma != "predicted" and network.head != "fusion":
            sigma2 = self._calibrated_sigma2(problem)
        return replace(self, sigma2=sigma2)

    def _calibrated_sigma2(self, problem: Problem) -> FloatArray:
        windows = problem.at("stop")
        q = self._details(windows)
        assert q.mu is not None
        y = self._outputs(windows)  # (K, M, H)
        known = [known_places(labels) for labels in problem.labels("stop").T]
        each = [
            calibrated_sigma2(*(one[:, :, h][:, known[h]] for one in (q.log_prior, q.mu, y)))
            for h in range(problem.horizon)
        ]
        return np.stack(each, axis=1)

    def _outputs(self, windows: Windows) -> FloatArray:
        """Return the labels of windows as each member sees them, (K, M, H)."""
        prepared, origins = windows.prepared, windows.origins
        assert prepared is not None and origins is not None
        labels = prepared.labels(origins, self.trained.labels.link.horizon)
        return self.trained.scale.outputs(labels, self.trained.guess(windows))

    # --------------------------------------------------------------------------------- forecasting

    def form(self) -> NetworkForm:
        """Return the members with the variance of their components, if these count."""
        plain = super().form()
        return replace(plain, sigma2=self.sigma2, mixture=True) if self.mixture else plain

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Return the members' mixtures on the scale of labels."""
        if not self.mixture or not spread:
            return Predictive(self.trained.forecasts(windows, exact=exact))
        return Predictive.gathered(self._mixtures(windows, exact=exact), len(windows))

    def pieces(self, windows: Windows) -> Iterator[Predictive]:
        """Yield the mixtures of some windows after those of others."""
        return self._mixtures(windows) if self.mixture else super().pieces(windows)

    def _mixtures(self, windows: Windows, *, exact: bool = False) -> Iterator[Predictive]:
        guess, start = self.trained.guess(windows), 0
        for q in self._said(windows, exact=exact):
            assert q.mu is not None
            end = start + q.mu.shape[1]
            weights = np.exp(q.log_prior)
            yield self.trained.scale.mixture(weights, q.mu, self._variance(q), guess[start:end])
            start = end

    def _said(self, windows: Windows, *, exact: bool = False) -> Iterator[Details]:
        """Yield what the networks say piece by piece, if ``exact`` without a GPU's rounding."""
        for q in self.trained.predictions(windows.table, windows.ends, exact=exact):
            assert q.log_prior is not None and q.temporal is not None
            log_prior = in_double(q.log_prior)
            log_prior -= np.logaddexp.reduce(log_prior, axis=-1, keepdims=True)  # of rounding
            yield Details(
                mu=None if q.mu is None else in_double(q.mu),
                log_prior=log_prior,
                sigma2=np.exp(in_double(q.log_sigma2)) if q.log_sigma2.dim() == 4 else None,
                temporal=in_double(q.temporal.sum(dim=1)),
            )

    def _details(self, windows: Windows) -> Details:
        """Return the mixture and the mean attention over time."""
        every = list(self._said(windows))

        def joined(name: str) -> FloatArray | None:
            parts = [getattr(one, name) for one in every]
            return None if parts[0] is None else np.concatenate(parts, axis=1)

        log_prior = joined("log_prior")
        assert log_prior is not None
        temporal = np.sum([one.temporal for one in every], axis=0) / len(windows)
        return Details(joined("mu"), log_prior, joined("sigma2"), temporal)

    def _variance(self, q: Details) -> FloatArray:
        """Return the components' variance, scaled; it broadcasts against (K, M, H, N)."""
        return self.sigma2[:, None, :, None] if q.sigma2 is None else q.sigma2

    # ---------------------------------------------------------------------------------- explaining

    def experts(self, windows: Windows) -> FloatArray | None:
        """Return prior weight times expert's forecast (M, H, N)."""
        if self.trained.network.head == "fusion":
            return None
        q = self._details(windows)
        assert q.mu is not None
        shares = np.exp(q.log_prior) * q.mu * self.trained.scale.scale[..., None]
        return np.asarray(shares.mean(axis=0))

    def attention(self, windows: Windows, *, quick: bool = False) -> AttentionArrays:
        """Return attention over variables, before and after seeing the value, and over time."""
        q = self._details(windows)
        prior = np.exp(q.log_prior)
        if q.mu is None:
            return AttentionArrays(prior, temporal=q.temporal)
        after = posterior(q.log_prior, q.mu, self._outputs(windows), self._variance(q))
        return AttentionArrays(prior, after, q.temporal, self._leakage(windows, quick))

    def _leakage(self, windows: Windows, quick: bool) -> FloatArray:
        """Measure the leakage on a few of the windows, spread evenly."""
        assert windows.prepared is not None and windows.origins is not None
        most = LEAKAGE_WINDOWS // 8 if quick else LEAKAGE_WINDOWS
        chosen = spread_evenly(windows.origins, most)
        few = Windows.at(windows.prepared, chosen, windows.length)
        flat = torch.as_tensor(self.trained.flat)
        ends = torch.as_tensor(few.ends).expand(len(flat), -1)
        x = gather_windows(torch.as_tensor(few.table), ends, few.length)
        return leakage(self.trained.network, flat, x)
