"""What forecasts hold: predictive distributions by origin and step, with dates and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm._words import quantile_name
from mvlstm.errors import ParameterError
from mvlstm.recalibration import LEVELS, ScoreMap
from mvlstm.results._tables import Drawable, time_index
from mvlstm.results.distribution import Distribution, Later
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import FloatArray, Kind

BY_ORIGIN = ("time", "weights", "means", "variances", "part", "actual")  # arrays (M, H, ...)
TINY = np.finfo(np.float64).tiny ** 0.5  # of a deviation
P = TypeVar("P", bound="Predictions")


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Drawable):
    """The fields of a `Forecast`, which describes them, and what they say origin by origin."""

    origin: pd.Index[Any]
    time: NDArray[Any]
    target: str
    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    members: FloatArray
    part: NDArray[np.str_]
    actual: FloatArray
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    transform: Transform = IDENTITY
    series: NDArray[Any] | None = None
    knots: Later[ScoreMap] | None = None
    shape: FloatArray | None = None
    dependence: FloatArray | None = None
    shared: float = 1.0
    tied: Later[FloatArray] | None = None
    kind: Kind = "pandas"
    _quantiles: dict[float, FloatArray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        rows = (len(self.origin), self.time.shape[1] if self.time.ndim == 2 else -1)
        shapes = {name: getattr(self, name).shape[:2] for name in BY_ORIGIN}
        shapes["members"] = self.members.shape[1:]
        wrong = {name: shape for name, shape in shapes.items() if shape != rows}
        assert not wrong, f"Forecast of {rows} (origins, steps) got leading shapes {wrong}"

    # ------------------------------------------------------------------------------ values

    @property
    def horizon(self) -> int:
        """Number of steps ahead H."""
        return int(self.time.shape[1])

    @property
    def index(self) -> pd.Index[Any]:
        """Index of every answer: the time for one step ahead, else (origin, step).

        Where there are several series, their name comes first.
        """
        m, h = self.time.shape
        levels: dict[str, Any] = {} if self.series is None else {"series": self.series.repeat(h)}
        if h == 1:
            times = time_index(self.time[:, 0], self.origin)
            if not levels:
                return times
            levels["time"] = times
        else:
            levels |= {"origin": self.origin.repeat(h), "step": np.tile(np.arange(1, h + 1), m)}
        return pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))

    @property
    def distribution(self) -> Distribution:
        """The calibrated predictive distributions (M, H)."""
        mixture = self.weights, self.means, self.variances
        knots = None if self.knots is None else self.knots.found
        if knots is None and self.shape is not None:
            knots = ScoreMap.fixed(self.shape, len(self))
        return Distribution(*mixture, self.transform, knots)

    @property
    def mean(self) -> pd.Series[float]:
        """Point forecast: the mean of the members."""
        return self._series(self.members.mean(axis=0), "mean")

    @property
    def median(self) -> pd.Series[float]:
        """Median of the predictive distribution."""
        return self._series(self._quantile(0.5), "median")

    @property
    def variance(self) -> pd.Series[float]:
        """Variance of the predictive distribution."""
        return self._series(self.distribution.variance(), "variance")

    def quantile(self, q: float) -> pd.Series[float]:
        """Quantile ``q`` (between 0 and 1) of the predictive distribution."""
        check_number("q", q)
        return self._series(self._quantile(q), quantile_name(q))

    def interval(self, level: float = 0.9) -> tuple[pd.Series[float], pd.Series[float]]:
        """Central interval that should hold the value with probability ``level``."""
        check_number("level", level)
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level={level!r} must lie strictly between 0 and 1, such as 0.9.")
        tail = round(0.5 * (1.0 - level), 12)
        low, high = self._quantile(tail), self._quantile(round(1.0 - tail, 12))
        return self._series(low, "low"), self._series(high, "high")

    def crps(self) -> pd.Series[float]:
        """Continuous ranked probability score of every row; NaN where ``actual`` is unknown."""
        return self._series(self.distribution.crps(self.actual), "crps")

    def pit(self) -> pd.Series[float]:
        """Probability the forecast gave to values up to the actual one; uniform if calibrated."""
        return self._series(self.distribution.pit(self.actual), "pit")

    # ------------------------------------------------------------------------------ fewer and more

    def take(self, rows: slice | NDArray[Any]) -> Self:
        """Forecast of some origins only, chosen by position or mask."""
        rows = _as_slice(rows)
        return replace(
            self,
            origin=self.origin[rows],
            members=self.members[:, rows],
            series=None if self.series is None else self.series[rows],
            knots=None if self.knots is None else self.knots[rows],
            tied=None if self.tied is None else self.tied[rows],
            **{name: getattr(self, name)[rows] for name in BY_ORIGIN},
        )

    def first(self, steps: int) -> Self:
        """Forecast of the first ``steps`` ahead only."""
        dependence = self.dependence
        return replace(
            self,
            members=self.members[:, :, :steps],
            knots=None if self.knots is None else self.knots[:, :steps],
            shape=None if self.shape is None else self.shape[:steps],
            dependence=None if dependence is None else dependence[:steps, :steps],
            **{name: getattr(self, name)[:, :steps] for name in BY_ORIGIN},
        )

    @classmethod
    def join(cls, forecasts: Sequence[Self]) -> Self:
        """Put forecasts of one target one after another, on the scale of the first."""
        first = forecasts[0]
        if len(forecasts) == 1:
            return first
        forecasts = [_on_scale(one, first.transform) for one in forecasts]
        names = [*BY_ORIGIN, *(["series"] if first.series is not None else [])]
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in forecasts]) for name in names
        }
        if any(one.knots is not None or one.shape is not first.shape for one in forecasts):
            parts["knots"] = Later(partial(_joined_knots, tuple(forecasts)))
        if any(one.tied is not None for one in forecasts):
            parts["tied"] = Later(partial(_joined_ties, tuple(forecasts)))
        origin = first.origin.append([one.origin for one in forecasts[1:]])
        members = np.concatenate([one.members for one in forecasts], axis=1)
        return replace(first, origin=origin, members=members, **parts)

    def __len__(self) -> int:
        return len(self.origin)

    # ------------------------------------------------------------------------------ inner parts

    def _quantile(self, q: float) -> FloatArray:
        if q not in self._quantiles:
            self._quantiles[q] = self.distribution.quantile(q)
        return self._quantiles[q]

    def _series(self, values: FloatArray, name: str) -> pd.Series[float]:
        return pd.Series(values.reshape(-1), index=self.index, name=name)


def _as_slice(rows: slice | NDArray[Any]) -> slice | NDArray[Any]:
    """Return a mask of rows next to one another as a slice, which takes them without a copy."""
    if isinstance(rows, slice) or rows.dtype != bool or not rows.any():
        return rows
    first, end = int(rows.argmax()), len(rows) - int(rows[::-1].argmax())
    return slice(first, end) if rows[first:end].all() else rows


def _on_scale(forecast: P, transform: Transform) -> P:
    """Return the forecast with its mixture on another scale, and the same quantiles of `LEVELS`."""
    if forecast.transform == transform:
        return forecast

    def moved(values: FloatArray) -> FloatArray:
        return transform.forward(forecast.transform.inverse(values))

    means, spread = forecast.means, np.sqrt(forecast.variances)
    wide = np.maximum(moved(means + spread) - moved(means - spread), TINY) / 2.0
    found = replace(forecast, means=moved(means), variances=wide**2, transform=transform)
    return replace(found, knots=Later(partial(_moved_knots, forecast, found)))


def _moved_knots(forecast: Predictions, found: Predictions) -> ScoreMap:
    """Return where the quantiles of a forecast lie among the normal scores of another's mixture."""
    mixture = found.weights, found.means, found.variances
    values = (found.transform.forward(forecast.distribution.quantile(q)) for q in LEVELS.tolist())
    scores = [metrics.mixture_score(*mixture, value) for value in values]
    return ScoreMap.of(np.stack(scores, axis=-1))


def _joined_knots(forecasts: Sequence[Predictions]) -> ScoreMap:
    values = np.concatenate([one.distribution.table[..., 1:-1] for one in forecasts])
    return ScoreMap.of(values)


def _joined_ties(forecasts: Sequence[Predictions]) -> FloatArray:
    return np.concatenate(
        [np.zeros(len(one)) if one.tied is None else one.tied.found for one in forecasts]
    )


def check_number(name: str, value: object) -> None:
    """Refuse what is not one number, such as a list of levels."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(
            f"{name}={value!r} must be one number strictly between 0 and 1, such as 0.9; for "
            "several, call once for each."
        )
