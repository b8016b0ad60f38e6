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
import re
import secrets
import socket
import time as clock
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import DataError, ModelFileError, MVLSTMWarning, StorageError, reachable

_DISK_FAULTS = (errno.ENOSPC, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_TAKEN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)  # by another process
LARGEST_HEADER = 32 * 2**20  # bytes
LARGEST_FILE = 16 * 2**30  # of any kind; what a model's settings allow is known from its header
LARGEST_HOLE = 2**26  # bytes that a file may have on less disk: a file system may compress zeros
_LEFT = re.compile(r"\.[0-9a-f]{12}\.tmp$")  # ends the names of files that are being written
KINDS = {
    **{"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32},
    **{"U8": np.uint8, "BOOL": np.bool_},
}


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


@dataclass(frozen=True, eq=False)
class Unread:
    """An array of a file, of which `numpy.asarray` reads the values; the rest is known before."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], NDArray[Any]]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the values."""
        return self.read()


@dataclass(frozen=True, eq=False)
class Packed:
    """A file that `pack` made, of which nothing but the header was read yet.

    What the header says can be checked against ``shapes`` before `arrays` takes any memory, and
    each array of `unread` before it is read itself.
    """

    path: Path
    what: str  # the file should be, in words
    header: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]  # by array
    checksum: str | None  # of header and arrays, as it is stored
    _kinds: dict[str, np.dtype[Any]]
    _text: str
    _file: Any
    _values: dict[str, NDArray[Any]] = field(default_factory=dict)  # read so far

    @classmethod
    def open(cls, path: Path, kind: str, what: str) -> Packed:
        """Read the header of a file of one ``kind``; `ModelFileError` if it is anything else."""
        from safetensors import safe_open

        with _reading(path, what):
            _check_sizes(path, what)
            file: Any = safe_open(path, framework="numpy")
            metadata = file.metadata() or {}
            if kind not in metadata:
                raise ModelFileError(f"'{path}' is a safetensors file, but not a {what}.")
            text = metadata[kind]
            header = json.loads(text, parse_constant=_no_constant)
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            strange = sorted(name for name, part in parts.items() if part.get_dtype() not in KINDS)
            shapes = {name: tuple(part.get_shape()) for name, part in parts.items()}
        if not isinstance(header, dict):
            raise ModelFileError(f"'{path}' is not a {what}: its header is not a table of fields.")
        if strange:
            raise ModelFileError(f"'{path}' holds arrays of an unknown type: {strange}.")
        kinds = {name: np.dtype(KINDS[part.get_dtype()]) for name, part in parts.items()}
        return cls(path, what, header, shapes, metadata.get("checksum"), kinds, text, file)

    def unread(self) -> dict[str, Unread]:
        """Return every array by name; call `check` when they have been read."""
        return {
            name: Unread(shape, self._kinds[name], partial(self.read, name))
            for name, shape in self.shapes.items()
        }

    def read(self, name: str) -> NDArray[Any]:
        """Read one array."""
        with _reading(self.path, self.what):
            self._values[name] = self._file.get_tensor(name)
        return self._values[name]

    def check(self) -> None:
        """Raise `ModelFileError` unless what was read is all, and as it was written."""
        if self.checksum != _checksum(self._text, self._values):
            raise ModelFileError(
                f"'{self.path}' is damaged: its contents do not match their checksum. Copy it "
                "again, or fit the model anew."
            )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Read the arrays; `ModelFileError` if they are not as they were written."""
        found = {name: self.read(name) for name in self.shapes}
        self.check()
        return found


@contextlib.contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Turn what reading a damaged or foreign file raises into a `ModelFileError`."""
    from safetensors import SafetensorError

    try:
        yield
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(f"'{path}' is not a {what}, or is damaged ({error}).") from error
    except RecursionError as error:
        raise ModelFileError(f"'{path}' is not a {what}: its header is nested too deep.") from error


