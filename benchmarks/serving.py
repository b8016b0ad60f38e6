"""How long an exported model takes: `python benchmarks/serving.py`, with extras export and runtime.

One forecast from a table of one window, and from tables with outcomes that intervals follow; one
thread. What importing takes is the processor's time in a fresh process, the least of several.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd

import mvlstm as mv
from mvlstm.runtime import Runtime, load

RUNS, STARTS = 200, 9
IMPORT = "import time; a = time.process_time(); {}; print(time.process_time() - a)"
IMPORTED = ("import numpy", "import mvlstm.runtime", "import mvlstm.runtime, onnxruntime")
WHOLE = "import mvlstm; mvlstm.MVLSTM"  # torch and pandas with it


def main() -> None:
    warnings.simplefilter("ignore")
    table = mv.datasets.load("synthetic", n=3_000).frame
    table.index = pd.date_range("2024-01-01", periods=len(table), freq="h", name="time")
    for name, settings in (
        ("MVLSTM, 5 members of 15 units a variable", {"members": 5, "max_epochs": 1, "verbose": 0}),
        ("AR", {}),
    ):
        forecaster = getattr(mv, name.partition(",")[0])
        model = forecaster(window=30, **settings).fit(table, target="y", test=0.4)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model.export(path)
            runtime, size = load(path), path.stat().st_size / 1e6
        print(f"{name}, {table.shape[1]} columns, window 30 ({size:.1f} MB)")
        for rows in (30, 130, 1_030):
            taken = _milliseconds(runtime, table.iloc[-rows:])
            print(f"  table of {rows:,} rows: {taken:.2f} ms, following {rows - 30:,} outcomes")
    for words in (*IMPORTED, WHOLE):
        print(f"{words}: {_import_seconds(words):.3f} s")


def _milliseconds(runtime: Runtime, table: pd.DataFrame) -> float:
    columns = {name: column.to_numpy() for name, column in table.reset_index().items()}
    runtime.forecast(columns)
    taken = []
    for _ in range(RUNS if len(columns["y"]) < 1_000 else 10):
        start = time.perf_counter()
        runtime.forecast(columns)
        taken.append(time.perf_counter() - start)
    return 1e3 * sorted(taken)[len(taken) // 2]


def _import_seconds(words: str) -> float:
    command = [sys.executable, "-c", IMPORT.format(words)]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(STARTS)]
    return min(float(one.stdout) for one in runs)


if __name__ == "__main__":
    main()
