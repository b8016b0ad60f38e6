"""Arguments in the wrong place: to fit what the constructor takes, and the reverse, are refused."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mvlstm.errors import ArgumentError, DataError, unknown_argument

Value = TypeVar("Value")
SAID = re.compile(r"(?<![\w.(\[])([a-z]\w*)=('[^']*'|\[[^\]]*\]|\d+)")  # in a message: gaps='close'
VERBS = ("fit", "explain", "report")  # whose arguments a constructor may be given by mistake


def placed(method: Callable[..., Value]) -> Callable[..., Value]:
    """Let a verb say where an argument belongs that it does not have; for use as a decorator.

    A refused table's error gets a note that says which of the arguments it advises are the
    constructor's.
    """
    whole = inspect.signature(method)

    @functools.wraps(method)
    def called(self: Any, *args: Any, **given: Any) -> Value:
        own = _arguments(type(self).__init__)
        for name in given:
            if name not in whole.parameters:
                raise ArgumentError(_misplaced(type(self), method.__name__, name, given[name], own))
        try:
            whole.bind(self, *args, **given)
        except TypeError as error:
            raise ArgumentError(f"{method.__name__}() {error}.") from None
        try:
            return method(self, *args, **given)
        except DataError as error:
            said = reversed(SAID.findall(str(error)))  # the first value of each is kept
            meant = {name: value for name, value in said if name in own}
            if meant and method.__name__ == "fit" and not hasattr(error, "__notes__"):
                call = _written(type(self).__name__, meant)
                error.add_note(f"The constructor takes {' and '.join(meant)}: {call}.fit(...)")
            raise

    return called


def told(build: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that says where an argument belongs that it does not have."""
    if getattr(build, "told", False):
        return build
    whole = inspect.signature(build)

    @functools.wraps(build)
    def built(self: Any, *args: Any, **given: Any) -> None:
        open_ended = any(one.kind is one.VAR_KEYWORD for one in whole.parameters.values())
        for name in () if open_ended else given:
            if name not in whole.parameters:
                raise ArgumentError(_elsewhere(type(self), name, given[name], [*whole.parameters]))
        build(self, *args, **given)

    built.told = True  # type: ignore[attr-defined]
    return built


def _arguments(function: Callable[..., Any]) -> list[str]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.name != "self" and one.kind not in variadic]


def _misplaced(cls: type, verb: str, name: str, value: Any, own: list[str]) -> str:
    """Say where an argument belongs that a verb does not have."""
    if name in own:
        build = _written(cls.__name__, {name: _short(value)})
        return f"{verb}() has no argument '{name}'; the constructor does: {build}.{verb}(...)."
    return unknown_argument(verb, name, _arguments(getattr(cls, verb)), own)


def _elsewhere(cls: type, name: str, value: Any, own: list[str]) -> str:
    """Say where an argument belongs that a constructor does not have."""
    for verb in VERBS:
        if name in _arguments(getattr(cls, verb)):
            call = f"{cls.__name__}(...).{verb}(table, {name}={_short(value)})"
            return f"{cls.__name__}() has no argument '{name}'; {verb}() does: {call}."
    return unknown_argument(cls.__name__, name, own[1:])


def _written(name: str, values: Mapping[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in values.items())})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else "..."
