"""The training loop: all members together, each with its own order of data and its own end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from mvlstm.errors import TrainingError
from mvlstm.nn.parameters import unflatten
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control
from mvlstm.train.data import WindowData
from mvlstm.train.predict import mean_rows
from mvlstm.train.protocol import Network
from mvlstm.train.state import TrainState
from mvlstm.train.stepper import Stepper


@dataclass(frozen=True)
class Progress:
    """Where a run stands after an epoch."""

    epoch: int
    max_epochs: int
    error: float  # mean over members of one kind of the lowest validation RMSE so far, scaled
    running: int
    members: int
    seconds: float  # that this run has taken
    seconds_each: float  # of its epochs


OnEpoch = Callable[[Progress, TrainState], None]
SHARE_OF_FIRST = 1e-3  # of the first step that others are taken to last, until one tells


def train(
    network: Network,
    data: WindowData,
    members: Sequence[Member],
    config: TrainConfig,
    *,
    dtype: torch.dtype = torch.float32,
    state: TrainState | None = None,
    on_epoch: OnEpoch | None = None,
    control: Control | None = None,
) -> TrainState:
    """Train every member until it stops improving; return the final state.

    ``state.best`` holds each member's weights at its lowest validation error. Pass a ``state``
    from an earlier run to go on from there, to the same bits as without the interruption.
    ``control`` says when to save the state and whether to stop early. A member that was stopped
    before its first validation is kept as it is. Where ``config.planned``, ``on_epoch`` changes
    what is ``running`` and ``lowered`` in the state, and weights with it, for the next epoch.
    """
    state = state or TrainState.start(network, members, data.device, dtype)
    control = control or Control()
    stepper = Stepper(network, seen(data, config, state), config, members, state)
    clock, before = Clock(len(data.stop) / stepper.batch), int(state.epoch)
    with control.listening():
        while not is_over(state, config):
            stops = partial(pause, control, stepper, state, clock)
            losses = stepper.run_epoch(int(state.epoch), stops)
            if losses is None:
                break
            judged = stepper.judged_on, stepper.variants
            errors = validation_errors(network, stepper.weights, data, *judged)
            record(state, stepper, losses, errors, members, config)
            if on_epoch is not None:
                on_epoch(progress(state, config, members, clock.seconds, before), state)
            now = seen(data, config, state)
            if state.running.any() and (
                now.window != stepper.data.window or not stepper.matches(state)
            ):
                stepper = Stepper(network, now, config, members, state)
            if pause(control, stepper, state, clock):
                break
    ended = is_over(state, config)
    if ended:
        control.stopped = None
    control.store(state, finished=ended)
    return state if ended else with_weights_now(state)


def is_over(state: TrainState, config: TrainConfig) -> bool:
    """Say whether every member has ended."""
    return not bool(state.running.any()) or int(state.epoch) >= config.max_epochs


def seen(data: WindowData, config: TrainConfig, state: TrainState) -> WindowData:
    """Return the data with as much of each window as an epoch of training reads."""
    near = int(state.epoch) < config.near_epochs
    return replace(data, window=config.near_rows) if near else data


class Clock:
    """Time since training began, and what the work after it will take.

    ``closing`` are the batches in the stopping windows: after training they are predicted twice or
    so, and the calibration windows, about as many, once. A prediction takes a third of a step.
    """

    def __init__(self, closing: float) -> None:
        self.closing, self.steps, self.started = closing, 0, time.monotonic()
        self.first = 0.0  # seconds until the first step was done, in which all is set up

    @property
    def seconds(self) -> float:
        """Seconds since training began."""
        return time.monotonic() - self.started

    def closing_seconds(self, steps: int = 1) -> float:
        """Count steps, the first alone; return the seconds to keep back for what comes after."""
        self.steps += steps
        if self.steps == 1:
            self.first = self.seconds
            return SHARE_OF_FIRST * self.first * self.closing
        return (self.seconds - self.first) / (self.steps - 1) * self.closing


def pause(
    control: Control, stepper: Stepper, state: TrainState, clock: Clock, steps: int = 1
) -> bool:
    """Save the state if it is time to, after this many more steps; say whether to stop here."""
    stops = control.must_stop(clock.closing_seconds(steps))
    if stops or control.save_is_due:
        stepper.write_back(state)
    if control.save_is_due and not stops:
        control.store(state, finished=False)
    return stops


def with_weights_now(state: TrainState) -> TrainState:
    """Return the state of a run that was stopped, with weights for members that had no best.

    A member that is not running and has none had failed, and is left as it is.
    """
    never = (state.best_epoch == 0) & state.running
    if not bool(torch.isfinite(state.flat[never]).all()):
        raise TrainingError(
            "The run was stopped before its first validation, and its weights are no longer "
            "finite. Lower learning_rate, or look for extreme values in the table."
        )
    return replace(state, best=torch.where(never.unsqueeze(1), state.flat, state.best))


def validation_errors(
    network: Network,
    flat: Tensor,
    data: WindowData,
    origins: Tensor,
    variants: Tensor | None = None,
) -> Tensor:
    """Return each member's RMSE (k,) of the labels that are known, in their units.

    ``origins`` are the ends of the windows, (S,), or (k, S) where every member has its own;
    ``variants`` (k,) of the members, all the first by default.
    """
    if variants is None:
        variants = torch.zeros(len(flat), dtype=torch.int64, device=flat.device)
    p = unflatten(flat, network.shapes)
    means = mean_rows(network, p, data.table, origins, data.window)  # (k, S, H)
    labels = data.targets(origins, variants).expand_as(means)
    known = data.known(labels)
    if known is None:
        return (means - labels).square().mean(dim=(1, 2)).sqrt()
    squared = (means - labels).masked_fill(~known, 0.0).square()
    return (squared.sum(dim=(1, 2)) / known.sum(dim=(1, 2))).sqrt()


def record(
    state: TrainState,
    stepper: Stepper,
    losses: Tensor,
    errors: Tensor,
    members: Sequence[Member],
    config: TrainConfig,
) -> None:
    """Enter an epoch's outcome into the state and decide who goes on."""
    stepper.write_back(state)
    state.epoch += 1
    rows = stepper.rows
    finite = torch.isfinite(losses) & torch.isfinite(errors)
    if not config.drop_failed:
        needed = torch.tensor([members[k].is_plain for k in rows.tolist()], device=finite.device)
        require_finite(finite | ~needed, rows, members, int(state.epoch))
    better = finite & (errors < state.best_error[rows])
    state.best[rows[better]] = stepper.weights[better]
    state.best_error[rows[better]] = errors[better]
    state.best_epoch[rows[better]] = int(state.epoch)
    ended = ends(state, rows, config)
    state.running[rows] = finite & ~ended
    if config.finishes and int(state.epoch) < config.max_epochs:
        ended |= int(state.epoch) >= config.full_epochs
        lower_rate(state, rows[finite & ended & (state.lowered[rows] == 0)])
    state.losses = append(state.losses, losses, rows, len(members))
    state.errors = append(state.errors, errors, rows, len(members))


