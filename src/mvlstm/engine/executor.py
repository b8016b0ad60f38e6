"""One executor for tasks that do not depend on one another.

A task is a function of what all share and what it has of its own. The shared part is put into
the object store once, and each node that needs it fetches it once. Workers send back arrays and
plain values. The task of a worker or node that dies is run again on another.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mvlstm import errors
from mvlstm._version import __version__
from mvlstm.engine.plain import from_plain, to_plain
from mvlstm.engine.records import Records
from mvlstm.engine.session import is_ours, session
from mvlstm.errors import MVLSTMError, MVLSTMWarning, ParameterError, TrainingError

RETRIES = 5  # times that a task whose worker died is given to another
GPU_SHARE = 0.25  # of a GPU that a task takes, unless the environment says otherwise
ENDING = 10.0  # seconds for tasks to end that nobody wants any more
AHEAD = 2  # tasks that wait for each slot: results that nobody has read yet take memory
Function = Callable[[Any, Any], Any]
Lost = Callable[[Any, Exception], Any]  # what stands for the result of a task that was lost


class Answer(NamedTuple):
    """What a worker sends back."""

    value: Any
    warnings: tuple[str, ...] = ()
    error: tuple[str, str] | None = None  # class and message, where it failed on purpose


class Engine(ABC):
    """Runs tasks; `opened` gives one."""

    slots: int  # tasks that run at once
    here: bool  # whether they run in this process

    @abstractmethod
    def share(self, value: Any) -> Any:
        """Return a handle of a value for `results`, which all tasks of a run see."""

    @abstractmethod
    def results(
        self,
        function: Function,
        shared: Any,
        tasks: Sequence[Any] | deque[Any],
        lost: Lost | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each task with what ``function(value, task)`` returned, the first done first.

        The function must be importable where workers are. Where ``tasks`` is a deque, what is
        added to it meanwhile is run too. A task whose workers died again and again is an error,
        or what ``lost`` says.
        """

    def each(
        self, function: Function, value: Any, count: int, records: Records | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield ``function(value, i)`` for every i below ``count``, in their order.

        What is in ``records`` is not done again, and what is done is kept there.
        """
        found = {} if records is None else records.find(count)
        left = [place for place in range(count) if place not in found]
        work = self.results(function, self.share(value), left) if left else iter(())
        for wanted in range(count):
            while wanted not in found:
                place, found[place] = next(work)
                if records is not None:
                    records.keep(place, found[place])
            yield wanted, found.pop(wanted)


class Local(Engine):
    """Tasks in this process, one after another."""

    slots, here = 1, True

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def results(
        self,
        function: Function,
        shared: Any,
        tasks: Sequence[Any] | deque[Any],
        lost: Lost | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Run the tasks in order."""
        waiting = tasks if isinstance(tasks, deque) else deque(tasks)
        while waiting:
            task = waiting.popleft()
            yield task, function(shared, task)


class OnRay(Engine):
    """Tasks of Ray, each on one core and, where wanted, a share of a GPU."""

    here = False

    def __init__(self, ray: Any, device: str) -> None:
        there: dict[str, float] = ray.cluster_resources()
        gpus = 0.0 if device == "cpu" else min(gpu_share(), float(there.get("GPU", 0.0)))
        self._ray = ray
        self._run = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=gpus)(run_task)
        self.slots = max(1, int(there["GPU"] / gpus if gpus else there.get("CPU", 1.0)))
        self._flying: dict[Any, Any] = {}

    def share(self, value: Any) -> Any:
        """Put the value into the object store."""
        return self._ray.put(value)

    def results(
        self,
        function: Function,
        shared: Any,
        tasks: Sequence[Any] | deque[Any],
        lost: Lost | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Run the tasks on the cluster."""
        waiting = tasks if isinstance(tasks, deque) else deque(tasks)
        while waiting or self._flying:
            while waiting and len(self._flying) < (1 + AHEAD) * self.slots:
                task = waiting.popleft()
                self._flying[self._run.remote(function, shared, task, __version__)] = task
            ready, _ = self._ray.wait(list(self._flying), num_returns=1)
            for future in ready:
                task = self._flying.pop(future)
                yield task, self._value(future, task, lost)

    def _value(self, future: Any, task: Any, lost: Lost | None) -> Any:
        """Return a task's result, its warnings given and its error raised here."""
        try:
            answer: Answer = self._ray.get(future)
        except self._ray.exceptions.RayError as error:
            if lost is not None:
                return lost(task, error)
            if getattr(error, "cause", None) is not None:  # it failed as no one meant it to
                raise
            raise TrainingError(
                f"A task was given to {RETRIES + 1} workers of Ray, and each of them died "
                f"({type(error).__name__}). If memory ran out, give each node fewer tasks at once: "
                "start it with a smaller --num-cpus."
            ) from error
        for text in answer.warnings:
            errors.warn(text)
        if answer.error is not None:
            kind, message = answer.error
            raise getattr(errors, kind, MVLSTMError)(message)
        return from_plain(answer.value)

    def cancel(self) -> None:
        """End what still runs, and wait for it: Ray aborts where it is shut down meanwhile."""
        flying = list(self._flying)
        for future in flying:
            with contextlib.suppress(Exception):
                self._ray.cancel(future, force=True)
        if flying:
            self._ray.wait(flying, num_returns=len(flying), timeout=ENDING, fetch_local=False)


def run_task(function: Function, shared: Any, task: Any, version: str) -> Answer:
    """Run one task in a worker."""
    if version != __version__:
        return Answer(None, error=("ParameterError", _other_version(version)))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MVLSTMWarning)
        try:
            value = to_plain(function(shared, task))
        except MVLSTMError as error:
            return Answer(None, error=(type(error).__name__, str(error)))
    return Answer(value, tuple(str(one.message) for one in given))


