"""Forecasts against what happened, what comes next, and how far the members differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm._words import decimals, significant
from mvlstm.plot._marks import add_text, numbers, whiskers
from mvlstm.plot._tables import check_step, one_forecast, plain_times, step_rows, thin, wall_times
from mvlstm.plot.theme import UNIT, Theme, ThemeName, get_theme, new_figure, plain_level, shorten
from mvlstm.results import Forecast

if TYPE_CHECKING:
    import plotly.graph_objects as go

PATHS = 20  # drawn as a fan
PART_WORDS = {"train": "trained on", "validation": "validation", "new": "unseen"}
EXPLAINED = "explained: choose one"  # name of the trace of points whose contributions are known


def forecast_table(
    forecast: Forecast,
    *,
    step: int = 1,
    limit: int = 2_000,
    recent: int = 1_000,
    keep: Sequence[Any] = (),
) -> pd.DataFrame:
    """Return the rows that `forecast` draws: columns as in `Forecast.to_frame`.

    About ``limit`` rows, of which the latest ``recent`` and the times of ``keep`` are never left
    out. Values after the last forecast of this step, known from the later steps of the last origin,
    follow without a forecast.
    """
    rows = step_rows(forecast, step)
    values = rows["actual"].where(rows["actual"].notna(), rows["mean"]).to_numpy(dtype=np.float64)
    chosen = thin(values, limit, recent=recent)
    if len(keep):
        wanted = np.flatnonzero(np.isin(wall_times(rows["time"].to_numpy()), wall_times([*keep])))
        chosen = np.union1d(chosen, wanted)
    return pd.concat([rows.iloc[chosen], _values_after(forecast, step)], ignore_index=True)


def forecast(
    forecast: Forecast,
    *,
    step: int = 1,
    future: Forecast | None = None,
    limit: int = 2_000,
    recent: int = 1_000,
    explained: Sequence[Any] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw forecasts with their 90 % interval and the actual values, the parts marked.

    ``future``, from ``model.forecast``, comes after the last row; it is called "last" where its
    actual values are known. About ``limit`` rows are drawn, the latest ``recent`` without thinning;
    the times ``explained``, whose contributions are known, are marked.
    """
    look = get_theme(theme)
    rows = forecast_table(forecast, step=step, limit=limit, recent=recent, keep=explained)
    figure = new_figure(look, height=400, y=forecast.target, hovermode="x unified", legend=True)
    times = wall_times(rows["time"].to_numpy())
    ahead = (rows["step"] == step).to_numpy()  # the others have no forecast
    known, when = rows[ahead], times[ahead]
    written = _written(known)
    _add_interval(figure, when, known, look, written)
    happened = {"color": look.ink, "width": 1.4}
    _add_line(figure, times, rows["actual"], "what happened", happened, written)
    drawn = {"color": look.forecast, "width": 1.8}
    _add_line(figure, when, known["mean"], "forecast", drawn, written)
    if len(explained):
        _add_explained(figure, known, explained, look)
    if future is not None:
        _add_future(figure, future, look)
    _shade_parts(figure, rows, look)
    plain_times(figure, times)
    ends = rows[["q05", "q95", "actual"]].to_numpy(dtype=np.float64)
    if np.isfinite(ends).any():
        figure.update_yaxes(**plain_level(float(np.nanmin(ends)), float(np.nanmax(ends))))
    return figure


def future_table(forecast: Forecast) -> pd.DataFrame:
    """Return mean, median and the 50 % and 90 % intervals of every step ahead.

    The column ``series`` comes first when there are several.
    """
    table = forecast.to_pandas()
    for name, q in (("q25", 0.25), ("q75", 0.75)):
        table[name] = forecast.quantile(q).to_numpy()
    columns = ["time", "step", "mean", "median", "q05", "q25", "q75", "q95"]
    return table[columns if forecast.series is None else ["series", *columns]]


def members_table(forecast: Forecast, *, step: int = 1, last: int = 120) -> pd.DataFrame:
    """Return the members' point forecasts of the last rows: time, mean, one column per member."""
    check_step(step, forecast.horizon)
    values = one_forecast(forecast).members[:, -last:, step - 1]  # (K, rows)
    columns: dict[str, Any] = {
        "time": wall_times(forecast.time[-last:, step - 1]),
        "mean": values.mean(axis=0),
    }
    columns.update({f"member {k}": row for k, row in enumerate(values)})
    return pd.DataFrame(columns)


def members(
    forecast: Forecast, *, step: int = 1, last: int = 120, theme: ThemeName = "light"
) -> go.Figure:
    """Draw how far each member's forecast is from their mean, for the last rows."""
    look = get_theme(theme)
    rows = members_table(forecast, step=step, last=last)
    title = f"{shorten(forecast.target, UNIT)}: member minus mean"
    figure = new_figure(look, height=320, y=title, hovermode="x unified")
    for name in rows.columns[2:]:
        line = {"color": look.forecast, "width": 1.1}
        away = rows[name] - rows["mean"]
        _add_line(figure, rows["time"].to_numpy(), away, str(name), line, "+.3g", opacity=0.7)
    plain_times(figure, rows["time"].to_numpy())
    return figure


# ------------------------------------------------------------------------------------- inner parts


