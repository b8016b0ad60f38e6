"""Scores of forecasts on a cell's test rows, with what they are compared to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm.bench.cells import Cell
from mvlstm.model.fitted import Fitted
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import measured_labels
from mvlstm.results import Forecast
from mvlstm.results.distribution import mean_knots
from mvlstm.table.parts import PartName
from mvlstm.types import FloatArray, IntArray

LEAST_OF_A_MONTH = 100  # rows with which a month's coverage is worth a number


@dataclass(frozen=True, eq=False)
class Scored:
    """Forecasts of the test rows of a cell, and of the later half of its validation rows."""

    test: Forecast
    validation: Forecast
    rows: IntArray  # of the data set, that each test forecast is of; the first, of several steps

    @property
    def errors(self) -> FloatArray:
        """Errors (M,) of the test forecasts; of several steps the root of their mean square."""
        errors = self.test.members.mean(axis=0) - self.test.actual
        several = errors.shape[1] > 1
        return np.asarray(np.sqrt(np.mean(errors**2, axis=1)) if several else errors[:, 0])


def forecast_cell(
    fitted: Fitted, problem: Problem, cell: Cell, *, before: Fitted | None = None
) -> Scored:
    """Forecast the rows of a cell that count; validation rows with a model that did not see them.

    That is the model itself or, where it was trained again on them, the one of ``before``.
    """
    found = []
    parts: tuple[tuple[PartName, Fitted], ...] = (
        ("new", fitted),
        ("calibration", before or fitted),
    )
    for part, unaware in parts:
        origins = problem.origins[part]
        known = measured_labels(problem.prepared.frame, origins, problem.horizon)
        origins = origins[known.all(axis=1)]
        labels = cell.rows[origins + 1]
        if cell.scored is not None:
            keep = cell.scored[labels]
            origins, labels = origins[keep], labels[keep]
        found.append((unaware.forecast(problem.prepared, origins), labels))
    (test, rows), (validation, _) = found
    return Scored(test, validation, rows)


def average(parts: Sequence[Scored]) -> Scored:
    """Return the mean of several fits' forecasts, their predictive distributions mixed."""
    return Scored(
        _mix([one.test for one in parts]), _mix([one.validation for one in parts]), parts[0].rows
    )


def _mix(forecasts: Sequence[Forecast]) -> Forecast:
    members = np.concatenate([one.members for one in forecasts])
    knots = [one.knots for one in forecasts if one.knots is not None]
    shapes = [one.shape for one in forecasts if one.shape is not None]
    weights = [one.weights * (len(one.members) / len(members)) for one in forecasts]
    return replace(
        forecasts[0],
        weights=np.concatenate(weights, axis=2),
        means=np.concatenate([one.means for one in forecasts], axis=2),
        variances=np.concatenate([one.variances for one in forecasts], axis=2),
        members=members,
        knots=mean_knots(knots) if knots else None,
        shape=np.mean(shapes, axis=0) if shapes else None,
    )


def score(scored: Scored, cell: Cell) -> dict[str, Any]:
    """Return the scores of one forecaster in units of the target.

    ``rmse`` and ``mae_mean`` of the mean, ``mae`` of the median, ``crps``, ``coverage`` of the
    90 % interval, ``worst_month`` the least coverage of a month, ``skill`` against persistence,
    ``valid_rmse``; with several steps ahead ``rmse_by_step``.
    """
    test = scored.test
    month = worst_month(scored, cell)  # first: the interval it needs serves the coverage too
    found = test.score(part="all")
    result: dict[str, Any] = {
        name: float(found[name]) for name in ("rmse", "mae", "mae_mean", "crps", "coverage")
    }
    result["worst_month"] = month
    reference = references(scored, cell)["persistence"]["rmse"]
    result["skill"] = metrics.skill(result["rmse"], reference)
    errors = scored.validation.members.mean(axis=0) - scored.validation.actual
    result["valid_rmse"] = float(np.sqrt(np.mean(errors**2)))
    if test.horizon > 1:
        by_step = np.sqrt(np.mean((test.members.mean(axis=0) - test.actual) ** 2, axis=0))
        result["rmse_by_step"] = [float(value) for value in by_step]
    return result


def worst_month(scored: Scored, cell: Cell) -> float | None:
    """Return the least coverage of any month with enough rows; None where times are not dates."""
    if not isinstance(cell.times, pd.DatetimeIndex):
        return None
    low, high = scored.test.interval(0.9)
    actual, H = scored.test.actual, scored.test.horizon
    inside = (low.to_numpy().reshape(-1, H) <= actual) & (actual <= high.to_numpy().reshape(-1, H))
    times = cell.times[scored.rows]
    covered = (
        pd.Series(inside.mean(axis=1)).groupby([times.year, times.month]).agg(["mean", "size"])
    )
    enough = covered.loc[covered["size"] >= LEAST_OF_A_MONTH, "mean"]
    return float(enough.min()) if len(enough) else None


def references(scored: Scored, cell: Cell) -> dict[str, Any]:
    """Return the errors of persistence, and of the best possible forecast where it is known."""
    actual = scored.test.actual
    last = np.broadcast_to(cell.series[scored.rows - 1][:, None], actual.shape)
    found: dict[str, Any] = {"persistence": _pair(actual, last), "oracle": None}
    if cell.truth is not None and cell.truth.oracle is not None and actual.shape[1] == 1:
        found["oracle"] = _pair(actual, cell.truth.oracle[scored.rows][:, None])
    return found


def _pair(actual: FloatArray, predicted: FloatArray) -> dict[str, float]:
    return {"rmse": metrics.rmse(actual, predicted), "mae": metrics.mae(actual, predicted)}
