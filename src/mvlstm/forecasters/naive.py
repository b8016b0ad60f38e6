"""Forecasts that need no learning."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mvlstm.forecasters.base import AbstractForecaster, Problem
from mvlstm.forecasters.predictive import Predictive
from mvlstm.forecasters.preparation import Prepared

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Persistence(AbstractForecaster):
    """Tomorrow is like today: every step ahead is the last value known.

    Parameters
    ----------
    window : int
        Rows to skip at the start, so that its forecasts are for the same rows as a model's.
    horizon : int
        Steps ahead.
    missing, gaps : str
        As in `mvlstm.MVLSTM`.
    verbose : int
        Has no effect; there is nothing to wait for.
    """

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.missing = missing
        self.gaps = gaps
        self.verbose = verbose

    def _learn(self, problem: Problem) -> None:
        pass

    def _predict_rows(self, prepared: Prepared, origins: IntArray) -> Predictive:
        last = prepared.frame.target_values[origins]
        members = np.repeat(last[None, :, None], self.horizon, axis=2)
        return Predictive(members)

    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        scaler = self.preparation_.scaler
        last = windows[:, -1, -1] * scaler.target_scale + scaler.target_center
        return np.repeat(last[None, :, None], self.horizon, axis=2)

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {}, {}

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        pass
