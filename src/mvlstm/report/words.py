"""Phrases and panels that several sections and pages use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import MINUS, number
from mvlstm.report.encode import percent
from mvlstm.report.page import FigureBlock

PERSISTENCE = "persistence"  # the rival that every model has to beat
NAIVE = (PERSISTENCE, "seasonal")  # they learn nothing
RIVALS = {
    "seasonal": "the seasonal repeat",
    "AR": "a linear map (AR)",
    "GBT": "boosted trees (GBT)",
}


def told(*sentences: str | bool) -> str:
    """Join the sentences whose condition holds.

    Examples
    --------
    >>> told("Always.", 1 > 2 and "Never.", 1 < 2 and "Sometimes.")
    'Always. Sometimes.'
    """
    return " ".join(str(sentence) for sentence in sentences if sentence)


def joined(words: Sequence[str], most: int = 99, *, word: str = "and") -> str:
    """Join with commas and a final ``word``; say how many there are beyond the first ``most``.

    Examples
    --------
    >>> joined(["a", "b", "c"]), joined(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    shown = list(words[:most])
    if len(words) > most:
        shown.append(f"{len(words) - most} more")
    return f" {word} ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def alike(own: float, other: float) -> bool:
    """Whether two errors differ by less than would be written, 0.1 %."""
    return own == other or (other > 0 and percent(abs(1 - own / other), 1) == percent(0.0, 1))


def compared(own: float, other: float, name: str) -> str:
    """Say how much smaller or larger an error is than that of another method.

    Examples
    --------
    >>> compared(3.0, 4.0, "AR"), compared(1.0, 1.0, "RF"), compared(1.0, 0.0, "RF")
    ('25.0 % less than a linear map (AR)', 'the same as RF', 'more than RF, whose error is 0')
    """
    name = RIVALS.get(name, name)
    if alike(own, other):
        return f"the same as {name}"
    if not other:
        return f"more than {name}, whose error is 0"
    return f"{percent(abs(1 - own / other), 1)} {'less' if own < other else 'more'} than {name}"


def signed(value: float) -> str:
    """Write a correlation: two decimals, a true minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)


def even(figures: list[FigureBlock]) -> list[FigureBlock]:
    """Make figures side by side equally high, and the last of an odd number as wide as two."""
    for left, right in zip(figures[::2], figures[1::2], strict=False):
        height = max(left.figure.layout.height, right.figure.layout.height)
        for one in (left, right):
            one.figure.update_layout(height=height)
    if len(figures) % 2:
        figures[-1] = replace(figures[-1], wide=True)
    return figures


def panel(
    key: str,
    title: str,
    caption: str,
    figure: Any,
    table: pd.DataFrame,
    *,
    alt: str = "",
    **more: Any,
) -> FigureBlock:
    """Return a figure that is described by its title and, for those who cannot see it, ``alt``."""
    text = f"{title}: {alt}" if alt else f"Figure: {title}"
    return FigureBlock(key, title, caption, text, figure, table, **more)


def listed(table: pd.DataFrame, name: str, value: str, digits: int = 3) -> str:
    """List the first rows of a table in words.

    Examples
    --------
    >>> listed(pd.DataFrame({"method": ["AR", "RF"], "rmse": [1.25, 2.0]}), "method", "rmse")
    'AR 1.25; RF 2.00'
    """
    rows = zip(table[name], table[value].astype(float), strict=True)
    return "; ".join(f"{key} {number(size, digits)}" for key, size in [*rows][:12])


def heat_alt(table: pd.DataFrame) -> str:
    """Describe a heat map for those who do not see it."""
    values = table.to_numpy(dtype=np.float64)
    row, column = divmod(int(np.nanargmax(values)), values.shape[1])
    name, lags = table.columns[column], pd.api.types.is_integer_dtype(table.columns)
    where = f"lag {name}".replace("-", MINUS) if lags else name
    return (
        f"{table.shape[0]} by {table.shape[1]}; largest at {table.index[row]}, {where}: "
        f"{number(float(values[row, column]))}."
    )
