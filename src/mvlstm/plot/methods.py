"""How training went, and how methods compare."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.plot._marks import add_line, add_marks, named_rows, numbers, whiskers
from mvlstm.plot.theme import ThemeName, get_theme, label, new_figure, shorten
from mvlstm.results import Comparison, History

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEAST_SPAN = 0.1  # of an axis of scores, as a share of them
LONGEST_SCALE = 23  # letters of the unit of an error


def training_curves(history: History, *, scale: str = "", theme: ThemeName = "light") -> go.Figure:
    """Draw the validation error of every member over the epochs, measured in ``scale``.

    Marked are the epoch that was kept, and the one after which a member went on from its best
    weights at a lower rate.
    """
    look = get_theme(theme)
    if history.members == 0:
        raise DataError("This model was not trained in epochs; there are no curves to draw.")
    title = f"validation RMSE ({shorten(scale, LONGEST_SCALE)})" if scale else "validation RMSE"
    figure = new_figure(look, height=320, x="epoch", y=title, legend=True)
    epochs = np.arange(1, history.valid_rmse.shape[1] + 1)
    for place, values in enumerate(history.valid_rmse):
        hover = f"member {place}, epoch %{{x}}: %{{y:.4g}}"
        style = {"line": {"color": look.forecast, "width": 1.3}, "opacity": 0.75, "mode": "lines"}
        style |= {"name": "a member", "showlegend": place == 0, "legendgroup": "members"}
        add_marks(figure, epochs, values, hover, **style)
    turned = np.flatnonzero(history.lowered)
    if turned.size:
        at = history.lowered[turned]
        errors = history.valid_rmse[turned, at - 1]
        hover = "epoch %{x}: back to the best, at a lower rate"
        marker = {"color": look.forecast, "size": 7, "symbol": "triangle-down"}
        add_marks(figure, at, errors, hover, name="back to the best, slower", marker=marker)
    marker = {"color": look.paper, "size": 8, "line": {"color": look.ink, "width": 2}}
    hover = "kept: epoch %{x}, %{y:.4g}"
    add_marks(figure, history.best_epoch, history.best_rmse, hover, name="kept", marker=marker)
    return figure


def comparison(
    rows: pd.DataFrame | Comparison,
    *,
    score: str = "rmse",
    reference: str = "Persistence",
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a score of several methods as dots on one scale, best on top, ``reference`` as a line.

    ``rows`` are what `mvlstm.compare` returns, or a table with one row per method (and fold):
    ``method``, the scores, and ``error`` where a method failed. Less of the ``score`` is better.
    """
    look = get_theme(theme)
    table = comparison_table(rows, score=score)[::-1]
    place = np.arange(len(table))
    figure = new_figure(look, height=110 + 30 * len(table), x=f"{score} (less is better)")
    mean, low, high = numbers(table, "mean", "low", "high")
    known = table["method"].astype(str).str.lower() == reference.lower()
    if known.any():
        add_line(figure, float(mean[known.to_numpy()][0]), look.muted, across="y")
    style: dict[str, Any] = {"marker": {"color": look.forecast, "size": 11}, "showlegend": False}
    style["error_x"] = whiskers(mean, low, high, look.forecast)
    style["customdata"] = np.array([label(m) for m in table["method"]])
    add_marks(figure, mean, place, "%{customdata}: %{x:.4g}", **style)
    figure.update_yaxes(named_rows([str(m) for m in table["method"]], 24, showgrid=True))
    middle, span = float(low.min() + high.max()) / 2, float(high.max() - low.min())
    if 0 < span < LEAST_SPAN * middle:  # small differences are to look small
        reach = LEAST_SPAN * middle / 2
        figure.update_xaxes(range=[middle - reach, middle + reach], nticks=4)
    return figure


def comparison_table(rows: pd.DataFrame | Comparison, *, score: str = "rmse") -> pd.DataFrame:
    """Return mean, lowest and highest score of each method over the folds, best first.

    Arguments are those of `comparison`; methods without the score are left out.
    """
    if isinstance(rows, Comparison):
        rows = rows.rows
    missing = {"method", score} - set(rows.columns)
    if missing:
        raise DataError(
            f"The rows have no column {sorted(missing)}; columns are {[str(c) for c in rows]}."
        )
    known = rows[pd.to_numeric(rows[score], errors="coerce").notna()]
    known = known.assign(method=_labels(known))
    grouped = known.assign(**{score: known[score].astype(float)}).groupby("method", sort=False)
    table = grouped[score].agg(["mean", "min", "max", "count"]).reset_index()
    table.columns = pd.Index(["method", "mean", "low", "high", "n"])
    return table.sort_values("mean", kind="stable").reset_index(drop=True)


def _labels(rows: pd.DataFrame) -> list[str]:
    """Name each row's method, and its kind where a method has several."""
    methods = [str(m) for m in rows["method"]]
    if "kind" not in rows:
        return methods
    kinds = [str(k) for k in rows["kind"]]
    pairs = set(zip(methods, kinds, strict=True))
    several = {m for m, count in Counter(m for m, _ in pairs).items() if count > 1}
    return [f"{m}, {k}" if m in several else m for m, k in zip(methods, kinds, strict=True)]
