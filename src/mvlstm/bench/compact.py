"""Records of a suite in one Parquet file, to be kept: every cell, and its errors row by row.

A row is a record: its key, all of it as JSON, the rows that were forecast, and the errors that are
tested, of single forecasts and of means, as whole multiples of a unit far below their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 14  # the unit is the errors' size over 2^14; at 2^13 a few p-values differ in a third digit
ERRORS = ("single", "ensemble")
Arrays = dict[str, NDArray[Any]]


def write_compact(
    records: Sequence[Mapping[str, Any]], arrays: Sequence[Arrays | None], file: Path
) -> None:
    """Write records, each with its errors if there are some, to one file."""
    import pyarrow as pa
    from pyarrow import parquet

    whole = pa.list_(pa.int32())
    steps = [None if one is None else np.diff(one["rows"], prepend=0) for one in arrays]
    columns = {
        "key": pa.array([one["key"] for one in records]),
        "record": pa.array([json.dumps(one, separators=(",", ":")) for one in records]),
        "rows": pa.array(steps, whole),
    }
    for name in ERRORS:
        packed = [_pack((one or {}).get(f"{name}s", (one or {}).get(name))) for one in arrays]
        columns[name] = pa.array([values for values, _ in packed], whole)
        columns[f"{name}_unit"] = pa.array([unit for _, unit in packed], pa.float64())
    parquet.write_table(
        pa.table(columns),
        file,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
        column_encoding={f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ERRORS},
    )


def _pack(errors: NDArray[Any] | None) -> tuple[NDArray[Any] | None, float | None]:
    """Return whole numbers, the sign in the last bit so that small ones are short, and a unit."""
    if errors is None:
        return None, None
    size = float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))
    unit = size / 2**BITS or 1.0
    counts = np.round(errors / unit).astype(np.int64)
    return (2 * np.abs(counts) - (counts < 0)).astype(np.int32), unit


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
