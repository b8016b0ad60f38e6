"""`AbstractNetwork`: what the forecasters made of networks have in common."""

from __future__ import annotations

import time as clock
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from mvlstm.engine import opened
from mvlstm.errors import check_option, check_whole
from mvlstm.methods.network.further_training import epochs_over, train_again, train_further
from mvlstm.methods.network.guard import guarded
from mvlstm.methods.network.link import LINKS
from mvlstm.methods.network.trained import TrainedNetwork, learn_labels, refit_link, restore_labels
from mvlstm.methods.network.training import Outcome, Training, fit_network
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, NetworkForm, Saved
from mvlstm.nn.parameters import count
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import LabelScale
from mvlstm.results import History
from mvlstm.settings import Effort
from mvlstm.table.layout import Layout
from mvlstm.table.parts import HELD_OUT
from mvlstm.train.checkpoint import held
from mvlstm.train.protocol import Network
from mvlstm.types import FloatArray, IntArray

CALIBRATION = 2.5e-6  # seconds for each normal of the held-out windows' mixtures


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedNetwork(Learned):
    """Members of a network. A subclass adds what else follows from their weights."""

    saved: ClassVar[tuple[str, ...]] = ()  # names of such arrays that a model file keeps
    trained: TrainedNetwork[Any]

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Return the members' means; their spread is that of their errors."""
        return Predictive(self.trained.forecasts(windows, exact=exact))

    def work(self, rows: int) -> float:
        """Return the multiplications of a forecast: about one for each weight and row."""
        return float(self.trained.flat.size) * rows

    def gradient(self, windows: FloatArray) -> FloatArray:
        """Return the gradient of each member's forecast."""
        return self.trained.gradient(windows)

    def form(self) -> NetworkForm:
        """Return the members and their scale."""
        return NetworkForm(self.trained.network, self.trained.flat, self.trained.scale)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return weights, kinds and link, and what follows from them."""
        arrays, extra = self.trained.arrays()
        return {**arrays, **{name: getattr(self, name) for name in self.saved}}, extra

    def take(self, rows: slice) -> Self:
        """Return some of the members."""
        return replace(self, trained=self.trained.take(rows))

    def judged(self, problem: Problem) -> Self:
        """Find the spread of what newly trained members say, where there is one."""
        return self

    def summarised(self, problem: Problem) -> Self:
        """Work out what else follows from the weights and the training rows, if anything does."""
        return self

    def changed_from(self, other: LearnedNetwork) -> int:
        """Return how many members have other weights than those of ``other``."""
        return int((self.trained.flat != other.trained.flat).any(axis=1).sum())


def column_owners(windows: Windows) -> FloatArray:
    """Return the matrix (C, N) that adds up each variable's columns."""
    assert windows.prepared is not None
    frame = windows.prepared.frame
    return np.eye(frame.n_variables)[list(frame.groups)]


