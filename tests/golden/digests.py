"""Digests of what every method forecasts, explains and saves on small tables.

A rebuild that should not change a number is checked by running this before and after, on one
machine::

    python tests/golden/digests.py before.json
    python tests/golden/digests.py after.json --against before.json

With ``--against`` it prints what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import safe_open

import mvlstm as mv

NETWORK = {"hidden_size": 3, "members": 3, "max_epochs": 3, "batch_size": 32}
SMALL: dict[str, dict[str, Any]] = {
    "MVLSTM": NETWORK,
    "LSTM": NETWORK,
    "DUAL": NETWORK,
    "RETAIN": NETWORK,
    "CLSTM": NETWORK | {"penalties": (0.3, 0.03)},
    "ENET": {"grid": "quick"},
    "RF": {"grid": "quick", "max_trees": 5, "n_jobs": 1},
    "XGT": {"grid": "quick", "max_rounds": 5, "n_jobs": 1},
    "GBT": {"grid": "quick", "max_rounds": 10},
    "STRX": {"max_iterations": 5},
    "ARIMAX": {"max_iterations": 5, "order": (1, 0, 1)},
    "AR": {},
    "Persistence": {},
    "SeasonalPersistence": {},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "kinds": {"members": 5},
    "ten": {"members": 10, "seed": 3},
    "paper": {"loss": "nll", "sigma": 1.0, "link": "none", "attention": "bounded", "l2_sum": True},
    "calibrated": {"loss": "nll", "sigma": "calibrated", "link": "last"},
    "fusion": {"head": "fusion", "link": "last"},
    "horizon": {"horizon": 3, "sigma": "learned"},
    "gru": {"cell": "gru", "layers": 2, "gates": "variable", "horizon": 2},
    "differenced": {"difference": "auto", "horizon": 2},
    "log": {"transform": "log1p", "horizon": 2},
    "leave_out": {"leave_out": 0.2, "finish": 0.0},
}
VOLATILE = ("fit_seconds", "versions")
PANEL = ("MVLSTM", "AR", "GBT", "Persistence", "SeasonalPersistence")
RICH = ("MVLSTM", "LSTM", "AR", "ENET", "GBT", "RETAIN")


def plain_table() -> pd.DataFrame:
    """Return hourly rows of three variables and a positive target that drifts."""
    rng = np.random.default_rng(7)
    n = 420
    x = rng.normal(size=(n, 3)).cumsum(axis=0) * 0.1 + rng.normal(size=(n, 3))
    y = np.zeros(n)
    for t in range(2, n):
        y[t] = 0.6 * y[t - 1] + 0.5 * x[t - 1, 0] - 0.3 * x[t - 2, 1] + 0.3 * rng.normal()
    index = pd.date_range("2024-01-01", periods=n, freq="h", name="time")
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": np.exp(0.5 * y)}, index)


def holed_table() -> pd.DataFrame:
    """Return the plain table with missing targets and a missing variable."""
    table = plain_table()
    table.iloc[[50, 51, 200, 201, 202, 380], -1] = np.nan
    table.iloc[[120, 121], 0] = np.nan
    return table


def rich_table() -> pd.DataFrame:
    """Return the plain table with a category and a variable known ahead."""
    table = plain_table()
    n = len(table)
    table.insert(0, "wind", np.array(["n", "e", "s"])[np.arange(n) // 7 % 3])
    table.insert(0, "holiday", (np.arange(n) // 24 % 7 == 0).astype(float))
    return table


def panel_table() -> pd.DataFrame:
    """Return three series of different levels, one after another."""
    table = plain_table()
    parts = [table.iloc[s : s + 140] * (1 + k) for k, s in enumerate((0, 140, 280))]
    return pd.concat(
        [
            part.assign(station=name).set_axis(parts[0].index)
            for part, name in zip(parts, "pqr", strict=True)
        ]
    )


def cases() -> Iterator[tuple[str, mv.MVLSTM, pd.DataFrame, dict[str, Any]]]:
    """Yield a name, an unfitted model, its table and how its columns are named."""

    def make(name: str, **changes: Any) -> Any:
        settings = {"window": 6, "verbose": 0} | SMALL[name] | changes
        return getattr(mv, name)(**settings)

    for name in SMALL:
        yield f"{name} plain", make(name), plain_table(), {}
        yield f"{name} filled", make(name, missing="fill", horizon=2), holed_table(), {}
        if name in PANEL:
            yield f"{name} panel", make(name), panel_table(), {"series": "station"}
        if name in RICH:
            changes = {"calendar": ["hour"], "horizon": 2}
            yield f"{name} rich", make(name, **changes), rich_table(), {"known": ["holiday"]}
        if name not in ("Persistence", "SeasonalPersistence"):
            yield f"{name} log", make(name, transform="log1p"), plain_table(), {}
    for variant, changes in VARIANTS.items():
        yield f"MVLSTM {variant}", make("MVLSTM", **changes), plain_table(), {}
    known = {"series": "station"}
    yield "MVLSTM panel log", make("MVLSTM", transform="log1p", members=5), panel_table(), known


def digest(values: Any) -> str:
    """Return a digest of arrays, frames and plain values."""
    found = hashlib.blake2b(digest_size=12)
    _feed(found, values)
    return found.hexdigest()


def _feed(found: Any, values: Any) -> None:
    if isinstance(values, pd.DataFrame | pd.Series):
        values = values.reset_index()
        _feed(found, {str(name): values[name].to_numpy() for name in values})
    elif isinstance(values, dict):
        for name in sorted(values):
            found.update(str(name).encode())
            _feed(found, values[name])
    elif isinstance(values, list | tuple):
        for value in values:
            _feed(found, value)
    elif isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        found.update(np.ascontiguousarray(values).tobytes())
    else:
        found.update(json.dumps(values, default=str).encode())


def model_file(model: Any) -> dict[str, Any]:
    """Return the arrays and the header of the model's file, without times and versions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.safetensors"
        model.save(path)
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()["mvlstm"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        again = mv.load(path)
    for name in VOLATILE:
        header.pop(name)
    header.pop("notes"), header["history"].pop("notes")  # words may change
    header["history"].pop("seconds", None)
    for update in header["updates"]:
        update.pop("when"), update.pop("seconds")
    return {"arrays": arrays, "header": header, "again": again}


def digests_of(model: Any, table: pd.DataFrame, columns: dict[str, Any]) -> dict[str, str]:
    """Fit, then forecast, evaluate, explain and save; return a digest of each."""
    model.fit(table, "y", test=0.2, valid=0.15, **columns)
    file = model_file(model)
    forecast = model.predict(table)
    known = columns.get("known")
    rows = table.iloc[:-3] if known else table
    future = table.iloc[-3:][known] if known else None
    ahead = model.forecast(rows, future=future) if known else model.forecast(rows)
    explained = model.explain(table, effort="quick", contributions=4)
    found = {
        "forecast": digest(forecast.to_frame()),
        "members": digest(forecast.members),
        "ahead": digest(ahead.to_frame()),
        "scores": digest(model.evaluate(table).scores),
        "importance": digest(explained.importance),
        "contribution": digest(explained.contribution),
        "arrays": digest(file["arrays"]),
        "header": digest(file["header"]),
        "loaded": digest(file["again"].predict(table).to_frame()),
    }
    if not known and "series" not in columns and len(table) == 420:
        early = type(model)(**model.get_params())
        early.fit(table.iloc[:300], "y", valid=0.15)
        early.update(table)
        found["updated"] = digest(early.predict(table).to_frame())
        found["updated file"] = digest(model_file(early)["arrays"])
    return found


def main() -> int:
    """Write the digests; compare them if asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name, model, table, columns in cases():
        if given.only in name:
            try:
                found[name] = digests_of(model, table, columns)
            except mv.MVLSTMError as error:
                found[name] = {"error": str(error)}
    given.out.write_text(json.dumps(found, indent=1))
    if given.against is None:
        return 0
    before = json.loads(given.against.read_text())
    wrong = [
        f"{name}: {part}"
        for name in found
        for part in before[name].keys() | found[name].keys()
        if before[name].get(part) != found[name].get(part)
    ]
    print("\n".join(wrong) or f"{sum(map(len, found.values()))} digests agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
