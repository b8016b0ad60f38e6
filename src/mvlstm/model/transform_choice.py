"""The scale on which a target is modelled, and what that asks of its values."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.problem.moments import Moments, join_steps, most_lags
from mvlstm.problem.predictive import Mixture
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.windows import gather_labels, gather_windows, measured_labels, spread_evenly
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.transforms import IDENTITY, Transform, TransformName
from mvlstm.types import BoolArray, FloatArray, IntArray

TransformChoice = Literal["none", "log1p", "asinh", "auto"]
TRANSFORM_CHOICES: tuple[TransformChoice, ...] = get_args(TransformChoice)

FOLDS = (0.4, 0.6, 0.8, 1.0)  # shares of the training rows: from one to the next, maps are judged
GAIN = 0.02  # share of the error that a transform must take off on average and at the end
MOST_LAGS = 30  # of the maps; more of them change errors, not which transform has the least
MOST_WINDOWS = 8_000  # to learn from, and to judge by
FEWEST = 20  # of either: fewer cannot tell
PENALTY = 10.0  # of the maps, in standardised inputs
NEAR_ZERO = 0.05  # of the median: values below it are near zero
OFTEN = 0.01  # share of the rows from which these are no accident


def choose_transform(
    choice: TransformChoice, frame: SeriesFrame, rows: BoolArray, window: int, horizon: int
) -> tuple[Transform, tuple[str, ...]]:
    """Return the transform a model works with, and a sentence on it if it was chosen here.

    "auto" weighs up log1p where no value is negative, else asinh. It fits linear maps of the latest
    rows on this scale and on the target's own to the first two, three and four fifths of the
    training ``rows`` and judges each on the next fifth, as users see it: by the product of the RMSE
    of means and the MAE of medians, in units of the target. The scale must lower the root of this
    by 2 % on average and in the last. Else a target with values near zero and none below is bounded
    there, which changes nothing but forecasts that cannot be.
    """
    if choice != "auto":
        chosen = _learned(choice, frame, rows)
        check_target(chosen, frame)
        return chosen, ()
    name: TransformName = "asinh" if float(frame.target_values.min()) < 0 else "log1p"
    train, size = frame.rows(rows), (int(window), int(horizon))
    left = [
        _error(name, train, fold, *size) / _error("none", train, fold, *size)
        for fold in pairwise(FOLDS)
    ]
    mean = float(np.exp(np.mean(np.log(left))))
    if not max(mean, left[-1]) <= 1 - GAIN:
        note = (
            f"transform='auto' left '{frame.target}' as it is: {name} does not lower the errors of "
            "linear maps on the training rows enough."
        )
        if not (share := near_zero(frame)):
            return IDENTITY, (note,)
        return IDENTITY.within((0, None)), (
            f"{note} It is never negative, and near zero in {share:.0%} of the rows, so forecasts "
            "stay at or above zero (bounds=[0, None]).",
        )
    return _learned(name, frame, rows), (
        f"transform='auto' took {name} for '{frame.target}': it lowers the errors of linear maps "
        f"on the training rows by {1 - mean:.0%}.",
    )


def near_zero(frame: SeriesFrame) -> float:
    """Return the share of the target's values near zero; 0 if one is below, or hardly any near."""
    own = 0 if frame.panel is None else frame.panel.codes  # each series has units of its own
    table = pd.DataFrame({"target": frame.target_values, "series": own})
    table = table if frame.measured is None else table[frame.measured]
    medians = table.groupby("series")["target"].transform("median")
    if not len(table) or table["target"].min() < 0 or medians.max() <= 0:
        return 0.0
    low = float((table["target"] <= NEAR_ZERO * medians).mean())
    return low if low >= OFTEN else 0.0


def _learned(name: TransformName, frame: SeriesFrame, rows: BoolArray) -> Transform:
    """Return the transform of a name, learned from the rows in which the target was measured."""
    if name != "asinh":
        return Transform(name)
    known = rows if frame.measured is None else rows & frame.measured
    return Transform.asinh(frame.target_values[known if known.any() else rows])


