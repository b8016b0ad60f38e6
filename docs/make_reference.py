"""Turn docstrings into Markdown: every public name in full, for the site that `make docs` builds.

`make_api.py` says which names there are and which belong together.
"""

from __future__ import annotations

import inspect
import re
from types import FunctionType, ModuleType

from make_api import GROUPS, _link, _signature, _value

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
FIELDS = ("Parameters", "Returns", "Raises", "Yields", "Attributes")


def pages() -> dict[str, str]:
    """Return the pages by file name, one per group of names."""
    return {
        f"{re.sub(r'[^a-z]+', '-', title.lower())}.md": _page(title, names)
        for title, names in GROUPS.items()
        if title != "Version"
    }


def _page(title: str, names: dict[str, str]) -> str:
    parts = [f"# {title}\n"]
    for name, more in names.items():
        link = _link(more).replace("](", "](../")
        parts += [f"## `{name}`\n", f"{_entry(name)}\nMore: {link}\n"]
        parts += [f"### `{inner}`\n\n{_entry(inner)}" for inner in _members(name)]
    return "\n".join(parts)


def _members(name: str) -> list[str]:
    """Return the public names in a module or class that have no entry of their own."""
    value = _value(name)
    if isinstance(value, ModuleType):
        return [f"{name}.{one}" for one in sorted(getattr(value, "__all__", ()))]
    if not isinstance(value, type) or (hasattr(value, "fit") and name != "MVLSTM"):
        return []  # every forecaster has the methods of MVLSTM
    there = {one for group in GROUPS.values() for one in group}
    own = {one: inspect.getattr_static(value, one) for one in dir(value) if one[0] != "_"}
    told = (FunctionType, property, classmethod)
    return [
        f"{name}.{k}" for k, v in own.items() if isinstance(v, told) and f"{name}.{k}" not in there
    ]


def _entry(name: str) -> str:
    value = _value(name)
    signature = "" if isinstance(value, ModuleType) else _signature(name, width=84)
    shown = f"```py\n{signature}\n```\n\n" if signature else ""
    return f"{shown}{markdown(inspect.getdoc(value) or '')}\n"


def markdown(text: str) -> str:
    """Turn a docstring in numpy's layout into Markdown.

    Examples
    --------
    >>> print(markdown("Add.\\n\\nParameters\\n----------\\na : int\\n    One."))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    `a` : int
    :   One.
    """
    text = re.sub(r":math:`([^`]+)`", r"$\\1$", text).replace("``", "`")
    first, *rest = SECTION.split(text)
    parts = [_prose(first)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts += [f"**{title}**", _fields(body) if title in FIELDS else _prose(body)]
    return "\n\n".join(part for part in parts if part)


def _fields(body: str) -> str:
    """Return names with what they are, as a list of definitions."""
    lines = []
    for line in body.strip("\n").splitlines():
        if line.startswith(" "):
            more = lines[-1].startswith((":", "    "))
            lines.append(f"{'    ' if more else ':   '}{line.strip()}")
        elif line:
            name, colon, kind = line.partition(" : ")
            lines += ["", f"`{name}`{' : ' + _escaped(kind) if colon else ''}"]
    return "\n".join(lines).strip("\n")


def _prose(body: str) -> str:
    """Return a text in which examples are blocks of code."""
    blocks = re.split(r"\n\n+", body.strip("\n"))
    return "\n\n".join(f"```pycon\n{one}\n```" if one.startswith(">>>") else one for one in blocks)


def _escaped(text: str) -> str:
    return text.replace("*", r"\*").replace("_", r"\_").replace("<", "&lt;")
