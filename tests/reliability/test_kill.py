"""A fit killed without warning goes on from its checkpoint to the same bits."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from mvlstm.storage import Packed
from mvlstm.train.checkpoint import AGAIN, NAME
from processes import LONG, wait_for
from reliability.jobs import contents, fit_and_save

SEED = int(os.environ.get("MVLSTM_TEST_SEED", "0"))


@pytest.fixture(scope="module")
def processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mvlstm.methods.mvlstm", "safetensors.numpy"])
    return context


def run(
    processes: Any, *arguments: str, kill_after: float | None = None, seen: Path | None = None
) -> float:
    """Run a fit in a process of its own; return the seconds it took.

    If asked, it is killed so many seconds after it began, or after a file was seen.
    """
    started = processes.Event()
    process = processes.Process(target=fit_and_save, args=(*arguments, started))
    process.start()
    assert started.wait(LONG)
    begun = time.monotonic()
    if seen is not None:
        wait_for(seen.exists)
    process.join(kill_after)
    if kill_after is not None:
        process.kill()
        process.join()
    else:
        assert process.exitcode == 0
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def whole(processes: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """What a fit that nobody disturbs ends with, and the seconds it takes."""
    folder = tmp_path_factory.mktemp("whole")
    run(processes, str(folder / "checkpoint"), str(folder / "model.safetensors"), "0.02")
    seconds = run(processes, str(folder / "again"), str(folder / "second.safetensors"), "0.02")
    first = contents(folder / "model.safetensors")
    assert contents(folder / "second.safetensors") == first
    return first, seconds


def check_kills(processes: Any, whole: tuple[Any, float], folder: Path, count: int) -> None:
    expected, seconds = whole
    draw = random.Random(SEED)
    found = 0
    for i in range(count):
        place = folder / str(i)
        place.mkdir()
        out = place / "model.safetensors"
        state = place / "checkpoint"
        moment = draw.uniform(0.05, 0.95) * seconds
        seen = state / NAME if i % 2 else None
        run(processes, str(state), str(out), "0.02", kill_after=moment, seen=seen)
        for file in place.rglob("*.safetensors"):  # complete under its name, always
            kind = "mvlstm-checkpoint" if file.name in (NAME, AGAIN) else "mvlstm"
            Packed.open(file, kind, "file").arrays()
        found += (state / NAME).exists()
        out.unlink(missing_ok=True)
        run(processes, str(state), str(out), "0.02")
        assert contents(out) == expected, f"fit killed after {moment:.3f} s"
    assert found >= count // 2


def test_killed_fits_resume(processes: Any, whole: tuple[Any, float], tmp_path: Path) -> None:
    check_kills(processes, whole, tmp_path, 3)


@pytest.mark.slow
def test_twenty_killed_fits_resume(
    processes: Any, whole: tuple[Any, float], tmp_path: Path
) -> None:
    check_kills(processes, whole, tmp_path, 20)
