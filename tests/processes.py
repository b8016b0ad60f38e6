"""Processes that tests start, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONG = 600.0  # seconds: nobody waits this long unless something hangs, however busy the machine is


def wait_for(condition: Callable[[], Any], seconds: float = LONG) -> Any:
    """Wait until a condition holds; return what it gave."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


def descendants(pid: int, word: str) -> list[int]:
    """Return the processes begun by another, or by those it began, whose command has a word."""
    parents, named = {}, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
            command = (place / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        parents[int(place.name)] = int(parent)
        if word.encode() in command:
            named.append(int(place.name))
    return [one for one in named if pid in _ancestors(one, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.add(pid)
    return found
