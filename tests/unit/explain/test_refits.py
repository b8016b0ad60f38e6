"""Regressions without a variable, and how they keep a deadline."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from mvlstm.explain import refits
from mvlstm.explain.refits import Rows, leave_out

FAMILIES = [(0,), (1,), (2,), (0, 1)]


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    windows = rng.normal(size=(400, 4, 3))
    labels = windows[:, -1, :1] + 0.5 * windows[:, -1, 2:] + 0.3 * rng.normal(size=(400, 1))
    labels = np.repeat(labels, 2, axis=1)  # two steps ahead
    return Rows(windows, labels, np.zeros(400), np.arange(400), (0, 1, 2))


def seconds_per_look(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the clock go on by this much whenever it is read, from zero."""
    now = count()
    clock = SimpleNamespace(monotonic=lambda: seconds * next(now))
    monkeypatch.setattr(refits, "clock", clock)


@pytest.mark.parametrize(("deadline", "learned"), [(1e6, 400), (30.0, 335), (9.0, 150), (3.0, 0)])
def test_they_learn_from_as_many_rows_as_there_is_time_for(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, deadline: float, learned: int
) -> None:
    seconds_per_look(monkeypatch, 1.0)
    left = leave_out(rows, FAMILIES, deadline=deadline)
    assert (0 if left is None else len(left.rises)) == learned


def test_from_few_rows_they_still_tell_who_matters(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_per_look(monkeypatch, 1.0)
    left = leave_out(rows, FAMILIES, deadline=9.0)
    assert left is not None and left.rises.shape == (150, 4)
    means = left.rises.mean(axis=0)
    assert means[0] > 10 * abs(means[1])
