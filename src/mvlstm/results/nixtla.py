"""Forecasts in Nixtla's long format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mvlstm.errors import ParameterError, is_number

if TYPE_CHECKING:
    from mvlstm.results.forecast import Forecast

KEYS = ["unique_id", "ds", "cutoff"]


def nixtla_frame(forecast: Forecast, name: str, levels: Sequence[float]) -> pd.DataFrame:
    """Return ``unique_id, ds, cutoff, y``, then the forecast and its intervals.

    A target that is one series alone has its own name as ``unique_id``. The columns are those of
    ``cross_validation``: ``AR``, ``AR-lo-90``, ``AR-hi-90``.
    """
    if np.ndim(levels) != 1 or not all(is_number(one) and 1 <= one < 100 for one in levels):
        raise ParameterError(
            f"level={levels!r} must be a list of percentages from 1 to below 100. Write level=[90] "
            "for the 90 % interval."
        )
    rows = forecast.to_pandas()
    table = pd.DataFrame(
        {
            "unique_id": rows.get("series", forecast.target),
            "ds": rows["time"],
            "cutoff": rows["origin"],
            "y": forecast.actual.reshape(-1),
            name: rows["mean"],
        }
    )
    for level in sorted(levels):
        low, high = forecast.interval(level / 100)
        table[f"{name}-lo-{level:g}"], table[f"{name}-hi-{level:g}"] = (
            low.to_numpy(),
            high.to_numpy(),
        )
    return table
