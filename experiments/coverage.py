r"""Whether forecasters' intervals hold on unseen rows: those of the fit, and those that follow.

A cell is a table and a protocol: steps ahead (``pm25 24``), a price a day ahead from 23:00
(``epf_np day``), or that by the protocol of the suite ``epf``, whose linear maps are fitted again
every week (``epf_np weekly``). Run from the repository's root::

    MVLSTM_DATA=... python -m experiments.coverage
    MVLSTM_DATA=... python -m experiments.coverage --method MVLSTM --set members=2 \
        --set effort=quick "pm25 1" "etth2 24"

``--rivals`` scores other methods of the literature on the same forecasts too.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import mvlstm as mv
from experiments.dayahead import DAYS, HOURS, day_ahead
from experiments.rivals import METHODS, Method
from mvlstm.model.adaptive import adapted_stream, arrivals_of, static_scores_of
from mvlstm.recalibration import ScoreMap
from mvlstm.results import Forecast
from mvlstm.results.distribution import Later
from mvlstm.types import BoolArray

TABLES = ("pm25", "sml2010", "etth2", "energy")
PRICES = ("epf_np", "epf_pjm")
CELLS = [f"{name} {steps}" for name in TABLES for steps in (1, 24)]
CELLS += [f"{name} {protocol}" for name in PRICES for protocol in ("day", "weekly", "1", "24")]
PRICE_WINDOW = 168
LEVELS = (0.5, 0.8, 0.9, 0.95)
LEAST_OF_A_MONTH = 300  # forecasts
PATHS = 200  # by which sums over steps are judged
MOST_SUMS = 2_000  # origins of them


def static_forecast(cell: str, method: str, **settings: Any) -> Forecast:
    """Fit a forecaster to a cell; return its forecasts of unseen rows as calibrated by the fit."""
    name, protocol = cell.split()
    if protocol == "weekly":
        return day_ahead(name, method, calibration="static", **settings)
    data = mv.datasets.load(name)
    priced, daily = name in PRICES, protocol == "day"
    given = {"window": PRICE_WINDOW if priced else 30, "missing": "fill", "gaps": "respect"}
    given["horizon"] = HOURS if daily else int(protocol)
    model = getattr(mv, method)(verbose=0, **given | settings)
    known = {"known": list(data.info.known)} if priced else {}
    test = HOURS * DAYS if daily else 0.2
    model.fit(data.frame, data.target, test=test, **known)
    forecast: Forecast = replace(model.predict(data.frame), knots=None)
    chosen = (forecast.part == "new").all(axis=1)
    if daily:
        chosen &= pd.DatetimeIndex(forecast.origin).hour == HOURS - 1
    return forecast.take(np.flatnonzero(chosen))


def scored(forecast: Forecast, *, paths: bool = True) -> dict[str, float]:
    """Score intervals of several levels, the distribution, and joint paths if asked for."""
    y = forecast.actual
    known, found = np.isfinite(y), {}
    for level in LEVELS:
        low, high = (x.to_numpy().reshape(y.shape) for x in forecast.interval(level))
        inside = (low <= y) & (y <= high)
        found[f"{100 * level:g} %"] = float(inside[known].mean())
        if level == 0.9:
            found["worst month"] = _worst(inside[known], forecast.time[known])
            missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
            found["interval score"] = float((high - low + 20.0 * missed)[known].mean())
    found["crps"] = float(np.nanmean(forecast.crps()))
    if paths and forecast.horizon > 1:
        every = max(1, len(forecast) // MOST_SUMS)
        some = forecast.take(slice(0, None, every))
        found["sum 90 %"] = some.score_paths(n=PATHS)["sum_coverage"]
        apart = replace(some, dependence=None, tied=None).score_paths(n=PATHS)
        found["sum, independent"] = apart["sum_coverage"]
    return found


def _worst(inside: BoolArray, times: NDArray[Any]) -> float:
    """Return the least share of a calendar month."""
    months = pd.DatetimeIndex(times).to_period("M").astype(np.int64)
    by = pd.Series(inside).groupby(months).agg(["mean", "size"])
    return float(by.loc[by["size"] >= LEAST_OF_A_MONTH, "mean"].min())


def followed(forecast: Forecast, method: Method) -> Forecast:
    """Let the intervals of one series follow the outcomes by another method."""
    order, arrivals = arrivals_of(forecast)
    assert forecast.shape is not None and (np.diff(order) == 1).all()
    scores = static_scores_of(forecast, np.isfinite(forecast.actual))
    values = method(scores, arrivals, forecast.shape)
    return replace(forecast, knots=Later(None, ScoreMap.of(values)))


def rows(forecast: Forecast, *, rivals: bool = False) -> pd.DataFrame:
    """Score the intervals of the fit and those that follow; scores as shares of the former's."""
    table = {"static": scored(forecast), "adaptive": scored(adapted_stream([forecast]))}
    for name, method in METHODS.items():
        if rivals and name not in table:
            table[name] = scored(followed(forecast, method), paths=False)
    for score in ("interval score", "crps"):
        base = table["static"][score]
        for found in table.values():
            found[score] /= base
    return pd.DataFrame(table).T


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", default=CELLS)
    parser.add_argument("--method", default="AR")
    parser.add_argument("--set", action="append", default=[], help="an argument: window=48")
    parser.add_argument("--rivals", action="store_true", help="score other methods too")
    given = parser.parse_args(arguments)
    settings = {name: _value(text) for name, text in (one.split("=", 1) for one in given.set)}
    every = {}
    for cell in given.cells:
        started = time.process_time()
        table = rows(static_forecast(cell, given.method, **settings), rivals=given.rivals)
        every[cell] = table
        print(f"\n{cell}, {given.method}, {time.process_time() - started:.0f} s of processor time")
        print(table.round(3).to_string(), flush=True)
    mean = pd.concat(every).groupby(level=1, sort=False).mean()
    print(f"\nmean of {len(every)} cells\n{mean.round(3).to_string()}")


if __name__ == "__main__":
    main()
