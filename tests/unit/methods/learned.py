"""What a fitted forecaster learned, asked through the contract of `Learned`."""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import NDArray

from mvlstm.model.fitting import fit
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.inputs import Windows
from mvlstm.problem.problem import Problem
from mvlstm.table.frame import SeriesFrame


def windows_at(model: AbstractForecaster, table: pd.DataFrame, origins: Any) -> Windows:
    """Windows of a table as the model prepares them, ending at given rows."""
    fitted = model.fitted_
    return fitted.windows(fitted.prepare(fitted.read(table, "predict")), origins)


def own_importance(model: AbstractForecaster) -> NDArray[Any] | None:
    """The method's own importance of each variable."""
    return model.fitted_.learned.own_importance(model.fitted_.layout.groups)


def fit_frame(model: AbstractForecaster, frame: SeriesFrame, **options: Any) -> tuple[Any, Problem]:
    """The model, fitted to a checked table, and the problem that this was."""
    fitted, problem = fit(model, frame, **options)
    return model.holding(fitted), problem
