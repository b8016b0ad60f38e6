"""Phrases that several sections and pages use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.report.encode import MINUS, number, percent
from mvlstm.report.page import FigureBlock

PERSISTENCE = "persistence"  # the rival that every model has to beat


def told(*sentences: str | bool) -> str:
    """Join the sentences whose condition holds.

    Examples
    --------
    >>> told("Always.", 1 > 2 and "Never.", 1 < 2 and "Sometimes.")
    'Always. Sometimes.'
    """
    return " ".join(str(sentence) for sentence in sentences if sentence)


def joined(words: Sequence[str], most: int = 99) -> str:
    """Join with commas and a final "and"; say how many there are beyond the first ``most``.

    Examples
    --------
    >>> joined(["a", "b", "c"]), joined(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    shown = list(words[:most])
    if len(words) > most:
        shown.append(f"{len(words) - most} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def alike(own: float, other: float) -> bool:
    """Whether two errors differ by less than would be written, 0.1 %."""
    return own == other or (other > 0 and percent(abs(1 - own / other), 1) == percent(0.0, 1))


def compared(own: float, other: float, name: str) -> str:
    """Say how much smaller or larger an error is than that of another method.

    Examples
    --------
    >>> compared(3.0, 4.0, "AR"), compared(1.0, 1.0, "AR"), compared(1.0, 0.0, "AR")
    ('25.0 % less than AR', 'the same as AR', 'more than AR, whose error is 0')
    """
    if alike(own, other):
        return f"the same as {name}"
    if not other:
        return f"more than {name}, whose error is 0"
    return f"{percent(abs(1 - own / other), 1)} {'less' if own < other else 'more'} than {name}"


def signed(value: float) -> str:
    """Write a correlation: two decimals, a true minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)


def even(figures: list[FigureBlock]) -> list[FigureBlock]:
    """Let the last of an odd number of figures take the whole width."""
    if len(figures) % 2:
        figures[-1] = replace(figures[-1], wide=True)
    return figures


def heat_alt(table: pd.DataFrame) -> str:
    """Describe a heat map for those who do not see it."""
    values = table.to_numpy(dtype=np.float64)
    row, column = divmod(int(np.nanargmax(values)), values.shape[1])
    return (
        f"Heat map of {table.shape[0]} by {table.shape[1]}; largest at {table.index[row]}, "
        f"{_heading(table.columns[column])}: {number(float(values[row, column]))}."
    )


def _heading(name: Any) -> str:
    """Write what a column of a heat map stands for: a lag, with a true minus, or a name."""
    return f"lag {name}".replace("-", MINUS) if isinstance(name, int | np.integer) else str(name)
