"""Histograms of attention that were counted elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._marks import add_histogram, small_panels
from mvlstm.plot.theme import ThemeName, get_theme, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLUMNS = {"variable", "attention", "low", "high", "count"}


def histograms(counts: pd.DataFrame, *, columns: int = 3, theme: ThemeName = "light") -> go.Figure:
    """Draw counted histograms, one panel per variable, kinds of attention on top of each other.

    ``counts`` has one row per bin: ``variable``, ``attention`` (its kind, such as "prior"),
    ``low``, ``high``, ``count``; there are ``columns`` panels side by side.
    """
    missing = COLUMNS - set(counts.columns)
    if missing:
        raise DataError(f"The counts have no column {sorted(missing)}; see `histograms`.")
    look = get_theme(theme)
    names = [str(name) for name in dict.fromkeys(counts["variable"])]
    kinds = list(dict.fromkeys(counts["attention"]))
    colours = dict(zip(kinds, (look.muted, look.forecast, look.alarm), strict=False))
    height = 80 + 140 * -(-len(names) // columns)
    figure = new_figure(look, height=height, barmode="overlay", bargap=0.05, legend=True)
    reach = (float(counts["low"].min()), float(counts["high"].max()))
    panels = small_panels(figure, names, columns, reach, look.ink)
    for name, axis in zip(names, panels, strict=True):
        for kind in kinds:
            bins = counts[(counts["variable"] == name) & (counts["attention"] == kind)]
            count = bins["count"].to_numpy(dtype=np.float64)
            share, colour = count / max(count.sum(), 1.0), colours.get(kind, look.ink)
            words = {"name": str(kind), "showlegend": name == names[0]}
            add_histogram(figure, axis, bins, share, str(kind), colour, 0.65, **words)
    return figure
