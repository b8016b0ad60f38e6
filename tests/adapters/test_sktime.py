"""The adapter passes sktime's conformance suite and works in its tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sktime.forecasting.base import ForecastingHorizon
from sktime.forecasting.compose import TransformedTargetForecaster
from sktime.forecasting.model_evaluation import evaluate
from sktime.forecasting.model_selection import ForecastingGridSearchCV
from sktime.forecasting.reconcile import ReconcilerForecaster
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.performance_metrics.forecasting.probabilistic import PinballLoss
from sktime.split import ExpandingWindowSplitter
from sktime.transformations.hierarchical.aggregate import Aggregator
from sktime.transformations.series.impute import Imputer
from sktime.transformations.series.scaledlogit import ScaledLogitTransformer
from sktime.utils.estimator_checks import check_estimator

import mvlstm as mv
from mvlstm.adapters.sktime import ModelForecaster, MVLSTMForecaster
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError

TINY = {"window": 2, "verbose": 0}
NETWORK = {"window": 2, "hidden_size": 2, "members": 1, "max_epochs": 1, "link": "none"}
SETTINGS = {
    "univariate": lambda: ModelForecaster(mv.AR(missing="fill", **TINY)),
    "exogenous": lambda: ModelForecaster(mv.ENET(grid="quick", **TINY), past="all", valid=0.2),
    "probabilistic": lambda: MVLSTMForecaster(**NETWORK),
}


def wave(rows: int = 80, *, seed: int = 0) -> pd.Series[float]:
    times = pd.period_range("2020-01-01", periods=rows, freq="D")
    noise = np.random.default_rng(seed).normal(scale=0.1, size=rows)
    return pd.Series(np.sin(np.arange(rows) / 3) + 2 + noise, index=times, name="load")


def driven(rows: int = 120) -> tuple[pd.Series[float], pd.DataFrame]:
    """Return a target that follows a column of the same day closely, and that column."""
    rng = np.random.default_rng(1)
    index = pd.date_range("2020-01-01", periods=rows, freq="D")
    X = pd.DataFrame({"weather": rng.normal(size=rows), "noise": rng.normal(size=rows)}, index)
    load = 5 * X["weather"] + 20 + rng.normal(scale=0.7, size=rows)
    return load.rename("load"), X


def panel(rows: int = 40) -> pd.DataFrame:
    keys = [("north", "a"), ("north", "b"), ("south", "c")]
    frames = {key: wave(rows, seed=k).to_frame() + 3 * k for k, key in enumerate(keys)}
    return pd.concat(frames, names=["region", "shop", "day"])


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_conformance(name: str, record_property: Any) -> None:
    found = check_estimator(SETTINGS[name](), raise_exceptions=False, verbose=False)
    failed = {test: what for test, what in found.items() if what != "PASSED"}
    assert not failed
    assert len(found) > 400
    record_property(f"check_estimator, {name}", f"{len(found)} passed")


def test_known_variables_are_read_at_the_time_forecast() -> None:
    y, X = driven()
    forecaster = ModelForecaster(mv.AR(window=3, verbose=0)).fit(y[:-3], X[:-3], fh=[1, 3])
    found = forecaster.predict(X=X[-3:])
    np.testing.assert_allclose(found, y.iloc[[-3, -1]], atol=2)
    assert found.name == "load" and list(found.index) == [y.index[-3], y.index[-1]]
    assert forecaster.explain(effort="quick").variables[0] == "weather"


def test_past_variables_need_no_future() -> None:
    y, X = driven()
    forecaster = ModelForecaster(mv.AR(window=3, verbose=0), past="all").fit(y, X, fh=2)
    alone = forecaster.predict()
    pd.testing.assert_series_equal(alone, forecaster.predict(X=X.tail(1).shift(2, freq="D")))
    with pytest.raises(DataError, match="past='weathr' names 'weathr'"):
        ModelForecaster(mv.AR(window=3), past="weathr").fit(y, X, fh=1)


def test_absolute_horizons_and_those_within_the_sample() -> None:
    y = wave()
    times = pd.PeriodIndex([y.index[0], y.index[10], y.index[-1], y.index[-1] + 2], freq="D")
    absolute = ForecastingHorizon(times, is_relative=False)
    forecaster = ModelForecaster(mv.AR(window=4, verbose=0)).fit(y, fh=absolute)
    found = forecaster.predict()
    assert list(found.index) == list(times)
    assert np.isnan(found.iloc[0]) and found.iloc[1:].notna().all()
    assert abs(found.iloc[1] - y.iloc[10]) < 0.5
    low, high = forecaster.predict_interval(coverage=0.8).iloc[1:].to_numpy().T
    assert (low < high).all() and (forecaster.predict_var().iloc[1:] > 0).all(axis=None)


def test_quantiles_are_those_of_the_model() -> None:
    y = wave()
    forecaster = MVLSTMForecaster(**NETWORK).fit(y, fh=[1, 2])
    found = forecaster.predict_quantiles(alpha=[0.1, 0.5])
    assert list(found.columns) == [("load", 0.1), ("load", 0.5)]
    table = y.to_frame().set_axis(y.index.to_timestamp())
    own = forecaster.model_.forecast(table).quantile(0.1)
    np.testing.assert_allclose(found["load"][0.1], own, rtol=1e-6)


def test_updates_count_new_rows_at_once_and_train_when_there_are_enough() -> None:
    y = wave(160)
    forecaster = ModelForecaster(mv.AR(window=4, verbose=0)).fit(y[:80], fh=1)
    before = forecaster.predict().iloc[0]
    forecaster.update(y[80:81])
    assert forecaster.predict().index[0] == y.index[81] and forecaster.predict().iloc[0] != before
    assert not forecaster.model_.updates_
    forecaster.update(y[81:150])
    assert len(forecaster.model_.updates_) == 1
    alone = ModelForecaster(mv.AR(window=4, verbose=0)).fit(y[:80], fh=1)
    assert not alone.update(y[80:150], update_params=False).model_.updates_


def test_one_model_for_a_hierarchy() -> None:
    y = panel()
    forecaster = ModelForecaster(mv.AR(window=4, verbose=0)).fit(y, fh=[1, 2])
    found = forecaster.predict()
    assert list(found.index.names) == list(y.index.names) and len(found) == 6
    levels = found.groupby("shop")["load"].mean()
    assert levels["a"] < levels["b"] < levels["c"]
    forecaster.update(y.groupby(["region", "shop"]).tail(2))
    assert forecaster.predict_interval().shape == (6, 2)


def test_a_hierarchy_whose_times_do_not_tell_their_frequency() -> None:
    y = Aggregator().fit_transform(panel().rename(index=pd.Period.to_timestamp, level="day"))
    steps = ForecastingHorizon([1, 3], is_relative=True)
    found = ReconcilerForecaster(ModelForecaster(mv.AR(window=4, verbose=0)), "bu").fit(y, fh=steps)
    totals = found.predict().loc[("__total", "__total"), "load"]
    leaves = found.predict().drop("__total", level="shop").groupby("day")["load"].sum()
    np.testing.assert_allclose(totals, leaves)
    last = y.index.get_level_values("day").max()
    assert list(totals.index) == [last + pd.Timedelta(days=k) for k in (1, 3)]


def test_missing_values_as_the_model_treats_them() -> None:
    y = wave().copy()
    y.iloc[20:23] = np.nan
    filling = ModelForecaster(mv.AR(window=4, missing="fill", verbose=0))
    assert np.isfinite(filling.fit(y, fh=1).predict()).all()
    with pytest.raises(DataError, match="missing='fill'"):
        ModelForecaster(mv.AR(window=4, verbose=0)).fit(y, fh=1)


def test_evaluate_and_grid_search() -> None:
    y = wave()
    cv = ExpandingWindowSplitter(initial_window=60, step_length=10, fh=[1, 2])
    model = ModelForecaster(mv.AR(window=3, verbose=0))
    scores = evaluate(model, cv, y, scoring=[MeanAbsoluteError(), PinballLoss()])
    assert len(scores) == 2 and scores["test_PinballLoss"].between(0, 1).all()
    grid = {"model__window": [2, 8]}
    search = ForecastingGridSearchCV(model, cv, grid, MeanAbsoluteError(), backend=None)
    search.fit(y, fh=[1, 2])
    assert search.best_params_["model__window"] in (2, 8)
    assert search.best_forecaster_.model_.window == search.best_params_["model__window"]


def test_pipelines() -> None:
    y = wave().copy()
    y.iloc[30] = np.nan
    steps = [Imputer("linear"), ScaledLogitTransformer(0, 5), ModelForecaster(mv.AR(verbose=0))]
    found = TransformedTargetForecaster(steps).fit(y, fh=[1, 2]).predict_interval()
    assert found.to_numpy().min() > 0 and found.to_numpy().max() < 5


def test_a_short_history_is_lengthened_and_said_so() -> None:
    forecaster = ModelForecaster(mv.AR(window=4, verbose=0))
    with pytest.warns(MVLSTMWarning, match="The history is short: .* need 13 rows"):
        forecaster.fit(wave(9), fh=[1, 3])
    assert len(forecaster.predict()) == 2


def bad_model() -> Any:
    return ModelForecaster(mv.AR).fit(wave(), fh=1)


def no_future() -> Any:
    y, X = driven()
    return ModelForecaster(mv.AR(window=3, verbose=0)).fit(y, X, fh=1).predict()


def half_a_future() -> Any:
    y, X = driven()
    forecaster = ModelForecaster(mv.AR(window=3, verbose=0)).fit(y[:-3], X[:-3], fh=[1, 3])
    return forecaster.predict(X=X[-3:-1])


def a_hole_in_the_future() -> Any:
    y, X = driven()
    forecaster = ModelForecaster(mv.AR(window=3, verbose=0)).fit(y[:-3], X[:-3], fh=[1, 2, 3])
    return forecaster.predict(X=X[-3:].assign(noise=[1.0, np.nan, 1.0]))


def another_column() -> Any:
    y, X = driven()
    forecaster = ModelForecaster(mv.AR(window=3, verbose=0)).fit(y[:-1], X[:-1], fh=1)
    return forecaster.predict(X=X[-1:][["noise"]])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (bad_model, ParameterError, "is not a forecaster of mvlstm"),
        (no_future, DataError, r"predict\(\) needs X with \['weather', 'noise'\]"),
        (half_a_future, DataError, "X has no values of .* at 2020-04-29"),
        (a_hole_in_the_future, DataError, r"X has no values of \['noise'\] at 2020-04-28"),
        (another_column, DataError, r"needs X with \['weather'\]"),
    ],
)
def test_bad_input_is_one_clear_error(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_unknown_argument() -> None:
    with pytest.raises(TypeError, match="no argument 'windw'"):
        MVLSTMForecaster(windw=3)
