"""Forecasts that need no learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mvlstm.errors import ModelFileError, ParameterError, is_whole
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, LagForm, Learned, Saved
from mvlstm.model.naive import cycle_lags, find_season, last_cycle
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem
from mvlstm.settings import PersistenceSettings, SeasonalPersistenceSettings, documented
from mvlstm.types import FloatArray, IntArray


@documented
class Persistence(AbstractForecaster, PersistenceSettings):
    """Tomorrow is like today: every step ahead is the last value known."""

    def learn(self, problem: Problem) -> LastValue:
        """Keep the scale of the target, which is all there is to know."""
        return LastValue(horizon=problem.horizon, **_scale(problem.prepared.preparation))

    def restore(self, saved: Saved) -> LastValue:
        """Rebuild what `learn` returned."""
        return LastValue(horizon=int(self.horizon), **_scale(saved.preparation))


@dataclass(frozen=True, eq=False, kw_only=True)
class LastValue(Learned):
    """The last value of a window for every step, given the scale of the target as an input."""

    horizon: int
    center: float
    scale: float

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Repeat the last value."""
        if windows.prepared is not None:
            last = windows.prepared.target[windows.origins]
        else:
            last = windows.values[:, -1, -1] * self.scale + self.center
        return Predictive(np.repeat(last[None, :, None], self.horizon, axis=2))

    def form(self) -> LagForm:
        """Return that the last row counts."""
        return LagForm(np.zeros(self.horizon, dtype=np.int64))

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return nothing: a file has the scale anyway."""
        return {}, {}


@documented
class SeasonalPersistence(AbstractForecaster, SeasonalPersistenceSettings):
    """The next step is like the same step of the last cycle, a day or a week ago for instance.

    Where the table does not reach back a whole cycle, the last value known is taken.
    """

    local: ClassVar[bool] = False  # a cycle may be longer than the window

    def check(self) -> None:
        """Refuse a period that is not a number of rows."""
        super().check()
        if self.period != "auto" and (not is_whole(self.period) or self.period < 1):
            raise ParameterError(
                f"period={self.period!r} must be a whole number of rows, 1 or more, or 'auto'."
            )

    def learn(self, problem: Problem) -> LastCycle:
        """Find the cycle, unless it is given."""
        scale = _scale(problem.prepared.preparation)
        if self.period != "auto":
            return LastCycle(horizon=problem.horizon, period=int(self.period), **scale)
        frame, train = problem.prepared.frame, problem.origins["train"]
        first = 0
        if frame.panel is not None:  # the longest series stands for all
            rows = frame.panel.longest()
            first, train = rows.start, train[(train >= rows.start) & (train < rows.stop)]
        y = problem.prepared.target[first : int(train.max(initial=first)) + 1]
        period, note = find_season(y, frame.step)
        return LastCycle(horizon=problem.horizon, period=period, notes=(note,), **scale)

    def restore(self, saved: Saved) -> LastCycle:
        """Rebuild what `learn` returned."""
        period = int(saved.extra["period"])
        if period < 1:
            raise ModelFileError(f"its period is {period}, not a number of rows.")
        return LastCycle(horizon=int(self.horizon), period=period, **_scale(saved.preparation))

    @property
    def period_(self) -> int:
        """Rows of the cycle."""
        learned = self._require_fitted("period_").learned
        assert isinstance(learned, LastCycle)
        return learned.period


@dataclass(frozen=True, eq=False, kw_only=True)
class LastCycle(Learned):
    """The value of the last cycle for every step, given the scale of the target as an input."""

    horizon: int
    period: int
    center: float
    scale: float

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Repeat the last cycle; where it is not known, the last value."""
        cycle = (self.period, self.horizon)
        if windows.prepared is None or windows.origins is None:
            y = windows.values[:, :, -1] * self.scale + self.center
            end, one = np.array([y.shape[1] - 1]), np.zeros(y.shape[1], dtype=np.intp)
            (rows,), (known,) = last_cycle(end, one, *cycle)
            return Predictive(np.where(known, y[:, rows], y[:, -1:])[None])
        prepared, origins = windows.prepared, windows.origins
        rows, known = last_cycle(origins, prepared.frame.segments, *cycle)
        then = prepared.target_at(rows, origins)
        return Predictive(np.where(known, then, prepared.target[origins][:, None])[None])

    def scrambled(self, windows: Windows, columns: IntArray, donors: IntArray) -> FloatArray:
        """Forecast with the target's whole past taken from the donors, if it is scrambled."""
        members = self.predict(windows).members
        target = windows.table.shape[1] - 1
        return members[:, donors] if target in columns else members

    def form(self) -> LagForm:
        """Return the rows that count."""
        return LagForm(cycle_lags(self.period, self.horizon))

    def choices(self) -> dict[str, Any]:
        """Return the period."""
        return {"period": self.period}

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the period."""
        return {}, {"period": self.period}


def _scale(preparation: Preparation) -> dict[str, Any]:
    return {"center": preparation.target_center, "scale": preparation.target_scale}
