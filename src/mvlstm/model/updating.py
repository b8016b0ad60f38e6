"""A fitted model brought up to date with rows that came after those it knew.

The newest of these rows are held out. A network goes on from its weights on the others, with a
sample of older rows beside them so that it forgets little, and each member is changed only if that
lowers its error on the held-out rows; the intervals are then calibrated on these. Other
forecasters are fitted anew with their settings. If the error on the new rows is not lower than
that of the model as it was, it stays as it was, but for its intervals.

With ``refit="full"`` nothing is held out: the members are trained again, from their seeds, on all
rows and for as many steps as the fit found best. Intervals then rest on the errors that the model
as it was made on the new rows, which it had not seen; fewer than 40 of them cannot tell, and the
intervals stay as they were.
"""

from __future__ import annotations

import copy
import time as clock
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from mvlstm._words import counted
from mvlstm.errors import (
    DataError,
    MVLSTMWarning,
    ParameterError,
    check_option,
    check_whole,
    is_number,
)
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.model.calibration import calibrate
from mvlstm.problem.part_times import Borders
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import spread_evenly
from mvlstm.results.update import REFITS, Refit, Update
from mvlstm.table.columns import name_list
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import PartName
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster


FEWEST = 40  # new windows that an update needs, or that intervals are calibrated anew on
HELD_OUT = 0.4  # share of the new times that is held out, at their end
OLD_SHARE = 3  # windows of older rows trained on, for each new one
SLOWER = 0.2  # learning rate, as a share of the fit's
VALID = 0.1  # share of validation rows by default


@dataclass(frozen=True, eq=False)
class NewRows:
    """Windows of a table, by what they are to the model as it was.

    Parameters
    ----------
    old, train, held_out : int array
        Origins of windows whose labels the model knew; of new ones to train on, and held out.
    every : int array
        Of all new ones.
    borders : Borders
        Of the parts after the update.
    rows : int
        New rows.
    first, last : timestamp or int
        Their times.
    """

    old: IntArray
    train: IntArray
    held_out: IntArray
    every: IntArray
    borders: Borders
    rows: int
    first: Any
    last: Any


def update_forecaster(
    model: AbstractForecaster,
    table: pd.DataFrame,
    *,
    refit: Refit = "newest",
    max_epochs: int = 5,
    learning_rate: float | None = None,
) -> None:
    """Bring ``model`` up to date, whole or not at all; see `AbstractForecaster.update`."""
    started = clock.monotonic()
    check_option("refit", refit, REFITS)
    epochs, rate = _epochs(max_epochs), _rate(model, learning_rate)
    frame = model._read(table, "update")
    prepared = model._prepare(frame)
    new = find_new_rows(model, prepared)
    work = copy.copy(model)
    if refit == "full":
        outcome = _train_again(work, prepared, new)
    elif isinstance(work, AbstractNetwork):
        outcome = _train_further(work, prepared, new, epochs, rate)
    else:
        outcome = _fit_anew(work, prepared, new)
    record = Update(
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        first=describe_time(new.first),
        last=describe_time(new.last),
        rows=new.rows,
        refit=refit,
        members=len(work.spread_),
        seconds=clock.monotonic() - started,
        notes=frame.notes,
        **outcome,
    )
    work.updates_ = (*model.updates_, record)
    model.__dict__.update(vars(work))


def find_new_rows(model: AbstractForecaster, prepared: Prepared) -> NewRows:
    """Divide a table's windows into old, new to train on, and new to hold out.

    Series that the fit did not learn from are left out for a network: its scaling knows nothing
    of them, and all their rows stay unseen. Other forecasters are fitted anew, to all series.
    """
    frame, borders, H = prepared.frame, model.borders_, model.horizon
    known_series = _known_series(model, frame)
    after = borders.after(_column(frame.times))[:, 0]
    later = after & known_series
    if not later.any():
        if after.any():
            raise DataError(
                "All rows after the fit are of series that it did not learn from, and an update "
                "does not either. Fit anew."
            )
        raise DataError(
            f"The table has no rows after {describe_time(borders.calibration)}, up to which the "
            "model knows it. Supply newer rows."
        )
    origins = prepared.labelled(model.window, H)
    origins = origins[known_series[origins]]
    times = frame.future_times(origins, H)
    every = borders.after(times).all(axis=1)
    known = (borders.parts(times) != "new").all(axis=1)
    moments = pd.Index(frame.times[later]).unique().sort_values()
    cut = moments[max(0, int(np.ceil((1 - HELD_OUT) * len(moments))) - 1)]
    moved = Borders(borders.start, cut, cut, moments[-1])
    held_out = every & moved.after(times, moved.train).all(axis=1)
    train = every & (moved.parts(times) == "train").all(axis=1)
    return NewRows(
        old=origins[known],
        train=origins[train],
        held_out=origins[held_out],
        every=origins[every],
        borders=moved,
        rows=int(later.sum()),
        first=moments[0],
        last=moments[-1],
    )


