"""What a hurried user meets: European numbers, typos over unfinished fits, gaps, steady columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from mvlstm.errors import DataError
from mvlstm.table.files import read_table

SMALL = ("--window", "4", "--hidden-size", "2", "--members", "2", "--max-epochs", "2", "--quiet")
SETTINGS: dict[str, Any] = {"window": 4, "hidden_size": 2, "members": 1, "max_epochs": 1}


def command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.r_[0.0, x[:-1]] + 0.3 * rng.normal(size=200)
    return pd.DataFrame(
        {"time": pd.date_range("2024-01-01", periods=200, freq="h"), "x": x, "y": y}
    )


@pytest.fixture
def file(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "base.csv", index=False)
    return tmp_path / "base.csv"


def test_dots_mark_thousands_where_commas_are_decimal(tmp_path: Path) -> None:
    text = "day;whole;split;mixed;date;small\n1;0;1.918,6;1.5;31.12.2024;0.125\n"
    text += "2;-2.723;0,5;2,25;01.01.2025;1.375\n3;1.000.000;-12,;;;0.250\n"
    (tmp_path / "eu.csv").write_text(text, encoding="utf-8")
    found = read_table(tmp_path / "eu.csv", decimal=",")
    assert found["whole"].tolist() == [0.0, -2723.0, 1e6]
    assert found["split"].tolist() == [1918.6, 0.5, -12.0]
    assert found["mixed"].tolist()[:2] == ["1.5", "2,25"], "neither: the reader is asked"
    assert found["small"].tolist() == ["0.125", "1.375", "0.250"], "thousands do not begin with 0"
    assert found["date"].tolist()[:2] == ["31.12.2024", "01.01.2025"]
    plain = read_table(tmp_path / "eu.csv", sep=";")
    assert plain["whole"].tolist()[:2] == ["0", "-2.723"]


def test_a_typo_does_not_delete_an_unfinished_fit(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    state = tmp_path / "m.checkpoint" / "fit.checkpoint.safetensors"
    fit = ("fit", file, "--time", "time", *SMALL, "--out", out)
    stopped = command(*fit, "--target", "y", "--time-limit", "0.001")
    assert stopped.exit_code == 0 and state.is_file()
    kept = state.read_bytes()
    assert command(*fit, "--target", "yy", "--no-resume").exit_code == 2
    assert state.read_bytes() == kept
    assert command(*fit, "--target", "y", "--no-resume").exit_code == 0
    assert not state.parent.exists()


def test_a_fit_that_was_not_begun_says_so(file: Path, tmp_path: Path) -> None:
    fit = ("fit", file, "--target", "y", "--time", "time", *SMALL, "--out", tmp_path / "m.st")
    done = command(*fit[:-1], tmp_path / "m.safetensors", "--resume")
    assert "There was no unfinished fit" in done.stdout
    stopped = command(*fit[:-1], tmp_path / "n.safetensors", "--time-limit", "0.001")
    assert "no epoch done" in stopped.stdout
    assert stopped.stderr.count("do not rely on this model") == 1
    assert "do not rely" not in stopped.stdout, "told once"


def test_rows_without_times_are_explained(table: pd.DataFrame) -> None:
    numbered = table[["x", "y"]]
    model = mv.MVLSTM(**SETTINGS, verbose=0).fit(numbered, "y", test=0.2)
    tail = numbered.tail(40).reset_index(drop=True)
    with pytest.raises(DataError, match=r"numbered from the table's first.*time="):
        model.evaluate(tail)
    with pytest.warns(mv.MVLSTMWarning, match="numbered from the table's first"):
        model.forecast(tail)


def test_a_gap_near_the_end_is_named(table: pd.DataFrame) -> None:
    timed = table.set_index("time")
    model = mv.MVLSTM(**SETTINGS, gaps="respect", verbose=0).fit(timed, "y", test=0.2)
    with pytest.raises(
        DataError, match=r"2 rows came after the last one, which follows 2024-01-09"
    ):
        model.forecast(timed.drop(timed.index[-3]))


def test_a_column_that_is_steady_in_training_is_noted(table: pd.DataFrame) -> None:
    late = table.assign(z=np.where(np.arange(200) < 180, 3.0, table["x"])).set_index("time")
    model = mv.MVLSTM(**SETTINGS, verbose=0).fit(late, "y", test=0.2)
    assert any("learned from ['z']: constant in the training" in note for note in model.notes_)
    assert not mv.MVLSTM(**SETTINGS, verbose=0).fit(late[["x", "y"]], "y", test=0.2).notes_


def test_columns_that_were_not_told_apart_point_to_the_separator(tmp_path: Path, table) -> None:
    table.drop(columns="time").to_csv(tmp_path / "s.csv", sep=" ", index=False)
    found = command("fit", tmp_path / "s.csv", "--target", "y", "--out", tmp_path / "m.safetensors")
    assert found.exit_code == 2 and "--sep ' '" in found.stderr


def test_rows_dropped_at_the_end_are_warned_of(table: pd.DataFrame) -> None:
    timed = table.set_index("time")
    settings = SETTINGS | {"missing": "drop", "gaps": "close", "verbose": 0}
    model = mv.MVLSTM(**settings).fit(timed, "y", test=0.2)
    dead = timed.copy()
    dead.iloc[-30:, 0] = np.nan
    with pytest.warns(
        mv.MVLSTMWarning, match=r"30 rows at the end for lack of \['x'\].*2024-01-08"
    ):
        forecast = model.forecast(dead)
    assert any("forecasts start earlier" in warning for warning in forecast.warnings)
    dead.iloc[-30:, 1] = np.nan  # the target is not known either: the table ends there
    assert not any("start earlier" in warning for warning in model.forecast(dead).warnings)


def test_targets_filled_in_at_the_end_are_warned_of(table: pd.DataFrame) -> None:
    timed = table.set_index("time")
    model = mv.MVLSTM(**SETTINGS, missing="fill", verbose=0).fit(timed, "y", test=0.2)
    late = timed.copy()
    late.iloc[-3:, 1] = np.nan
    with pytest.warns(
        mv.MVLSTMWarning, match="last 3 targets were missing.*intervals take no account"
    ):
        model.forecast(late)


def test_quantiles_keep_their_digits_at_a_large_level(table: pd.DataFrame) -> None:
    from mvlstm.metrics import mixture_quantile

    weights = np.array([[0.3, 0.7]])
    means, variances = np.array([[-0.5, 0.8]]), np.array([[0.1, 0.4]])
    for q in (0.05, 0.5, 0.95):
        low = mixture_quantile(weights, means, variances, q)
        high = mixture_quantile(weights, means + 1e12, variances, q)
        assert high[0] - 1e12 == pytest.approx(low[0], abs=5e-4)  # numbers there are 1e-4 apart


def test_what_a_killed_command_had_set_aside_does_not_come_back(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m.checkpoint"
    folder.mkdir()
    (folder / "fit.checkpoint.safetensors.aside").write_bytes(b"old")
    fit = ("fit", file, "--time", "time", *SMALL, "--out", tmp_path / "m.safetensors")
    assert command(*fit, "--target", "yy", "--no-resume").exit_code == 2
    assert not (folder / "fit.checkpoint.safetensors").exists()
    folder.mkdir(exist_ok=True)
    (folder / "fit.checkpoint.safetensors.aside").write_bytes(b"old")
    assert command(*fit, "--target", "y").exit_code == 0
    assert not folder.exists()
