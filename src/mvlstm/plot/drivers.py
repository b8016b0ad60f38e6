"""What the forecasts rest on: importance, and the paper's attention over variables and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._tables import (
    at_step,
    one_series,
    own_past,
    short_verdict,
    variable_order,
    wall_times,
)
from mvlstm.plot.theme import (
    PANEL_TITLE,
    Style,
    ThemeName,
    colour_bar,
    get_theme,
    label,
    new_figure,
    styles,
)
from mvlstm.results import Explanation

if TYPE_CHECKING:
    import plotly.graph_objects as go

BINS = 24
BEHIND = 0.7  # opacity of bars with marks and whiskers on them
LONGEST = 22  # letters of a name along an axis; the whole name is shown on hovering
VERDICTS_WIDE = 92  # pixels that the verdicts take at the right


def variable_importance(
    explanation: Explanation, *, most: int = 25, theme: ThemeName = "light"
) -> go.Figure:
    """Draw importance as bars with 90 % intervals, attention as marks, the verdict in words.

    Parameters
    ----------
    explanation : Explanation
    most : int
        Variables to draw, the most important ones.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    table = explanation.importance.head(most)[::-1]
    names = [str(v) for v in table["variable"]]
    style = styles(variable_order(explanation), explanation.target, look)
    place = np.arange(len(names))
    figure = new_figure(
        look, height=110 + 34 * len(names), x="share of the rise in error", legend=True
    )
    share = table["importance"].to_numpy(dtype=np.float64)
    low, high = (table[c].to_numpy(dtype=np.float64) for c in ("low", "high"))
    shown = [own_past(name, explanation.target) for name in names]
    figure.add_bar(
        x=share,
        y=place,
        orientation="h",
        name="importance, 90 % interval",
        marker={
            "color": [style[n].colour for n in names],
            "opacity": BEHIND,
            "pattern": {"shape": [style[n].hatching for n in names]},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": high - share,
            "arrayminus": share - low,
            "color": look.ink,
            "thickness": 1.4,
            "width": 4,
        },
        customdata=_columns([label(n) for n in shown], low, high, table["verdict"].astype(str)),
        hovertemplate=(
            "%{customdata[0]}<br>importance %{x:.3f} (%{customdata[1]:.3f} to "
            "%{customdata[2]:.3f})<br>%{customdata[3]}<extra></extra>"
        ),
        showlegend=False,
    )
    marks = (("prior", "circle-open", "prior attention"), ("posterior", "circle", "posterior"))
    for column, symbol, text in marks:
        values = table[column].to_numpy(dtype=np.float64)
        if np.isfinite(values).any():
            figure.add_scatter(
                x=values,
                y=place,
                mode="markers",
                name=text,
                marker={"symbol": symbol, "size": 9, "color": look.ink, "line": {"width": 1.6}},
                hovertemplate=f"{text} %{{x:.3f}}<extra></extra>",
            )
    ends = np.nanmax(
        np.c_[np.nan_to_num(high), table[["prior", "posterior"]].to_numpy(dtype=np.float64)], axis=1
    )
    for at, verdict in zip(place, table["verdict"], strict=True):
        figure.add_annotation(
            x=1,
            xref="paper",
            y=at,
            text=label(short_verdict(str(verdict))),
            showarrow=False,
            xanchor="left",
            xshift=6,
            font={"size": 11, "color": look.muted},
        )
    top = float(ends.max(initial=0.0)) or 1.0
    ticks = np.round(np.arange(0.0, 1.01, 0.2 if top > 0.5 else 0.1 if top > 0.2 else 0.05), 2)
    figure.update_xaxes(range=[0, top * 1.06], tickvals=ticks.tolist())
    figure.update_layout(margin_r=VERDICTS_WIDE)
    _name_rows(figure, shown)
    return figure


