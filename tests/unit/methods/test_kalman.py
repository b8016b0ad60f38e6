"""The filter against statsmodels' own, where rows are missing and where segments begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

from mvlstm.methods.kalman import Filter, contributions, segments_likelihood

CASES = {
    "trend": (None, [0.4, 0.05, 0.001, 0.8, -0.3]),
    "arma": ((2, 0, 1), [0.8, -0.3, 0.9, -0.5, 0.3, 0.4]),
    "arima": ((1, 1, 1), [0.8, -0.3, 0.5, -0.3, 0.4]),
}


def make_model(case: str, endog: np.ndarray, exog: np.ndarray) -> Any:
    order = CASES[case][0]
    if order is None:
        return UnobservedComponents(endog, "local linear trend", exog=exog)
    free = {"enforce_stationarity": False, "enforce_invertibility": False}
    return SARIMAX(endog, exog=exog, order=order, **free)


def make_table(rows: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Return a table, target last, and which of its targets are known."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(rows, 3))
    table[:, -1] += np.cumsum(rng.normal(size=rows)) * 0.3
    known = rng.uniform(size=rows) > 0.3
    known[70:80], known[100:140] = False, True  # a long stretch, and one in which gains settle
    return table, known


@pytest.mark.parametrize("case", CASES)
def test_rows_not_measured_change_nothing(case: str) -> None:
    table, known = make_table()
    endog = np.where(known, table[:, -1], np.nan)[1:]
    model = make_model(case, endog, table[:-1, :-1])
    params = np.array(CASES[case][1])
    results = model.filter(params)
    coefficients = params[[name.split(".")[-1] in ("x1", "x2") for name in model.param_names]]
    origins = np.arange(9, 159)
    segments = np.zeros(len(table), dtype=np.int64)
    where = (table, segments, coefficients, origins, 3)
    found = contributions(Filter.of(model, results), *where, known).sum(axis=0)
    np.testing.assert_allclose(found[:, 0], results.get_prediction(9).predicted_mean, atol=1e-8)
    for origin in (30, 74, 79, 80, 150):
        past = make_model(case, endog[:origin], table[:origin, :-1]).filter(params)
        held = np.repeat(table[origin : origin + 1, :-1], 3, axis=0)
        np.testing.assert_allclose(found[origin - 9], past.forecast(3, exog=held), atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_segments_add_up(case: str) -> None:
    table, known = make_table()
    restarts = np.array([40, 90, 91])
    known[restarts + 1] = False
    endog, exog = np.where(known, table[:, -1], np.nan)[1:], table[:-1, :-1]
    params = np.array(CASES[case][1])
    found = segments_likelihood(make_model(case, endog, exog), restarts)
    pieces = [slice(0, 40), slice(41, 90), slice(92, 159)]
    alone = [make_model(case, endog[s], exog[s]).loglike(params) for s in pieces]
    assert found(params) == pytest.approx(sum(alone), rel=1e-10)
