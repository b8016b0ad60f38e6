"""Arrays with a JSON header in one safetensors file: sizes checked first, nothing unpickled.

Model files and checkpoints are such files. A checksum over header and arrays tells damage; it is
no protection against someone who means harm, which the checks that follow are for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError

LARGEST_HEADER = 32 * 2**20  # bytes
LARGEST_FILE = 16 * 2**30
KINDS = ("float64", "float32", "int64", "int32", "uint8", "bool")


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a file of one ``kind``: its header as strict JSON, and its arrays."""
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():  # ascontiguousarray gives a number an axis
        contiguous[name] = contiguous[name].reshape(array.shape)
    text = json.dumps(header, default=_plain, allow_nan=False)
    if len(text) > LARGEST_HEADER // 2:
        raise ModelFileError(f"The header would take {len(text):,} bytes, which is too much.")
    metadata = {kind: text, "checksum": _checksum(text, contiguous)}
    return bytes(save(contiguous, metadata=metadata))


def unpack(path: Path, kind: str, what: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and arrays of a file that `pack` made.

    Parameters
    ----------
    path : Path
    kind : str
    what : str
        What the file should be, in words.

    Raises
    ------
    ModelFileError
        If it is anything else, or not as it was written.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelFileError(f"There is no file '{path}'. Check the path.")
    try:
        _check_sizes(path, what)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if kind not in metadata:
                raise ModelFileError(f"'{path}' is a safetensors file, but no {what}.")
            text = metadata[kind]
            header = json.loads(text, parse_constant=_no_constant)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise ModelFileError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"'{path}' is no {what}, or is damaged ({error}).") from error
    except RecursionError as error:
        raise ModelFileError(f"'{path}' is no {what}: its header is nested too deep.") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"'{path}' is no {what}: its header is no table of fields.")
    strange = [name for name, array in arrays.items() if str(array.dtype) not in KINDS]
    if strange:
        raise ModelFileError(f"'{path}' holds arrays of an unknown type: {sorted(strange)}.")
    if metadata.get("checksum") != _checksum(text, arrays):
        raise ModelFileError(
            f"'{path}' is damaged: its contents do not match their checksum. Copy it again, or "
            "fit the model anew."
        )
    return header, arrays


def _check_sizes(path: Path, what: str) -> None:
    """Refuse a file whose own lengths cannot be true, before anything of that size is read."""
    size = path.stat().st_size
    with open(path, "rb") as stream:
        start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        table = path.suffix.lower() in (".csv", ".parquet", ".txt")
        hint = " It looks like a table; the model comes first." if table else ""
        raise ModelFileError(f"'{path}' is no {what}, or is cut off.{hint}")
    if length > LARGEST_HEADER or size > LARGEST_FILE:
        raise ModelFileError(f"'{path}' is too large to be a {what} ({size:,} bytes).")


def _checksum(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array_bytes(array))
    return digest.hexdigest()


def array_bytes(array: NDArray[Any]) -> memoryview:
    """Return an array's values as bytes, to compute checksums of."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | pd.Index | pd.Series):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored in a model file")
