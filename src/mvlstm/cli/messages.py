"""Messages of the library in the words of the command line.

The library says ``missing='drop'``, which is right in Python; a person at the command line types
``--missing drop``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

# a call such as pd.to_datetime(..., unit='s') is left alone
PIECE = re.compile(
    r"(?P<call>[\w.]+\([^()]*\))"
    r"|(?<![\w.'\"-])(?P<name>[a-z][a-z0-9_]*)="
    r"(?P<value>'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\.\.\.|-?\w+(?:[.+-]\w+)*)"
)
PLAIN = re.compile(r"(?=.*\w)[\w.,:=+/-]+")  # text that a shell takes as it stands


def translate(message: str, options: Mapping[str, str]) -> str:
    """Say arguments as options: ``--window``, or ``--l2-sum/--l2-mean`` for yes and no.

    A value that was received stays as it is: one that opens a message (``window=1 must be ...``) or
    is compared with another (``seed=0, not 9``).

    Examples
    --------
    >>> known = {"missing": "--missing", "time": "--time", "exclude": "--exclude"}
    >>> translate("Use missing='drop', or exclude=['a', 'b'].", known)
    'Use --missing drop, or --exclude a,b.'
    """

    def said(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        compared = message.startswith(", not ", found.end())
        received = compared or (found.start() == 0 and value != "...")
        words = None if received or name not in options else _words(options[name], value)
        return words or found[0]

    return PIECE.sub(said, message)


def _words(option: str, text: str) -> str | None:
    """Return an option with its value; None where the command line cannot say it."""
    if text == "...":
        return option.partition("/")[0]
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if isinstance(value, bool):
        yes, _, no = option.partition("/")
        return (yes if value else no) or None
    if value is None:
        return None
    if value == [] and option == "--na-values":
        return f"{option} none"
    if isinstance(value, list):
        return option if value in ([], [...]) else f"{option} {_quoted(','.join(map(str, value)))}"
    return f"{option} {_quoted(str(value) if isinstance(value, str) else text)}"


def _quoted(text: str) -> str:
    if PLAIN.fullmatch(text):
        return text
    return f"'{text}'" if "'" not in text else f'"{text}"'


def translated(value: Any, options: Mapping[str, str]) -> Any:
    """Translate a message, or all of a list of them."""
    if isinstance(value, str):
        return translate(value, options)
    return [translated(one, options) for one in value]
