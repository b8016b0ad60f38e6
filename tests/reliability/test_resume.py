"""Interrupted fits: what is kept, what is said, what a checkpoint refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from mvlstm.errors import DataError, ModelFileError, MVLSTMWarning, ParameterError
from mvlstm.train.checkpoint import NAME
from mvlstm.train.stepper import Stepper
from processes import LONG, wait_for
from reliability.jobs import SETTINGS, contents, make_table


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table(400)


@pytest.fixture(scope="module")
def whole(table: pd.DataFrame) -> mv.MVLSTM:
    return mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2)


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Send SIGINT to this process in the middle of a step."""
    plain, left = Stepper.step, [after]

    def step(self: Stepper, count: int = 1) -> None:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        plain(self, count)

    monkeypatch.setattr(Stepper, "step", step)
    monkeypatch.setattr("mvlstm.train.stepper.PAUSE_EVERY", 0.0)  # a step at a time


def interrupted(
    table: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch, after: int = 20
) -> mv.MVLSTM:
    with monkeypatch.context() as patch:
        press_ctrl_c(patch, after)
        model = mv.MVLSTM(**SETTINGS)
        with pytest.warns(MVLSTMWarning, match="stopped by Ctrl-C in epoch"):
            model.fit(table, "y", test=0.2, checkpoint=folder)
    return model


@pytest.mark.parametrize("after", [1, 9, 25])
def test_ctrl_c_keeps_the_best_so_far_and_a_second_fit_goes_on(
    table: pd.DataFrame,
    whole: mv.MVLSTM,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    model = interrupted(table, tmp_path / "c", monkeypatch, after)
    assert model.stopped_ == "interrupt"
    assert str(tmp_path / "c") in model.history_.notes[0]
    assert np.isfinite(model.predict(table).mean).all()
    model.save(tmp_path / "half.safetensors")
    mv.load(tmp_path / "half.safetensors").forecast(table)
    assert [path.name for path in (tmp_path / "c").iterdir()] == [NAME]
    again = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=tmp_path / "c")
    assert again.stopped_ is None
    whole.save(tmp_path / "whole.safetensors")
    again.save(tmp_path / "again.safetensors")
    assert contents(tmp_path / "again.safetensors") == contents(tmp_path / "whole.safetensors")


def test_without_a_checkpoint_the_warning_says_how_to_have_one(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    press_ctrl_c(monkeypatch, 3)
    with pytest.warns(MVLSTMWarning, match="checkpoint=DIR"):
        mv.MVLSTM(**SETTINGS).fit(table, "y")


def test_the_time_limit_is_met(table: pd.DataFrame, tmp_path: Path) -> None:
    long = SETTINGS | {"max_epochs": 100_000, "patience": 100_000}
    started = time.process_time()  # a busy machine gives a process no more of the processor
    with pytest.warns(MVLSTMWarning, match="stopped at its time limit"):
        model = mv.MVLSTM(**long).fit(table, "y", checkpoint=tmp_path, time_limit=1.5)
    assert time.process_time() - started < 2.5
    assert model.stopped_ == "time limit"
    assert len(model.history_.epochs) and np.isfinite(model.forecast(table).mean).all()


@pytest.mark.parametrize("limit", [0, -1.0, True, "5", float("nan")])
def test_time_limits_that_cannot_be(table: pd.DataFrame, limit: Any) -> None:
    with pytest.raises(ParameterError, match="positive number of seconds"):
        mv.MVLSTM(**SETTINGS).fit(table, "y", time_limit=limit)


def test_a_checkpoint_of_another_fit_is_refused(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(table, tmp_path, monkeypatch)
    before = (tmp_path / NAME).read_bytes()

    def refused(message: str, table: pd.DataFrame, kind: Any = mv.MVLSTM, **changes: Any) -> None:
        known = set(kind().get_params())
        settings = {k: v for k, v in (SETTINGS | changes).items() if k in known}
        with pytest.raises(ParameterError, match=message):
            kind(**settings).fit(table, "y", test=0.2, checkpoint=tmp_path)
        assert (tmp_path / NAME).read_bytes() == before

    refused("hidden_size=4, not 5", table, hidden_size=5)
    refused("seed=3, not 4", table, seed=4)
    refused("it is of MVLSTM, not of LSTM", table, mv.LSTM)
    refused("other data", table.assign(x=table["x"] + 1e-6 * table["z"]))
    refused("other data", table.rename(columns={"x": "w"}))
    refused("Delete '.*' to start anew", table.iloc[:-20])
    with pytest.raises(ParameterError, match="split in another way"):
        mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.1, checkpoint=tmp_path)
    verbose = mv.MVLSTM(**SETTINGS | {"verbose": 1})  # how much is shown may change
    verbose.fit(table, "y", test=0.2, checkpoint=tmp_path)


def test_a_finished_fit_is_not_in_the_way(table: pd.DataFrame, tmp_path: Path) -> None:
    first = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=tmp_path)
    same = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=tmp_path)
    np.testing.assert_array_equal(
        same.fitted_.learned.trained.flat, first.fitted_.learned.trained.flat
    )
    other = mv.MVLSTM(**SETTINGS | {"seed": 8}).fit(table, "y", test=0.2, checkpoint=tmp_path)
    assert not np.array_equal(
        other.fitted_.learned.trained.flat, first.fitted_.learned.trained.flat
    )


