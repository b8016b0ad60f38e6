"""Damage done to files: byte by byte, or inside a model's header and arrays."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, Any]

# ------------------------------------------------------------------------------- bytes


def _flip(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 2, 8))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _overwrite(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    stop = min(len(data), start + draw.choice((1, 4, 8, 64)))
    data[start:stop] = draw.randbytes(stop - start)


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _remove(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    del data[start : start + draw.choice((1, 2, 16, 200))]


def _repeat(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    piece = data[start : start + draw.choice((1, 10, 300))]
    data[start:start] = piece * draw.choice((1, 2, 50))


def _insert(data: bytearray, draw: random.Random) -> None:
    pieces = (
        *(b"\x00", b"\xff\xff", b"\n", b'"', b",", b";", b"\r\n\r\n", b"\xef\xbb\xbf", b"nan"),
        *(b"inf", b"-1e400", b"9" * 400, b"1e308", b"\xe2\x80\xa8", b"2024-13-45", b"[" * 3000),
        *(b"true", b"1,5", b"\t", b"|", b"\x1f\x8b", b"PAR1", b"'", b"\xff\xfe", b"0x10", b"--"),
    )
    start = draw.randrange(len(data) + 1)
    data[start:start] = draw.choice(pieces)


def _length(data: bytearray, draw: random.Random) -> None:
    """Change the first eight bytes, a safetensors file's length of its header."""
    sizes = (0, 1, 2**63, 2**64 - 1, 10**9, len(data), len(data) - 8, draw.randrange(len(data)))
    data[:8] = draw.choice(sizes).to_bytes(8, "little")


def _digits(data: bytearray, draw: random.Random) -> None:
    """Change a digit somewhere: offsets, shapes, dates, values."""
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    for _ in range(draw.choice((1, 1, 3))):
        if places:
            data[draw.choice(places)] = draw.choice(b"0123456789-.e")


BYTES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_flip, _overwrite, _cut, _remove, _repeat, _insert, _digits, _digits),
)


CELLS = (
    *(b"", b"", b"nan", b"-200", b"-999", b"9", b"0", b"1e9", b"-1e30", b"1e200", b"1e-300"),
    *(b"inf", b"x", b"1.5", b"-3.4028235e38", b"9007199254740993", b"2024-03-31 01:00:00+00:00"),
)


def mutate_bytes(data: bytes, draw: random.Random, *, binary: bool = False) -> bytes:
    """Return ``data`` with one to three kinds of damage."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if not changed:
            break
        draw.choice((*BYTES, _length) if binary else BYTES)(changed, draw)
    return bytes(changed)


def mutate_cells(data: bytes, draw: random.Random) -> bytes:
    """Return a table of text, one row per line, with one to four cells, rows or columns changed."""
    rows = [line.split(b",") for line in data.splitlines()]
    for _ in range(draw.choice((1, 1, 2, 4))):
        i = draw.randrange(1, len(rows))
        j = draw.randrange(len(rows[i]))
        how = draw.randrange(8)
        if how < 3:
            rows[i][j] = draw.choice(CELLS)
        elif how == 3:
            rows[i][j] = rows[draw.randrange(1, len(rows))][j]
        elif how == 4:
            del rows[i : i + draw.choice((1, 1, 3))]
        elif how == 5:
            rows.insert(i, list(rows[i]))
        elif how == 6:
            rows[i][1:] = [b""] * (len(rows[i]) - 1)
        else:
            factor = draw.choice((b"e3", b"e-9", b"e80", b"e-80"))
            for row in rows[1:]:
                if j and row[j:]:
                    row[j] += factor
        if len(rows) < 3:
            break
    return b"\n".join(b",".join(row) for row in rows) + b"\n"


def mutate_archive(data: bytes, draw: random.Random) -> bytes:
    """Return a zip archive with damage done to one of its files, or to the archive."""
    if draw.random() < 0.3:
        return mutate_bytes(data, draw, binary=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice(sorted(files))
    files[name] = mutate_bytes(files[name], draw)
    if draw.random() < 0.2:
        del files[draw.choice(sorted(files))]
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return changed.getvalue()


# ------------------------------------------------------------------------------ models

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 10**6, 10**9, 2**31, 2**63, 10**30, -(2**63)),
    *(0.5, -0.0, 1e-300, 1e300, -1e300, "", "x", "full", "cuda", "9" * 50, "é\ud800", "\x00"),
    *([], {}, [[]], [1], [None], ["a", "a"], {"time": "x"}, {"zone": "Mars/City"}, [[1e9]] * 3),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a header, the outermost first."""
    inner: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        inner = [place for key in value for place in _places(value[key], (*path, key))]
    elif isinstance(value, list):
        inner = [place for i, v in enumerate(value) for place in _places(v, (*path, i))]
    return [path, *inner] if path else inner


