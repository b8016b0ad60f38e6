"""Progress of work made of a known number of steps: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def show_tasks(
    verbose: int, title: str, total: int, *, every: float = LINE_EVERY
) -> Iterator[Callable[[str], None]]:
    """Yield a function to call after each step with a word on how it went.

    Parameters
    ----------
    verbose : int
        0: nothing is shown.
    title : str
        What is being done.
    total : int
        Number of steps.
    every : float
        Seconds between plain lines, where standard error is not a terminal.
    """
    if verbose <= 0:
        yield lambda text: None
    elif sys.stderr.isatty():
        with _bar(title, total) as advance:
            yield advance
    else:
        yield _plain_lines(title, total, every)


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[text]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, text="")
        yield lambda text: bar.update(task, advance=1, text=text)


def _plain_lines(title: str, total: int, every: float) -> Callable[[str], None]:
    started = last = time.monotonic()
    done = 0

    def advance(text: str) -> None:
        nonlocal done, last
        done += 1
        now = time.monotonic()
        if now - last >= every:
            last = now
            left = (now - started) / done * (total - done)
            line = f"{title}: {done}/{total} {text}, about {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    return advance
