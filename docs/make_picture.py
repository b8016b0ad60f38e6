"""Draw docs/result.svg, the picture in README, from a real fit on the synthetic set.

Run it with ``python docs/make_picture.py`` after a change that moves the numbers.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

import mvlstm as mv
from mvlstm.demo import DATA_SEED, ROWS, SETTINGS

INK, FAINT, GRID = "#1f2933", "#6b7785", "#e4e8ec"
BLUE, BAND, ORANGE, GREY = "#0072b2", "#cfe3f1", "#d55e00", "#9aa5b1"
SHOWN = 80  # unseen rows in the left panel


def main() -> None:
    data = mv.datasets.load("synthetic", n=ROWS, seed=DATA_SEED)
    model = mv.MVLSTM(**SETTINGS, verbose=0).fit(data.frame, data.target, test=0.2)
    forecast = model.predict(data.frame).to_frame().tail(SHOWN)
    importance = model.explain(data.frame).importance
    parts = [
        _text(28, 30, "Forecast of unseen rows, with 90 % interval", size=15, weight=600),
        *_forecast_panel(forecast, left=60, top=50, width=500, height=290),
        _text(618, 30, "What the forecast rests on", size=15, weight=600),
        *_importance_panel(
            importance, data.truth.drivers, data.target, left=690, top=50, width=170
        ),
    ]
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 410" role="img" '
        'font-family="system-ui, sans-serif">'
        "<title>Forecast and importance on the synthetic set</title>"
        '<rect width="1000" height="410" rx="8" fill="#ffffff"/>' + "".join(parts) + "</svg>\n"
    )
    Path(__file__).with_name("result.svg").write_text(svg, encoding="utf-8")


def _forecast_panel(
    rows: pd.DataFrame, *, left: float, top: float, width: float, height: float
) -> list[str]:
    lowest = float(min(rows["q05"].min(), rows["actual"].min()))
    highest = float(max(rows["q95"].max(), rows["actual"].max()))
    x = left + np.linspace(0, width, len(rows))

    def y(values: pd.Series[float]) -> np.ndarray:
        return top + height * (highest - values.to_numpy()) / (highest - lowest)

    parts = []
    for tick in range(int(np.ceil(lowest / 2)) * 2, int(highest) + 1, 2):
        level = float(y(pd.Series([float(tick)]))[0])
        parts.append(f'<path d="M{left} {level:.1f}h{width}" stroke="{GRID}"/>')
        parts.append(_text(left - 10, level + 4, str(tick), anchor="end", fill=FAINT))
    band = _points(np.r_[x, x[::-1]], np.r_[y(rows["q05"]), y(rows["q95"])[::-1]])
    parts.append(f'<polygon points="{band}" fill="{BAND}"/>')
    parts.append(
        f'<polyline points="{_points(x, y(rows["mean"]))}" fill="none" stroke="{BLUE}" '
        'stroke-width="2"/>'
    )
    parts += [
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.4" fill="{INK}"/>'
        for a, b in zip(x, y(rows["actual"]), strict=True)
    ]
    times = rows["time"].astype(str)
    foot = top + height + 22
    parts.append(_text(left, foot, f"row {times.iloc[0]}", fill=FAINT))
    parts.append(_text(left + width, foot, f"row {times.iloc[-1]}", anchor="end", fill=FAINT))
    key = top + height + 44
    parts.append(f'<path d="M{left} {key - 4}h22" stroke="{BLUE}" stroke-width="2"/>')
    parts.append(_text(left + 28, key, "forecast"))
    parts.append(f'<rect x="{left + 110}" y="{key - 11}" width="22" height="13" fill="{BAND}"/>')
    parts.append(_text(left + 138, key, "90 % interval"))
    parts.append(f'<circle cx="{left + 256}" cy="{key - 4}" r="2.4" fill="{INK}"/>')
    parts.append(_text(left + 266, key, "what happened"))
    return parts


def _importance_panel(
    table: pd.DataFrame,
    drivers: tuple[str, ...],
    target: str,
    *,
    left: float,
    top: float,
    width: float,
) -> list[str]:
    parts = []
    most = float(table["high"].max())
    row_height = 290 / len(table)
    for position, row in enumerate(table.itertuples()):
        middle = top + (position + 0.5) * row_height
        share, low, high = (width * v / most for v in (row.importance, row.low, row.high))
        colour = ORANGE if row.variable in drivers else GREY
        name = f"{row.variable} (own past)" if row.variable == target else str(row.variable)
        parts.append(_text(left - 10, middle + 4, name, anchor="end"))
        parts.append(
            f'<rect x="{left}" y="{middle - 8:.1f}" width="{max(share, 1):.1f}" height="16" '
            f'fill="{colour}"/>'
        )
        parts.append(
            f'<path d="M{left + low:.1f} {middle:.1f}H{left + high:.1f}" stroke="{INK}" '
            'stroke-width="1.5"/>'
        )
        verdict = "important" if row.verdict == "important" else "no evidence"
        label = f"{row.importance:.2f} {verdict}"
        parts.append(_text(left + high + 8, middle + 4, label, fill=FAINT))
    key, left = top + 290 + 22, left - 72
    parts.append(f'<rect x="{left}" y="{key - 11}" width="14" height="13" fill="{ORANGE}"/>')
    parts.append(_text(left + 20, key, "truly drives y (known: the data is synthetic)"))
    parts.append(_text(left, key + 22, "share of the rise in error when scrambled, 90 % interval"))
    return parts


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    weight: int = 400,
    anchor: str = "start",
    fill: str = INK,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
