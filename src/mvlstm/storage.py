"""Arrays with a JSON header in one safetensors file: sizes checked first, nothing unpickled.

Model files and checkpoints are such files. A checksum over header and arrays tells damage; it is
no protection against someone who means harm, which the checks that follow are for.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import DataError, ModelFileError, StorageError

_DISK_FAULTS = (errno.ENOSPC, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
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


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file so that its name always stands for complete contents.

    The data go to a temporary file in the same folder, are flushed to disk, and only then take
    the name. After a failure the temporary file is gone and an earlier file is untouched. A link
    stays one: what it leads to is written.

    Returns
    -------
    Path
        The path written.

    Raises
    ------
    DataError
        If the folder is missing or read-only, or the name is that of a device or a stream.
    StorageError
        If the disk is full or failing.
    """
    file = Path(path)
    if file.is_symlink():
        file = Path(os.path.realpath(file))
    if file.is_dir():
        raise DataError(f"'{file}' is a folder; give the name of a file to write.")
    if file.exists() and not file.is_file():  # a name such as /dev/null must not be taken away
        raise DataError(f"'{file}' is no file but a device or a stream; give the name of a file.")
    if not file.parent.is_dir():
        raise DataError(f"The folder '{file.parent}' does not exist; create it first.")
    content = data.encode("utf-8") if isinstance(data, str) else data
    temporary = file.with_name(f".{file.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if file.exists():
            temporary.chmod(file.stat().st_mode & 0o777)
        os.replace(temporary, file)
    except OSError as error:
        kind = StorageError if error.errno in _DISK_FAULTS else DataError
        raise kind(
            f"'{file}' cannot be written: {error.strerror or error}. Nothing was changed; choose "
            "another place."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(file.parent)
    return Path(path)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system allows it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
