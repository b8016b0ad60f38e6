"""Counts on a log scale, and a model updated on new rows: what is asked for, measured.

    MVLSTM_DATA=../shared/data python benchmarks/life.py
        --part counts|pm25|update|update-pm25|all [--members 3] [--epochs 15] [--seeds 5]

``counts`` fits synthetic counts from several seeds, ``pm25`` the air of Beijing, with the target as
it is and as log(1 + y): coverage, lowest end of an interval, scores. ``update`` fits 10,000 rows
of synthetic data and updates on 500 more; ``update-pm25`` fits all but the last 500 rows of the
air's. Both print the time beside that of the fit, and the error on the 500 rows before and after.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv

NEW = 500


def settings(arguments: argparse.Namespace, **changes: Any) -> dict[str, Any]:
    """Return the settings of a model small enough for two cores."""
    shared = {"members": arguments.members, "max_epochs": arguments.epochs, "batch_size": 128}
    return shared | {"hidden_size": 10, "verbose": 0} | changes


def verdict(claim: str, holds: bool) -> None:
    """Print whether a claim holds."""
    print(f"{'holds' if holds else 'FAILS'}: {claim}", flush=True)


def count_table(n: int, seed: int) -> pd.DataFrame:
    """Return hourly counts whose level follows x, the hour and its own past, with bursts."""
    rng = np.random.default_rng(seed)
    x, z = np.zeros(n), np.zeros(n)
    for i in range(1, n):
        x[i] = 0.9 * x[i - 1] + 0.3 * rng.normal()
        z[i] = 0.6 * z[i - 1] + 0.5 * x[i - 1] + 0.25 * rng.normal()
    level = 1.5 + 0.8 * np.sin(2 * np.pi * np.arange(n) / 24) + z
    times = pd.date_range("2020-01-01", periods=n, freq="h")
    return pd.DataFrame({"x": x, "y": rng.poisson(np.exp(level)).astype(float)}, index=times)


def scored(table: pd.DataFrame, target: str, **options: Any) -> tuple[pd.Series, float]:
    """Fit with a fifth of the rows left unseen; return its scores and the lowest interval end."""
    model = mv.MVLSTM(**options).fit(table, target, test=0.2, valid=0.2)
    forecast = model.predict(table)
    return model.evaluate(table).scores.iloc[0], float(forecast.interval(0.9)[0].min())


def counts(arguments: argparse.Namespace) -> None:
    """Synthetic counts from several seeds."""
    found = []
    for seed in range(arguments.seeds):
        table = count_table(8_000, seed)
        for transform in ("none", "log1p"):
            options = settings(arguments, window=12, seed=seed, transform=transform)
            scores, low = scored(table, "y", **options)
            found.append({"seed": seed, "transform": transform, "lowest": low, **scores})
            print(pd.DataFrame(found[-1:]).round(4).to_string(index=False, header=False))
    log = pd.DataFrame(found).query("transform == 'log1p'")
    print(pd.DataFrame(found).groupby("transform").mean().round(4).to_string())
    verdict(f"no interval below zero: lowest {log['lowest'].min():g}", log["lowest"].min() >= 0)
    low, high = log["coverage"].min(), log["coverage"].max()
    verdict(f"coverage {low:.3f} to {high:.3f}, within 0.87 to 0.93", 0.87 <= low <= high <= 0.93)


def air() -> pd.DataFrame:
    """Return Beijing's air without its gaps."""
    return mv.datasets.load("pm25").frame.dropna()


def pm25(arguments: argparse.Namespace) -> None:
    """PM2.5, which is never negative and skewed."""
    for transform in ("none", "log1p", "auto"):
        options = settings(arguments, window=10, gaps="close", transform=transform)
        scores, low = scored(air(), "pm2.5", **options)
        print(f"{transform}: lowest {low:.3f}, {scores.round(4).to_dict()}", flush=True)
        if transform == "log1p":
            verdict(f"no interval below zero: lowest {low:g}", low >= 0)
            cover = scores["coverage"]
            verdict(f"coverage {cover:.3f}, within 0.87 to 0.93", 0.87 <= cover <= 0.93)


def updated(table: pd.DataFrame, target: str, **options: Any) -> None:
    """Fit all but the last 500 rows, update on these, and compare."""
    started = time.perf_counter()
    model = mv.MVLSTM(**options).fit(table.iloc[:-NEW], target)
    fit_seconds = time.perf_counter() - started
    before = error(model, table)
    started = time.perf_counter()
    model.update(table)
    seconds = time.perf_counter() - started
    after, share = error(model, table), seconds / fit_seconds
    print(f"  {model.updates_[-1]}", flush=True)
    verdict(f"{seconds:.1f} s, less than a tenth of {fit_seconds:.1f} s ({share:.3f})", share < 0.1)
    verdict(f"RMSE on the {NEW} rows {after:.4f}, not above {before:.4f}", after <= before)


def error(model: mv.MVLSTM, table: pd.DataFrame) -> float:
    """Return the RMSE on the last 500 rows."""
    forecast = model.predict(table.iloc[-NEW - model.window :])
    assert len(forecast) == NEW
    return float(np.sqrt(np.mean((forecast.members.mean(axis=0) - forecast.actual) ** 2)))


def update(arguments: argparse.Namespace) -> None:
    """Update on 500 rows after 10,000 of synthetic data."""
    table = mv.datasets.load("synthetic", n=10_000 + NEW).frame
    updated(table, "y", **settings(arguments, window=10))


def update_pm25(arguments: argparse.Namespace) -> None:
    """Update on the last 500 hours of Beijing's air."""
    updated(air(), "pm2.5", **settings(arguments, window=10, gaps="close"))


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "counts": counts,
    "update": update,
    "pm25": pm25,
    "update-pm25": update_pm25,
}


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    for name in PARTS if arguments.part == "all" else [arguments.part]:
        print(f"{name}:", flush=True)
        PARTS[name](arguments)


if __name__ == "__main__":
    main()
