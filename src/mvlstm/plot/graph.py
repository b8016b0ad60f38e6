"""Who drives whom: links between columns as a matrix and as a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.plot._marks import add_marks, heat_map, named_rows
from mvlstm.plot.theme import Theme, ThemeName, get_theme, label, new_figure, styles
from mvlstm.types import FloatArray

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from mvlstm.results import Graph

MOST_ARROWS = 80  # of a network; the strongest are drawn
NAME = 16  # letters of a column's name
NARROW_NAME = 9
THICK = (1.2, 6.0)  # widths of the weakest and the strongest arrow
NODE = 13  # size of a column's mark
RANGE = 1.35  # of both axes; the columns lie on a circle of radius 1
WIDE_RANGE = 2.1  # from left to right, so that names fit


def link_matrix(graph: Graph, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the strength of every link, a row per target; dots mark the important ones."""
    look = get_theme(theme)
    table = graph.matrix()[::-1]
    called = graph.matrix("verdict")[::-1].to_numpy() == "important"
    sources = [str(name) for name in table.columns]
    strengths = table.clip(lower=0.0)
    most = float(np.nanmax(strengths.to_numpy(), initial=0.0)) or 1.0
    figure = new_figure(
        look,
        height=max(260, 130 + 26 * len(table)),
        x="from",
        y="to",
        xaxis=named_rows(sources, NAME, tickangle=-45),
        yaxis=named_rows([str(name) for name in table.index], NAME),
    )
    names = np.array([[label(name) for name in sources]] * len(table), dtype=object)
    drawn: dict[str, Any] = heat_map(
        strengths.set_axis(range(len(sources)), axis=1),
        [str(name) for name in table.index],
        look,
        title="strength",
        hover=" from %{text}: %{z:.3f}",
        most=most,
    )
    figure.add_trace({**drawn, "text": names})
    rows, columns = np.nonzero(called)
    marker = {"color": look.alarm, "size": 7, "line": {"color": look.paper, "width": 1}}
    add_marks(figure, columns, rows, "important", marker=marker, hoverinfo="skip")
    figure.data[-1].hovertemplate = None
    return figure


def network(graph: Graph, *, theme: ThemeName = "light", narrow: bool = False) -> go.Figure:
    """Draw the important links as arrows between columns on a circle, wider if stronger.

    ``narrow`` leaves less room for names.
    """
    look, found = get_theme(theme), graph.important.head(MOST_ARROWS)
    names = list(graph.variables)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    x, y = np.cos(angle), np.sin(angle)
    reach = RANGE if narrow else WIDE_RANGE
    hidden: dict[str, Any] = {"visible": False, "fixedrange": True}
    figure = new_figure(
        look,
        height=380 if narrow else 480,
        xaxis={**hidden, "range": [-reach, reach]},
        yaxis={**hidden, "range": [-RANGE, RANGE]},
    )
    _arrows(figure, found, dict(zip(names, zip(x, y, strict=True), strict=True)), look, names)
    _nodes(figure, graph, x, y, look, NARROW_NAME if narrow else NAME)
    if not len(found):
        figure.add_annotation(
            text="no link is important", x=0, y=0, showarrow=False, font={"color": look.muted}
        )
    return figure


# ------------------------------------------------------------------------------------- inner parts


def _arrows(
    figure: go.Figure,
    found: pd.DataFrame,
    places: dict[str, tuple[float, float]],
    look: Theme,
    names: list[str],
) -> None:
    """Draw an arrow for each link, and a point near its head that tells the numbers."""
    colours = styles(names, "", look)
    strengths = found["strength"].to_numpy(dtype=np.float64)
    share = strengths / (strengths.max(initial=0.0) or 1.0)
    points: list[tuple[float, float]] = []
    texts = []
    for (_, link), size in zip(found.iterrows(), share, strict=True):
        (x0, y0), (x1, y1) = places[link["from"]], places[link["to"]]
        colour = colours[link["from"]].colour
        figure.add_annotation(
            x=x1,
            y=y1,
            ax=x0,
            ay=y0,
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            text="",
            showarrow=True,
            arrowhead=2,
            arrowsize=0.9 if size > 0.3 else 1.4,
            arrowwidth=THICK[0] + (THICK[1] - THICK[0]) * max(float(size), 0.0) ** 0.5,
            arrowcolor=colour,
            opacity=0.75,
            standoff=NODE,
            startstandoff=NODE,
        )
        points.append((x0 + 0.65 * (x1 - x0), y0 + 0.65 * (y1 - y0)))
        texts.append(
            f"{label(link['from'])} to {label(link['to'])}: strength {link['strength']:.3f}, "
            f"lag {link['lag']}"
        )
    if points:
        at = np.array(points)
        marker = {"size": 16, "opacity": 0.0}
        add_marks(figure, at[:, 0], at[:, 1], "%{text}", text=texts, marker=marker, name="links")


def _nodes(
    figure: go.Figure, graph: Graph, x: FloatArray, y: FloatArray, look: Theme, length: int
) -> None:
    """Draw the columns and their names, which stand outside of the circle."""
    names = list(graph.variables)
    colours = [styles(names, "", look)[name].colour for name in names]
    found = graph.important
    texts = [
        f"{label(name)}: {(found['to'] == name).sum()} in, {(found['from'] == name).sum()} out"
        for name in names
    ]
    marker = {"size": NODE, "color": colours, "line": {"color": look.paper, "width": 1.5}}
    add_marks(figure, x, y, "%{text}", text=texts, marker=marker, name="columns")
    for name, left, up in zip(names, x, y, strict=True):
        beside = abs(left) > 0.3
        figure.add_annotation(
            text=label(name, length),
            x=left,
            y=up,
            showarrow=False,
            xanchor=("left" if left > 0 else "right") if beside else "center",
            yanchor="middle" if beside else ("bottom" if up > 0 else "top"),
            xshift=(NODE if left > 0 else -NODE) if beside else 0,
            yshift=0 if beside else (NODE if up > 0 else -NODE),
            font={"size": 12, "color": look.ink},
        )
