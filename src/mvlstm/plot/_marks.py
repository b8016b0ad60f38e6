"""Marks that several figures draw: whiskers, named rows, heat maps, lines and small panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.plot.theme import PANEL_TITLE, Theme, colour_bar, label
from mvlstm.types import FloatArray

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_LAGS = 12  # ticks of an axis of lags
LONGEST = 22  # letters of a name along an axis; hovering shows the whole name


def numbers(table: pd.DataFrame, *columns: str) -> list[FloatArray]:
    """Return columns of a table as floating-point arrays."""
    return [table[name].to_numpy(dtype=np.float64) for name in columns]


def whiskers(
    middle: FloatArray, low: FloatArray, high: FloatArray, colour: str, **style: Any
) -> dict[str, Any]:
    """Return Plotly's error bars from ``low`` to ``high`` around ``middle``."""
    return {
        "type": "data",
        "symmetric": False,
        "array": high - middle,
        "arrayminus": middle - low,
        "color": colour,
        "thickness": 1.4,
        "width": 4,
        **style,
    }


def add_marks(figure: go.Figure, x: Any, y: Any, hover: str, **style: Any) -> None:
    """Draw points, or lines with a ``mode``; ``hover`` is Plotly's template, without a name."""
    style = {"mode": "markers", "hovertemplate": f"{hover}<extra></extra>", **style}
    figure.add_scatter(x=np.asarray(x), y=np.asarray(y), **style)


def add_bars(figure: go.Figure, x: Any, y: Any, hover: str, colour: str) -> None:
    """Draw upright bars that the legend does not name."""
    hover, marker = f"{hover}<extra></extra>", {"color": colour}
    x, y = np.asarray(x), np.asarray(y)
    figure.add_bar(x=x, y=y, marker=marker, hovertemplate=hover, showlegend=False)


def add_text(figure: go.Figure, text: str, x: Any, y: Any, font: dict[str, Any], **at: Any) -> None:
    """Write a text that begins at a place, in parts of the figure unless ``at`` says otherwise."""
    at = {"xref": "paper", "yref": "paper", "yanchor": "bottom", **at}
    figure.add_annotation(text=text, x=x, y=y, font=font, showarrow=False, xanchor="left", **at)


def named_rows(names: Sequence[str], length: int = LONGEST, **axis: Any) -> dict[str, Any]:
    """Return the settings of an axis that names its rows, the first one at the bottom."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [label(name, length) for name in names],
        "showgrid": False,
        **axis,
    }


def lag_axis(lags: pd.Index[Any]) -> dict[str, Any]:
    """Return the settings of an axis of whole lags, the latest at the right."""
    every = -(-len(lags) // MOST_LAGS)
    return {"autorange": "reversed", "showgrid": False, "tick0": 0, "dtick": every}


def heat_map(
    table: pd.DataFrame,
    shown: Sequence[str],
    look: Theme,
    *,
    title: str,
    hover: str,
    most: float,
    signed: bool = False,
) -> dict[str, Any]:
    """Return a heat map as plain values, the first row at the bottom.

    ``shown`` names the rows and ``hover`` is the template of what follows that name on hovering;
    ``title`` says what the colours mean, the strongest of which is that of ``most``. With
    ``signed``, zero is in the middle of the colours.
    """
    values = table.to_numpy(dtype=np.float64)
    names = np.array([label(name) for name in shown], dtype=object)
    columns = table.columns if pd.api.types.is_integer_dtype(table.columns) else range(len(shown))
    return {
        "type": "heatmap",
        "z": values,
        "x": np.asarray(columns),
        "y": np.arange(len(table)),
        "zmin": -most if signed else 0.0,
        "zmax": most,
        "colorscale": [list(stop) for stop in (look.diverging if signed else look.sequential)],
        "colorbar": colour_bar(look, title),
        "xgap": 1,
        "ygap": 1,
        "customdata": np.repeat(names[:, None], values.shape[1], axis=1),
        "hovertemplate": f"%{{customdata}}{hover}<extra></extra>",
    }


def add_line(figure: go.Figure, level: float, colour: str, *, across: str = "x") -> None:
    """Draw a dotted line at a level of one axis, across the whole of the other."""
    along = "y" if across == "x" else "x"
    ends = {f"{across}ref": "paper", f"{across}0": 0, f"{across}1": 1}
    place = {f"{along}0": level, f"{along}1": level}
    line = {"color": colour, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", **ends, **place, line=line)


def small_panels(
    figure: go.Figure, titles: Sequence[str], columns: int, reach: tuple[float, float], ink: str
) -> Iterator[str]:
    """Lay out small panels, ``columns`` side by side, whose x axes share the range ``reach``.

    Yields the number of each panel's axes; ``ink`` is the colour of the titles.
    """
    rows = -(-len(titles) // columns)
    width, gap = 1.0 / columns, 0.06 / columns
    for place, title in enumerate(titles):
        row, column = divmod(place, columns)
        axis = "" if place == 0 else str(place + 1)
        top, left = 1.0 - row / rows, column * width
        across = {
            "domain": [left + gap, left + width - gap],
            "anchor": f"y{axis}",
            "range": list(reach),
            "nticks": 4,
            "matches": "x" if place else None,
        }
        upward = {
            "domain": [top - 0.74 / rows, top - 0.16 / rows],
            "anchor": f"x{axis}",
            "showticklabels": False,
            "showgrid": False,
        }
        figure.update_layout({f"xaxis{axis}": across, f"yaxis{axis}": upward})
        font = {"size": 12, "color": ink}
        add_text(figure, label(title, PANEL_TITLE), left + gap, top - 0.15 / rows, font)
        yield axis


def add_histogram(
    figure: go.Figure,
    axis: str,
    bins: pd.DataFrame,
    share: Any,
    kind: str,
    colour: str,
    opacity: float,
    **bar: Any,
) -> None:
    """Draw the share of each of the bins, from ``low`` to ``high``, in a small panel."""
    low, high = numbers(bins, "low", "high")
    hover = f"{kind}: %{{y:.1%}} near %{{x:.2f}}<extra></extra>"
    bar |= {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": kind, "opacity": opacity}
    bar |= {"marker": {"color": colour}, "hovertemplate": hover, "width": (high - low) * 0.95}
    figure.add_bar(x=(low + high) / 2, y=np.asarray(share), **bar)
