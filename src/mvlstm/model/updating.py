"""A fitted model brought up to date with rows that came after those it knew.

The newest of these rows are held out. A network goes on from its weights on the others, with a
sample of older rows added so that it forgets little, and each member is changed only if that
lowers its error on the held-out rows; the intervals are then calibrated on these. Other
forecasters are fitted anew with their settings. If the error on the new rows is not lower than
that of the model as it was, it stays as it was, but for its intervals.

With ``refit="full"`` nothing is held out: the members are trained again, from their seeds, on all
rows and for as many steps as the fit found best. Intervals then rest on the errors that the model
as it was made on the new rows, which it had not seen; fewer than 40 of them cannot tell, and the
intervals stay as they were.

With ``refit="link"`` only the linear map is fitted again, to all rows, with the lags and penalties
that the fit chose: the map of `AR`, or the link that a network corrects. This is cheap enough for
every week or day. Nothing is held out; intervals that follow outcomes go on from where these
have led them; static ones stay.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError, ParameterError, check_option, check_whole, is_number, warn
from mvlstm.model.adaptive import carried_shape
from mvlstm.model.calibration import Calibration, calibrate
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import fit
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import spread_evenly
from mvlstm.results.update import REFITS, Refit, Update
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import PartName
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray, FloatArray, IntArray

WATCHED = 256  # windows that a run of fixed length is watched on
FEWEST = 40  # new windows that an update needs, or that intervals are calibrated anew on
HELD_OUT = 0.4  # share of the new times that is held out, at their end
OLD_SHARE = 3  # windows of older rows trained on, for each new one
VALID = 0.1  # share of validation rows by default
Record = dict[str, Any]  # what an `Update` says of the training


@dataclass(frozen=True, eq=False)
class NewRows:
    """Origins of a table's windows, by what their labels are to the model as it was."""

    old: IntArray  # known to it
    train: IntArray  # new ones, to train on
    held_out: IntArray
    every: IntArray  # all new ones
    whole: IntArray  # old and new, and those with steps of both
    parts: PartTimes  # after the update
    rows: int
    first: Any  # time of the new rows
    last: Any


def update(
    model: Any,
    fitted: Fitted,
    table: Any,
    *,
    refit: Refit = "newest",
    max_epochs: int = 5,
    learning_rate: float | None = None,
) -> Fitted:
    """Return a model brought up to date; see `AbstractForecaster.update`."""
    started = clock.monotonic()
    check_option("refit", refit, REFITS)
    check_whole("max_epochs", max_epochs, 1)
    epochs, rate = int(max_epochs), _rate(model, learning_rate)
    frame = fitted.read(table, "update")
    prepared = fitted.prepare(frame)
    network = hasattr(model, "train_further")
    new = find_new_rows(fitted, prepared, every_series=not network)
    if refit == "full" and not network:
        raise ParameterError(
            f"refit='full' trains networks again; {fitted.name} is not a network. Use "
            "refit='newest', which fits it to all rows but the newest."
        )
    if refit == "full":
        found, record = _train_again(model, fitted, prepared, new)
    elif refit == "link":
        found, record = _refit_link(model, fitted, prepared, new)
    elif network:
        found, record = _train_further(model, fitted, prepared, new, epochs, rate)
    else:
        found, record = _fit_anew(model, fitted, prepared, new)
    done = Update(
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        first=describe_time(new.first),
        last=describe_time(new.last),
        rows=new.rows,
        refit=refit,
        members=found.members,
        seconds=clock.monotonic() - started,
        notes=frame.notes,
        **record,
    )
    return replace(found, updates=(*fitted.updates, done))