def _values_after(forecast: Forecast, step: int) -> pd.DataFrame:
    """Return what happened after the last forecast of ``step``, in rows that have no forecast."""
    table = forecast.take(slice(-1, None)).to_pandas()
    if "actual" not in table:
        return table.iloc[:0]
    later = table[(table["step"] > step) & table["actual"].notna()]
    return later.assign(**dict.fromkeys(("mean", "median", "q05", "q95"), np.nan))


def _written(rows: pd.DataFrame) -> str:
    """Return Plotly's format of values, with digits that show the width of the intervals."""
    largest = float(np.nanmax(rows[["q05", "q95"]].abs().to_numpy(), initial=0.0))
    width = float((rows["q95"] - rows["q05"]).median())
    if not 1e-4 < largest < 1e12:
        return f".{significant(largest, 4, width)}g"
    return f",.{decimals(largest, 4, width)}f"


def _add_interval(
    figure: go.Figure, times: Any, rows: pd.DataFrame, look: Theme, written: str, **more: Any
) -> None:
    line = {"width": 0, "color": look.forecast}
    _add_line(figure, times, rows["q95"], "95 %", line, written, showlegend=False)
    lower = {
        "fill": "tonexty",
        "fillcolor": look.band,
        "hovertemplate": f"from %{{y:{written}}}",
        **more,
    }
    _add_line(figure, times, rows["q05"], "90 % interval", line, written, **lower)


def _add_line(
    figure: go.Figure, times: Any, values: Any, name: str, line: Any, written: str, **more: Any
) -> None:
    """Draw a line; the legend that follows the pointer names it with its value."""
    style = {"mode": "lines", "line": line, "hovertemplate": f"%{{y:{written}}}", **more}
    figure.add_scatter(x=times, y=np.asarray(values), name=name, **style)


def _add_explained(
    figure: go.Figure, rows: pd.DataFrame, explained: Sequence[Any], look: Theme
) -> None:
    times = wall_times(rows["time"].to_numpy())
    marked = np.isin(times, wall_times([*explained]))
    marker = {"color": look.paper, "size": 6, "line": {"color": look.forecast, "width": 1.5}}
    more = {"mode": "markers", "marker": marker, "hovertemplate": "click for its contributions"}
    _add_line(figure, times[marked], rows["mean"][marked], EXPLAINED, None, "", **more)


def _add_future(figure: go.Figure, future: Forecast, look: Theme) -> None:
    """Draw one step ahead as a point with a whisker, several as a line in a band, with paths."""
    table = future_table(one_forecast(future))
    mean, low, high = numbers(table, "mean", "q05", "q95")
    times, written = wall_times(table["time"].to_numpy()), _written(table)
    known = np.isfinite(future.actual).any()
    if known:
        actual, line = future.actual.reshape(-1), {"color": look.ink, "width": 1.4}
        _add_line(figure, times, actual, "what happened", line, written, showlegend=False)
    name = "last" if known else "next"
    line = {"color": look.forecast, "width": 2, "dash": "dot"}
    if len(table) == 1 or len(future) > 1:  # single steps, of one origin or of several
        more: dict[str, Any] = {"mode": "markers+lines"}
        more["marker"] = {"color": look.forecast, "size": 10, "symbol": "diamond"}
        more["error_y"] = whiskers(mean, low, high, look.forecast, thickness=2, width=6)
        _add_line(figure, times, mean, name, line, written, **more)
        return
    _add_interval(figure, times, table, look, written, showlegend=False)
    _add_paths(figure, times, future, look)
    _add_line(figure, times, mean, name, {**line, "width": 2.5, "dash": "solid"}, written)


def _add_paths(figure: go.Figure, times: Any, future: Forecast, look: Theme) -> None:
    """Draw a fan of sample paths, as one trace with gaps between them."""
    paths = future.draw(PATHS)[:, 0]  # (n, H)
    values = np.column_stack([paths, np.full(len(paths), np.nan)]).reshape(-1)
    gaps = np.append(times, times[-1:])
    line = {"color": look.forecast, "width": 0.7}
    more = {"hoverinfo": "skip", "hovertemplate": None, "opacity": 0.45}
    _add_line(figure, np.tile(gaps, len(paths)), values, "possible paths", line, "", **more)


def _shade_parts(figure: go.Figure, rows: pd.DataFrame, look: Theme) -> None:
    """Shade the stretches the model has seen, and name each stretch at its top."""
    part = rows["part"].astype(str).to_numpy()
    times = wall_times(rows["time"].to_numpy())
    if not len(part):
        return
    starts = np.flatnonzero(np.r_[True, part[1:] != part[:-1]])
    stops = np.r_[starts[1:], len(part) - 1]
    shades = {"train": look.shade[0], "validation": look.shade[1]}
    for start, stop in zip(starts, stops, strict=True):
        name = part[start]
        if name in shades:
            style = {"fillcolor": shades[name], "line": {"width": 0}, "layer": "below"}
            figure.add_vrect(x0=times[start], x1=times[stop], **style)
        if len(starts) > 1:
            font = {"size": 11, "color": look.muted}
            add_text(figure, PART_WORDS[name], times[start], 1, font, xref="x", yanchor="top")
