"""The plots of shap draw our contributions."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

import mvlstm as mv
from mvlstm.errors import DataError


@pytest.fixture(scope="module")
def explanation() -> mv.Explanation:
    table = mv.datasets.load("synthetic", n=300).frame
    model = mv.AR(window=3, horizon=2, verbose=0).fit(table, "y", test=0.2)
    return model.explain(table, effort="quick")


def test_values_add_up_to_the_forecasts(explanation: mv.Explanation) -> None:
    assert explanation.contribution is not None
    for step in (1, 2):
        found = explanation.to_shap(step=step)
        origins = explanation.contribution.xs(step, level="step").index
        forecasts = [explanation.at(origin, step).forecast for origin in origins]
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, forecasts)
    lags = explanation.to_shap(step=2, lags=True)
    np.testing.assert_allclose(lags.values.sum(axis=1), found.values.sum(axis=1))
    assert found.feature_names[-1] == "y" and "y, lag 1" in lags.feature_names
    table = mv.datasets.load("synthetic", n=300).frame
    np.testing.assert_allclose(found.data, table.loc[origins, found.feature_names])


@pytest.mark.parametrize("draw", ["waterfall", "beeswarm", "bar", "heatmap", "scatter"])
def test_plots(explanation: mv.Explanation, draw: str) -> None:
    values = explanation.to_shap()
    shown = {"waterfall": values[0], "scatter": values[:, "x2"]}.get(draw, values)
    getattr(shap.plots, draw)(shown, show=False)
    figure = plt.gcf()
    words = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    if draw in ("waterfall", "beeswarm", "bar"):
        assert any("x2" in word for word in words)
    figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize("draw", ["waterfall", "beeswarm", "bar", "heatmap"])
def test_plots_of_lags_show_no_values_that_are_not_known(
    explanation: mv.Explanation, draw: str
) -> None:
    values = explanation.to_shap(lags=True)
    getattr(shap.plots, draw)(values[0] if draw == "waterfall" else values, show=False)
    figure = plt.gcf()
    figure.canvas.draw()
    words = {text.get_text() for axes in figure.axes for text in axes.get_yticklabels()}
    assert any("lag 1" in word for word in words) and not any("nan" in word for word in words)
    plt.close("all")


def test_without_contributions(explanation: mv.Explanation) -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    model = mv.AR(window=3, verbose=0).fit(table, "y")
    none = model.explain(table, effort="quick", contributions=0)
    with pytest.raises(DataError, match=r"has no contributions\. Ask for them"):
        none.to_shap()
    with pytest.raises(DataError, match="step=3 is not among the 2 steps ahead"):
        explanation.to_shap(step=3)
