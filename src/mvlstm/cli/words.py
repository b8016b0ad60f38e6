"""Options that take several values: ``--windows 10 20 30``, ``10,20,30``, or one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

from mvlstm.errors import ParameterError


class SpacedLists(TyperCommand):
    """A command without arguments whose list options take values separated by spaces too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the values after a list option with commas, then parse as usual."""
        several = {name for p in self.params if getattr(p, "multiple", False) for name in p.opts}
        joined: list[str] = []
        for word in args:
            value = not word.startswith("-")
            if value and len(joined) > 1 and joined[-2] in several:
                joined[-1] = f"{joined[-1]},{word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


class NamedPage(TyperCommand):
    """A command whose option ``--html`` may stand alone, for a page called ``tables.html``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the option its usual value where none follows, then parse as usual."""
        named: list[str] = []
        for place, word in enumerate(args):
            named.append(word)
            alone = place + 1 == len(args) or args[place + 1].startswith("-")
            if word == "--html" and alone:
                named.append("tables.html")
        return super().parse_args(ctx, named)


def words(given: Iterable[str] | None) -> list[str]:
    """Split the values of a list option at commas.

    Examples
    --------
    >>> words(["pm25,energy", "plant"])
    ['pm25', 'energy', 'plant']
    """
    return [word.strip() for text in given or () for word in text.split(",") if word.strip()]


def whole_numbers(option: str, given: Iterable[str] | None) -> list[int]:
    """Read the values of a list option as whole numbers.

    Examples
    --------
    >>> whole_numbers("--windows", ["10,20"])
    [10, 20]
    """
    try:
        return [int(word) for word in words(given)]
    except ValueError as error:
        raise ParameterError(
            f"{option} {' '.join(words(given))}: give whole numbers such as 10 20 30."
        ) from error


def numbers(option: str, text: str | None) -> list[float]:
    """Read ``0.1,0.9`` as numbers; none if the option was not given.

    Examples
    --------
    >>> numbers("--quantiles", "0.1,0.9"), numbers("--quantiles", None)
    ([0.1, 0.9], [])
    """
    try:
        return [float(word) for word in (text or "").split(",") if word.strip()]
    except ValueError:
        raise ParameterError(
            f"{option} {text!r} holds something that is no number; give numbers such as 0.1,0.9."
        ) from None
