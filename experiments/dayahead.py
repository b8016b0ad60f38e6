"""Electricity prices a day ahead: our forecasts next to the published ones, by their protocol.

The last 728 days are forecast one by one at 23:00, both inputs of the day known, and the linear
map is fitted again every week. Run it on the sets in the data folder, or on earlier days of them to
choose by::

    python -m experiments.dayahead epf_np epf_pjm
    python -m experiments.dayahead epf_np --skip 728 --days 364 --set window=192

The files of published forecasts lie next to the prices (``NP-published-forecasts.csv``).
"""

from __future__ import annotations

import argparse
import ast
import time
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

import mvlstm as mv
from mvlstm.datasets import data_folder
from mvlstm.evaluate.backtest import backtest
from mvlstm.results import Forecast
from mvlstm.types import FloatArray

DAYS, HOURS = 728, 24
SETTINGS: dict[str, Any] = {"window": 168, "horizon": HOURS, "verbose": 0}
SETTINGS |= {"calendar": ["hour", "days"], "transform": "asinh"}


def forecasts(
    name: str,
    method: str = "AR",
    *,
    last: int = DAYS,
    skip: int = 0,
    refit: Any = "link",
    **settings: Any,
) -> tuple[FloatArray, FloatArray]:
    """Return prices and a method's medians, (days, 24), of the ``last`` days before ``skip``."""
    found = day_ahead(name, method, last=last, skip=skip, refit=refit, **settings)
    median = np.asarray(found.median, dtype=np.float64)
    return found.actual, median.reshape(found.actual.shape)


def day_ahead(
    name: str,
    method: str = "AR",
    *,
    last: int = DAYS,
    skip: int = 0,
    refit: Any = "link",
    **settings: Any,
) -> Forecast:
    """Forecast the ``last`` days before ``skip``, each at 23:00."""
    data = mv.datasets.load(name)
    table = data.frame.iloc[: len(data.frame) - HOURS * skip]
    model = getattr(mv, method)(**SETTINGS | settings)
    known, options = list(data.info.known), {"every": HOURS, "refit": refit}
    return backtest(model, table, data.target, known=known, test=HOURS * last, **options).forecast


def published(name: str) -> pd.DataFrame:
    """Return prices and published forecasts by hour; empty where there is no file."""
    file = data_folder() / "epf" / f"{name.removeprefix('epf_').upper()}-published-forecasts.csv"
    return pd.read_csv(file, index_col=0) if file.is_file() else pd.DataFrame()


def diebold_mariano(daily: FloatArray, rival: FloatArray | None) -> float:
    """Return p of daily errors being no lower than a rival's, days taken as independent.

    Examples
    --------
    >>> diebold_mariano(np.array([1.0, 2.0, 1.5]), np.array([2.0, 3.5, 2.0])) < 0.01
    True
    """
    gap = np.zeros(0) if rival is None else np.asarray(daily) - np.asarray(rival)
    if not gap.any():
        return float("nan")
    return float(norm.cdf(np.sqrt(len(gap)) * gap.mean() / gap.std(ddof=1)))


def rows(actual: FloatArray, own: dict[str, FloatArray], others: pd.DataFrame) -> pd.DataFrame:
    """Score forecasts (days, 24); p is that of the first being no better, by Diebold and Mariano.

    Its losses are the mean absolute errors of the days, taken as independent, one-sided.
    """
    every = own | {k: v.to_numpy().reshape(actual.shape) for k, v in others.items()}
    daily = {k: np.abs(v - actual).mean(axis=1) for k, v in every.items()}
    first = next(iter(daily.values()))
    table = pd.DataFrame(index=list(every), columns=["MAE", "RMSE", "p"], dtype=float)
    for name, found in every.items():
        rmse = np.sqrt(np.mean((found - actual) ** 2))
        table.loc[name] = [daily[name].mean(), rmse, diebold_mariano(first, daily[name])]
    return table


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def main() -> None:
    """Print a table for each set named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--method", default="AR")
    parser.add_argument("--set", action="append", default=[], help="an argument: window=192")
    parser.add_argument("--refit", default="link")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--skip", type=int, default=0, help="days at the end to leave alone")
    given = parser.parse_args()
    settings = {name: _value(text) for name, text in (one.split("=", 1) for one in given.set)}
    run = {"last": given.days, "skip": given.skip, "refit": given.refit}
    for name in given.names:
        started = time.monotonic()
        actual, own = forecasts(name, given.method, **run, **settings)
        others = pd.DataFrame() if given.skip else published(name).iloc[-actual.size :, 1:]
        print(f"{name}, {len(actual)} days, {time.monotonic() - started:.0f} s")
        print(rows(actual, {given.method: own}, others).round(3).to_string())


if __name__ == "__main__":
    main()
