"""Dividing rows in time into train, validation and new, and windows by the part of their label."""

from __future__ import annotations

import numpy as np

from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.windows import check_window, origin_rows
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import HELD_OUT, PartName, Parts, chronological
from mvlstm.types import IntArray

WORDS: dict[PartName, str] = {
    "train": "training",
    "stop": "earlier validation",
    "calibration": "later validation",
    "new": "test",
}
SHORT_PARTS: dict[PartName, tuple[str, str]] = {
    "stop": ("Of the validation rows the earlier half has", "valid"),
    "calibration": ("Of the validation rows the later half has", "valid"),
    "new": ("Of the rows left unseen there are", "test"),
}


def origins_by_part(
    origins: IntArray, horizon: int, parts: Parts, order: IntArray | None = None
) -> dict[PartName, IntArray]:
    """Put every window in the part in which all its labels lie.

    The labels of origin i are rows i+1 .. i+horizon. A window's inputs may reach back over a
    border (they are past when the forecast is made); one whose labels straddle a border belongs
    to no part, so no label is used twice.

    ``order`` (rows,), optional, is the place of each row's time among all, which the parts then
    divide in place of the rows: those of several series end at the same times.
    """
    result: dict[PartName, IntArray] = {}
    names: tuple[PartName, ...] = ("train", "stop", "calibration", "new")
    for name in names:
        rows = parts.rows(name)
        if order is not None:
            inside = (order[origins + 1] >= rows.start) & (order[origins + horizon] < rows.stop)
            result[name] = origins[inside]
            continue
        begin, end = np.searchsorted(origins, [rows.start - 1, rows.stop - horizon])
        result[name] = origins[begin : max(begin, end)]  # a view: origins increase
    return result


def split_windows(
    frame: SeriesFrame, *, window: int, horizon: int = 1, test: float = 0.0, valid: float = 0.1
) -> tuple[Parts, dict[PartName, IntArray]]:
    """Divide a frame's rows and windows, and refuse a frame too short for it.

    Every part that was asked for gets at least one window: train always, stop and calibration
    unless ``valid=0``, new unless ``test=0``; else a `DataError` says what is too short.
    """
    check_window(window, horizon)
    n_times = len(frame.clock)
    parts = chronological(n_times, test=test, valid=valid)
    order = None if frame.panel is None else frame.order
    windows = origins_by_part(origin_rows(frame, window, horizon), horizon, parts, order)
    empty = [name for name in _asked(test, valid) if not len(windows[name])]
    if not empty:
        return parts, windows
    one_stretch = frame.segments[0] == frame.segments[-1]
    least = _least_rows(window, horizon, test, valid, above=n_times if one_stretch else 0)
    settings = f"window={window} with horizon={horizon}, test={test:g} and valid={valid:g}"
    if one_stretch or n_times < least:
        what = "rows" if frame.panel is None else "times"
        raise DataError(
            f"{n_times:,} {what} are too few: {settings} needs at least {least:,}. "
            f"{_short_part(parts, empty, window, horizon)} or supply more history.",
            remedy=_shorter(n_times, window, horizon, test, valid),
        )
    if frame.panel is not None:
        _check_longest_series(frame.panel.codes, frame.layout.series, window, horizon)
    longest = _longest_stretch(frame, parts.rows(empty[0]))
    raise DataError(
        f"No window ends in the {WORDS[empty[0]]} rows: {settings} needs {window + horizon} rows "
        f"without a gap, and the longest stretch that ends in them has {longest:,}. "
        "Shorten the window, fill the gaps with gaps='insert' and a larger fill_limit=..., or use "
        "gaps='close'.",
        remedy={"gaps": "close"},
    )


def _shorter(n_times: int, window: int, horizon: int, test: float, valid: float) -> dict[str, int]:
    """Return a shorter window with which the rows suffice, if halving it leads to one."""
    while window > 1:
        window //= 2
        if _least_rows(window, horizon, test, valid, above=0) <= n_times:
            return {"window": window}
    return {}


def _longest_stretch(frame: SeriesFrame, part: slice) -> int:
    """Return the most rows without a gap that end in a part."""
    order, segments = frame.order, frame.segments
    inside = np.unique(segments[(order >= part.start) & (order < part.stop)])
    rows = np.isin(segments, inside) & (order < part.stop)
    return int(np.bincount(segments[rows]).max(initial=0))


def _check_longest_series(codes: IntArray, column: str | None, window: int, horizon: int) -> None:
    """Say that no series is long enough for a window, where that is so."""
    rows = np.unique(codes, return_counts=True)[1]
    if rows.max() < window + horizon:
        raise DataError(
            f"No series is long enough: window={window} with horizon={horizon} needs "
            f"{window + horizon} rows, and the longest of the {len(rows):,} series that column "
            f"'{column}' names has {int(rows.max()):,}. Shorten the window, or name another "
            "column with series=... instead."
        )


def _short_part(parts: Parts, empty: list[PartName], window: int, horizon: int) -> str:
    """Say which part has too few rows for a window, and what can be done about it."""
    sizes = {part: parts.rows(part).stop - parts.rows(part).start for part in empty}
    short = [part for part, size in sizes.items() if size < horizon]
    if not short or "train" in short:
        return f"Shorten window={window}"
    (words, argument), size = SHORT_PARTS[short[0]], sizes[short[0]]
    shorter = ", a shorter horizon=..." if horizon > 1 else ""
    shorter += ", a shorter window=..." if "train" in empty else ""
    return (
        f"{words} {size}, fewer than the {horizon} of a forecast: use a larger share, "
        f"{argument}=...{shorter}"
    )


def _asked(test: float, valid: float) -> list[PartName]:
    return ["train", *(HELD_OUT if valid > 0 else ()), *(("new",) if test > 0 else ())]


STEADY = 200  # numbers of rows in turn that fit: rounding spoils one in a hundred or more
MOST_ROWS = 10**15  # beyond this the search for enough rows ends


def _least_rows(window: int, horizon: int, test: float, valid: float, *, above: int) -> int:
    """Find a small number of rows, more than ``above``, from which on every part gets a window.

    Rounding makes some numbers fail though a smaller one works, hence the plain search first.
    """

    def enough(n_rows: int) -> bool:
        try:
            parts = chronological(n_rows, test=test, valid=valid)
        except ParameterError:
            return False
        rows = [parts.rows(name) for name in _asked(test, valid)]
        return all(max(window, part.start) + horizon <= part.stop for part in rows)

    low = high = max(window + horizon, above + 1)
    fits = [enough(n_rows) for n_rows in range(low, low + 1000)]
    last = max((k for k, fine in enumerate(fits) if not fine), default=-1)
    if last < len(fits) - STEADY:
        return low + last + 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_ROWS:
            raise ParameterError(
                f"test={test:g} and valid={valid:g} leave a part with too few rows for "
                f"horizon={horizon}, however long the table is. Raise test and valid."
            )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high
