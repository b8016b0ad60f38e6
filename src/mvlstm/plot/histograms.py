"""Histograms of attention that were counted elsewhere, a panel a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot.theme import PANEL_TITLE, ThemeName, get_theme, label, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLUMNS = {"variable", "attention", "low", "high", "count"}


def histograms(counts: pd.DataFrame, *, columns: int = 3, theme: ThemeName = "light") -> go.Figure:
    """Draw counted histograms, a panel a variable, kinds of attention on top of each other.

    Parameters
    ----------
    counts : DataFrame
        A row a bin: ``variable``, ``attention`` (its kind, such as "prior"), ``low``, ``high``,
        ``count``.
    columns : int
        Panels side by side.
    theme : {"light", "dark"}
        The look.
    """
    missing = COLUMNS - set(counts.columns)
    if missing:
        raise DataError(f"The counts have no column {sorted(missing)}; see `histograms`.")
    look = get_theme(theme)
    names = list(dict.fromkeys(counts["variable"]))
    kinds = list(dict.fromkeys(counts["attention"]))
    colours = dict(zip(kinds, (look.muted, look.forecast, look.alarm), strict=False))
    rows = -(-len(names) // columns)
    figure = new_figure(look, height=80 + 140 * rows, barmode="overlay", bargap=0.05, legend=True)
    width, gap = 1.0 / columns, 0.06 / columns
    for place, name in enumerate(names):
        row, column = divmod(place, columns)
        axis = "" if place == 0 else str(place + 1)
        top, left = 1.0 - row / rows, column * width
        area = [top - 1.0 / rows + 0.26 / rows, top - 0.16 / rows]
        figure.update_layout(
            {
                f"xaxis{axis}": {
                    "domain": [left + gap, left + width - gap],
                    "anchor": f"y{axis}",
                    "range": [float(counts["low"].min()), float(counts["high"].max())],
                    "nticks": 4,
                },
                f"yaxis{axis}": {
                    "domain": area,
                    "anchor": f"x{axis}",
                    "showticklabels": False,
                    "showgrid": False,
                },
            }
        )
        for kind in kinds:
            panel = counts[(counts["variable"] == name) & (counts["attention"] == kind)]
            share = panel["count"].to_numpy(dtype=np.float64)
            figure.add_bar(
                x=((panel["low"] + panel["high"]) / 2).to_numpy(),
                y=share / max(share.sum(), 1.0),
                width=(panel["high"] - panel["low"]).to_numpy() * 0.95,
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                name=str(kind),
                legendgroup=str(kind),
                showlegend=place == 0,
                marker={"color": colours.get(kind, look.ink)},
                opacity=0.65,
                hovertemplate=f"{kind}: %{{y:.1%}} near %{{x:.2f}}<extra></extra>",
            )
        figure.add_annotation(
            x=left + gap,
            y=top - 0.15 / rows,
            xref="paper",
            yref="paper",
            text=label(str(name), PANEL_TITLE),
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font={"size": 12, "color": look.ink},
        )
    return figure
