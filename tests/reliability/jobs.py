"""Small jobs that can be run in a process of their own, killed, and run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SETTINGS: dict[str, Any] = {
    "window": 6,
    "hidden_size": 4,
    "members": 3,
    "batch_size": 32,
    "learning_rate": 0.01,
    "dropout": 0.2,
    "max_epochs": 5,
    "patience": 2,
    "seed": 3,
    "device": "cpu",
    "verbose": 0,
}


def make_table(rows: int = 700) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x, z, noise = rng.normal(size=(3, rows))
    y = np.r_[0.0, np.tanh(x[:-1])] + 0.2 * z + 0.1 * noise
    return pd.DataFrame({"x": x, "z": z, "y": y})


def fit_and_save(folder: str, out: str, every: str, started: Any = None) -> None:
    """Fit with checkpoints in ``folder`` and save the model; say when the fit begins."""
    import torch

    from mvlstm.methods.mvlstm import MVLSTM

    torch.set_num_threads(1)
    os.environ["MVLSTM_CHECKPOINT_SECONDS"] = every
    if started is not None:
        started.set()
    model = MVLSTM(**SETTINGS).fit(make_table(), "y", test=0.2, checkpoint=folder)
    model.save(Path(out))


def run_experiments(suite: str, folder: str, started: Any) -> None:
    """Run a suite of experiments; say when it begins."""
    import torch

    from mvlstm.bench.run import run_suite
    from mvlstm.bench.suite_files import load_suite

    torch.set_num_threads(1)
    started.set()
    run_suite(load_suite(suite), folder, device="cpu", verbose=0)


def contents(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a model file's header, less what depends on the clock, and its arrays' bytes."""
    from mvlstm.storage import Packed

    packed = Packed.open(path, "mvlstm", "model")
    header, arrays = packed.header, packed.arrays()
    header.pop("fit_seconds")
    header["history"].pop("seconds")
    return header, {name: array.tobytes() for name, array in arrays.items()}
