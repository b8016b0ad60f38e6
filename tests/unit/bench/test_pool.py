"""Processes side by side: what becomes of jobs whose process dies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvlstm.bench import pool
from mvlstm.bench.spec import Job

AT_REST, AT_WORK, NEVER = "at rest", "at work", "never"  # when a process dies


class Line:
    """The line to a process that dies at a given time."""

    def __init__(self, dies: str) -> None:
        self.dies, self.job, self.closed = dies, {}, False

    def send(self, job: dict[str, Any]) -> None:
        if self.dies == AT_REST:
            raise BrokenPipeError
        self.job = job

    def recv(self) -> dict[str, Any]:
        if self.dies == AT_WORK:
            raise EOFError
        return {"key": Job.from_dict(self.job).key, "status": "done"}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[str], int]]:
    """Run two jobs on processes that die as told, in the order in which they are started."""

    def outcome(*deaths: str) -> tuple[list[str], int]:
        lines: list[Line] = []

        def start(*_: object) -> pool._Worker:
            lines.append(Line(deaths[len(lines)] if len(lines) < len(deaths) else NEVER))
            process = SimpleNamespace(join=lambda timeout: None, is_alive=bool, exitcode=-9)
            return pool._Worker(process, lines[-1])  # type: ignore[arg-type]

        def ready(waiting: list[Line]) -> list[Line]:
            assert waiting, "it would wait for ever"
            return waiting

        monkeypatch.setattr(pool, "_start", start)
        monkeypatch.setattr(pool, "wait", ready)
        jobs = [Job("suite", "part", "synthetic", "ar", seed=seed) for seed in range(2)]
        found = list(pool.pool_records(jobs, tmp_path, workers=2, device="cpu"))
        assert sorted(one["key"] for one in found) == sorted(job.key for job in jobs)
        return sorted(one["status"] for one in found), len(lines)

    return outcome


def test_a_process_that_dies_at_rest_is_replaced_and_costs_no_attempt(run) -> None:
    assert run() == (["done", "done"], 2)
    assert run(AT_REST, AT_REST) == (["done", "done"], 4)
    assert run(AT_REST, NEVER, AT_WORK) == (["done", "done"], 4)


def test_a_job_is_given_up_when_its_process_died_twice(run) -> None:
    assert run(AT_WORK) == (["done", "done"], 3)
    assert run(AT_WORK, AT_WORK, AT_WORK, NEVER)[0] == ["done", "failed"]


@pytest.mark.parametrize("given", [None, "", "3"])
def test_starting_a_process_leaves_the_environment_alone(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    process = SimpleNamespace(start=lambda: seen.append(os.environ.get("OMP_NUM_THREADS")))
    ends = (SimpleNamespace(), SimpleNamespace(close=lambda: None))
    context = SimpleNamespace(Pipe=lambda: ends, Process=lambda **_: process)
    monkeypatch.setattr(pool.multiprocessing, "get_context", lambda _: context)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    pool._start(tmp_path, "cpu", 2)
    assert seen == [given or "2"]
    assert os.environ.get("OMP_NUM_THREADS") == given
