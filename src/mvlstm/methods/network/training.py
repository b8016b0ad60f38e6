"""What the forecasters made of networks share: training members, and predicting with them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm._words import counted
from mvlstm.errors import MVLSTMWarning, ParameterError, check_whole, is_number, is_whole
from mvlstm.nn.parameters import Parameters, Shapes, unflatten
from mvlstm.problem.problem import Problem, Run
from mvlstm.results import History
from mvlstm.train.checkpoint import Checkpoint, Identity, seconds_between
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control, Stopped
from mvlstm.train.data import WindowData, gather_windows
from mvlstm.train.loop import train
from mvlstm.train.memory import check_memory
from mvlstm.train.predict import chunks, predict_rows
from mvlstm.train.progress import show_progress
from mvlstm.train.protocol import Network
from mvlstm.train.runtime import resolve_device
from mvlstm.train.state import TrainState
from mvlstm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.methods.network.base import AbstractNetwork

Result = TypeVar("Result")
SEEDS_APART = 10_000  # members of one model take consecutive seeds from seed * SEEDS_APART
SHRINKAGE = 0.02  # share of a step by which some members' weights on variables are shrunk


class Kind(IntEnum):
    """What a member is, where an ensemble has members of several kinds."""

    PLAIN = 0  # learns what the link leaves
    SPARSE = 1  # the same, and its weights on variables are shrunk
    BARE = 2  # does without the link, and is shrunk too


KINDS = (Kind.PLAIN, Kind.BARE, Kind.SPARSE, Kind.BARE, Kind.SPARSE)  # of every five members


def check_training(model: AbstractNetwork) -> None:
    """Raise `ParameterError` for a training setting with a value it cannot have."""
    counts = ("hidden_size", "layers", "batch_size", "max_epochs", "patience", "members")
    for name in counts:
        check_whole(name, getattr(model, name, 1), 1)
    for name in ("dropout", "learning_rate", "l2", "averaging", "finish", "leave_out"):
        value = getattr(model, name)
        if not is_number(value) or not math.isfinite(value):
            raise ParameterError(f"{name}={value!r} must be a number.")
    if not 0 <= model.dropout < 1:
        raise ParameterError(f"dropout={model.dropout!r} must be at least 0 and below 1.")
    if not 0 <= model.averaging < 1:
        raise ParameterError(f"averaging={model.averaging!r} must be at least 0 and below 1.")
    if not 0 <= model.finish <= 1:
        raise ParameterError(f"finish={model.finish!r} must be at least 0 and at most 1.")
    if not 0 <= model.leave_out <= 0.5:
        raise ParameterError(f"leave_out={model.leave_out!r} must be at least 0 and at most 0.5.")
    if not model.learning_rate > 0:
        raise ParameterError(f"learning_rate={model.learning_rate!r} must be positive.")
    if not model.l2 >= 0:
        raise ParameterError(f"l2={model.l2!r} must not be negative.")
    if not is_whole(model.seed):
        raise ParameterError(f"seed={model.seed!r} must be a whole number.")


def members_of(model: AbstractNetwork, problem: Problem) -> list[Member]:
    """Return the members to train: the problem's, or those of a forecaster's model."""
    own = (model.learning_rate, model.l2, model.dropout)
    first = int(model.seed) * SEEDS_APART
    return list(problem.members) or [Member(first + k, *own) for k in range(model.members)]


def scaled_members(model: AbstractNetwork, problem: Problem) -> list[Member]:
    """Return these members with their L2 as it stands beside the *mean* loss.

    With ``l2_sum`` it is meant beside the sum over all training windows.
    """
    windows = len(problem.origins["train"]) if model.l2_sum else 1
    return [replace(one, l2=one.l2 / windows) for one in members_of(model, problem)]


def kinds_of(seeds: IntArray, *, alone: bool) -> NDArray[np.uint8]:
    """Return the kinds (K,) of members with given seeds, where there are several.

    The first member of every model is plain, since `SEEDS_APART` is a multiple of five. A share of
    an ensemble without a plain member has nothing to judge others by, and is plain throughout. So
    is a sparse member of a target ``alone``, which has no variables to do without.
    """
    kinds = np.array([KINDS[seed % len(KINDS)] for seed in seeds], dtype=np.uint8)
    ensembles = seeds // SEEDS_APART
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


def fit_batch(model: AbstractNetwork, windows: int) -> int:
    """Return the batch of a fit to so many windows.

    With ``short_batches`` it is smaller than asked where an epoch would be too few steps.
    """
    size = int(model.batch_size)
    return short_batch(size, windows) if model.short_batches else size


def short_batch(batch_size: int, windows: int) -> int:
    """Return a batch for so many windows: a smaller one where an epoch would be too few steps."""
    return min(batch_size, max(32, windows // 16))


def train_config(model: AbstractNetwork, windows: int, *, drop_failed: bool = False) -> TrainConfig:
    """Return what a forecaster's arguments say about training on so many windows."""
    return TrainConfig(
        fit_batch(model, windows),
        int(model.max_epochs),
        int(model.patience),
        averaging=model.averaging,
        finish=model.finish,
        leave_out=model.leave_out,
        drop_failed=drop_failed,
    )