def find_new_rows(fitted: Fitted, prepared: Prepared, *, every_series: bool) -> NewRows:
    """Divide a table's windows into old, new to train on, and new to hold out.

    Series that the fit did not learn from are left out for a network: its scaling knows nothing
    of them, and all their rows stay unseen. Other forecasters are fitted anew, to ``every_series``.
    """
    frame, parts, H = prepared.frame, fitted.parts, fitted.horizon
    known_series = _known_series(fitted, frame, every_series)
    after = parts.after(np.asarray(frame.times))
    later = after & known_series
    if not later.any():
        if after.any():
            raise DataError(
                "All rows after the fit are of series that it did not learn from, and an update "
                "does not either. Fit anew."
            )
        raise DataError(
            f"The table has no rows after {describe_time(parts.calibration)}, up to which the "
            "model knows it. Supply newer rows."
        )
    origins = prepared.labelled(fitted.window, H)
    origins = origins[known_series[origins]]
    times = frame.future_times(origins, H)
    every = parts.after(times).all(axis=1)
    known = (parts.names(times) != "new").all(axis=1)
    moments = pd.Index(frame.times[later]).unique().sort_values()
    cut = moments[max(0, int(np.ceil((1 - HELD_OUT) * len(moments))) - 1)]
    moved = PartTimes(parts.start, cut, cut, moments[-1])
    return NewRows(
        old=origins[known],
        train=origins[every & (moved.names(times) == "train").all(axis=1)],
        held_out=origins[every & moved.after(times, cut).all(axis=1)],
        every=origins[every],
        whole=origins,
        parts=moved,
        rows=int(later.sum()),
        first=moments[0],
        last=moments[-1],
    )


def new_windows(fitted: Fitted, table: Any) -> int:
    """Count the windows of a table whose labels are all new; an update needs `FEWEST`."""
    prepared = fitted.prepare(fitted.read(table, "update"))
    origins = prepared.labelled(fitted.window, fitted.horizon)
    times = prepared.frame.future_times(origins, fitted.horizon)
    return int(fitted.parts.after(times).all(axis=1).sum()) if len(origins) else 0


def _known_series(fitted: Fitted, frame: SeriesFrame, every_series: bool) -> BoolArray:
    """Say which rows are of series that the fit learned from; warn of the others."""
    trained = fitted.preparation.series
    if frame.panel is None or trained is None or every_series:
        return np.ones(frame.n_rows, dtype=bool)
    rows = np.isin(frame.panel.names, trained.names)[frame.panel.codes]
    others = [frame.panel.names[code] for code in np.unique(frame.panel.codes[~rows])]
    if others:
        warn(
            f"The fit had no rows of series {name_list(others)} to learn from, or too few, and the "
            "update leaves them out. Fit anew to have them learned."
        )
    return np.asarray(rows)


# --------------------------------------------------------------------------------- the three ways


def _train_further(
    model: Any, fitted: Fitted, prepared: Prepared, new: NewRows, epochs: int, rate: float
) -> tuple[Fitted, Record]:
    """Go on from the weights on new windows and a sample of old ones."""
    _require_enough(new, "or train on all rows with refit='full'")
    sample = spread_evenly(new.old, OLD_SHARE * len(new.train))
    problem = _problem(fitted, prepared, np.concatenate([sample, new.train]), new.held_out)
    before = _errors(fitted, prepared, new)
    learned, changed = model.train_further(
        fitted.learned, problem, max_epochs=epochs, learning_rate=rate
    )
    after = _errors(fitted.with_learned(learned), prepared, new)
    if (after > before).any():  # of all new rows, or of those held out
        learned, after, changed = fitted.learned, before, 0
    settled = fitted.with_learned(learned.judged(problem).summarised(problem))
    settings = {"epochs": epochs, "learning_rate": rate}
    record = _record(problem, len(new.held_out), settings, changed, before, after)
    return replace(_recalibrated(settled, problem, new), parts=new.parts), record


