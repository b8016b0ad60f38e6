"""What every test may count on."""

from __future__ import annotations

import hashlib
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

# A shell that starts the tests in the background lets them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out tests of adapters, which import other libraries, unless ``-m adapters`` asks."""
    outside = collection_path == Path(__file__).parent / "adapters"
    return True if outside and config.option.markexpr != "adapters" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured, by ``record_property``."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")


@pytest.fixture(scope="session", autouse=True)
def regressions_once() -> Iterator[None]:
    """Learn the regressions of an explanation once for equal rows: most of its time goes there.

    Many tests explain many forecasters on one table.
    """
    from mvlstm.explain.refits import Left, Rows

    measure = import_module("mvlstm.explain.measure")  # the package has a function of that name
    learn, known = measure.leave_out, {}

    def leave_out(
        rows: Rows,
        families: Sequence[tuple[int, ...]],
        progress: Callable[[int], None] | None = None,
        deadline: float = math.inf,
    ) -> Left | None:
        if deadline < math.inf:
            return learn(rows, families, progress, deadline)
        told = hashlib.sha1(repr((rows.period, list(rows.groups), list(families))).encode())
        for one in (rows.windows, rows.labels, rows.level, rows.positions, rows.times):
            if one is not None:
                told.update(f"{one.dtype} {one.shape}".encode() + np.ascontiguousarray(one).data)
        key = told.digest()
        if key not in known:
            known[key] = learn(rows, families, progress)
        elif progress is not None and known[key] is not None:
            for _ in families:
                progress(1)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "leave_out", leave_out)
        yield
