"""From the words of a command line to values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
            if not word.startswith("-") and len(joined) > 1 and joined[-2] in several:
                joined[-1] += f",{word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


class NamedPage(TyperCommand):
    """A command whose option ``--html`` may stand alone, for a page called ``tables.html``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the option its usual value where none follows, then parse as usual."""
        named: list[str] = []
        for word, after in zip(args, [*args[1:], "-"], strict=True):
            named += [word, "tables.html"] if word == "--html" and after[:1] == "-" else [word]
        return super().parse_args(ctx, named)


def words(given: Iterable[str] | None) -> list[str]:
    """Split the values of a list option at commas.

    Examples
    --------
    >>> words(["pm25,energy", "plant"])
    ['pm25', 'energy', 'plant']
    """
    return [word.strip() for text in given or () for word in text.split(",") if word.strip()]


def numbers(
    option: str, given: Iterable[str] | None, kind: Callable[[str], Any], such: str
) -> list[Any]:
    """Read the values of a list option as numbers of a kind; ``such`` is an example.

    Examples
    --------
    >>> numbers("--windows", ["10,20"], int, "10 20 30"), numbers("--quantiles", None, float, "0.1")
    ([10, 20], [])
    """
    try:
        return [kind(word) for word in words(given)]
    except ValueError:
        whole = "whole numbers" if kind is int else "numbers"
        raise ParameterError(
            f"{option} {' '.join(words(given))}: give {whole} such as {such}."
        ) from None


def named_columns(columns: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Read an option that names columns, ``A,B`` or one at a time.

    A name that is a column as it stands is not split, so names with commas can be used.

    Examples
    --------
    >>> named_columns(["year", "month", "a,b"], ["year,month", "a,b"])
    ['year', 'month', 'a,b']
    """
    there = set(columns)
    return [name for text in texts for name in ([text] if text in there else words([text]))]


def word_or_words(text: str) -> str | list[str]:
    """Read ``auto`` and ``none`` as words, ``hour,weekday`` as several."""
    return text if text in ("none", "auto") else words([text])


def codes(text: str) -> tuple[float | str, ...]:
    """Read values that stand for missing ones; ``none`` says that there are none.

    Examples
    --------
    >>> codes("-200,?"), codes("none")
    ((-200, '?'), ())
    """
    return () if text == "none" else tuple(number_or_word(word) for word in words([text]))


def ends(text: str) -> tuple[float | None, ...]:
    """Read the least and the greatest value of something; ``none`` or nothing where there is none.

    Examples
    --------
    >>> ends("0,none"), ends("0,")
    ((0.0, None), (0.0, None))
    """
    parts = [part.strip().lower() for part in text.split(",")]
    try:
        return tuple(None if part in ("", "none") else float(part) for part in parts)
    except ValueError:
        raise ParameterError(
            f"--bounds {text} is not two numbers, the least and the greatest value: --bounds 0,none"
        ) from None


def number_or_word(
    text: str, kinds: Iterable[Callable[[str], Any]] = (int, float)
) -> int | float | str:
    """Read a number as one, whole if it is written so, and anything else as the word it is.

    Examples
    --------
    >>> number_or_word("500"), number_or_word("0.2"), number_or_word("auto")
    (500, 0.2, 'auto')
    """
    for kind in kinds:
        try:
            found: int | float = kind(text)
            return found
        except ValueError:
            continue
    return text


def fraction_or_count(option: str, text: str) -> float | int:
    """Read ``0.2`` as a fraction of the rows and ``500`` as a number of rows."""
    found = number_or_word(text)
    if isinstance(found, str):
        raise ParameterError(
            f"{option} {text!r} is not a number; give a fraction of the rows such as 0.2, or a "
            "number of rows such as 500."
        )
    return found
