"""How intervals should follow the data: methods compared on stored and cheap forecasts.

Cells are (name, step ahead or "day") with point forecasts and one standard deviation for each step,
found on earlier rows; the methods see the normal scores of the errors. Simulated series break, or
have errors 24 steps ahead that overlap. Chosen on `CHOSEN` and on seeds below 1000, confirmed on
the rest. Run from the repository's root::

    MVLSTM_DATA=... python -m experiments.intervals --choose
    MVLSTM_DATA=... python -m experiments.intervals
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.special import ndtri

from experiments.rivals import METHODS, Method, adaptive, static
from mvlstm.datasets import load
from mvlstm.datasets.loading import data_folder
from mvlstm.recalibration import LEVELS, SCORES, Arrivals
from mvlstm.types import BoolArray, FloatArray, IntArray

CHOSEN = ("PJM LEAR day", "PJM ridge 1", "pm25 ridge 1", "pm25 ridge 24", "NP ridge 24")
LEAST_OF_A_MONTH = 300
AFTER = (0, 25, 50, 100, 200)  # outcomes since a break
TABLES = {"pm25": 24, "energy": 24, "sml2010": 24, "etth2": 48, "NP": 48, "PJM": 48}  # lags
GRID = (np.arange(39) + 1.0) / 40.0


class Cell(NamedTuple):
    """Forecasts of rows after those of the fit."""

    mean: FloatArray  # (M, H)
    sd: FloatArray
    actual: FloatArray
    origins: IntArray  # (M,) rows
    months: FloatArray  # (M,)


# ------------------------------------------------------------------------------------------- cells


def published(market: str, method: str) -> Cell:
    """Return the stored day-ahead forecasts of a market; the first quarter calibrates."""
    path = data_folder() / "epf" / f"{market}-published-forecasts.csv"
    table = pd.read_csv(path, index_col=0, parse_dates=True)
    actual, mean = (table[c].to_numpy().reshape(-1, 24) for c in ("Real price", method))
    first = len(actual) // 4
    sd = _spread((actual - mean)[:first])
    rows = slice(first, None)
    months = pd.DatetimeIndex(table.index)[::24].to_period("M").astype(np.int64).to_numpy()
    return Cell(mean[rows], sd, actual[rows], 24 * np.arange(len(actual))[rows], months[rows])


def ridge(name: str, horizon: int, *, every: int = 1) -> Cell:
    """Forecast a table's last rows by ridge on the lags; a tenth of the rows before calibrates."""
    values, target, months, ahead = _table(name)
    n, lags = len(values), TABLES[name]
    test = 728 * 24 if name in ("NP", "PJM") else n // 5
    first, train = n - test, n - test - n // 10
    scaled = (values - values[:train].mean(axis=0)) / (values[:train].std(axis=0) + 1e-9)
    origins = np.arange(lags - 1, n - horizon)
    origins = origins[(origins + 1) % every == 0]
    inputs = [scaled[origins - lag] for lag in range(lags)]
    inputs += [scaled[origins + step][:, ahead] for step in range(1, horizon + 1)]
    x = np.concatenate([*inputs, np.ones((len(origins), 1))], axis=1)
    y = np.stack([values[origins + step, target] for step in range(1, horizon + 1)], axis=1)
    fit = origins + horizon < train
    weights = np.linalg.solve(x[fit].T @ x[fit] + 10.0 * np.eye(x.shape[1]), x[fit].T @ y[fit])
    mean, new = x @ weights, origins >= first - 1
    sd = _spread((y - mean)[(origins >= train) & (origins + horizon < first)])
    return Cell(mean[new], sd, y[new], origins[new], months[origins[new] + 1])


def _spread(errors: FloatArray) -> FloatArray:
    """Return the deviation (H,) with which 90 % of the errors lie in a normal's interval."""
    return np.asarray(np.quantile(np.abs(errors), 0.9, axis=0) / ndtri(0.95))


