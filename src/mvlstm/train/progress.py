"""How training goes, in words for a display."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from mvlstm.progress import display
from mvlstm.train.loop import Progress
from mvlstm.train.state import TrainState


@contextmanager
def show_progress(
    verbose: int, title: str, unit: float = 1.0, time_limit: float | None = None
) -> Iterator[Callable[[Progress, TrainState], None]]:
    """Yield a callback for `mvlstm.train.loop.train` that shows epoch, error and time left.

    ``unit`` turns the validation error into units of the target. ``verbose=0`` shows nothing.
    Training ends ``time_limit`` seconds after it began, if not before.
    """
    with display(verbose, title, eager=True) as show:

        def callback(progress: Progress, state: TrainState) -> None:
            done = progress.max_epochs if progress.running == 0 else progress.epoch
            show(done, progress.max_epochs, _text(progress, unit, time_limit))

        yield callback


def _text(progress: Progress, unit: float, time_limit: float | None) -> str:
    onward = progress.max_epochs - progress.epoch if progress.running else 0
    until_limit = inf if time_limit is None else max(time_limit - progress.seconds, 0.0)
    minutes, seconds = divmod(round(min(onward * progress.seconds_each, until_limit)), 60)
    left = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    return (
        f"epoch {progress.epoch}/{progress.max_epochs}, "
        f"validation RMSE {progress.error * unit:.4g}, "
        f"{progress.running} of {progress.members} members running, at most {left} left"
    )
