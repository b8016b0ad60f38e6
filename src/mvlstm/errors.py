"""The exceptions of mvlstm: one base class, each also a built-in error of its kind."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard


class MVLSTMError(Exception):
    """Base class of every error that mvlstm raises on purpose."""


class DataError(MVLSTMError, ValueError):
    """The table does not fit what was asked of it."""


class StorageError(DataError):
    """A file could not be written though its place is right: the disk is full or failing."""


class ParameterError(MVLSTMError, ValueError):
    """A setting has a value it cannot have."""


class NotFittedError(MVLSTMError, ValueError, AttributeError):
    """A result was asked of a model that has not been fitted."""


class ModelFileError(MVLSTMError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class TrainingError(MVLSTMError, RuntimeError):
    """Training could not go on, for instance because the loss became NaN."""


class MissingExtraError(MVLSTMError, ImportError):
    """An optional library is needed and not installed."""


class MVLSTMWarning(UserWarning):
    """The result is usable, but something about it should be known."""


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
