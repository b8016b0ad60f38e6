"""Results of finished tasks in a folder, so that a driver that dies does not lose them.

One file per task: its arrays, and the rest as JSON. Its name says which data and settings it is of:
after any change of these, tasks begin anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._version import __version__
from mvlstm.engine.plain import Parts, from_plain, to_plain
from mvlstm.errors import DataError, ModelFileError, reachable
from mvlstm.storage import KINDS, Packed, array_bytes, hold_lock, pack, write_atomic

KIND = "mvlstm-task"
LOCK = ".tasks.lock"
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Records:
    """The results of some tasks of one run."""

    folder: Path
    name: str
    final: Callable[[Any], bool] = lambda result: True  # whether a result is kept

    def find(self, count: int) -> dict[int, Any]:
        """Return what is kept of ``count`` tasks, by their numbers; damaged files do not count."""
        found = {}
        for k in range(count):
            if self._file(k).is_file():
                with suppress(ModelFileError):
                    packed = Packed.open(self._file(k), KIND, "record of a task")
                    found[k] = from_plain(_decoded(packed.header["result"], packed.arrays()))
        return found

    def keep(self, k: int, result: Any) -> None:
        """Write the result of a task."""
        if self.final(result):
            arrays: Arrays = {}
            header = {"result": _encoded(to_plain(result), arrays)}
            write_atomic(self._file(k), pack(KIND, header, arrays))

    def _file(self, k: int) -> Path:
        return self.folder / f"{self.name}-{k:05d}.safetensors"


@contextmanager
def recorded(
    folder: str | Path | None,
    what: str,
    told: Any,
    final: Callable[[Any], bool] = Records.final,
) -> Iterator[Records | None]:
    """Yield the records of a run of which ``told`` is all that its results depend on.

    Nobody else uses the folder meanwhile. None where there is no folder.
    """
    if folder is None:
        yield None
        return
    place = reachable(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The checkpoint folder '{place}' cannot be made: {error.strerror or error}. "
            "Name another: checkpoint=...."
        ) from error
    with hold_lock(place / LOCK, f"The checkpoint folder '{place}'"):
        yield Records(place, f"{what}-{fingerprint(told)}", final)


def fingerprint(value: Any) -> str:
    """Return a checksum of data and settings, those of a forecaster by its parameters.

    How much is shown (``verbose``) makes no difference.

    Examples
    --------
    >>> fingerprint({"folds": 2, "verbose": 0}) == fingerprint({"folds": 2, "verbose": 1})
    True
    """
    digest = hashlib.blake2b(__version__.encode(), digest_size=12)
    for piece in _pieces(value):
        digest.update(b"\0")
        digest.update(piece)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes | memoryview]:
    yield type(value).__qualname__.encode()
    if isinstance(value, pd.DatetimeIndex):
        yield str(value.dtype).encode()
        value = value.asi8
    elif isinstance(value, pd.Index | pd.Series | pd.DataFrame):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}".encode()
        yield repr(value.tolist()).encode() if value.dtype == object else array_bytes(value)
        return
    if hasattr(value, "get_params"):
        value = value.get_params(deep=False)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, dict):
        value = [(key, value[key]) for key in sorted(value) if key != "verbose"]
    if isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for one in value:
            yield from _pieces(one)
    else:
        yield repr(value).encode()


# -------------------------------------------------------------- what JSON and numbers cannot hold


def _encoded(value: Any, arrays: Arrays) -> Any:
    """Return plain values, see `to_plain`, as JSON; numbers go into ``arrays``."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value

    def encoded(kind: str, *parts: Any) -> list[Any]:
        return [kind, *(_encoded(one, arrays) for one in parts)]

    if isinstance(value, Parts | dict):
        return encoded("parts" if isinstance(value, Parts) else "dict", *value, *value.values())
    if isinstance(value, tuple | list):
        return encoded("tuple" if isinstance(value, tuple) else "list", *value)
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return encoded("time", pd.Index([value]))
    if isinstance(value, pd.Series):
        return encoded("series", value.to_numpy(), value.index, value.name)
    if isinstance(value, pd.MultiIndex):
        return encoded("levels", *(value.get_level_values(k) for k in range(value.nlevels)))
    if isinstance(value, pd.DatetimeIndex) and value.tz is not None:
        return encoded("zoned", value.tz_convert(None).to_numpy(), str(value.tz), value.name)
    if isinstance(value, pd.Index):
        return encoded("index", value.to_numpy(), value.name)
    array = np.asarray(value)
    if array.dtype.kind in "OU" and array.ndim:
        return encoded("objects", array.dtype.str, array.shape, array.ravel().tolist())
    if array.dtype.kind not in "mM" and array.dtype not in KINDS.values():
        raise TypeError(f"{type(value).__name__} of {array.dtype} is not kept")
    name = f"{len(arrays)}"
    arrays[name] = array.view(np.int64) if array.dtype.kind in "mM" else array
    kind = "array" if isinstance(value, np.ndarray) else "number"
    return [kind, name, "float" if type(value) is float else array.dtype.str]


def _decoded(value: Any, arrays: Arrays) -> Any:
    """Undo `_encoded`."""
    if not isinstance(value, list):
        return value
    if value[0] in ("array", "number"):
        array = arrays[value[1]]
        if value[2] == "float":
            return float(array)
        return array.view(value[2])[() if value[0] == "number" else ...]
    kind, *parts = value[0], *(_decoded(one, arrays) for one in value[1:])
    match kind:
        case "parts" | "dict":
            half = len(parts) // 2
            return (Parts if kind == "parts" else dict)(
                zip(parts[:half], parts[half:], strict=True)
            )
        case "tuple" | "list":
            return tuple(parts) if kind == "tuple" else parts
        case "time":
            return parts[0][0]
        case "series":
            return pd.Series(parts[0], index=parts[1], name=parts[2])
        case "levels":
            return pd.MultiIndex.from_arrays(parts)
        case "zoned":
            return pd.DatetimeIndex(parts[0], tz="UTC", name=parts[2]).tz_convert(parts[1])
        case "index":
            return pd.Index(parts[0], name=parts[1])
    assert kind == "objects", kind
    flat = np.empty(len(parts[2]), dtype=parts[0])
    flat[:] = parts[2]
    return flat.reshape(parts[1])
