r"""The linear map behind ``link="linear"``: few lags, little moved by outliers.

Ridge regression on every lag of every variable spends a coefficient where none is needed and lets
a few extreme labels bend the whole map. Here the number of lags and the penalty are chosen on the
stopping windows, and the coefficients then minimise Huber's loss,

.. math::
    \sum_m \rho\big((y_m - x_m \cdot w - b) / s\big) + \lambda \|w\|^2 ,

quadratic for residuals within 1.345 robust standard deviations s and linear beyond, by weighted
least squares repeated until it settles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mvlstm.forecasters.ridge import PENALTIES, Moments, Part, Ridge, most_lags, squared_errors

FloatArray = NDArray[np.float64]

LAGS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100)  # numbers of lags tried, and the whole window
HUBER = 1.345  # robust standard deviations beyond which a residual counts linearly
ROUNDS = 8
SETTLED = 1e-3  # change of the residuals, in robust standard deviations


def fit_robust(table: NDArray[np.floating], window: int, train: Part, choose: Part) -> Ridge:
    """Choose lags and penalties on ``choose``, then fit them to ``train`` by Huber's loss.

    Parameters
    ----------
    table : (rows, C), scaled
    window : int
    train, choose : (origins, labels)
        Rows (M,) at which windows end, and labels (M, H).
    """
    lags, penalties = _choose(table, window, train, choose)
    return refit_robust(table, lags, penalties, train)


def refit_robust(
    table: NDArray[np.floating], lags: int, penalties: FloatArray, train: Part
) -> Ridge:
    """Fit given lags with given penalties (H,) to ``train`` by Huber's loss."""
    origins, y = train
    steps = [
        _huber(table, lags, float(penalty), (origins, y[:, h : h + 1]))
        for h, penalty in enumerate(penalties)
    ]
    return Ridge(
        np.concatenate([step.weights for step in steps], axis=-1),
        np.concatenate([step.intercept for step in steps]),
        np.asarray(penalties, dtype=np.float64),
    )


def _choose(
    table: NDArray[np.floating], window: int, train: Part, choose: Part
) -> tuple[int, FloatArray]:
    """Return the number of lags and the penalties (H,) of least squared error on ``choose``."""
    C = table.shape[1]
    most = most_lags(window, C)
    candidates = [lags for lags in LAGS if lags < most] + [most]
    moments = Moments.gather(table, most, train)
    errors = []
    for lags in candidates:
        own = moments.latest(lags * C)
        errors.append(squared_errors(own.path(PENALTIES), own, table, choose, lags))
    error = np.stack(errors)  # (lags, penalties, H)
    tiny = np.finfo(np.float64).tiny
    best = int(np.log(error.min(axis=1) + tiny).sum(axis=1).argmin())
    return candidates[best], np.asarray(PENALTIES)[error[best].argmin(axis=0)]


def _huber(table: NDArray[np.floating], lags: int, penalty: float, part: Part) -> Ridge:
    """Fit one step ahead, labels (M, 1), starting from ridge regression."""
    origins, y = part
    weights: FloatArray | None = None
    residual = np.full(len(origins), np.inf)
    for _ in range(1 + ROUNDS):
        moments = Moments.gather(table, lags, part, weights)
        slope = moments.path((penalty,))[0]  # (p, 1)
        shape = (lags, table.shape[1], 1)
        fitted = Ridge(slope.reshape(shape), moments.y - moments.x @ slope, np.array([penalty]))
        before, residual = residual, (y - fitted.rows(table, origins))[:, 0]
        scale = 1.4826 * float(np.median(np.abs(residual)))
        if scale == 0 or np.abs(residual - before).max() < SETTLED * scale:
            break
        weights = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residual), scale * 1e-6))
    return fitted
