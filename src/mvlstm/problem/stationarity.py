"""Is a series stationary? Two tests, the rule that follows from them, and differencing undone.

The unit-root test (ADF) and the stationarity test (KPSS) have opposite null hypotheses. Only
when both speak for a unit root is a series differenced; where they disagree it is left alone and
the conflict is reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mvlstm.errors import MissingExtraError, ParameterError

Verdict = Literal[
    "stationary", "unit root", "difference-stationary", "trend-stationary", "constant"
]

LEVEL = 0.05
MAX_ORDER = 2
MOST_ROWS = 50_000
_LEAST_ROWS = 20
UNIT_ROOT_T = -2.86  # below which `unit_root_t` rejects a unit root, 5 %


@dataclass(frozen=True)
class StationarityTest:
    """Outcome of both tests on one series.

    Parameters
    ----------
    name : str
    order : int
        How often the series had been differenced before the test.
    adf_pvalue, kpss_pvalue : float
        NaN for a constant series. The KPSS value is clipped to [0.01, 0.1] by its tables.
    verdict : str
        "stationary"; "unit root" (difference it); "difference-stationary" or "trend-stationary"
        (the tests conflict, leave it); "constant".
    """

    name: str
    order: int
    adf_pvalue: float
    kpss_pvalue: float
    verdict: Verdict

    def __str__(self) -> str:
        """Describe the outcome in one sentence."""
        times = ("", " differenced once", " differenced twice")[min(self.order, 2)]
        return (
            f"'{self.name}'{times}: {self.verdict} "
            f"(ADF p = {self.adf_pvalue:.3g}, KPSS p = {self.kpss_pvalue:.3g})."
        )


@dataclass(frozen=True)
class Differencing:
    """How often each column is to be differenced, and the tests that led to it.

    Parameters
    ----------
    columns : tuple of str
    orders : tuple of int
        One order (0, 1 or 2) a column.
    tests : tuple of StationarityTest
        Every test made, in order.
    """

    columns: tuple[str, ...]
    orders: tuple[int, ...]
    tests: tuple[StationarityTest, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was differenced and where the tests disagree."""
        silent = ("stationary", "constant")
        return tuple(str(test) for test in self.tests if test.verdict not in silent)


