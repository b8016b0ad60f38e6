"""One forecast taken apart: from the typical forecast to this one, variable by variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm._words import number
from mvlstm.plot._marks import heat_map, lag_axis, named_rows
from mvlstm.plot._tables import at_step, one_series, own_past, variable_order
from mvlstm.plot.theme import (
    Style,
    Theme,
    ThemeName,
    base_layout,
    from_spec,
    get_theme,
    label,
    plain_level,
    shorten,
    styles,
)
from mvlstm.results import Explanation, PointExplanation

if TYPE_CHECKING:
    import plotly.graph_objects as go

START, END, REST = "typical forecast", "this forecast", "all others"
LONGEST_UNIT = 24  # letters of the target's name below half a page


def contribution_at(
    explanation: Explanation, origin: Any = None, *, step: int = 1
) -> PointExplanation:
    """Return one forecast taken apart."""
    one_series(explanation)
    if origin is None and explanation.contribution is not None:
        origin = explanation.contribution.index.get_level_values(0)[-1]
    return explanation.at(origin, step)


def waterfall_table(
    explanation: Explanation, origin: Any = None, *, step: int = 1, most: int = 10
) -> pd.DataFrame:
    """Return the bars of `contributions`: name, value, start, end; they join end to start.

    Variables with smaller contributions than the first ``most`` are added up.
    """
    point = contribution_at(explanation, origin, step=step)
    base = point.background
    names = [str(n) for n in point.by_variable["variable"]]
    values = point.by_variable["contribution"].to_list()
    ends = base + np.cumsum(values)
    starts = np.r_[base, ends[:-1]]
    bars = pd.DataFrame({"name": names, "value": values, "start": starts, "end": ends})
    first = pd.DataFrame([{"name": START, "value": base, "start": 0.0, "end": base}])
    end = float(ends[-1])
    last = pd.DataFrame([{"name": END, "value": end, "start": 0.0, "end": end}])
    return join_smaller(pd.concat([first, bars, last], ignore_index=True), most)


def join_smaller(bars: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """Add up the bars after the ``most`` largest ones, in a `waterfall_table`."""
    if len(bars) <= most + 3:
        return bars
    rest = bars.iloc[most + 1 : -1]
    start, end = float(rest["start"].iloc[0]), float(rest["end"].iloc[-1])
    joined = pd.DataFrame([{"name": REST, "value": end - start, "start": start, "end": end}])
    return pd.concat([bars.iloc[: most + 1], joined, bars.iloc[-1:]], ignore_index=True)


def lag_table(
    explanation: Explanation, origin: Any = None, *, step: int | None = None, mean: bool = False
) -> pd.DataFrame:
    """Return contributions as variable x lag, in the order of the data; NaN for missing lags.

    Of one forecast, or with ``mean`` their mean size over all forecasts explained, of all steps
    ahead unless one is given.
    """
    point = contribution_at(explanation, origin, step=1 if step is None else step)
    table = point.table.pivot(index="variable", columns="lag", values="contribution")
    if mean:
        assert explanation.contribution is not None
        rows = explanation.contribution
        rows = rows if step is None else at_step(rows, step)
        sizes = rows.abs().mean().rename("size").reset_index()
        table = sizes.pivot(index="variable", columns="lag", values="size")
    return table.loc[list(variable_order(explanation))]


def contribution_lags(
    explanation: Explanation,
    origin: Any = None,
    *,
    step: int | None = None,
    mean: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw contributions as a heat map, variable by lag: of one forecast, or their mean size.

    The arguments are those of `lag_table`.
    """
    table = lag_table(explanation, origin, step=step, mean=mean)
    look = get_theme(theme)
    return from_spec(look, lags_spec(table, explanation.target, look, signed=not mean))


