"""Faults that were found once, one test each: nothing hangs, nothing lies, nothing leaks."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from mvlstm.errors import (
    DataError,
    ModelFileError,
    MVLSTMError,
    MVLSTMWarning,
    printable,
)
from mvlstm.explain.contributions import integrated_gradients
from mvlstm.storage import Packed, _checksum, hold_lock, sweep, write_atomic
from mvlstm.table.files import read_table
from processes import LONG

GOLDEN = Path(__file__).parents[1] / "golden" / "schema1"
SMALL: dict[str, Any] = {"window": 4, "hidden_size": 2, "members": 1, "max_epochs": 1, "verbose": 0}


def rows(count: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=count), "y": rng.normal(size=count).cumsum()})


@pytest.fixture(scope="module")
def model() -> mv.MVLSTM:
    return mv.MVLSTM(**SMALL).fit(rows(), "y", test=0.3)


# ------------------------------------------------------------------------- one gate, bounded work


@pytest.mark.parametrize("value", [-3.4028235e38, 1e300, -1e17])
@pytest.mark.parametrize("verb", ["predict", "forecast", "evaluate", "explain", "update", "report"])
def test_what_one_refuses_all_refuse(model: mv.MVLSTM, verb: str, value: float) -> None:
    table = rows()
    table.loc[297, "x"] = value
    words = r"^Column 'x' is .* at row 297, too far from the training"
    with pytest.raises(DataError, match=words):
        getattr(model, verb)(table)
    ar = mv.AR(window=4)
    if abs(value) > 1e20:  # a number that a program writes for none
        code = rf"^Column 'x' is .* at row 297, .*use na_values=\[{value:.10g}".replace("+", ".")
        with pytest.raises(DataError, match=code):
            ar.fit(table, "y", test=0.3)
        return
    with pytest.warns(MVLSTMWarning, match="spoil"), pytest.raises(DataError, match=words):
        ar.fit(table, "y", test=0.3)
    found = mv.check(table, "y", window=4, test=0.3)
    assert not found.fits
    assert re.search(words, found.findings[-1].fault)


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
def test_a_graph_of_a_column_that_is_one_spike() -> None:
    table = rows(90)
    table.loc[6, "x"] = 2.0**53
    found = mv.graph(table, window=2, effort="quick", verbose=0).to_frame()
    assert np.isfinite(found[["strength", "p", "detectable"]].to_numpy()).all()


class Counted:
    """A function of windows that counts how many it is given."""

    def __init__(self, function: Any) -> None:
        self.function, self.count = function, 0

    def __call__(self, windows: np.ndarray) -> np.ndarray:
        self.count += len(windows)
        return np.asarray(self.function(windows))


@pytest.mark.parametrize(
    ("name", "forecast"),
    [
        ("not a number", lambda x: np.where(x[:, :1, 0] > 0.5, np.nan, x[:, :1, 0])),
        ("noise", lambda x: np.sin(1e9 * x[:, :1, 0])),
        ("rounding", lambda x: 1e16 + x[:, :1, 0]),
    ],
)
def test_contributions_end_whatever_the_forecast_does(name: str, forecast: Any) -> None:
    windows, background = np.linspace(0, 1, 6).reshape(-1, 1, 1) + 1, np.zeros((2, 1, 1))
    slope = Counted(lambda x: np.ones((1, len(x), 1, *x.shape[1:])))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        integrated_gradients(slope, forecast, windows, background, tolerance=1e-9)
    assert slope.count < 3 * 5 * 500 * len(windows) * len(background)


@pytest.mark.parametrize("kind", ["level", "square"])
def test_a_target_of_few_digits_is_explained(kind: str) -> None:
    table = rows()
    i = np.arange(300.0)
    table["y"] = 1e14 + table["y"].round() if kind == "level" else 2.0**60 + 1e6 * i**2
    found = mv.MVLSTM(**SMALL).fit(table, "y", test=0.3).explain(table, effort="quick")
    assert np.isfinite(found.contribution.to_numpy()).all()


def test_a_wild_cell_in_training_is_warned_of() -> None:
    table = rows(1_050)
    table.loc[400, "y"] = 1e6
    with pytest.warns(MVLSTMWarning, match=r"'y' is 1e\+06 in 1 row, the first at row 400.*spoil"):
        mv.AR(window=4).fit(table, "y")


def test_the_least_number_of_rows_is_one_from_which_all_do() -> None:
    def fits(count: int) -> str:
        try:
            mv.Persistence(window=10).fit(rows(count), "y", test=0.2)
        except DataError as error:
            return str(error)
        return ""

    least = int(fits(12).split("at least ")[1].split(".")[0])
    assert not any(fits(count) for count in range(least, least + 60))


# -------------------------------------------------------------------------------------- model files


def altered(name: str, path: Path, change: Any) -> Path:
    """Write a golden model with something changed and a sound checksum."""
    packed = Packed.open(GOLDEN / f"{name}.safetensors", "mvlstm", "model")
    header, arrays = packed.header, packed.arrays()
    change(header, arrays)
    text = json.dumps(header)
    sound = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    metadata = {"mvlstm": text, "checksum": _checksum(text, sound)}
    path.write_bytes(save(sound, metadata=metadata))
    return path


def sparse(source: Path, path: Path, tensor: str, count: int) -> Path:
    """Write a file that declares ``count`` numbers more than it has, and has holes for them."""
    data = source.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    end = max(one["data_offsets"][1] for key, one in header.items() if key != "__metadata__")
    header[tensor] = {"dtype": "F32", "shape": [count], "data_offsets": [end, end + 4 * count]}
    text = json.dumps(header).encode()
    with open(path, "wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text + data[8 + length :])
        stream.truncate(8 + len(text) + end + 4 * count)
    return path


@pytest.mark.skipif(not hasattr(os.stat_result, "st_blocks"), reason="sparse files")
@pytest.mark.parametrize(("name", "tensor"), [("mvlstm", "common.more"), ("rf", "model.more")])
def test_a_file_of_holes_is_refused_before_any_array_is_read(
    tmp_path: Path, name: str, tensor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Packed, "read", lambda *_: pytest.fail("arrays were read"))
    path = sparse(GOLDEN / f"{name}.safetensors", tmp_path / "m.safetensors", tensor, 3 * 2**28)
    with pytest.raises(ModelFileError, match="not a whole model"):
        mv.load(path)


def test_arrays_larger_than_the_model_can_need_are_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(_: Any, arrays: Any) -> None:
        arrays["common.background"] = np.zeros((9_000_000,), dtype=np.float32)

    path = altered("mvlstm", tmp_path / "m.safetensors", more)
    monkeypatch.setattr(Packed, "read", lambda *_: pytest.fail("arrays were read"))
    with pytest.raises(ModelFileError, match=r"its arrays hold 9,\d+,\d+ numbers"):
        mv.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, _: header.update({"class": "Unknown"}),
        lambda header, _: header.update(schema=7),
        lambda header, _: header["parameters"].update(window=-1),
        lambda _, arrays: arrays.update({"strange": np.zeros(3)}),
        lambda _, arrays: arrays.update({"common.spread": np.zeros((7, 1))}),
        lambda _, arrays: arrays.update({"common.spread": np.zeros((1, 1), np.float32)}),
    ],
)
def test_header_and_names_are_checked_before_any_array_is_read(
    tmp_path: Path, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = altered("mvlstm", tmp_path / "m.safetensors", change)
    monkeypatch.setattr(Packed, "read", lambda *_: pytest.fail("arrays were read"))
    with pytest.raises(ModelFileError):
        mv.load(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("rf", {"model.more": np.zeros(3)}, "holds arrays this model does not have"),
        ("rf", {"model.step1.left": np.zeros((2, 2), np.int32)}, r"'step1.left' is int32 \(2, 2\)"),
        (
            "mvlstm",
            {"model.weights": np.zeros((3, 9), np.float32)},
            r"'weights' is float32 \(3, 9\)",
        ),
        (
            "ar",
            {"model.weights": np.full((4, 2, 1), np.nan)},
            "'weights' holds values that are not",
        ),
    ],
)
def test_no_array_is_read_that_the_model_does_not_have(
    tmp_path: Path, name: str, change: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, plain = [], Packed.read
    path = altered(name, tmp_path / "m.safetensors", lambda _, arrays: arrays.update(change))
    monkeypatch.setattr(Packed, "read", lambda self, key: read.append(key) or plain(self, key))
    with pytest.raises(ModelFileError, match=message):
        mv.load(path)
    assert ("not have" in message or " is " in message) == (not set(change) & set(read))


def test_intervals_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    def huge(_: Any, arrays: Any) -> None:
        arrays["common.calibration"][:] = 1e300
        arrays["common.spread"][:] = 1e300

    path = altered("ar", tmp_path / "m.safetensors", huge)
    table = pd.read_csv(GOLDEN / "table.csv", index_col="time", parse_dates=["time"])
    with pytest.raises(DataError, match=r"1 forecast would not be finite.*weights are too"):
        mv.load(path).forecast(table)


def test_rows_ahead_beyond_reason_are_a_damaged_file(tmp_path: Path) -> None:
    path = altered(
        "mvlstm", tmp_path / "m.safetensors", lambda h, _: h["preparation"].update(ahead=10**30)
    )
    with pytest.raises(ModelFileError, match="rows ahead"):
        mv.load(path)


# ---------------------------------------------------------------------------------------- messages


def test_messages_are_bounded_and_hold_no_control_characters() -> None:
    name = "\x1b]0;owned\x07\x1b[2J\u202e" + "n" * 10_000_000
    table = rows().rename(columns={"x": name})
    with pytest.raises(MVLSTMError) as caught:
        mv.AR(window=4).fit(table.assign(**{name: "word" * 3}), "y", exclude=["absent"])
    message = str(caught.value)
    assert len(message) < 3_000 and message.isprintable()
    assert printable("a\x1b\u202eb\nc") == "a\\x1b\\u202eb\nc"
    assert not any(ord(c) < 32 for c in str(MVLSTMWarning("a\x1b[2J")))


def test_names_are_shown_without_control_characters(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    rows(120).rename(columns={"x": "\x1b[31mred\x07"}).to_csv(path, index=False)
    fit = ["fit", path, "--target", "y", "--out", out, "--window", "4", "--quiet", "--test", "0.3"]
    fit += ["--members", "1", "--max-epochs", "1", "--hidden-size", "2"]
    for words in (fit, ["explain", out, path, "--effort", "quick"]):
        done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code == 0, done.stderr
        assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)
    assert "\\x1b[31mred" in done.stdout


# --------------------------------------------------------------------- paths and strange columns


@pytest.mark.parametrize(
    "use",
    [
        *(read_table, mv.load, lambda p: write_atomic(p, "text")),
        lambda p: mv.MVLSTM(**SMALL).fit(rows(), "y", checkpoint=p),
        lambda p: mv.tune(rows(), "y", model=mv.AR(verbose=0), grid={"window": [2]}, records=p),
    ],
)
@pytest.mark.parametrize("name", ["n" * 300, "nul\0name"])
def test_a_path_that_cannot_be_looked_up(use: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(MVLSTMError, match="cannot be reached"):
        use(tmp_path / name)


def test_a_folder_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(self: Path, **_: object) -> None:  # root, who may run this, may search any
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "stat", closed)
    for use in (read_table, mv.load, lambda p: write_atomic(p, "text")):
        with pytest.raises(MVLSTMError, match="cannot be reached: Permission denied"):
            use(tmp_path / "file")


@pytest.mark.parametrize("role", ["series", "categorical"])
def test_a_column_of_structures_names_no_series(role: str) -> None:
    table = rows(60).assign(x=[{"a": i % 3} for i in range(60)])
    with pytest.raises(DataError, match="Column 'x' holds a dict"):
        mv.AR(window=4).fit(table, "y", **{role: "x"})


# ---------------------------------------------------------------------------------------- processes


def run(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=LONG,
        **options,
    )


FORKED = """
import multiprocessing, sys
import numpy as np, pandas as pd, torch
import mvlstm as mv
torch.set_num_threads(2)
rng = np.random.default_rng(0)
table = pd.DataFrame({"x": rng.normal(size=900), "y": rng.normal(size=900).cumsum()})
model = mv.MVLSTM(window=20, hidden_size=16, members=2, max_epochs=1, verbose=0)
model.fit(table, "y", test=0.2)
torch.ones(400, 400) @ torch.ones(400, 400)

