"""Figures of result objects: each function takes a result and returns a Plotly figure.

Nothing here knows a model, shows a window or changes a global style. Every figure's numbers are
also there as a table (``forecast_table``, ``calibration_table`` and so on). Plotly is loaded when
the first figure is drawn.

Some arguments mean the same wherever they appear:

``theme``
    The look, "light" or "dark".
``step``
    Steps ahead; the first by default.
``part``
    Rows to judge, "new", "validation" or "train"; by default the new rows if there are any,
    otherwise the validation rows.
``origin``
    Last time known to a forecast taken apart; by default the latest one explained.
``most``
    The most variables to draw, the largest first.

Examples
--------
>>> from mvlstm import plot
>>> plot.label("<b>")
'&lt;b&gt;'
"""

from __future__ import annotations

from mvlstm.plot._tables import variable_order
from mvlstm.plot.drawing import draw
from mvlstm.plot.drivers import (
    attention_histograms,
    attention_over_time,
    attention_over_time_table,
    attention_table,
    error_increase,
    histograms,
    importance_by_step,
    importance_by_step_table,
    temporal_importance,
    variable_importance,
)
from mvlstm.plot.forecasts import (
    EXPLAINED,
    PATHS,
    forecast,
    forecast_table,
    future_table,
    members,
    members_table,
)
from mvlstm.plot.graph import link_matrix, network
from mvlstm.plot.methods import comparison, comparison_table, training_curves
from mvlstm.plot.theme import THEMES, Style, Theme, get_theme, label, styles
from mvlstm.plot.trust import (
    autocorrelation_table,
    calibration,
    calibration_table,
    coverage_over_time,
    coverage_over_time_table,
    error_by_step,
    leakage,
    pit_histogram,
    pit_table,
    residual_autocorrelation,
    residuals,
    residuals_table,
    stability,
    stability_table,
)
from mvlstm.plot.waterfall import contribution_lags, contributions, lag_table, waterfall_table

__all__ = [
    "EXPLAINED",
    "PATHS",
    "THEMES",
    "Style",
    "Theme",
    "attention_histograms",
    "attention_over_time",
    "attention_over_time_table",
    "attention_table",
    "autocorrelation_table",
    "calibration",
    "calibration_table",
    "comparison",
    "comparison_table",
    "contribution_lags",
    "contributions",
    "coverage_over_time",
    "coverage_over_time_table",
    "draw",
    "error_by_step",
    "error_increase",
    "forecast",
    "forecast_table",
    "future_table",
    "get_theme",
    "histograms",
    "importance_by_step",
    "importance_by_step_table",
    "label",
    "lag_table",
    "leakage",
    "link_matrix",
    "members",
    "members_table",
    "network",
    "pit_histogram",
    "pit_table",
    "residual_autocorrelation",
    "residuals",
    "residuals_table",
    "stability",
    "stability_table",
    "styles",
    "temporal_importance",
    "training_curves",
    "variable_importance",
    "variable_order",
    "waterfall_table",
]