def input_transforms(
    transform: Transform, frame: SeriesFrame, rows: BoolArray
) -> tuple[Transform, ...]:
    """Return the transforms of the inputs: asinh, where the target has it, of what is measured."""
    if transform.name != "asinh":
        return ()
    measured = zip(frame.values[rows, :-1].T, frame.layout.measured[:-1], strict=True)
    return tuple(Transform.asinh(values) if own else IDENTITY for values, own in measured)


def _error(
    name: TransformName, frame: SeriesFrame, fold: tuple[float, float], window: int, horizon: int
) -> float:
    """Return the geometric mean of RMSE and MAE of a linear map on rows of a fold.

    It is learned from the rows before it.
    """
    start, end = (int(share * len(frame.clock)) for share in fold)
    frame = frame.rows(frame.order < end)
    early = frame.order < start
    transform = _learned(name, frame, early)
    ahead = horizon if any(frame.layout.ahead) else 0
    inputs = input_transforms(transform, frame, early)
    preparation = Preparation.of(frame, early, transform, inputs, ahead, least=window + horizon)
    prepared = preparation.apply(frame, window=window)
    lags = most_lags(max(min(window, MOST_LAGS), ahead), prepared.table.shape[1])
    origins = prepared.labelled(max(window, ahead), horizon)
    learned = spread_evenly(origins[early[origins + horizon]], MOST_WINDOWS)
    judged = spread_evenly(origins[~early[origins]], MOST_WINDOWS)
    if len(learned) < FEWEST or len(judged) < FEWEST:
        return np.inf
    part = (learned, prepared.known_labels(learned, horizon))
    moments = Moments.each(prepared.table, lags, part)
    (slope,), (level,) = join_steps([one.path((PENALTY,)) for one in moments])

    def guess(rows: IntArray) -> FloatArray:
        windows = gather_windows(prepared.table, rows, lags).reshape(len(rows), -1)
        return np.asarray(windows @ slope + level)

    scale = prepared.scale(judged, horizon)
    spread = np.nanmean((guess(learned) - part[1]) ** 2, axis=0)
    normal = scale.mixture(Mixture.of_members(guess(judged)[None], spread[None]))
    actual = gather_labels(frame, judged, horizon)
    known = measured_labels(frame, judged, horizon) & np.isfinite(actual)
    middle = transform.inverse(normal.means[..., 0, 0])
    mean = scale.members(guess(judged)[None], normal, np.ones(horizon))[0]
    squares = [metrics.rmse(actual[known], found[known]) for found in (middle, mean)]
    return float(np.sqrt(min(squares) * metrics.mae(actual[known], middle[known])))


def check_target(transform: Transform, frame: SeriesFrame) -> None:
    """Refuse negative values of a target that is modelled as log(1 + y)."""
    if transform.name != "log1p":
        return
    _refuse(
        frame.target_values < 0,
        frame,
        "below zero",
        "it is modelled as log(1 + y), for a target that cannot be negative. Correct these rows, "
        "or fit with transform='asinh' or 'none'.",
    )


def check_bounds(transform: Transform, frame: SeriesFrame) -> None:
    """Refuse values of a target beyond the bounds that it is said to have."""
    ends = [end if np.isfinite(end) else None for end in (transform.low, transform.high)]
    beyond = transform.clip(frame.target_values) != frame.target_values
    advice = f"bounds={ends} says that there are none. Correct these rows, or widen the bounds."
    _refuse(beyond, frame, "beyond its bounds", advice)


def _refuse(wrong: BoolArray, frame: SeriesFrame, where: str, advice: str) -> None:
    """Name the first value of the target that is wrong, if any is."""
    if not wrong.any():
        return
    row = int(wrong.argmax())
    raise DataError(
        f"Target '{frame.target}' has {counted(int(wrong.sum()), 'value')} {where}, the first "
        f"{frame.target_values[row]:g} at {describe_time(frame.times[row])}, but {advice}"
    )
