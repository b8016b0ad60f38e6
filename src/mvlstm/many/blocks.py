"""The series of a dataset divided into blocks, which are worked on one by one.

A block is always the same series, whatever the budget and wherever it is worked on: so is what is
found for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from mvlstm.errors import DataError
from mvlstm.many.dataset import Dataset, Span

SERIES = 100  # of a block: the intervals of a series follow the outcomes of its block
ROWS = 200_000  # of a block, unless one series has more


@dataclass(frozen=True)
class Block:
    """Series that are worked on together, or a part that cannot be read."""

    name: str
    spans: tuple[Span, ...]
    series: int
    state: str  # of its files: another where they have been changed
    failure: tuple[str, str] | None = None  # part and reason


def divide(dataset: Dataset, wanted: Sequence[str], most: float) -> Iterator[Block]:
    """Divide the series, part by part; one that cannot be read is a block by itself."""
    gathered: list[tuple[int, Span, str]] = []
    for part, one in enumerate(dataset.parts):
        state = one.state()
        try:
            dataset.check(part, wanted, most)
            index = dataset.index(part)
        except DataError as error:
            yield Block(_slug(one.name, 0), (), 0, state, (one.name, str(error)))
            continue
        if dataset.alone(part):
            gathered.append((part, index.span(0, 1), state))
            if len(gathered) == SERIES:
                yield _together(dataset, gathered)
                gathered = []
            continue
        edges = _edges(index.rows)
        for k, (low, high) in enumerate(pairwise(edges)):
            yield Block(_slug(one.name, k), (index.span(low, high),), high - low, state)
    if gathered:
        yield _together(dataset, gathered)


def _together(dataset: Dataset, gathered: Sequence[tuple[int, Span, str]]) -> Block:
    name = _slug(dataset.parts[gathered[0][0]].name, 0)
    state = _digest(" ".join(state for _, _, state in gathered), 8)
    return Block(name, tuple(span for _, span, _ in gathered), len(gathered), state)


def _edges(rows: Any) -> list[int]:
    """Return where blocks of at most `SERIES` series and `ROWS` rows begin and end."""
    edges, size = [0], 0
    for k, count in enumerate(rows.tolist()):
        if k > edges[-1] and (k - edges[-1] == SERIES or size + count > ROWS):
            edges.append(k)
            size = 0
        size += count
    return [*edges, len(rows)] if len(rows) else edges


def _slug(name: str, k: int) -> str:
    plain = re.sub(r"[^A-Za-z0-9=.-]+", "_", name.removesuffix(".parquet"))[:80]
    return f"{plain}-{_digest(name, 3)}-{k:05d}"


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
