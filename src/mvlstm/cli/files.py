"""Checks on where results go, made before any long work starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mvlstm.errors import ParameterError

TABLE_SUFFIXES = (".csv", ".parquet", ".json")
MODEL_SUFFIXES = (".safetensors",)
PAGE_SUFFIXES = (".html", ".htm")


def check_output(
    path: Path | None, *, suffixes: tuple[str, ...], inputs: Iterable[Path], option: str = "--out"
) -> None:
    """Raise `ParameterError` unless a file with one of the ``suffixes`` can be written there.

    It must be none of the files that are read, ``inputs``; ``option`` is what messages call it.
    """
    if path is None:
        return
    folder, fault = path.parent, ""
    if path.suffix.lower() not in suffixes:
        fault = f"does not end in {' or '.join(suffixes)}; the ending tells the format."
    elif not folder.is_dir():
        fault = f"cannot be written: there is no folder '{folder}'. Make it first "
        fault += f"(mkdir -p '{folder}') or choose another."
    elif path.is_dir():
        fault = "is a folder; name a file in it."
    elif not os.access(folder, os.W_OK | os.X_OK):
        fault = f"cannot be written: the folder '{folder}' is read-only. Choose another."
    elif path.exists() and any(given.exists() and path.samefile(given) for given in inputs):
        fault = "is the file that is read; choose another name for the result."
    if fault:
        raise ParameterError(f"{option} '{path}' {fault}")
