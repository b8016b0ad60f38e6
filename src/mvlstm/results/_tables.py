"""What the result classes share: times, tables, JSON-able values, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import significant
from mvlstm.types import Kind

if TYPE_CHECKING:
    import plotly.graph_objects as go

IN_UNITS = ("rmse", "mae", "mae_mean", "crps", "pinball", "interval_score")  # of the target
BACKEND = "mvlstm.plot"  # a module with a function `draw`, loaded by its name


class Drawable:
    """A result that draws itself; it knows nothing of figures."""

    def plot(self, **options: Any) -> go.Figure:
        """Return the figure that shows this result first; ``options`` are those of its function.

        `mvlstm.plot` has these functions and further figures. `mvlstm.plot.draw` says which is
        which.
        """
        return import_module(BACKEND).draw(self, **options)


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
    if value is pd.NaT or value is pd.NA:
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


def as_kind(table: pd.DataFrame, kind: Kind) -> Any:
    """Return a table as one of another library; an index that says something becomes a column."""
    if kind == "pandas":
        return table
    import pyarrow

    if not isinstance(table.index, pd.RangeIndex):
        table = table.rename_axis(str(table.index.name or "name")).reset_index()
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    for name, column in table.items():
        texts = (isinstance(value, str | None) for value in column)
        if pd.api.types.is_object_dtype(column.dtype) and not all(texts):
            table = table.assign(**{str(name): column.map(str)})
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata()
    if kind == "arrow":
        return arrow
    import polars

    return polars.from_arrow(arrow)


def finite_numbers(values: Iterable[Any]) -> bool:
    """Say whether all values, as read from a file, are numbers and finite."""
    return all(type(value) in (int, float) and np.isfinite(value) for value in values)


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


def page(head: str, table: pd.DataFrame, notes: Iterable[str] = ()) -> str:
    """Return a heading, a table and notes as HTML, for notebooks."""
    sizes = finest(table)
    shown = {}
    for name, column in table.select_dtypes("float").items():
        digits = significant(float(column.abs().max()), 4, sizes.get(str(name), 0.0))
        shown[str(name)] = f"{{:.{digits}g}}".format
    drawn = table.rename(columns=str).to_html(max_rows=60, formatters=shown, border=0)
    listed = "".join(f"<li>{escape(note, quote=False)}</li>" for note in notes)
    return f"<p>{escape(head, quote=False)}</p>{drawn}{f'<ul>{listed}</ul>' if listed else ''}"


def finest(frame: pd.DataFrame) -> dict[str, float]:
    """Return by column the size that must show when a table is written for a person.

    In a table of forecasts it is the narrowest 90 % interval; in one of scores by series, which may
    differ a thousandfold, the smallest score.
    """
    found: dict[str, float] = {}
    if {"q05", "q95"} <= set(frame.columns):
        width = _least(frame["q95"] - frame["q05"])
        names = [n for n in frame.columns if n in ("mean", "median", "actual") or n[:1] == "q"]
        found |= dict.fromkeys(names, width)
    if "series" in frame.columns:
        scores = [name for name in IN_UNITS if name in frame.columns]
        found |= {name: _least(frame[name]) for name in scores}
    return found


def _least(values: pd.Series[float]) -> float:
    positive = values[values > 0]
    return float(positive.min()) if len(positive) else 0.0
