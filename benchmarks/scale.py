"""Growth of time and memory with series, members and workers; what it means for a large cluster.

python benchmarks/scale.py series [--counts 1000,3000,10000] [--method mvlstm|ar] [--learn 20000]
python benchmarks/scale.py rows [--counts 500,1000,2000] [--series 1000] [--learn all]
python benchmarks/scale.py memory [--counts 1000,4000] [--method mvlstm|ar]
python benchmarks/scale.py workers [--counts 1,2,4] [--series 1000] [--method mvlstm|ar]
python benchmarks/scale.py fits [--counts 1,2]
python benchmarks/scale.py members
python benchmarks/scale.py tasks
python benchmarks/scale.py model

`series` writes datasets of 500 rows per series, fits one model to some of the rows, or to all that
the budget holds, and forecasts and scores all series, each size in a process of its own: processor
time, peak resident memory, which must stay within the budget, what the model of cost below says of
them, and the exponents of a line through the logarithms. `rows` does so with growing numbers of
rows per series. `memory` measures what a row takes in a fit, by columns,
steps ahead and transform. `workers` forecasts one dataset here and on a Ray of growing numbers of
workers, and `fits` trains ten members so: time by the clock, and of the processor with all that was
started; the first run starts workers. `members` fits with growing ensembles. `tasks` measures what
a task of Ray costs besides its work. `model` works out a million series on 50 nodes from the
constants below, which `series` and `tasks` measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 500
GROUP = 50_000  # rows of a row group
BUDGET = "4GB"
LEARNED = 20_000  # rows that the model is learned from
MODELS: dict[str, dict[str, Any]] = {
    "ar": {"window": 12},
    "mvlstm": {
        **{"window": 12, "hidden_size": 5, "members": 2, "effort": "quick"},
        **{"device": "cpu"},
    },
}


def write_panel(file: Path, series: int, rows: int = ROWS, more: int = 0) -> None:
    """Write a dataset of ``series`` series that two inputs drive, 50,000 rows to a row group.

    There are ``more`` inputs that drive nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    times = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "h")
    rng, writer = np.random.default_rng(0), None
    group = max(1, GROUP // rows)
    for first in range(0, series, group):
        count = min(group, series - first)
        x, z, noise = rng.normal(size=(3, count, rows))
        past = np.concatenate([np.zeros((count, 1)), x[:, :-1]], axis=1)
        level, size = rng.normal(size=(2, count, 1)) * 10
        y = level + (1 + np.abs(size)) * (np.tanh(past) + 0.3 * z + 0.2 * noise)
        names = [f"s{k:07d}" for k in range(first, first + count)]
        columns = {"id": np.repeat(names, rows), "t": np.tile(times, count)}
        columns |= {"x": x.ravel(), "z": z.ravel(), "y": y.ravel()}
        columns |= {f"x{k}": rng.normal(size=count * rows) for k in range(more)}
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def fitted(
    file: Path, method: str, learn: int | None = LEARNED, memory: str = BUDGET, **settings: Any
) -> Any:
    """Fit a model to a dataset, within the budget."""
    import mvlstm as mv

    kinds = {"ar": mv.AR, "mvlstm": mv.MVLSTM}
    model: Any = kinds[method](**{**MODELS[method], **settings}, verbose=0)
    told = {"series": "id", "time": "t", "test": 0.1, "memory": memory, "rows": learn}
    return mv.many.fit(model, file, "y", **told)


def one_size(series: int, rows: int, method: str, learn: int | None) -> dict[str, float]:
    """Fit and forecast one dataset in this process; return seconds of the processor, and memory."""
    import mvlstm as mv

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "panel.parquet"
        write_panel(file, series, rows)
        started = [time.process_time()]
        model = fitted(file, method, learn)
        started.append(time.process_time())
        fit_peak = peak_gb()
        found = mv.many.forecast(model, file, Path(folder) / "out", memory=BUDGET, verbose=0)
        started.append(time.process_time())
        assert found.series == series and not len(found.failures)
    fit, forecast = np.diff(started)
    assert peak_gb() < float(BUDGET.removesuffix("GB")), peak_gb()
    sizes = {"series": series, "rows": rows, "learned": model.fitted_.n_train}
    times = {"fit": float(fit), "forecast": float(forecast)}
    return {**sizes, **times, "fit_gb": fit_peak, "peak_gb": peak_gb()}


def peak_gb() -> float:
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def exponent(sizes: list[float], values: list[float]) -> float:
    """Return the slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def apart(what: str, *told: object) -> Any:
    """Run a part of this script in a process of its own; return what it found."""
    command = [sys.executable, "-W", "ignore", __file__, what, *map(str, told)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def by_size(sizes: list[tuple[int, int]], method: str, learn: str) -> None:
    """Measure each size (series, rows); print the exponents in the number of all rows."""
    found = []
    for series, rows in sizes:
        told = ["--series", series, "--counts", rows, "--method", method, "--learn", learn]
        found.append(one := apart("one", *told))
        cost = COSTS[method]
        fit, work = cost.fit(one["learned"]), cost.forecast(series, rows)
        print(
            f"{method}: {series:,} series x {rows:,} rows: fit to {one['learned']:,} windows "
            f"{one['fit']:.1f} s (model {fit:.1f}), forecasts and scores {one['forecast']:.1f} s "
            f"(model {work:.1f}) of the processor, peak {one['fit_gb']:.2f} and "
            f"{one['peak_gb']:.2f} GB",
            flush=True,
        )
    if len(found) > 1:
        every = [one["series"] * one["rows"] for one in found]
        slopes = {
            name: round(exponent(every, [one[name] for one in found]), 3)
            for name in ("fit", "forecast", "peak_gb")
        }
        print(f"{method}: exponents {slopes}")


SHAPES: dict[str, dict[str, Any]] = {
    "3 values, 1 step": {},
    "12 values, 1 step": {"values": 12},
    "3 values, 12 steps": {"horizon": 12},
    "3 values, 1 step, transform='auto'": {"transform": "auto"},
}


def by_memory(counts: list[int], method: str) -> None:
    """Measure the memory of fits of 500 rows per series, and what each row adds."""
    from mvlstm.many.memory import Budget

    for name in SHAPES:
        told = ["--method", method, "--shape", name]
        peaks = [apart("one-fit", "--counts", count, *told) for count in counts]
        each = (peaks[-1] - peaks[0]) * 2**30 / ((counts[-1] - counts[0]) * ROWS)
        shape = SHAPES[name]
        values = (shape.get("values", 3) + 2) * (1 + ("transform" in shape))
        budget = Budget.of("1000GB")
        counted = budget.free / budget.fit_rows(values, shape.get("horizon", 1))
        print(
            f"{method}, {name}: {', '.join(f'{one:.2f}' for one in peaks)} GB; {each:.0f} bytes "
            f"for each row, of which the budget counts {counted:.0f}",
            flush=True,
        )


def one_fit(series: int, method: str, shape: dict[str, Any]) -> float:
    """Fit a dataset in this process; return its peak memory."""
    settings = dict(shape)
    more = settings.pop("values", 3) - 3
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "panel.parquet"
        write_panel(file, series, more=more)
        if method == "mvlstm":
            settings |= {"max_epochs": 1, "effort": "default"}
        fitted(file, method, None, "1000GB", **settings)
    return peak_gb()


def by_fits(counts: list[int]) -> None:
    """Train ten members here and on Ray with some numbers of workers."""
    import mvlstm as mv
    import ray

    table = mv.datasets.load("synthetic", n=2000).frame
    told: dict[str, Any] = {"window": 20, "max_epochs": 3, "members": 10, "device": "cpu"}

    def once(name: str, engine: str) -> Any:
        clock, used = time.monotonic(), processor_seconds()
        model = mv.MVLSTM(**told, verbose=0).fit(table, "y", test=0.2, engine=engine)
        wall, cpu = time.monotonic() - clock, processor_seconds() - used
        print(f"{name}: {wall:.1f} s by the clock, {cpu:.1f} s of the processor", flush=True)
        return model.predict(table).members

    expected = once("here", "local")
    for count in counts:
        ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False)
        try:
            for name in (f"first of {count} workers", f"{count} workers"):
                assert np.array_equal(once(name, "ray"), expected)  # to the last bit
        finally:
            ray.shutdown()


def by_workers(counts: list[int], series: int, method: str) -> None:
    """Forecast one dataset here and with each number of workers."""
    import mvlstm as mv
    import ray

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "panel.parquet"
        write_panel(file, series)
        model = fitted(file, method)

        def once(name: str, engine: str) -> None:
            clock, used = time.monotonic(), processor_seconds()
            out = Path(folder) / name
            mv.many.forecast(model, file, out, memory=BUDGET, verbose=0, engine=engine)
            wall, cpu = time.monotonic() - clock, processor_seconds() - used
            print(f"{name}: {wall:.1f} s by the clock, {cpu:.1f} s of the processor", flush=True)

        once("here", "local")
        for count in counts:
            ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False)
            try:
                once(f"first of {count} workers", "ray")
                once(f"{count} workers", "ray")
            finally:
                ray.shutdown()


def processor_seconds() -> float:
    """Return what this process and all that it started have used of the processor."""
    used, parents = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            rest = file.read_text().rpartition(")")[2].split()
            parents[int(file.parent.name)] = int(rest[1])
            used[int(file.parent.name)] = sum(map(int, rest[11:15]))
    ours = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[one] for one in ours) / os.sysconf("SC_CLK_TCK")


def by_members() -> None:
    import mvlstm as mv

    table = mv.datasets.load("synthetic", n=1500).frame
    seconds = []
    counts = [2, 4, 8]
    for count in counts:
        model = mv.MVLSTM(**{**MODELS["mvlstm"], "members": count}, link="linear", verbose=0)
        before = time.process_time()
        model.fit(table, "y", test=0.2)
        seconds.append(time.process_time() - before)
        print(f"{count} members: {seconds[-1]:.1f} s of the processor", flush=True)
    print(f"exponent {exponent(counts, seconds):.3f}")


def nothing(shared: Any, task: int) -> int:
    """Do nothing."""
    return task


def by_tasks() -> None:
    from mvlstm.engine import opened

    begun = time.monotonic()
    with opened("ray") as engine:
        print(f"Ray started in {time.monotonic() - begun:.1f} s, {engine.slots} slots")
        begun = time.monotonic()
        list(engine.each(nothing, np.zeros(10**6), engine.slots))
        print(f"first tasks, which start workers: {time.monotonic() - begun:.1f} s")
        for count in (100, 400):
            begun, used = time.monotonic(), time.process_time()
            list(engine.each(nothing, np.zeros(10**6), count))
            wall, own = time.monotonic() - begun, time.process_time() - used
            print(
                f"{count} tasks: {1000 * wall / count:.1f} ms each, of which "
                f"{1000 * own / count:.1f} ms of this process"
            )


@dataclass(frozen=True)
class Cost:
    """Seconds of one core, measured on the machine that docs/scale.md names."""

    start: float  # of a fit in a new process: imports
    window: float  # of a fit, for each training window
    series: float  # of forecasts and scores, for each series
    row: float  # of these, for each row

    def fit(self, windows: float) -> float:
        return self.start + self.window * windows

    def forecast(self, series: int, rows: int) -> float:
        return series * (self.series + self.row * rows)


COSTS = {
    "ar": Cost(start=2.0, window=1.65e-6, series=2.8e-3, row=1.2e-6),
    "mvlstm": Cost(start=2.0, window=7e-4, series=4.1e-3, row=4.5e-6),
}
SCAN_SECONDS = 4e-5  # of the driver for each series: finding where it lies
TASK_SECONDS = 0.005  # of the driver for each task: handing it out, and writing its files
BLOCK = 100  # series of a task
RESULT_BYTES = 31_000  # that come back from a task
SERIES_BYTES = 20_000  # of a series of 500 rows and five columns


def at_scale(series: int, nodes: int, cores: int, learned: int) -> None:
    tasks = series / BLOCK
    driver = series * SCAN_SECONDS + tasks * TASK_SECONDS
    print(f"{series:,} series on {nodes} nodes of {cores} cores, {tasks:,.0f} tasks")
    print(
        f"  driver {driver:.1f} s of its core; {tasks * RESULT_BYTES / 2**30:.2f} GB of results "
        f"come through it; {series * SERIES_BYTES / 2**30:.1f} GB are read"
    )
    for method, cost in COSTS.items():
        work = cost.forecast(series, ROWS)
        print(
            f"  {method}: fit to {learned:,} windows {cost.fit(learned):,.0f} s of a core; workers "
            f"{work / nodes / cores:.1f} s; the driver is the limit from "
            f"{work / driver / cores:.1f} nodes on"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ["series", "rows", "memory", "workers", "fits", "members", "tasks", "model"]
    kinds += ["one", "one-fit"]  # in processes of their own
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--counts", default=None)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--method", default="mvlstm", choices=list(MODELS))
    parser.add_argument("--learn", default=str(LEARNED), help="rows of a fit, or 'all'")
    parser.add_argument("--shape", default=next(iter(SHAPES)), choices=list(SHAPES))
    given = parser.parse_args()
    usual = {"series": "1000,3000,10000", "rows": "500,1000,2000", "workers": "1,2,4"}
    usual |= {"fits": "1,2", "memory": "1000,4000"}
    text = given.counts or usual.get(given.what, "0")
    counts = [int(one) for one in text.split(",")]
    if given.what == "one":
        learn = None if given.learn == "all" else int(given.learn)
        print(json.dumps(one_size(given.series, counts[0], given.method, learn)))
    elif given.what == "one-fit":
        print(one_fit(counts[0], given.method, SHAPES[given.shape]))
    elif given.what == "series":
        by_size([(one, ROWS) for one in counts], given.method, given.learn)
    elif given.what == "rows":
        by_size([(given.series, one) for one in counts], given.method, given.learn)
    elif given.what == "memory":
        by_memory(counts, given.method)
    elif given.what == "fits":
        by_fits(counts)
    elif given.what == "workers":
        by_workers(counts, given.series, given.method)
    elif given.what == "model":
        at_scale(10_000, 1, 2, LEARNED)
        at_scale(1_000_000, 50, 16, 50 * LEARNED)
    else:
        {"members": by_members, "tasks": by_tasks}[given.what]()


if __name__ == "__main__":
    main()
