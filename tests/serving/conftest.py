"""Tables that show all that an exported model must carry, and models of them that train at once."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv

NETWORKS = ("MVLSTM", "LSTM", "DUAL", "RETAIN", "CLSTM")
SMALL: dict[str, Any] = {"hidden_size": 3, "members": 2, "max_epochs": 2, "batch_size": 32}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; `make test-serving` runs them."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.serving)


@pytest.fixture(scope="session", autouse=True)
def _packages() -> None:
    """Skip where the packages are missing, unless that must not be."""
    if not os.environ.get("MVLSTM_NEEDS_SERVING"):
        for name in ("onnx", "onnxruntime"):
            pytest.importorskip(name)


def weather(rows: int = 260, *, zone: str | None = None) -> pd.DataFrame:
    """Hours over a turn of the year, with a category and a variable known ahead."""
    rng = np.random.default_rng(0)
    times = pd.date_range("2023-12-24 05:00", periods=rows, freq="h", name="time", tz=zone)
    table = pd.DataFrame(
        {
            "temp": rng.normal(size=rows).cumsum() / 5,
            "holiday": (rng.random(rows) < 0.2).astype(int),
            "wind": rng.choice(["N", "S", "W"], rows),
        },
        index=times,
    )
    daily = 0.3 * np.sin(np.arange(rows) / 4)
    table["y"] = 5 * np.exp(daily + 0.2 * table["temp"] + 0.1 * rng.normal(size=rows))
    return table


def panel(rows: int = 120) -> pd.DataFrame:
    """Three shops of very different sizes."""
    shops = []
    for place, (name, size) in enumerate([("Aachen", 1.0), ("Bonn", 100.0), ("Celle", 1e4)]):
        shop = weather(rows).drop(columns="wind")
        shop["y"] = size * (shop["y"] + np.random.default_rng(place).normal(size=rows))
        shops.append(shop.assign(shop=name))
    return pd.concat(shops).reset_index()


def fitted(name: str, table: pd.DataFrame, **settings: Any) -> Any:
    """Return a small model of a table; columns are given as to ``fit``."""
    own = ("known", "series", "time", "variables", "exclude")
    columns = {key: settings.pop(key) for key in own if key in settings}
    base = {"window": 6, "verbose": 0, **(SMALL if name in NETWORKS else {})}
    model = getattr(mv, name)(**{**base, **settings})
    return model.fit(table, target="y", test=0.2, **columns)


def free_port() -> int:
    """Return a port that is free, and that no system hands out by itself before it is taken."""
    while True:
        number = random.randrange(20_000, 32_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", number))
            return number
