"""Whether a target is modelled as it is or as log(1 + y), and what that asks of its values."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import BoolArray, FloatArray, IntArray

TransformChoice = Literal["none", "log1p", "auto"]
TRANSFORM_CHOICES: tuple[TransformChoice, ...] = get_args(TransformChoice)

SKEWED = 1.0  # skewness above which a target counts as skewed
UNEVEN = 2.0  # times that moves after high values exceed those after low ones
GAIN = 0.5  # share of either that may be left under log1p for it to be worth while


def choose_transform(
    choice: TransformChoice, frame: SeriesFrame, rows: BoolArray
) -> tuple[Transform, tuple[str, ...]]:
    """Return the transform a model works with, and a sentence on it if it was chosen here.

    "auto" takes log1p if no value is negative and log1p helps clearly on the training rows:
    either the skewness is above 1 and at most half of it is left, or the mean move after values
    above the median is more than twice that after the others and at most half of this ratio's
    logarithm is left. Each of several series is first brought to mean 0 and deviation 1, so that
    their different levels do not count. Neither do values that were filled in, nor moves over gaps.

    ``rows`` are those that the choice is made on, for training; others only matter if negative.
    """
    if choice == "none":
        return IDENTITY, ()
    log = Transform("log1p")
    if choice == "log1p":
        check_target(log, frame)
        return log, ()
    if float(frame.target_values.min()) < 0:
        return IDENTITY, (_none(frame, "has negative values"),)
    y = frame.target_values[rows]
    if frame.measured is not None:
        y = np.where(frame.measured[rows], y, np.nan)
    z, within = log.forward(y), np.diff(frame.segments[rows]) == 0
    if frame.panel is not None:
        codes = frame.panel.take(rows).codes
        y, z = _by_series(y, codes), _by_series(z, codes)
    skew, skew_left = _skewness(y), abs(_skewness(z))
    if skew > SKEWED and skew_left <= GAIN * skew:
        return log, (
            f"transform='auto' took log1p for '{frame.target}': its skewness of {skew:.2g} "
            f"becomes {_skewness(z):.2g}.",
        )
    ratio, ratio_left = _unevenness(y, y, within), _unevenness(y, z, within)
    if ratio > np.log(UNEVEN) and abs(ratio_left) <= GAIN * ratio:
        return log, (
            f"transform='auto' took log1p for '{frame.target}': its moves after high values are "
            f"{np.exp(ratio):.2g} times those after low ones, {np.exp(ratio_left):.2g} times on "
            "that scale.",
        )
    return IDENTITY, (_none(frame, "is not skewed or uneven enough for log1p to help"),)


def check_target(transform: Transform, frame: SeriesFrame) -> None:
    """Refuse negative values of a target that is modelled as log(1 + y)."""
    if not transform:
        return
    wrong = np.flatnonzero(frame.target_values < 0)
    if not len(wrong):
        return
    row = int(wrong[0])
    what = "1 value" if len(wrong) == 1 else f"{len(wrong):,} values"
    raise DataError(
        f"Target '{frame.target}' has {what} below zero, the first {frame.target_values[row]:g} "
        f"at {describe_time(frame.times[row])}, but it is modelled as log(1 + y), for a target "
        "that cannot be negative. Correct these rows, or fit with transform='none'."
    )


def _none(frame: SeriesFrame, why: str) -> str:
    return f"transform='auto' left '{frame.target}' as it is: it {why}."


def _skewness(values: FloatArray) -> float:
    """Return the skewness of values that are not NaN."""
    known = values[~np.isnan(values)]
    centred = known - known.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean((centred / spread) ** 3)) if spread > 0 else 0.0


def _by_series(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return values less the mean of their series, in its deviations; 0 where it is constant."""
    by = pd.Series(values).groupby(codes)
    centred = values - by.transform("mean").to_numpy()
    spread = by.transform("std", ddof=0).to_numpy()
    return np.asarray(np.divide(centred, spread, out=0 * centred, where=spread > 0))


def _unevenness(level: FloatArray, values: FloatArray, within: BoolArray) -> float:
    """Return the log of the mean move after high levels over that after low ones; 0 if unclear.

    Moves that are not ``within`` a segment, or from or to NaN, do not count.
    """
    moves = np.abs(np.diff(values))
    counted = within & ~np.isnan(moves)
    high, moves = (level[:-1] > np.nanmedian(level))[counted], moves[counted]
    if high.all() or not high.any():
        return 0.0
    above, below = float(moves[high].mean()), float(moves[~high].mean())
    return float(np.log(above / below)) if above > 0 and below > 0 else 0.0
