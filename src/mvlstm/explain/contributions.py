r"""Contributions of variables and lags to single forecasts, which add up.

Integrated gradients against a background: with background windows :math:`b` and a forecast
:math:`f`,

.. math::
    \phi_{t,c}(x) = \operatorname{mean}_b (x_{t,c} - b_{t,c}) \int_0^1
    \frac{\partial f}{\partial x_{t,c}}\bigl(b + \alpha (x - b)\bigr) d\alpha,
    \qquad \sum_{t,c} \phi_{t,c}(x) = f(x) - \operatorname{mean}_b f(b).

For a linear forecast this is exact: coefficient times distance from the mean background.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Gradient = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the gradient of the forecast's mean (m, H, T, C)."""
Forecast = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the forecast's mean (m, H)."""

NODES = 6  # points of the quadrature at first
MOST_NODES = 96  # at most; a steep network may still miss a little


def integrated_gradients(
    gradient: Gradient,
    forecast: Forecast,
    windows: FloatArray,
    background: FloatArray,
    *,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return contributions that add up to forecast minus mean background forecast.

    The integral is a Gauss-Legendre sum. Windows whose contributions miss their total by more than
    ``tolerance`` are done again with twice the points, up to a limit; what is missed then is spread
    over the contributions in proportion to their size, so that they add up, and told.

    Parameters
    ----------
    gradient, forecast : callable
        See `Gradient` and `Forecast`.
    windows : (M, T, C)
    background : (B, T, C)
    tolerance : float
        Largest difference between a window's sum and its total, in units of the forecast.

    Returns
    -------
    contributions : (M, H, T, C)
    missed : (M,)
        How far the integral alone was from the total before the rest was spread.
    """
    total = forecast(windows) - forecast(background).mean(axis=0)  # (M, H)
    result = np.zeros((len(windows), total.shape[1], *windows.shape[1:]))
    missed = np.zeros(len(windows))
    open_rows = np.arange(len(windows))
    nodes = NODES
    while len(open_rows) and nodes <= MOST_NODES:
        result[open_rows] = _quadrature(gradient, windows[open_rows], background, nodes)
        gap = result[open_rows].sum(axis=(2, 3)) - total[open_rows]
        missed[open_rows] = np.abs(gap).max(axis=1)
        open_rows = open_rows[missed[open_rows] > tolerance]
        nodes *= 2
    return _completed(result, total), missed


def _completed(result: FloatArray, total: FloatArray) -> FloatArray:
    """Spread what the quadrature missed over the contributions, in proportion to their size."""
    missed = total - result.sum(axis=(2, 3))  # (M, H)
    size = np.abs(result)
    whole = np.maximum(size.sum(axis=(2, 3)), np.finfo(np.float64).tiny)
    return np.asarray(result + size * (missed / whole)[..., None, None])


def _quadrature(
    gradient: Gradient, windows: FloatArray, background: FloatArray, nodes: int
) -> FloatArray:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points, weights = (points + 1) / 2, weights / 2  # from [-1, 1] to [0, 1]
    result: FloatArray | float = 0.0
    for start in background:
        distance = windows - start  # (M, T, C)
        path = start + points[:, None, None, None] * distance  # (nodes, M, T, C)
        slopes = gradient(path.reshape(-1, *distance.shape[1:]))  # all nodes in one go
        slope = np.tensordot(weights, slopes.reshape(nodes, len(windows), *slopes.shape[1:]), 1)
        result = result + slope * distance[:, None] / len(background)
    return np.asarray(result)
