r"""From the scale a model works on to the target's units, for explanations.

Forecasts, scrambled or not, become what `predict` makes of the same mixtures. Contributions
are found on the model's scale, where they add up to :math:`z - z_0`, and brought over by one factor
for each forecast, the slope :math:`(g(z) - g(z_0)) / (z - z_0)` between background and forecast;
they then add up in the target's units. :math:`g` is the mean of a normal around :math:`z`, of the
variance with which it agrees with `predict` on average over the background windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mvlstm.problem.predictive import Predictive, member_means
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster

DOUBLINGS, HALVINGS = 10, 50  # by which a variance is found
NEAR = 1e-6  # distance from the background below which the slope is the derivative


def unit_transform(model: AbstractForecaster) -> Transform:
    """Return the way back; none for several series, which are explained on their scaled values."""
    preparation = model.preparation_
    return preparation.transform if preparation.series is None else IDENTITY


def member_units(model: AbstractForecaster, predictive: Predictive) -> FloatArray:
    """Return members' forecasts (K, M, H) in the target's units, as `predict` makes them."""
    transform = unit_transform(model)
    if not transform:
        return predictive.members
    weights, means, variances = predictive.mixture(model.spread_)
    variances = variances * (model.calibration_ * model.mean_factor_)[:, None]
    return member_means(transform, weights, means, variances, len(predictive.members))


@dataclass(frozen=True, eq=False)
class MeanUnits:
    """The map from the members' mean on the model's scale to their mean in the target's units.

    Parameters
    ----------
    transform : Transform
    variance : (H,)
        Of the normal around a forecast. With it, the forecasts of a model's background windows
        are on average those that `predict` makes of these windows.
    """

    transform: Transform
    variance: FloatArray

    @classmethod
    def of(cls, model: AbstractForecaster) -> MeanUnits:
        """Find the variance on the model's background windows."""
        transform = unit_transform(model)
        if not transform:
            return cls(transform, np.zeros(model.horizon))
        windows = model.background_.astype(np.float64)
        found = model._predictive(windows, exact=True).shifted(model.background_baseline_)
        wanted = member_units(model, found).mean(axis=(0, 1))
        return cls(transform, _matching_variance(transform, found.members.mean(axis=0), wanted))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Bring forecasts (..., H) of the members' mean to the target's units."""
        return self.transform.mean(values, self.variance)

    def slopes(self, level: FloatArray, moved: FloatArray) -> FloatArray:
        """Return the slope (M, H) between the background's ``level`` (H,) and level + moved."""
        near = np.abs(moved) < NEAR
        start, end = level - np.where(near, NEAR, 0.0), level + np.where(near, NEAR, moved)
        return np.asarray((self(end) - self(start)) / (end - start))


def _matching_variance(transform: Transform, values: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the variance (H,) with which normals around values (B, H) have the mean wanted (H,).

    The mean grows with the variance, so that halving finds it.
    """

    def short(variance: FloatArray) -> BoolArray:
        return np.asarray(transform.mean(values, variance).mean(axis=0) < wanted)

    low, high = np.zeros(len(wanted)), np.ones(len(wanted))
    for _ in range(DOUBLINGS):
        high = np.where(short(high), 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = short(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def contribution_units(
    units: MeanUnits, parts: FloatArray, level: FloatArray, forecast: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bring contributions to the target's units, so that they lead to the forecast.

    Parameters
    ----------
    units : MeanUnits
    parts : (K, M, H, N, T)
        Members' contributions on the model's scale.
    level : (H,)
        Background on the model's scale.
    forecast : (M, H)
        The forecasts' means in the target's units. What the map of the members' mean leaves of
        them is spread over the contributions in proportion to their size.

    Returns
    -------
    parts : (K, M, H, N, T)
    factor : (M, H)
        By which they were multiplied.
    """
    mean = parts.mean(axis=0)
    moved = mean.sum(axis=(2, 3))  # (M, H)
    factor = units.slopes(level, moved)
    rest = forecast - units(level) - factor * moved
    size = np.abs(mean)
    size[:, :, -1, -1] += np.finfo(np.float64).tiny  # where nothing moved, the last value known
    share = size / size.sum(axis=(2, 3), keepdims=True)
    return parts * factor[..., None, None] + share * rest[..., None, None], factor
