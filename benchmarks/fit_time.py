"""Time whole default fits, as a ratio to one epoch of a plain LSTM, with the error they reach.

    MVLSTM_DATA=../shared/data python benchmarks/fit_time.py [--only energy,pm25,np]
        [--device cpu|cuda] [--members 5] [--effort best] [--seeds 1] [--seconds 5] [--rows N]
        [--busy] [--json FILE]

A machine's seconds say little about another's. So the unit is one epoch of `torch.nn.LSTM` as wide
as the model, over the same training windows in batches of 64, on the same device and threads,
timed right before and right after each fit. A fit is everything: reading the table, the link,
training, members trained again, calibration. Only the seed, the members' number and the effort can
be chosen; ``--rows 2000 --members 1 --seconds 1`` tries within minutes whether all of it runs.
``--busy`` is for a machine that has other work to do: one thread, and seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from speed import (
    Case,
    expect_others,
    lstm_step,
    make_data,
    median_times,
    seconds_now,
    wait,
)

import mvlstm as mv
from mvlstm.datasets import load
from mvlstm.datasets.loading import data_folder

COLUMNS = ("set", "seed", "windows", "fit_s", "epoch_s", "ratio", "epochs", "valid", "test", "mae")


@dataclass(frozen=True)
class Task:
    """A table and how it is fitted; the last rows are unseen."""

    table: pd.DataFrame
    target: str
    test: float = 0.2
    columns: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def energy() -> Task:
    data = load("energy")
    return Task(data.frame, data.target)


def pm25() -> Task:
    data = load("pm25")
    return Task(data.frame, data.target)


def nord_pool() -> Task:
    """Tomorrow's prices by the hour, two forecasts known; the last 728 days are unseen."""
    table = pd.read_csv(
        data_folder() / "epf/NP.csv", index_col=0, parse_dates=True, skipinitialspace=True
    )
    known = [name for name in table if name != "OT"]
    return Task(table, "OT", 728 * 24, {"known": known}, {"window": 168, "horizon": 24})


TASKS = {"energy": energy, "pm25": pm25, "np": nord_pool}


def epoch_of_lstm(model: mv.MVLSTM, windows: int, device: torch.device, seconds: float) -> float:
    """Return the seconds that a plain LSTM as wide as ``model`` takes for an epoch."""
    network = model.fitted_.learned.trained.network
    case = Case(network.n_variables, network.hidden_size, model.fitted_.window)
    step = lstm_step(case, make_data(case, device))
    ms = median_times({"lstm": step}, device, seconds)["lstm"]
    return ms / 1e3 * windows / case.batch


def measure(name: str, task: Task, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Fit once; return a row of the table."""
    device = torch.device(options.device)
    settings = task.settings | {"seed": seed, "device": options.device, "verbose": 0}
    settings["effort"] = options.effort
    if options.members:
        settings["members"] = options.members
    few = {"max_epochs": 1, "members": 1}
    rows = task.table.iloc[:1_000]
    small = mv.MVLSTM(**(settings | few)).fit(rows, task.target, **task.columns)  # all is loaded
    first = epoch_of_lstm(small, 64_000, device, options.seconds)
    wait(device)
    started = seconds_now()
    model = mv.MVLSTM(**settings).fit(task.table, task.target, test=task.test, **task.columns)
    wait(device)
    seconds = seconds_now() - started
    last = epoch_of_lstm(small, 64_000, device, options.seconds)
    windows = model.fitted_.n_train or 0
    epoch = statistics.mean((first, last)) * windows / 64_000
    found, scores = model.history_, model.evaluate(task.table).scores.iloc[0]
    return {
        "set": name,
        "seed": seed,
        "windows": windows,
        "fit_s": seconds,
        "epoch_s": epoch,
        "ratio": seconds / epoch,
        "epochs": int(found.epochs.max()),
        "valid": float(found.best_rmse.mean()),
        "test": float(scores["rmse"]),
        "mae": float(scores["mae"]),
    }


def show(row: dict[str, Any]) -> str:
    values = (row[name] for name in COLUMNS)
    return " ".join(f"{v:>8.4g}" if isinstance(v, float) else f"{v!s:>8}" for v in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default=",".join(TASKS), metavar="SET[,SET...]")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--members", type=int, help="by default those of the forecaster")
    parser.add_argument("--effort", choices=["quick", "default", "best"], default="default")
    parser.add_argument("--busy", action="store_true", help="one thread, time of the processor")
    parser.add_argument("--seeds", type=int, default=1, help="fits of each table")
    parser.add_argument("--seconds", type=float, default=5.0, help="to time the plain LSTM, twice")
    parser.add_argument("--rows", type=int, help="only the first ones, a fifth of them unseen")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    options = parser.parse_args()
    if options.busy:
        expect_others()
    cuda = options.device == "cuda"
    chip = torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine()
    print(f"mvlstm {mv.__version__}, torch {torch.__version__}, {chip}", end=", ")
    print(f"{torch.get_num_threads()} threads", flush=True)
    print(" ".join(f"{name:>8}" for name in COLUMNS), flush=True)
    rows = []
    for name in options.only.split(","):
        task = TASKS[name]()
        if options.rows:
            task = replace(task, table=task.table.iloc[: options.rows], test=0.2)
        for seed in range(options.seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mv.MVLSTMWarning)
                rows.append(measure(name, task, options, seed))
            print(show(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
