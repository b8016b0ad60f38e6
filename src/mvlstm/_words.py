"""Numbers and names in sentences."""

from __future__ import annotations


def counted(count: int, word: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "gap"), counted(2067, "gap")
    ('1 gap', '2,067 gaps')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
