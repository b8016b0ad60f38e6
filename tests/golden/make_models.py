"""Write the model files of the schema in force, the table they read and what they forecast.

Run once for every released schema, with the package as released:
``python tests/golden/make_models.py tests/golden/schema1``. The files are never made again: they
stand for those that people have. (Until the first release, schema 1 may still change.)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv

NETWORK: dict[str, Any] = {"hidden_size": 2, "members": 2, "max_epochs": 2, "device": "cpu"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mvlstm": ("MVLSTM", NETWORK),
    "paper": ("MVLSTM.paper", NETWORK | {"horizon": 2, "layers": 2, "cell": "gru"}),
    "differenced": ("MVLSTM", NETWORK | {"difference": "auto", "head": "fusion", "link": "last"}),
    "lstm": ("LSTM", NETWORK),
    "retain": ("RETAIN", NETWORK),
    "ar": ("AR", {}),
    "enet": ("ENET", {"grid": "quick"}),
    "rf": ("RF", {"grid": "quick", "max_trees": 3, "n_jobs": 1}),
    "arimax": ("ARIMAX", {"max_iterations": 5, "order": (1, 0, 1)}),
    "persistence": ("Persistence", {}),
}


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x, noise = rng.normal(size=(2, 160)).round(6)
    y = np.cumsum(np.r_[0.0, 0.3 * x[:-1]] + 0.1 * noise).round(6)
    times = pd.date_range("2024-03-29", periods=160, freq="h", tz="Europe/Berlin")
    return pd.DataFrame({"température": x, "y": y}, index=times.rename("time"))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = make_table()
    table.tz_convert("UTC").to_csv(folder / "table.csv")
    expected = {}
    for name, (kind, settings) in MODELS.items():
        build: Any = mv
        for part in kind.split("."):
            build = getattr(build, part)
        model = build(window=4, verbose=0, **settings).fit(table, "y", test=0.1)
        model.save(folder / f"{name}.safetensors")
        rows = model.forecast(table).to_frame()
        expected[name] = rows[["mean", "q05", "q95"]].to_numpy().tolist()
    (folder / "forecasts.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
