"""Windows of a series as row numbers: nothing is copied before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mvlstm.errors import check_whole
from mvlstm.table.frame import SeriesFrame
from mvlstm.types import BoolArray, FloatArray, IntArray


def check_window(window: int, horizon: int = 1) -> None:
    """Raise `ParameterError` unless ``window`` and ``horizon`` are whole and large enough."""
    check_whole("window", window, 2)
    check_whole("horizon", horizon, 1)


def spread_evenly(rows: IntArray, count: int) -> IntArray:
    """Choose at most ``count`` rows, the first and the last among them.

    Examples
    --------
    >>> spread_evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    few = min(count, len(rows))
    return rows[np.linspace(0, len(rows) - 1, few).astype(np.int64)]


def origin_rows(frame: SeriesFrame, window: int, horizon: int = 1) -> IntArray:
    """Row numbers at which a forecast can be made, increasing.

    Row i is an origin if the rows i-window+1 .. i+horizon lie in one segment.
    """
    check_window(window, horizon)
    return origins_in(frame.segments, window, horizon)


def origins_in(segments: IntArray, before: int, after: int) -> IntArray:
    """Rows with ``before`` rows up to themselves and ``after`` rows ahead in their segment."""
    reach = int(before) + int(after)  # numpy's may overflow
    if len(segments) < reach:
        return np.empty(0, dtype=np.int64)
    inside = segments[: len(segments) - reach + 1] == segments[reach - 1 :]
    return np.flatnonzero(inside) + (int(before) - 1)


def longest_stretch(segments: IntArray) -> slice:
    """Return the rows of the longest segment.

    Examples
    --------
    >>> longest_stretch(np.array([0, 0, 1, 1, 1, 2]))
    slice(2, 5, None)
    """
    borders = np.flatnonzero(np.diff(segments, prepend=segments[0] - 1, append=segments[-1] + 1))
    longest = int(np.argmax(np.diff(borders)))
    return slice(int(borders[longest]), int(borders[longest + 1]))


def gather_windows(values: NDArray[Any], origins: IntArray, window: int) -> NDArray[Any]:
    """Copy the windows that end at ``origins``, (len(origins), window, columns), and only these."""
    if len(origins) == 0:
        return np.empty((0, window, values.shape[1]), dtype=values.dtype)
    every = sliding_window_view(values, (int(window), values.shape[1]))[:, 0]  # no copy
    return every[np.asarray(origins) - int(window) + 1]


def iterate_windows(
    values: NDArray[Any], origins: IntArray, window: int, *, chunk: int = 4096
) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """Yield ``(origins, windows)`` in chunks, so that memory stays bounded."""
    for start in range(0, len(origins), chunk):
        part = origins[start : start + chunk]
        yield part, gather_windows(values, part, window)


def gather_labels(frame: SeriesFrame, origins: IntArray, horizon: int) -> FloatArray:
    """Return the target 1 .. horizon steps after each origin, (len(origins), horizon).

    Steps beyond the last row, or beyond the origin's segment, are NaN.
    """
    rows = _steps(origins, horizon)
    inside = np.minimum(rows, frame.n_rows - 1)
    same = frame.segments[inside] == frame.segments[np.asarray(origins, dtype=np.int64)][:, None]
    return np.where((rows < frame.n_rows) & same, frame.target_values[inside], np.nan)


def measured_labels(frame: SeriesFrame, origins: IntArray, horizon: int) -> BoolArray:
    """Say which of the labels (len(origins), horizon) were measured, and not filled in."""
    if frame.measured is None:
        return np.ones((len(origins), int(horizon)), dtype=bool)
    rows = _steps(origins, horizon)
    return np.asarray(frame.measured[np.minimum(rows, frame.n_rows - 1)])


def _steps(origins: IntArray, horizon: int) -> IntArray:
    return np.asarray(origins, dtype=np.int64)[:, None] + np.arange(1, int(horizon) + 1)
