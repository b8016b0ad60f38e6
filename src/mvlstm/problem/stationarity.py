"""Is a series stationary? Two tests, and the rule that follows from them.

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

from mvlstm.errors import ParameterError, load_extra
from mvlstm.types import FloatArray, IntArray

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
    """Outcome of both tests on one series, which had been differenced ``order`` times before."""

    name: str
    order: int
    adf_pvalue: float  # NaN for a constant series
    kpss_pvalue: float  # the same; clipped to [0.01, 0.1] by its tables
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
    """How often each column is to be differenced (0, 1 or 2), and every test made on the way."""

    orders: tuple[int, ...]
    tests: tuple[StationarityTest, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was differenced and where the tests disagree."""
        silent = ("stationary", "constant")
        return tuple(str(test) for test in self.tests if test.verdict not in silent)


def test_stationarity(
    series: FloatArray, *, name: str = "series", order: int = 0
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

    ``series`` (rows,) holds training rows only; of more than 50,000 the latest 50,000 are tested.
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


def _pvalues(values: FloatArray) -> tuple[float, float]:
    tests = load_extra("statsmodels.tsa.stattools", "A test of stationarity", "baselines")
    with warnings.catch_warnings(action="ignore"):  # KPSS tables end at 0.01 and 0.1
        lag = _best_lag(values)
        root = tests.adfuller(values, regression="c", maxlag=lag, autolag=None)
        return _pvalue(root), _pvalue(tests.kpss(values, regression="c", nlags="auto"))


def _best_lag(values: FloatArray) -> int:
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
    factor = np.asarray(np.linalg.qr(np.column_stack(columns), mode="r"))
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
    values: FloatArray, columns: Sequence[str], *, segments: IntArray | None = None
) -> Differencing:
    """Choose how often each column (rows, columns) is differenced: while both see a unit root.

    ``values`` are those of training rows. Differences that reach from one of the ``segments`` into
    the next are left out; fewer than 20 are too few to be tested, and not differenced again.
    """
    if segments is None:
        segments = np.zeros(len(values), dtype=np.int64)
    orders, tests = [], []
    for j, name in enumerate(columns):
        series, order = np.asarray(values[:, j], dtype=np.float64), 0
        while order == 0 or len(series) >= _LEAST_ROWS:
            tests.append(test_stationarity(series, name=name, order=order))
            if tests[-1].verdict != "unit root" or order == MAX_ORDER:
                break
            order += 1
            series = np.diff(values[:, j], n=order)
            series = series[segments[order:] == segments[: len(series)]]
        orders.append(order)
    return Differencing(tuple(orders), tuple(tests))


def unit_root_t(past: NDArray[np.floating], after: NDArray[np.floating]) -> float:
    r"""Return the t-value of b in the regression of Dickey and Fuller, over windows.

    .. math::
        y_{t+1} - y_t = a + b\, y_t + \sum_i c_i (y_{t+1-i} - y_{t-i})

    It serves windows that do not follow one another, and needs nothing but numpy. It is 0, which
    rejects nothing, where the windows are too few to tell, or all alike.

    Each of the T - 1 differences of the windows ``past`` (M, T), oldest first, is a term;
    ``after`` (M,) is what came next.
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
