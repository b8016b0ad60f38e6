"""Peak memory of a fit on a large table, beside the size of the table itself.

    python benchmarks/memory.py [--rows 1000000] [--variables 10] [--window 30]

The model is small and trained for one epoch, so that what is left is the cost of the data. The
table counts once in the peak: it is there before the fit begins.
"""

from __future__ import annotations

import argparse
import json
import resource
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

import mvlstm as mv

MIB = 2**20


def resident() -> int:
    """Return the memory this process holds now, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class Peak:
    """The most memory held while a block runs, sampled in the background."""

    def __enter__(self) -> Peak:
        self.bytes, self._running = resident(), True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._running:
            self.bytes = max(self.bytes, resident())
            time.sleep(0.005)

    def __exit__(self, *exception: object) -> None:
        self._running = False
        self._thread.join()


def main() -> None:
    """Fit once and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--window", type=int, default=30)
    options = parser.parse_args()
    settings = {"window": options.window, "hidden_size": 4, "members": 1, "verbose": 0}
    settings |= {"max_epochs": 1, "batch_size": 256}

    def table(rows: int) -> pd.DataFrame:
        values = np.random.default_rng(0).standard_normal((rows, options.variables))
        values[1:, -1] += 0.5 * values[:-1, 0]
        names = [*(f"x{i}" for i in range(options.variables - 1)), "y"]
        return pd.DataFrame(values, columns=names)

    mv.MVLSTM(**settings).fit(table(5_000), target="y", test=0.2)  # libraries loaded, pools filled
    before = resident()
    large = table(options.rows)
    size = large.to_numpy().nbytes
    started = time.perf_counter()
    with Peak() as peak:
        mv.MVLSTM(**settings).fit(large, target="y", test=0.2)
    used = peak.bytes - before
    print(
        json.dumps(
            {
                "rows": options.rows,
                "variables": options.variables,
                "window": options.window,
                "table_mib": round(size / MIB, 1),
                "peak_mib": round(used / MIB, 1),
                "peak_over_table": round(used / size, 2),
                "all_windows_mib": round(size * options.window / MIB, 1),
                "seconds": round(time.perf_counter() - started, 1),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
