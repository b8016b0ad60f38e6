"""`mvlstm-runtime`, the runner with numpy and onnxruntime, in an environment without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import LONG
from serving.conftest import fitted, weather

PROJECT = Path(__file__).parents[2]
MOST_MEGABYTES = 300
MOST_SECONDS = 0.3  # to import; numpy and the interpreter's own modules included
CODE = """
import importlib.util, json, sys, time
start = time.process_time()  # of the processor: other work on the machine does not count
import mvlstm.runtime
seconds = time.process_time() - start
there = [n for n in ("torch", "pandas", "scipy", "sklearn") if importlib.util.find_spec(n)]
found = mvlstm.runtime.load("model.onnx").forecast("table.csv")
numbers = {n: v.tolist() for n, v in found.items() if v.dtype.kind == "f"}
print(json.dumps({"seconds": seconds, "there": there, "numbers": numbers}))
"""


def run(*words: object, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(home: Path, *words: object) -> None:
    quiet = ("--disable-pip-version-check", *words[:1], "-qq", *words[1:])
    run(home / "bin" / "python", "-m", "pip", *quiet, cwd=home)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    words = (sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation")
    run(*words, "--wheel-dir", folder, PROJECT, PROJECT / "supply" / "runtime", cwd=folder)
    return folder


@pytest.fixture
def light(wheels: Path, tmp_path: Path) -> Path:
    """A new environment with what the documentation says to install."""
    home = tmp_path / "light"
    venv.create(home, with_pip=True)
    (wheel,) = wheels.glob("mvlstm_runtime-*.whl")
    pip(home, "install", "--constraint", PROJECT / "constraints.txt", wheel)
    pip(home, "check")
    return home


def test_it_forecasts_without_torch(
    light: Path, wheels: Path, tmp_path: Path, record_property: Any
) -> None:
    table = weather()
    model = fitted("MVLSTM", table, horizon=3)
    model.export(tmp_path / "model.onnx")
    table.to_csv(tmp_path / "table.csv")
    size = sum(f.stat().st_size for f in light.rglob("*") if f.is_file()) / 1e6
    said = [json.loads(run(light / "bin" / "python", "-c", CODE, cwd=tmp_path)) for _ in range(5)]
    assert said[0]["there"] == []
    wanted = model.forecast(table).to_frame()
    for name, values in said[0]["numbers"].items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-4)
    seconds = min(one["seconds"] for one in said)
    record_property("without torch", f"environment {size:.0f} MB, import {seconds:.3f} s")
    assert size < MOST_MEGABYTES and seconds < MOST_SECONDS

    # mvlstm itself on top, as someone may install it: its files are the same
    pip(light, "install", "--no-deps", *wheels.glob("mvlstm-*.whl"))
    again = json.loads(run(light / "bin" / "python", "-c", CODE, cwd=tmp_path))
    assert again["numbers"] == said[0]["numbers"]
