"""One forecast taken apart: from the typical forecast to this one, variable by variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._tables import at_step, own_past, variable_order
from mvlstm.plot.theme import ThemeName, get_theme, label, new_figure, styles
from mvlstm.results import Explanation, PointExplanation

if TYPE_CHECKING:
    import plotly.graph_objects as go

START, END, REST = "typical forecast", "this forecast", "all others"
LONGEST = 22


def contribution_at(
    explanation: Explanation, origin: Any = None, *, step: int = 1
) -> PointExplanation:
    """Return one forecast taken apart.

    Parameters
    ----------
    explanation : Explanation
        With contributions.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    """
    if origin is None and explanation.contribution is not None:
        origin = explanation.contribution.index.get_level_values(0)[-1]
    return explanation.at(origin, step)


def contribution_sums(explanation: Explanation) -> pd.Series[float]:
    """Return what the contributions of each (origin, step) add up to, background included."""
    table = explanation.contribution
    if table is None:
        raise DataError("This explanation has no contributions.")
    several = table.index.nlevels > 1
    steps = [int(s) for s in table.index.get_level_values("step")] if several else [1] * len(table)
    origins = table.index.get_level_values(0)
    keys = pd.MultiIndex.from_arrays([origins, np.array(steps)], names=["origin", "step"])
    start = np.array([explanation.background[s - 1] for s in steps])
    return pd.Series(table.to_numpy(dtype=np.float64).sum(axis=1) + start, index=keys)


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
    point = contribution_at(explanation, origin, step=step)
    base = point.background
    names = [str(n) for n in point.by_variable["variable"]]
    values = point.by_variable["contribution"].to_list()
    if len(names) > most + 1:
        names, values = [*names[:most], REST], [*values[:most], sum(values[most:])]
    ends = base + np.cumsum(values)
    starts = np.r_[base, ends[:-1]]
    bars = pd.DataFrame({"name": names, "value": values, "start": starts, "end": ends})
    first = pd.DataFrame([{"name": START, "value": base, "start": 0.0, "end": base}])
    end = float(ends[-1])
    last = pd.DataFrame([{"name": END, "value": end, "start": 0.0, "end": end}])
    return pd.concat([first, bars, last], ignore_index=True)


def lag_table(
    explanation: Explanation, origin: Any = None, *, step: int = 1, mean: bool = False
) -> pd.DataFrame:
    """Return contributions as variable x lag, in the order of the data.

    Parameters
    ----------
    explanation : Explanation
        With contributions.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    mean : bool
        Mean size over all forecasts explained, in place of one forecast.
    """
    point = contribution_at(explanation, origin, step=step)
    table = point.table.pivot(index="variable", columns="lag", values="contribution")
    if mean:
        assert explanation.contribution is not None
        sizes = at_step(explanation.contribution, step).abs().mean().rename("size").reset_index()
        table = sizes.pivot(index="variable", columns="lag", values="size")
    return table.loc[list(variable_order(explanation))]


def contribution_lags(
    explanation: Explanation,
    origin: Any = None,
    *,
    step: int = 1,
    mean: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw contributions as a heat map, variable by lag: of one forecast, or their mean size.

    Parameters
    ----------
    explanation : Explanation
        With contributions.
    origin : time, optional
        Last time known to the forecast; the latest one explained by default.
    step : int
        Steps ahead.
    mean : bool
        Mean size over all forecasts explained, in place of one forecast.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    table = lag_table(explanation, origin, step=step, mean=mean)[::-1]
    values = table.to_numpy(dtype=np.float64)
    shown = [own_past(str(n), explanation.target) for n in table.index]
    reach = float(np.abs(values).max(initial=0.0)) or 1.0
    scale = look.sequential if mean else look.diverging
    figure = new_figure(look, height=120 + 26 * len(table), x="lag (1 is the last time known)")
    figure.add_heatmap(
        z=values,
        x=np.asarray(table.columns),
        y=np.arange(len(table)),
        zmin=0.0 if mean else -reach,
        zmax=reach,
        colorscale=[list(stop) for stop in scale],
        colorbar={"thickness": 10, "outlinewidth": 0, "tickfont": {"color": look.muted}},
        xgap=1,
        ygap=1,
        customdata=np.repeat(np.array([label(n) for n in shown])[:, None], values.shape[1], axis=1),
        hovertemplate="%{customdata}, lag %{x}: %{z:.4g}<extra></extra>",
    )
    figure.update_xaxes(autorange="reversed", showgrid=False)
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(shown))),
        ticktext=[label(n, LONGEST) for n in shown],
        showgrid=False,
    )
    return figure


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
