"""Phrases and arrangements that several sections and pages use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.report.data import Panel, ReportData
from mvlstm.report.encode import MINUS, number


def all_steps(data: ReportData) -> str:
    """Say that a number is of all steps ahead, where there are several."""
    steps = data.forecast.horizon
    return f", all {steps} steps ahead together" if steps > 1 else ""


def even(panels: list[Panel]) -> list[Panel]:
    """Let the last panel of an odd number take the whole width."""
    if len(panels) % 2:
        panels[-1] = replace(panels[-1], wide=True)
    return panels


def heat_alt(table: pd.DataFrame) -> str:
    """Describe a heat map for those who do not see it."""
    values = table.to_numpy(dtype=np.float64)
    row, column = divmod(int(np.nanargmax(values)), values.shape[1])
    return (
        f"Heat map of {table.shape[0]} by {table.shape[1]}; largest at {table.index[row]}, "
        f"{_heading(table.columns[column])}: {number(float(values[row, column]))}."
    )


def _heading(name: Any) -> str:
    """Write what a column of a heat map is of: a lag, with a true minus, or a name."""
    return f"lag {name}".replace("-", MINUS) if isinstance(name, int | np.integer) else str(name)