def test_a_damaged_checkpoint_is_refused(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(table, tmp_path, monkeypatch)
    whole = (tmp_path / NAME).read_bytes()
    for bad in (b"", whole[:40], whole[:-3], whole[:-3] + b"xyz", b"\xff" * 400):
        (tmp_path / NAME).write_bytes(bad)
        with pytest.raises(ModelFileError, match=r"damaged|cut off"):
            mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=tmp_path)


def test_every_network_has_checkpoints(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"window": 5, "hidden_size": 3, "members": 2, "max_epochs": 2, "batch_size": 32}
    for kind in (mv.LSTM, mv.RETAIN):
        folder = tmp_path / kind.__name__
        plain = kind(**settings, device="cpu", verbose=0).fit(table, "y")
        with monkeypatch.context() as patch, pytest.warns(MVLSTMWarning):
            press_ctrl_c(patch, 7)
            kind(**settings, device="cpu", verbose=0).fit(table, "y", checkpoint=folder)
        resumed = kind(**settings, device="cpu", verbose=0).fit(table, "y", checkpoint=folder)
        np.testing.assert_array_equal(
            resumed.fitted_.learned.trained.flat, plain.fitted_.learned.trained.flat
        )


def test_a_folder_that_cannot_be_written_is_named(table: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"checkpoint folder '.*file' cannot be made"):
        mv.MVLSTM(**SETTINGS).fit(table, "y", checkpoint=tmp_path / "file")


def test_the_interval_must_be_a_number(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVLSTM_CHECKPOINT_SECONDS", "often")
    with pytest.raises(ParameterError, match="MVLSTM_CHECKPOINT_SECONDS is 'often'"):
        mv.MVLSTM(**SETTINGS).fit(table, "y", checkpoint=tmp_path)


# ---------------------------------------------------------------------------- the command


def words(data: Path, out: Path) -> list[str]:
    settings = [
        *("--window", "6", "--hidden-size", "4", "--members", "3", "--batch-size", "32"),
        *("--learning-rate", "0.01", "--max-epochs", "4", "--device", "cpu", "--quiet"),
    ]
    return ["fit", str(data), "--target", "y", "--test", "0.2", "--out", str(out), *settings]


@pytest.fixture(scope="module")
def data(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.csv"
    table.to_csv(path, index=False)
    return path


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_goes_on(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, folder = tmp_path / "m.safetensors", tmp_path / "m.checkpoint"
    assert invoke(*words(data, tmp_path / "whole.safetensors")).exit_code == 0
    with monkeypatch.context() as patch:
        press_ctrl_c(patch, 12)
        done = invoke(*words(data, out))
    assert done.exit_code == 130
    assert "stopped by Ctrl-C in epoch 2" in done.stderr
    assert "--resume" in done.stdout and str(folder) in done.stdout
    assert mv.load(out).predict(make_table(100)).mean.notna().all()
    assert (folder / NAME).is_file()
    forgot = invoke(*words(data, out))
    assert forgot.exit_code == 2
    assert "Add --resume to continue it, or --no-resume" in forgot.stderr
    other = invoke(*words(data, out), "--resume", "--seed", "9")
    assert other.exit_code == 2
    assert "seed=0, not 9" in other.stderr
    done = invoke(*words(data, out), "--resume")
    assert done.exit_code == 0, done.stderr
    assert contents(out) == contents(tmp_path / "whole.safetensors")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "m.safetensors",
        "whole.safetensors",
    ]


def test_the_command_starts_anew_when_told_to(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / NAME).write_bytes(b"what is left of something")
    out = tmp_path / "m.safetensors"
    done = invoke(*words(data, out), "--no-resume", "--checkpoint", str(folder))
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_the_command_meets_its_time_limit(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    long = ("--max-epochs", "100000", "--patience", "100000", "--time-limit", "1", "--json")
    done = invoke(*words(data, out), *long)
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["stopped"] == "time limit"
    assert len(told["warnings"]) == 1 and "time limit" in told["warnings"][0]
    assert out.is_file()


def test_after_a_time_limit_the_same_command_starts_anew_unless_told_to_go_on(
    data: Path, tmp_path: Path
) -> None:
    out, folder = tmp_path / "m.safetensors", tmp_path / "m.checkpoint"
    short = ("--time-limit", "0.001")
    assert invoke(*words(data, out), *short).exit_code == 0
    assert (folder / NAME).is_file()
    other = invoke(*words(data, out), *short, "--seed", "9")  # the state of seed 0 would be refused
    assert other.exit_code == 0, other.stderr
    assert "this one starts anew" in other.stderr and "--resume" in other.stderr
    onward = invoke(*words(data, out), "--seed", "9", "--resume")
    assert onward.exit_code == 0, onward.stderr
    assert not folder.exists()


def test_ctrl_c_at_the_terminal(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    long = ("--max-epochs", "100000", "--patience", "100000")
    process = subprocess.Popen(
        [sys.executable, "-m", "mvlstm", *words(data, out), *long],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MVLSTM_CHECKPOINT_SECONDS": "0.05", "OMP_NUM_THREADS": "1"},
    )
    wait_for((tmp_path / "m.checkpoint" / NAME).exists)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=LONG)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "stopped by Ctrl-C" in stderr
    assert "--resume" in stdout
    mv.load(out)


def test_a_comparison_is_not_made_with_half_trained_models(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mvlstm.evaluate.backtest import run_fold
    from mvlstm.table import build_frame

    press_ctrl_c(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt), pytest.warns(MVLSTMWarning):
        run_fold(mv.MVLSTM(**SETTINGS), build_frame(table, target="y"), 50, 0.1)
