"""Protocols: how rows become training, validation and test windows; read from data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal


@dataclass(frozen=True)
class Ranges:
    """Row ranges of one data set.

    Parameters
    ----------
    rows : pair of int
        End of the training rows, and of the test rows after them.
    labels : pair of float, optional
        Windows are kept if what they forecast lies in this range, bounds included.
    windows : dict
        Window length: how many training and test windows must come out.
    """

    rows: tuple[int, int]
    labels: tuple[float, float] | None = None
    windows: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Protocol:
    """A way to divide and scale a table; the entries of ``protocols.toml``.

    Parameters
    ----------
    name, words : str
    test, valid : float
        Shares of all rows, where there are no row ranges.
    valid_of_train : float
        Share of the training rows that choose, where there are row ranges.
    scale : {"column", "step"}
        Inputs standardised by variable, or by step of the window and variable.
    ranges : dict
        Data set: its row ranges. Empty for a protocol of shares, which takes any data set.
    """

    name: str
    words: str = ""
    test: float = 0.2
    valid: float = 0.1
    valid_of_train: float = 0.1
    scale: Literal["column", "step"] = "column"
    ranges: Mapping[str, Ranges] = field(default_factory=dict)

    def covers(self, dataset: str) -> bool:
        """Say whether the protocol is defined for a data set."""
        return not self.ranges or dataset in self.ranges


def _read(text: str) -> dict[str, Protocol]:
    found = {}
    for name, table in tomllib.loads(text).items():
        entries = dict(table)
        ranges = {
            dataset: Ranges(
                rows=(one["rows"][0], one["rows"][1]),
                labels=tuple(one["labels"]) if "labels" in one else None,
                windows={int(T): (n[0], n[1]) for T, n in one.get("windows", {}).items()},
            )
            for dataset, one in entries.pop("datasets", {}).items()
        }
        found[name] = Protocol(name=name, ranges=ranges, **entries)
    return found


PROTOCOLS = _read((resources.files("mvlstm.bench") / "protocols.toml").read_text("utf-8"))
