"""Time one training step: the package, its reference step loop, and a plain LSTM of the same width.

    python benchmarks/speed.py [--quick] [--device cpu|cuda] [--busy] [--json FILE]

All three see the same data in the same run, in turns. A step is everything between two batches:
gathering the windows, network, loss, gradients, clipping and Adam. With ``--busy``, on a machine
that has other work to do, they have one thread, and times are those of the processor.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import log
from pathlib import Path

import torch

import mvlstm.nn.mvlstm as network_module
import mvlstm.nn.recurrence as recurrence_module
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.state import TrainState
from mvlstm.train.stepper import Stepper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from oracles.equations import reference_attention, reference_recurrence

COLUMNS = [
    "n_variables",
    "hidden_size",
    "window",
    "batch",
    "members",
    "horizon",
    "cell",
    "layers",
    "device",
    "ours_ms",
    "variable_gates_ms",
    "reference_ms",
    "lstm_ms",
    "ratio_to_lstm",
    "speedup_on_reference",
    "gflops",
    "peak_mb",
]


IN_A_ROW = 4  # steps, as `fit` takes several: on a CPU, members do not wait for one another
busy_machine = False  # whether other programs run
START_ON_CPU = {"window": 8, "members": 2, "rows": 5_000}  # growth is measured from here


@dataclass(frozen=True)
class Case:
    """One size of the problem."""

    n_variables: int = 11
    hidden_size: int = 20
    window: int = 30
    batch: int = 64
    members: int = 1
    horizon: int = 1
    cell: str = "lstm"
    layers: int = 1

    @property
    def useful_flops(self) -> float:
        """Multiplications and additions a member's step cannot do without.

        Three times (forward, gradient of states, gradient of weights) the free entries of the
        cell's weights, and the temporal attention.
        """
        N, d = self.n_variables, self.hidden_size
        D, gates = N * d, 3 if self.cell == "lstm" else 2
        cell = gates * D * (N + D) + D * (1 + d)
        above = gates * D * 2 * D + D * 2 * d
        cells = cell + (self.layers - 1) * above
        return 3.0 * 2.0 * self.batch * self.window * (cells + 2 * D)


def make_data(case: Case, device: torch.device, rows: int = 2000) -> WindowData:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(rows, case.n_variables, generator=generator).to(device)
    steps = [table.mean(dim=1).roll(-step, 0) for step in range(1, case.horizon + 1)]
    labels = torch.stack(steps, dim=1)
    origins = torch.arange(case.window - 1, rows - case.horizon, device=device)
    n_stop = max(1, len(origins) // 10)
    return WindowData(table, labels, origins[:-n_stop], origins[-n_stop:], case.window)


def make_members(n: int) -> list[Member]:
    """Members as `mvlstm.MVLSTM` trains them unless told otherwise."""
    return [Member(seed, learning_rate=5e-3, l2=1e-4) for seed in range(n)]


def make_config(case: Case, **options: int) -> TrainConfig:
    return TrainConfig(batch_size=case.batch, averaging=0.995, **options)


def make_network(case: Case, gates: str = "full") -> MVLSTMNetwork:
    variables = tuple(range(case.n_variables))
    return MVLSTMNetwork(
        variables,
        len(variables),
        case.hidden_size,
        layers=case.layers,
        horizon=case.horizon,
        cell=case.cell,
        gates=gates,
        isolation=1e-3,
    )


def our_step(case: Case, data: WindowData, gates: str = "full") -> Callable[[], None]:
    """Return a function that takes `IN_A_ROW` steps, as all of these do."""
    network, members = make_network(case, gates), make_members(case.members)
    state = TrainState.start(network, members, data.device, torch.float32)
    stepper = Stepper(network, data, make_config(case), members, state)

    def step() -> None:
        stepper.cursor.zero_()
        stepper.step(IN_A_ROW)

    return step


def reference_step(case: Case, data: WindowData) -> Callable[[], None]:
    """The paper's step written out in PyTorch, a Python loop over time, all members batched."""
    network, members = make_network(case), make_members(case.members)
    state = TrainState.start(network, members, data.device, torch.float32)
    stepper = Stepper(network, data, make_config(case), members, state)

    def step() -> None:
        ours = recurrence_module.recurrence, network_module.temporal_attention
        recurrence_module.recurrence = reference_recurrence
        network_module.temporal_attention = reference_attention
        try:
            stepper.cursor.zero_()
            for _ in range(IN_A_ROW):
                stepper.step_at_once()
        finally:
            recurrence_module.recurrence, network_module.temporal_attention = ours

    return step


