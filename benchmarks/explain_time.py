"""Time of `explain` and `report` with 16 variables and 24 steps ahead, and under time limits.

python benchmarks/explain_time.py [--rows 5000] [--limits 5 30 60]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv


def make_table(rows: int, variables: int = 16) -> pd.DataFrame:
    """Return hours of a target that a third of the other variables drive."""
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(rows, variables - 1)))
    x = noise.ewm(alpha=0.3).mean().to_numpy()
    push = x[:, : variables // 3].sum(axis=1) + np.sin(np.arange(rows) * 2 * np.pi / 24)
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.8 * y[t - 1] + 0.5 * push[t - 1] + 0.3 * rng.normal()
    hours = pd.date_range("2024-01-01", periods=rows, freq="h")
    columns = [f"v{k}" for k in range(variables - 1)]
    return pd.DataFrame(x, columns=columns, index=hours).assign(y=y)


def timed(name: str, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Print how long it took, by the clock and by the processor, and the load meanwhile."""
    clock, cpu = time.perf_counter(), time.process_time()
    found = work(*given, **options)
    seconds = (time.perf_counter() - clock, time.process_time() - cpu)
    load = os.getloadavg()[0]
    print(f"{name:24}{seconds[0]:8.1f} s {seconds[1]:8.1f} CPU s   load {load:.1f}", flush=True)
    return found


def main() -> None:
    """Fit briefly, then explain and report, without and with limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--limits", type=float, nargs="*", default=[5, 30, 60])
    options = parser.parse_args()
    warnings.simplefilter("ignore", mv.MVLSTMWarning)
    table = make_table(options.rows)
    model = mv.MVLSTM(window=48, horizon=24, members=5, max_epochs=1, verbose=0)
    timed("fit, one epoch", model.fit, table, "y", test=0.2)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        for limit in (None, *options.limits):
            told = "" if limit is None else f", limit {limit:g} s"
            found = timed(f"explain{told}", model.explain, table, time_limit=limit)
            print(f"    measured on {found.n_windows:,} windows")
            data = timed(f"report{told}", model.report, table, page, time_limit=limit)
            size = page.stat().st_size / 1e6
            compared = ", ".join(data.evaluation.scores.index[1:])
            print(f"    {size:.2f} MB, compared with {compared}")


if __name__ == "__main__":
    main()
