"""Progress of a known length: a bar on a terminal, plain lines elsewhere, nothing if asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from mvlstm.errors import printable

LINE_EVERY = 10.0  # seconds between plain lines
FIRST_AFTER = 2.0  # seconds until the first, if it takes as long
Show = Callable[[int, int, str], None]  # what is done, of how much, and how that goes


class Advance(Protocol):
    """Tells of steps that are done."""

    def __call__(self, text: str, *, steps: int = 1, of: int | None = None) -> None:
        """Show a word on how they went; ``of`` is how many there are, if that is known now."""


@contextmanager
def show_tasks(
    verbose: int, title: str, total: int, *, every: float = LINE_EVERY
) -> Iterator[Advance]:
    """Yield a function to call after one or more of ``total`` steps with a word on how it went.

    ``verbose=0`` shows nothing; ``every`` is the least number of seconds between plain lines, of
    which the first comes after two.
    """
    started, done = time.monotonic(), 0

    def advance(text: str, *, steps: int = 1, of: int | None = None) -> None:
        nonlocal done, total
        done, total = done + steps, of or total
        left = (time.monotonic() - started) / done * (total - done)
        show(done, total, f"{done}/{total} {text}, about {left:.0f} s left")

    with display(verbose, title, every) as show:
        yield advance


@contextmanager
def display(
    verbose: int, title: str, every: float = LINE_EVERY, *, eager: bool = False
) -> Iterator[Show]:
    """Yield a function that shows progress; an ``eager`` one shows the first and last at once."""
    if verbose <= 0:
        yield lambda done, total, text: None
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield _plain_lines(title, every, eager=eager)


def _bar(title: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = (TextColumn("{task.description}"), TextColumn("{task.fields[text]}"))
    columns = (text[0], BarColumn(), text[1], TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, text="started ...")
        yield lambda done, total, text: bar.update(
            task, completed=done, total=total, text=printable(text)
        )


def _plain_lines(title: str, every: float, *, eager: bool) -> Show:
    last = time.monotonic() - (every if eager else max(every - FIRST_AFTER, 0.0))

    def show(done: int, total: int, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every or (eager and done == total):
            last = now
            print(printable(f"{title}: {text}"), file=sys.stderr, flush=True)

    return show