def _table(name: str) -> tuple[FloatArray, int, IntArray, list[int]]:
    """Return values, the target's column, each row's month, and columns known ahead."""
    folder = {"NP": "epf", "PJM": "epf", "etth2": "ett"}.get(name)
    if folder is None:
        data = load(name)
        table, target = data.frame.ffill().bfill(), data.target
    else:
        file = "ETTh2.csv" if name == "etth2" else f"{name}.csv"
        table = pd.read_csv(Path(data_folder()) / folder / file, parse_dates=["date"])
        table, target = table.set_index("date"), "OT"
    table = table.select_dtypes("number")
    columns = list(table.columns)
    months = pd.DatetimeIndex(table.index).to_period("M").astype(np.int64).to_numpy()
    ahead = [k for k, c in enumerate(columns) if c != target] if folder == "epf" else []
    return table.to_numpy(dtype=float), columns.index(target), months, ahead


def cells(*, choose: bool) -> dict[str, Callable[[], Cell]]:
    """Return what makes each cell, those to choose by or those to confirm on."""
    found: dict[str, Callable[[], Cell]] = {}
    for market in ("NP", "PJM"):
        for method in ("DNN", "LEAR"):
            found[f"{market} {method} day"] = partial(published, market, f"{method} Ensemble")
        found[f"{market} ridge day"] = partial(ridge, market, 24, every=24)
    for name in TABLES:
        for horizon in (1, 24):
            found[f"{name} ridge {horizon}"] = partial(ridge, name, horizon)
    return {name: make for name, make in found.items() if (name in CHOSEN) == choose}


# ------------------------------------------------------------------------------------------ scores


def _begun(origins: IntArray, horizon: int) -> tuple[Arrivals, FloatArray]:
    """Say what is known at rows of one series, and where quantiles lie at first: a normal's."""
    steps = range(1, horizon + 1)
    known = np.stack([np.searchsorted(origins, origins - h, side="right") for h in steps], axis=1)
    arrivals = Arrivals(np.array([0, len(origins)]), np.arange(len(origins)), known)
    return arrivals, np.tile(SCORES, (horizon, 1))


def scored(cell: Cell, method: Method) -> dict[str, float]:
    """Score a method on a cell: coverages, worst month, interval score and CRPS."""
    scores = (cell.actual - cell.mean) / cell.sd
    knots = method(scores, *_begun(cell.origins, cell.mean.shape[1]))
    values = cell.mean[..., None] + cell.sd[..., None] * knots
    y, at = cell.actual, {round(float(p), 3): values[..., k] for k, p in enumerate(LEVELS)}
    found: dict[str, float] = {}
    for level, tail in ((50, 0.25), (80, 0.1), (90, 0.05), (95, 0.025)):
        inside = (at[tail] <= y) & (y <= at[1 - tail])
        found[f"{level} %"] = float(inside.mean())
        if level == 90:
            found["worst month"] = _worst(inside, cell.months)
    low, high = at[0.05], at[0.95]
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    found["interval score"] = float(np.mean(high - low + 20.0 * missed))
    found["crps"] = float(np.mean([_pinball(values, y, float(p)) for p in GRID]) * 2.0)
    return found


def _worst(inside: BoolArray, months: FloatArray) -> float:
    by = pd.Series(inside.mean(axis=1)).groupby(months).agg(["mean", "size"])
    return float(by.loc[by["size"] * inside.shape[1] >= LEAST_OF_A_MONTH, "mean"].min())


def _pinball(values: FloatArray, y: FloatArray, p: float) -> float:
    """Return the loss of the quantile ``p``, interpolated between the levels."""
    score = float(ndtri(p))
    right = int(np.clip(np.searchsorted(SCORES, score), 1, len(SCORES) - 1))
    share = (score - SCORES[right - 1]) / (SCORES[right] - SCORES[right - 1])
    missed = y - ((1 - share) * values[..., right - 1] + share * values[..., right])
    return float(np.mean(np.maximum(p * missed, (p - 1.0) * missed)))


