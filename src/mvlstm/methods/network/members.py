"""Members by hand: compare members of given settings, take some out, train them on more rows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mvlstm.errors import DataError
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.trained import learn_labels
from mvlstm.metrics import Measure
from mvlstm.model.calibration import calibrate
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import begin
from mvlstm.model.forecasting import dated_forecast
from mvlstm.model.updating import watched
from mvlstm.problem.inputs import Windows
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem, of_known
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import Choosing, PartName
from mvlstm.train.config import Member
from mvlstm.types import BoolArray, FloatArray, IntArray

MEMBER_SETTINGS = ("learning_rate", "l2", "dropout")  # may differ between members of one batch


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
    choose: Choosing = "half",
) -> FloatArray:
    """Train members that differ in their settings as one batch; return their validation errors.

    They are measured on the stopping rows, in units of the target: as RMSE, or as the MAE of the
    median; infinite for a member whose training failed. With ``together`` above one they are those
    of this many members in turn as one ensemble, on all validation rows; the members are of several
    kinds if an ``ensemble`` of this many would be.
    """
    model.set_params(members=len(members))
    model.check()
    start = begin(model, frame, test=test, valid=valid, preparation=preparation, choose=choose)
    problem = replace(start.problem, members=tuple(members), ensemble=ensemble, search=True)
    learned = model.learn(problem)
    if learned.stopped == "interrupt":
        raise KeyboardInterrupt
    best = learned.history.best_rmse
    failed = np.asarray(~np.isfinite(best).reshape(-1, together).all(axis=1))
    parts: tuple[PartName, ...] = ("stop",) if together == 1 else ("stop", "calibration")
    rows = np.unique(np.concatenate([problem.origins[part] for part in parts]))
    prepared = problem.prepared
    rescaled = bool(prepared.preparation.transform) or prepared.units is not None
    # before the link is refitted, so that it has not seen the stopping rows
    trained = replace(learned.trained, labels=learn_labels(model.link, problem))
    unaware = replace(learned, trained=trained)
    if measure != "rmse" or rescaled:
        errors = _errors_in_units(unaware, problem, start.parts, rows, together, failed, measure)
    elif together > 1 or model.leave_out:  # and then not on what a member left out
        errors = _errors_of_means(unaware, problem, rows, together)
    else:
        errors = best
    return np.where(failed, np.inf, errors)


def _errors_of_means(
    learned: LearnedNetwork, problem: Problem, rows: IntArray, size: int
) -> FloatArray:
    """Return the RMSE of the means of ``size`` members in turn."""
    each = learned.trained.rows(problem.prepared.table, rows)  # (K, M, H)
    means = each.reshape(-1, size, *each.shape[1:]).mean(axis=1)
    known = problem.prepared.known_labels(rows, problem.horizon)
    errors = of_known(means - known, known)
    return np.asarray(np.sqrt(np.square(errors).mean(axis=(1, 2))))


def _errors_in_units(
    learned: LearnedNetwork,
    problem: Problem,
    parts: PartTimes,
    rows: IntArray,
    size: int,
    failed: BoolArray,
    measure: Measure,
) -> FloatArray:
    """Return a score of ``size`` members in turn, of the target as it is, in its own units."""
    errors = np.full(len(failed), np.inf)
    windows = Windows.at(problem.prepared, rows, problem.window)
    for i in np.flatnonzero(~failed):
        # finite where it was learned, a forecast may not be so when turned back
        with contextlib.suppress(DataError), np.errstate(over="ignore", invalid="ignore"):
            few = learned.take(slice(i * size, (i + 1) * size))
            calibration, _ = calibrate(few, problem)
            said = few.pieces(windows), calibration, parts, problem.window
            forecast = dated_forecast(problem.prepared, rows, *said)
            errors[i] = forecast.score(part="all")[measure]
    return errors


def take_members(fitted: Fitted, problem: Problem, rows: slice) -> Fitted:
    """Return a fitted network with some of its members only, calibrated anew.

    With the members of a whole ensemble it forecasts as a model that was fitted with these alone.
    """
    learned: Any = fitted.learned
    few = learned.take(rows)
    calibration, notes = calibrate(few, problem)
    return replace(
        fitted,
        learned=few.summarised(problem),
        calibration=calibration,
        notes=tuple(dict.fromkeys((*fitted.notes, *notes))),
    )


def with_all_rows(problem: Problem) -> Problem:
    """Return a problem whose training part is all rows but the unseen; a few are watched."""
    parts: tuple[PartName, ...] = ("train", "stop", "calibration")
    rows = np.unique(np.concatenate([problem.origins[part] for part in parts]))
    return replace(problem, origins={**problem.origins, "train": rows, "stop": watched(rows)})


def refitted(model: AbstractNetwork, fitted: Fitted, problem: Problem) -> LearnedNetwork:
    """Train a network's members again on all rows but the unseen, for the steps found."""
    whole = with_all_rows(problem)
    had, windows = (len(one.origins["train"]) for one in (problem, whole))
    epochs = model.epochs_over(fitted.history, had, windows)
    learned: Any = fitted.learned
    return model.train_again(learned, whole, *epochs)


def with_weights(fitted: Fitted, trained: Any, problem: Problem) -> Fitted:
    """Return a model with other weights, learned from a problem, and its own intervals."""
    learned: Any = fitted.learned
    return fitted.with_learned(replace(learned, trained=trained).summarised(problem))
