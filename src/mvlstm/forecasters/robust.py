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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.data.windows import iterate_windows
from mvlstm.forecasters.ridge import MOST_FEATURES, PENALTIES, Ridge

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Part = tuple[IntArray, FloatArray]  # rows (M,) at which windows end, and labels (M, H)

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


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over windows, from which least squares of any penalty and lags follow.

    Shapes
    ------
    x : (p,), y : (H,) means
    xx : (p, p), xy : (p, H) sums of products about the means; features oldest lag first
    """

    x: FloatArray
    y: FloatArray
    xx: FloatArray
    xy: FloatArray

    @classmethod
    def gather(
        cls,
        table: NDArray[np.floating],
        lags: int,
        part: Part,
        weights: FloatArray | None = None,
    ) -> Moments:
        """Add up one part's windows, piece by piece; ``weights`` (M,) are one by default."""
        origins, y = part
        p = lags * table.shape[1]
        xx, xy = np.zeros((p, p)), np.zeros((p, y.shape[1]))
        x_sum, y_sum, total, done = np.zeros(p), np.zeros(y.shape[1]), 0.0, 0
        for rows, windows in iterate_windows(table, origins, lags):
            X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
            here = slice(done, done + len(rows))
            w = np.ones(len(rows)) if weights is None else weights[here]
            weighted = X * w[:, None]
            xx += weighted.T @ X
            xy += weighted.T @ y[here]
            x_sum += weighted.sum(axis=0)
            y_sum += w @ y[here]
            total += float(w.sum())
            done += len(rows)
        x_mean, y_mean = x_sum / total, y_sum / total
        xx -= total * np.outer(x_mean, x_mean)
        xy -= total * np.outer(x_mean, y_mean)
        return cls(x_mean, y_mean, xx, xy)

    def latest(self, features: int) -> Moments:
        """Return the moments of the last ``features`` features, those of the latest lags."""
        last = slice(len(self.x) - features, None)
        return Moments(self.x[last], self.y, self.xx[last, last], self.xy[last])

    def path(self, penalties: tuple[float, ...]) -> FloatArray:
        """Return the weights (penalties, p, H) of ridge regression for every penalty."""
        values, vectors = np.linalg.eigh(self.xx)
        rotated = vectors.T @ self.xy
        values = np.maximum(values, 0.0)[:, None]
        return np.stack([vectors @ (rotated / (values + penalty)) for penalty in penalties])


def _choose(
    table: NDArray[np.floating], window: int, train: Part, choose: Part
) -> tuple[int, FloatArray]:
    """Return the number of lags and the penalties (H,) of least squared error on ``choose``."""
    C = table.shape[1]
    most = max(1, min(window, MOST_FEATURES // C))
    candidates = [lags for lags in LAGS if lags < most] + [most]
    moments = Moments.gather(table, most, train)
    errors = []
    for lags in candidates:
        own = moments.latest(lags * C)
        errors.append(_errors(own.path(PENALTIES), own, table, choose, lags))
    error = np.stack(errors)  # (lags, penalties, H)
    tiny = np.finfo(np.float64).tiny
    best = int(np.log(error.min(axis=1) + tiny).sum(axis=1).argmin())
    return candidates[best], np.asarray(PENALTIES)[error[best].argmin(axis=0)]


def _errors(
    path: FloatArray, moments: Moments, table: NDArray[np.floating], choose: Part, lags: int
) -> FloatArray:
    """Return the squared errors (penalties, H) on the stopping windows, added up."""
    origins, y = choose
    n, p, H = path.shape
    joined = np.moveaxis(path, 0, 1).reshape(p, n * H)
    shift = moments.y - moments.x @ path  # (penalties, H)
    sums, done = np.zeros((n, H)), 0
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), p).astype(np.float64, copy=False)
        guess = (X @ joined).reshape(len(rows), n, H) + shift
        sums += ((guess - y[done : done + len(rows), None]) ** 2).sum(axis=0)
        done += len(rows)
    return sums


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
