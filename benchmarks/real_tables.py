"""What categories, the calendar, several series and a transform of the target are worth.

    MVLSTM_DATA=../shared/data python benchmarks/real_tables.py --part pm25|energy|panel|counts|all
        [--members 3] [--epochs 100] [--l2 1e-4] [--seed 0] [--calendar auto] [--rows N]
        [--until 1.0]

Each part fits the same model with and without, prints both errors on the unseen rows, and says
whether what is asked for holds. ``--rows`` takes the last N rows only, for a quick look;
``--until 0.85`` leaves out the last 15 % of Energy, so that the rows from 65 to 85 % are unseen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv
from mvlstm.datasets.catalogue import PM25_FILE
from mvlstm.datasets.loading import data_folder
from mvlstm.datasets.synthetic import synthetic
from mvlstm.table.files import read_table


def fitted(
    arguments: argparse.Namespace,
    table: pd.DataFrame,
    target: str,
    columns: dict[str, Any] | None = None,
    test: float = 0.2,
    **settings: Any,
) -> mv.MVLSTM:
    """Fit a model with the last rows left unseen, by default a fifth."""
    shared = {"members": arguments.members, "max_epochs": arguments.epochs}
    shared |= {"l2": arguments.l2, "seed": arguments.seed}
    shared |= {"device": arguments.device, "verbose": 0}
    started = time.perf_counter()
    model = mv.MVLSTM(**(shared | settings)).fit(table, target, test=test, **(columns or {}))
    print(f"  fitted in {time.perf_counter() - started:.0f} s", flush=True)
    return model


def rmse(model: mv.MVLSTM, table: pd.DataFrame) -> float:
    """Return the error on the unseen rows."""
    scores = model.evaluate(table).scores
    print("  " + scores.round(4).to_string().replace("\n", "\n  "), flush=True)
    return float(scores["rmse"].iloc[0])


def verdict(claim: str, holds: bool) -> None:
    """Print whether a claim holds."""
    print(f"{'holds' if holds else 'FAILS'}: {claim}", flush=True)


def pm25(arguments: argparse.Namespace) -> None:
    """PM2.5 of Beijing with wind direction and calendar, window 30."""
    table = read_table(data_folder() / PM25_FILE)
    table = table.iloc[-arguments.rows :] if arguments.rows else table
    columns: dict[str, Any] = {"time": ["year", "month", "day", "hour"]}
    settings: dict[str, Any] = {"window": 30, "missing": "drop", "gaps": "close"}
    print("pm25 without wind direction and calendar", flush=True)
    plain = fitted(arguments, table, "pm2.5", columns | {"exclude": ["No", "cbwd"]}, **settings)
    without = rmse(plain, table)
    print("pm25 with them", flush=True)
    settings["calendar"] = "auto"
    model = fitted(arguments, table, "pm2.5", columns | {"exclude": ["No"]}, **settings)
    given = rmse(model, table)
    importance = model.explain(table, contributions=0).importance
    shown = importance[["variable", "importance", "low", "high", "verdict"]].round(3)
    print("  " + shown.to_string(index=False).replace("\n", "\n  "), flush=True)
    verdict(f"test RMSE {given:.3f} with, not above {without:.3f} without", given <= without)
    names = list(importance["variable"])
    verdict("one row cbwd, one row calendar", names.count("cbwd") == names.count("calendar") == 1)


def energy(arguments: argparse.Namespace) -> None:
    """Energy use of a house, 6 and 24 steps of ten minutes ahead, with the calendar known."""
    table = mv.datasets.load("energy").frame
    table, test = table.iloc[: round(arguments.until * len(table))], 0.2 / arguments.until
    table = table.iloc[-arguments.rows :] if arguments.rows else table
    for horizon in (6, 24):
        found = []
        chosen = arguments.calendar
        for calendar in ("none", chosen if chosen == "auto" else chosen.split(",")):
            print(f"energy, horizon {horizon}, calendar {calendar}", flush=True)
            shape = {"window": 30, "horizon": horizon, "calendar": calendar}
            model = fitted(arguments, table, "Appliances", test=test, **shape)
            found.append(rmse(model, table))
        verdict(
            f"horizon {horizon}: RMSE {found[1]:.3f} with the calendar, below {found[0]:.3f}",
            found[1] < found[0],
        )


def panel(arguments: argparse.Namespace) -> None:
    """Two stations that differ in level and scale: one model, and one for each."""
    rows = arguments.rows or 4_000
    both = synthetic(2 * rows, seed=1)[0]  # one law for both, values of their own
    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    stations = {}
    for k, (name, level, scale) in enumerate((("hill", 5.0, 1.0), ("city", 20_000.0, 1_000.0))):
        one = both.iloc[k * rows : (k + 1) * rows].set_axis(times) * scale + level
        stations[name] = one.assign(station=name)
    together = pd.concat(stations.values())
    settings: dict[str, Any] = {"window": 10}
    print("two stations, one model", flush=True)
    model = fitted(arguments, together, "y", {"series": "station"}, **settings)
    evaluation = model.evaluate(together)
    assert evaluation.by_series is not None
    print("  " + evaluation.by_series.round(4).to_string(index=False).replace("\n", "\n  "))
    joint = evaluation.by_series.set_index("series")["rmse"]
    for name, one in stations.items():
        print(f"station {name} alone", flush=True)
        alone_table = one.drop(columns="station")
        alone = rmse(fitted(arguments, alone_table, "y", **settings), alone_table)
        ratio = float(joint[name]) / alone
        verdict(
            f"{name}: {joint[name]:.4g} together, {alone:.4g} alone ({ratio:.3f})", ratio < 1.05
        )
    print("two stations in another order", flush=True)
    turned = pd.concat(list(stations.values())[::-1]).sort_index(kind="stable")
    again = fitted(arguments, turned, "y", {"series": "station"}, **settings)
    difference = np.abs(again.predict(turned).mean - model.predict(together).mean).max()
    verdict(f"the order changes nothing (largest difference {difference:g})", difference == 0)


def counts(arguments: argparse.Namespace) -> None:
    """Counts with bursts, modelled as they are and as log(1 + y)."""
    rng = np.random.default_rng(0)
    n = arguments.rows or 6_000
    x = rng.normal(size=n)
    y, rate = np.zeros(n), 0.0
    for i in range(1, n):
        rate = 0.7 * np.log1p(y[i - 1]) + 0.5 * x[i - 1] + 0.3
        y[i] = rng.poisson(np.exp(min(rate, 8.0)))
    table = pd.DataFrame({"x": x, "y": y})
    for transform in ("none", "log1p"):
        print(f"counts, transform {transform}", flush=True)
        model = fitted(arguments, table, "y", window=10, transform=transform)
        rmse(model, table)
        forecast = model.predict(table)
        low = float(forecast.interval(0.9)[0].min())
        cover = forecast.score("new")["coverage"]
        if transform == "log1p":
            verdict(f"lowest end of an interval {low:.4g}, not below zero", low >= 0)
            verdict(f"coverage {cover:.3f}, between 0.87 and 0.93", 0.87 <= cover <= 0.93)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "pm25": pm25,
    "energy": energy,
    "panel": panel,
    "counts": counts,
}


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--l2", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calendar", default="auto", help="auto, or parts such as hour,weekday")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--until", type=float, default=1.0)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    for name in PARTS if arguments.part == "all" else [arguments.part]:
        PARTS[name](arguments)


if __name__ == "__main__":
    main()
