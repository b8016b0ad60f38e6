"""Add the records of a run to those that are kept, one compact file per suite.

    python -m experiments.compact FOLDER [experiments/records]

Of a cell that was run again, the newest finished record is kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.bench.records import ERRORS, Arrays, read_records
from mvlstm.bench.tables import newest

RECORDS = Path(__file__).with_name("records")
BITS = 14  # the unit is the errors' size over 2^14; at 2^13 a few p-values differ in a third digit


def compact(folder: str | Path, kept: str | Path = RECORDS) -> list[Path]:
    """Write the records of both folders to compact files in the second; return those written."""
    runs = [read_records(folder, must_exist=True), read_records(kept)]
    every = {one["key"]: (one, run.arrays(one)) for run in reversed(runs) for one in run.found}
    written = []
    for suite in dict.fromkeys(one["job"]["suite"] for one in runs[0].found):
        mine = [one for one, _ in every.values() if one["job"]["suite"] == suite]
        found, _ = newest(sorted(mine, key=lambda one: (one["job"]["budget"], one["job"]["place"])))
        file = Path(kept) / f"records-{suite}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_compact(found, [every[one["key"]][1] for one in found], file)
        written.append(file)
    return written


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


if __name__ == "__main__":
    for path in compact(*sys.argv[1:]):
        print(f"wrote {path}")
