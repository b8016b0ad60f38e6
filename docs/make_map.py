"""Draws docs/code-map.svg: the rooms of the package, and the way of a table through `fit`.

python docs/make_map.py
"""

from __future__ import annotations

from pathlib import Path

ROOMS = [  # floors from the top; (name, what it holds)
    [("cli", "one module per command: parse, call one function, print")],
    [
        ("report", "one HTML page"),
        ("bench", "suites, records, tables"),
        ("many", "series on disk"),
        ("testing", "contract"),
        ("adapters", "other tools"),
    ],
    [("plot", "figures"), ("evaluate", "compare, backtest")],
    [("methods", "what learns: one file each")],
    [("model", "estimator, Fitted: fit, predict, score, save, update")],
    [
        ("explain", "importance from arrays"),
        ("results", "Forecast, Explanation"),
        ("train", "loop"),
    ],
    [("problem", "splits, windows, TargetScale"), ("datasets", "by name"), ("nn", "networks")],
    [
        ("table", "DataFrame to SeriesFrame"),
        ("metrics", "scores"),
        ("storage", "files"),
        ("engine", "tasks"),
    ],
]
WAY = [
    ("table", "build_frame: check once"),
    ("problem", "begin: parts, scaling, labels"),
    ("methods", "learn(problem): Learned"),
    ("model", "calibrate, Fitted"),
]
WIDTH, ROW, LEFT = 860, 62, 20
INK, PAPER, BOX, ACCENT, SOFT = "#1d2733", "#ffffff", "#eef3f8", "#c2410c", "#64748b"


def main() -> None:
    """Write the picture."""
    height = ROW * len(ROOMS) + 80
    font = "font-family='DejaVu Sans, Verdana, sans-serif'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' {font}>",
        f"<rect width='{WIDTH}' height='{height}' fill='{PAPER}'/>",
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' "
        f"markerHeight='7' orient='auto'><path d='M0 0 8 4 0 8z' fill='{ACCENT}'/></marker></defs>",
        _text(LEFT, 26, "Rooms: each imports only from the floors below it", size=15, bold=True),
    ]
    places: dict[str, tuple[float, float]] = {}
    for floor, rooms in enumerate(ROOMS):
        width = (WIDTH - 2 * LEFT - 190 - 12 * (len(rooms) - 1)) / len(rooms)
        for place, (name, words) in enumerate(rooms):
            x, y = LEFT + place * (width + 12), 44 + floor * ROW
            places[name] = (LEFT + WIDTH - 2 * LEFT - 190, y + 24)
            parts.append(
                f"<rect x='{x:.0f}' y='{y}' width='{width:.0f}' height='48' rx='6' fill='{BOX}' "
                f"stroke='{SOFT}'/>"
            )
            parts.append(_text(x + 10, y + 20, name, size=14, bold=True))
            parts.append(_text(x + 10, y + 38, words, size=11, fill=SOFT))
    parts.append(_text(WIDTH - 190, 26, "fit, step by step", size=13, bold=True, fill=ACCENT))
    for step, (room, words) in enumerate(WAY):
        x, y = WIDTH - 184, places[room][1]
        parts.append(_text(x, y - 4, f"{step + 1}", size=15, bold=True, fill=ACCENT))
        name, _, detail = words.partition(": ")
        parts.append(_text(x + 16, y - 4, name, size=11, bold=True))
        parts.append(_text(x + 16, y + 12, detail, size=11))
        if step:
            before = places[WAY[step - 1][0]][1]
            low, high = (before - 20, y + 20) if y < before else (before + 20, y - 20)
            parts.append(
                f"<line x1='{x - 12}' y1='{low}' x2='{x - 12}' y2='{high}' stroke='{ACCENT}' "
                "stroke-width='1.5' marker-end='url(#tip)'/>"
            )
    end = height - 14
    parts.append(_text(LEFT, end, "Anyone may import errors, types and settings.", fill=SOFT))
    parts.append("</svg>")
    Path(__file__).with_name("code-map.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")


def _text(
    x: float, y: float, words: str, *, size: int = 12, bold: bool = False, fill: str = INK
) -> str:
    weight = " font-weight='600'" if bold else ""
    return f"<text x='{x:.0f}' y='{y:.0f}' font-size='{size}'{weight} fill='{fill}'>{words}</text>"


if __name__ == "__main__":
    main()
