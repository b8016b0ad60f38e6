"""Fit members on PM2.5 end to end, by the fast path and by the plain one.

    MVLSTM_DATA=../shared/data python experiments/pm25.py [--device cpu|cuda] [--members 10]
        [--epochs 20] [--path fast|plain|reference] [--table FILE.npz]

Prints the seconds and every member's lowest validation RMSE in micrograms. ``--table`` keeps the
scaled table in a file (written if absent), for machines without the data or without pandas.
``plain`` batches members with one product a time step and lets autograd do the rest;
``reference`` is the loop of `tests/oracles/equations.py`. Both are equal to the fast path
in double precision.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

import mvlstm.nn.mvlstm as network_module
import mvlstm.nn.recurrence as recurrence_module
from mvlstm.nn.backends.packed import batched_recurrence
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from oracles.equations import reference_attention, reference_recurrence

WINDOW, HIDDEN_SIZE = 30, 15


def scaled_table(file: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the table (R, N), scaled by its first 70 %, and the target's (mean, deviation)."""
    if file is not None and file.exists():
        stored = np.load(file)
        return stored["table"], stored["target"]
    from mvlstm import datasets

    values = datasets.load("pm25").frame.dropna().to_numpy(float)
    train_rows = values[: int(0.7 * len(values))]
    mean, deviation = train_rows.mean(axis=0), train_rows.std(axis=0)
    table, target = (values - mean) / deviation, np.array([mean[-1], deviation[-1]])
    if file is not None:
        np.savez_compressed(file, table=table.astype(np.float32), target=target)
    return table, target


def window_data(table: np.ndarray, device: torch.device) -> WindowData:
    """Train on the first 70 % of rows, stop on the next 10 %."""
    rows = len(table)
    values = torch.tensor(table, dtype=torch.float32, device=device)
    origins = torch.arange(WINDOW - 1, rows - 1, device=device)
    a, b = int(0.7 * rows), int(0.8 * rows)
    return WindowData(
        values,
        values[:, -1:].roll(-1, 0),
        origins[origins + 1 < a],
        origins[(origins + 1 >= a) & (origins + 1 < b)],
        WINDOW,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--path", choices=["fast", "plain", "reference"], default="fast")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.path != "fast":
        recurrence_module.recurrence = (
            batched_recurrence if options.path == "plain" else reference_recurrence
        )
        network_module.temporal_attention = reference_attention
    table, (_, deviation) = scaled_table(options.table)
    data = window_data(table, torch.device(options.device))
    n = table.shape[1]
    network = MVLSTMNetwork(tuple(range(n)), n, HIDDEN_SIZE, attention="free", loss_name="mse")
    members = [Member(seed, learning_rate=1e-3, dropout=0.2) for seed in range(options.members)]
    config = TrainConfig(max_epochs=options.epochs, patience=options.epochs)
    start = time.perf_counter()
    state = train(network, data, members, config)
    errors = (state.best_error * deviation).tolist()
    seconds = time.perf_counter() - start
    print(
        f"{options.path} on {options.device}: {options.members} members, {options.epochs} epochs, "
        f"{len(data.train)} windows: {seconds:.1f} s; validation RMSE mean "
        f"{np.mean(errors):.3f}, deviation over seeds {np.std(errors, ddof=1):.3f}: "
        + " ".join(f"{error:.3f}" for error in errors)
    )


if __name__ == "__main__":
    main()