def breaks(seeds: range, rows: int = 500) -> pd.DataFrame:
    """Simulate breaks after 500 scores: coverage by outcomes since, and width over the oracle's.

    The width is that from the 200th outcome after the break on, as is the last coverage.
    """
    t = np.arange(rows)
    found = {}
    for name, method in METHODS.items():
        for kind in ("none", "variance doubled", "mean shifted", "trend begun"):
            covered, width = [], []
            for seed in seeds:
                scores = np.random.default_rng(seed).normal(size=2 * rows)
                factor = 2.0**0.5 if kind == "variance doubled" else 1.0
                moved = {"mean shifted": 2.0 + 0 * t, "trend begun": 0.01 * t}.get(kind, 0.0 * t)
                scores[rows:] = scores[rows:] * factor + moved
                knots = method(scores[:, None], *_begun(np.arange(2 * rows), 1))[rows:, 0]
                low, high = knots[:, 2], knots[:, 8]
                held = (low <= scores[rows:]) & (scores[rows:] <= high)
                covered.append([held[a:b].mean() for a, b in pairwise((*AFTER, rows))])
                late = np.mean((high - low)[AFTER[-1] :])
                width.append(late / (2 * ndtri(0.95) * factor))
            since = dict(zip((f"from {n}" for n in AFTER), np.mean(covered, axis=0), strict=True))
            found[name, kind] = {**since, "width": np.mean(width)}
    return pd.DataFrame(found).T


def overlapping(seeds: range, rows: int = 3_000) -> pd.DataFrame:
    """Simulate errors 1 to 24 steps ahead; interval score and CRPS as shares of the static."""
    steps, found = np.arange(1, 25), {}
    for kind in ("steady", "heavy tails", "too wide", "wandering spread", "moved"):
        each = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            shocks = rng.normal(size=rows + 24)
            if kind == "heavy tails":
                shocks = rng.standard_t(4, size=rows + 24) / 2.0**0.5
            elif kind == "wandering spread":  # its logarithm remembers 300 rows and spreads by 0.5
                shocks *= np.exp(
                    lfilter([600.0**-0.5], [1.0, 1.0 / 300 - 1.0], rng.normal(size=rows + 24))
                )
            total = np.cumsum(np.r_[0.0, shocks])
            errors = np.stack([(total[h:] - total[:-h])[:rows] / h**0.5 for h in steps], axis=1)
            errors /= 1.35 if kind == "too wide" else 1.0
            errors[rows // 3 :] += 0.7 if kind == "moved" else 0.0
            months = (np.arange(rows) // 720).astype(np.float64)
            cell = Cell(0.0 * errors, np.ones(24), errors, np.arange(rows), months)
            each.append((scored(cell, static), scored(cell, adaptive)))
        base, own = (pd.DataFrame(some).mean() for some in zip(*each, strict=True))
        shares = ["interval score", "crps"]
        found[kind] = pd.concat([own.drop(shares), own[shares] / base[shares]])
    return pd.DataFrame(found).T


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true", help="the cells the method was chosen by")
    choose = parser.parse_args().choose
    rows = {}
    for name, make in cells(choose=choose).items():
        cell = make()
        for method, function in METHODS.items():
            rows[name, method] = scored(cell, function)
    table = pd.DataFrame(rows).T
    for score in ("interval score", "crps"):  # as a share of the static one's
        base = table[score].xs("static", level=1)
        table[score] /= base.reindex(table.index.get_level_values(0)).to_numpy()
    print(table.round(3).to_string())
    print(table.groupby(level=1).mean().round(3).to_string())
    first = 0 if choose else 1000
    print(breaks(range(first, first + 50)).round(3).to_string())
    print(overlapping(range(first, first + 20)).round(3).to_string())


if __name__ == "__main__":
    main()
