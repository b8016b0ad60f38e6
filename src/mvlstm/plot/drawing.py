"""The figure that shows a result first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mvlstm.errors import check_option
from mvlstm.plot.drivers import variable_importance
from mvlstm.plot.forecasts import forecast
from mvlstm.plot.graph import link_matrix, network
from mvlstm.plot.methods import comparison, training_curves
from mvlstm.plot.trust import error_by_step
from mvlstm.results import Comparison, Evaluation, Explanation, Forecast, Graph, History

if TYPE_CHECKING:
    import plotly.graph_objects as go

PICTURES = ("network", "matrix")  # of a graph


def draw(result: Any, **options: Any) -> go.Figure:
    """Draw a result as its ``plot()`` does.

    A forecast: `forecast`; an explanation: `variable_importance`; an evaluation: `error_by_step`,
    or `comparison` of one step ahead; a comparison: `comparison`; a history: `training_curves`; a
    graph: `network`, or `link_matrix` for ``kind="matrix"``; a backtest: the error of its folds.
    """
    if isinstance(result, Forecast):
        return forecast(result, **options)
    if isinstance(result, Explanation):
        return variable_importance(result, **options)
    if isinstance(result, Comparison):
        return comparison(result, **options)
    if isinstance(result, History):
        return training_curves(result, **options)
    if isinstance(result, Graph):
        kind = options.pop("kind")
        check_option("kind", kind, PICTURES)
        return (network if kind == "network" else link_matrix)(result, **options)
    if isinstance(result, Evaluation) and result.by_step is not None:
        return error_by_step(result.by_step, **options)
    scores = result.scores.rename_axis("method").reset_index()  # of an evaluation, or by fold
    return comparison(scores.astype({"method": str}), **options)
