"""Progress of known length, where standard error is not a terminal."""

from __future__ import annotations

import pytest

from mvlstm.forecasters.steps import show_steps


def test_plain_lines_say_what_is_done_and_left(capsys: pytest.CaptureFixture[str]) -> None:
    with show_steps(1, "RF", 2, every=0.0) as advance:
        advance("depth 5")
        advance("depth 10")
    out, lines = capsys.readouterr()
    assert out == ""
    assert lines.splitlines()[0].startswith("RF: 1/2 depth 5, about ")
    assert lines.splitlines()[1] == "RF: 2/2 depth 10, about 0 s left"


def test_lines_are_not_more_frequent_than_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with show_steps(1, "RF", 3, every=60.0) as advance:
        for _ in range(3):
            advance("")
    assert capsys.readouterr().err == ""


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with show_steps(0, "RF", 1, every=0.0) as advance:
        advance("done")
    assert capsys.readouterr().err == ""