def forecast(_):
    torch.ones(400, 400) @ torch.ones(400, 400)
    return float(model.predict(table).mean.sum())

with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map_async(forecast, range(2)).get(timeout=300)
assert found[0] == found[1]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_children_do_not_hang() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = run(FORKED, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_lock_names_its_holder_and_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    heard: list[str] = []
    own = f"the folder is in use by process {os.getpid()} on"
    second = hold_lock(path, "the folder", waiting=heard.append, patience=0.2)
    with hold_lock(path, "the folder"), pytest.raises(DataError, match=own), second:
        pass
    assert len(heard) == 1
    assert not path.exists()
    path.write_text("process 1 on a machine that is gone")  # whoever held it was killed
    with hold_lock(path, "the folder"):
        pass


def test_a_file_system_without_locks_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    lock = hold_lock(tmp_path / ".lock", "The folder", patience=60)
    with pytest.warns(MVLSTMWarning, match="The folder cannot be locked on its file system"), lock:
        pass
    write_atomic(tmp_path / "file", "text")


def test_a_fit_keeps_others_from_its_checkpoint(tmp_path: Path) -> None:
    network = mv.MVLSTM(**SMALL)
    (tmp_path / "c").mkdir()
    with hold_lock(tmp_path / "c" / ".lock", "it"), pytest.raises(DataError, match="in use by"):
        network.fit(rows(), "y", checkpoint=tmp_path / "c")
    network.fit(rows(), "y", checkpoint=tmp_path / "c")


LEFT = """
import os, sys
from mvlstm import storage
os.replace = lambda *_: os._exit(9)
storage.write_atomic(sys.argv[1], "half")
"""


def test_what_a_killed_writer_left_is_removed_at_the_next_write(tmp_path: Path) -> None:
    assert run(LEFT, tmp_path / "file").returncode == 9
    (left,) = tmp_path.glob(".file.*.tmp")
    os.utime(left, (1, 1))
    other = tmp_path / ".mine.tmp"
    other.write_text("somebody else's")
    sweep.cache_clear()
    write_atomic(tmp_path / "other", "text")
    assert not left.exists() and other.exists()


TERMINATED = """
import os, signal, sys, threading, time
import numpy as np, pandas as pd
import mvlstm as mv
rng = np.random.default_rng(0)
table = pd.DataFrame({"x": rng.normal(size=900), "y": rng.normal(size=900).cumsum()})
model = mv.MVLSTM(window=20, hidden_size=8, members=2, max_epochs=100_000, patience=100_000)
def end():  # when the first checkpoint shows that it trains
    while not os.path.exists(os.path.join(sys.argv[1], "fit.checkpoint.safetensors")):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end, daemon=True).start()
import warnings; warnings.simplefilter("ignore")
model.fit(table, "y", checkpoint=sys.argv[1])
print(model.stopped_, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_sigterm_stops_a_fit_as_ctrl_c_does(tmp_path: Path) -> None:
    often = {**os.environ, "MVLSTM_CHECKPOINT_SECONDS": "0.1"}
    done = run(TERMINATED, tmp_path / "c", env=often)
    assert done.stdout.split() == ["interrupt", "True"], done.stderr
    assert (tmp_path / "c" / "fit.checkpoint.safetensors").exists()
