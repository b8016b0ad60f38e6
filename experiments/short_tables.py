"""Coverage of the next value's 90 % interval, by how few rows the table has.

Each table is a new draw of one process, so that what the interval covers of the next value is
known, and not counted: the mean over tables needs no more than a few hundred of them. Seeds below
1000 are those that the rules were chosen on. Run from the repository's root::

    python -m experiments.short_tables AR 200 --first 1000
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, t

import mvlstm as mv
from mvlstm.types import FloatArray

ROWS = (25, 30, 40, 60, 80, 100, 150, 200, 250)
PROCESSES = ("ar", "tails", "driven")
SETTINGS = {"MVLSTM": {"hidden_size": 4, "members": 2, "max_epochs": 10}}


class Drawn(NamedTuple):
    """A table and what is known of its next value."""

    table: pd.DataFrame
    mean: float
    error: object  # a distribution of scipy


def draw(process: str, rows: int, seed: int) -> Drawn:
    """Draw a table: y = 0.9 y(-1) + e, with normal or t(4) errors, or driven by x besides."""
    rng = np.random.default_rng(seed)
    error = t(4) if process == "tails" else norm()
    shocks = error.rvs(size=rows + 50, random_state=rng)
    x = rng.normal(size=rows + 50)
    drive = 1.0 if process == "driven" else 0.0
    y = np.zeros(rows + 50)
    for k in range(1, len(y)):
        y[k] = 0.9 * y[k - 1] + drive * x[k - 1] + shocks[k]
    table = pd.DataFrame({"x": x, "y": y})[50:].reset_index(drop=True)
    return Drawn(table, 0.9 * y[-1] + drive * x[-1], error)


def covered(method: str, process: str, rows: int, seed: int) -> tuple[float, float, bool]:
    """Return what the interval covers, its width in standard deviations, and whether it warns."""
    table, mean, error = draw(process, rows, seed)
    settings = SETTINGS.get(method, {})
    model = getattr(mv, method)(window=min(5, rows // 5), verbose=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(table, "y").forecast(table)
    low, high = (float(np.ravel(bound)[0]) for bound in found.interval(0.9))
    ideal = error.ppf(0.95) - error.ppf(0.05)  # type: ignore[attr-defined]
    inside = error.cdf(high - mean) - error.cdf(low - mean)  # type: ignore[attr-defined]
    return inside, (high - low) / ideal, any("rest on" in words for words in found.warnings)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("method")
    parser.add_argument("tables", type=int)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--process", choices=PROCESSES, default="ar")
    given = parser.parse_args()
    print("rows  coverage  error  width  warned")
    for rows in ROWS:
        seeds = range(given.first, given.first + given.tables)
        found: FloatArray = np.array([covered(given.method, given.process, rows, s) for s in seeds])
        coverage, width, warned = found.mean(axis=0)
        error = found[:, 0].std() / np.sqrt(len(found))
        print(f"{rows:4d}  {coverage:.3f}  {error:.3f}  {width:.2f}  {warned:.2f}", flush=True)


if __name__ == "__main__":
    main()