def ends(state: TrainState, rows: Tensor, config: TrainConfig) -> Tensor:
    """Say which of some members have waited in vain for a better error, at their rate."""
    lowered = state.lowered[rows]
    if config.planned:
        return torch.zeros_like(lowered, dtype=torch.bool)
    waited = int(state.epoch) - torch.maximum(state.best_epoch[rows], lowered)
    return waited >= torch.where(lowered > 0, config.finishing, config.patience)


def lower_rate(state: TrainState, rows: Tensor) -> None:
    """Take members back to their best weights, from which they go on at a lower rate.

    Adam's moments stay as they are: they tell of gradients nearby, which is enough for small steps.
    """
    state.flat[rows] = state.best[rows]
    state.mean[rows] = state.best[rows]
    state.lowered[rows] = int(state.epoch)
    state.running[rows] = True


def require_finite(finite: Tensor, rows: Tensor, members: Sequence[Member], epoch: int) -> None:
    """Raise if a member's loss or validation error is no longer a number."""
    if bool(finite.all()):
        return
    k = int(rows[~finite][0])
    raise TrainingError(
        f"Loss became NaN or infinite in epoch {epoch} (member {k}) with "
        f"learning_rate={members[k].learning_rate:g}. Lower learning_rate, or look for extreme "
        "values in the table."
    )


def append(history: Tensor, values: Tensor, rows: Tensor, n_members: int) -> Tensor:
    """Add a row to a history (E, K), NaN for members that had stopped."""
    row = torch.full((1, n_members), torch.nan, dtype=history.dtype)
    row[0, rows.cpu()] = values.detach().to("cpu", history.dtype)
    return torch.cat([history, row])


def progress(
    state: TrainState, config: TrainConfig, members: Sequence[Member], seconds: float, before: int
) -> Progress:
    """Summarise the state for a progress display; the error is that of the first member's kind.

    ``before`` is how many epochs a run had when it was taken up again.
    """
    alike = torch.tensor([member.variant == members[0].variant for member in members])
    return Progress(
        epoch=int(state.epoch),
        max_epochs=config.max_epochs,
        error=float(state.best_error[alike.to(state.best_error.device)].mean()),
        running=int(state.running.sum()),
        members=len(state.running),
        seconds=seconds,
        seconds_each=seconds / (int(state.epoch) - before),
    )
