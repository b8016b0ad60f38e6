"""Nixtla's long format goes in and comes out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError

AR = {"window": 3, "verbose": 0}


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=60)
    return pd.concat(
        pd.DataFrame({"unique_id": name, "ds": days, "y": rng.normal(size=60).cumsum() + 9})
        for name in ("a", "b")
    ).reset_index(drop=True)


def test_columns_are_recognised(table: pd.DataFrame) -> None:
    named = mv.AR(**AR).fit(table, "y", time="ds", series="unique_id").forecast(table)
    model = mv.AR(**AR).fit(table, "y")
    found = model.forecast(table).to_nixtla("AR")
    assert list(found.columns) == ["unique_id", "ds", "cutoff", "y", "AR", "AR-lo-90", "AR-hi-90"]
    assert list(found["AR"]) == list(named.mean) and list(found["unique_id"]) == ["a", "b"]
    assert "AR" in set(mv.compare(table, "y", methods=["ar"], **AR).rows["method"])


def test_backtests_next_to_each_other(table: pd.DataFrame) -> None:
    found = [mv.backtest(mv.AR(window=w, verbose=0), table, "y", folds=2) for w in (2, 3)]
    frame = found[0].to_nixtla(found[1], level=[80])
    assert list(frame.columns[4:]) == [
        "AR",
        "AR-lo-80",
        "AR-hi-80",
        "AR2",
        "AR2-lo-80",
        "AR2-hi-80",
    ]
    assert len(frame) == len(found[0].forecast) == 24
    assert (frame["ds"] - frame["cutoff"] == pd.Timedelta("1D")).all()
    rmse = np.sqrt(np.mean((frame["y"] - frame["AR"]) ** 2))
    assert rmse == pytest.approx(found[0].scores.loc["pooled", "rmse"])


def test_one_series_is_called_by_its_target(table: pd.DataFrame) -> None:
    one = table.loc[table["unique_id"] == "a"].set_index("ds")[["y"]]
    found = mv.backtest(mv.AR(**AR), one, "y", folds=2).to_nixtla()
    assert set(found["unique_id"]) == {"y"}


def test_other_names_and_any_order(table: pd.DataFrame) -> None:
    names = {"unique_id": "shop", "ds": "day", "y": "sold"}
    other = table.rename(columns=names).sample(frac=1.0, random_state=0)
    made = mv.from_nixtla(other, id_col="shop", time_col="day", target_col="sold")
    pd.testing.assert_frame_equal(made, table)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"id_col": "shop"}, "Column of df 'shop' is not in the table"),
        ({"static_df": pd.DataFrame({"unique_id": ["a", "a"]})}, "several rows for 'a'"),
        ({"static_df": pd.DataFrame({"unique_id": ["a"]})}, "static_df has no row for 'b'"),
        (
            {"static_df": pd.DataFrame({"unique_id": ["a", "b"], "y": [1.0, 2.0]})},
            r"static_df and df both have \['y'\]",
        ),
        (
            {"X_df": pd.DataFrame({"unique_id": ["a"], "ds": [0], "rain": [1.0]})},
            r"X_df has columns \['rain'\] that df does not have",
        ),
    ],
)
def test_bad_tables(table: pd.DataFrame, more: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mv.from_nixtla(table, **more)


def test_bad_levels(table: pd.DataFrame) -> None:
    forecast = mv.AR(**AR).fit(table, "y").forecast(table)
    with pytest.raises(ParameterError, match=r"level=\[0.9, 200\] must be a list of percentages"):
        forecast.to_nixtla(level=[0.9, 200])
    with pytest.raises(ParameterError, match=r"Write level=\[90\] for the 90 % interval"):
        forecast.to_nixtla(level=[0.9])  # a share, which other libraries take


def test_what_is_no_backtest(table: pd.DataFrame) -> None:
    found = mv.backtest(mv.AR(**AR), table, "y", folds=1)
    with pytest.raises(ParameterError, match=r"received a str next to its own backtest"):
        found.to_nixtla("AR")
