"""Nixtla's long format: one row per series and time, in the columns ``unique_id, ds, y``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from mvlstm._words import name_list
from mvlstm.errors import DataError
from mvlstm.table.columns import check_columns, column_names
from mvlstm.table.kinds import as_pandas
from mvlstm.table.settings import Columns

ID, TIME, TARGET = "unique_id", "ds", "y"


def from_nixtla(
    df: Any,
    *,
    id_col: str = ID,
    time_col: str = TIME,
    target_col: str = TARGET,
    static_df: Any = None,
    X_df: Any = None,
) -> pd.DataFrame:
    """Make one table of what Nixtla's libraries take: sorted, static columns joined, future below.

    A table with the columns ``unique_id, ds, y`` in order needs no such step:
    ``model.fit(df, "y")`` knows it by its columns.

    Parameters
    ----------
    df : DataFrame
        One row per series and time; pandas, polars or any other that Arrow can read.
    id_col, time_col, target_col : str
        Its columns, which become ``unique_id``, ``ds`` and ``y``.
    static_df : DataFrame, optional
        One row per series: its columns are repeated on each of its rows.
    X_df : DataFrame, optional
        Next values of what is known ahead, as for ``predict(X_df=...)`` there: they become rows
        without a target. Name these columns in ``fit(..., known=[...])``.

    Examples
    --------
    >>> table = pd.DataFrame({"shop": ["b", "a"], "day": [1, 1], "sold": [5.0, 7.0]})
    >>> from_nixtla(table, id_col="shop", time_col="day", target_col="sold")
      unique_id  ds    y
    0         a   1  7.0
    1         b   1  5.0
    """
    names = {id_col: ID, time_col: TIME, target_col: TARGET}
    table = _named(df, "df", names)
    if X_df is not None:
        ahead = _named(X_df, "X_df", {id_col: ID, time_col: TIME})
        strange = [name for name in ahead.columns if name not in table.columns]
        if strange:
            raise DataError(
                f"X_df has columns {name_list(strange)} that df does not have. Give their past in "
                "df, or drop them."
            )
        table = pd.concat([table, ahead.drop(columns=TARGET, errors="ignore")])
    if static_df is not None:
        static = _named(static_df, "static_df", {id_col: ID})
        _check_static(static, table)
        table = table.merge(static, on=ID, how="left")
    return table.sort_values([ID, TIME], kind="stable", ignore_index=True)


def _check_static(static: pd.DataFrame, table: pd.DataFrame) -> None:
    """Refuse static columns that are not one row for each series, or that df has itself."""
    if static[ID].duplicated().any():
        twice = static.loc[static[ID].duplicated(), ID].iloc[0]
        raise DataError(f"static_df has several rows for '{twice}'. Give one for each series.")
    lacking = ~table[ID].isin(static[ID])
    if lacking.any():
        raise DataError(
            f"static_df has no row for '{table.loc[lacking, ID].iloc[0]}', a series of df. Give "
            "one for each series."
        )
    both = [name for name in static.columns if name in table.columns and name != ID]
    if both:
        raise DataError(
            f"static_df and df both have {name_list(both)}. Drop them from one of the two."
        )


def _named(table: Any, argument: str, names: dict[str, str]) -> pd.DataFrame:
    """Return a table with Nixtla's names of its columns, refusing one that lacks them."""
    table = as_pandas(table)
    if isinstance(table, pd.DataFrame) and table.index.name in names:
        table = table.reset_index()
    found = column_names(table)
    for name, own in names.items():
        check_columns(f"Column of {argument}", [name], found, _ARGUMENTS[own])
    renamed: pd.DataFrame = table.rename(columns=names)
    return renamed


_ARGUMENTS = {ID: "id_col", TIME: "time_col", TARGET: "target_col"}


def recognised(columns: Columns, names: Sequence[str]) -> Columns:
    """Say what the columns of a table in this format are, where nothing else was said."""
    if columns.time is None and columns.series is None and {ID, TIME} <= set(names):
        return replace(columns, time=TIME, series=ID)
    return columns
