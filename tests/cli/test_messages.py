"""Messages of the library, said in the words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import mvlstm as mv
from mvlstm.cli.messages import translate
from mvlstm.cli.options import FIT_OPTIONS

from .conftest import Run

SAID = {
    "Use missing='drop' or repair the rows.": "Use --missing drop or repair the rows.",
    "Fit with test=0.2 to leave some unseen.": "Fit with --test 0.2 to leave some unseen.",
    "Name the column with time=... first.": "Name the column with --time first.",
    "Use time=['year', 'month'].": "Use --time year,month.",
    'Use exclude=["x y", "z"].': "Use --exclude 'x y,z'.",
    "Fit with known=[...].": "Fit with --known.",
    "Set hidden_size=10, learning_rate=1e-05.": "Set --hidden-size 10, --learning-rate 1e-05.",
    "Use l2_sum=True.": "Use --l2-sum.",
    "Use l2_sum=False.": "Use --l2-mean.",
    "Name it with sep=';'.": "Name it with --sep ';'.",
    "A larger part (valid=0.3) helps.": "A larger part (--valid 0.3) helps.",
}
KEPT = (
    "window=1 must be a whole number, 2 or more.",  # what was received
    "test=0.9 is too much.",
    "The checkpoint is of a fit with seed=0, not 9.",
    "in pandas: pd.read_csv(..., sep=';')",
    "Call mvlstm.datasets.load('x', folder=...).",
    "Use unit='s' or variables=None.",
    "Shorten the window (--window), or use fewer rows.",
    "y=3 at x=2",
)


@pytest.mark.parametrize("message", SAID)
def test_arguments_become_options(message: str) -> None:
    assert translate(message, FIT_OPTIONS) == SAID[message]


@pytest.mark.parametrize("message", KEPT)
def test_the_rest_stays(message: str) -> None:
    assert translate(message, FIT_OPTIONS) == message


def test_an_option_of_the_running_command() -> None:
    assert translate("Try folds=2.", FIT_OPTIONS) == "Try folds=2."
    assert translate("Try folds=2.", {**FIT_OPTIONS, "folds": "--folds"}) == "Try --folds 2."


def test_errors_warnings_and_notes_are_translated(
    run: Run, model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json
    import warnings
    from dataclasses import replace
    from typing import Any

    plain = mv.MVLSTM.forecast

    def forecast(self: mv.MVLSTM, rows: Any, **options: Any) -> mv.Forecast:
        warnings.warn("Better use gaps='respect'.", mv.MVLSTMWarning, stacklevel=2)
        return replace(plain(self, rows, **options), notes=("Fit with test=0.2.",))

    def fail(*_: object, **__: object) -> None:
        raise mv.errors.DataError("Holes in 'x1'. Fit with missing='fill'.")

    monkeypatch.setattr(mv.MVLSTM, "forecast", forecast)
    done = run("forecast", model, table)
    assert "warning: Better use --gaps respect." in done.stderr
    assert "note: Fit with --test 0.2." in done.stdout
    found = json.loads(run("forecast", model, table, "--json").stdout)
    assert found["warnings"] == ["Better use --gaps respect."]
    assert found["notes"] == ["Fit with --test 0.2."]
    monkeypatch.setattr(mv.MVLSTM, "forecast", fail)
    assert "error: Holes in 'x1'. Fit with --missing fill." in run("forecast", model, table).stderr