def test_stationarity(
    series: NDArray[np.float64], *, name: str = "series", order: int = 0
) -> StationarityTest:
    """Test one series for a unit root (ADF) and for stationarity around a level (KPSS).

    ADF uses a constant and lags chosen by AIC; KPSS a constant and automatic lags; both at 5 %.

    ===========  ============  ================================  ====================
    ADF p<0.05   KPSS p>0.05   verdict                           action
    ===========  ============  ================================  ====================
    yes          yes           stationary                        none
    no           no            unit root                         difference, re-test
    yes          no            difference-stationary (conflict)  none
    no           yes           trend-stationary (conflict)       none
    ===========  ============  ================================  ====================

    Parameters
    ----------
    series : float array, (rows,)
        Training rows only; of more than 50,000 the latest 50,000 are tested.
    name : str
    order : int
        How often the series has been differenced already, for the record.

    Raises
    ------
    MissingExtraError
        If statsmodels is not installed.
    ParameterError
        If there are too few rows to test.
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or len(values) < _LEAST_ROWS:
        raise ParameterError(
            f"Testing '{name}' for stationarity needs at least {_LEAST_ROWS} rows in one "
            f"dimension, not shape {values.shape}. Supply more rows, or use difference='none'."
        )
    values = values[-MOST_ROWS:]
    if values.min() == values.max():
        return StationarityTest(name, order, float("nan"), float("nan"), "constant")
    adf, kpss = _pvalues(values / np.abs(values).max())
    verdicts: dict[tuple[bool, bool], Verdict] = {
        (True, True): "stationary",
        (False, False): "unit root",
        (True, False): "difference-stationary",
        (False, True): "trend-stationary",
    }
    return StationarityTest(name, order, adf, kpss, verdicts[adf < LEVEL, kpss > LEVEL])


def _pvalues(values: NDArray[np.float64]) -> tuple[float, float]:
    try:
        from statsmodels.tsa.stattools import adfuller, kpss
    except ImportError as error:
        raise MissingExtraError(
            "The stationarity tests need statsmodels: pip install 'mvlstm[baselines]'."
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # KPSS tables end at 0.01 and 0.1
        results = (
            adfuller(values, regression="c", maxlag=_best_lag(values), autolag=None),
            kpss(values, regression="c", nlags="auto"),
        )
    adf_value, kpss_value = (_pvalue(result) for result in results)
    return adf_value, kpss_value


def _best_lag(values: NDArray[np.float64]) -> int:
    """Choose the number of lags of the ADF regression by AIC, as ``autolag="AIC"`` does.

    The candidate regressions are nested, so one triangular factor holds the residual sum of
    squares of them all; statsmodels fits each anew, which takes minutes on a long series.
    """
    n_rows = len(values)
    most = min(int(np.ceil(12.0 * (n_rows / 100.0) ** 0.25)), n_rows // 2 - 2)
    change = np.diff(values)
    lagged = sliding_window_view(change, most + 1)[:, ::-1]  # the change itself, then its lags
    used = len(lagged)
    level = values[-used - 1 : -1]
    columns = [np.ones(used), level, *lagged[:, 1:].T, lagged[:, 0]]
    factor: NDArray[np.float64] = np.asarray(np.linalg.qr(np.column_stack(columns), mode="r"))
    explained = factor[:, -1] ** 2  # by each column in turn; what is left comes last
    left = np.cumsum(explained[::-1])[::-1][2:]  # after the constant and the level, then each lag
    count = np.arange(2, 2 + len(left))
    aic = used * np.log(np.maximum(left, np.finfo(np.float64).tiny)) + 2 * count
    return int(np.argmin(aic))


def _pvalue(result: Any) -> float:
    """Read the p-value of a result object (statsmodels from 0.15) or a tuple (before)."""
    value = getattr(result, "pvalue", None)
    return float(result[1] if value is None else value)


def choose_differencing(
    values: NDArray[np.float64],
    columns: Sequence[str],
    *,
    segments: NDArray[np.int64] | None = None,
    max_order: int = MAX_ORDER,
) -> Differencing:
    """Choose how often each column is differenced: while both tests see a unit root.

    Differences too few to be tested, fewer than 20, are not differenced again.

    Parameters
    ----------
    values : float array, (rows, columns)
        Training rows only.
    columns : sequence of str
    segments : int array, (rows,), optional
        Differences that reach from one segment into the next are left out.
    max_order : int
        Most differences taken, at most 2.
    """
    values = np.asarray(values, dtype=np.float64)
    orders = []
    tests: list[StationarityTest] = []
    for j, name in enumerate(columns):
        series, order = values[:, j], 0
        while order == 0 or len(series) >= _LEAST_ROWS:
            tests.append(test_stationarity(series, name=name, order=order))
            if tests[-1].verdict != "unit root" or order == max_order:
                break
            order += 1
            series = within_segments(values[:, j], order, segments)
        orders.append(order)
    return Differencing(tuple(columns), tuple(orders), tuple(tests))


def within_segments(
    series: NDArray[np.float64], order: int, segments: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the differences of a series, less those that reach from one segment into the next.

    Examples
    --------
    >>> within_segments(np.array([1.0, 3.0, 90.0, 94.0]), 1, np.array([0, 0, 1, 1]))
    array([2., 4.])
    """
    found = np.diff(series, n=order)
    return found if segments is None else found[segments[order:] == segments[: len(found)]]


