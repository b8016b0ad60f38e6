"""Tables that the tests of the data layer share."""

from __future__ import annotations

import numpy as np
import pandas as pd


def table(rows: int = 50, **columns: object) -> pd.DataFrame:
    """A clean hourly table with variables wind, temp and target pm25."""
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=rows) for name in ("wind", "temp", "pm25")}
    index = pd.date_range("2013-05-01", periods=rows, freq="h")
    return pd.DataFrame({**data, **columns}, index=index)


def holed() -> pd.DataFrame:
    source = table()
    source.loc["2013-05-01 03:00":"2013-05-01 04:00", "pm25"] = np.nan
    source.loc["2013-05-01 10:00", "wind"] = np.inf
    return source


def with_gap() -> pd.DataFrame:
    return table().drop(pd.date_range("2013-05-01 20:00", periods=3, freq="h"))
