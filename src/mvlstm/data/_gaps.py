"""Uneven spacing of the rows: refuse it, close it up, or number the stretches between gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._steps import (
    Step,
    describe_distance,
    describe_step,
    describe_time,
    lower_median,
    spacing,
)
from mvlstm.errors import DataError


def check_spacing(times: pd.Index, step: Step, gaps: str, caller: str) -> None:
    """Refuse a table sampled at another rate than the one the model was fitted on."""
    if len(times) < 3:
        return
    distances, unit = spacing(times, step)
    middle = lower_median(distances)
    if gaps == "close":
        other = middle * 2 <= unit or middle >= unit * 2
    else:
        other = not (distances == unit).any()
    if other:
        raise DataError(
            f"{caller}() received rows {describe_distance(middle, step)} apart, but fit() saw "
            f"rows {describe_step(step)} apart. Resample the table to that step, or fit a model "
            "on data of this one."
        )


def find_segments(
    times: pd.Index, step: Step | None, gaps: str, *, dropped: bool
) -> tuple[NDArray[np.int64], list[str]]:
    """Give every stretch without a gap a number, or refuse gaps."""
    segments = np.zeros(len(times), dtype=np.int64)
    if step is None or len(times) < 2:
        return segments, []
    distances, unit = spacing(times, step)
    uneven = distances != unit
    count = int(uneven.sum())
    if not count:
        return segments, []
    if gaps == "error":
        raise DataError(_gaps_message(times, step, distances, uneven, dropped=dropped))
    if gaps == "close":
        note = f"Closed {count:,} gaps: rows on both sides count as consecutive."
        return segments, [note]
    np.cumsum(uneven, out=segments[1:])
    return segments, [f"No window crosses the {count:,} gaps between the rows."]


def _gaps_message(
    times: pd.Index,
    step: Step,
    distances: NDArray[np.int64],
    uneven: NDArray[np.bool_],
    *,
    dropped: bool,
) -> str:
    row = int(uneven.argmax())
    count = int(uneven.sum())
    if isinstance(times, pd.DatetimeIndex):
        between = f"{describe_time(times[row])} and {describe_time(times[row + 1])}"
    else:
        between = f"{times[row]} and {times[row + 1]}"
    cause = " (dropping rows with missing values opens gaps)" if dropped else ""
    return (
        f"The rows are not evenly spaced{cause}: most are {describe_step(step)} apart, but "
        f"{count:,} of {len(distances):,} steps are not, the first between {between} "
        f"({describe_distance(int(distances[row]), step)}, row {row}). Use gaps='close' "
        "(--gaps close) to take the rows as consecutive, or gaps='respect' (--gaps respect) to "
        "let no window cross a gap."
    )
