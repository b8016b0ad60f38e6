"""Granger's tests: whether a variable's past helps a linear model of the target."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mvlstm.errors import MissingExtraError
from mvlstm.metrics import holm
from mvlstm.types import BoolArray, FloatArray, IntArray

MOST_LAGS = 10
ROWS_EACH = 3  # rows for each coefficient at least, where gaps leave a stretch of them
SIGNIFICANCE = 0.01


def difference(values: FloatArray, orders: Sequence[int]) -> FloatArray:
    """Difference each column of ``values`` (rows, columns) as often as its order says.

    The first ``max(orders)`` rows of all columns are dropped, so that rows stay aligned.
    """
    lost = max(orders, default=0)
    found = [np.diff(x, n=order)[lost - order :] for x, order in zip(values.T, orders, strict=True)]
    return np.column_stack(found)


def fewest_rows(columns: int) -> int:
    """Return how many rows without a gap the tests of this many columns need."""
    return ROWS_EACH * (1 + MOST_LAGS * columns)


def longest_stretch(segments: IntArray, measured: BoolArray | None = None) -> slice:
    """Return the longest stretch of rows of one segment whose targets were all measured."""
    whole = segments[1:] == segments[:-1]
    if measured is not None:
        whole &= measured[1:] & measured[:-1]
    borders = np.flatnonzero(~np.r_[False, whole, False])
    longest = int(np.argmax(np.diff(borders)))
    return slice(int(borders[longest]), int(borders[longest + 1]))


def granger_tests(series: FloatArray) -> dict[str, Any]:
    """Return p-values of both tests for every column but the last, the target.

    ``conditional`` is the Wald test in a vector autoregression of all series with as many lags as
    Akaike's criterion chooses; ``pairwise`` the F-test in a regression on the target's and one
    variable's past; ``gain`` the share of the target's remaining variance that the variable's
    past explains in addition to all others.
    """
    try:
        from statsmodels.tsa.api import VAR
    except ImportError as error:
        raise MissingExtraError(
            "Granger tests need statsmodels, which is not installed. "
            'Install the extra: pip install "mvlstm[baselines]".'
        ) from error
    n = series.shape[1] - 1
    with warnings.catch_warnings(action="ignore"):
        model = VAR(series)
        lags = max(1, int(model.select_order(MOST_LAGS).aic))
        fitted = model.fit(lags)
        conditional = [
            float(fitted.test_causality(n, [k], kind="wald", signif=SIGNIFICANCE).pvalue)
            for k in range(n)
        ]
    pairwise = [_pair(series[:, -1], series[:, k], lags) for k in range(n)]
    adjusted, adjusted_pair = holm(conditional), holm(pairwise)
    return {
        "lags": lags,
        "columns": {
            "conditional_p": conditional,
            "pairwise_p": pairwise,
            "conditional": [bool(p < SIGNIFICANCE) for p in adjusted],
            "pairwise": [bool(p < SIGNIFICANCE) for p in adjusted_pair],
            "gain": _gains(series, lags),
        },
    }


def _design(series: FloatArray, lags: int) -> FloatArray:
    """Return the regressors (rows, 1 + lags * columns): a constant and every column's past."""
    rows = len(series) - lags
    past = [series[lags - lag : lags - lag + rows] for lag in range(1, lags + 1)]
    return np.hstack([np.ones((rows, 1)), *past])


def _residual(X: FloatArray, y: FloatArray) -> float:
    """Return the sum of squared residuals of least squares."""
    weights = np.linalg.lstsq(X, y, rcond=None)[0]
    return float(np.sum((y - X @ weights) ** 2))


def _pair(y: FloatArray, x: FloatArray, lags: int) -> float:
    """Return the p-value of the F-test that x's past does not help y's own past."""
    from scipy.stats import f as f_distribution

    label = y[lags:]
    own = _residual(_design(y[:, None], lags), label)
    both = _residual(_design(np.stack([y, x], axis=1), lags), label)
    free = len(label) - 2 * lags - 1
    if free < 1 or both <= 0:
        return 1.0
    return float(f_distribution.sf((own - both) / lags / (both / free), lags, free))


def _gains(series: FloatArray, lags: int) -> list[float]:
    """Return each variable's partial R squared."""
    label, n = series[lags:, -1], series.shape[1] - 1
    whole = _residual(_design(series, lags), label)
    without = [_residual(_design(np.delete(series, k, axis=1), lags), label) for k in range(n)]
    return [1.0 - whole / rest if rest > 0 else 0.0 for rest in without]
