"""Tables of other libraries: read as pandas, and given back as what they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mvlstm.errors import DataError
from mvlstm.table.files import read_table
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.types import Kind


@dataclass(frozen=True)
class OnDemand:
    """A table that is read when it is needed, by one who may let go of it afterwards."""

    read: Callable[[], pd.DataFrame]


def kind_of(table: Any) -> Kind:
    """Return the kind of table that results should come back as.

    Examples
    --------
    >>> import pyarrow
    >>> kind_of(pd.DataFrame()), kind_of(pyarrow.table({"y": [1]}))
    ('pandas', 'arrow')
    """
    if isinstance(table, pd.DataFrame | SeriesFrame):
        return "pandas"
    if type(table).__module__.partition(".")[0] == "polars":
        return "polars"
    return "arrow" if hasattr(table, "__arrow_c_stream__") else "pandas"


def as_pandas(table: Any) -> Any:
    """Return a table of another library, or in a file, as a DataFrame; all else as it is.

    A library's table is one that Arrow can read (polars, pyarrow, DuckDB and others); a lazy one
    of polars is collected first. A file is CSV or Parquet.
    """
    if isinstance(table, pd.DataFrame | SeriesFrame):
        return table
    if isinstance(table, OnDemand):
        return table.read()
    if isinstance(table, str | os.PathLike):
        return read_table(table)
    if type(table).__name__ == "LazyFrame" and hasattr(table, "collect"):
        table = table.collect()
    if not hasattr(table, "__arrow_c_stream__"):
        return table
    import pyarrow

    try:
        read = pyarrow.table(table).to_pandas(date_as_object=False)
    except (pyarrow.ArrowException, ValueError, TypeError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(
            f"The {type(table).__name__} cannot be read through Arrow: {reason}. Pass a table "
            "whose columns have types of Arrow, or a pandas DataFrame."
        ) from error
    assert isinstance(read, pd.DataFrame)
    return read
