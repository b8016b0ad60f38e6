"""Showing how training goes: a bar on a terminal, plain lines elsewhere, nothing if asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mvlstm.train.loop import Progress
from mvlstm.train.state import TrainState

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def show_progress(
    verbose: int, title: str, unit: float = 1.0
) -> Iterator[Callable[[Progress, TrainState], None]]:
    """Yield a callback for `mvlstm.train.loop.train` that shows epoch, error and time left.

    ``unit`` turns the validation error into units of the target. ``verbose=0`` shows nothing.
    """
    if verbose <= 0:
        yield lambda progress, state: None
    elif sys.stderr.isatty():
        with _bar(title, unit) as callback:
            yield callback
    else:
        yield _plain_lines(title, unit)


@contextmanager
def _bar(title: str, unit: float) -> Iterator[Callable[[Progress, TrainState], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, text="first epoch ...")

        def callback(progress: Progress, state: TrainState) -> None:
            done = progress.max_epochs if progress.running == 0 else progress.epoch
            bar.update(task, total=progress.max_epochs, completed=done, text=_text(progress, unit))

        yield callback


def _plain_lines(title: str, unit: float) -> Callable[[Progress, TrainState], None]:
    last = time.monotonic() - LINE_EVERY

    def callback(progress: Progress, state: TrainState) -> None:
        nonlocal last
        now = time.monotonic()
        ended = progress.running == 0 or progress.epoch == progress.max_epochs
        if ended or now - last >= LINE_EVERY:
            last = now
            print(f"{title}: {_text(progress, unit)}", file=sys.stderr, flush=True)

    return callback


def _text(progress: Progress, unit: float) -> str:
    onward = progress.max_epochs - progress.epoch if progress.running else 0
    minutes, seconds = divmod(round(onward * progress.seconds_each), 60)
    left = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    return (
        f"epoch {progress.epoch}/{progress.max_epochs}, "
        f"validation RMSE {progress.error * unit:.4g}, "
        f"{progress.running} of {progress.members} members running, at most {left} left"
    )
