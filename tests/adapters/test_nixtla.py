"""utilsforecast evaluates and draws what backtests return."""

from __future__ import annotations

import pandas as pd
import pytest
from utilsforecast.data import generate_series
from utilsforecast.evaluation import evaluate
from utilsforecast.losses import coverage, mae, rmse
from utilsforecast.plotting import plot_series

import mvlstm as mv
from mvlstm.errors import DataError


def series() -> pd.DataFrame:
    frame: pd.DataFrame = generate_series(3, min_length=90, max_length=90, equal_ends=True)
    return frame.assign(unique_id=frame["unique_id"].astype(str))


def test_evaluate_and_plot_a_backtest() -> None:
    frame = series()
    settings = {"window": 7, "horizon": 2, "verbose": 0}
    found = mv.backtest(mv.AR(**settings), frame, "y", every=2, test=20)
    rival = mv.backtest(mv.SeasonalPersistence(**settings), frame, "y", every=2, test=20)
    table = found.to_nixtla(rival, level=[80, 90])
    assert list(table.columns[:7]) == [
        *("unique_id", "ds", "cutoff", "y", "AR", "AR-lo-80", "AR-hi-80"),
    ]
    one = frame.set_index(["unique_id", "ds"])["y"]
    keys = pd.MultiIndex.from_frame(table[["unique_id", "ds"]])
    pd.testing.assert_series_equal(one.loc[keys].reset_index(drop=True), table["y"])
    scores = evaluate(
        table.drop(columns="cutoff"),
        metrics=[mae, rmse, coverage],
        models=["AR", "SeasonalPersistence"],
        level=[80, 90],
    )
    assert set(scores["metric"]) == {"mae", "rmse", "coverage_level80", "coverage_level90"}
    pooled = scores.loc[scores["metric"] == "rmse", "AR"].pow(2).mean() ** 0.5
    assert pooled == pytest.approx(found.scores.loc["pooled", "rmse"], rel=0.02)
    figure = plot_series(frame, table.drop(columns=["cutoff", "y"]), level=[90], models=["AR"])
    assert len(figure.axes) >= 3


def test_static_columns_and_the_future() -> None:
    frame = series().assign(price=[float(k % 9) for k in range(270)])
    last = frame.groupby("unique_id").tail(1)
    ahead = last.assign(ds=last["ds"] + pd.Timedelta("1D"), price=7.0).drop(columns="y")
    static = pd.DataFrame({"unique_id": ["0", "1", "2"], "size": ["small", "large", "small"]})
    table = mv.from_nixtla(frame.sample(frac=1.0, random_state=0), static_df=static, X_df=ahead)
    model = mv.AR(window=7, verbose=0).fit(table, "y", known=["price"])
    found = model.forecast(table).to_nixtla("AR")
    assert list(found["ds"]) == list(ahead["ds"]) and found["y"].isna().all()
    with pytest.raises(DataError, match=r"Column of X_df 'ds' is not in the table"):
        mv.from_nixtla(frame, X_df=ahead.drop(columns="ds"))
