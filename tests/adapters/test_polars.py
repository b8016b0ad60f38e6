"""A polars table goes in and comes out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mvlstm as mv
from mvlstm.errors import DataError


def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    times = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 6, 28), "1d", eager=True)
    n = len(times)
    return pl.DataFrame(
        {
            "day": times,
            "kind": pl.Series(rng.choice(["a", "b"], n)).cast(pl.Categorical),
            "count": rng.integers(0, 9, n),
            "y": rng.normal(size=n).cumsum(),
        }
    )


def test_every_result_is_polars() -> None:
    frame = table()
    model = mv.AR(window=3, verbose=0).fit(frame, "y", time="day", known="count", test=0.2)
    ahead = frame.tail(1).with_columns(pl.col("day").dt.offset_by("1d"))
    results = [
        model.predict(frame).to_frame([0.1]),
        model.forecast(frame, future=ahead).to_frame(),
        model.forecast(frame, future=ahead).sample(3),
        model.evaluate(frame).to_frame(),
        model.explain(frame, effort="quick").to_frame(),
        mv.compare(frame, "y", time="day", methods=["ar"], window=3, verbose=0).to_frame(),
        mv.backtest(mv.AR(window=3, verbose=0), frame, "y", time="day", folds=2).to_frame(),
    ]
    assert all(isinstance(one, pl.DataFrame) for one in results)
    assert results[1]["time"].dtype == pl.Datetime and results[1].height == 1
    own = model.predict(frame.to_pandas()).to_frame([0.1])
    pd.testing.assert_frame_equal(results[0].to_pandas(), own, check_dtype=False)


def test_lazy_tables_and_files(tmp_path: object) -> None:
    frame = table()
    model = mv.AR(window=3, verbose=0).fit(frame.lazy(), "y", time="day")
    assert isinstance(model.forecast(frame.lazy()).to_frame(), pl.DataFrame)
    frame.write_parquet(f"{tmp_path}/table.parquet")
    again = mv.AR(window=3, verbose=0).fit(f"{tmp_path}/table.parquet", "y", time="day")
    assert again.forecast(frame).mean.iloc[0] == model.forecast(frame).mean.iloc[0]


def test_nixtla_tables_of_polars() -> None:
    frame = table().select(pl.lit("a").alias("unique_id"), pl.col("day").alias("ds"), "y")
    found = mv.backtest(mv.AR(window=3, verbose=0), frame, "y", folds=2).to_nixtla()
    assert isinstance(found, pl.DataFrame)
    assert found.columns[:4] == ["unique_id", "ds", "cutoff", "y"]


def test_what_arrow_cannot_hold() -> None:
    frame = table().with_columns(pl.Series("odd", [object()] * 180, dtype=pl.Object))
    with pytest.raises(DataError, match="Column 'odd' is not numeric"):
        mv.AR(window=3, verbose=0).fit(frame, "y", time="day")
