"""Forecasters of one's own, named by where their class stands: FILE.py:CLASS or MODULE:CLASS."""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

from mvlstm._words import did_you_mean
from mvlstm.errors import ParameterError
from mvlstm.model.forecaster import AbstractForecaster

ARGUMENTS = ("window", "horizon", "missing", "gaps", "verbose")  # every forecaster has them


def own_file(name: str) -> Path | None:
    """Return the file of FILE.py:CLASS; None for any other name.

    Examples
    --------
    >>> own_file("trials.py:StudentT").name
    'trials.py'
    """
    place = name.rpartition(":")[0]
    return Path(place) if place.endswith(".py") else None


def own_class(name: str) -> type[AbstractForecaster]:
    """Import a class by FILE.py:CLASS or MODULE:CLASS, checking that it is a forecaster.

    A file is read each time; the same contents give the same class.
    """
    place, _, wanted = name.rpartition(":")
    file = own_file(name)
    module = _import(name) if file is None else _run(str(file), _source(file))
    if not hasattr(module, wanted):
        there = [key for key, value in vars(module).items() if _is_forecaster(value)]
        choices = f"choose from {', '.join(there)}" if there else "it has no forecasters"
        raise ParameterError(
            f"There is no class '{wanted}' in '{place}'; {choices}.{did_you_mean(wanted, there)}"
        )
    found = getattr(module, wanted)
    if not _is_forecaster(found):
        raise ParameterError(
            f"'{name}' is no forecaster; write it as a subclass of one of mvlstm's, or of "
            "mvlstm.model.forecaster.AbstractForecaster."
        )
    _check_contract(found, name)
    return found


def _is_forecaster(value: object) -> TypeGuard[type[AbstractForecaster]]:
    return isinstance(value, type) and issubclass(value, AbstractForecaster)


def _check_contract(found: type[AbstractForecaster], name: str) -> None:
    """Raise `ParameterError` unless a class has the methods and arguments that it must have."""
    methods = sorted(getattr(found, "__abstractmethods__", ()))
    if methods:
        raise ParameterError(f"'{name}' lacks {', '.join(methods)}; write them.")
    arguments = inspect.signature(found).parameters
    absent = [argument for argument in ARGUMENTS if argument not in arguments]
    if absent:
        raise ParameterError(
            f"The constructor of '{name}' does not name {', '.join(absent)}; list all its "
            "arguments one by one, without **, each with a default."
        )
    needed = [a for a, one in arguments.items() if one.default is inspect.Parameter.empty]
    if needed:
        raise ParameterError(
            f"The constructor of '{name}' has no default for {', '.join(needed)}; give each one."
        )


def _import(name: str) -> ModuleType:
    place, _, wanted = name.rpartition(":")
    try:
        return import_module(place)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise ParameterError(
            f"'{place}' cannot be imported: {type(error).__name__}: {error}. Install it, or name a "
            f"file: FILE.py:{wanted}."
        ) from error


def _source(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"'{file}' cannot be read from '{Path.cwd()}': {error.strerror or error}. Name a file "
            "as seen from the folder the command runs in."
        ) from error


@lru_cache(maxsize=16)
def _run(file: str, source: bytes) -> ModuleType:
    """Run a file's contents as a module of its own."""
    digest = hashlib.sha256(file.encode() + source).hexdigest()
    module = ModuleType(f"{Path(file).stem}_{digest[:10]}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look there for their annotations
    try:
        exec(compile(source, file, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f" (line {frame.lineno})" for frame in frames if frame.filename == file]
        raise ParameterError(
            f"'{file}' cannot be imported: {type(error).__name__}: {error}{''.join(lines[-1:])}. "
            "Correct it, then run again."
        ) from error
    return module