def error_increase(
    explanation: Explanation,
    *,
    own: bool = False,
    most: int = 25,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the rise in squared error when a variable is scrambled, with its 90 % interval.

    Parameters
    ----------
    explanation : Explanation
    own : bool
        Whether to draw the target's own past too, which often dwarfs the others.
    most : int
        Variables to draw, those with the largest rise.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    table = explanation.importance.sort_values("error_increase", ascending=False, kind="stable")
    if not own:
        table = table[table["variable"] != explanation.target]
    table = table.head(most)[::-1]
    names = [str(v) for v in table["variable"]]
    style = styles(variable_order(explanation), explanation.target, look)
    rise, low, high = (
        table[c].to_numpy(dtype=np.float64)
        for c in ("error_increase", "error_increase_low", "error_increase_high")
    )
    figure = new_figure(look, height=110 + 30 * len(names), x="rise in squared error")
    figure.add_bar(
        x=rise,
        y=np.arange(len(names)),
        orientation="h",
        marker={
            "color": [style[n].colour for n in names],
            "pattern": {"shape": [style[n].hatching for n in names]},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": high - rise,
            "arrayminus": rise - low,
            "color": look.ink,
            "thickness": 1.4,
            "width": 4,
        },
        customdata=_columns([label(n) for n in names], low, high, table["verdict"].astype(str)),
        hovertemplate=(
            "%{customdata[0]}<br>%{x:.4g} (%{customdata[1]:.4g} to %{customdata[2]:.4g})"
            "<br>%{customdata[3]}<extra></extra>"
        ),
        showlegend=False,
    )
    _name_rows(figure, [own_past(name, explanation.target) for name in names])
    return figure


def attention_table(explanation: Explanation, *, bins: int = BINS) -> pd.DataFrame:
    """Return histograms of prior and posterior attention: variable, low, high, prior, posterior.

    Parameters
    ----------
    explanation : Explanation
        Of a model with attention.
    bins : int
        Bins between zero and the largest attention.
    """
    prior, posterior = _attention(explanation)
    most = float(max(prior.to_numpy().max(), posterior.to_numpy().max()))
    edges = np.linspace(0.0, min(1.0, most * 1.0001) or 1.0, bins + 1)
    tables = []
    for name in variable_order(explanation):
        before, after = (
            np.histogram(t[name].to_numpy(), edges)[0] / len(t) for t in (prior, posterior)
        )
        columns: dict[str, Any] = {"variable": name, "low": edges[:-1], "high": edges[1:]}
        tables.append(pd.DataFrame({**columns, "prior": before, "posterior": after}))
    return pd.concat(tables, ignore_index=True)


def attention_histograms(
    explanation: Explanation, *, columns: int = 3, theme: ThemeName = "light"
) -> go.Figure:
    """Draw histograms of prior and posterior attention, one panel per variable, as in the paper.

    Parameters
    ----------
    explanation : Explanation
        Of a model with attention.
    columns : int
        Panels side by side.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    table = attention_table(explanation)
    names = list(dict.fromkeys(table["variable"]))
    style = styles(names, explanation.target, look)
    rows = -(-len(names) // columns)
    figure = new_figure(look, height=60 + 150 * rows, barmode="overlay", bargap=0.05)
    width, gap = 1.0 / columns, 0.06 / columns
    for place, name in enumerate(names):
        row, column = divmod(place, columns)
        panel = table[table["variable"] == name]
        middle = ((panel["low"] + panel["high"]) / 2).to_numpy()
        axis = "" if place == 0 else str(place + 1)
        top = 1.0 - row / rows
        left = column * width
        area = [top - 1.0 / rows + 0.26 / rows, top - 0.16 / rows]
        common: dict[str, Any] = {"matches": "x" if place else None, "nticks": 4}
        figure.update_layout(
            {
                f"xaxis{axis}": {"domain": [left + gap, left + width - gap], **common}
                | {"anchor": f"y{axis}", "range": [0, float(table["high"].max())]},
                f"yaxis{axis}": {"domain": area, "anchor": f"x{axis}", "showticklabels": False}
                | {"showgrid": False},
            }
        )
        for kind, colour, opacity in (("prior", look.muted, 0.35), ("posterior", "", 0.85)):
            figure.add_bar(
                x=middle,
                y=panel[kind].to_numpy(),
                width=(panel["high"] - panel["low"]).to_numpy() * 0.95,
                xaxis=f"x{axis}",
                yaxis=f"y{axis}",
                name=f"{kind} attention",
                legendgroup=kind,
                showlegend=False,
                marker={"color": colour or style[name].colour},
                opacity=opacity,
                hovertemplate=f"{kind}: %{{y:.1%}} of the times near %{{x:.2f}}<extra></extra>",
            )
        figure.add_annotation(
            x=left + gap,
            y=top - 0.15 / rows,
            xref="paper",
            yref="paper",
            text=label(own_past(name, explanation.target), PANEL_TITLE),
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font={"size": 12, "color": look.ink},
        )
    return figure


def temporal_importance(explanation: Explanation, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the mean temporal attention as a heat map, variable by lag.

    Parameters
    ----------
    explanation : Explanation
        Of a model with temporal attention.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    if explanation.temporal is None:
        raise DataError("This explanation has no temporal attention; its model has none.")
    names = list(variable_order(explanation))[::-1]
    table = explanation.temporal.loc[names]
    values = table.to_numpy(dtype=np.float64)
    shown = [own_past(n, explanation.target) for n in names]
    figure = new_figure(look, height=120 + 30 * len(names), x="lag (1 is the last time known)")
    figure.add_heatmap(
        z=values,
        x=np.asarray(table.columns),
        y=np.arange(len(names)),
        zmin=0.0,
        zmax=max(float(np.nanmax(values)), 2.0 / values.shape[1]),
        colorscale=[list(stop) for stop in look.sequential],
        colorbar=colour_bar(look, "weight"),
        xgap=1,
        ygap=1,
        customdata=np.repeat(np.array([label(n) for n in shown])[:, None], values.shape[1], axis=1),
        hovertemplate="%{customdata}, lag %{x}: %{z:.4f}<extra></extra>",
    )
    figure.update_xaxes(autorange="reversed", showgrid=False)
    figure.update_yaxes(showgrid=False)
    _name_rows(figure, shown)
    return figure


def attention_over_time_table(
    explanation: Explanation, *, step: int = 1, stretches: int = 24
) -> pd.DataFrame:
    """Return mean attention in stretches of the times measured.

    Parameters
    ----------
    explanation : Explanation
        Of a model with attention.
    step, stretches : int
        Steps ahead; about how many stretches. None reaches over a gap between the times.

    Returns
    -------
    DataFrame
        ``start`` and ``end`` of each stretch, and one column per variable.
    """
    _, table = _attention(one_series(explanation))
    table = at_step(table, step)
    times = wall_times(table.index)
    size = max(1, len(table) // stretches)
    steps = np.diff(times.astype(np.int64))
    gap = np.r_[False, steps > 10 * max(1, int(np.median(steps)))] if len(steps) else [False]
    block = np.cumsum(gap)
    within = np.concatenate([np.arange(n) // size for n in np.bincount(block)])
    stretch = pd.MultiIndex.from_arrays([block, within])
    codes = stretch.factorize()[0]
    averaged = table[list(variable_order(explanation))].groupby(codes).mean()
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    last = np.r_[first[1:] - 1, len(codes) - 1]
    averaged.insert(0, "start", times[first])
    averaged.insert(1, "end", times[last])
    return averaged.reset_index(drop=True)


def attention_over_time(
    explanation: Explanation,
    *,
    step: int = 1,
    stretches: int = 24,
    most: int = 10,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the posterior (or failing that prior) attention of the variables over time.

    Parameters
    ----------
    explanation : Explanation
        Of a model with attention.
    step, stretches : int
        Steps ahead; about how many stretches of time to average over.
    most : int
        Variables drawn by themselves, those with the most attention; the others are added up.
    theme : {"light", "dark"}
        The look.
    """
    look = get_theme(theme)
    table = attention_over_time_table(explanation, step=step, stretches=stretches)
    names = [str(c) for c in table.columns[2:]]
    style = styles(names, explanation.target, look)
    kind = "prior" if explanation.posterior is None else "posterior"
    place = np.arange(len(table))
    periods = [f"{a} to {b}" for a, b in zip(table["start"], table["end"], strict=True)]
    figure = new_figure(
        look, height=360, y=f"{kind} attention", barmode="stack", bargap=0.08, legend=True
    )
    alone = _most_attended(table[names], most)
    bars = [
        (own_past(name, explanation.target), table[name].to_numpy(), style[name]) for name in alone
    ]
    if rest := [name for name in names if name not in alone]:
        values = table[rest].sum(axis=1).to_numpy()
        bars.append((f"{len(rest)} others", values, Style(look.grid)))
    for name, values, drawn in bars:
        figure.add_bar(
            x=place,
            y=values,
            name=label(name, 24),
            marker={"color": drawn.colour, "pattern": {"shape": drawn.hatching}},
            customdata=np.array(periods),
            hovertemplate="%{customdata}: %{y:.3f}",
        )
    shown = np.unique(np.linspace(0, len(table) - 1, 6).astype(np.int64))
    figure.update_xaxes(
        tickvals=shown.tolist(),
        ticktext=_dates(table["start"].iloc[shown]),
        showgrid=False,
    )
    figure.update_yaxes(range=[0, 1])
    return figure


# ------------------------------------------------------------------------------------- inner parts


def _most_attended(table: pd.DataFrame, most: int) -> list[str]:
    """Return the columns with the largest mean, in their order; all where one more would do."""
    if len(table.columns) <= most + 1:
        return [str(name) for name in table]
    chosen = set(table.mean().nlargest(most).index)
    return [str(name) for name in table if name in chosen]


def _attention(explanation: Explanation) -> tuple[pd.DataFrame, pd.DataFrame]:
    if explanation.prior is None:
        raise DataError("This explanation has no attention; its model has none.")
    after = explanation.prior if explanation.posterior is None else explanation.posterior
    return explanation.prior, after


def _columns(*columns: Any) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Put columns of different kinds side by side for Plotly's hover texts."""
    out = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, values in enumerate(columns):
        out[:, place] = list(values)
    return out


def _name_rows(figure: go.Figure, names: list[str]) -> None:
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[label(name, LONGEST) for name in names],
        showgrid=False,
        tickfont={"size": 12},
    )


def _dates(times: pd.Series[Any]) -> list[str]:
    """Write times as dates, with the hour below where a date would stand there twice."""
    if not pd.api.types.is_datetime64_any_dtype(times):
        return [str(t) for t in times]
    days = [f"{t:%Y-%m-%d}" for t in times]
    if len(set(days)) == len(days):
        return days
    return [f"{t:%Y-%m-%d<br>%H:%M}" for t in times]
