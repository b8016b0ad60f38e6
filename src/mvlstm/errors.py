"""The exceptions of mvlstm: one base class, each also a built-in error of its kind."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

LONGEST = 2_000  # characters of a message; names of columns and files may be of any length
_UNSEEN = re.compile(  # control characters, those that turn the direction of text, halves of others
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, longest: int | None = None) -> str:
    r"""Return text that a terminal or a log can be given, the middle of a longer one left out.

    Examples
    --------
    >>> print(printable("a" + chr(27) + "[2J"))
    a\x1b[2J
    """
    if longest is not None and len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _Message(Exception):
    """Something with a message, which may quote what came from outside.

    ``remedy`` says what the message advises: arguments with the values that would help.
    """

    def __init__(self, *args: object, remedy: Mapping[str, Any] | None = None) -> None:
        super().__init__(
            *(printable(arg, LONGEST) if isinstance(arg, str) else arg for arg in args)
        )
        self.remedy = dict(remedy or {})


class MVLSTMError(_Message):
    """Base class of every error that mvlstm raises on purpose."""


class DataError(MVLSTMError, ValueError):
    """The table does not fit what was asked of it."""


class StorageError(DataError):
    """A file could not be written though its place is right: the disk is full or failing."""


class ParameterError(MVLSTMError, ValueError):
    """A setting has a value it cannot have."""


class ArgumentError(ParameterError, TypeError):
    """An argument was given to a function that does not have it."""


class NotFittedError(MVLSTMError, ValueError, AttributeError):
    """A result was asked of a model that has not been fitted."""


class ModelFileError(MVLSTMError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class TrainingError(MVLSTMError, RuntimeError):
    """Training could not go on, for instance because the loss became NaN."""


class MissingExtraError(MVLSTMError, ImportError):
    """An optional library is needed and not installed."""


class MVLSTMWarning(_Message, UserWarning):
    """The result is usable, but something about it should be known."""


def warn(message: str) -> None:
    """Warn of something, as the line outside this package did that asked for it."""
    package, level = os.path.dirname(__file__) + os.sep, 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, MVLSTMWarning, stacklevel=level)


def is_number(value: object) -> TypeGuard[float]:
    """Say whether a value is a real number; True and False do not count.

    Examples
    --------
    >>> is_number(1), is_number(0.5), is_number(True), is_number("1")
    (True, True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Say whether a value is a whole number; True and False do not count.

    Examples
    --------
    >>> is_whole(1), is_whole(1.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(name: str, value: object, least: int) -> None:
    """Raise `ParameterError` unless ``value`` is a whole number, ``least`` or more.

    Examples
    --------
    >>> check_whole("members", 5, 1)
    >>> check_whole("members", 0, 1)
    Traceback (most recent call last):
        ...
    mvlstm.errors.ParameterError: members=0 must be a whole number, 1 or more.
    """
    if not is_whole(value) or value < least:
        raise ParameterError(f"{name}={value!r} must be a whole number, {least} or more.")


def check_time_limit(value: float | None) -> float:
    """Return a limit of time; infinite for None, and `ParameterError` unless it is positive.

    Examples
    --------
    >>> check_time_limit(None)
    inf
    """
    if value is None:
        return float("inf")
    if not is_number(value) or not value > 0:
        raise ParameterError(f"time_limit={value!r} must be a positive number of seconds.")
    return float(value)


def check_option(name: str, value: object, options: Iterable[object]) -> None:
    """Raise `ParameterError` unless ``value`` is one of ``options``.

    Examples
    --------
    >>> check_option("gates", "full", ("full", "variable"))
    >>> check_option("gates", "fulll", ("full", "variable"))
    Traceback (most recent call last):
        ...
    mvlstm.errors.ParameterError: gates='fulll' is not an option; choose 'full' or 'variable'.
    """
    options = tuple(options)
    if value in options:
        return
    head = ", ".join(repr(option) for option in options[:-1])
    choices = f"{head} or {options[-1]!r}" if head else repr(options[-1])
    raise ParameterError(f"{name}={value!r} is not an option; choose {choices}.")


def unknown_argument(
    function: str, name: str, own: Iterable[str], others: Iterable[str] = ()
) -> str:
    """Say that a function has no such argument, and which of its ``own`` may be meant.

    ``others`` are arguments of something else that may be meant, too.

    Examples
    --------
    >>> unknown_argument("fit", "tst", ["test", "valid"])
    "fit() has no argument 'tst'. Did you mean test=...?"
    """
    names = [*own]
    near = difflib.get_close_matches(name, [*names, *others], n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}=...?" if near else f"It takes {', '.join(names)}."
    return f"{function}() has no argument '{name}'. {hint}"


def load_extra(module: str, what: str, extra: str) -> Any:
    """Import a library of an extra, or say for ``what`` it is needed and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {module.partition('.')[0]}, which is not installed. Install it with: "
            f"pip install 'mvlstm[{extra}]'"
        ) from error


def reachable(path: str | os.PathLike[str], kind: type[MVLSTMError] = DataError) -> Path:
    """Return a path that the system can look up, whether or not anything is there.

    Raises an error of this ``kind`` if it cannot: a folder that may not be searched, a name that is
    too long.
    """
    file = Path(path)
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            file.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise kind(f"'{file}' cannot be reached: {reason}. Choose another path.") from error
    return file
