"""One forecast at a time: what the page shows when a point is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm._words import number
from mvlstm.plot.theme import LIGHT
from mvlstm.plot.waterfall import join_smaller, lags_spec, waterfall_spec
from mvlstm.report.data import ReportData, records
from mvlstm.report.encode import are_days, compact, packed, time_text
from mvlstm.report.words import joined

MOST_POINTS = 240
MOST_NUMBERS = 60_000  # of all heat maps by lag together
SHADES = 4  # digits of a heat map's numbers
WORTH_NAMING = 0.01  # of the largest contribution
LEVELS = ("background", "forecast", "low", "high", "actual")


def explained_rows(data: ReportData) -> pd.DataFrame:
    """Return the forecasts whose contributions are known and that the page can show.

    These are one step ahead for known rows, and every step after the last row, marked in the column
    ``latest``; the other columns are those of `Forecast.to_frame`.
    """
    table = data.explanation.contribution
    if table is None or not len(table):
        return pd.DataFrame()
    steps = table.index.get_level_values("step") if table.index.nlevels > 1 else [1] * len(table)
    origins = table.index.get_level_values(0)
    keys = set(zip(origins, steps, strict=True))
    past = data.forecast.to_pandas()
    past = past[past["step"] == 1].assign(latest=False)
    ahead = data.future.to_pandas().assign(latest=True)
    rows = pd.concat([past[~past["origin"].isin(ahead["origin"])], ahead], ignore_index=True)
    pairs = zip(rows["origin"], rows["step"], strict=True)
    rows = rows[[pair in keys for pair in pairs]]
    return rows.tail(MOST_POINTS).reset_index(drop=True)


def explorer(data: ReportData, rows: pd.DataFrame) -> dict[str, Any] | None:
    """Return what the page needs to show each of ``rows``: words, numbers and two figures."""
    if not len(rows):
        return None
    explanation = data.explanation
    assert explanation.contribution is not None
    with_lags = len(rows) * explanation.contribution.shape[1] <= MOST_NUMBERS
    style = plot.styles(plot.variable_order(explanation), data.target, LIGHT)
    days = are_days(data.forecast.origin)
    points = []
    for row in records(rows):
        origin, step = row["origin"], int(row["step"])
        bars = plot.waterfall_table(explanation, origin, step=step, most=10**6)
        lags = plot.lag_table(explanation, origin, step=step)
        inner = bars.iloc[1:-1]
        strongest = lags.abs().idxmax(axis=1)
        actual = float(row.get("actual", np.nan))
        width = float(row["q95"]) - float(row["q05"])
        point: dict[str, Any] = {
            "time": time_text(row["time"], days=days),
            "origin": time_text(origin, days=days),
            "step": step,
            "next": bool(row["latest"]) and data.is_ahead,
            "last": bool(row["latest"]) and not data.is_ahead,
            "forecast": float(bars["value"].iloc[-1]),
            "background": float(bars["value"].iloc[0]),
            "low": float(row["q05"]),
            "high": float(row["q95"]),
            "actual": actual if np.isfinite(actual) else None,
            "names": [str(n) for n in inner["name"]],
            "values": inner["value"].to_list(),
            "lags": [int(strongest[n]) for n in inner["name"]],
            "text": _sentence(bars, data.target, width),
        }
        known = [name for name in LEVELS if point[name] is not None]
        point["shown"] = {name: number(point[name], 4, width) for name in known}
        point = compact(point, 8)
        point["waterfall"] = compact(waterfall_spec(join_smaller(bars), data.target, style, LIGHT))
        if with_lags:
            heat = compact(lags_spec(lags, data.target, LIGHT, signed=True), SHADES)
            point["heat"] = packed(heat)
        points.append(point)
    return {"target": data.target, "points": points}


def _sentence(bars: pd.DataFrame, target: str, width: float) -> str:
    """Say in words what contributes to a forecast, in digits that show the interval's width."""
    base, end = float(bars["value"].iloc[0]), float(bars["value"].iloc[-1])
    inner = bars.iloc[1:-1]
    size = inner["value"].abs()
    inner = inner[size >= WORTH_NAMING * size.max()]
    parts = [
        f"{'its own past' if one['name'] == target else one['name']} "
        f"{'adds' if one['value'] >= 0 else 'subtracts'} {number(abs(float(one['value'])))}"
        for one in records(inner.head(3))
    ]
    return (
        f"The typical forecast is {number(base, 4, width)}. To this, {joined(parts)}; with all "
        f"variables the forecast is {number(end, 4, width)}."
    )