def _change_header(header: dict[str, Any], draw: random.Random) -> None:
    place = draw.choice(_places(header))
    owner: Any = header
    for key in place[:-1]:
        owner = owner[key]
    old, how = owner[place[-1]], draw.random()
    if how < 0.1:
        del owner[place[-1]]
    elif how < 0.2 and isinstance(owner, dict):
        owner[draw.choice(("extra", "window", "__class__", "schema"))] = draw.choice(VALUES)
    elif how < 0.5 and isinstance(old, int | float) and not isinstance(old, bool):
        owner[place[-1]] = draw.choice((old + 1, old - 1, -old, old * 1000, float(old), str(old)))
    else:
        owner[place[-1]] = copy.deepcopy(draw.choice(VALUES))


def _change_arrays(arrays: Arrays, draw: random.Random) -> None:
    name = draw.choice(sorted(arrays))
    array, how = arrays[name], draw.randrange(9)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[draw.choice(("model.more", "common.more", "else", "model."))] = array
    elif how == 2:
        kinds = (np.float16, np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8)
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(draw.choice(kinds))
    elif how == 3:
        arrays[name] = array.reshape(-1)[: draw.randrange(array.size + 1)]
    elif how == 4:
        arrays[name] = array[None] if draw.random() < 0.5 else array.T.copy()
    elif how == 5 and array.size:
        flat = array.reshape(-1).copy()
        bad = (np.nan, np.inf, -np.inf, 1e38, -1e38, 0.0, -1.0, 1e9)
        with np.errstate(all="ignore"):
            flat[draw.randrange(flat.size)] = np.array(draw.choice(bad)).astype(flat.dtype)
        arrays[name] = flat.reshape(array.shape)
    elif how == 6:
        arrays[name] = np.zeros_like(array)
    elif how == 7:
        raw = bytearray(array.tobytes())
        if raw:
            _overwrite(raw, draw)
        arrays[name] = np.frombuffer(bytes(raw), dtype=array.dtype).reshape(array.shape)
    else:
        arrays[name] = np.concatenate([array, array]) if array.ndim else array


def mutate_json(value: dict[str, Any], draw: random.Random) -> bytes:
    """Return a line of JSON with something wrong inside."""
    changed = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        _change_header(changed, draw)
    return json.dumps(changed).encode()


def _change_numbers(arrays: Arrays, draw: random.Random) -> None:
    """Change one number of an array, or all by one factor; the file stays well formed."""
    name = draw.choice(sorted(name for name in arrays if arrays[name].size))
    array = arrays[name].copy()
    place = draw.randrange(array.size) if draw.random() < 0.7 else slice(None)
    factor = draw.choice((0.0, 0.5, 1.001, 2.0, -1.0, 30.0, 1e4, 1e9, 1e30))
    with np.errstate(all="ignore"):
        array.reshape(-1)[place] = (array.reshape(-1)[place] * factor).astype(array.dtype)
    arrays[name] = array


def mutate_model(
    header: dict[str, Any],
    arrays: Arrays,
    draw: random.Random,
    *,
    kind: str = "mvlstm",
    mild: bool = False,
) -> bytes:
    """Return a model file with a sound checksum and something wrong inside.

    A ``mild`` change leaves a file that should load: only numbers differ.
    """
    from mvlstm.storage import _checksum

    header, arrays = copy.deepcopy(header), dict(arrays)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        if mild:
            _change_numbers(arrays, draw)
        elif draw.random() < 0.7:
            if header:
                _change_header(header, draw)
        elif arrays:
            _change_arrays(arrays, draw)
    from safetensors.numpy import save

    text = json.dumps(header)
    sound = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return bytes(save(sound, metadata={kind: text, "checksum": _checksum(text, sound)}))
