"""Ray as an engine, with a Ray made up here: whose session it is, and what becomes of it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvlstm.bench import run as runs
from mvlstm.bench.execution import heading
from mvlstm.bench.records import Writer, read_records
from mvlstm.bench.spec import Job
from mvlstm.errors import ParameterError


class Ray(SimpleNamespace):
    """Runs a task when its result is asked for."""

    def __init__(self, *, running: bool = False, broken: bool = False) -> None:
        super().__init__(
            running=running, broken=broken, exceptions=SimpleNamespace(RayError=OSError)
        )

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **_: object) -> None:
        if self.broken:
            raise ConnectionError("nobody answers")
        self.running = True

    def shutdown(self) -> None:
        self.running = False

    def cluster_resources(self) -> dict[str, float]:
        return {}

    def put(self, value: Any) -> Any:
        return value

    def cancel(self, *_: object, **__: object) -> None:
        pass

    def remote(self, **_: object) -> Any:
        return lambda task: SimpleNamespace(remote=lambda *given: partial(task, *given))

    def wait(self, futures: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return futures[:num_returns], futures[num_returns:]

    def get(self, future: Any) -> Any:
        return future()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    def attempt(job: Job, device: str) -> Any:
        return {**heading(job), "status": "done", "timings": {}}, {}

    monkeypatch.setattr(runs, "attempt", attempt)
    return [Job("suite", "part", "synthetic", "ar", seed=seed) for seed in range(3)]


def run(ray: Ray, jobs: list[Job], folder: Path, address: str | None = None) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", ray)
        where: Any = {"engine": "ray", "address": address, "device": "cpu"}
        return list(runs.ray_records(jobs, Writer(folder), **where))


@pytest.mark.parametrize("running", [False, True])
def test_what_was_running_before_runs_on_and_all_else_is_ended(
    running: bool, jobs: list[Job], tmp_path: Path
) -> None:
    ray = Ray(running=running)
    assert {one["key"] for one in run(ray, jobs, tmp_path)} == {job.key for job in jobs}
    assert len(read_records(tmp_path).done) == len(jobs)
    assert ray.running == running


def test_a_job_whose_workers_die_fails_and_the_others_go_on(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Ray.get

    def get(self: Ray, future: Any) -> Any:
        if future.args[2]["seed"] == 1:
            raise OSError("the worker died")
        return plain(self, future)

    monkeypatch.setattr(Ray, "get", get)
    run(Ray(), jobs, tmp_path)
    found = read_records(tmp_path)
    assert len(found.done) == 2 and list(found.failed) == [jobs[1].key]
    assert "the worker died" in found.failed[jobs[1].key]["error"]["message"]


def test_a_cluster_beside_a_running_ray_is_refused(jobs: list[Job], tmp_path: Path) -> None:
    ray = Ray(running=True)
    with pytest.raises(ParameterError, match="runs in this process already"):
        run(ray, jobs, tmp_path, "auto")
    assert ray.running


def test_ray_that_does_not_answer_is_named(jobs: list[Job], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"nobody answers.*Check address="):
        run(Ray(broken=True), jobs, tmp_path)
