"""The command `mvlstm check`: what it prints is a command that fits."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from .conftest import TINY, Run, make_table


def dirty(folder: Path) -> Path:
    source = make_table()
    source = source.assign(
        Date=source["when"].dt.strftime("%d/%m/%Y"),
        Time=source["when"].dt.strftime("%H.%M.%S"),
        kind=np.where(np.arange(len(source)) % 3 == 0, "None", "fair day"),
    ).drop(columns="when")
    source.loc[10:40, "y"] = -200.0
    source = pd.concat([source.iloc[:90], source.iloc[93:100], source.iloc[99:]])
    path = folder / "dirty table.csv"
    source.to_csv(path, index=False)
    return path


def test_one_command_fits_a_dirty_table(run: Run, tmp_path: Path) -> None:
    path = dirty(tmp_path)
    done = run("check", path, "--target", "y", "--window", "4")
    assert done.code == 0, done.stderr
    assert "1. Columns ['Date', 'Time'] seem to hold the times" in done.stdout
    line = next(one for one in done.stdout.splitlines() if one.startswith("fit it with: "))
    words = shlex.split(line.removeprefix("fit it with: mvlstm "))
    assert words[words.index("--na-values") + 1] == "-200"
    out = words.index("--out") + 1
    words[out] = str(tmp_path / words[out])
    fit = run(*words, *TINY)
    assert fit.code == 0, fit.stderr
    assert run("forecast", words[out], path).code == 0


def test_json(run: Run, table: Path) -> None:
    done = run("check", table, "--target", "y", "--json")
    found = json.loads(done.stdout)
    assert done.code == 0 and found["fits"]
    assert found["arguments"]["fit"] == {"target": "y", "time": "when", "test": 0.2}
    assert found["command"].endswith("--target y --time when --test 0.2 --out table.safetensors")


def test_a_table_that_no_option_mends(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    pd.DataFrame({"x": range(60), "y": [f"$1,{k:03d}" for k in range(60)]}).to_csv(path)
    done = run("check", path, "--target", "y")
    assert done.code == 2 and "No option would mend" in done.stdout
    assert "fit it with" not in done.stdout
