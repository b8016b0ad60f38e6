"""Coverage as time goes on, with the band that chance explains."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm.results._tables import plain
from mvlstm.results.forecast import Forecast

OVER = 200  # times that a rolling coverage is of, at most a third of all
FEWEST = 60  # times that can tell
MOST_SHOWN = 100  # rows of the table for a person, or a program that only looks
BEYOND = 2.6  # standard errors that chance exceeds once in a hundred times


def rolling_coverage(forecast: Forecast, level: float = 0.9) -> pd.DataFrame:
    """Return the share of values held over the last times: time, coverage, low, high, state.

    Values of one time, of all steps and series that end there, count as one. ``low`` and ``high``
    are the band in which the share lies 99 times in a hundred if intervals hold what they promise,
    for outcomes that depend on one another as these do; ``state`` is "narrow" below it, "wide"
    above, else "fine". There are no rows for fewer than 60 times.
    """
    shape, known = forecast.actual.shape, np.isfinite(forecast.actual)
    low, high = (x.to_numpy().reshape(shape) for x in forecast.interval(level))
    held = pd.Series(((low <= forecast.actual) & (forecast.actual <= high))[known].astype(float))
    by_time = held.groupby(forecast.time[known]).mean().sort_index()
    if len(by_time) < FEWEST:
        return pd.DataFrame(columns=["time", "coverage", "low", "high", "state"])
    over = min(OVER, len(by_time) // 3)
    share = by_time.rolling(over).mean().dropna()
    variance = metrics.variance_of_mean(by_time, horizon=forecast.horizon) * len(by_time) / over
    band = BEYOND * max(variance, level * (1.0 - level) / over / len(held) * len(by_time)) ** 0.5
    state = np.select([share < level - band, share > level + band], ["narrow", "wide"], "fine")
    return pd.DataFrame(
        {
            "time": share.index,
            "coverage": share.to_numpy(),
            "low": level - band,
            "high": min(1.0, level + band),
            "state": state,
        }
    )


def spread_rows(table: pd.DataFrame, most: int = MOST_SHOWN) -> pd.DataFrame:
    """Return at most this many rows, evenly apart, the last among them."""
    every = -(-len(table) // most) if len(table) else 1
    return table.iloc[::-1].iloc[::every].iloc[::-1].reset_index(drop=True)


def coverage_in_words(table: pd.DataFrame) -> str:
    """Say whether the latest 90 % intervals are too narrow or too wide, and since when.

    Examples
    --------
    >>> table = pd.DataFrame({"time": [1, 2, 3], "coverage": [0.9, 0.7, 0.6],
    ...                       "state": ["fine", "narrow", "narrow"]})
    >>> coverage_in_words(table)
    'The 90 % intervals have been too narrow since 2: lately they held 60 % of the values.'
    """
    if table.empty:
        return "Whether the 90 % intervals hold cannot be told from so few times."
    state, latest = table["state"].iloc[-1], table["coverage"].iloc[-1]
    if state == "fine":
        return (
            f"The 90 % intervals hold what they promise: lately {100 * latest:.0f} % of the values."
        )
    since = table["time"][table["state"].ne(state)[::-1].cummax()[::-1].eq(False)].iloc[0]
    return (
        f"The 90 % intervals have been too {state} since {plain(since)}: lately they held "
        f"{100 * latest:.0f} % of the values."
    )
