"""Options that belong together, and how each is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, get_args

import typer
from typer.models import OptionInfo

EMPTY = inspect.Parameter.empty  # the default of what must be given


def option(
    text: str,
    metavar: str | None = None,
    panel: str | None = None,
    *,
    name: str | None = None,
    shown: str | bool = True,
) -> Any:
    """Return what typer is told about an option: its help, the form of its value, its heading.

    ``name`` is how it is written where its parameter has another name, and ``shown`` a default in
    words.
    """
    return typer.Option(
        *([] if name is None else [name]),
        metavar=metavar,
        help=text,
        rich_help_panel=panel,
        show_default=shown,
    )


@dataclass(frozen=True, eq=False)
class Group:
    """Options that a command receives as one mapping, holding those that were given."""

    options: dict[str, Any]  # name and type with what typer is told: Annotated[int, option(...)]
    required: tuple[str, ...] = ()  # those that must be given
    readers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)  # from text to value

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The options as parameters of a function."""
        return [
            keyword(name, kind, EMPTY if name in self.required else None)
            for name, kind in self.options.items()
        ]

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Take the group's options out of ``values``; return those that were given."""
        taken = {name: values.pop(name) for name in self.options}
        given = {name: value for name, value in taken.items() if value not in (None, [])}
        return {n: self.readers[n](v) if n in self.readers else v for n, v in given.items()}


def option_names(parameters: Iterable[inspect.Parameter]) -> dict[str, str]:
    """Return how each option is written: ``--window``, ``--l2-sum/--l2-mean``."""
    names: dict[str, str] = {}
    for one in parameters:
        for info in get_args(one.annotation):
            if isinstance(info, OptionInfo):
                written = info.default if isinstance(info.default, str) else None
                names[one.name] = written or f"--{one.name.replace('_', '-')}"
    return names


def keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """Return a keyword-only parameter."""
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=kind)
