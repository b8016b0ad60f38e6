"""Can the numbers be trusted: calibration, residuals, leakage, stability of the ranking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._marks import MOST_LAGS, add_bars, add_line, add_marks, heat_map, named_rows
from mvlstm.plot._tables import (
    check_step,
    one_forecast,
    own_past,
    plain_times,
    scored_rows,
    thin,
    variable_order,
    wall_times,
)
from mvlstm.plot.theme import UNIT, ThemeName, get_theme, label, new_figure, shorten
from mvlstm.results import Explanation, Forecast
from mvlstm.results.coverage import rolling_coverage

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEVELS = np.round(np.arange(0.05, 1.0, 0.05), 2)
STABILITY = {
    "error_increase": "importance, between members",
    "bootstrap": "importance, between stretches of time",
    "posterior": "posterior attention, between members",
}


def calibration_table(forecast: Forecast, *, part: str | None = None) -> pd.DataFrame:
    """Return how often each central interval held the value: ``level``, ``observed``, ``n``."""
    pit = _pit(forecast, part)
    distance = np.abs(2.0 * pit - 1.0)
    observed = [float(np.mean(distance <= level)) for level in LEVELS]
    return pd.DataFrame({"level": LEVELS, "observed": observed, "n": len(pit)})


def calibration(
    forecast: Forecast, *, part: str | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the reliability of the intervals: promised against observed coverage."""
    look = get_theme(theme)
    table = calibration_table(forecast, part=part)
    figure = new_figure(look, height=320, x="promised coverage", y="observed coverage", legend=True)
    dots = {"color": look.muted, "width": 1, "dash": "dot"}
    ends = [0, 1]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="perfect", line=dots, hoverinfo="skip")
    style: dict[str, Any] = {"line": {"color": look.forecast, "width": 2}, "marker": {"size": 6}}
    style |= {"mode": "lines+markers", "name": "this model"}
    hover = "%{x:.0%} interval held %{y:.1%}"
    add_marks(figure, table["level"], table["observed"], hover, **style)
    figure.update_xaxes(range=ends, tickformat=".0%")
    figure.update_yaxes(range=ends, tickformat=".0%")
    return figure


def coverage_over_time_table(
    forecast: Forecast, *, level: float = 0.9, part: str | None = None
) -> pd.DataFrame:
    """Return the share of recent values held: time, coverage, low, high, state."""
    chosen = scored_rows(forecast, part)
    actual = np.where(chosen, forecast.actual, np.nan)
    return rolling_coverage(replace(forecast, actual=actual), level)


