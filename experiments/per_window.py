"""STRX and ARIMAX fitted afresh to every window, as the paper's authors did.

The package fits them once to the training rows, which is far better. The paper's numbers for the
two can only be compared with these, which know nothing but the rows of their window.
"""

# Annotations are read when settings are declared, hence no `from __future__ import annotations`.
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mvlstm.methods.statespace import choose_orders
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem
from mvlstm.settings import MODEL, PersistenceSettings, setting, settings
from mvlstm.types import FloatArray

Model = Literal["strx", "arimax"]
SAME = 1e-8  # spread of a scaled column below which it is constant in a window
FARTHEST = 10.0  # deviations of the target from its mean: a forecast beyond is no forecast


@settings(panel=MODEL)
class PerWindow(AbstractForecaster, PersistenceSettings):
    """A model of each window's rows alone; persistence where it cannot be fitted."""

    model: Model = setting(default="strx", doc="Which of the two.")
    max_iterations: int = setting(default=20, doc="Most iterations of each fit.")

    def learn(self, problem: Problem) -> "Fresh":
        """Learn nothing but the target's scale."""
        found = problem.prepared.preparation
        return self._fresh(found.target_center, found.target_scale)

    def restore(self, saved: Saved) -> "Fresh":
        """Rebuild what `learn` returned."""
        return self._fresh(saved.preparation.target_center, saved.preparation.target_scale)

    def _fresh(self, center: float, scale: float) -> "Fresh":
        steps = int(self.horizon)
        return Fresh(
            model=self.model, iterations=self.max_iterations, steps=steps, unit=(center, scale)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Fresh(Learned):
    """Nothing learned: each window is fitted when it is forecast."""

    model: Model
    iterations: int
    steps: int
    unit: tuple[float, float]  # centre and scale of the target

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Fit each window and forecast the row after it."""
        center, scale = self.unit
        each = [self._forecast(window) for piece in windows.pieces() for window in piece]
        scaled = np.repeat(np.array(each).reshape(-1, 1), self.steps, axis=1)
        return Predictive((scaled * scale + center)[None])

    def _forecast(self, window: FloatArray) -> float:
        """Forecast the scaled target after a window (T, C), from the row before as regressor."""
        y, x = window[1:, -1], window[:, :-1]
        x = x[:, x[:-1].std(axis=0) > SAME]
        last = float(y[-1])
        try:
            with warnings.catch_warnings(action="ignore"):
                fitted = self._model(y, x[:-1] if x.shape[1] else None).fit(
                    disp=False, maxiter=self.iterations, cov_type="none"
                )
                found = float(fitted.forecast(1, exog=x[-1:] if x.shape[1] else None)[0])
        except (ValueError, np.linalg.LinAlgError, IndexError):
            return last
        return found if abs(found) < FARTHEST else last

    def _model(self, y: FloatArray, x: FloatArray | None) -> Any:
        from statsmodels.tsa.statespace.sarimax import SARIMAX
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        if self.model == "strx":
            return UnobservedComponents(y, level="local linear trend", exog=x)
        order = choose_orders(y) if y.std() > SAME else (1, 0, 0)
        return SARIMAX(y, exog=x, order=order, trend="c", enforce_stationarity=False)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return nothing: there is nothing to keep."""
        return {}, {}
