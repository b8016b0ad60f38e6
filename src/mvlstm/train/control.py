"""When a training run saves its state, and when it ends before its time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from mvlstm.train.state import TrainState

Stopped = Literal["interrupt", "time limit"]


class Control:
    """Asked after every step whether to save, and whether to stop.

    ``save`` stores the state: every few seconds, when the run is stopped, and at its end. The
    run stops ``time_limit`` seconds from now, the closing work included.
    """

    def __init__(
        self,
        *,
        save: Callable[[TrainState, bool], None] | None = None,
        every: float = 20.0,
        time_limit: float | None = None,
    ) -> None:
        self.save, self.every = save, every
        now = time.monotonic()
        self.deadline = None if time_limit is None else now + time_limit
        self.stopped: Stopped | None = None
        self._saved = now

    @property
    def save_is_due(self) -> bool:
        """Whether the state should be stored now."""
        return self.save is not None and time.monotonic() - self._saved >= self.every

    def store(self, state: TrainState, *, finished: bool) -> None:
        """Store the state, if there is a place for it."""
        if self.save is not None:
            self.save(state, finished)
            self._saved = time.monotonic()

    def must_stop(self, closing: float) -> bool:
        """Say whether to stop; ``closing`` are the seconds that the work after it will take."""
        late = self.deadline is not None and time.monotonic() + closing >= self.deadline
        if late and self.stopped is None:
            self.stopped = "time limit"
        return self.stopped is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the first Ctrl-C, or SIGTERM, as a wish to stop after the step.

        The second interrupts at once. Only in the main thread, and only where nobody else has a
        handler in place.
        """
        before = {}
        if threading.current_thread() is threading.main_thread():
            own = (signal.SIG_DFL, signal.default_int_handler)
            for one in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(one) in own:
                    before[one] = signal.getsignal(one)

        def handle(number: int, frame: Any) -> None:
            for one in before:
                signal.signal(one, signal.default_int_handler)
            self.stopped = "interrupt"

        for one in before:
            signal.signal(one, handle)
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
