"""A small table, a small model fitted to it by the command itself, and a way to run commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mvlstm.cli.app import app

TINY = (
    *("--window", "4", "--hidden-size", "2", "--members", "2", "--max-epochs", "2"),
    *("--seed", "0", "--device", "cpu", "--quiet"),
)


def make_table(rows: int = 240) -> pd.DataFrame:
    """An hourly table: y follows x1 of the hour before; x2 does nothing."""
    rng = np.random.default_rng(0)
    x1, x2, noise = rng.normal(size=(3, rows))
    y = np.r_[0.0, 2.0 * x1[:-1]] + 0.1 * noise
    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"when": times, "x1": x1, "x2": x2, "y": y})


class Result:
    """Exit code and both streams of one run, with colour codes and line wraps removed."""

    def __init__(self, raw: Any) -> None:
        self.code: int = raw.exit_code
        self.stdout: str = raw.stdout
        self.stderr: str = re.sub(r"\x1b\[[0-9;]*m", "", raw.stderr)
        self.exception: BaseException | None = raw.exception


Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Run:
    runner = CliRunner()

    def call(*words: object) -> Result:
        return Result(runner.invoke(app, [str(word) for word in words]))

    return call


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "table.csv"
    make_table().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def model(run: Run, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    done = run(
        "fit", table, "--target", "y", "--time", "when", "--test", "0.2", *TINY, "--out", path
    )
    assert done.code == 0, done.stderr
    return path