def coverage_over_time(
    forecast: Forecast, *, level: float = 0.9, part: str | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the share of recent values that the intervals held, with the band chance explains."""
    look = get_theme(theme)
    table = coverage_over_time_table(forecast, level=level, part=part)
    figure = new_figure(look, height=320, y=f"coverage of the {100 * level:g} % interval")
    times = wall_times(table["time"].to_numpy())
    band: dict[str, Any] = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    band["line"] = {"width": 0, "color": look.muted}
    figure.add_scatter(x=times, y=table["low"], **band)
    figure.add_scatter(x=times, y=table["high"], fill="tonexty", fillcolor=look.wide_band, **band)
    style = {"mode": "lines", "line": {"width": 2, "color": look.forecast}, "showlegend": False}
    add_marks(figure, times, table["coverage"], "%{x}: %{y:.1%}", **style)
    add_line(figure, level, look.muted)
    figure.update_yaxes(tickformat=".0%")
    plain_times(figure, times)
    return figure


def pit_table(
    forecast: Forecast, *, part: str | None = None, bins: int = 20, periods: int = 1
) -> pd.DataFrame:
    """Return the histogram of the PIT: low, high, density (1 everywhere if calibrated).

    With several ``periods``, into which times are cut, ``start`` and ``end`` of each come first.
    """
    pit, times = _pit(forecast, part), _pit_times(forecast, part)
    edges = np.linspace(0.0, 1.0, bins + 1)
    order, tables = np.argsort(times, kind="stable"), []
    for rows in np.array_split(order, periods):
        density, _ = np.histogram(pit[rows], edges, density=True)
        table = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "density": density})
        if periods > 1:
            table.insert(0, "start", times[rows[0]])
            table.insert(1, "end", times[rows[-1]])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def pit_histogram(
    forecast: Forecast, *, part: str | None = None, periods: int = 1, theme: ThemeName = "light"
) -> go.Figure:
    """Draw where the values fell in their predictive distributions; flat if calibrated.

    With several ``periods`` there is a line for each, the later the darker, on top of the whole.
    """
    look = get_theme(theme)
    table = pit_table(forecast, part=part)
    several = periods > 1
    title = "place in the predictive distribution"
    figure = new_figure(look, height=320, x=title, y="density", bargap=0.06, legend=several)
    middle = (table["low"] + table["high"]) / 2
    colour = look.wide_band if several else look.forecast
    add_bars(figure, middle, table["density"], "%{x:.3f}: %{y:.2f}", colour)
    add_line(figure, 1.0, look.muted)
    if several:
        each = pit_table(forecast, part=part, bins=10, periods=periods)
        for place, (start, rows) in enumerate(each.groupby("start", sort=True)):
            name, share = f"from {_day(start)}", (place + 1) / periods
            x, y = np.append(rows["low"], 1.0), np.append(rows["density"], rows["density"].iloc[-1])
            line = {"color": look.forecast, "shape": "hv", "width": 0.8 + 1.6 * share}
            style = {"mode": "lines", "line": line, "opacity": 0.35 + 0.65 * share, "name": name}
            add_marks(figure, x, y, f"{name}: %{{y:.2f}}", **style)
    return figure


def error_by_step(
    by_step: pd.DataFrame, *, score: str = "rmse", theme: ThemeName = "light"
) -> go.Figure:
    """Draw the error at each step ahead next to those of naive methods.

    ``by_step`` is what `mvlstm.results.Evaluation` calls so; ``score`` is ``"rmse"`` or
    ``"rmsse"``.
    """
    look = get_theme(theme)
    figure = new_figure(look, height=320, x="steps ahead", y=score.upper(), legend=True)
    figure.update_yaxes(rangemode="tozero")
    if len(by_step) <= MOST_LAGS:
        figure.update_xaxes(dtick=1)
    methods = {"": ("this model", "solid"), "persistence_": ("persistence", "dot")}
    for method, (words, dash) in {**methods, "seasonal_": ("last cycle", "dash")}.items():
        name, own = f"{method}{score}", not method
        if name not in by_step:
            continue
        line = {"color": look.forecast if own else look.muted, "dash": dash, "width": 1.4 + own}
        style = {"mode": "lines", "name": words, "line": line}
        add_marks(
            figure, by_step["step"], by_step[name], f"{words}, step %{{x}}: %{{y:.4g}}", **style
        )
    return figure


def residuals_table(
    forecast: Forecast, *, step: int = 1, part: str | None = None, limit: int = 2_000
) -> pd.DataFrame:
    """Return about ``limit`` residuals to draw: time, forecast, residual (value minus forecast)."""
    times, mean, residual = _residuals(forecast, step, part)
    chosen = thin(residual, limit)
    return pd.DataFrame(
        {"time": times[chosen], "forecast": mean[chosen], "residual": residual[chosen]}
    )


def residuals(
    forecast: Forecast, *, step: int = 1, part: str | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the residuals, value minus forecast, over time."""
    look = get_theme(theme)
    table = residuals_table(forecast, step=step, part=part)
    figure = new_figure(
        look, height=320, y=f"{shorten(forecast.target, UNIT)}: value minus forecast"
    )
    style = {"marker": {"color": look.forecast, "size": 3.5, "opacity": 0.6}, "showlegend": False}
    add_marks(figure, table["time"], table["residual"], "%{x}: %{y:.4g}", **style)
    add_line(figure, 0.0, look.muted)
    plain_times(figure, table["time"].to_numpy())
    return figure


def autocorrelation_table(
    forecast: Forecast, *, step: int = 1, part: str | None = None, lags: int = 48
) -> pd.DataFrame:
    """Return the residuals' autocorrelation: lag, autocorrelation, bound (95 % of white noise)."""
    _, _, residual = _residuals(forecast, step, part)
    n = len(residual)
    lags = max(0, min(lags, n // 2))
    centred = residual - residual.mean()
    total = float(centred @ centred) or 1.0
    values = [float(centred[k:] @ centred[:-k]) / total for k in range(1, lags + 1)]
    return pd.DataFrame(
        {"lag": np.arange(1, lags + 1), "autocorrelation": values, "bound": 1.96 / np.sqrt(n)}
    )


def residual_autocorrelation(
    forecast: Forecast, *, step: int = 1, part: str | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the residuals' autocorrelation; bars outside the band: something is left to learn."""
    look = get_theme(theme)
    table = autocorrelation_table(forecast, step=step, part=part)
    figure = new_figure(look, height=320, x="lag", y="autocorrelation of residuals", bargap=0.4)
    bound = float(table["bound"].iloc[0]) if len(table) else 0.0
    band = {"fillcolor": look.wide_band, "line": {"width": 0}, "layer": "below"}
    figure.add_shape(type="rect", xref="paper", x0=0, x1=1, y0=-bound, y1=bound, **band)
    values = table["autocorrelation"]
    add_bars(figure, table["lag"], values, "lag %{x}: %{y:.3f}", look.forecast)
    largest = float(values.abs().max()) if len(table) else 0.0
    reach = max(1.15 * largest, 2 * bound, 0.1)
    figure.update_yaxes(range=[-reach, reach])
    return figure


def leakage(explanation: Explanation, *, theme: ThemeName = "light") -> go.Figure:
    """Draw which variables each expert reacts to; on the diagonal: its own."""
    look = get_theme(theme)
    if explanation.leakage is None:
        raise DataError(
            "This explanation has no leakage; its model does not have one expert per variable."
        )
    names = list(variable_order(explanation))
    table = explanation.leakage.loc[names[::-1], names]
    size = len(names)
    shown = [own_past(name, explanation.target) for name in names]
    figure = new_figure(
        look,
        height=150 + 30 * size,
        x="reacts to",
        y="expert of",
        xaxis=named_rows(names, 14),
        yaxis=named_rows(names[::-1], 14),
    )
    heat = heat_map(
        table, shown[::-1], look, title="share of sensitivity", hover=": %{z:.3f}", most=1.0
    )
    pairs = [[f"{label(a)} reacts to {label(b)}" for b in shown] for a in shown[::-1]]
    figure.add_trace({**heat, "customdata": np.array(pairs, dtype=object)})
    return figure


def stability_table(explanation: Explanation) -> pd.DataFrame:
    """Return the agreement of rankings: ranking, kendall_tau, top_overlap."""
    found = explanation.stability
    rows = [
        [text, *(found.get(f"{name}_{score}") for score in ("kendall_tau", "top_overlap"))]
        for name, text in STABILITY.items()
        if f"{name}_kendall_tau" in found
    ]
    table = pd.DataFrame(rows, columns=["ranking", "kendall_tau", "top_overlap"])
    return table.astype({"kendall_tau": float, "top_overlap": float})


def stability(explanation: Explanation, *, theme: ThemeName = "light") -> go.Figure:
    """Draw how far rankings of the variables agree; 1 is the same order."""
    look = get_theme(theme)
    table = stability_table(explanation)[::-1]
    place = np.arange(len(table))
    figure = new_figure(look, height=120 + 42 * len(table), x="agreement", legend=True)
    kinds = (
        ("kendall_tau", "Kendall's tau", "circle", look.forecast),
        ("top_overlap", "top overlap", "diamond", look.ink),
    )
    for column, text, symbol, colour in kinds:
        marker = {"symbol": symbol, "size": 11, "color": colour}
        add_marks(figure, table[column], place, f"{text} %{{x:.2f}}", name=text, marker=marker)
    lowest = float(table["kendall_tau"].fillna(0.0).to_numpy().min(initial=0.0))
    figure.update_xaxes(range=[lowest - 0.05, 1.05])
    wrapped = [label(text).replace(", ", ",<br>") for text in table["ranking"]]
    figure.update_yaxes(
        tickmode="array", tickvals=place.tolist(), ticktext=wrapped, range=[-0.6, len(table) - 0.4]
    )
    return figure


# ------------------------------------------------------------------------------------- inner parts


def _pit(forecast: Forecast, part: str | None) -> np.ndarray[Any, np.dtype[np.float64]]:
    chosen = scored_rows(forecast, part)
    rows = np.asarray(chosen.any(axis=1))
    values = forecast.take(rows).pit().to_numpy().reshape(-1, forecast.horizon)
    return np.asarray(values[chosen[rows]])


def _pit_times(forecast: Forecast, part: str | None) -> Any:
    return wall_times(forecast.time[scored_rows(forecast, part)])


def _day(time: Any) -> str:
    return f"{time:%Y-%m-%d}" if isinstance(time, pd.Timestamp) else str(time)


def _residuals(forecast: Forecast, step: int, part: str | None) -> tuple[Any, Any, Any]:
    check_step(step, forecast.horizon)
    rows = scored_rows(one_forecast(forecast), part)[:, step - 1]
    mean = forecast.members[:, rows, step - 1].mean(axis=0)
    return (wall_times(forecast.time[rows, step - 1]), mean, forecast.actual[rows, step - 1] - mean)
