"""Order of variables, times and thinning: what several figures need of the result objects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import DataError, ParameterError
from mvlstm.results import Explanation, Forecast, PointExplanation
from mvlstm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import plotly.graph_objects as go


def variable_order(explanation: Explanation) -> tuple[str, ...]:
    """Return the variables in the order of the data, the target last.

    An explanation without attention or contributions holds no such order; names are then sorted.
    """
    ordered: list[str] | None = None
    if explanation.prior is not None:
        ordered = [str(v) for v in explanation.prior.columns]
    elif explanation.temporal is not None:
        ordered = [str(v) for v in explanation.temporal.index]
    elif explanation.contribution is not None:
        ordered = [str(v) for v in explanation.contribution.columns.get_level_values(0)]
    if ordered is None:
        ordered = sorted(explanation.variables)
    others = [v for v in dict.fromkeys(ordered) if v != explanation.target]
    return (*others, explanation.target)


def one_series(explanation: Explanation | PointExplanation) -> Explanation:
    """Refuse an explanation of several series, or of one forecast, where times follow another."""
    if isinstance(explanation, PointExplanation):
        raise ParameterError(
            "This is one forecast taken apart; give the whole explanation and the time, as in "
            "mvlstm.plot.contributions(explanation, origin)."
        )
    for table in (explanation.prior, explanation.contribution):
        if table is not None and "series" in table.index.names:
            raise DataError(
                "This explanation is of several series; choose one with "
                "explanation.of_series(name)."
            )
    return explanation


def one_forecast(forecast: Forecast) -> Forecast:
    """Refuse a forecast of several series where times must follow one another."""
    if forecast.series is not None and len(set(forecast.series)) > 1:
        raise DataError(
            "This forecast is of several series; choose one with "
            "forecast.take(forecast.series == name)."
        )
    return forecast


def at_step(table: pd.DataFrame, step: int) -> pd.DataFrame:
    """Return the rows of one step ahead of a table by origin, or by origin and step."""
    if "step" not in table.index.names:
        check_step(step, 1, "explanation")
        return table
    steps = table.index.get_level_values("step")
    check_step(step, int(steps.max()), "explanation")
    return table[steps == step].droplevel("step")


def check_step(step: int, most: int, what: str = "forecast") -> None:
    """Raise `DataError` unless something reaches this many steps ahead."""
    if not 1 <= step <= most:
        steps = "step 1 alone" if most == 1 else f"steps 1 to {most}"
        raise DataError(f"step={step} is not in the {what}, which has {steps}.")


def short_verdict(verdict: str) -> str:
    """Write a verdict so that it fits next to a bar or in a table."""
    return {"not distinguishable from noise": "within noise"}.get(verdict, verdict)


def own_past(variable: str, target: str) -> str:
    """Name a variable for a reader: the target is there as its own past."""
    return f"{variable} (own past)" if variable == target else variable


def wall_times(times: NDArray[Any] | pd.Index[Any] | Sequence[Any]) -> NDArray[Any]:
    """Return times as Plotly draws them: wall-clock time without zone, or integers."""
    index: pd.Index[Any] = pd.Index(times)
    if index.dtype == object:
        index = pd.Index(index.tolist())
    if isinstance(index, pd.DatetimeIndex):
        return np.asarray(index.tz_localize(None).to_numpy(dtype="datetime64[s]"))
    return np.asarray(index.to_numpy())


def plain_times(figure: go.Figure, times: NDArray[Any]) -> None:
    """Let a time axis of integers show them in full, not as 10k."""
    if np.issubdtype(times.dtype, np.integer):
        figure.update_xaxes(tickformat="d")


def step_rows(forecast: Forecast, step: int) -> pd.DataFrame:
    """Return one step ahead of every origin as a table: `Forecast.to_frame` of that step."""
    check_step(step, forecast.horizon)
    table = one_forecast(forecast).to_pandas()
    rows = table[table["step"] == step].reset_index(drop=True)
    if "actual" not in rows:
        rows["actual"] = np.nan
    return rows


def scored_rows(forecast: Forecast, part: str | None) -> BoolArray:
    """Choose what to judge (M, H): rows of ``part`` whose value is known.

    Without a ``part``, the new rows; if there are none, the validation rows, or all.
    """
    known = np.isfinite(forecast.actual)
    wanted = ("new", "validation", "train") if part is None else (part,)
    for name in wanted:
        chosen = known & (forecast.part == name)
        if chosen.any():
            return np.asarray(chosen)
    if part is None and known.any():
        return np.asarray(known)
    raise DataError(
        f"No value of '{forecast.target}' is known in the part {part or 'to be judged'}; supply a "
        "table that reaches further, or choose another part."
    )


def thin(values: FloatArray, limit: int, *, recent: int = 0) -> IntArray:
    """Choose rows to draw so that the line looks the same: lowest and highest of each stretch.

    About ``limit`` rows, all of the latest ``recent`` among them; NaN counts as missing. The row
    numbers increase.

    Examples
    --------
    >>> thin(np.array([0.0, 9.0, 1.0, 2.0, -5.0, 3.0, 4.0, 5.0]), 4, recent=2)
    array([1, 4, 6, 7])
    """
    n = len(values)
    if n <= limit:
        return np.arange(n)
    recent = min(recent, limit)
    old = n - recent
    stretches = max(1, (limit - recent) // 2)
    keep = [np.arange(old, n)]
    filled = np.where(np.isfinite(values[:old]), values[:old], 0.0)
    edges = np.linspace(0, old, stretches + 1).astype(np.int64)
    for start, stop in pairwise(edges.tolist()):
        if stop > start:
            piece = filled[start:stop]
            keep.append(start + np.unique([int(piece.argmin()), int(piece.argmax())]))
    return np.unique(np.concatenate(keep)).astype(np.int64)
