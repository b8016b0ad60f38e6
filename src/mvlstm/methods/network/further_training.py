"""Networks trained further from the weights they have, or again for as long as was found best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mvlstm._words import counted
from mvlstm.errors import TrainingError, warn
from mvlstm.methods.network.trained import TrainedNetwork, refit_link
from mvlstm.methods.network.training import Training, of_kinds, short_batch, window_data
from mvlstm.problem.problem import Problem
from mvlstm.results import History
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.control import Control
from mvlstm.train.data import WindowData
from mvlstm.train.loop import OnEpoch, Progress, train, validation_errors
from mvlstm.train.progress import show_progress
from mvlstm.train.runtime import usable_device
from mvlstm.train.state import TrainState
from mvlstm.types import IntArray


def train_further(
    trained: TrainedNetwork[Any],
    problem: Problem,
    training: Training,
    *,
    max_epochs: int,
    learning_rate: float,
) -> tuple[TrainedNetwork[Any], int]:
    """Go on from a model's weights; a member changes only if its error on "stop" falls.

    Scaling and link stay as they are. The number is that of the members that changed.
    """
    data = window_data(problem, trained.labels, usable_device(trained.device))
    members = of_kinds(training.scaled_members(problem), trained.kinds)
    members = [replace(member, learning_rate=learning_rate) for member in members]
    flat = torch.as_tensor(trained.flat, device=data.device)
    variants = torch.tensor([member.variant for member in members], device=data.device)
    error = validation_errors(trained.network, flat, data, data.stop, variants)
    state = TrainState.start(trained.network, members, data.device, torch.float32)
    now = {name: flat.clone() for name in ("flat", "mean", "best")}
    config = TrainConfig(
        short_batch(training.batch_size, len(data.train)),
        max_epochs,
        patience=max_epochs + 1,
        averaging=training.averaging,
    )
    state = replace(state, **now, best_error=error)
    state = _run(trained, data, members, config, state, training)
    better = state.best_epoch > 0
    found = torch.where(better.unsqueeze(1), state.best, flat).cpu().numpy()
    return replace(trained, flat=found), int(better.sum())


def train_again(
    trained: TrainedNetwork[Any],
    problem: Problem,
    training: Training,
    epochs: IntArray,
    finishing: IntArray,
) -> TrainedNetwork[Any]:
    """Train each member from its seed for a given number of epochs (K,), with nothing held out.

    ``finishing`` (K,) more follow at the lower rate. The scaling stays as it is; the link is fitted
    to all the windows, with the penalty found.
    """
    labels = refit_link(trained.labels, problem)
    data = window_data(problem, labels, usable_device(trained.device))
    members = of_kinds(training.scaled_members(problem), trained.kinds)
    state = TrainState.start(trained.network, members, data.device, torch.float32)
    config, most = training.config(problem), int((epochs + finishing).max())
    config = replace(
        config,
        max_epochs=most,
        annealing=most if config.annealing else 0,
        leave_out=0.0,
        planned=True,
        drop_failed=True,
    )
    kept = torch.tensor(trained.flat, device=data.device)
    changed = torch.zeros(len(kept), dtype=torch.bool, device=data.device)

    def keep(progress: Progress, state: TrainState) -> None:
        weights = state.mean if config.averaging else state.flat
        turning = torch.as_tensor((epochs == progress.epoch) & (finishing > 0), device=kept.device)
        state.flat[turning] = weights[turning]  # as a fit goes on from its best weights
        state.lowered[turning] = progress.epoch
        done = torch.as_tensor(epochs + finishing == progress.epoch, device=kept.device)
        sound = done & torch.isfinite(weights).all(dim=1)  # a member that failed stays as it was
        kept[sound] = weights[sound]
        changed[sound] = True
        state.running &= ~done

    _run(trained, data, members, config, state, training, keep)
    failed = int((~changed).sum())
    if failed == len(kept):
        raise TrainingError(
            "Loss became NaN or infinite when the members were trained again. Lower "
            "learning_rate, or look for extreme values in the table."
        )
    if failed:
        note = f"{counted(failed, 'member')} could not be trained again and stayed as before."
        warn(note)
    return replace(trained, flat=kept.cpu().numpy(), labels=labels)


def epochs_over(
    training: Training, history: History, had: int, windows: int
) -> tuple[IntArray, IntArray]:
    """Return each member's epochs over ``windows`` that make the steps its fit to ``had`` took.

    At the full rate (K,), and then at the lower one (K,).
    """
    had -= int(training.leave_out * had)
    before, after = (max(1, n // min(training.batch(n), n)) for n in (had, windows))  # steps each
    full, slow = history.epochs_found
    epochs = np.maximum(np.rint(before / after * full), 1)
    finishing = np.maximum(np.rint(before / after * slow), np.minimum(slow, 1))
    return epochs.astype(np.int64), finishing.astype(np.int64)


def _run(
    trained: TrainedNetwork[Any],
    data: WindowData,
    members: list[Member],
    config: TrainConfig,
    state: TrainState,
    training: Training,
    keep: OnEpoch | None = None,
) -> TrainState:
    """Train with a progress display; Ctrl-C interrupts, and nothing of the run is used."""
    control = Control()
    with show_progress(training.verbose, "update", trained.labels.scale) as show:

        def on_epoch(progress: Progress, state: TrainState) -> None:
            show(progress, state)
            if keep is not None:
                keep(progress, state)

        state = train(
            trained.network, data, members, config, state=state, on_epoch=on_epoch, control=control
        )
    if control.stopped is not None:
        raise KeyboardInterrupt
    return state
