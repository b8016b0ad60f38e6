"""Draw docs/architecture.svg: the cell with a state per variable, and the attention on top of it.

Run it with ``python docs/make_diagram.py``.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

INK, FAINT, LINE, PAPER = "#1b232b", "#55616d", "#c4ccd4", "#ffffff"
COLOURS = ("#e68600", "#44aa99", "#5f6b76")
NAMES = ("temperature", "wind", "target's own past")
TINTS = ("#fdf0dd", "#e2f3f0", "#e9ecef")
FORECAST = "#0072b2"


def main() -> None:
    parts = [*_cell(), *_attention()]
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1080 470" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">'
        "<title>The cell keeps a hidden state per variable; attention over time summarises each "
        "state, and a mixture over variables blends their experts into the forecast</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{FAINT}"/></marker></defs>'
        f'<rect width="1080" height="470" rx="10" fill="{PAPER}"/>' + "".join(parts) + "</svg>\n"
    )
    Path(__file__).with_name("architecture.svg").write_text(text, encoding="utf-8")


# ------------------------------------------------------------------------------------ left: cell


def _cell() -> list[str]:
    parts = [
        _text(30, 40, "The cell: one state per variable", size=17, weight=650),
        _text(30, 62, "Candidates keep to their variable; the gates see everything.", fill=FAINT),
    ]
    for row, (name, colour, tint) in enumerate(zip(NAMES, COLOURS, TINTS, strict=True)):
        y = 104 + row * 86
        parts += [
            _box(30, y, 84, 44, f"x{_sub('t')}{_sup(row + 1)}", fill=tint, stroke=colour),
            _text(30, y + 60, name, size=11.5, fill=FAINT),
            _arrow(114, y + 22, 158, y + 22),
            _box(160, y, 96, 44, f"j{_sub('t')}{_sup(row + 1)}", fill=tint, stroke=colour),
            _arrow(256, y + 22, 300, y + 22),
            _box(302, y, 72, 44, f"c{_sub('t')}{_sup(row + 1)}", fill=tint, stroke=colour),
            _arrow(374, y + 22, 418, y + 22),
            _box(420, y, 72, 44, f"h{_sub('t')}{_sup(row + 1)}", fill=tint, stroke=colour),
        ]
    top = 104 + 3 * 86 + 14
    parts += [
        _box(160, top, 214, 44, "gates  i, f, o", fill="#f4f6f8", stroke=FAINT),
        f'<path d="M72 {104 + 2 * 86 + 66}V{top + 22}H158" {_stroke()}/>',
        _text(82, top + 12, "all x", size=11.5, fill=FAINT),
        f'<path d="M456 {104 + 2 * 86 + 44}V{top + 22}H376" {_stroke()}/>',
        _text(392, top + 12, "all h", size=11.5, fill=FAINT),
        _text(392, top + 40, "a step earlier", size=11.5, fill=FAINT),
        f'<path d="M338 {top}V{104 + 2 * 86 + 46}" {_stroke()}/>',
        _text(30, top + 66, "j = tanh(own input, own past)", size=12, fill=FAINT),
        _text(
            30,
            top + 86,
            "gates=\u201cvariable\u201d (MV-Indep): each gate sees its variable alone",
            size=12,
            fill=FAINT,
        ),
    ]
    return parts


# -------------------------------------------------------------------------------- right: attention


def _attention() -> list[str]:
    left = 570
    parts = [
        f'<path d="M540 30V440" stroke="{LINE}"/>',
        _text(left, 40, "Attention over time, then over variables", size=17, weight=650),
        _text(left, 62, "Each variable's history becomes a summary and an expert.", fill=FAINT),
    ]
    weights = ((0.15, 0.3, 0.2, 0.8), (0.6, 0.25, 0.2, 0.3), (0.1, 0.15, 0.35, 1.0))
    shares = (0.22, 0.13, 0.65)
    for row, (colour, tint) in enumerate(zip(COLOURS, TINTS, strict=True)):
        y = 104 + row * 86
        for step, weight in enumerate(weights[row]):
            x = left + step * 36
            parts.append(
                f'<rect x="{x}" y="{y}" width="30" height="44" rx="5" fill="{colour}" '
                f'fill-opacity="{0.12 + 0.75 * weight:.2f}" stroke="{colour}"/>'
            )
        parts += [
            _text(left, y + 60, "h over the window, weighted by a", size=11.5, fill=FAINT)
            if row == 2
            else "",
            _arrow(left + 142, y + 22, left + 170, y + 22),
            _box(left + 172, y, 56, 44, f"h\u0303{_sup(row + 1)}", fill=tint, stroke=colour),
            _arrow(left + 228, y + 22, left + 256, y + 22),
            _box(left + 258, y, 64, 44, f"\u03bc{_sub(row + 1)}", fill=tint, stroke=colour),
            f'<rect x="{left + 334}" y="{y + 15}" width="{90 * shares[row]:.0f}" height="14" '
            f'rx="3" fill="{colour}"/>',
            _text(left + 334, y + 8, "\u03c0" + "\u2081\u2082\u2083"[row], size=12, fill=FAINT),
        ]
        end = 104 + 86 + 22
        parts.append(
            f'<path d="M{left + 398} {y + 22}C{left + 412} {y + 22} {left + 404} {end} '
            f'{left + 420} {end}" {_stroke()}/>'
        )
    y = 104 + 86
    foot = 104 + 3 * 86 + 14
    parts += [
        f'<rect x="{left + 422}" y="{y}" width="60" height="44" rx="7" fill="#e5f0f8" '
        f'stroke="{FORECAST}" stroke-width="1.6"/>',
        _text(left + 452, y + 28, "\u0177", size=18, anchor="middle", weight=600),
        _text(
            left, foot + 14, "\u0177 = link + \u03a3 \u03c0\u2099 \u03bc\u2099", size=15, weight=600
        ),
        _text(
            left,
            foot + 38,
            "prior \u03c0: how much each expert counts before the value is seen;",
            size=12,
            fill=FAINT,
        ),
        _text(
            left,
            foot + 56,
            "posterior q \u221d \u03c0\u2099 N(y; \u03bc\u2099, \u03c3\u00b2): after it is seen.",
            size=12,
            fill=FAINT,
        ),
        _text(
            left,
            foot + 74,
            "head=\u201cfusion\u201d (MV-Fusion) blends the summaries in place of the experts.",
            size=12,
            fill=FAINT,
        ),
    ]
    return parts


# ------------------------------------------------------------------------------------- inner parts


def _stroke() -> str:
    return f'fill="none" stroke="{FAINT}" stroke-width="1.2" marker-end="url(#tip)"'


def _arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<path d="M{x0} {y0}L{x1} {y1}" {_stroke()}/>'


def _box(
    x: float, y: float, width: float, height: float, text: str, *, fill: str, stroke: str
) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="1.6"/>'
        f'<text x="{x + width / 2}" y="{y + height / 2 + 5}" text-anchor="middle" font-size="15" '
        f'fill="{INK}">{text}</text>'
    )


def _sub(text: object) -> str:
    return f'<tspan dy="4" font-size="11">{text}</tspan><tspan dy="-4"></tspan>'


def _sup(text: object) -> str:
    return f'<tspan dy="-6" font-size="11">{text}</tspan><tspan dy="6"></tspan>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: float = 13,
    weight: int = 400,
    anchor: str = "start",
    fill: str = INK,
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
