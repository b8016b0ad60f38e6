"""A relation of DuckDB goes in; what comes out is of Arrow, which DuckDB reads."""

from __future__ import annotations

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import mvlstm as mv
from mvlstm.errors import DataError

QUERY = """
SELECT TIMESTAMP '2024-01-01' + to_hours(i) AS hour,
       (i % 5)::DECIMAL(6, 2) AS price,
       sum(i % 3) OVER (ORDER BY i) - i AS visits,
       CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END AS kind,
       sin(i / 7.0) + 0.3 * (i % 5) AS y
FROM range(200) AS rows(i) ORDER BY i
"""


def test_a_query_is_a_table() -> None:
    table = duckdb.sql(QUERY)
    model = mv.AR(window=3, verbose=0).fit(table, "y", time="hour", test=0.2)
    found = model.forecast(table).to_frame()
    assert isinstance(found, pa.Table)
    assert duckdb.sql("SELECT time FROM found").fetchall() == [(pd.Timestamp("2024-01-09 08:00"),)]
    own = table.df().astype({"price": float, "visits": float})
    again = mv.AR(window=3, verbose=0).fit(own, "y", time="hour", test=0.2)
    assert found["mean"][0].as_py() == again.forecast(own).mean.iloc[0]


def test_what_is_no_number() -> None:
    table = duckdb.sql(QUERY.replace("AS kind", "AS kind, [i] AS list"))
    with pytest.raises(DataError, match="'list'"):
        mv.AR(window=3, verbose=0).fit(table, "y", time="hour")
