"""What should be known about a table a model is applied to: far values, old data, an old model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data._columns import name_list
from mvlstm.data._steps import counted, describe_time
from mvlstm.data.frame import SeriesFrame
from mvlstm.errors import DataError, ParameterError
from mvlstm.forecasters.borders import Borders
from mvlstm.forecasters.preparation import Prepared

SHOWN = 4  # columns named in one message


def range_warnings(prepared: Prepared, rows: slice) -> tuple[str, ...]:
    """Say which columns leave the range of the training rows by more than its whole width.

    Columns that are differenced are left out: their level is free to move.

    Parameters
    ----------
    prepared : Prepared
    rows : slice
        The rows that forecasts rest on.
    """
    preparation, frame = prepared.preparation, prepared.frame
    low, high = preparation.low, preparation.high
    several = preparation.series is not None
    scale = np.ones(len(low)) if several else preparation.scaler.scale
    width = np.maximum(high / 2 - low / 2, scale / 2) * 2
    values = prepared.table[rows] if several else frame.values[rows]
    far = (values < low - width) | (values > high + width)
    far &= preparation.orders == 0
    columns = np.flatnonzero(far.any(axis=0))
    if not len(columns):
        return ()
    start = rows.indices(frame.n_rows)[0]
    named = []
    for j in columns[:SHOWN]:
        row = int(np.flatnonzero(far[:, j])[0])
        named.append(
            f"'{frame.columns[j]}' is {values[row, j]:g} at "
            f"{describe_time(frame.times[start + row])} (training: {low[j]:g} to {high[j]:g}"
            f"{', in standard deviations of a series' if several else ''})"
        )
    more = f"; and {len(columns) - SHOWN} more columns" if len(columns) > SHOWN else ""
    count = int(far.any(axis=1).sum())
    return (
        f"{count:,} {'row has' if count == 1 else 'rows have'} values far outside the training "
        f"range: {'; '.join(named)}{more}. Forecasts that rest on them are extrapolations.",
    )


def check_reach(window: int, ahead: int) -> None:
    """Refuse a window too short for all steps ahead, where something is known of them."""
    if window < ahead:
        raise ParameterError(
            f"window={window} is shorter than horizon={ahead}: the windows of what is known ahead "
            "(known=..., calendar=...) end at the last step and would miss the first. Use a "
            f"window of at least {ahead} (--window {ahead})."
        )


def require_ahead(prepared: Prepared, caller: str) -> None:
    """Raise `DataError` if values known ahead are missing after the last row of every series."""
    frame, horizon = prepared.frame, prepared.preparation.ahead
    if prepared.given is None:
        return
    every = frame.last_rows()
    rows = every[~prepared.given[every]]
    if len(rows) < len(every):  # others than these can be forecast
        return
    row = int(rows[0])
    times = pd.Index(frame.future_times(rows[:1], horizon)[0])
    there = 0
    if frame.future is not None:
        there = int((frame.future.segments == frame.segments[row]).sum())
    whose = "" if frame.panel is None else f" of series '{frame.panel.name(row)}'"
    more = f" So are rows of {len(rows) - 1:,} more series." if len(rows) > 1 else ""
    raise DataError(
        f"{caller}() needs {name_list(frame.layout.known)}, known ahead, for the {horizon} "
        f"steps after {describe_time(frame.times[row])}{whose}; missing: "
        f"{describe_time(times[there])} to {describe_time(times[-1])} "
        f"({counted(horizon - there, 'row')}).{more} Add them to the end of the table with the "
        "target left empty, or pass them as future=... (--future FILE)."
    )


def short_warnings(frame: SeriesFrame, rows: NDArray[np.int64]) -> tuple[str, ...]:
    """Name the series, by their last rows, that cannot be forecast."""
    if frame.panel is None or not len(rows):
        return ()
    names = [frame.panel.name(int(row)) for row in rows]
    what = "1 series is" if len(rows) == 1 else f"{len(rows):,} series are"
    ahead = f", or lack the next {name_list(frame.layout.known)}" if frame.layout.known else ""
    return (
        f"{what} left out: too short to be forecast, or shortly after a gap{ahead}: "
        f"{name_list(names)}. Supply more of their rows.",
    )


def age_warnings(times: pd.Index[Any], borders: Borders) -> tuple[str, ...]:
    """Say whether a table ends before the model's own data do, or long after them."""
    last, fitted = times[-1], borders.calibration
    if last < fitted:
        return (
            f"The table ends at {describe_time(last)}, but the model was fitted on rows up to "
            f"{describe_time(fitted)}: the data are stale. Supply the most recent rows.",
        )
    if last - fitted > fitted - borders.start:
        return (
            f"The table ends at {describe_time(last)}, and the model was fitted on rows from "
            f"{describe_time(borders.start)} to {describe_time(fitted)}: it is older than all the "
            "time it learned from. Fit it anew.",
        )
    return ()


def not_finite(members: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows (of M) for which a forecast (K, M, H) is not finite."""
    return np.flatnonzero(~np.isfinite(members).all(axis=(0, 2)))