def _known_series(model: AbstractForecaster, frame: SeriesFrame) -> BoolArray:
    """Say which rows are of series that the fit learned from; warn of the others."""
    trained = model.preparation_.series
    if frame.panel is None or trained is None or not isinstance(model, AbstractNetwork):
        return np.ones(frame.n_rows, dtype=bool)
    known = np.isin(np.array(frame.panel.names), trained.names)
    rows = known[frame.panel.codes]
    others = [frame.panel.names[code] for code in np.unique(frame.panel.codes[~rows])]
    if others:
        warnings.warn(
            f"The fit had no rows of series {name_list(others)} to learn from, or too few, and the "
            "update leaves them out. Fit anew to have them learned.",
            MVLSTMWarning,
            stacklevel=5,
        )
    return np.asarray(rows)


# --------------------------------------------------------------------------------- the three ways


def _train_further(
    model: AbstractNetwork, prepared: Prepared, new: NewRows, epochs: int, rate: float
) -> dict[str, Any]:
    """Go on from the weights on new windows and a sample of old ones."""
    from mvlstm.methods.network.further_training import train_further

    _require_enough(new, "or train on all rows with refit='full' (--refit full)")
    sample = spread_evenly(new.old, OLD_SHARE * len(new.train))
    problem = _problem(model, prepared, np.concatenate([sample, new.train]), new.held_out)
    before = _errors(model, prepared, new)
    former = model.trained_
    further = train_further(former, problem, model, max_epochs=epochs, learning_rate=rate)
    model.trained_ = further.trained
    after = _errors(model, prepared, new)
    changed = int(further.changed.sum())
    if (after > before).any():  # of all new rows, or of those held out
        model.trained_, after, changed = former, before, 0
    model._find_spread(problem)
    model._summarise(problem)
    _recalibrate(model, problem, new)
    model.borders_ = new.borders
    return {
        "trained": len(problem.origins["train"]),
        "held_out": len(new.held_out),
        "settings": {"epochs": epochs, "learning_rate": rate},
        "changed": changed,
        "rmse_before": _known(before[1]),
        "rmse_after": _known(after[1]),
    }


def _fit_anew(model: AbstractForecaster, prepared: Prepared, new: NewRows) -> dict[str, Any]:
    """Fit the forecaster to all rows, and keep the better of the two on the new ones."""
    _require_enough(new)
    _require_history(model, prepared)
    fresh = clone(model)
    problem = fresh._start(prepared.frame, test=0.0, valid=_valid_share(model, prepared))
    fresh._learn_all(problem)
    judged = replace(new, held_out=np.intersect1d(problem.origins["calibration"], new.every))
    before = _errors(model, prepared, judged)
    after = _errors(fresh, problem.prepared, judged)
    better = not (after > before).any()
    if better:
        fresh.fit_seconds_ = model.fit_seconds_
        model.__dict__.update(vars(fresh))
        held_out = len(problem.origins["calibration"])
    else:
        problem = _problem(model, prepared, new.train, new.held_out)
        _recalibrate(model, problem, new)
        model.borders_ = new.borders
        after, held_out = before, len(new.held_out)
    return {
        "trained": len(problem.origins["train"]),
        "held_out": held_out,
        "settings": {},
        "changed": len(model.spread_) if better else 0,
        "rmse_before": _known(before[1]),
        "rmse_after": _known(after[1]),
    }


def _valid_share(model: AbstractForecaster, prepared: Prepared) -> float:
    """Return the share of validation rows the fit had.

    What updates hold out is short and must not make later fits stop and calibrate on less and
    less: after one the share is at least the default.
    """
    known = model.borders_.parts(_column(prepared.frame.times))[:, 0]
    share = float((known == "validation").sum() / (known != "new").sum())
    return max(share, VALID) if model.updates_ else share


