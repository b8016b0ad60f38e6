"""Getting data sets: an archive is downloaded when asked for, and its contents are verified."""

from __future__ import annotations

import hashlib
import io
import lzma
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from mvlstm._version import __version__
from mvlstm.datasets.catalogue import CATALOGUE, DatasetInfo
from mvlstm.datasets.loading import data_folder, describe, is_present, verify
from mvlstm.errors import DataError, ParameterError
from mvlstm.storage import write_atomic

MOST_BYTES = 200_000_000  # of an archive, and of a file in it
PIECE = 1 << 20
SECONDS = 30.0  # without a byte before a download is given up
DEPTH = 2  # archives within archives

DAMAGE = (  # what reading a damaged archive raises
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(NotImplementedError, RuntimeError, EOFError, OSError),
)

Notice = Callable[[str], None]


def fetchable() -> tuple[str, ...]:
    """Names of the data sets that can be downloaded."""
    return tuple(name for name, info in CATALOGUE.items() if info.archive)


def fetch(
    name: str, *, source: str | None = None, force: bool = False, notice: Notice | None = None
) -> list[Path]:
    """Download a data set into the data folder, unless it is there already.

    Every file is compared with the checksum the package knows; nothing is written unless all
    agree, and each takes its name only when it is complete. ``source`` is another address of the
    archive, or a ``.zip`` file on disk; ``notice`` is told in a few words what is going on. Returns
    the files written: none if all were there and ``force`` does not ask for them again.
    """
    info = describe(name)
    if info.builtin:
        raise ParameterError(f"Data set '{name}' is made by the package; there is nothing to get.")
    if not info.archive and source is None:
        raise ParameterError(
            f"Data set '{name}' cannot be downloaded: its licence is {info.licence.split(';')[0]}. "
            f"Put its files into '{data_folder() / name}', or load them from another folder: "
            f"mvlstm.datasets.load('{name}', folder=...)."
        )
    if not force and is_present(name):
        verify(name)
        return []
    place = source or info.archive
    if notice is not None:
        notice(f"{name}: getting {place}")
    contents = take_files(_archive(place, info), info, place)
    written = []
    for file, data in contents.items():
        path = data_folder() / file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"The data folder '{path.parent}' cannot be made: {error.strerror or error}. Set "
                "MVLSTM_DATA to a folder that can be written."
            ) from error
        written.append(write_atomic(path, data))
    return written


def take_files(archive: bytes, info: DatasetInfo, place: str) -> dict[str, bytes]:
    """Return a data set's files out of an archive, each compared with its checksum."""
    wanted = {PurePosixPath(file).name: file for file in info.files}
    found: dict[str, bytes] = {}
    _unpack(archive, wanted, found, place, DEPTH)
    absent = [name for name, file in wanted.items() if file not in found]
    if absent:
        raise DataError(
            f"The archive '{place}' lacks {', '.join(absent)}. The source may have changed: see "
            f"{info.url}. Nothing was written."
        )
    for file, data in found.items():
        digest = hashlib.sha256(data).hexdigest()
        if digest != info.files[file]:
            raise DataError(
                f"'{PurePosixPath(file).name}' of '{place}' is not the file the package knows: its "
                f"SHA-256 is {digest[:12]}..., not {info.files[file][:12]}.... The source has "
                f"changed or the download is damaged: see {info.url}. Nothing was written."
            )
    return found


def _unpack(
    archive: bytes, wanted: dict[str, str], found: dict[str, bytes], place: str, depth: int
) -> None:
    """Look for the wanted files in an archive, and in archives inside it."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as stored:
            for entry in stored.infolist():
                name = PurePosixPath(entry.filename).name
                inner = name.lower().endswith(".zip") and depth > 1
                if name not in wanted and not inner:
                    continue
                if entry.file_size > MOST_BYTES:
                    raise DataError(f"'{name}' in '{place}' is too large; it is not unpacked.")
                data = stored.read(entry)
                if inner:
                    _unpack(data, wanted, found, place, depth - 1)
                else:
                    found.setdefault(wanted[name], data)
    except DAMAGE as error:
        raise DataError(
            f"What '{place}' gave is not a whole zip archive ({error}). Try again. Nothing was "
            "written."
        ) from error


def _archive(place: str, info: DatasetInfo) -> bytes:
    if "://" in place:
        return _download(place, info)
    try:
        return Path(place).expanduser().read_bytes()
    except OSError as error:
        raise DataError(f"'{place}' cannot be read: {error.strerror or error}.") from error


def _download(url: str, info: DatasetInfo) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": f"mvlstm/{__version__}"})
    pieces: list[bytes] = []
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as stream:
            while piece := stream.read(PIECE):
                pieces.append(piece)
                if sum(map(len, pieces)) > MOST_BYTES:
                    raise DataError(f"'{url}' is larger than any data set should be; given up.")
            expected = stream.headers.get("Content-Length")
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"Data set '{info.name}' cannot be downloaded from {url}: {reason}. Check the network, "
            f"or download it by hand from {info.url} and name the archive: source='FILE.zip'."
        ) from error
    data = b"".join(pieces)
    if expected is not None and len(data) != int(expected):
        raise DataError(
            f"The download from {url} broke off after {len(data):,} of {int(expected):,} bytes. "
            "Try again. Nothing was written."
        )
    return data