def _check_sizes(path: Path, what: str) -> None:
    """Refuse a file whose own lengths cannot be true, before anything of that size is read."""
    if not reachable(path, ModelFileError).is_file():
        raise ModelFileError(f"There is no file '{path}'. Check the path.")
    found = path.stat()
    size = found.st_size
    with open(path, "rb") as stream:
        start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        table = path.suffix.lower() in (".csv", ".parquet", ".txt")
        hint = " It looks like a table; the model comes first." if table else ""
        raise ModelFileError(f"'{path}' is not a {what}, or is cut off.{hint}")
    if length > LARGEST_HEADER or size > LARGEST_FILE:
        raise ModelFileError(f"'{path}' is too large to be a {what} ({size:,} bytes).")
    on_disk = 512 * getattr(found, "st_blocks", size)
    if size > LARGEST_HOLE and on_disk < size / 64:  # numbers never pack that tightly
        raise ModelFileError(
            f"'{path}' is not a whole {what}: of its {size:,} bytes the disk holds {on_disk:,}. "
            "Copy it again."
        )


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
    raise ValueError(f"{name} is not a number in JSON")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | pd.Index | pd.Series):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored in a model file")


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path stands for; raises `DataError` if none can be written there."""
    file = reachable(path)
    if file.is_symlink():
        file = Path(os.path.realpath(file))
    if file.is_dir():
        raise DataError(f"'{file}' is a folder; give the name of a file to write.")
    if file.exists() and not file.is_file():  # a name such as /dev/null must not be taken away
        raise DataError(f"'{file}' is a device or a stream; give the name of a file.")
    if not file.parent.is_dir():
        raise DataError(f"The folder '{file.parent}' does not exist; create it first.")
    return file


def ensure_folder(folder: Path) -> None:
    """Make a folder if it is not there; raises as `write_atomic` does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        kind = StorageError if error.errno in _DISK_FAULTS else DataError
        raise kind(
            f"The folder '{folder}' cannot be made: {error.strerror or error}. Choose another "
            "place."
        ) from error


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file so that its name always stands for complete contents.

    The data go to a temporary file in the same folder, are flushed to disk, and only then take
    the name. After a failure the temporary file is gone and an earlier file is untouched. A link
    stays one: what it leads to is written. Returns the path.

    Raises `DataError` if nothing can be written there, `StorageError` if the disk is full or
    failing.
    """
    file = check_place(path)
    content = data.encode("utf-8") if isinstance(data, str) else data
    sweep(file.parent)
    temporary = file.with_name(f".{file.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            _try_lock(stream.fileno())  # tells `sweep` that somebody is at it
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


@cache
def sweep(folder: Path) -> None:
    """Delete what killed writers left in a folder; done once in the life of a process.

    A file that is being written is locked, or younger than a second.
    """
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if _LEFT.search(path.name) is None or clock.time() - path.stat().st_mtime < 1:
                continue
            with open(path, "rb+") as stream:
                left = _try_lock(stream.fileno())
            if left:
                path.unlink()


@contextlib.contextmanager
def hold_lock(
    path: Path, what: str, *, patience: float = 0.0, waiting: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the lock file ``path``; the system lets it go when the process ends, however it ends.

    ``what`` has one user at a time. After ``patience`` seconds a `DataError` names the other one;
    ``waiting`` is called with that name once.
    """
    deadline = clock.monotonic() + patience
    while (handle := _locked(path, what)) is None:
        holder = _holder(path)
        if clock.monotonic() >= deadline:
            raise DataError(
                f"{what} is in use by {holder}. Wait until that has ended, or choose another place."
            )
        if waiting is not None:
            waiting(holder)
            waiting = None
        clock.sleep(0.05)
    try:
        with contextlib.suppress(OSError):  # who holds it is for people: nothing rests on it
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps an open file, which does no harm
            path.unlink()
        os.close(handle)


def _locked(path: Path, what: str) -> int | None:
    """Return the handle of the lock file, locked; None if another process holds it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataError(
            f"{what} cannot be locked: {error.strerror or error}. Choose another place."
        ) from error
    locked = _try_lock(handle)
    if locked is None:
        words = (
            f"{what} cannot be locked on its file system: see that nobody else uses it meanwhile."
        )
        warnings.warn(words, MVLSTMWarning, stacklevel=5)
    with contextlib.suppress(OSError):
        # the file may have been let go and deleted since it was opened
        if locked is not False and os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    os.close(handle)
    return None


def _holder(path: Path) -> str:
    """Say who holds a lock, as far as it is known."""
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "replace")[:100] or "another process"
    return "another process"


def _try_lock(handle: int) -> bool | None:
    """Lock an open file for this process; False if another has locked it.

    None if its file system knows no locks, as some that are shared over a network.
    """
    try:
        try:
            import fcntl
        except ImportError:  # Windows, which lets nobody read what is locked: far beyond the text
            import msvcrt

            os.lseek(handle, 2**30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in _TAKEN else None
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system allows it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
