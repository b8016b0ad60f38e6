"""Tasks and their answers: what comes back, what does not, and in which order."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.engine import check_engine, opened
from mvlstm.engine.executor import OnRay, run_task
from mvlstm.engine.plain import Parts, from_plain, to_plain
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError, TrainingError


def square(shared: int, task: int) -> int:
    return shared + task**2


def fail(shared: type[Exception], task: int) -> None:
    warnings.warn("of a library", RuntimeWarning, stacklevel=1)
    raise shared(f"task {task} failed")


def warn(shared: str, task: int) -> int:
    warnings.warn(shared, MVLSTMWarning, stacklevel=1)
    return task


class Ray:
    """Runs tasks when they are asked for, the last one first."""

    class exceptions:
        RayError = OSError

    def __init__(self) -> None:
        self.put_values: list[Any] = []
        self.options: dict[str, Any] = {}
        self.running: list[int] = []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "GPU": 1.0}

    def remote(self, **options: Any) -> Any:
        self.options = options

        def wrap(function: Any) -> Any:
            class Remote:
                remote = staticmethod(lambda *given: (function, given))

            return Remote

        return wrap

    def put(self, value: Any) -> Any:
        self.put_values.append(value)
        return value

    def wait(self, futures: list[Any], num_returns: int) -> Any:
        self.running.append(len(futures))
        return futures[-1:], futures[:-1]

    def get(self, future: Any) -> Any:
        function, given = future
        return function(*given)


def test_results_are_in_order_whoever_ends_first_and_the_shared_part_is_stored_once() -> None:
    ray = Ray()
    found = list(OnRay(ray, "cpu").each(square, 5, 10))
    assert found == [(i, 5 + i**2) for i in range(10)]
    assert ray.put_values == [5]
    assert max(ray.running) == 6  # two slots, and two tasks more for each


def test_tasks_that_are_added_meanwhile_are_run() -> None:
    with opened("local") as engine:
        tasks = deque([3])
        found = []
        for task, result in engine.results(square, 0, tasks):
            found.append(result)
            if task:
                tasks.append(task - 1)
    assert found == [9, 4, 1, 0]


@pytest.mark.parametrize(("device", "share", "slots"), [("cpu", 0.0, 2), ("auto", 0.25, 4)])
def test_a_task_takes_a_share_of_a_gpu_unless_it_is_for_the_cpu(
    device: str, share: float, slots: int
) -> None:
    ray = Ray()
    engine = OnRay(ray, device)
    assert (ray.options["num_gpus"], engine.slots) == (share, slots)
    assert ray.options["max_retries"] > 0


def test_the_share_of_a_gpu_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVLSTM_GPU_SHARE", "0.5")
    assert OnRay(Ray(), "auto").slots == 2
    for wrong in ("0", "2", "half"):
        monkeypatch.setenv("MVLSTM_GPU_SHARE", wrong)
        with pytest.raises(ParameterError, match=f"MVLSTM_GPU_SHARE is '{wrong}'"):
            OnRay(Ray(), "auto")


def test_errors_and_warnings_of_ours_come_back_as_they_were() -> None:
    engine = OnRay(Ray(), "cpu")
    with pytest.raises(DataError, match=r"^task 0 failed$"):
        list(engine.each(fail, DataError, 1))
    with pytest.warns(MVLSTMWarning, match="take care"):
        assert list(engine.each(warn, "take care", 1)) == [(0, 0)]
    with pytest.raises(KeyError):
        list(engine.each(fail, KeyError, 1))


def test_a_task_whose_workers_all_die_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(self: Ray, future: Any) -> None:
        raise OSError("died")

    monkeypatch.setattr(Ray, "get", die)
    with pytest.raises(TrainingError, match=r"6 workers of Ray.*--num-cpus"):
        list(OnRay(Ray(), "cpu").each(square, 0, 1))


def test_another_version_on_a_worker_is_refused() -> None:
    answer = run_task(square, 0, 1, "0.0.1")
    assert answer.error is not None and "0.0.1" in answer.error[1]


@pytest.mark.parametrize("engine", ["slurm", "", None, 3, "rey"])
def test_engines_that_are_none_are_named(engine: Any) -> None:
    with pytest.raises(ParameterError, match="is not an option; choose 'local', 'ray'"):
        check_engine(engine)
    with pytest.raises(ParameterError, match="is not an option"):
        mv.AR(window=2).fit(pd.DataFrame({"y": [1.0]}), "y", engine=engine)


def test_forecasts_travel_as_arrays() -> None:
    table = mv.datasets.load("synthetic", n=200).frame
    forecast = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2).predict(table)
    sent = to_plain(forecast)
    assert isinstance(sent, Parts) and type(sent["transform"]) is Parts
    assert isinstance(sent["members"], np.ndarray)
    back = from_plain(sent)
    pd.testing.assert_frame_equal(back.to_frame(), forecast.to_frame())


def test_models_and_code_do_not_travel() -> None:
    @dataclass
    class Foreign:
        x: int = 1

    for value in (mv.AR(), square, Foreign(), {"a": [mv.AR]}):
        with pytest.raises(TypeError, match="is not sent between machines"):
            to_plain(value)
