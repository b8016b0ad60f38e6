"""Progress of known length, where standard error is not a terminal."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.model import explaining
from mvlstm.progress import show_tasks


def test_plain_lines_say_what_is_done_and_left(capsys: pytest.CaptureFixture[str]) -> None:
    with show_tasks(1, "RF", 2, every=0.0) as advance:
        advance("depth 5")
        advance("depth 10")
    out, lines = capsys.readouterr()
    assert out == ""
    assert lines.splitlines()[0].startswith("RF: 1/2 depth 5, about ")
    assert lines.splitlines()[1] == "RF: 2/2 depth 10, about 0 s left"


def test_lines_are_not_more_frequent_than_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with show_tasks(1, "RF", 3, every=60.0) as advance:
        for _ in range(3):
            advance("")
    assert capsys.readouterr().err == ""


def test_what_takes_two_seconds_says_so_and_then_is_not_silent_for_long(
    capsys, monkeypatch
) -> None:
    now = iter(np.arange(0.0, 100.0, 0.5))  # half a second passes between two looks at the clock
    monkeypatch.setattr("mvlstm.progress.time", SimpleNamespace(monotonic=lambda: next(now)))
    with show_tasks(1, "GBT", 40) as advance:
        for _ in range(40):
            advance("grown")
    done = [int(line.split()[1].split("/")[0]) for line in capsys.readouterr().err.splitlines()]
    assert done[0] <= 2 and max(np.diff(done)) <= 10, "two looks a step"


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with show_tasks(0, "RF", 1, every=0.0) as advance:
        advance("done")
    assert capsys.readouterr().err == ""


def test_explaining_tells_how_far_it_is(capsys, monkeypatch) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=["a", "b", "y"])
    model = mv.AR(window=3, verbose=0).fit(table, "y", test=0.3)
    monkeypatch.setattr(explaining, "show_tasks", partial(show_tasks, every=0.0))
    model.explain(table, effort="quick")
    assert capsys.readouterr().err == ""
    model.verbose = 1
    model.explain(table, effort="quick")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("explain: 1/") and "exchanges of variables" in lines[0]


def test_verbose_must_be_a_number() -> None:
    table = pd.DataFrame(np.arange(60.0), columns=["y"])
    with pytest.raises(ParameterError, match="verbose='loud' must be a whole number"):
        mv.Persistence(window=3, verbose="loud").fit(table, "y")
