"""Files of every schema load and forecast as they did when they were written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.storage import Packed, pack

FOLDERS = sorted(path for path in Path(__file__).parent.glob("schema*") if path.is_dir())
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.safetensors"))]


def read_table(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "table.csv", index_col="time", parse_dates=["time"])
    return table.tz_convert("Europe/Berlin")


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_old_files_stay_loadable(path: Path) -> None:
    model = mv.load(path)
    rows = model.forecast(read_table(path.parent)).to_frame()
    expected = json.loads((path.parent / "forecasts.json").read_text())[path.stem]
    np.testing.assert_allclose(rows[["mean", "q05", "q95"]], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_model_runs_wherever_it_was_trained(tmp_path: Path, device: str) -> None:
    source = FOLDERS[-1] / "mvlstm.safetensors"
    packed = Packed.open(source, "mvlstm", "model")
    header, arrays = packed.header, packed.arrays()
    header["extra"]["device"] = header["parameters"]["device"] = device
    (tmp_path / "m.safetensors").write_bytes(pack("mvlstm", header, arrays))
    table = read_table(FOLDERS[-1])
    here, there = (mv.load(path).predict(table) for path in (source, tmp_path / "m.safetensors"))
    np.testing.assert_allclose(here.mean, there.mean, rtol=1e-4, atol=1e-4)


def test_there_are_files_of_every_schema() -> None:
    from mvlstm.model.saving import SCHEMA

    assert [folder.name for folder in FOLDERS] == [f"schema{i}" for i in range(1, SCHEMA + 1)]
    assert all(len(list(folder.glob("*.safetensors"))) >= 10 for folder in FOLDERS)
    assert sum(path.stat().st_size for path in FILES) < 300_000
