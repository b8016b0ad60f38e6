"""What the forecasts rest on: importance, and the paper's attention over variables and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._marks import (
    add_histogram,
    add_text,
    heat_map,
    lag_axis,
    named_rows,
    numbers,
    small_panels,
    whiskers,
)
from mvlstm.plot._tables import (
    at_step,
    one_series,
    own_past,
    plain_times,
    short_verdict,
    variable_order,
    wall_times,
)
from mvlstm.plot.theme import Style, Theme, ThemeName, get_theme, label, new_figure, styles
from mvlstm.results import Explanation

if TYPE_CHECKING:
    import plotly.graph_objects as go

BINS = 24
COUNTED = {"variable", "attention", "low", "high", "count"}
BEHIND = 0.7  # opacity of bars with marks and whiskers on them
VERDICTS_WIDE = 92  # pixels that the verdicts take at the right


def variable_importance(
    explanation: Explanation, *, most: int = 25, theme: ThemeName = "light"
) -> go.Figure:
    """Draw importance as bars with 90 % intervals, and the verdict in words."""
    look = get_theme(theme)
    table = explanation.importance.head(most)[::-1]
    place = np.arange(len(table))
    figure = new_figure(look, height=80 + 34 * len(table), x="share of the rise in error")
    _add_bars(figure, explanation, table, ("importance", "low", "high"), ".3f", look)
    figure.data[0].marker.opacity = BEHIND
    font = {"size": 11, "color": look.muted}
    for at, verdict in zip(place, table["verdict"], strict=True):
        words = label(short_verdict(str(verdict)))
        add_text(figure, words, 1, at, font, yref="y", yanchor="auto", xshift=6)
    ends = np.nan_to_num(np.stack(numbers(table, "high", "importance")))
    top = float(ends.max(initial=0.0)) or 1.0
    ticks = np.round(np.arange(0.0, 1.01, 0.2 if top > 0.5 else 0.1 if top > 0.2 else 0.05), 2)
    figure.update_xaxes(range=[0, top * 1.06], tickvals=ticks.tolist())
    figure.update_layout(margin_r=VERDICTS_WIDE)
    return figure


def error_increase(
    explanation: Explanation, *, own: bool = False, most: int = 25, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the rise in squared error without each variable, with its 90 % interval.

    With ``own`` also for the target's own past, which often dwarfs the others.
    """
    look = get_theme(theme)
    table = explanation.importance.sort_values("error_increase", ascending=False, kind="stable")
    if not own:
        table = table[table["variable"] != explanation.target]
    table = table.head(most)[::-1]
    figure = new_figure(look, height=110 + 30 * len(table), x="rise in squared error")
    columns = ("error_increase", "error_increase_low", "error_increase_high")
    _add_bars(figure, explanation, table, columns, ".4g", look)
    return figure


