"""Independent pieces of work on the CPU's cores, each done by one thread from end to end.

The matrices of one step are small. Cores that share each product wait for one another at every
one of them; cores that each take a member, or a piece of its batch, do not.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Barrier
from typing import TypeVar

import torch

Result = TypeVar("Result")


def run_all(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run every task and return the results in order.

    As many tasks run at once as `torch.get_num_threads` allows. Each task has one thread (more
    only where there are at least twice as many threads as tasks, and four): what it computes does
    not depend on what else runs.
    """
    threads = torch.get_num_threads()
    if threads == 1 or not tasks:
        return [task() for task in tasks]
    workers = min(threads, max(2, len(tasks)))
    pool = _pool(os.getpid(), workers, threads // workers)
    return [future.result() for future in [pool.submit(task) for task in tasks]]


def run_chains(links: Sequence[Callable[[int], object]], length: int) -> None:
    """Call every function with 0, 1, ..., ``length`` - 1, in order; none waits for the others.

    So three of them keep two cores busy, where tasks in rounds would leave one idle in each second.
    """
    waiting = deque((link, 0) for link in links)

    def work() -> None:
        while waiting:
            try:
                link, place = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            link(place)
            if place + 1 < length:
                waiting.append((link, place + 1))

    run_all([work] * min(torch.get_num_threads(), len(links)))


@lru_cache(maxsize=4)
def _pool(process: int, workers: int, threads: int) -> ThreadPoolExecutor:
    """Return a pool whose workers have ``threads`` threads each inside PyTorch.

    The number is a property of each worker thread; the calling thread's own number is set again
    afterwards, since PyTorch also keeps the last one set as the default of new threads.
    ``process`` makes a forked child start its own.
    """
    ready = Barrier(workers + 1)

    def start() -> None:
        torch.set_num_threads(threads)
        torch.get_num_threads()  # a thread's first use takes the default; let it be this one
        ready.wait()

    pool = ThreadPoolExecutor(workers, thread_name_prefix=f"mvlstm-{process}", initializer=start)
    outside = torch.get_num_threads()
    for _ in range(workers):
        pool.submit(int)
    ready.wait()
    torch.set_num_threads(outside)
    return pool


def _one_thread() -> None:
    """Let a forked child work alone: it has none of the threads that torch would wait for."""
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread)
