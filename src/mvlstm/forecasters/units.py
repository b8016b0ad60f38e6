r"""From the scale a model works on to the target's units, for explanations.

A forecast on the model's scale becomes one in the target's units by the mean of a normal around
it, whose variance is the members' squared error on the stopping rows, calibrated. Contributions
are found on the model's scale, where they add up to :math:`z - z_0`, and brought over by one factor
for each forecast, the slope :math:`(g(z) - g(z_0)) / (z - z_0)` of that map :math:`g` between
background and forecast; they then add up in the target's units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mvlstm.results.transform import IDENTITY, Transform

if TYPE_CHECKING:
    from mvlstm.forecasters.base import AbstractForecaster

FloatArray = NDArray[np.float64]
NEAR = 1e-6  # distance from the background below which the slope is the derivative


def member_units(model: AbstractForecaster, members: FloatArray) -> FloatArray:
    """Bring members' forecasts (K, M, H) to the target's units, each with its own spread."""
    return _transform(model).mean(members, (model.spread_ * _share(model))[:, None, :])


def mean_units(model: AbstractForecaster, values: FloatArray) -> FloatArray:
    """Bring forecasts (..., H) of the members' mean to the target's units."""
    return _transform(model).mean(values, model.spread_.mean(axis=0) * _share(model))


def _share(model: AbstractForecaster) -> FloatArray:
    """Return the factor (H,) on a squared error that gives the variance by which means move."""
    return np.asarray(model.calibration_ * model.mean_factor_)


def _transform(model: AbstractForecaster) -> Transform:
    """Return the way back; none for several series, which are explained on their scaled values."""
    preparation = model.preparation_
    return preparation.transform if preparation.series is None else IDENTITY


def slopes(model: AbstractForecaster, level: FloatArray, moved: FloatArray) -> FloatArray:
    """Return the slope (M, H) between the background's ``level`` (H,) and ``level + moved``."""
    near = np.abs(moved) < NEAR
    start, end = level - np.where(near, NEAR, 0.0), level + np.where(near, NEAR, moved)
    return np.asarray((mean_units(model, end) - mean_units(model, start)) / (end - start))


def contribution_units(
    model: AbstractForecaster, parts: FloatArray, level: FloatArray, forecast: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bring contributions to the target's units, so that they lead to the forecast.

    Parameters
    ----------
    model : AbstractForecaster
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
    factor = slopes(model, level, moved)
    rest = forecast - mean_units(model, level) - factor * moved
    size = np.abs(mean)
    size[:, :, -1, -1] += np.finfo(np.float64).tiny  # where nothing moved, the last value known
    share = size / size.sum(axis=(2, 3), keepdims=True)
    return parts * factor[..., None, None] + share * rest[..., None, None], factor
