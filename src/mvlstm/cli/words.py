"""From the words of a command line to values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def named_columns(
    columns: Iterable[str], **given: Sequence[str] | None
) -> dict[str, list[str] | None]:
    """Read options that name columns, ``A,B`` or one at a time; None for one that was not given.

    A name that is a column as it stands is not split, so names with commas can be used.

    Examples
    --------
    >>> named_columns(["year", "month", "a,b"], time=["year,month"], exclude=["a,b"], known=None)
    {'time': ['year', 'month'], 'exclude': ['a,b'], 'known': None}
    """
    there = set(columns)
    return {
        option: [name for text in texts for name in ([text] if text in there else words([text]))]
        if texts
        else None
        for option, texts in given.items()
    }


def word_or_words(text: str | None) -> str | list[str] | None:
    """Read ``auto`` as a word and ``hour,weekday`` as several; None if the option was not given.

    Examples
    --------
    >>> word_or_words("auto"), word_or_words("hour")
    ('auto', ['hour'])
    """
    if text is None or text in ("none", "auto"):
        return text
    return [word.strip() for word in text.split(",") if word.strip()]


def fraction_or_count(option: str, text: str | None) -> float | int | None:
    """Read ``0.2`` as a fraction of the rows and ``500`` as a number of rows.

    Examples
    --------
    >>> fraction_or_count("--test", "0.2"), fraction_or_count("--test", "500")
    (0.2, 500)
    """
    if text is None:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ParameterError(
        f"{option} {text!r} is not a number; give a fraction of the rows such as 0.2, or a number "
        "of rows such as 500."
    )


def number_or_word(text: str | None) -> float | str | None:
    """Read a number as a number and anything else as the word it is, for the model to judge."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
