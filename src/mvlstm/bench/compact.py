"""Records of a suite in one Parquet file, to be kept: every cell, and its errors row by row.

A row is a record: its key, all of it as JSON, the rows that were forecast, and the errors that are
tested, of single forecasts and of means, as whole multiples of a unit far below their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ERRORS = ("single", "ensemble")
Arrays = dict[str, NDArray[Any]]


def _unpack(packed: NDArray[Any], unit: float) -> NDArray[Any]:
    counts = np.where(packed % 2, -(packed + 1) // 2, packed // 2)
    return (counts * unit).astype(np.float32)


def read_compact(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file."""
    from pyarrow import parquet

    for text in parquet.read_table(file, columns=["record"])["record"].to_pylist():
        yield json.loads(text)


@lru_cache(maxsize=8)
def compact_arrays(file: Path) -> dict[str, Arrays]:
    """Return the errors of all records in a file, by key."""
    from pyarrow import parquet

    table = parquet.read_table(file)
    found: dict[str, Arrays] = {}
    for row, key in enumerate(table["key"].to_pylist()):
        lists = {name: table[name][row].values for name in ("rows", *ERRORS)}
        if lists["rows"] is None:
            continue
        found[key] = {"rows": np.cumsum(lists["rows"].to_numpy())}
        for name in ERRORS:
            if lists[name] is not None:
                unit = table[f"{name}_unit"][row].as_py()
                found[key][name] = _unpack(lists[name].to_numpy(), unit)
    return found