class AbstractNetwork(AbstractForecaster):
    """Members of one network, trained side by side, added to a link.

    A subclass supplies `network` and `wrap`. The settings below are those that every network has,
    or the values they have where a constructor does not take them.
    """

    ensemble: ClassVar[bool] = True
    links: ClassVar[tuple[str, ...]] = LINKS
    short_batches: ClassVar[bool] = False  # whether few windows are learned in smaller batches
    precision: DTypeLike = np.float32

    hidden_size: Any
    layers: int = 1
    link: Any
    dropout: float
    l2: float
    learning_rate: Any
    batch_size: Any
    max_epochs: Any
    patience: Any
    schedule: Any = "constant"
    effort: Effort = "default"
    members: int
    seed: int
    device: str
    averaging: float = 0.0
    finish: float = 0.0
    leave_out: float = 0.0
    l2_sum: bool = False

    @property
    def training(self) -> Training:
        """The arguments of training, with those that are left to `effort`."""
        return Training.of(self)

    @abstractmethod
    def network(self, layout: Layout, label_scale: float) -> Network:
        """Describe the network for the columns of a table."""

    @abstractmethod
    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedNetwork:
        """Return what the method learned, given trained members; the rest of it from a file."""

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        for name in ("hidden_size", "layers"):
            value = getattr(self, name)
            if value is not None or getattr(type(self), name) is not None:  # else it is left open
                check_whole(name, value, 1)
        check_option("link", self.link, self.links)
        self.training.check()

    def most_numbers(self, layout: Layout) -> float:
        """Most numbers that a file of such a model can hold, its members' weights among them."""
        weights = int(self.members) * count(self.network(layout, 1.0).shapes)
        return super().most_numbers(layout) + weights

    def learn(self, problem: Problem) -> LearnedNetwork:
        """Fit the link, train the members on what it leaves, and find what follows."""
        started = clock.monotonic()
        labels = learn_labels(self.link, problem)
        seconds = clock.monotonic() - started  # it is fitted again at the end, which takes no more
        problem = replace(problem, run=problem.run.after(2 * seconds + self._closing(problem)))
        network = self.network(problem.layout, labels.scale)
        with held(problem.run.checkpoint), opened(problem.run.engine, str(self.device)):
            outcome = self.fit_members(network, problem, labels)
        trained, notes = guarded(outcome.trained, problem)
        found = self.wrap(trained).judged(problem).summarised(problem)
        history, notes = outcome.history, (*found.notes, *notes)
        return replace(found, history=history, stopped=outcome.stopped, notes=notes)

    def _closing(self, problem: Problem) -> float:
        """Estimate the seconds that calibration takes in addition to its forecasts."""
        windows = sum(len(problem.origins[part]) for part in HELD_OUT)
        normals = int(self.members) * problem.n_variables
        return CALIBRATION * windows * problem.horizon * normals

    def fit_members(self, network: Network, problem: Problem, labels: LabelScale) -> Outcome:
        """Train the members."""
        return fit_network(network, problem, labels, self.training)

    def restore(self, saved: Saved) -> LearnedNetwork:
        """Rebuild what `learn` returned."""
        T, H = int(self.window), int(self.horizon)
        labels = restore_labels(self.link, T, H, saved)
        network = self.network(saved.layout, labels.scale)
        trained = TrainedNetwork.restore(network, labels, int(self.members), T, saved)
        return self.wrap(trained, saved)

    def train_further(
        self, learned: LearnedNetwork, problem: Problem, *, max_epochs: int, learning_rate: float
    ) -> tuple[LearnedNetwork, int]:
        """Go on from the weights; return the result and how many members changed."""
        rates: dict[str, Any] = {"max_epochs": max_epochs, "learning_rate": learning_rate}
        trained, changed = train_further(learned.trained, problem, self.training, **rates)
        trained = guarded(trained, problem, "stop")[0] if changed else trained
        return replace(learned, trained=trained), changed

    def train_again(
        self, learned: LearnedNetwork, problem: Problem, epochs: IntArray, finishing: IntArray
    ) -> LearnedNetwork:
        """Train from the seeds for given numbers of epochs (K,), at the full and the lower rate."""
        trained = train_again(learned.trained, problem, self.training, epochs, finishing)
        return replace(learned, trained=trained)

    def refit_link(self, learned: LearnedNetwork, problem: Problem) -> LearnedNetwork:
        """Fit a linear link to all windows of a problem; the members stay as they are."""
        labels = refit_link(learned.trained.labels, problem, again=True)
        return replace(learned, trained=replace(learned.trained, labels=labels))

    def epochs_over(self, history: History, had: int, windows: int) -> tuple[IntArray, IntArray]:
        """Return each member's epochs over ``windows`` that make the steps its fit took."""
        return epochs_over(self.training, history, had, windows)

    @property
    def device_(self) -> str:
        """Where the members were trained."""
        learned = self._require_fitted("device_").learned
        assert isinstance(learned, LearnedNetwork)
        return learned.trained.device