def lags_spec(table: pd.DataFrame, target: str, look: Theme, *, signed: bool) -> dict[str, Any]:
    """Return data and layout of `contribution_lags` as plain values.

    With ``signed``, zero is in the middle of the colours.
    """
    table = table[::-1]
    shown = [own_past(str(n), target) for n in table.index]
    most = float(np.nanmax(table.abs().to_numpy(dtype=np.float64))) or 1.0  # NaN: no such lag
    title, hover = "contribution" if signed else "mean size", ", lag %{x}: %{z:.4g}"
    layout = base_layout(
        height=90 + 28 * len(table),
        x="lag (1 is the last time known)",
        xaxis=lag_axis(table.columns),
        yaxis=named_rows(shown),
    )
    heat = heat_map(table, shown, look, title=title, hover=hover, most=most, signed=signed)
    return {"data": [heat], "layout": layout}


def contributions(
    explanation: Explanation,
    origin: Any = None,
    *,
    step: int = 1,
    most: int = 10,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw how one forecast came about: from the typical forecast to this one, bar by bar.

    The contributions come from ``model.explain(table, contributions=20)``; those smaller than the
    first ``most`` are added up.
    """
    look = get_theme(theme)
    bars = waterfall_table(explanation, origin, step=step, most=most)
    style = styles(variable_order(explanation), explanation.target, look)
    return from_spec(look, waterfall_spec(bars, explanation.target, style, look))


def waterfall_spec(
    bars: pd.DataFrame, target: str, style: Mapping[str, Style], look: Theme
) -> dict[str, Any]:
    """Return data and layout of `contributions` for a `waterfall_table`, as plain values."""
    n = len(bars)
    inner = bars.iloc[1:-1]
    names = [str(v) for v in inner["name"]]
    shown = [own_past(v, target) for v in names]
    start, end = (bars[c].to_numpy(dtype=np.float64) for c in ("start", "end"))
    value = inner["value"].to_numpy(dtype=np.float64)
    place = np.arange(n - 2, 0, -1)
    low, high = float(end.min()), float(end.max())
    span = (high - low) or abs(high) or 1.0
    reach = [low - 0.1 * span, high + 0.5 * span]
    long = max(abs(low), abs(high)) > 1e3 * span  # labels of many digits
    texts = [f"{'+' if v >= 0 else ''}{number(v)}" for v in value.tolist()]
    levels = end[[0, -1]]
    finest = float(np.abs(value).max(initial=0.0)) / 10  # a tenth of the largest contribution shows
    forecast = {"color": look.forecast, "line": {"width": 2, "color": look.forecast}}
    steps = {  # the line that joins the bars
        "type": "scatter",
        "x": np.repeat(end[:-1], 2),
        "y": np.repeat(np.arange(n - 1, -1, -1), 2)[1:-1],
        "mode": "lines",
        "line": {"color": look.muted, "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }
    parts = {
        "type": "bar",
        "x": value,
        "y": place,
        "base": start[1:-1],
        "orientation": "h",
        "marker": {
            "color": [style[v].colour if v in style else look.muted for v in names],
            "pattern": {"shape": [style[v].hatching if v in style else "" for v in names]},
        },
        "hovertext": [f"{label(v)}: {text}" for v, text in zip(shown, texts, strict=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    silent = {"type": "scatter", "hoverinfo": "skip"}
    amounts = {  # to the right of each bar, away from the names
        **silent,
        "x": np.maximum(start, end)[1:-1],
        "y": place,
        "mode": "text",
        "text": [f" {text}" for text in texts],
        "textposition": "middle right",
        "cliponaxis": False,
    }
    ends = {
        **silent,
        "x": levels,
        "y": [n - 1, 0],
        "mode": "markers+text",
        "marker": {"symbol": ["diamond-open", "diamond"], "size": 12, **forecast},
        "text": [f"  {number(float(v), 4, finest)}  " for v in levels],
        "textposition": [  # towards the middle, where there is room
            "middle left" if v > (low + high) / 2 else "middle right" for v in levels
        ],
        "cliponaxis": False,
    }
    layout = base_layout(
        height=92 + 32 * n,
        x=shorten(target, LONGEST_UNIT),
        xaxis={"range": reach, "nticks": 3 if long else 5, **plain_level(low, high)},
        yaxis=named_rows([END, *shown[::-1], START], range=[-0.6, n + 0.3]),  # below the buttons
    )
    return {"data": [steps, parts, ends, amounts], "layout": layout}
