"""Durable records: one JSON line per finished job, one file per process that writes.

A folder of records holds ``records-*.jsonl`` and ``forecasts/KEY.npz`` with the errors of single
forecasts, or the same as ``records-*.parquet``, one compact file per suite: in each row a record's
key, all of it as JSON, the rows that were forecast, and the errors that are tested, as whole
multiples of a unit far below their size; methods err alike, so that most are kept as what differs
from a share of earlier ones. Folders of several machines are merged by copying. A line that was cut
off is reported and left out; all others count.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import socket
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import DataError, is_whole, reachable
from mvlstm.results._tables import plain
from mvlstm.storage import ensure_folder, write_atomic
from mvlstm.types import FloatArray, IntArray

SCHEMA = 1
LOOSE, COMPACT = "records-*.jsonl", "records-*.parquet"
Record = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
ERRORS = ("single", "ensemble")  # of one forecaster, and of a mean of several
WORDS = ("suite", "budget", "part", "kind", "dataset", "protocol", "method", "label", "setting")
COUNTS = ("window", "horizon", "fold", "folds")

# What reading damaged arrays raises: parsers of numpy and pyarrow fail in ways of their own.
DAMAGE = Exception


class Writer:
    """Adds records to a file of its own in a folder, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path: Path | None = None
        self._lines = b""

    def add(self, record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the arrays, then the record; both are on disk when this returns."""
        if arrays:
            places = self.folder / "forecasts"
            ensure_folder(places)
            write_atomic(places / f"{record['key']}.npz", pack(arrays))
        line = json.dumps(plain(record), allow_nan=False, separators=(",", ":")) + "\n"
        self._path = self._path or self._new_path()
        lines = self._lines + line.encode("utf-8")
        write_atomic(self._path, lines)  # all of them: a kill while appending would cut the last
        self._lines = lines

    def _new_path(self) -> Path:
        """Make up a name that no other process, here or elsewhere, uses."""
        ensure_folder(self.folder)
        moment = clock.strftime("%Y%m%dT%H%M%S", clock.gmtime())
        host = "".join(c for c in socket.gethostname() if c.isalnum() or c in "-_")[:30]
        return self.folder / f"records-{moment}-{host}-{secrets.token_hex(4)}.jsonl"


@dataclass(frozen=True)
class Records:
    """What a folder holds."""

    folder: Path
    found: tuple[Record, ...]  # one for each key, in the order of the suite
    problems: tuple[str, ...] = ()  # what could not be read, a sentence for each line or file

    @property
    def done(self) -> dict[str, Record]:
        """Finished jobs by key."""
        return {one["key"]: one for one in self.found if one["status"] == "done"}

    @property
    def failed(self) -> dict[str, Record]:
        """Jobs that failed, by key."""
        return {one["key"]: one for one in self.found if one["status"] != "done"}

    def arrays(self, record: Record) -> Arrays | None:
        """Return the errors row by row of a record; None if they are not there or damaged."""
        try:
            return unpack((self.folder / "forecasts" / f"{record['key']}.npz").read_bytes())
        except FileNotFoundError:
            return self._compact(record["key"])
        except DAMAGE:
            return None

    def _compact(self, key: str) -> Arrays | None:
        """Return the errors of a record in one of the compact files."""
        for file in sorted(self.folder.glob(COMPACT)):
            with contextlib.suppress(DAMAGE):
                if key in compact_arrays(file):
                    return compact_arrays(file)[key]
        return None


def read_records(folder: str | Path, *, must_exist: bool = False) -> Records:
    """Read every record of a folder.

    Where several are of the same job, a finished one counts before a failed one, and the first
    by name of its file before later ones.
    """
    place = reachable(folder)
    if place.exists() and not place.is_dir():
        raise DataError(f"'{place}' is a file; records lie in a folder.")
    files = sorted(file for kind in (LOOSE, COMPACT) for file in place.glob(kind))
    if must_exist and not files:
        raise DataError(
            f"There are no records in '{place}'; make some first with `mvlstm bench run`."
        )
    found: dict[str, Record] = {}
    problems: list[str] = []
    for file in files:
        for record in (_rows if file.match(COMPACT) else _lines)(file, problems):
            earlier = found.get(record["key"])
            if earlier is None or (earlier["status"] != "done" and record["status"] == "done"):
                found[record["key"]] = record
    ordered = sorted(found.values(), key=_place)
    return Records(place, tuple(ordered), tuple(problems))


def _place(record: Record) -> tuple[str, str, int, str]:
    """Return what orders records: suite, budget, place in it."""
    job = record["job"]
    return job["suite"], job["budget"], job.get("place", 0), record["key"]


def _rows(file: Path, problems: list[str]) -> Iterable[Record]:
    """Return the records of a compact file; none of a damaged one."""
    try:
        return list(read_compact(file))
    except DAMAGE as error:
        problems.append(f"'{file}' cannot be read: {error}. Restore it, or run its suite again.")
        return []


def _lines(file: Path, problems: list[str]) -> Iterable[Record]:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        problems.append(f"'{file}' cannot be read: {error.strerror or error}.")
        return
    for place, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            cut = "is cut off" if place == len(lines) else "cannot be read"
            problems.append(
                f"Line {place} of '{file}' {cut} and is left out; run the suite again to do that "
                "job anew."
            )
            continue
        if not _is_record(record):
            problems.append(f"Line {place} of '{file}' is not a record and is left out.")
        elif record["schema"] != SCHEMA:
            problems.append(
                f"Line {place} of '{file}' has schema {record['schema']!r}, not {SCHEMA}, and is "
                "left out."
            )
        else:
            yield record


def _is_record(value: Any) -> bool:
    """Say whether a line's value has what every record begins with."""
    if not isinstance(value, dict) or not {"key", "status", "schema", "job"} <= value.keys():
        return False
    key, job, error = value["key"], value["job"], value.get("error")
    if not isinstance(key, str) or not isinstance(job, dict):
        return False
    named = all(isinstance(job.get(name), str) for name in WORDS)
    counted = all(is_whole(job.get(name)) for name in COUNTS) and is_whole(job.get("place", 0))
    told = isinstance(error, dict) and isinstance(error.get("message"), str)
    status = value["status"] == "done" or (value["status"] == "failed" and told)
    return named and counted and status


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as a small ``.npz`` file; row numbers are kept as differences."""
    buffer = io.BytesIO()
    small = {
        name: np.diff(values, prepend=0).astype(np.int32)
        if name == "rows"
        else values.astype(np.float32)
        for name, values in arrays.items()
    }
    np.savez_compressed(buffer, **small)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes) -> Arrays:
    """Return what `pack` was given, in single precision."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    rows = len(arrays["rows"])
    for name, values in arrays.items():
        if values.dtype.kind not in "if" or values.ndim == 0 or len(values) != rows:
            raise ValueError(f"'{name}' is {values.dtype} {values.shape}, of {rows} rows")
    arrays["rows"] = np.cumsum(arrays["rows"])
    return arrays


def read_compact(file: Path) -> Iterator[Record]:
    """Yield the records of a compact file."""
    from pyarrow import parquet

    for text in parquet.read_table(file, columns=["record"])["record"].to_pylist():
        yield json.loads(text)


@lru_cache(maxsize=8)
def compact_arrays(file: Path) -> dict[str, Arrays]:
    """Return the errors of all records in a compact file, by key."""
    from pyarrow import parquet

    table = parquet.read_table(file)
    found: dict[str, Arrays] = {}
    made: list[FloatArray] = []
    for row, key in enumerate(table["key"].to_pylist()):
        lists = {name: table[name][row].values for name in ("rows", *ERRORS)}
        if lists["rows"] is None:
            continue
        found[key] = {"rows": np.cumsum(lists["rows"].to_numpy())}
        for name in ERRORS:
            if lists[name] is not None:
                own: dict[str, Any] = {  # files from before have the unit alone
                    part: table[f"{name}_{part}"][row].as_py()
                    for part in ("unit", "like", "share")
                    if f"{name}_{part}" in table.column_names
                }
                packed = lists[name].to_numpy()  # the sign is in the last bit
                counts = np.where(packed % 2, -(packed + 1) // 2, packed // 2)
                if own.get("like") is not None:
                    counts = counts + alike(made[own["like"]], own["share"], own["unit"])
                made.append(counts * own["unit"])
                found[key][name] = made[-1].astype(np.float32)
    return found


def alike(errors: FloatArray, share: float, unit: float) -> IntArray:
    """Return the multiples of a unit nearest to a share of some errors."""
    return np.asarray(np.round(share * errors / unit), dtype=np.int64)
