"""A run of experiments killed without warning goes on to the same records, here and on Ray."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_records import comparable
from mvlstm.bench.records import Records, read_records
from processes import LONG, descendants, wait_for
from reliability.jobs import run_experiments

SEED = int(os.environ.get("MVLSTM_TEST_SEED", "0"))
SUITE = """
name = "kill"
data.synthetic.n = 300

[methods.mv]
method = "paper"
settings = { hidden_size = 3, max_epochs = 3 }
grid = { learning_rate = [0.001, 0.01] }

[[parts]]
datasets = ["synthetic"]
windows = [3, 4]
methods = ["mv", "ar", "persistence"]
repeats = 2
explain = false
"""
LONGER = SUITE.replace("max_epochs = 3", "max_epochs = 100, patience = 100")


@pytest.fixture(scope="module")
def processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mvlstm.bench.run", "mvlstm.methods.mvlstm"])
    return context


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("suite") / "kill.toml"
    path.write_text(SUITE)
    return str(path)


def run(processes: Any, suite: str, folder: Path, kill_after: float | None = None) -> float:
    """Run until done, or until killed; return the seconds it took."""
    started = processes.Event()
    process = processes.Process(target=run_experiments, args=(suite, str(folder), started))
    process.start()
    assert started.wait(LONG)
    begun = time.monotonic()
    process.join(kill_after)
    if process.is_alive():
        process.kill()
        process.join()
    elif kill_after is None:
        assert process.exitcode == 0
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def whole(
    processes: Any, suite: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Records, float]:
    """The records of a run that nobody disturbs, and the seconds it takes."""
    folder = tmp_path_factory.mktemp("whole")
    seconds = run(processes, suite, folder)
    return read_records(folder), seconds


def check_same(found: Records, expected: Records) -> None:
    """Compare all records field by field, timings aside, and the kept errors bit by bit."""
    assert not found.failed, [one["error"] for one in found.failed.values()]
    assert not found.problems, found.problems
    assert set(found.done) == set(expected.done)
    for key, record in expected.done.items():
        mine, theirs = comparable(found.done[key]), comparable(record)
        for unimportant in ("commit", "hardware"):
            mine.pop(unimportant), theirs.pop(unimportant)
        assert mine == theirs
        ours, other = found.arrays(record), expected.arrays(record)
        assert ours is not None and other is not None
        assert all(np.array_equal(ours[name], other[name]) for name in other)


def check_kills(
    processes: Any, suite: str, whole: tuple[Records, float], folder: Path, count: int
) -> None:
    expected, seconds = whole
    draw = random.Random(SEED)
    partly = 0
    for place in range(count):
        out = folder / str(place)
        run(processes, suite, out, kill_after=draw.uniform(0.02, 0.98) * seconds)
        partly += 0 < len(read_records(out).done) < len(expected.done)
        run(processes, suite, out)
        check_same(read_records(out), expected)
    assert partly or count < 10, "some kills should come between two jobs"


def test_killed_runs_go_on(
    processes: Any, suite: str, whole: tuple[Records, float], tmp_path: Path
) -> None:
    check_kills(processes, suite, whole, tmp_path, 2)


def test_two_runs_into_one_folder_do_each_job_once(
    processes: Any, suite: str, whole: tuple[Records, float], tmp_path: Path
) -> None:
    arguments = suite, str(tmp_path / "out"), processes.Event()
    both = [processes.Process(target=run_experiments, args=arguments) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(LONG)
    assert [process.exitcode for process in both] == [0, 0]
    files = (tmp_path / "out").glob("records-*.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert len(lines) == len(whole[0].done)
    check_same(read_records(tmp_path / "out"), whole[0])


@pytest.mark.slow
def test_many_killed_runs_go_on(
    processes: Any, suite: str, whole: tuple[Records, float], tmp_path: Path
) -> None:
    check_kills(processes, suite, whole, tmp_path, 25)


def command(suite: str, folder: Path, *options: str) -> list[str]:
    words = ["-m", "mvlstm", "bench", "run", "--suite", suite, "--out", str(folder)]
    return [sys.executable, *words, "--device", "cpu", *options]


ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
linux = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")


@pytest.fixture(scope="module")
def long_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Records]:
    """A suite whose jobs take about a second, and its records."""
    folder = tmp_path_factory.mktemp("long")
    path = folder / "kill.toml"
    path.write_text(LONGER)
    subprocess.run(command(str(path), folder / "out"), env=ONE_THREAD, check=True, timeout=LONG)
    return str(path), read_records(folder / "out")


def start_two(suite: str, folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a run on two processes; return it and their numbers once a first job is done."""
    driver = subprocess.Popen(command(suite, folder, "--workers", "2"), env=ONE_THREAD)
    workers = wait_for(lambda: descendants(driver.pid, "spawn_main"))
    wait_for(lambda: read_records(folder).done)
    return driver, workers


@linux
@pytest.mark.slow
def test_a_killed_process_costs_its_own_job_only(
    long_run: tuple[str, Records], tmp_path: Path
) -> None:
    suite, expected = long_run
    driver, workers = start_two(suite, tmp_path)
    os.kill(workers[0], signal.SIGKILL)
    assert driver.wait(LONG) == 0
    check_same(read_records(tmp_path), expected)


@linux
@pytest.mark.slow
def test_a_killed_driver_leaves_nothing_running(
    long_run: tuple[str, Records], tmp_path: Path
) -> None:
    suite, expected = long_run
    driver, workers = start_two(suite, tmp_path)
    driver.kill()
    driver.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in workers))
    again = command(suite, tmp_path, "--workers", "2")
    subprocess.run(again, env=ONE_THREAD, check=True, timeout=LONG)
    check_same(read_records(tmp_path), expected)


@linux
@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_killed_worker_of_ray_loses_nothing(
    long_run: tuple[str, Records], tmp_path: Path
) -> None:
    suite, expected = long_run
    driver = subprocess.Popen(command(suite, tmp_path, "--engine", "ray"), env=ONE_THREAD)
    busy = wait_for(lambda: descendants(driver.pid, "ray::run_task"))
    os.kill(busy[0], signal.SIGKILL)
    assert driver.wait(LONG) == 0
    check_same(read_records(tmp_path), expected)
