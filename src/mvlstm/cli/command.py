"""A command: a function of an `Output` and options, some of which come in groups."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_type_hints

import typer

from mvlstm.cli.groups import Group, keyword, option_names
from mvlstm.cli.options import FIT_OPTIONS
from mvlstm.cli.session import session

AS_JSON = typer.Option("--json", help="Print JSON on standard output, and nothing else.")
DEBUG = typer.Option("--debug", help="Show the traceback of an error.")
RUN_OPTIONS: dict[str, Any] = {"as_json": AS_JSON, "debug": DEBUG}


def command(body: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function whose first argument is the `Output`.

    A parameter ``Annotated[Mapping, Group(...)]`` stands for all options of the group. Every
    command has ``--json`` and ``--debug`` too. The body runs within a `session`.
    """
    hints = get_type_hints(body, include_extras=True)
    _, *own = inspect.signature(body).parameters.values()
    groups = {p.name: group for p in own if (group := _group(hints[p.name])) is not None}
    parameters: list[inspect.Parameter] = []
    for one in own:
        if one.name in groups:
            parameters += groups[one.name].parameters
        else:
            parameters.append(keyword(one.name, hints[one.name], one.default))
    options = FIT_OPTIONS | option_names(parameters)
    parameters += [keyword(n, Annotated[bool, kind], False) for n, kind in RUN_OPTIONS.items()]

    @functools.wraps(body)
    def run(*, as_json: bool, debug: bool, **values: Any) -> None:
        with session(as_json=as_json, debug=debug, options=options) as output:
            read = {name: group.read(values) for name, group in groups.items()}
            body(output, **values, **read)

    del run.__dict__["__wrapped__"]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _group(kind: Any) -> Group | None:
    return next((one for one in get_args(kind) if isinstance(one, Group)), None)