def attention_table(explanation: Explanation, *, bins: int = BINS) -> pd.DataFrame:
    """Return histograms of prior and posterior attention: variable, low, high, prior, posterior."""
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
    """Draw histograms of prior and posterior attention, one panel per variable, as in the paper."""
    look = get_theme(theme)
    table = attention_table(explanation)
    names = list(dict.fromkeys(table["variable"]))
    style = styles(names, explanation.target, look)
    height = 60 + 150 * -(-len(names) // columns)
    figure = new_figure(look, height=height, barmode="overlay", bargap=0.05)
    titles = [own_past(name, explanation.target) for name in names]
    panels = small_panels(figure, titles, columns, (0.0, float(table["high"].max())), look.ink)
    for name, axis in zip(names, panels, strict=True):
        bins = table[table["variable"] == name]
        kinds = (("prior", look.muted, 0.35), ("posterior", style[name].colour, 0.85))
        for kind, colour, opacity in kinds:
            words = {"name": f"{kind} attention", "showlegend": False}
            add_histogram(figure, axis, bins, bins[kind], kind, colour, opacity, **words)
    return figure


def histograms(counts: pd.DataFrame, *, columns: int = 3, theme: ThemeName = "light") -> go.Figure:
    """Draw counted histograms, one panel per variable, kinds of attention on top of each other.

    ``counts`` has one row per bin: ``variable``, ``attention`` (its kind, such as "prior"),
    ``low``, ``high``, ``count``; there are ``columns`` panels side by side.
    """
    missing = COUNTED - set(counts.columns)
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


def temporal_importance(explanation: Explanation, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the mean temporal attention as a heat map, variable by lag."""
    look = get_theme(theme)
    if explanation.temporal is None:
        raise DataError("This explanation has no temporal attention; its model has none.")
    names = list(variable_order(explanation))[::-1]
    table = explanation.temporal.loc[names]
    values = table.to_numpy(dtype=np.float64)
    shown = [own_past(name, explanation.target) for name in names]
    figure = new_figure(
        look,
        height=120 + 30 * len(names),
        x="lag (1 is the last time known)",
        xaxis=lag_axis(table.columns),
        yaxis=named_rows(shown),
    )
    most = max(float(np.nanmax(values)), 2.0 / values.shape[1])
    hover = ", lag %{x}: %{z:.4f}"
    figure.add_trace(heat_map(table, shown, look, title="weight", hover=hover, most=most))
    return figure


def attention_over_time_table(
    explanation: Explanation, *, step: int = 1, stretches: int = 24
) -> pd.DataFrame:
    """Return mean attention in about this many stretches of the times measured.

    The columns are ``start`` and ``end`` of each stretch, then the variables. No stretch reaches
    over a gap between the times.
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
    """Draw the posterior attention of the variables over time, or the prior if that is all.

    Variables with less attention than the first ``most`` are added up.
    """
    look = get_theme(theme)
    table = attention_over_time_table(explanation, step=step, stretches=stretches)
    names = [str(c) for c in table.columns[2:]]
    style = styles(names, explanation.target, look)
    kind = "prior" if explanation.posterior is None else "posterior"
    periods = [f"{a} to {b}" for a, b in zip(table["start"], table["end"], strict=True)]
    middle, width = _stretches(explanation, table, step)
    figure = new_figure(look, height=360, y=f"{kind} attention", barmode="stack", legend=True)
    alone = _most_attended(table[names], most)
    bars = [
        (own_past(name, explanation.target), table[name].to_numpy(), style[name]) for name in alone
    ]
    if rest := [name for name in names if name not in alone]:
        values = table[rest].sum(axis=1).to_numpy()
        bars.append((f"{len(rest)} others", values, Style(look.grid)))
    for name, values, drawn in bars:
        figure.add_bar(
            x=middle,
            y=values,
            width=width,
            name=label(name, 24),
            marker={"color": drawn.colour, "pattern": {"shape": drawn.hatching}},
            customdata=np.array(periods),
            hovertemplate="%{customdata}: %{y:.3f}",
        )
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(range=[0, 1])
    plain_times(figure, middle)
    return figure


def importance_by_step(
    explanation: Explanation, *, most: int = 25, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the importance of each variable at each of several steps ahead as a heat map."""
    look = get_theme(theme)
    table = importance_by_step_table(explanation).set_index("variable").head(most)[::-1]
    table.columns = table.columns.astype(np.int64)
    shown = [own_past(str(name), explanation.target) for name in table.index]
    figure = new_figure(
        look,
        height=120 + 30 * len(table),
        x="steps ahead",
        xaxis={"showgrid": False, "tick0": 1, "dtick": -(-table.shape[1] // 24)},
        yaxis=named_rows(shown),
    )
    hover, most_share = ", step %{x}: %{z:.3f}", float(np.nanmax(table.to_numpy()))
    title = "share of the rise in error"
    figure.add_trace(heat_map(table, shown, look, title=title, hover=hover, most=most_share or 1.0))
    return figure


def importance_by_step_table(explanation: Explanation) -> pd.DataFrame:
    """Return the importance by variable (rows, in their order) and step ahead (columns)."""
    found = explanation.by_step
    if found is None or found["importance"].isna().all():
        raise DataError("This explanation is of one step ahead; fit with horizon=2 or more.")
    wide = found.pivot(index="variable", columns="step", values="importance")
    wide.columns.name = None
    return wide.loc[list(explanation.variables)].fillna(0.0).reset_index()


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


def _add_bars(
    figure: go.Figure,
    explanation: Explanation,
    table: pd.DataFrame,
    columns: tuple[str, str, str],
    written: str,
    look: Theme,
) -> None:
    """Draw one bar with whiskers per variable, and name the variables."""
    names = [str(v) for v in table["variable"]]
    style = styles(variable_order(explanation), explanation.target, look)
    shown = [own_past(name, explanation.target) for name in names]
    middle, low, high = numbers(table, *columns)
    texts = [
        f"{label(name)}<br>{columns[0].replace('_', ' ')} {m:{written}} "
        f"({lo:{written}} to {hi:{written}})<br>{verdict}"
        for name, m, lo, hi, verdict in zip(shown, middle, low, high, table["verdict"], strict=True)
    ]
    figure.add_bar(
        x=middle,
        y=np.arange(len(names)),
        orientation="h",
        marker={
            "color": [style[name].colour for name in names],
            "pattern": {"shape": [style[name].hatching for name in names]},
        },
        error_x=whiskers(middle, low, high, look.ink),
        hovertext=texts,
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(named_rows(shown, tickfont={"size": 12}))


def _stretches(explanation: Explanation, table: pd.DataFrame, step: int) -> tuple[Any, Any]:
    """Return the middle of each stretch on the axis of time, and how long it is there."""
    attended, _ = _attention(explanation)
    every = wall_times(at_step(attended, step).index).astype(np.int64)  # seconds, or rows
    one = int(np.median(np.diff(every))) if len(every) > 1 else 1
    first, last = (wall_times(table[name].to_numpy()) for name in ("start", "end"))
    long = (last.astype(np.int64) - first.astype(np.int64) + one) * 0.96
    dated = np.issubdtype(first.dtype, np.datetime64)
    middle = first + ((last - first) / 2).astype(first.dtype if not dated else "timedelta64[s]")
    return middle, long * (1000 if dated else 1)  # Plotly counts milliseconds
