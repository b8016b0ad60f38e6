"""Members by hand: fit with given settings of each, compare them, and take some out again."""

from __future__ import annotations

import contextlib
import copy
import time as clock
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mvlstm.errors import DataError
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.methods.network.further_training import epochs_over, train_again, watched
from mvlstm.methods.network.trained import Labels, TrainedNetwork
from mvlstm.methods.network.training import SEEDS_APART
from mvlstm.metrics import Measure
from mvlstm.model.calibration import calibrate
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem, of_known
from mvlstm.results import Forecast
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import PartName
from mvlstm.train.config import Member
from mvlstm.train.runtime import resolve_device
from mvlstm.types import BoolArray, FloatArray, IntArray

__all__ = [
    "MEMBER_SETTINGS",
    "Member",
    "device_name",
    "fit_frame",
    "forecast_part",
    "member_errors",
    "refitted",
    "seeds_of",
    "take_members",
    "with_all_rows",
    "with_weights",
]


MEMBER_SETTINGS = ("learning_rate", "l2", "dropout")  # may differ between members of one batch


def fit_frame(
    model: AbstractForecaster,
    frame: SeriesFrame,
    *,
    test: float,
    valid: float,
    preparation: Preparation | None = None,
    members: Sequence[Member] = (),
    ensemble: int | None = None,
) -> Problem:
    """Fit to a validated table; return the problem it was, with the origins of each part.

    Ctrl-C interrupts, and does not leave a model that was trained for less than others.

    Parameters
    ----------
    model : AbstractForecaster
    frame : SeriesFrame
    test, valid : float
        As in ``fit``.
    preparation : Preparation, optional
        Scaling to use in place of the one learned from the training rows.
    members : sequence of Member
        Settings of each member; by default those of the model.
    ensemble : int, optional
        How many members an ensemble has, where these are several ensembles or a share of one.
    """
    started = clock.monotonic()
    model._check_parameters()
    problem = model._start(frame, test=test, valid=valid, preparation=preparation)
    problem = replace(problem, members=tuple(members), ensemble=ensemble)
    model._learn_all(problem)
    model._require_whole()
    model.fit_seconds_ = clock.monotonic() - started
    return problem


def member_errors(
    model: AbstractNetwork,
    frame: SeriesFrame,
    members: Sequence[Member],
    *,
    test: float,
    valid: float,
    preparation: Preparation | None = None,
    together: int = 1,
    ensemble: int = 1,
    measure: Measure = "rmse",
) -> FloatArray:
    """Train members that differ in their settings as one batch; return their validation errors.

    They are measured on the stopping rows, in units of the target: as RMSE, or as the MAE of the
    median; infinite for a member whose training failed. With ``together`` it is that of every so
    many members in turn as one ensemble, on all validation rows; they are of several kinds if an
    ``ensemble`` of so many would be.
    """
    model.set_params(members=len(members))
    model._check_parameters()
    problem = model._start(frame, test=test, valid=valid, preparation=preparation)
    model._learn(replace(problem, members=tuple(members), ensemble=ensemble, search=True))
    model._require_whole()
    sound = np.isfinite(model.history_.best_rmse).reshape(-1, together)
    failed = np.asarray(~sound.all(axis=1))
    parts: tuple[PartName, ...] = ("stop",) if together == 1 else ("stop", "calibration")
    prepared = problem.prepared
    rescaled = bool(prepared.preparation.transform) or prepared.units is not None
    if measure != "rmse" or rescaled:
        errors = _errors_in_units(model, problem, parts, together, failed, measure)
    elif together > 1 or model.leave_out:  # and then not on what a member left out
        errors = _errors_of_means(model, problem, parts, together)
    else:
        errors = model.history_.best_rmse
    return np.where(failed, np.inf, errors)


def _errors_of_means(
    model: AbstractNetwork, problem: Problem, parts: Sequence[PartName], size: int
) -> FloatArray:
    """Return the RMSE of the means of ``size`` members in turn, before the link is refitted."""
    labels = Labels.learn(model.link, problem)
    rows = np.concatenate([problem.origins[part] for part in parts])
    each = replace(model.trained_, labels=labels).rows(problem.prepared.table, rows)  # (K, M, H)
    means = each.reshape(-1, size, *each.shape[1:]).mean(axis=1)
    known = problem.prepared.known_labels(rows, problem.horizon)
    errors = of_known(means - known, known)
    return np.asarray(np.sqrt(np.square(errors).mean(axis=(1, 2))))


def _errors_in_units(
    model: AbstractNetwork,
    problem: Problem,
    parts: Sequence[PartName],
    size: int,
    failed: BoolArray,
    measure: Measure,
) -> FloatArray:
    """Return a score of ``size`` members in turn, of the target as it is, in its own units."""
    rows = np.concatenate([problem.origins[part] for part in parts])
    unaware = copy.copy(model)
    unaware.trained_ = replace(model.trained_, labels=Labels.learn(model.link, problem))
    errors = np.full(len(failed), np.inf)
    for i in np.flatnonzero(~failed):
        # finite where it was learned, a forecast may not be so when turned back
        with contextlib.suppress(DataError), np.errstate(over="ignore", invalid="ignore"):
            few = _few(unaware, problem, slice(i * size, (i + 1) * size))
            errors[i] = forecast_part(few, problem, rows).score(part="all")[measure]
    return errors


def seeds_of(seed: int, count: int) -> list[int]:
    """Return the seeds that an ensemble of ``count`` members with this ``seed`` uses."""
    return [seed * SEEDS_APART + k for k in range(count)]


def take_members(model: AbstractNetwork, problem: Problem, rows: slice) -> AbstractNetwork:
    """Return a fitted network with some of its members only, calibrated anew.

    With the members of a whole ensemble it forecasts as a model that was fitted with these alone.
    """
    few = _few(model, problem, rows)
    few._summarise(problem)
    return few


def _few(model: AbstractNetwork, problem: Problem, rows: slice) -> AbstractNetwork:
    """Return a network with some of its members, and their intervals."""
    few = copy.copy(model)
    few._take(rows)
    calibrate(few, problem)
    return few


def with_all_rows(problem: Problem) -> Problem:
    """Return a problem whose training part is all rows but the unseen; a few are watched."""
    parts: tuple[PartName, ...] = ("train", "stop", "calibration")
    rows = np.unique(np.concatenate([problem.origins[part] for part in parts]))
    return replace(problem, origins={**problem.origins, "train": rows, "stop": watched(rows)})


def refitted(model: AbstractNetwork, problem: Problem) -> TrainedNetwork[Any]:
    """Train a network's members again on all rows but the unseen, for the steps found."""
    whole = with_all_rows(problem)
    had, windows = (len(one.origins["train"]) for one in (problem, whole))
    return train_again(model.trained_, whole, model, *epochs_over(model, had, windows))


def with_weights(
    model: AbstractNetwork, trained: TrainedNetwork[Any], problem: Problem
) -> AbstractNetwork:
    """Return a network with other weights, learned from a problem, and its intervals."""
    other = copy.copy(model)
    other.trained_ = trained
    other._summarise(problem)  # the spread stays, which the calibration belongs to
    return other


def forecast_part(model: AbstractForecaster, problem: Problem, origins: IntArray) -> Forecast:
    """Forecast from given origins of the table that the model was fitted to."""
    return model._forecast_rows(problem.prepared, origins)


def device_name(device: str) -> str:
    """Return the name of the device that networks are trained on: "cpu", or the GPU's."""
    import torch

    where = resolve_device(device)
    return str(torch.cuda.get_device_name(where)) if where.type == "cuda" else where.type
