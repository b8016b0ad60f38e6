"""Time `predict` with intervals that follow the outcomes, against those of the fit alone.

    python benchmarks/predict.py [--rows 50000] [--steps 24] [--repeats 3]

An `AR` learns from the first rows of a made-up table and forecasts from all of them. Seconds are of
the process, the least of several repeats: waiting for other programs does not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.signal import lfilter

import mvlstm as mv

WINDOW, LEARNED = 24, 3_000


def made_table(rows: int) -> pd.DataFrame:
    x, noise = np.random.default_rng(0).normal(size=(2, rows))
    y = lfilter([1.0], [1.0, -0.7], 0.4 * np.r_[0.0, x[:-1]] + noise)
    return pd.DataFrame({"x": x, "y": y}, pd.date_range("2015", periods=rows, freq="h"))


def seconds(repeats: int, work: Callable[[mv.AR], object], model: mv.AR) -> float:
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work(model)
        found.append(time.process_time() - started)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000, help="forecasts")
    parser.add_argument("--steps", type=int, default=24, help="of each forecast")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = made_table(options.rows + WINDOW + options.steps - 1)
    adaptive = mv.AR(window=WINDOW, horizon=options.steps, verbose=0)
    adaptive.fit(table.iloc[:LEARNED], "y")
    static = adaptive.holding(replace(adaptive.fitted_, adaptive=False))
    for name, work in (
        ("predict", lambda model: model.predict(table)),
        ("predict, 90 % interval", lambda model: model.predict(table).interval(0.9)),
        ("evaluate", lambda model: model.evaluate(table)),
    ):
        one, other = (seconds(options.repeats, work, model) for model in (static, adaptive))
        print(f"{name:<24} static {one:6.2f} s  adaptive {other:6.2f} s  ratio {other / one:5.2f}")


if __name__ == "__main__":
    main()
