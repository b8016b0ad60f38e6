"""Tables of other libraries and in files are read as they are, and results come back as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.table.kinds import as_pandas, kind_of


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=80, name="day")
    return pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80)}, index=days)


class Stream:
    """A table of some library, known by its Arrow stream alone."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Broken:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise ValueError("no stream today")


def test_an_arrow_stream_is_read_and_answered_in_arrow(table: pd.DataFrame) -> None:
    stream = Stream(pa.Table.from_pandas(table.reset_index(), preserve_index=False))
    model = mv.AR(window=3, verbose=0).fit(stream, "y", time="day", test=0.2)
    found = model.forecast(stream).to_frame()
    own = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2).forecast(table)
    assert isinstance(found, pa.Table)
    assert found["mean"].to_pylist() == list(own.mean)
    assert found["time"].to_pylist() == list(own.to_frame()["time"])
    scores = model.evaluate(stream).to_frame()
    assert scores["model"].to_pylist() == ["AR", "persistence", "seasonal"]
    assert isinstance(model.explain(stream, effort="quick").to_frame(), pa.Table)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_path_is_read(table: pd.DataFrame, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    table.to_csv(path) if path.suffix == ".csv" else table.to_parquet(path)
    model = mv.AR(window=3, verbose=0).fit(path, target="y", time="day")
    found = model.forecast(str(path))
    assert found.mean.iloc[0] == pytest.approx(model.forecast(table).mean.iloc[0])
    assert isinstance(found.to_frame(), pd.DataFrame)
    assert len(mv.backtest(mv.AR(window=3, verbose=0), path, "y", time="day", folds=2).periods) == 2


def test_dates_of_arrow_are_times(table: pd.DataFrame) -> None:
    arrow = pa.table({"day": pa.array(table.index.date), "y": table["y"].to_numpy()})
    assert as_pandas(arrow)["day"].dtype.kind == "M"
    assert kind_of(arrow) == "arrow" and kind_of(table) == "pandas" and kind_of([1]) == "pandas"


def test_what_cannot_be_read() -> None:
    with pytest.raises(DataError, match="The Broken cannot be read through Arrow: no stream today"):
        mv.AR().fit(Broken(), "y")
    with pytest.raises(DataError, match=r"'nowhere\.csv' does not exist"):
        mv.AR().fit("nowhere.csv", "y")
