"""From a fitted forecaster and a table to an `Explanation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.data.windows import gather_labels, gather_windows
from mvlstm.explain import Attention, choose_windows, find_period, get_effort, measure
from mvlstm.forecasters.preparation import Prepared
from mvlstm.results import Explanation

if TYPE_CHECKING:
    from mvlstm.forecasters.base import AbstractForecaster, AttentionArrays

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def explain_forecaster(
    model: AbstractForecaster,
    table: pd.DataFrame,
    *,
    effort: Literal["quick", "default", "full"] = "default",
) -> Explanation:
    """Measure importance on rows the model has not seen; see `AbstractForecaster.explain`."""
    level = get_effort(effort)
    frame = model._read(table, "explain")
    prepared = model._prepare(frame)
    origins, part, part_notes = model._unseen_origins(prepared)
    period = find_period(frame.target_values)
    origins = choose_windows(
        origins, window=model.window, limit=level.windows, period=period
    )
    arrays = model._attention(prepared, origins)
    total = len(frame.variables) * level.repeats
    with _progress(model.verbose, total) as advance:
        measured = measure(
            variables=frame.variables,
            labels=gather_labels(frame, origins, model.horizon),
            positions=origins,
            window=model.window,
            groups=frame.groups,
            base=_forecasts(model, prepared, origins),
            scrambled=_scrambler(model, prepared, origins),
            values=np.asarray(prepared.table[origins], dtype=np.float64),
            attention=_attention(arrays),
            part=part,
            period=period,
            effort=effort,
            progress=advance,
        )
    importance = measured.importance
    own = model._model_importance()
    if own is not None:
        place = {name: value for name, value in zip(frame.variables, own, strict=True)}
        importance = importance.assign(own=importance["variable"].map(place))
    times = frame.times[origins]
    return Explanation(
        target=frame.target,
        importance=importance,
        prior=None if arrays is None else _by_origin(arrays.prior, times, frame.variables),
        posterior=(
            None
            if arrays is None or arrays.posterior is None
            else _by_origin(arrays.posterior, times, frame.variables)
        ),
        temporal=measured.temporal,
        leakage=measured.leakage,
        groups=measured.groups,
        stability=measured.stability,
        summary=measured.summary,
        part=part,
        n_windows=measured.n_windows,
        effort=effort,
        notes=(*part_notes, *measured.notes, *_attention_notes(arrays)),
    )


def _forecasts(model: AbstractForecaster, prepared: Prepared, origins: IntArray) -> FloatArray:
    members = model._predict_rows(prepared, origins).members
    return members + prepared.baseline(origins, model.horizon)


def _scrambler(
    model: AbstractForecaster, prepared: Prepared, origins: IntArray
) -> Callable[[tuple[int, ...], IntArray], FloatArray]:
    """Return the function that forecasts with some variables' windows taken from other times."""

    def scrambled(variables: tuple[int, ...], donors: IntArray) -> FloatArray:
        return model._predict_scrambled(prepared, origins, variables, donors)

    return scrambled


def scrambled_windows(
    model: AbstractForecaster,
    prepared: Prepared,
    origins: IntArray,
    variables: tuple[int, ...],
    donors: IntArray,
) -> FloatArray:
    """Forecast (K, M, H) from windows in which ``variables`` come from the donors' windows.

    A differenced target's baseline belongs to its own past and is exchanged with it.
    """
    owner = np.asarray(prepared.frame.groups)
    columns = np.flatnonzero(np.isin(owner, variables))
    windows = gather_windows(prepared.table, origins, model.window)
    windows[:, :, columns] = windows[donors][:, :, columns]
    baseline = prepared.baseline(origins, model.horizon)
    if int(owner[-1]) in variables:
        baseline = baseline[donors]
    return model._predict_windows(windows) + baseline


def _attention(arrays: AttentionArrays | None) -> Attention | None:
    if arrays is None:
        return None
    after = arrays.prior if arrays.posterior is None else arrays.posterior
    return Attention(arrays.prior, after, arrays.temporal, arrays.leakage)


def _attention_notes(arrays: AttentionArrays | None) -> tuple[str, ...]:
    if arrays is None or arrays.posterior is not None:
        return ()
    return ("This model has no posterior attention; its prior stands in that column.",)


def _by_origin(
    values: FloatArray, times: pd.Index[Any], variables: tuple[str, ...]
) -> pd.DataFrame:
    """Average over members and lay out as (origin[, step]) x variable."""
    mean = values.mean(axis=0)  # (M, H, N)
    H = mean.shape[1]
    index: pd.Index[Any] = times.rename("origin")
    if H > 1:
        steps = pd.RangeIndex(1, H + 1)
        index = pd.MultiIndex.from_product([index, steps], names=["origin", "step"])
    columns = pd.Index(variables, name="variable")
    return pd.DataFrame(mean.reshape(-1, mean.shape[2]), index=index, columns=columns)


@contextmanager
def _progress(verbose: int, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal while the variables are scrambled."""
    import sys

    if verbose <= 0 or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Scrambling variables", total=total)
        yield lambda done: bar.advance(task, done)