def _fit_anew(
    model: Any, fitted: Fitted, prepared: Prepared, new: NewRows
) -> tuple[Fitted, Record]:
    """Fit the forecaster to all rows, and keep the better of the two on the new ones."""
    _require_enough(new)
    _require_history(fitted, prepared)
    valid = _valid_share(fitted, prepared)
    fresh, problem = fit(clone(model), prepared.frame, test=0.0, valid=valid)
    held_out = problem.origins["calibration"]
    judged = replace(new, held_out=np.intersect1d(held_out, new.every))
    before = _errors(fitted, prepared, judged)
    after = _errors(fresh, problem.prepared, judged)
    if not (after > before).any():
        record = _record(problem, len(held_out), {}, fresh.members, before, after)
        return replace(fresh, seconds=fitted.seconds), record
    problem = _problem(fitted, prepared, new.train, new.held_out)
    record = _record(problem, len(new.held_out), {}, 0, before, before)
    return replace(_recalibrated(fitted, problem, new), parts=new.parts), record


def _refit_link(
    model: Any, fitted: Fitted, prepared: Prepared, new: NewRows
) -> tuple[Fitted, Record]:
    """Fit the linear map to all windows; intervals go on from where outcomes have led them."""
    if not hasattr(model, "refit_link"):
        raise ParameterError(
            f"refit='link' fits a linear map again, and {fitted.name} has none. Use "
            "refit='newest', or another forecaster."
        )
    _require_history(fitted, prepared)
    problem = _problem(fitted, prepared, new.whole, new.whole[:0])
    found = fitted.with_learned(model.refit_link(fitted.learned, problem))
    before, after = (_errors(one, prepared, new, of_all=True) for one in (fitted, found))
    last = new.parts.calibration
    parts = PartTimes(new.parts.start, last, last, last)
    found = replace(found, parts=parts, calibration=_carried(fitted, prepared, new))
    return found, _record(problem, 0, {}, fitted.members, before, after)


def _carried(fitted: Fitted, prepared: Prepared, new: NewRows) -> Calibration:
    """Return the calibration, its shape moved by the errors that the model made on the new rows."""
    former = fitted.calibration
    if not fitted.adaptive or not len(new.every) or former.shape is None:
        return former
    forecast = fitted.forecast(prepared, new.every)
    return replace(former, shape=carried_shape(forecast, fitted.parts, former.shape))


def _valid_share(fitted: Fitted, prepared: Prepared) -> float:
    """Return the share of validation rows the fit had.

    What updates hold out is short and must not make later fits stop and calibrate on less and
    less: after one the share is at least the default.
    """
    known = fitted.parts.names(np.asarray(prepared.frame.times))
    share = float((known == "validation").sum() / (known != "new").sum())
    return max(share, VALID) if fitted.updates else share


def _train_again(
    model: Any, fitted: Fitted, prepared: Prepared, new: NewRows
) -> tuple[Fitted, Record]:
    """Train the members on all rows for the steps found; calibrate the model as it was first."""
    _require_history(fitted, prepared)
    every = np.sort(np.concatenate([new.old, new.every]))
    problem = _problem(fitted, prepared, every, watched(every))
    before = _errors(fitted, prepared, new, of_all=True)
    settled, changed = fitted, 0
    if len(new.every) >= FEWEST:
        settled = _recalibrated(fitted, _problem(fitted, prepared, every, new.every), new)
    if not fitted.history.members:
        raise ParameterError(
            "refit='full' needs the number of steps that the fit found, and this model's file "
            "does not tell it. Fit it anew."
        )
    had = fitted.n_train or len(new.old)
    epochs, finishing = model.epochs_over(fitted.history, had, len(every))
    learned = model.train_again(fitted.learned, problem, epochs, finishing)
    after = _errors(settled.with_learned(learned), prepared, new, of_all=True)
    if (after > before).any():
        after = before
    else:  # the spread stays, which the calibration belongs to
        changed = learned.changed_from(fitted.learned)
        settled = settled.with_learned(learned.summarised(problem))
    rate = float(model.training.learning_rate)
    settings = {"epochs": int((epochs + finishing).max()), "learning_rate": rate}
    last = new.parts.calibration
    parts = PartTimes(new.parts.start, last, last, last)
    return replace(settled, parts=parts), _record(problem, 0, settings, changed, before, after)


