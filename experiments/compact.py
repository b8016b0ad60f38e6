"""Add the records of a run to those that are kept, one compact file per suite.

    python -m experiments.compact FOLDER [experiments/records]

Of a cell that was run again, the newest finished record is kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvlstm.bench.records import ERRORS, Arrays, alike, read_records
from mvlstm.bench.tables import newest
from mvlstm.types import FloatArray

RECORDS = Path(__file__).with_name("records")
SHORTENED = ("attention", "importance", "tuning", "single", "ensemble", "timings")
DIGITS = 9  # of these numbers in a record
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
    short = [{k: _shortened(v) if k in SHORTENED else v for k, v in r.items()} for r in records]
    texts = [json.dumps(one, separators=(",", ":")) for one in short]
    columns = {
        "key": pa.array([one["key"] for one in records]),
        "record": pa.array(texts),
        "rows": pa.array(steps, whole),
    }
    packer = _Packer()
    found = [[packer.add(one, name) for name in ERRORS] for one in arrays]
    for name, packed in zip(ERRORS, zip(*found, strict=True), strict=True):
        columns[name] = pa.array([one.counts for one in packed], whole)
        columns[f"{name}_unit"] = pa.array([one.unit for one in packed], pa.float64())
        columns[f"{name}_like"] = pa.array([one.like for one in packed], pa.int32())
        columns[f"{name}_share"] = pa.array([one.share for one in packed], pa.float64())
    parquet.write_table(
        pa.table(columns),
        file,
        compression="zstd",
        compression_level=22,
        use_dictionary=False,
        column_encoding={f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ERRORS},
    )


class _Packed(NamedTuple):
    """Whole numbers, the sign in the last bit so that small ones are short, and their unit.

    They are of what differs from a share of earlier errors, if there are such.
    """

    counts: NDArray[Any] | None = None
    unit: float | None = None
    like: int | None = None  # place of the earlier errors among all
    share: float | None = None


class _Packer:
    """Packs the errors of one record after another, each next to those most like it."""

    def __init__(self) -> None:
        self._made: list[FloatArray] = []  # as they will be read
        self._places: dict[bytes, list[int]] = {}  # of those of the same rows

    def add(self, arrays: Arrays | None, name: str) -> _Packed:
        """Pack one kind of errors; nothing if there are none."""
        errors = (arrays or {}).get(f"{name}s", (arrays or {}).get(name))
        if arrays is None or errors is None:
            return _Packed()
        errors = errors.astype(np.float64)
        unit = _unit(errors)
        counts = np.round(errors / unit).astype(np.int64)
        places = self._places.setdefault(arrays["rows"].tobytes(), [])
        made = np.asarray(counts * unit, dtype=np.float64)
        like, share = self._nearest(made, places)
        left = counts if like is None else counts - alike(self._made[like], share, unit)
        if np.abs(left).sum() >= np.abs(counts).sum():
            left, like = counts, None
        places.append(len(self._made))
        self._made.append(made)
        packed = (2 * np.abs(left) - (left < 0)).astype(np.int32)
        return _Packed(packed, unit, like, None if like is None else share)

    def _nearest(self, errors: FloatArray, places: list[int]) -> tuple[int | None, float]:
        """Return the place of the errors whose best share leaves least, and that share."""
        best, least, share = None, np.inf, 0.0
        for place in places:
            other = self._made[place]
            part = float(errors @ other) / (float(other @ other) or 1.0)
            left = float(np.sum((errors - part * other) ** 2))
            if left < least:
                best, least, share = place, left, part
        return best, share


def _unit(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(errors**2))) / 2**BITS or 1.0


def _shortened(value: Any) -> Any:
    """Keep `DIGITS` of every floating-point number in nested lists and tables."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    return [_shortened(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    for path in compact(*sys.argv[1:]):
        print(f"wrote {path}")
