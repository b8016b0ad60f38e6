"""What a fitted model forecasts: rows of a table that have a window, or the steps after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import ParameterError, check_whole, warn
from mvlstm.model.fitted import Fitted
from mvlstm.model.table_warnings import age_warnings, require_ahead, require_rows, series_warnings
from mvlstm.results import Forecast
from mvlstm.table.kinds import kind_of


def predict(fitted: Fitted, table: Any) -> Forecast:
    """Forecast every row that has a full window; see `AbstractForecaster.predict`."""
    prepared = fitted.prepare(fitted.read(table, "predict"))
    made = fitted.forecast(prepared, fitted.origins(prepared, "predict"))
    return warned(replace(made, kind=kind_of(table)))


def forecast(
    fitted: Fitted, table: Any, *, future: pd.DataFrame | None = None, steps: int | None = None
) -> Forecast:
    """Forecast the steps after the last row; see `AbstractForecaster.forecast`."""
    kind, steps = kind_of(table), fitted.horizon if steps is None else steps
    check_whole("steps", steps, 1)
    if steps > fitted.horizon:
        raise ParameterError(
            f"steps={steps} is more than the {counted(fitted.horizon, 'step')} that the model "
            "learned to forecast, and beyond these the other variables are not known either. "
            f"Ask for fewer, or fit with horizon={steps}."
        )
    if future is not None:
        table = fitted.joined(table, future)
    frame = fitted.read(table, "forecast")
    prepared = fitted.prepare(frame)
    require_ahead(prepared)
    last = frame.last_rows()
    ready = np.isin(last, prepared.origins(fitted.window, 0))
    if not ready.any():
        require_rows(prepared, "forecast", fitted.window, fitted.horizon, steps=0)
    result = fitted.forecast_last(prepared, last[ready]).first(steps)
    doubts = (*frame.doubts, *age_warnings(frame.clock, fitted.parts))
    doubts = (*doubts, *series_warnings(prepared, last[ready], last[~ready]))
    return warned(replace(result, warnings=(*result.warnings, *doubts), kind=kind))


def warned(forecast: Forecast) -> Forecast:
    """Give a forecast's warnings to Python as well."""
    for message in forecast.warnings:
        warn(message)
    return forecast