def lstm_step(case: Case, data: WindowData) -> Callable[[], None]:
    """`torch.nn.LSTM`, or GRU, of the same width with a linear head and torch's own Adam."""
    torch.manual_seed(0)
    size = case.n_variables * case.hidden_size
    module = torch.nn.LSTM if case.cell == "lstm" else torch.nn.GRU
    lstm = module(case.n_variables, size, case.layers).to(data.device)
    head = torch.nn.Linear(size, case.horizon).to(data.device)
    adam = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=1e-3)

    def step() -> None:
        for _ in range(IN_A_ROW):
            origins = data.train[: case.batch].unsqueeze(0)
            x, y = data.windows(origins)[0], data.labels[origins[0]]
            adam.zero_grad()
            states, _ = lstm(x)
            loss = (head(states[-1]) - y).square().mean()
            loss.backward()
            adam.step()

    return step


def seconds_now() -> float:
    """Return a time to take others from; of the processor, on a busy machine."""
    return time.process_time() if busy_machine else time.perf_counter()


def expect_others() -> None:
    """Compute with one thread, and count what the processor was used."""
    global busy_machine
    busy_machine = True
    torch.set_num_threads(1)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def median_times(
    contenders: dict[str, Callable[[], None]], device: torch.device, seconds: float
) -> dict[str, float]:
    """Run the contenders in turns, in blocks of calls; return each one's median ms per step."""
    block: dict[str, int] = {}
    for name, step in contenders.items():
        step()
        wait(device)
        start = seconds_now()
        step()
        wait(device)
        block[name] = max(1, round(0.05 / (seconds_now() - start)))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    stop = seconds_now() + seconds
    while not times[next(iter(times))] or seconds_now() < stop:
        for name, step in contenders.items():
            if block[name] > 1:
                step()  # the one before leaves the caches, and threads that still spin
                wait(device)
            start = seconds_now()
            for _ in range(block[name]):
                step()
            wait(device)
            times[name].append(1e3 * (seconds_now() - start) / block[name] / IN_A_ROW)
    return {name: statistics.median(values) for name, values in times.items()}


def reset_peak(device: torch.device) -> float:
    """Forget the peak so far; return the memory in use now, MB."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 2**20
    try:
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps for later is not in use
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return 0.0
    return peak(device)


def peak(device: torch.device) -> float:
    """Return the largest memory in use since the reset, MB (of the whole process on a CPU)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved() / 2**20
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(case: Case, device: torch.device, seconds: float) -> dict[str, object]:
    """Return one row of the table."""
    data = make_data(case, device)
    before = reset_peak(device)
    ours = our_step(case, data)
    for _ in range(3):
        ours()
    wait(device)
    peak_mb = peak(device) - (before if device.type == "cuda" else 0.0)
    contenders = {
        "ours": ours,
        "variable": our_step(case, data, "variable"),
        "lstm": lstm_step(case, data),
        "reference": reference_step(case, data),
    }
    ms = median_times(contenders, device, seconds)
    each = {name: value / (1 if name == "lstm" else case.members) for name, value in ms.items()}
    return {
        "n_variables": case.n_variables,
        "hidden_size": case.hidden_size,
        "window": case.window,
        "batch": case.batch,
        "members": case.members,
        "horizon": case.horizon,
        "cell": case.cell,
        "layers": case.layers,
        "device": device.type,
        "ours_ms": each["ours"],
        "variable_gates_ms": each["variable"],
        "reference_ms": each["reference"],
        "lstm_ms": each["lstm"],
        "ratio_to_lstm": each["ours"] / each["lstm"],
        "speedup_on_reference": each["reference"] / each["ours"],
        "gflops": case.useful_flops / each["ours"] / 1e6,
        "peak_mb": peak_mb,
    }


def epoch_seconds(case: Case, device: torch.device, rows: int) -> tuple[float, int]:
    """Train one epoch end to end after a first one; return its seconds and its steps."""
    data = make_data(case, device, rows)
    stamps: list[float] = []

    def note(*_: object) -> None:
        wait(device)
        stamps.append(seconds_now())

    config = make_config(case, max_epochs=2)
    train(make_network(case), data, make_members(case.members), config, on_epoch=note)
    return stamps[1] - stamps[0], len(data.train) // case.batch


