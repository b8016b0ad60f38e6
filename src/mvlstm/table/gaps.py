"""Uneven spacing of the rows: refuse it, close it up, or number the stretches between gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.table.panel import Panel
from mvlstm.table.spacing import (
    Step,
    describe_distance,
    describe_step,
    describe_time,
    lower_median,
    spacing,
)
from mvlstm.types import IntArray

FEWEST = 5  # distances that tell the step of a series


def check_spacing(
    times: pd.Index, step: Step, gaps: str, caller: str, panel: Panel | None = None
) -> None:
    """Refuse a table sampled at another rate than the one the model was fitted on."""
    distances, unit = spacing(times, step)
    if panel is not None:
        if gaps == "close":
            check_series_steps(times, step, panel)
        distances = distances[~panel.borders]
    if len(distances) < 2:
        return
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


def check_series_steps(times: pd.Index, step: Step, panel: Panel) -> None:
    """Refuse a series whose rows are never one step apart: one model has one step for all.

    Closing its gaps would date its forecasts wrongly, and respecting them leaves it no window.
    """
    distances, unit = spacing(times, step)
    inner = ~panel.borders
    distances, codes = distances[inner], panel.codes[1:][inner]
    count = len(panel.names)
    fitting = np.bincount(codes[distances == unit], minlength=count)
    for code in np.flatnonzero((np.bincount(codes, minlength=count) >= FEWEST) & (fitting == 0)):
        middle = lower_median(distances[codes == code])
        if middle * 2 <= unit or middle >= unit * 2:
            raise DataError(
                f"The rows of series '{panel.names[code]}' are {describe_distance(middle, step)} "
                f"apart, and the step of the model is {describe_step(step)}. Resample all series "
                "to one step, leave this one out, or fit a model of its own to it."
            )


def find_segments(
    times: pd.Index,
    step: Step | None,
    gaps: str,
    *,
    dropped: bool,
    fitting: bool,
    panel: Panel | None = None,
) -> tuple[IntArray, list[str]]:
    """Give every stretch without a gap a number, or refuse gaps.

    ``step`` is the distance rows should have. Each series begins a segment of its own. Whether
    rows were ``dropped``, and options can still be chosen (``fitting``), is for messages.
    """
    segments = np.zeros(len(times), dtype=np.int64)
    if panel is not None:
        segments[:] = panel.codes
    if step is None or len(times) < 2:
        return segments, []
    distances, unit = spacing(times, step)
    uneven = distances != unit
    if panel is not None:
        uneven &= ~panel.borders
    count = int(uneven.sum())
    if not count:
        return segments, []
    if gaps == "error":
        row = int(uneven.argmax())
        place = f"row {row}" if panel is None else f"series '{panel.name(row)}'"
        advice = (
            "Use gaps='close' to take the rows as consecutive, or gaps='respect' to let no window "
            "cross a gap."
            if fitting
            else f"The model was fitted with gaps='error': supply rows {describe_step(step)} "
            "apart, or fit again with gaps='close' or gaps='respect'."
        )
        cause = " (dropping rows with missing values opens gaps)" if dropped else ""
        raise DataError(
            f"The rows are not evenly spaced{cause}: the step is {describe_step(step)}, but "
            f"{count:,} of {len(distances):,} {'differs' if count == 1 else 'differ'}, first "
            f"between {describe_time(times[row])} and {describe_time(times[row + 1])} "
            f"({describe_distance(int(distances[row]), step)}, {place}). {advice}"
        )
    if gaps == "close":
        note = f"Closed {counted(count, 'gap')}: rows on both sides count as consecutive."
        return segments, [note]
    new = uneven if panel is None else uneven | panel.borders
    segments = np.concatenate([[0], np.cumsum(new)])
    return segments, [f"No window crosses the {counted(count, 'gap')} between the rows."]