def train_network(
    network: Network,
    problem: Problem,
    labels: FloatArray,
    members: list[Member],
    config: TrainConfig,
    *,
    units: FloatArray,
    model: AbstractNetwork,
) -> tuple[NDArray[np.float32], History, str]:
    """Train members on a problem.

    Parameters
    ----------
    model : AbstractNetwork
        Whose fit it is; its ``stopped_`` is set if training ends early.
    labels : (rows, H)
        Scaled labels of the training and stopping origins, by row of the table; (G, rows, H) for
        members of several kinds.
    units : (K,)
        Factors that turn members' validation errors into units of the target.

    Returns
    -------
    flat : (K, P) best weights
    history : History
    device : str
    """
    where = resolve_device(model.device)
    rows = problem.in_time_order("train") if config.leave_out else problem.origins["train"]
    batch = min(config.batch_size, len(rows))
    check_memory(network, members=len(members), batch=batch, window=problem.window, device=where)
    data = WindowData(
        table=torch.as_tensor(problem.prepared.table, dtype=torch.float32, device=where),
        labels=torch.as_tensor(labels, dtype=torch.float32, device=where),
        train=torch.as_tensor(rows, device=where),
        stop=torch.as_tensor(problem.origins["stop"], device=where),
        window=problem.window,
    )
    started = time.monotonic()
    checkpoint, state = None, None
    if problem.run.checkpoint is not None:
        identity = Identity.of(model, problem, getattr(network, "columns", None))
        checkpoint = Checkpoint(problem.run.checkpoint, identity, again=problem.run.again)
        fresh = TrainState.start(network, members, where, torch.float32)
        state = checkpoint.load(fresh, where)
        if state is None and problem.run.again:  # from now on the first part is not the whole
            checkpoint.save(fresh, finished=False)
    control = Control(
        save=None if checkpoint is None else checkpoint.save,
        every=seconds_between(),
        time_limit=problem.run.time_limit,
    )
    title = type(model).__name__ + (", again" if problem.run.again else "")
    with show_progress(model.verbose, title, float(units[0])) as on_epoch:
        state = train(
            network, data, members, config, state=state, on_epoch=on_epoch, control=control
        )
    model.stopped_ = control.stopped
    history = History(
        train_loss=state.losses.numpy().T.copy(),
        valid_rmse=state.errors.numpy().T * units[:, None],
        best_epoch=state.best_epoch.cpu().numpy(),
        seconds=time.monotonic() - started,
        lowered=state.lowered.cpu().numpy(),
    )
    notes = _end_notes(history, config, problem.run, control.stopped)
    history = replace(history, notes=notes)
    return state.best.cpu().numpy(), history, str(where.type)


