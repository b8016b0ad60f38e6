"""Training the members of a network, and what it came to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.engine import opened
from mvlstm.errors import ParameterError, check_option, check_whole, is_number, is_whole, warn
from mvlstm.methods.network.trained import NetworkT, TrainedNetwork, labels_by_row, refit_link
from mvlstm.model.forecaster import FREE_SETTINGS
from mvlstm.model.learned import Stopped
from mvlstm.problem.problem import Problem, Run
from mvlstm.problem.target_scale import LabelScale
from mvlstm.results import History
from mvlstm.settings import EFFORTS, Schedule
from mvlstm.train.apart import Shared, train_apart
from mvlstm.train.checkpoint import Checkpoint, Identity, seconds_between
from mvlstm.train.config import Kind, Member, TrainConfig, make_members
from mvlstm.train.control import Control
from mvlstm.train.data import WindowData
from mvlstm.train.loop import OnEpoch, train
from mvlstm.train.memory import check_memory
from mvlstm.train.progress import show_progress
from mvlstm.train.protocol import Network
from mvlstm.train.runtime import resolve_device
from mvlstm.train.state import TrainState
from mvlstm.types import IntArray

LIMITS: dict[str, tuple[Callable[[float], bool], str]] = {
    "dropout": (lambda x: 0 <= x < 1, "be at least 0 and below 1"),
    "averaging": (lambda x: 0 <= x < 1, "be at least 0 and below 1"),
    "finish": (lambda x: 0 <= x <= 1, "be at least 0 and at most 1"),
    "leave_out": (lambda x: 0 <= x <= 0.5, "be at least 0 and at most 0.5"),
    "learning_rate": (lambda x: x > 0, "be positive"),
    "l2": (lambda x: x >= 0, "not be negative"),
}
LEAST_STEPS = 1_500  # of an annealed run: half as many cost 3,000 rows 4 % of the error
MOST_EPOCHS = 100  # to which a short table's run is stretched for that
NEAR_ROWS = 3  # a window's rows over those read first: 0.6 of the time, at the same error
FEWEST_NEAR = 10  # of those rows: with 3 of 10, the demo's error is 15 % higher
SHRINKAGE = 0.02  # share of a step by which some members' weights on variables are shrunk


@dataclass(frozen=True)
class Training:
    """What a forecaster's arguments say about training; they are those of `mvlstm.MVLSTM`."""

    forecaster: str  # name of its class
    settings: Mapping[str, Any]  # all that influence the result, to tell one fit from another
    learning_rate: float
    l2: float
    dropout: float
    l2_sum: bool
    batch_size: int
    max_epochs: int
    patience: int
    schedule: Schedule
    averaging: float
    finish: float
    leave_out: float
    members: int
    seed: int
    device: str
    verbose: int
    short_batches: bool  # whether few windows are learned in smaller batches
    stretched: bool  # whether a short table is passed over more often

    @classmethod
    def of(cls, model: Any) -> Training:
        """Read the arguments of a forecaster, and what its effort says of those left open."""
        own = ("forecaster", "settings", "stretched", "short_batches")
        named = {name: getattr(model, name) for name in cls.__dataclass_fields__ if name not in own}
        check_option("effort", model.effort, EFFORTS)
        for name, value in vars(EFFORTS[model.effort]).items():
            named[name] = value if named[name] is None else named[name]
        annealed = named["schedule"] == "annealed"
        named["stretched"] = annealed and model.max_epochs is None
        named["short_batches"] = model.short_batches or (annealed and model.batch_size is None)
        settings = model.get_params(deep=False)
        kept = {k: v for k, v in settings.items() if k not in FREE_SETTINGS}
        return cls(forecaster=type(model).__name__, settings=kept, **named)

    def check(self) -> None:
        """Raise `ParameterError` for a setting with a value it cannot have."""
        for name in ("batch_size", "max_epochs", "patience", "members"):
            check_whole(name, getattr(self, name), 1)
        for name, (fine, words) in LIMITS.items():
            value = getattr(self, name)
            if not is_number(value) or not math.isfinite(value):
                raise ParameterError(f"{name}={value!r} must be a number.")
            if not fine(value):
                raise ParameterError(f"{name}={value!r} must {words}.")
        check_option("schedule", self.schedule, get_args(Schedule))
        if not is_whole(self.seed):
            raise ParameterError(f"seed={self.seed!r} must be a whole number.")

    def members_of(self, problem: Problem) -> list[Member]:
        """Return the members to train: the problem's, or those of the forecaster's arguments."""
        return list(problem.members) or make_members(
            int(self.seed),
            int(self.members),
            learning_rate=self.learning_rate,
            l2=self.l2,
            dropout=self.dropout,
        )

    def scaled_members(self, problem: Problem) -> list[Member]:
        """Return these members with their L2 as it stands next to the *mean* loss.

        With ``l2_sum`` it is meant next to the sum over all training windows.
        """
        windows = len(problem.origins["train"]) if self.l2_sum else 1
        return [replace(one, l2=one.l2 / windows) for one in self.members_of(problem)]

    @property
    def later_rate(self) -> float:
        """Learning rate of further training from the weights found."""
        return self.learning_rate / (15 if self.schedule == "annealed" else 5)

    def batch(self, windows: int) -> int:
        """Return the batch of a fit to this many windows."""
        size = int(self.batch_size)
        return short_batch(size, windows) if self.short_batches else size

    def config(self, problem: Problem) -> TrainConfig:
        """Return the settings that members share, for training on a problem."""
        windows = len(problem.origins["train"])
        epochs, batch, near = int(self.max_epochs), self.batch(windows), 0
        if self.stretched:
            steps = max(1, windows // batch)
            epochs = max(epochs, min(math.ceil(LEAST_STEPS / steps), MOST_EPOCHS))
        if self.schedule == "annealed":
            known = problem.prepared.preparation.ahead  # rows with what is known of the steps ahead
            near = min(problem.window, max(FEWEST_NEAR, problem.window // NEAR_ROWS, known))
        return TrainConfig(
            batch,
            epochs,
            int(self.patience),
            averaging=self.averaging,
            finish=self.finish,
            annealing=epochs if self.schedule == "annealed" else 0,
            near_rows=near,
            leave_out=self.leave_out,
            drop_failed=problem.search,
        )


def short_batch(batch_size: int, windows: int) -> int:
    """Return a smaller batch where an epoch over this many windows would be too few steps."""
    return min(batch_size, max(32, windows // 16))


def kinds_of(members: list[Member], *, alone: bool) -> NDArray[np.uint8]:
    """Return the kinds (K,) of members of ensembles that have several.

    A share of an ensemble without a plain member has nothing to judge others by, and is plain
    throughout. So is a sparse member of a target ``alone``, which has no variables to do without.
    """
    kinds = np.array([member.kind for member in members], dtype=np.uint8)
    ensembles = np.array([member.ensemble for member in members])
    kinds[~np.isin(ensembles, ensembles[kinds == Kind.PLAIN])] = Kind.PLAIN
    if alone:
        kinds[kinds == Kind.SPARSE] = Kind.PLAIN
    return kinds


def of_kinds(members: list[Member], kinds: NDArray[np.uint8] | None) -> list[Member]:
    """Return members with what sets those of some kinds (K,) apart in training."""
    if kinds is None:
        return members
    return [
        replace(member, variant=int(kind == Kind.BARE), shrinkage=SHRINKAGE * (kind != Kind.PLAIN))
        for member, kind in zip(members, kinds, strict=True)
    ]


class Outcome(NamedTuple):
    """Trained members, how training went, and what ended it early."""

    trained: TrainedNetwork[Any]
    history: History
    stopped: Stopped | None


def fit_network(
    network: NetworkT, problem: Problem, labels: LabelScale, training: Training
) -> Outcome:
    """Train members on a problem, then fit the link to the stopping windows too."""
    members = training.scaled_members(problem)
    kinds, units = None, np.full(len(members), labels.scale)
    if labels.bare is not None:
        kinds = kinds_of(members, alone=problem.n_variables == 1)
        units = np.where(kinds == Kind.BARE, labels.bare.scale, units)
        if not kinds.any():
            kinds, labels = None, replace(labels, bare=None)
    config = training.config(problem)
    members = of_kinds(members, kinds)
    rows = problem.in_time_order("train") if config.leave_out else problem.origins["train"]
    started = time.monotonic()
    checkpoint = _checkpoint(network, problem, training)
    title = training.forecaster + (", again" if problem.run.again else "")
    limit = problem.run.time_limit
    with show_progress(training.verbose, title, float(units[0]), limit) as on_epoch:
        job = _Job(network, problem, labels, members, config, rows, training.device, started)
        apart = problem.run.engine != "local" or (checkpoint is not None and checkpoint.apart)
        run = _train_apart if apart else _train_together
        state, stopped, device = run(job, checkpoint, on_epoch)
    history = History(
        train_loss=state.losses.numpy().T.copy(),
        valid_rmse=state.errors.numpy().T * units[:, None],
        best_epoch=state.best_epoch.cpu().numpy(),
        seconds=time.monotonic() - started,
        lowered=state.lowered.cpu().numpy(),
    )
    notes = _end_notes(history, config, problem.run, stopped)
    flat, refitted = state.best.cpu().numpy(), refit_link(labels, problem)
    trained = TrainedNetwork(network, flat, refitted, problem.window, device, kinds)
    return Outcome(trained, replace(history, notes=notes), stopped)


def _checkpoint(network: Network, problem: Problem, training: Training) -> Checkpoint | None:
    """Return where the state of this fit is kept, if it is."""
    if problem.run.checkpoint is None:
        return None
    columns = getattr(network, "columns", None)
    identity = Identity.of(training.forecaster, training.settings, problem.checksum(), columns)
    return Checkpoint(problem.run.checkpoint, identity, again=problem.run.again)


@dataclass(frozen=True, eq=False)
class _Job:
    """Members to train on a problem."""

    network: Network
    problem: Problem
    labels: LabelScale
    members: list[Member]
    config: TrainConfig
    rows: IntArray  # training origins in their order
    device: str
    started: float

    def data(self, device: torch.device) -> WindowData:
        """Return the training data."""
        return window_data(self.problem, self.labels, device, self.rows)

    def fresh(self, device: torch.device) -> TrainState:
        """Return the state before the first step."""
        return TrainState.start(self.network, self.members, device, torch.float32)

    @property
    def time_limit(self) -> float | None:
        """The seconds that are left."""
        return self.problem.run.after(time.monotonic() - self.started).time_limit


Ended = tuple[TrainState, Stopped | None, str]  # the last, where the members were trained


def _train_together(job: _Job, checkpoint: Checkpoint | None, on_epoch: OnEpoch) -> Ended:
    """Train all members side by side in this process."""
    where = resolve_device(job.device)
    batch = min(job.config.batch_size, len(job.rows))
    sizes = {"members": len(job.members), "batch": batch, "window": job.problem.window}
    check_memory(job.network, **sizes, device=where)
    data, state, save = job.data(where), None, None
    if checkpoint is not None:
        fresh = job.fresh(where)
        save, state = checkpoint.save, checkpoint.load(fresh, where)
        if state is None and checkpoint.again:  # from now on the first part is not the whole
            checkpoint.save(fresh, finished=False)
    control = Control(save=save, every=seconds_between(), time_limit=job.time_limit)
    settled: dict[str, Any] = {"state": state, "on_epoch": on_epoch, "control": control}
    state = train(job.network, data, job.members, job.config, **settled)
    return state, control.stopped, where.type


def _train_apart(job: _Job, checkpoint: Checkpoint | None, on_epoch: OnEpoch) -> Ended:
    """Train each member by itself, as tasks of the engine; the bits are the same."""
    here = torch.device("cpu")
    shared = Shared.of(job.network, job.data(here), job.members, job.config, job.device)
    fresh = job.fresh(here).each()
    states: list[TrainState | None] = [None] * len(fresh)
    if checkpoint is not None:
        apart = [checkpoint.of_member(k) for k in range(len(fresh))]
        whole = checkpoint.load(job.fresh(here), here)
        states = [None] * len(fresh) if whole is None else list(whole.each())
        states = [one.load(f, here) or s for one, f, s in zip(apart, fresh, states, strict=True)]
        if checkpoint.again and not any(states):
            apart[0].save(fresh[0], finished=False)

    def save(member: int, state: TrainState, finished: bool) -> None:
        if checkpoint is not None:
            checkpoint.of_member(member).save(state, finished)

    with opened(job.problem.run.engine, job.device) as engine:
        more: dict[str, Any] = {"time_limit": job.time_limit, "save": save, "on_epoch": on_epoch}
        return train_apart(engine, shared, states, seconds=seconds_between(), **more)


def window_data(
    problem: Problem, labels: LabelScale, device: torch.device, rows: IntArray | None = None
) -> WindowData:
    """Return the training data on a device; ``rows`` are the training origins in their order."""
    rows = problem.origins["train"] if rows is None else rows
    by_row = labels_by_row(labels, problem)
    return WindowData(
        table=torch.as_tensor(problem.prepared.table, dtype=torch.float32, device=device),
        labels=torch.as_tensor(by_row, dtype=torch.float32, device=device),
        train=torch.as_tensor(rows, device=device),
        stop=torch.as_tensor(problem.origins["stop"], device=device),
        window=problem.window,
    )


def _end_notes(
    history: History, config: TrainConfig, run: Run, stopped: Stopped | None
) -> tuple[str, ...]:
    """Say what ended training, unless the members had stopped improving; warn of an early end."""
    if stopped is None:
        return patience_notes(history, config)
    cause = "by Ctrl-C" if stopped == "interrupt" else "at its time limit"
    onward = "Fit with checkpoint=DIR to be able to go on from such a point."
    if run.checkpoint is not None:
        onward = f"Fit again with checkpoint='{run.checkpoint}' to go on from here."
    done = history.valid_rmse.shape[1]
    kept = ", before its weights were first judged: do not rely on this model"
    if done:
        kept = "; the best weights so far are kept"
    when = f"in epoch {done + 1} of at most {config.max_epochs}"
    note = f"Training was stopped {cause} {when}{kept}. {onward}"
    warn(note)
    return (note,)


def patience_notes(history: History, config: TrainConfig) -> tuple[str, ...]:
    """Say how many members were still improving when their epochs at the full rate were over."""
    best, _ = history.epochs_found
    last = np.where(history.lowered > 0, history.lowered, history.epochs)
    unfinished = int(np.sum((last >= config.full_epochs) & (last - best < config.patience)))
    if not unfinished:
        return ()
    which, epochs = f"{unfinished} of {history.members} members", counted(last.max(), "epoch")
    which = "The one member" if history.members == 1 else which
    epochs += " at the full rate" if config.finishes else ""
    more = "raise max_epochs=... for more"
    return (f"{which} had not run out of patience after {epochs}; {more}.",)
