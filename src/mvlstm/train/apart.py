"""Members trained apart, as tasks of an engine, to the bits they have when trained together.

What a member draws and when it ends depends on the member alone, and on the CPU each step is of
one member. So a task is one member for some seconds; it brings the member's state back, which is
kept in the checkpoint folder, and which the next task goes on from, wherever that runs.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mvlstm.engine import Engine
from mvlstm.errors import TrainingError
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control, Stopped
from mvlstm.train.data import WindowData
from mvlstm.train.loop import OnEpoch, Progress, is_over, train, with_weights_now
from mvlstm.train.memory import check_memory
from mvlstm.train.protocol import Network
from mvlstm.train.runtime import resolve_device
from mvlstm.train.state import HISTORY, TrainState

FEWEST_TURNS = 4  # of each member within a time limit, so that all come equally far
LEAST = 1.0  # seconds of a turn
Save = Callable[[int, TrainState, bool], None]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Shared:
    """What the tasks of one fit have in common."""

    network: Network
    members: tuple[Member, ...]
    config: TrainConfig
    device: str
    window: int
    arrays: Arrays  # the tensors of `WindowData`

    @classmethod
    def of(
        cls,
        network: Network,
        data: WindowData,
        members: Sequence[Member],
        config: TrainConfig,
        device: str,
    ) -> Shared:
        """Take the data apart into arrays."""
        arrays = {name: getattr(data, name).numpy() for name in DATA}
        return cls(network, tuple(members), config, device, data.window, arrays)

    def data(self, device: torch.device) -> WindowData:
        """Put the data together on a device; on the CPU they stay where they are."""
        with warnings.catch_warnings(action="ignore"):  # nothing writes to them
            tensors = {name: torch.from_numpy(a).to(device) for name, a in self.arrays.items()}
        return WindowData(**tensors, window=self.window)


DATA = tuple(one.name for one in fields(WindowData) if one.name != "window")


class Turn(NamedTuple):
    """A member's next seconds of training."""

    member: int
    state: Arrays | None  # to go on from
    seconds: float
    left: float | None  # until the time limit


class Turned(NamedTuple):
    """A member after its turn."""

    state: Arrays
    finished: bool
    stopped: Stopped | None  # what ended it early for good
    device: str


class _Lease(Control):
    """Ends after some seconds, or at the time limit; the work after it is of all members."""

    def __init__(self, turn: Turn, members: int) -> None:
        self.kept: tuple[TrainState, bool] | None = None
        super().__init__(save=self._keep, every=math.inf, time_limit=turn.left)
        self.members, self.end = members, time.monotonic() + turn.seconds

    def _keep(self, state: TrainState, finished: bool) -> None:
        self.kept = state, finished

    def must_stop(self, closing: float) -> bool:
        """Say whether the turn is over."""
        return super().must_stop(self.members * closing) or time.monotonic() >= self.end


def take_turn(shared: Shared, turn: Turn) -> Turned:
    """Train one member for a while, in a worker."""
    where, k = resolve_device(shared.device), turn.member
    data, alone = shared.data(where), shared.members[k : k + 1]
    sizes: dict[str, Any] = {"batch": shared.config.batch_size, "window": shared.window}
    check_memory(shared.network, members=1, device=where, **sizes)
    if turn.state is None:
        state = TrainState.start(shared.network, alone, where, torch.float32)
    else:
        tensors = {name: torch.tensor(array) for name, array in turn.state.items()}
        state = TrainState.from_tensors(tensors, where)
    lease = _Lease(turn, len(shared.members))
    try:
        train(shared.network, data, alone, shared.config, state=state, control=lease)
    except TrainingError as error:  # there it is the first of one
        raise TrainingError(str(error).replace("(member 0)", f"(member {k})")) from error
    assert lease.kept is not None
    state, finished = lease.kept
    return Turned(_arrays(state), finished, lease.stopped, where.type)


def train_apart(
    engine: Engine,
    shared: Shared,
    states: Sequence[TrainState | None],
    *,
    seconds: float,
    time_limit: float | None = None,
    save: Save | None = None,
    on_epoch: OnEpoch | None = None,
) -> tuple[TrainState, Stopped | None, str]:
    """Train every member by itself; return the state of all, what ended it, and the device.

    ``states`` are those to go on from, where there are any; each turn takes ``seconds``, after
    which ``save`` stores the member's state. Ctrl-C ends all, and a later fit continues from there.
    """
    started, K = time.monotonic(), len(shared.members)
    deadline = None if time_limit is None else started + time_limit
    now = [None if state is None else _arrays(state) for state in states]
    before = sum(int(state["epoch"]) for state in now if state is not None)
    ended = [one is not None and is_over(one, shared.config) for one in states]
    unfinished, late, device = {k for k in range(K) if not ended[k]}, False, "cpu"

    def turn(k: int) -> Turn:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        share = math.inf if left is None else left * engine.slots / len(unfinished) / FEWEST_TURNS
        return Turn(k, now[k], min(seconds, max(share, LEAST)), left)

    waiting = deque(turn(k) for k in sorted(unfinished))
    for task, done in engine.results(take_turn, engine.share(shared), waiting):
        k, now[task.member], device = task.member, done.state, done.device
        state = _state(done.state)
        if save is not None:
            save(k, state, done.finished)
        if done.finished:
            unfinished.discard(k)
        elif done.stopped == "interrupt":
            raise KeyboardInterrupt
        elif done.stopped is not None:
            late = True
        else:
            waiting.append(turn(k))
        if on_epoch is not None:
            on_epoch(_progress(shared, now, len(unfinished), started, before), state)
    found = [_state(arrays) for arrays in now if arrays is not None]
    ready = [one if k not in unfinished else with_weights_now(one) for k, one in enumerate(found)]
    return joined(ready), "time limit" if late else None, device


def joined(states: Sequence[TrainState]) -> TrainState:
    """Return the state of all members (K,) given that of each, after epochs of their own number."""
    longest = max(int(one.epoch) for one in states)
    parts: dict[str, torch.Tensor] = {}
    for field in fields(TrainState):
        values = [getattr(one, field.name) for one in states]
        if field.name in HISTORY:
            rows = [(0, 0, 0, longest - len(value)) for value in values]
            pairs = zip(values, rows, strict=True)
            padded = [torch.nn.functional.pad(v, row, value=torch.nan) for v, row in pairs]
            parts[field.name] = torch.cat(padded, dim=1)
        elif values[0].dim():
            parts[field.name] = torch.cat(values)
        else:
            parts[field.name] = torch.stack(values).amax()
    return TrainState(**parts)


def _arrays(state: TrainState) -> Arrays:
    return {name: tensor.numpy() for name, tensor in state.tensors().items()}


def _state(arrays: Arrays) -> TrainState:
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    return TrainState.from_tensors(tensors, torch.device("cpu"))


def _progress(
    shared: Shared, states: Sequence[Arrays | None], running: int, started: float, before: int
) -> Progress:
    """Say how far the members are on average."""
    known = [(k, one) for k, one in enumerate(states) if one is not None]
    kind, K = shared.members[0].variant, len(states)
    alike = [one for k, one in known if shared.members[k].variant == kind] or [known[0][1]]
    errors = [float(one["best_error"][0]) for one in alike]
    epochs, seconds = sum(int(one["epoch"]) for _, one in known), time.monotonic() - started
    return Progress(
        epoch=epochs // K,
        max_epochs=shared.config.max_epochs,
        error=float(np.mean(errors)),
        running=running,
        members=K,
        seconds=seconds,
        seconds_each=seconds * K / max(1, epochs - before),
    )