def _end_notes(
    history: History, config: TrainConfig, run: Run, stopped: Stopped | None
) -> tuple[str, ...]:
    """Say what ended training, unless the members had stopped improving; warn of an early end."""
    if stopped is None:
        return patience_notes(history, config)
    cause = "by Ctrl-C" if stopped == "interrupt" else "at its time limit"
    onward = (
        f"Fit again with checkpoint='{run.checkpoint}' (--resume) to go on from here."
        if run.checkpoint is not None
        else "Fit with checkpoint=DIR to be able to go on from such a point."
    )
    done = history.valid_rmse.shape[1]
    kept = (
        "; the best weights so far are kept"
        if done
        else ", before its weights were first judged: do not rely on this model"
    )
    note = (
        f"Training was stopped {cause} in epoch {done + 1} of at most {config.max_epochs}"
        f"{kept}. {onward}"
    )
    warnings.warn(note, MVLSTMWarning, stacklevel=2)
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
    more = "raise max_epochs (--max-epochs) for more"
    return (f"{which} had not run out of patience after {epochs}; {more}.",)


class Details(NamedTuple):
    """The mixture of K members for M windows, scaled, and their mean attention over time."""

    mu: FloatArray | None  # (K, M, H, N); None for a head without components
    log_prior: FloatArray  # (K, M, H, N)
    sigma2: FloatArray | None  # (K, M, H, N) where the network predicts it
    temporal: FloatArray  # (K, N, T - 1)


def network_details(
    network: Network,
    flat: NDArray[np.float32],
    table: NDArray[Any],
    origins: IntArray,
    window: int,
    device: str,
    *,
    exact: bool = False,
) -> Details:
    """Return the mixture and the mean temporal attention, if ``exact`` without a GPU's rounding."""
    mu, log_pi, log_sigma2 = [], [], []
    temporal: FloatArray = np.zeros(())
    where = usable_device(device)
    dtype = torch.float64 if exact and where.type == "cuda" else torch.float32
    p = unflatten(torch.as_tensor(flat, dtype=dtype, device=where), network.shapes)
    rows = torch.as_tensor(table, dtype=dtype, device=where)
    ends = torch.as_tensor(origins, device=where)
    for _, q in predict_rows(network, p, rows, ends, window):
        assert q.log_prior is not None and q.temporal is not None
        log_pi.append(q.log_prior.cpu().numpy().astype(np.float64))
        if q.mu is not None:
            mu.append(q.mu.cpu().numpy().astype(np.float64))
        if q.log_sigma2.dim() == 4:
            log_sigma2.append(q.log_sigma2.cpu().numpy().astype(np.float64))
        temporal = temporal + q.temporal.sum(dim=1).cpu().numpy().astype(np.float64)
    log_prior = np.concatenate(log_pi, axis=1)
    log_prior -= np.logaddexp.reduce(log_prior, axis=-1, keepdims=True)  # float32's rounding
    return Details(
        mu=np.concatenate(mu, axis=1) if mu else None,
        log_prior=log_prior,
        sigma2=np.exp(np.concatenate(log_sigma2, axis=1)) if log_sigma2 else None,
        temporal=temporal / len(origins),
    )


@torch.no_grad()
def over_windows(
    function: Callable[[Parameters, Tensor], Result],
    shapes: Shapes,
    flat: NDArray[np.float32],
    table: NDArray[Any],
    origins: IntArray,
    window: int,
    device: str,
) -> Iterator[Result]:
    """Yield ``function(parameters, x)`` for windows x (K, T, B, C) ending at rows, in pieces.

    A model trained on a GPU runs on the CPU where there is none.
    """
    where = usable_device(device)
    p = unflatten(torch.as_tensor(flat, device=where), shapes)
    rows = torch.as_tensor(table, dtype=torch.float32, device=where)
    ends = torch.as_tensor(origins, device=where)
    for piece in chunks(len(origins)):
        yield function(p, gather_windows(rows, ends[piece].expand(len(flat), -1), window))


def usable_device(name: str) -> torch.device:
    """Return where a trained model runs: a GPU's model runs on the CPU where there is none."""
    return resolve_device(name if name != "cuda" or torch.cuda.is_available() else "cpu")
