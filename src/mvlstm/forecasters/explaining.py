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
from mvlstm.explain.contributions import integrated_gradients
from mvlstm.forecasters.preparation import Prepared
from mvlstm.forecasters.scoring import unseen_origins
from mvlstm.results import Explanation

if TYPE_CHECKING:
    from mvlstm.forecasters.base import AbstractForecaster
    from mvlstm.forecasters.problem import AttentionArrays

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

APART = {"quick": 10, "default": 100, "full": 500}  # forecasts taken apart by default


def explain_forecaster(
    model: AbstractForecaster,
    table: pd.DataFrame,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    contributions: int | None = None,
) -> Explanation:
    """Measure importance on rows the model has not seen; see `AbstractForecaster.explain`."""
    level = get_effort(effort)
    frame = model._read(table, "explain")
    prepared = model._prepare(frame)
    unseen, part, part_notes = unseen_origins(model, prepared, "explain")
    period = find_period(frame.target_values, natural=_natural_cycles(frame.step))
    origins = choose_windows(unseen, window=model.window, limit=level.windows, period=period)
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
    names = pd.Index(frame.variables, name="variable")
    count = APART[effort] if contributions is None else contributions
    apart = take_apart(model, prepared, unseen, count)
    return Explanation(
        target=frame.target,
        importance=importance,
        prior=None if arrays is None else _by_origin(arrays.prior, times, names),
        posterior=(
            None
            if arrays is None or arrays.posterior is None
            else _by_origin(arrays.posterior, times, names)
        ),
        temporal=measured.temporal,
        leakage=measured.leakage,
        groups=measured.groups,
        stability=measured.stability,
        summary=measured.summary,
        part=part,
        n_windows=measured.n_windows,
        effort=effort,
        notes=(*part_notes, *measured.notes, *_attention_notes(arrays), *apart.pop("notes", ())),
        **apart,
    )


def take_apart(
    model: AbstractForecaster, prepared: Prepared, origins: IntArray, count: int
) -> dict[str, Any]:
    """Return contribution, response, expert and background for ``count`` of the origins.

    Half of them are the latest ones, ending with the table's last row, whose steps ahead are not
    known yet; the others are spread evenly.
    """
    frame, H, T = prepared.frame, model.horizon, model.window
    last = prepared.origins(T, 0)[-1:]
    rows = _chosen(origins, last, count)
    windows = gather_windows(prepared.table, rows, T).astype(np.float64)
    if not len(rows) or model._gradient(windows[:1]) is None:
        return {}
    background = model.background_.astype(np.float64)

    def forecast(x: FloatArray) -> FloatArray:
        return np.asarray(model._predict_windows(x).mean(axis=0))

    def gradient(x: FloatArray) -> FloatArray:
        slope = model._gradient(x)
        assert slope is not None
        return slope

    tolerance = 5e-4 * float(model.preparation_.scaler.target_scale)
    parts, missed = integrated_gradients(
        gradient, forecast, windows, background, tolerance=tolerance
    )
    start = model.background_baseline_.mean(axis=0)  # (H,)
    parts[:, :, -1, -1] += prepared.baseline(rows, H) - start  # a differenced target's last level
    owner = np.asarray(frame.groups)
    grouped = np.stack(
        [parts[..., owner == n].sum(axis=-1) for n in range(frame.n_variables)], axis=2
    )  # (M, H, N, T)
    lags = range(1, T + 1)
    columns = pd.MultiIndex.from_product([frame.variables, lags], names=["variable", "lag"])
    times = frame.times[rows]
    table = _by_origin(grouped[..., ::-1].reshape(1, len(rows), H, -1), times, columns)
    experts = model._experts(prepared, rows)
    now = forecast(windows)
    responses = []
    for n in range(frame.n_variables):
        raised = windows + (owner == n)
        responses.append(forecast(raised) - now)  # (M, H)
    response = np.stack(responses, axis=-1)
    names = pd.Index(frame.variables, name="variable")
    return {
        "contribution": table,
        "response": _by_origin(response[None], times, names),
        "expert": None if experts is None else _by_origin(experts[None], times, names),
        "notes": _integral_notes(missed, tolerance, model.preparation_.scaler.target_scale),
        "background": tuple(float(v) for v in forecast(background).mean(axis=0) + start),
    }


def _chosen(origins: IntArray, last: IntArray, count: int) -> IntArray:
    """Choose ``count`` rows: the last one, the latest before it, and others spread evenly."""
    every = np.union1d(origins, last)
    if count >= len(every):
        return every
    if count < 1:
        return every[:0]
    recent = (count + 1) // 2
    older = every[: len(every) - recent]
    spread = np.linspace(0, len(older) - 1, count - recent).astype(np.int64)
    return np.concatenate([older[spread], every[-recent:]])


def _integral_notes(missed: FloatArray, tolerance: float, scale: float) -> tuple[str, ...]:
    """Say how far the integrals behind the contributions were from their totals."""
    rough = int((missed > tolerance).sum())
    if not rough:
        return ()
    return (
        f"The integral behind the contributions missed its total in {rough} of {len(missed)} "
        f"forecasts, by up to {missed.max() / scale:.2g} standard deviations of the target; the "
        "rest was spread in proportion, so they add up, but single contributions are that rough.",
    )


def _natural_cycles(step: object) -> tuple[int, ...]:
    """Return the rows in a day and in a week, where they are whole numbers above one."""
    if not isinstance(step, pd.Timedelta):
        return ()
    cycles = (pd.Timedelta(days=1) / step, pd.Timedelta(days=7) / step)
    return tuple(round(rows) for rows in cycles if rows > 1 and rows == round(rows))


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


def _by_origin(values: FloatArray, times: pd.Index[Any], columns: pd.Index[Any]) -> pd.DataFrame:
    """Average over members and lay out as (origin[, step]) x columns."""
    mean = values.mean(axis=0)  # (M, H, N)
    H = mean.shape[1]
    index: pd.Index[Any] = times.rename("origin")
    if H > 1:
        steps = pd.RangeIndex(1, H + 1)
        index = pd.MultiIndex.from_product([index, steps], names=["origin", "step"])
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
