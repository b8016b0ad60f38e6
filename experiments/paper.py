"""The numbers printed in the paper, to stand next to ours."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

PAPER_SETS = {"synthetic": "Synthetic", "energy": "Energy", "plant": "Plant", "pm25": "PM2.5"}
OTHER_ROWS = (
    "Columns 'paper' repeat the printed numbers. They come from other rows and a filter on what is "
    "forecast (protocol `authors`), so they are no yardstick here."
)
SAME_ROWS = "Columns 'paper' repeat the printed numbers; the rows are those of the authors."
SYNTHETIC = (
    "The paper's synthetic data are not published; ours follow another recipe, so that its "
    "numbers are no yardstick there."
)


@lru_cache(maxsize=1)
def paper_tables() -> dict[str, Any]:
    """Return the numbers printed in the paper."""
    text = Path(__file__).with_name("paper_tables.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def paper_score(label: str, dataset: str, window: int, metric: str) -> tuple[float, float] | None:
    """Return mean and standard error printed in the paper, if it has such a cell."""
    try:
        cell = paper_tables()[str(window)][metric][label][PAPER_SETS[dataset]]
    except KeyError:
        return None
    return float(cell["mean"]), float(cell["stderr"])


def paper_notes(protocol: str, names: Collection[str]) -> list[str]:
    """Say what the printed numbers of these data sets can be compared with."""
    notes = []
    if set(names) - {"synthetic"}:
        notes.append(SAME_ROWS if protocol == "authors" else OTHER_ROWS)
    if "synthetic" in names:
        notes.append(SYNTHETIC)
    return notes
