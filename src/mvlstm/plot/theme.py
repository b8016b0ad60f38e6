"""One look for every figure: light and dark, safe for colour-blind readers.

What happened is drawn in ink, the forecast in blue, the target's own past in grey. Every other
variable has the colour of its place in the data, not of its rank, so it keeps it in every figure.
Where there are more variables than colours, the bar's hatching changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mvlstm.errors import check_option, load_extra

if TYPE_CHECKING:
    import plotly.graph_objects as go

ThemeName = Literal["light", "dark"]
Scale = tuple[tuple[float, str], ...]

FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif'
)
HATCHINGS = ("", "/", "x", ".")
PANEL_TITLE = 20  # letters of a name above a small panel
LONGEST_TITLE = 48  # letters of an axis' title
UNIT = 16  # letters of the target's name within such a title
LETTER = 6.5  # its width in pixels, roughly


@dataclass(frozen=True)
class Theme:
    """The colours of one look."""

    name: str
    paper: str  # background
    ink: str  # text and what happened
    muted: str  # secondary text
    grid: str  # lines behind the data
    forecast: str
    band: str  # the forecast's interval
    wide_band: str  # a fainter one
    target: str  # the target's own past
    alarm: str  # what needs attention
    shade: tuple[str, str]  # background of the rows trained on and of the validation rows
    variables: tuple[str, ...]  # the other variables, in the order of the data
    sequential: Scale  # of heat maps
    diverging: Scale

    def colours(self) -> tuple[str, ...]:
        """Return every colour, in an order common to all themes."""
        single = (self.paper, self.ink, self.muted, self.grid, self.forecast, self.band)
        more = (self.wide_band, self.target, self.alarm, *self.shade, *self.variables)
        return (*single, *more, *(colour for _, colour in (*self.sequential, *self.diverging)))

    def template(self) -> dict[str, Any]:
        """Return the layout that every figure starts from."""
        axis = {
            "gridcolor": self.grid,
            "linecolor": self.grid,
            "zeroline": False,
            "ticks": "",
            "automargin": True,
            "tickfont": {"color": self.muted, "size": 12},
            "title": {"font": {"color": self.muted, "size": 12}, "standoff": 10},
        }
        small = {"size": 12, "color": self.ink}
        legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"}
        legend |= {"traceorder": "normal", "bgcolor": "rgba(0,0,0,0)", "font": small}
        hover = {"bgcolor": self.paper, "bordercolor": self.muted, "align": "left"}
        return {
            "layout": {
                "font": {"family": FONT, "size": 13, "color": self.ink},
                "paper_bgcolor": self.paper,
                "plot_bgcolor": self.paper,
                # Invisible ticks keep the first label below away from the lowest at the left.
                "xaxis": {**axis, "ticks": "outside", "ticklen": 6, "tickcolor": self.paper},
                "yaxis": axis,
                "legend": legend,
                "hoverlabel": {**hover, "font": {"family": FONT, **small}},
                "bargap": 0.3,
            }
        }


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1b232b",
    muted="#55616d",
    grid="#e6eaee",
    forecast="#0072b2",
    band="rgba(0,114,178,0.20)",
    wide_band="rgba(0,114,178,0.09)",
    target="#5f6b76",
    alarm="#b3261e",
    shade=("rgba(95,107,118,0.10)", "rgba(95,107,118,0.05)"),
    variables=("#e68600", "#44aa99", "#332288", "#cc3311", "#4aa3df", "#8c564b", "#3f8f3f"),
    sequential=((0.0, "#f3f7fa"), (0.5, "#6fb0d6"), (1.0, "#08436b")),
    diverging=((0.0, "#a84a00"), (0.5, "#f7f7f6"), (1.0, "#005a8c")),
)
DARK = Theme(
    name="dark",
    paper="#161b21",
    ink="#e8edf2",
    muted="#a5b1bd",
    grid="#2a323b",
    forecast="#3f9bd8",
    band="rgba(63,155,216,0.28)",
    wide_band="rgba(63,155,216,0.13)",
    target="#a3afba",
    alarm="#ff8a80",
    shade=("rgba(163,175,186,0.13)", "rgba(163,175,186,0.07)"),
    variables=("#f5a343", "#39b18e", "#9a8cff", "#f0654f", "#8cd0ff", "#a87364", "#6dbf6d"),
    sequential=((0.0, "#1d252d"), (0.5, "#2f7fb0"), (1.0, "#bfe4fb")),
    diverging=((0.0, "#ff9d52"), (0.5, "#20272e"), (1.0, "#62b8ee")),
)
THEMES: dict[str, Theme] = {"light": LIGHT, "dark": DARK}


def get_theme(name: str) -> Theme:
    """Look up a theme by name.

    Examples
    --------
    >>> get_theme("dark").paper
    '#161b21'
    """
    check_option("theme", name, THEMES)
    return THEMES[name]


@dataclass(frozen=True)
class Style:
    """How one variable is drawn: its colour, and its hatching when colours run out."""

    colour: str
    hatching: str = HATCHINGS[0]


def styles(variables: Sequence[str], target: str, theme: Theme) -> dict[str, Style]:
    """Give each variable its style by its place in ``variables``, the order of the data.

    Examples
    --------
    >>> styles(["temp", "wind", "pm"], "pm", LIGHT)["wind"].colour
    '#44aa99'
    """
    found = {target: Style(theme.target)}
    others = [name for name in variables if name != target]
    for place, name in enumerate(others):
        cycle, colour = divmod(place, len(theme.variables))
        found[name] = Style(theme.variables[colour], HATCHINGS[cycle % len(HATCHINGS)])
    return found


def shorten(text: str, length: int) -> str:
    """Cut a text that is too long in its middle: long names often differ at the end.

    Examples
    --------
    >>> shorten("sensor of the east wing 12", 16), shorten("wind", 16)
    ('sensor o…wing 12', 'wind')
    """
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"


def label(name: object, length: int = 0) -> str:
    """Write a name, cut to ``length`` as in `shorten`, so that a figure shows it as it is.

    Names are untrusted text: no markup, no templates.

    Examples
    --------
    >>> label("<b>a</b> & %{x}")
    '&lt;b&gt;a&lt;/b&gt; &amp; %&#123;x}'
    """
    text = " ".join(str(name).split())
    text = shorten(text, length) if length else text
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "&#123;")):
        text = text.replace(mark, entity)
    return text


def graph_objects() -> Any:
    """Load Plotly, or say how to install it."""
    return load_extra("plotly.graph_objects", "A figure", "report")


def base_layout(
    *,
    height: int = 360,
    x: str | None = None,
    y: str | None = None,
    legend: bool = False,
    **layout: Any,
) -> dict[str, Any]:
    """Return the layout of one figure, to which the theme's template is added.

    ``height`` is in pixels, ``x`` and ``y`` are titles of the axes, shown as text, and ``legend``
    leaves room for a legend above. Further settings are Plotly's; ``xaxis`` and ``yaxis`` are
    joined with the titles.
    """
    tall = min(LONGEST_TITLE, int((height - 50) / LETTER))
    axes = {
        name: {**({} if title is None else {"title": {"text": label(title, most)}}), **given}
        for name, title, most, given in (
            ("xaxis", x, LONGEST_TITLE, layout.pop("xaxis", {})),
            ("yaxis", y, tall, layout.pop("yaxis", {})),
        )
    }
    margin = {"l": 10, "r": 16, "t": 40 if legend else 12, "b": 10}
    return {"height": height, "margin": margin, "showlegend": legend, **axes, **layout}


def plain_level(low: float, high: float) -> dict[str, Any]:
    """Return the settings of an axis whose values differ little: in full, not as 1.000002M.

    Examples
    --------
    >>> plain_level(999_998.0, 1_000_002.0)["exponentformat"], plain_level(0.0, 2e6)
    ('none', {})
    """
    if max(abs(low), abs(high)) < 100.0 * (high - low):
        return {}
    return {"exponentformat": "none", "separatethousands": True}


def new_figure(theme: Theme, **layout: Any) -> go.Figure:
    """Start an empty figure in a theme; the layout is that of `base_layout`."""
    return graph_objects().Figure(layout={"template": theme.template(), **base_layout(**layout)})


def colour_bar(theme: Theme, title: str) -> dict[str, Any]:
    """Return the bar next to a heat map that says what its colours mean."""
    font = {"color": theme.muted, "size": 11}
    return {
        "thickness": 10,
        "outlinewidth": 0,
        "tickfont": font,
        "title": {"text": label(title, 30), "font": font, "side": "right"},
    }


def from_spec(theme: Theme, spec: dict[str, Any]) -> go.Figure:
    """Make a figure of plain data and layout, in a theme."""
    layout = {"template": theme.template(), **spec["layout"]}
    return graph_objects().Figure(data=spec["data"], layout=layout)
