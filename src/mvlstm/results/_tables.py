"""Times, tables and JSON-able values shared by the result classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def time_index(values: NDArray[Any], like: pd.Index[Any]) -> pd.Index[Any]:
    """Index of times of the same kind (time zone, unit, name) as ``like``."""
    if isinstance(like, pd.DatetimeIndex):
        index = pd.DatetimeIndex(values)
        if like.tz is not None:
            index = index.tz_localize("UTC") if index.tz is None else index
            index = index.tz_convert(like.tz)
        index = index.as_unit(like.unit)
        index.name = like.name
        return index
    other: pd.Index[Any] = pd.Index(values, name=like.name)
    return other


def plain(value: Any) -> Any:
    """Turn numpy and pandas values into what JSON knows; times become ISO text, NaN None."""
    if isinstance(value, np.ndarray | list | tuple | pd.Index):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    columns = [str(c) for c in table.columns]
    return [
        dict(zip(columns, (plain(v) for v in row), strict=True))
        for row in table.itertuples(index=False, name=None)
    ]


def matrix(table: pd.DataFrame) -> dict[str, Any]:
    return {
        "rows": plain(table.index),
        "columns": plain(table.columns),
        "values": plain(table.to_numpy()),
    }


def html(table: pd.DataFrame) -> str:
    return table.to_html(max_rows=60, float_format=lambda x: f"{x:.4g}", border=0)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