def _other_version(version: str) -> str:
    return (
        f"A worker of Ray has mvlstm {__version__}, and this process {version}. Install the same "
        "version on all nodes."
    )


def gpu_share() -> float:
    """Return the share of a GPU that a task takes: a quarter, or what MVLSTM_GPU_SHARE says."""
    text = os.environ.get("MVLSTM_GPU_SHARE", "")
    try:
        share = float(text or GPU_SHARE)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:  # Ray gives a task whole GPUs beyond one, and members use one
        raise ParameterError(
            f"MVLSTM_GPU_SHARE is {text!r}; it must be the share of a GPU that a task takes, above "
            "0 and at most 1, such as 0.5."
        )
    return share


def check_engine(engine: object) -> None:
    """Raise `ParameterError` unless an engine is "local", "ray" or the address of a cluster.

    Examples
    --------
    >>> check_engine("10.0.0.1:6379")
    >>> check_engine("slurm")
    Traceback (most recent call last):
        ...
    mvlstm.errors.ParameterError: engine='slurm' is not an option; choose 'local', 'ray' or the \
address of a Ray cluster, such as '10.0.0.1:6379'.
    """
    known = isinstance(engine, str) and (engine in ("local", "ray", "auto") or ":" in engine)
    if not known:
        raise ParameterError(
            f"engine={engine!r} is not an option; choose 'local', 'ray' or the address of a Ray "
            "cluster, such as '10.0.0.1:6379'."
        )


@contextlib.contextmanager
def opened(engine: str, device: str = "cpu", address: str | None = None) -> Iterator[Engine]:
    """Yield the executor of an engine: "local", "ray", or the address of a Ray cluster.

    Tasks on a ``device`` other than "cpu" take a share of a GPU where the cluster has any. Within
    another of the same engine, it is the same Ray. What still runs at the end is ended: a Ray that
    was begun here ends its tasks with itself (and aborts where they were cancelled just before).
    """
    check_engine(engine)
    if engine == "local":
        yield Local()
        return
    with session(address if engine == "ray" else engine) as ray:
        found = OnRay(ray, device)
        try:
            yield found
        finally:
            if not is_ours():
                found.cancel()