# ------------------------------------------------------------------------------------- inner parts


def watched(origins: IntArray) -> IntArray:
    """Choose a few windows, spread evenly, for a run in which nothing is held out."""
    return origins[:: max(1, len(origins) // WATCHED)]


def _problem(fitted: Fitted, prepared: Prepared, train: IntArray, held_out: IntArray) -> Problem:
    origins: dict[PartName, IntArray] = {"train": train, "new": train[:0]}
    return Problem(
        prepared,
        origins | {"stop": held_out, "calibration": held_out},
        fitted.window,
        fitted.horizon,
    )


def _record(
    problem: Problem,
    held_out: int,
    settings: dict[str, Any],
    changed: int,
    before: FloatArray,
    after: FloatArray,
) -> Record:
    """Return what an `Update` says of the training; errors as `_errors` returns them."""
    rmse = [float(errors[1]) if np.isfinite(errors[1]) else None for errors in (before, after)]
    return {
        "trained": len(problem.origins["train"]),
        "held_out": held_out,
        "settings": settings,
        "changed": changed,
        "rmse_before": rmse[0],
        "rmse_after": rmse[1],
    }


def _recalibrated(fitted: Fitted, problem: Problem, new: NewRows) -> Fitted:
    """Calibrate on held-out rows, in such a way that the error on the new rows does not rise.

    The mean of a transformed target depends on the variances. Where new ones make it worse, it is
    corrected by as much as it was; if even that is worse, the calibration stays.
    """
    former = fitted.calibration
    before = _errors(fitted, problem.prepared, new)
    found, notes = calibrate(fitted.learned, problem)
    fitted = replace(fitted, notes=tuple(dict.fromkeys((*fitted.notes, *notes))))
    wider = found.factors / former.factors
    spread = found.spread.mean(axis=0) / former.spread.mean(axis=0)
    factor = former.mean_factor
    for candidate in (found.mean_factor, factor, factor / wider, factor / wider / spread):
        tried = replace(fitted, calibration=replace(found, mean_factor=candidate))
        if not (_errors(tried, problem.prepared, new) > before).any():
            return tried
    return fitted


def _errors(
    fitted: Fitted, prepared: Prepared, new: NewRows, *, of_all: bool = False
) -> FloatArray:
    """Return the RMSE on all new windows and on those held out (or, again, on all).

    NaN where there are no windows.
    """
    if not len(new.every):
        return np.full(2, np.nan)
    forecast = fitted.forecast(prepared, new.every)
    squared = (forecast.members.mean(axis=0) - forecast.actual) ** 2
    chosen = np.isin(new.every, new.held_out) | of_all
    return np.sqrt([np.nanmean(squared), np.nanmean(squared[chosen])])


def _require_enough(new: NewRows, further: str = "or fit anew") -> None:
    if len(new.every) < FEWEST or not len(new.held_out) or not len(new.train):
        raise DataError(
            f"{counted(new.rows, 'new row')} (from {describe_time(new.first)}) "
            f"{'gives' if new.rows == 1 else 'give'} {counted(len(new.every), 'window')}; an "
            f"update needs {FEWEST}, to train on the first and judge by the last of them. Wait "
            f"for more rows, {further}."
        )


def _require_history(fitted: Fitted, prepared: Prepared) -> None:
    first = prepared.frame.times.min()
    if first > fitted.parts.start:
        raise DataError(
            f"The table begins at {describe_time(first)}, but the model was fitted on rows from "
            f"{describe_time(fitted.parts.start)}: fitting to all rows needs them. Supply the "
            "whole history, or fit anew on what there is."
        )


def _rate(model: Any, value: float | None) -> float:
    if value is None:
        training = getattr(model, "training", None)  # of a network
        return 0.0 if training is None else float(training.later_rate)
    if not is_number(value) or not 0 < value < np.inf:
        raise ParameterError(f"learning_rate={value!r} must be a positive number.")
    return float(value)