def exponent(sizes: list[int], values: list[float]) -> float:
    """Fit values ~ sizes^e by least squares in logarithms; return e."""
    x, y = [log(s) for s in sizes], [log(v) for v in values]
    mx, my = statistics.mean(x), statistics.mean(y)
    top = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return top / sum((a - mx) ** 2 for a in x)


def growth(device: torch.device, *, quick: bool) -> list[dict[str, object]]:
    """Double the window, the members and the rows four times each."""
    cuda = device.type == "cuda"
    busy = 50 if cuda else 2
    first = {"window": 15, "members": 16, "rows": 10_000} if cuda else dict(START_ON_CPU)
    found = []
    for what in ("window", "members", "rows"):
        sizes = [first[what] * 2**i for i in range(3 if quick else 5)]
        times, memory = [], []
        for size in sizes:
            before = reset_peak(device)
            if what == "rows":
                case = Case(members=busy, window=10, hidden_size=10)
                times.append(1e3 * epoch_seconds(case, device, size)[0])
            else:
                case = Case(**{"members": busy, what: size})
                step = our_step(case, make_data(case, device))
                times.append(median_times({"ours": step}, device, 0.4)["ours"])
                del step
            memory.append(peak(device) - (before if cuda else 0.0))
        row = {"growth_in": what, "sizes": sizes, "ms": times, "peak_mb": memory}
        found.append(row | {"exponent": exponent(sizes, times)})
    return found


def cases(*, quick: bool) -> list[Case]:
    kinds = [
        Case(n_variables=3, hidden_size=15, window=168, members=5, horizon=24),
        Case(members=5, cell="gru"),
        Case(members=5, layers=2),
    ]
    if quick:
        return [Case(members=members) for members in (1, 5, 10, 50)] + kinds
    grid = product((11, 7, 14), (20, 15, 25), (30, 10, 100), (64, 256), (1, 5, 10, 50))
    return [Case(*values) for values in grid] + kinds


def show(row: dict[str, object]) -> str:
    values = [row[name] for name in COLUMNS]
    return " ".join(
        f"{v:>{max(8, len(c))}.3f}" if isinstance(v, float) else f"{v!s:>{max(8, len(c))}}"
        for v, c in zip(values, COLUMNS, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="N=11, d=20, T=30, B=64, and three others"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here")
    parser.add_argument("--seconds", type=float, default=1.5, help="time for each row")
    parser.add_argument("--busy", action="store_true", help="one thread, time of the processor")
    options = parser.parse_args()
    if options.busy:
        expect_others()
    device = torch.device(options.device)
    chip = (
        torch.cuda.get_device_name()
        if device.type == "cuda"
        else platform.processor() or platform.machine()
    )
    print(f"torch {torch.__version__}, {chip}, {torch.get_num_threads()} threads")
    print("Milliseconds per member and step; gflops counts useful operations only.")
    print(" ".join(f"{c:>{max(8, len(c))}}" for c in COLUMNS))
    rows = []
    for case in cases(quick=options.quick):
        rows.append(measure(case, device, options.seconds))
        print(show(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    n_rows = 1000 if options.quick and device.type == "cpu" else 20_000
    for members in (1, 10):
        seconds, steps = epoch_seconds(Case(members=members), device, n_rows)
        each = 1e3 * seconds / steps / members
        alone = next(
            r["ours_ms"]
            for r in rows
            if (r["n_variables"], r["hidden_size"], r["window"], r["batch"], r["members"])
            == (11, 20, 30, 64, members)
            and (r["cell"], r["layers"]) == ("lstm", 1)
        )
        print(
            f"Whole epoch, validation included: {n_rows} rows, {members} members: {seconds:.2f} s, "
            f"{each:.3f} ms per member and step, {each / alone:.2f} of the step alone"
        )
    for row in growth(device, quick=options.quick):
        print(
            f"Growth in {row['growth_in']}: exponent {row['exponent']:.3f}; "
            f"sizes {row['sizes']}, ms {[round(v, 2) for v in row['ms']]}, "
            f"peak MB {[round(v) for v in row['peak_mb']]}"
        )


if __name__ == "__main__":
    main()