def _train_again(model: AbstractForecaster, prepared: Prepared, new: NewRows) -> dict[str, Any]:
    """Train the members on all rows for the steps found; calibrate the model as it was first."""
    if not isinstance(model, AbstractNetwork):
        raise ParameterError(
            f"refit='full' trains networks again; {type(model).__name__} is none. Use "
            "refit='newest', which fits it to all rows but the newest."
        )
    from mvlstm.methods.network.further_training import train_again, watched

    _require_history(model, prepared)
    every = np.sort(np.concatenate([new.old, new.every]))
    problem = _problem(model, prepared, every, watched(every))
    before = _errors(model, prepared, new, of_all=True)
    if len(new.every) >= FEWEST:
        _recalibrate(model, _problem(model, prepared, every, new.every), new)
    former = model.trained_
    epochs, finishing = _epochs_found(model, new, len(every))
    model.trained_ = train_again(former, problem, model, epochs, finishing)
    after = _errors(model, prepared, new, of_all=True)
    better = not (after > before).any()
    if better:
        model._summarise(problem)  # the spread stays, which the calibration belongs to
    else:
        model.trained_, after = former, before
    last = new.borders.calibration
    model.borders_ = Borders(new.borders.start, last, last, last)
    return {
        "trained": len(every),
        "held_out": 0,
        "settings": {
            "epochs": int((epochs + finishing).max()),
            "learning_rate": float(model.learning_rate),
        },
        "changed": int((model.trained_.flat != former.flat).any(axis=1).sum()),
        "rmse_before": _known(before[1]),
        "rmse_after": _known(after[1]),
    }


# ------------------------------------------------------------------------------------- inner parts


def _problem(
    model: AbstractForecaster, prepared: Prepared, train: IntArray, held_out: IntArray
) -> Problem:
    origins: dict[PartName, IntArray] = {
        "train": train,
        "stop": held_out,
        "calibration": held_out,
        "new": train[:0],
    }
    return Problem(prepared, origins, model.window, model.horizon)


def _recalibrate(model: AbstractForecaster, problem: Problem, new: NewRows) -> None:
    """Calibrate on held-out rows, in such a way that the error on the new rows does not rise.

    The mean of a transformed target depends on the variances. Where new ones make it worse, it is
    corrected by as much as it was; if even that is worse, the calibration stays.
    """
    names = ("spread_", "calibration_", "persistence_", "mean_factor_", "reference_")
    former = {name: getattr(model, name) for name in names}
    before = _errors(model, problem.prepared, new)
    calibrate(model, problem)
    wider = model.calibration_ / former["calibration_"]
    spread = model.spread_.mean(axis=0) / former["spread_"].mean(axis=0)
    factor = former["mean_factor_"]
    for candidate in (model.mean_factor_, factor, factor / wider, factor / wider / spread):
        model.mean_factor_ = candidate
        if not (_errors(model, problem.prepared, new) > before).any():
            return
    model.__dict__.update(former)


def _errors(
    model: AbstractForecaster, prepared: Prepared, new: NewRows, *, of_all: bool = False
) -> FloatArray:
    """Return the RMSE on all new windows and on those held out (or, again, on all).

    NaN where there are no windows.
    """
    if not len(new.every):
        return np.full(2, np.nan)
    forecast = model._forecast_rows(prepared, new.every)
    squared = (forecast.members.mean(axis=0) - forecast.actual) ** 2
    chosen = np.isin(new.every, new.held_out) | of_all
    return np.sqrt([np.nanmean(squared), np.nanmean(squared[chosen])])


def _known(error: float) -> float | None:
    return float(error) if np.isfinite(error) else None


def _epochs_found(model: AbstractNetwork, new: NewRows, windows: int) -> tuple[IntArray, IntArray]:
    """Return for each member the epochs over ``windows`` that make the steps found by the fit."""
    from mvlstm.methods.network.further_training import epochs_over

    if not model.history_.members:
        raise ParameterError(
            "refit='full' needs the number of steps that the fit found, and this model's file "
            "does not tell it. Fit it anew."
        )
    return epochs_over(model, model.n_train_ or len(new.old), windows)


def _require_enough(new: NewRows, further: str = "or fit anew") -> None:
    if len(new.every) < FEWEST or not len(new.held_out) or not len(new.train):
        raise DataError(
            f"{counted(new.rows, 'new row')} (from {describe_time(new.first)}) "
            f"{'gives' if new.rows == 1 else 'give'} {counted(len(new.every), 'window')}; an "
            f"update needs {FEWEST}, to train on the first and judge by the last of them. Wait "
            f"for more rows, {further}."
        )


def _require_history(model: AbstractForecaster, prepared: Prepared) -> None:
    first = prepared.frame.times.min()
    if first > model.borders_.start:
        raise DataError(
            f"The table begins at {describe_time(first)}, but the model was fitted on rows from "
            f"{describe_time(model.borders_.start)}: fitting to all rows needs them. Supply the "
            "whole history, or fit anew on what there is."
        )


def _column(times: pd.Index[Any]) -> NDArray[Any]:
    return np.asarray(times)[:, None]


def _epochs(value: int) -> int:
    check_whole("max_epochs", value, 1)
    return int(value)


def _rate(model: AbstractForecaster, value: float | None) -> float:
    if value is None:
        return float(SLOWER * model.get_params().get("learning_rate", 0.0))
    if not is_number(value) or not 0 < value < np.inf:
        raise ParameterError(f"learning_rate={value!r} must be a positive number.")
    return float(value)
