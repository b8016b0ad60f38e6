"""Every file operation may fail or be the last: nothing is lost, nothing half done is taken.

Each job is run with a fault at its n-th file operation, and killed there: fit, save, update, append
and a run of experiments. The fast tests choose a few n of each, the slow ones 50.
"""

from __future__ import annotations

import builtins
import errno
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from mvlstm import storage
from mvlstm.errors import MVLSTMError
from processes import LONG
from reliability.jobs import SETTINGS, contents, fit_and_save, make_table

FEW, MANY, COPIES = 2, 50, 10  # the last: models that are updated
SUITE = """
name = "events"
data.synthetic.n = 200
[[parts]]
datasets = ["synthetic"]
windows = [3, 4, 5]
methods = ["ar", "persistence"]
explain = false
"""


@contextmanager
def file_operations(act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` with the number of each file operation, before it is done."""
    count = 0

    def counted(function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            act(count)
            return function(*args, **options)

        return call

    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        return (plain if "r" in mode else counted(plain))(file, mode, *args, **options)

    plain = builtins.open
    patches = [
        mock.patch.object(os, name, counted(getattr(os, name)))
        for name in ("replace", "fsync", "ftruncate")
    ]
    patches += [mock.patch.object(Path, n, counted(getattr(Path, n))) for n in ("unlink", "mkdir")]
    patches.append(mock.patch.object(storage, "open", opened, create=True))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


# --------------------------------------------------------------------------------------- jobs


def fit_job(place: Path) -> None:
    fit_and_save(str(place / "state"), str(place / "model.safetensors"), "0.01")


def update_job(place: Path) -> None:
    import mvlstm as mv

    model = mv.load(place / "model0.safetensors").update(make_table(900), max_epochs=1)
    for copy in range(COPIES):
        model.save(place / f"model{copy}.safetensors")


def append_job(place: Path) -> None:
    from mvlstm.table.appending import append_rows

    for day in range(1, 10):
        rows = pd.DataFrame({"time": [f"2024-01-0{day}", f"2024-02-0{day}"], "y": [1.0, 2.0]})
        append_rows(place / "rows.csv", rows, key=["time"], patience=5)


def bench_job(place: Path) -> None:
    from mvlstm.bench.run import run_suite
    from mvlstm.bench.suite_files import load_suite

    (place / "suite.toml").write_text(SUITE)
    run_suite(load_suite(str(place / "suite.toml")), place / "out", device="cpu", verbose=0)


def model_of(path: Path) -> Any:
    header, arrays = contents(path)
    return {k: v for k, v in header.items() if k != "updates"}, arrays


def models_of(place: Path) -> Any:
    return [model_of(path) for path in sorted(place.glob("model*.safetensors"))]


def records_of(place: Path) -> Any:
    from mvlstm.bench.records import read_records

    found = read_records(place / "out")
    assert not found.problems and not found.failed
    return {key: np.asarray(one["single"]["rmse"]).tolist() for key, one in found.done.items()}


JOBS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "fit": (fit_job, models_of),
    "update": (update_job, models_of),
    "append": (append_job, lambda place: (place / "rows.csv").read_text()),
    "bench": (bench_job, records_of),
}


def child(name: str, place: Path, last: int) -> None:
    """Do a job; die at the ``last`` of its file operations, or tell how many there were."""
    import torch

    torch.set_num_threads(1)
    done = 0

    def act(number: int) -> None:
        nonlocal done
        done = number
        if number == last:
            os._exit(9)

    with file_operations(act):
        JOBS[name][0](place)
    (place / "count").write_text(str(done))


def run(name: str, place: Path, last: int = 0) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mvlstm.bench.run", "mvlstm.methods.mvlstm"])
    process = context.Process(target=child, args=(name, place, last))
    process.start()
    process.join(LONG)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model to update."""
    import mvlstm as mv

    path = tmp_path_factory.mktemp("base") / "model.safetensors"
    mv.MVLSTM(**SETTINGS | {"max_epochs": 1}).fit(make_table(), "y", test=0.2).save(path)
    return path


def prepared(name: str, place: Path, base: Path) -> Path:
    place.mkdir()
    return restored(name, place, base)


def restored(name: str, place: Path, base: Path) -> Path:
    """Put the models that are to be updated in place."""
    for copy in range(COPIES if name == "update" else 0):
        (place / f"model{copy}.safetensors").write_bytes(base.read_bytes())
    return place


def spread(operations: int, count: int) -> list[int]:
    """Choose this many operations, spread evenly; all, where there are no more."""
    if operations <= count:
        return list(range(1, operations + 1))
    return sorted({int(n) for n in np.linspace(1, operations, count + 2)[1:-1]})


def check_kills(name: str, base: Path, folder: Path, count: int) -> int:
    whole = prepared(name, folder / "whole", base)
    assert run(name, whole) == 0
    expected = JOBS[name][1](whole)
    kills = 0
    for last in spread(int((whole / "count").read_text()), count):
        place = prepared(name, folder / str(last), base)
        kills += run(name, place, last) == 9
        if name == "update":  # each model is the old one, or the new one
            assert all(one in (model_of(base), expected[0]) for one in models_of(place))
            restored(name, place, base)
        assert run(name, place) == 0
        assert JOBS[name][1](place) == expected, f"killed at operation {last}"
        assert not list(place.rglob(".*.lock"))
    return kills


@pytest.mark.skipif(os.name != "posix", reason="kills in the way of POSIX")
@pytest.mark.parametrize("name", JOBS)
def test_a_job_killed_at_a_file_operation_is_done_again(
    name: str, base: Path, tmp_path: Path
) -> None:
    assert check_kills(name, base, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_killed_at_any_of_fifty_file_operations(
    name: str, base: Path, tmp_path: Path
) -> None:
    print(name, check_kills(name, base, tmp_path, MANY), "kills")


def check_faults(name: str, base: Path, folder: Path, count: int) -> None:
    counted = 0

    def note(number: int) -> None:
        nonlocal counted
        counted = number

    with file_operations(note):
        JOBS[name][0](prepared(name, folder / "whole", base))
    for last in spread(counted, count):
        place = prepared(name, folder / str(last), base)

        def fail(number: int, last: int = last) -> None:
            if number == last:
                raise OSError(errno.ENOSPC, "No space left on device")

        try:
            with file_operations(fail):
                JOBS[name][0](place)
        except MVLSTMError as error:
            assert "No space left" in str(error)
        left = [path.name for path in place.rglob(".*.tmp")]
        assert not left, f"operation {last} left {left}"
        restored(name, place, base)
        JOBS[name][0](place)
        assert JOBS[name][1](place) == JOBS[name][1](folder / "whole")


@pytest.mark.parametrize("name", ["append", "bench", "update"])
def test_a_failing_file_operation_is_one_error_and_loses_nothing(
    name: str, base: Path, tmp_path: Path
) -> None:
    check_faults(name, base, tmp_path, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_every_failing_file_operation(name: str, base: Path, tmp_path: Path) -> None:
    check_faults(name, base, tmp_path, 10 * MANY)
