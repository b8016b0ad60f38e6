"""How much memory many series take, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SERIES, FEW, ROWS = 1_800, 200, 500  # few of them are forecast
# The budget holds some of the rows; the libraries take most of it.
WORK = """
import sys
import mvlstm as mv

model = mv.AR(window=6, verbose=0)
told = {"series": "id", "time": "t", "test": 0.1, "memory": "800MB"}
mv.many.fit(model, sys.argv[1], "y", **told)
few = sys.argv[1] + "/part0.parquet"
found = mv.many.forecast(model, few, sys.argv[2], memory="800MB", verbose=0)
print(model.fitted_.notes[-1])
print(found.series, len(found.failures))
lines = open("/proc/self/status").read().splitlines()
print(*(line.split()[1] for line in lines if line.startswith("VmHWM")))  # in kB
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in /proc")
def test_the_peak_stays_within_the_budget(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, z, noise = rng.normal(size=(3, SERIES * ROWS))
    table = pd.DataFrame(
        {
            "id": np.repeat([f"s{k:05d}" for k in range(SERIES)], ROWS),
            "t": np.tile(pd.date_range("2024-01-01", periods=ROWS, freq="h"), SERIES),
            "x": x,
            "z": z,
            "y": np.roll(x, 1) + 0.3 * noise,
        }
    )
    parts = tmp_path / "panel"
    parts.mkdir()
    few = FEW * ROWS
    for k, part in enumerate((table[:few], table[few:])):
        part.to_parquet(parts / f"part{k}.parquet", index=False, row_group_size=50_000)
    command = [sys.executable, "-W", "ignore", "-c", WORK, str(parts), str(tmp_path / "out")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    note, counts, peak = done.stdout.splitlines()
    assert note.startswith("Learned from") and "of 900,000 rows of 1,800 series" in note
    learned = int(note.split()[2].replace(",", ""))
    assert 400_000 < learned < 900_000
    assert counts == f"{FEW} 0"
    assert int(peak) * 2**10 < 800 * 2**20
