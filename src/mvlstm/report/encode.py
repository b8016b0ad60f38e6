"""Numbers, texts and figures as JSON that can stand inside a page whatever the names contain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import number

DIGITS = 6  # of the range that numbers which are only drawn cover
DOWNLOADED = 8  # and those of tables, which may be downloaded
ALONE = 15  # digits of a number that stands alone, such as an end of an axis
# Characters that could end the script element, or a line in old parsers of JavaScript.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def to_script(value: Any) -> str:
    r"""Write a value as JSON that is safe inside a script element.

    Examples
    --------
    >>> to_script({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for mark, code in _UNSAFE.items():
        text = text.replace(mark, code)
    return text


def compact(value: Any, digits: int = DIGITS) -> Any:
    """Turn arrays, times and numbers into short JSON values.

    The floating-point numbers of an array keep this many significant digits of the range that they
    cover, so that small differences on a high level are kept.

    Examples
    --------
    >>> compact([1 / 3, 1.0]), compact([1e8 + 0.123456789, 1e8 + 1.0])
    ([0.333333, 1], [100000000.12346, 100000001])
    """
    if isinstance(value, dict):
        return {str(k): compact(v, digits) for k, v in value.items()}
    if isinstance(value, np.ndarray | pd.Index | pd.Series):
        array = np.asarray(value)
        if np.issubdtype(array.dtype, np.datetime64):
            return _times(array)
        if np.issubdtype(array.dtype, np.floating):
            return _numbers(array, digits)
        return compact(array.tolist(), digits)
    if isinstance(value, list | tuple):
        needed = _digits((v for v in value if isinstance(v, float)), digits)
        return [_number(v, needed) if isinstance(v, float) else compact(v, digits) for v in value]
    if isinstance(value, np.datetime64 | pd.Timestamp):
        return time_text(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return _number(value, ALONE)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def figure_spec(figure: Any) -> dict[str, Any]:
    """Return a figure as plain values, without the template that all figures share."""
    layout = {k: v for k, v in figure.layout.to_plotly_json().items() if k != "template"}
    return {
        "data": [compact(trace.to_plotly_json()) for trace in figure.data],
        "layout": compact(layout),
    }


def packed(spec: dict[str, Any]) -> dict[str, Any]:
    """Return plain values of a figure with less repeated, which `page.js` undoes.

    Lines at the places of an earlier one name that one, and names of rows stand once.

    Examples
    --------
    >>> packed({"data": [{"x": [1, 2]}, {"x": [1, 2], "customdata": [["a", "a"], ["b", "b"]]}]})
    {'data': [{'x': [1, 2]}, {'x': {'of': 0}, 'customdata': {'rows': ['a', 'b'], 'times': 2}}]}
    """
    first: dict[str, int] = {}
    traces = []
    for place, one in enumerate(spec["data"]):
        trace = dict(one)
        if isinstance(trace.get("x"), list) and len(trace["x"]) > 1:
            earlier = first.setdefault(repr(trace["x"]), place)
            trace["x"] = trace["x"] if earlier == place else {"of": earlier}
        rows = trace.get("customdata")
        if rows and all(isinstance(row, list) and row == row[:1] * len(rows[0]) for row in rows):
            trace["customdata"] = {"rows": [row[0] for row in rows], "times": len(rows[0])}
        traces.append(trace)
    return {**spec, "data": traces}


def table_data(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a table column by column, for downloading."""
    return {
        "columns": [str(c) for c in frame.columns],
        "data": [compact(frame.iloc[:, i].to_numpy(), DOWNLOADED) for i in range(frame.shape[1])],
    }


def time_text(value: Any, *, days: bool = False) -> str:
    """Write a time for a person: no seconds where there are none; integers as they are.

    With ``days`` the date alone, for data whose times are all midnights.

    Examples
    --------
    >>> time_text(np.datetime64("2014-12-31T23:00")), time_text(7)
    ('2014-12-31 23:00', '7')
    """
    if isinstance(value, np.datetime64 | pd.Timestamp) or hasattr(value, "isoformat"):
        stamp = pd.Timestamp(value)
        if stamp.tz is not None:
            stamp = stamp.tz_localize(None)
        if days:
            return stamp.strftime("%Y-%m-%d")
        text = stamp.strftime("%Y-%m-%d %H:%M:%S")
        return text.removesuffix(":00") if stamp.second == 0 else text
    return str(value)


def are_days(times: Any) -> bool:
    """Whether all of these are times, and midnights.

    Examples
    --------
    >>> are_days(pd.date_range("2024", periods=3)), are_days([1, 2])
    (True, False)
    """
    index: pd.Index[Any] = pd.Index(times)
    if index.dtype == object:
        index = pd.Index(index.tolist())
    if not isinstance(index, pd.DatetimeIndex):
        return False
    wall = index.tz_localize(None)  # in some zones there are days without a midnight
    return bool((wall == wall.normalize()).all())


def interval_text(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Write mean, lower and upper end of a forecast's 90 % interval so that they differ.

    Examples
    --------
    >>> interval_text({"mean": 1000.0, "q05": 999.998, "q95": 1000.002})
    ('1,000.0000', '999.9980', '1,000.0020')
    """
    mean, low, high = (float(row[name]) for name in ("mean", "q05", "q95"))
    first, second, third = (number(value, 3, high - low) for value in (mean, low, high))
    return first, second, third


def percent(value: float, decimals: int = 0) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent(0.913), percent(0.913, 1)
    ('91 %', '91.3 %')
    """
    return "unknown" if not np.isfinite(value) else f"{100 * value:.{decimals}f} %"


def _times(values: Any) -> list[str | None]:
    index = pd.DatetimeIndex(np.asarray(values).reshape(-1))
    days = len(index) > 1 and are_days(index.dropna())
    return [None if pd.isna(t) else time_text(t, days=days) for t in index]


def _numbers(array: NDArray[np.floating[Any]], digits: int) -> Any:
    """Round the numbers of an array of any shape together."""
    flat = array.ravel().tolist()
    needed = _digits(flat, digits)
    short = np.array([_number(v, needed) for v in flat], dtype=object)
    return short.reshape(array.shape).tolist()


def _number(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _digits(values: Iterable[float], digits: int) -> int:
    """Return how many digits show ``digits`` of the range of ``values``; all if it is empty."""
    known = [v for v in values if np.isfinite(v)]
    if not known:
        return digits
    largest, spread = max(map(abs, known)), max(known) - min(known)
    if spread == 0.0:
        return ALONE
    return min(digits + max(0, int(np.log10(largest / spread))), ALONE + 2)
