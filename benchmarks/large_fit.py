"""A fit of 24 variables and 500,000 rows on two cores: peak memory, killed and resumed.

Two models are fitted by the command line, each in processes of its own:

* ``default``: the settings people get if they set none. Training is killed (SIGKILL) after its
  second checkpoint, then resumed with a time limit, so that reading, training, validation,
  calibration and saving all count in the peak of memory.
* ``small``: trained to the end twice, once undisturbed and once killed in the middle of an epoch
  and resumed; the two model files must hold the same bits.

Run: python benchmarks/large_fit.py [--rows 500000] [--out DIR]. Figures are printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.storage import unpack
from mvlstm.train.checkpoint import NAME

COLUMNS = 24
VALID = 0.02  # of the default fit, whose closing work would take minutes otherwise
SMALL = {"window": 8, "hidden-size": 4, "members": 2, "batch-size": 512, "max-epochs": 1}


def make_table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((rows, COLUMNS))
    values[1:, -1] = 0.5 * np.tanh(values[:-1, 0]) + 0.3 * values[:-1, -1] + 0.5 * values[1:, -1]
    names = [*(f"x{i}" for i in range(COLUMNS - 1)), "y"]
    times = pd.date_range("2000-01-01", periods=rows, freq="min")
    return pd.DataFrame(values, columns=names).assign(time=times)


class Fit:
    """`mvlstm fit` in a process, its peak memory watched."""

    def __init__(self, data: Path, out: Path, settings: dict[str, Any], *more: str) -> None:
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        words = ["fit", str(data), "--target", "y", "--time", "time", "--out", str(out)]
        self.state = out.with_suffix(".checkpoint") / NAME
        self.began = time.monotonic()
        self.peak = 0.0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mvlstm", *words, "--device", "cpu", *options, *more],
            env=os.environ | {"MVLSTM_CHECKPOINT_SECONDS": "5", "OMP_NUM_THREADS": "2"},
        )

    def watch(self) -> bool:
        """Note the peak of memory; say whether the process still runs."""
        time.sleep(0.1)
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
            self.peak = max(self.peak, float(line.split()[1]) / 2**20)
        except (OSError, StopIteration):
            pass
        return self.process.poll() is None

    def until_killed(self, checkpoints: int) -> None:
        """Kill the process once it has written so many checkpoints."""
        seen: set[int] = set()
        while self.watch() and len(seen) < checkpoints:
            if self.state.exists():
                seen.add(self.state.stat().st_mtime_ns)
        assert self.process.poll() is None, "the fit ended before it could be killed"
        self.process.kill()
        self.process.wait()

    def until_done(self) -> None:
        while self.watch():
            pass
        assert self.process.returncode == 0, self.process.returncode

    def figures(self) -> dict[str, float]:
        seconds = time.monotonic() - self.began
        return {"seconds": round(seconds, 1), "peak_gb": round(self.peak, 2)}


def position(state: Path) -> str:
    header, arrays = unpack(state, "mvlstm-checkpoint", "checkpoint")
    return f"epoch {header['epoch'] + 1}, step {int(arrays['batch'])}"


def bits(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in unpack(path, "mvlstm", "model")[1].items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--limit", type=int, default=120, help="seconds of the resumed default fit")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "large.parquet"
        make_table(options.rows).to_parquet(data, index=False)
        result: dict[str, Any] = {"rows": options.rows, "columns": COLUMNS}

        default = folder / "default.safetensors"
        fit = Fit(data, default, {"valid": VALID})
        fit.until_killed(2)
        result["default_killed"] = {**fit.figures(), "at": position(fit.state)}
        fit = Fit(data, default, {"valid": VALID, "time-limit": options.limit}, "--resume")
        fit.until_done()
        result["default_resumed"] = {**fit.figures(), "time_limit": options.limit}

        fit = Fit(data, folder / "whole.safetensors", SMALL)
        fit.until_done()
        result["small_undisturbed"] = fit.figures()
        small = folder / "small.safetensors"
        fit = Fit(data, small, SMALL)
        fit.until_killed(2)
        result["small_killed"] = {**fit.figures(), "at": position(fit.state)}
        fit = Fit(data, small, SMALL, "--resume")
        fit.until_done()
        result["small_resumed"] = fit.figures()
        result["same_bits"] = bits(small) == bits(folder / "whole.safetensors")
    text = json.dumps(result, indent=2)
    print(text)
    if options.out is not None:
        (options.out / "large_fit.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
