"""How good a model was on held-out rows, to compare with later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm.results._tables import finite_numbers
from mvlstm.results.forecast import Forecast
from mvlstm.types import FloatArray

LEVEL = 0.9  # of the interval whose coverage is measured


@dataclass(frozen=True)
class Reference:
    """Error relative to persistence's, and coverage, on some rows, each with its uncertainty."""

    n: int  # times scored
    ratio: float  # log of the mean squared error over persistence's; skill is 1 - exp(ratio / 2)
    ratio_variance: float  # of sampling, for errors that depend on one another in time
    coverage: float  # share of the values in the 90 % interval
    coverage_variance: float

    @classmethod
    def measure(
        cls, squared: FloatArray, rival: FloatArray, covered: FloatArray, *, horizon: int
    ) -> Reference | None:
        """Measure from one value per time: squared errors, persistence's, and share covered.

        None where there is nothing to compare: too few times, or an error that is zero.
        """
        ours, theirs = float(squared.mean()), float(rival.mean())
        if len(squared) < 3 or not ours > 0 or not theirs > 0:
            return None
        influence = squared / ours - rival / theirs
        return cls(
            n=len(squared),
            ratio=float(np.log(ours / theirs)),
            ratio_variance=metrics.variance_of_mean(influence, horizon=horizon),
            coverage=float(covered.mean()),
            coverage_variance=metrics.variance_of_mean(covered, horizon=horizon),
        )

    @classmethod
    def of_forecast(cls, forecast: Forecast, moves: FloatArray) -> Reference | None:
        """Measure a forecast with known actual values, given persistence's errors (M, H)."""
        errors = forecast.members.mean(axis=0) - forecast.actual
        at = np.asarray(forecast.pit(), dtype=np.float64).reshape(forecast.actual.shape)
        return cls.measure_rows(np.asarray(forecast.origin), errors, moves, at)

    @classmethod
    def measure_rows(
        cls, times: NDArray[Any], errors: FloatArray, moves: FloatArray, at: FloatArray
    ) -> Reference | None:
        """Measure from errors (M, H), persistence's, and probabilities up to the actual values.

        Rows of several series at one of the ``times`` (M,) count as one.
        """
        tail = 0.5 * (1.0 - LEVEL)
        values = pd.DataFrame(
            {
                "ours": (errors**2).mean(axis=1),
                "theirs": (moves**2).mean(axis=1),
                "covered": ((at >= tail) & (at <= 1.0 - tail)).mean(axis=1),
            }
        )
        known = np.isfinite(values["ours"].to_numpy())
        by_time = values[known].groupby(times[known]).mean()
        if by_time.empty:
            return None
        columns = (by_time[name].to_numpy() for name in values)
        return cls.measure(*columns, horizon=errors.shape[1])

    @property
    def skill(self) -> float:
        """Share of persistence's RMSE that is removed."""
        return float(1.0 - np.exp(0.5 * self.ratio))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, read back by `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reference:
        """Build from what `to_dict` returned; raises ValueError where a value cannot be."""
        found = cls(**values)
        if (
            not finite_numbers(values.values())
            or min(found.ratio_variance, found.coverage_variance) < 0
        ):
            raise ValueError(f"the scores of its held-out rows are damaged: {dict(values)}")
        return found
