"""Forecasts without learning, by which scores are measured: the last value, the last cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.explain import find_period
from mvlstm.results import Forecast
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import BoolArray, FloatArray, IntArray

LAST, CYCLE = "persistence", "seasonal"


def find_season(y: FloatArray, step: Any) -> tuple[int, str]:
    """Return the rows of the cycle that fits a series best, and a sentence on it.

    ``step`` is the spacing of the rows: a Timedelta, DateOffset, whole number or None.
    """
    longest = len(y) // 3
    candidates = {p for p in (*natural_cycles(step), find_period(y)) if 1 < p <= longest}
    if not candidates:
        return 1, "No cycle was found; the forecasts are those of persistence."
    errors = {p: float(np.mean((y[p:] - y[:-p]) ** 2)) for p in sorted(candidates)}
    best = min(errors, key=lambda p: errors[p])
    return best, f"The cycle of least error on the training rows has {best} rows."


def cycle_lags(period: int, horizon: int) -> IntArray:
    """Return the rows from the origin back to the last cycle's value for each step ahead, (H,)."""
    steps = np.arange(1, horizon + 1)
    return np.asarray(period * -(-steps // period) - steps)


def last_cycle(
    origins: IntArray, segments: IntArray, period: int, horizon: int
) -> tuple[IntArray, BoolArray]:
    """Return the rows (M, H) of the last cycle at each step ahead, and whether they are known."""
    rows = origins[:, None] - cycle_lags(period, horizon)
    inside = np.maximum(rows, 0)
    return inside, (rows >= 0) & (segments[inside] == segments[origins][:, None])


@dataclass(frozen=True, eq=False)
class Naive:
    """What M forecasts are measured by, all of it from the rows up to the first of them.

    ``absolute`` and ``squared`` are the mean sizes of the changes of each one's series from one row
    to the next, NaN where the table does not reach back.
    """

    values: Mapping[str, FloatArray]  # (M, H) of each naive method
    spread: FloatArray  # (M,) mean squared change of its series over a cycle
    absolute: FloatArray  # (M,)
    squared: FloatArray  # (M,)
    several: bool  # whether the forecasts are of several series

    @classmethod
    def of(cls, forecast: Forecast, frame: SeriesFrame) -> Naive:
        """Forecast the rows of a forecast, which was made from ``frame``, without learning."""
        rows, y = frame.find(forecast.origin, forecast.series), frame.target_values
        past = frame.order <= frame.order[rows].min()
        codes = np.zeros(len(y), dtype=np.intp) if frame.panel is None else frame.panel.codes
        longest = slice(None) if frame.panel is None else frame.panel.longest()
        period, _ = find_season(y[longest][past[longest]], frame.step)
        last = np.broadcast_to(y[rows][:, None], forecast.actual.shape)
        values = {LAST: last}
        if period > 1:
            cycle, known = last_cycle(rows, frame.segments, period, forecast.horizon)
            values[CYCLE] = np.where(known, y[cycle], last)
        spread, absolute, squared = (
            _by_series(_changes(y, past, frame.segments, p) ** power, codes)[codes[rows]]
            for p, power in ((period, 2), (1, 1), (1, 2))
        )
        return cls(values, spread, absolute, squared, frame.panel is not None)

    def take(self, rows: Any) -> Naive:
        """Return what some of the forecasts are measured by."""
        values = {name: value[rows] for name, value in self.values.items()}
        sizes = (self.spread[rows], self.absolute[rows], self.squared[rows])
        return Naive(values, *sizes, self.several)


def _changes(y: FloatArray, past: BoolArray, segments: IntArray, period: int) -> FloatArray:
    """Return the size of each row's change over a period, NaN where it is not known."""
    found = np.full(len(y), np.nan)
    inside = past[period:] & (segments[period:] == segments[: len(y) - period])
    found[period:][inside] = np.abs(y[period:] - y[: len(y) - period])[inside]
    return found


def _by_series(sizes: FloatArray, codes: IntArray) -> FloatArray:
    """Return the mean of each series' known sizes, NaN where it has none or is always zero."""
    mean = pd.Series(sizes).groupby(codes).mean().to_numpy(dtype=np.float64)
    return np.where(mean > 0, mean, np.nan)