def difference(values: NDArray[np.float64], orders: Sequence[int]) -> NDArray[np.float64]:
    """Difference each column as often as its order says.

    The first ``max(orders)`` rows of all columns are dropped, so that rows stay aligned:
    row i of the result belongs to row i + max(orders) of ``values``.

    Parameters
    ----------
    values : float array, (rows, columns)
    orders : sequence of int
    """
    lost = _check_orders(values, orders)
    result = np.empty((len(values) - lost, values.shape[1]))
    for j, order in enumerate(orders):
        result[:, j] = np.diff(values[:, j], n=order)[lost - order :]
    return result


def undifference(
    differences: NDArray[np.float64], history: NDArray[np.float64], order: int
) -> NDArray[np.float64]:
    """Undo differencing along the last axis, given the values just before.

    For order 1, ``y[h] = y[h-1] + d[h]`` started from the last value known; for order 2 the same
    twice. The same function turns forecasts of differences into forecasts of the target.

    Parameters
    ----------
    differences : float array, (..., H)
        Differences of the steps 1 .. H.
    history : float array, (..., at least order)
        Original values up to the step before, newest last.
    order : int

    Returns
    -------
    float array, (..., H)
        Original values of the steps 1 .. H.

    Examples
    --------
    >>> undifference(np.array([1.0, 2.0]), np.array([10.0]), 1)
    array([11., 13.])
    """
    if order == 0:
        return np.array(differences, dtype=np.float64)
    history = np.asarray(history, dtype=np.float64)
    if history.shape[-1] < order:
        raise ParameterError(
            f"Undoing differences of order {order} needs the last {order} values, "
            f"not {history.shape[-1]}."
        )
    lower = undifference(differences, np.diff(history), order - 1)
    return history[..., -1:] + np.cumsum(lower, axis=-1)


def restore(
    differences: NDArray[np.float64], start: NDArray[np.float64], orders: Sequence[int]
) -> NDArray[np.float64]:
    """Undo `difference` for a whole table.

    Parameters
    ----------
    differences : float array, (rows - max(orders), columns)
    start : float array, (max(orders), columns)
        The first rows of the original.
    orders : sequence of int

    Returns
    -------
    float array, (rows, columns)
    """
    lost = max(orders, default=0)
    body = np.empty((len(differences), differences.shape[1]))
    for j, order in enumerate(orders):
        body[:, j] = undifference(differences[:, j], start[:lost, j], order)
    return np.vstack([start[:lost], body])


def _check_orders(values: NDArray[np.float64], orders: Sequence[int]) -> int:
    """Check one order of 0, 1 or 2 a column and return the largest."""
    if len(orders) != values.shape[1] or any(order not in range(MAX_ORDER + 1) for order in orders):
        raise ParameterError(
            f"orders={tuple(orders)!r} must give 0, 1 or 2 for each of {values.shape[1]} columns."
        )
    return max(orders, default=0)


def unit_root_t(past: NDArray[np.floating], after: NDArray[np.floating]) -> float:
    r"""Return the t-value of b in the regression of Dickey and Fuller, over windows.

    .. math::
        y_{t+1} - y_t = a + b\, y_t + \sum_i c_i (y_{t+1-i} - y_{t-i})

    It serves windows that do not follow one another, and needs nothing but numpy. It is 0, which
    rejects nothing, where the windows are too few to tell, or all alike.

    Parameters
    ----------
    past : (M, T)
        Windows of the series, oldest first; each of their T - 1 differences is a term.
    after : (M,)
        What came after each.
    """
    y = np.asarray(past, dtype=np.float64)
    rise = np.asarray(after, dtype=np.float64) - y[:, -1]
    x = np.column_stack([y[:, -1], np.ones(len(y)), np.diff(y, axis=1)])
    freedom = len(y) - x.shape[1]
    if freedom <= 0:
        return 0.0
    b, *_ = np.linalg.lstsq(x, rise, rcond=None)
    left = rise - x @ b
    deviation = np.sqrt(np.linalg.pinv(x.T @ x)[0, 0] * (left @ left) / freedom)
    return float(b[0] / deviation) if deviation > 0 else 0.0
