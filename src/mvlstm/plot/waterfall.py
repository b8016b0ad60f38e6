"""One forecast taken apart: from the typical forecast to this one, variable by variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._tables import at_step, own_past, variable_order
from mvlstm.plot.theme import ThemeName, get_theme, label, new_figure, styles
from mvlstm.results import Explanation

if TYPE_CHECKING:
    import plotly.graph_objects as go

START, END, REST = "typical forecast", "this forecast", "all others"
LONGEST = 22


def contribution_at(
    explanation: Explanation, origin: Any = None, *, step: int = 1
) -> tuple[pd.Series[float], float]:
    """Return contributions by (variable, lag) to one forecast, and what they are added to.

    Parameters
    ----------
    explanation : Explanation
        With contributions.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    """
    table = explanation.contribution
    if table is None:
        raise DataError(
            "This explanation has no contributions; ask for them with "
            "explain(table, contributions=20)."
        )
    table = at_step(table, step)
    if origin is None:
        origin = table.index[-1]
    if origin not in table.index:
        raise DataError(
            f"No contributions are known for the origin {origin}; those from {table.index[0]} to "
            f"{table.index[-1]} are {len(table)} chosen ones, see explanation.contribution.index."
        )
    row: pd.Series[float] = table.loc[origin]
    return row, background(explanation, step)


def background(explanation: Explanation, step: int = 1) -> float:
    """Return the mean forecast over the background windows, ``step`` ahead."""
    value = getattr(explanation, "background", None)
    if value is None:
        return 0.0
    if isinstance(value, pd.Series):
        return float(value.loc[step] if step in value.index else value.iloc[step - 1])
    return float(value)


def waterfall_table(
    explanation: Explanation, origin: Any = None, *, step: int = 1, most: int = 10
) -> pd.DataFrame:
    """Return the bars of `contributions`: name, value, start, end; they join end to start.

    Parameters
    ----------
    explanation : Explanation
        With contributions.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    most : int
        Variables with a bar of their own; the smaller ones are added up.
    """
    row, base = contribution_at(explanation, origin, step=step)
    totals = row.groupby(level=0).sum()
    totals = totals.loc[totals.abs().sort_values(ascending=False).index]
    names, values = [str(n) for n in totals.index], totals.to_list()
    if len(names) > most + 1:
        names, values = [*names[:most], REST], [*values[:most], sum(values[most:])]
    ends = base + np.cumsum(values)
    starts = np.r_[base, ends[:-1]]
    bars = pd.DataFrame({"name": names, "value": values, "start": starts, "end": ends})
    first = pd.DataFrame([{"name": START, "value": base, "start": 0.0, "end": base}])
    end = float(ends[-1])
    last = pd.DataFrame([{"name": END, "value": end, "start": 0.0, "end": end}])
    return pd.concat([first, bars, last], ignore_index=True)


def contributions(
    explanation: Explanation,
    origin: Any = None,
    *,
    step: int = 1,
    most: int = 10,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw how one forecast came about: a bar a variable from the typical forecast to this one.

    Parameters
    ----------
    explanation : Explanation
        With contributions, from ``model.explain(table, contributions=20)``.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    most : int
        Variables with a bar of their own; the smaller ones are added up.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    bars = waterfall_table(explanation, origin, step=step, most=most)[::-1]
    style = styles(variable_order(explanation), explanation.target, look)
    place = np.arange(len(bars))
    names = [str(n) for n in bars["name"]]
    inner = [0 < at < len(bars) - 1 for at in place]
    colours = [
        style[n].colour if n in style and own else (look.muted if own else look.forecast)
        for n, own in zip(names, inner, strict=True)
    ]
    shown = [
        own_past(n, explanation.target) if own else n for n, own in zip(names, inner, strict=True)
    ]
    value = bars["value"].to_numpy(dtype=np.float64)
    texts = [f"{v:+.3g}" if own else f"{v:.4g}" for v, own in zip(value, inner, strict=True)]
    start, end = (bars[c].to_numpy(dtype=np.float64) for c in ("start", "end"))
    levels = np.r_[start[1:-1], end[1:-1], end[[0, -1]]]
    low, high = float(levels.min()), float(levels.max())
    margin = 0.18 * ((high - low) or abs(high) or 1.0)
    floor = low - margin
    base = np.where(inner, start, floor)
    figure = new_figure(look, height=90 + 32 * len(bars), x=explanation.target)
    figure.add_bar(
        x=end - base,
        y=place,
        base=base,
        orientation="h",
        marker={"color": colours},
        text=texts,
        textposition="outside",
        cliponaxis=False,
        customdata=np.array([label(n) for n in shown]),
        hovertemplate="%{customdata}: %{text}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(range=[floor, high + 1.4 * margin])
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(shown))),
        ticktext=[label(n, LONGEST) for n in shown],
        showgrid=False,
    )
    return figure
