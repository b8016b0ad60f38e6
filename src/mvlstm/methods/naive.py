"""Forecasts that need no learning."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError, ParameterError, is_whole
from mvlstm.explain import find_period
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.table.spacing import natural_cycles
from mvlstm.types import FloatArray, IntArray


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
        last = prepared.target[origins]
        members = np.repeat(last[None, :, None], self.horizon, axis=2)
        return Predictive(members)

    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        scaler = self.preparation_
        last = windows[:, -1, -1] * scaler.target_scale + scaler.target_center
        return np.repeat(last[None, :, None], self.horizon, axis=2)

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {}, {}

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        pass


class SeasonalPersistence(AbstractForecaster):
    """The next step is like the same step of the last cycle, a day or a week ago for instance.

    Where the table does not reach back a whole cycle, the last value known is taken.

    Parameters
    ----------
    window : int
        Rows to skip at the start, so that its forecasts are for the same rows as a model's.
    horizon : int
        Steps ahead.
    period : int or "auto"
        Rows of a cycle. "auto" tries a day, a week and the like, according to the times' step,
        and the strongest cycle of the autocorrelation, and takes the one with the least error on
        the training rows.
    missing, gaps : str
        As in `mvlstm.MVLSTM`.
    verbose : int
        Has no effect; there is nothing to wait for.
    """

    local: ClassVar[bool] = False  # a cycle may be longer than the window
    period_: int

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        period: int | Literal["auto"] = "auto",
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.period = period
        self.missing = missing
        self.gaps = gaps
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.period == "auto":
            return
        if not is_whole(self.period) or self.period < 1:
            raise ParameterError(
                f"period={self.period!r} must be a whole number of rows, 1 or more, or 'auto'."
            )

    def _learn(self, problem: Problem) -> None:
        if self.period != "auto":
            self.period_ = int(self.period)
            return
        frame, train = problem.prepared.frame, problem.origins["train"]
        first = 0
        if frame.panel is not None:  # the longest series stands for all
            rows = frame.panel.longest()
            first, train = rows.start, train[(train >= rows.start) & (train < rows.stop)]
        y = problem.prepared.target[first : int(train.max(initial=first)) + 1]
        self.period_, note = find_season(y, frame.step)
        self.notes_ = (*self.notes_, note)

    def _predict_rows(self, prepared: Prepared, origins: IntArray) -> Predictive:
        frame = prepared.frame
        rows = origins[:, None] - self._lags()
        inside = np.maximum(rows, 0)
        known = (rows >= 0) & (frame.segments[inside] == frame.segments[origins][:, None])
        then = prepared.target_at(inside, origins)
        return Predictive(np.where(known, then, prepared.target[origins][:, None])[None])

    def _predict_windows(self, windows: FloatArray) -> FloatArray:
        scaler = self.preparation_
        y = windows[:, :, -1] * scaler.target_scale + scaler.target_center
        rows = y.shape[1] - 1 - self._lags()
        return np.where(rows >= 0, y[:, np.maximum(rows, 0)], y[:, -1:])[None]

    def _predict_scrambled(
        self, prepared: Prepared, origins: IntArray, variables: tuple[int, ...], donors: IntArray
    ) -> Predictive:
        """Forecast with the target's whole past taken from the donors."""
        members = self._predict_rows(prepared, origins).members
        own = prepared.frame.groups[-1] in variables
        return Predictive(members[:, donors] if own else members)

    def _lags(self) -> IntArray:
        """Rows from the origin back to the value taken for each step ahead, (H,)."""
        steps = np.arange(1, int(self.horizon) + 1)
        return np.asarray(self.period_ * -(-steps // self.period_) - steps)

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {}, {"period": self.period_}

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        self.period_ = int(extra["period"])
        if self.period_ < 1:
            raise ModelFileError(f"its period is {self.period_}, not a number of rows.")


def find_season(y: FloatArray, step: Any) -> tuple[int, str]:
    """Return the rows of the cycle that fits a series best, and a sentence on it.

    Parameters
    ----------
    y : (rows,)
    step : Timedelta, DateOffset, int or None
        Spacing of the rows.
    """
    longest = len(y) // 3
    candidates = {p for p in (*natural_cycles(step), find_period(y)) if 1 < p <= longest}
    if not candidates:
        return 1, "No cycle was found; the forecasts are those of persistence."
    errors = {p: float(np.mean((y[p:] - y[:-p]) ** 2)) for p in sorted(candidates)}
    best = min(errors, key=lambda p: errors[p])
    return best, f"The cycle of least error on the training rows has {best} rows."
