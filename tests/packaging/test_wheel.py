"""The built wheel, alone in an empty environment, does the main job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SUITE = """
data.synthetic.n = 200
[[parts]]
datasets = ["synthetic"]
windows = [3]
methods = ["persistence", "ar"]
"""


def _run(*words: object, cwd: Path, timeout: float = 600) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_wheel_installs_and_runs_in_an_empty_environment(tmp_path: Path) -> None:
    _run(
        *(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path),
        cwd=PROJECT,
    )
    (wheel,) = tmp_path.glob("mvlstm-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "mvlstm/py.typed" in names
    assert not [n for n in names if n.startswith(("tests", "experiments"))]

    home = tmp_path / "empty"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    constraints = PROJECT / "constraints.txt"
    _run(python, "-m", "pip", "install", "-qq", "-c", constraints, wheel, cwd=tmp_path)
    where = _run(python, "-c", "import mvlstm; print(mvlstm.__file__)", cwd=tmp_path)
    assert where.startswith(str(home))

    (tmp_path / "suite.toml").write_text(SUITE)  # experiments of one's own need no clone
    bench = (home / "bin" / "mvlstm", "bench")
    _run(*bench, "run", "--suite", "suite.toml", "--out", "out", cwd=tmp_path)
    assert "| AR |" in _run(*bench, "tables", "out", cwd=tmp_path)

    result = json.loads(_run(home / "bin" / "mvlstm", "demo", "--json", cwd=tmp_path))
    assert result["evaluation"]["scores"]["MVLSTM"]["rmse"] <= 1.20
    assert sorted(result["called_important"]) == ["x2", "x3"]
    folder = tmp_path / "mvlstm-demo"
    assert {p.name for p in folder.iterdir()} == {
        *("model.safetensors", "scores.json", "importance.csv", "forecast.csv")
    }
