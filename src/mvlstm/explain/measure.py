"""Importance on held-out windows: everything that is measured, in the tables that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.explain.attention import Attention, summarise_attention
from mvlstm.explain.blocks import keeps_phase
from mvlstm.explain.effort import get_effort
from mvlstm.explain.faithfulness import faithfulness_curves
from mvlstm.explain.importance import (
    ErrorIncrease,
    Predict,
    Scrambled,
    correlated_groups,
    error_increase,
    scrambler,
    verdicts,
)
from mvlstm.explain.stability import summarise_stability
from mvlstm.explain.tables import (
    group_table,
    importance_table,
    leakage_table,
    series_table,
    step_table,
    summary_table,
    temporal_table,
)
from mvlstm.results import VERDICTS
from mvlstm.results.explanation import certain_together
from mvlstm.types import FloatArray, IntArray

FEWEST = 3  # held-out windows
NOTES = (
    "Importance is predictive, not causal: it says what this model's forecasts rest on.",
    "Intervals hold the spread between members and between times; the spread from other training "
    "data is not included.",
)


@dataclass(frozen=True, eq=False)
class Measured:
    """The pieces of an explanation, ready to be put into `mvlstm.results.Explanation`.

    Attributes
    ----------
    importance : DataFrame
        The columns of `Explanation.importance`, then ``importance_exogenous``, ``p_value``
        (adjusted), ``posterior_low``, ``posterior_high`` and, for several steps ahead,
        ``error_increase_1`` and so on.
    groups : DataFrame or None
        Correlated variables exchanged together; None if there are none.
    summary : DataFrame or None
        Prior and posterior attention a variable: shift, parts of KL divergence and entropies.
    temporal, leakage : DataFrame or None
        Variable x lag (lag 1 is the last time known), expert x variable.
    stability : dict
        Agreement of the members' rankings.
    n_windows : int
        Windows measured.
    effort : str
        Level of effort.
    notes : tuple of str
        What to bear in mind.
    by_series : DataFrame or None
        Rise and importance within each series.
    by_step : DataFrame or None
        Rise and importance at each of several steps ahead.
    faithfulness : DataFrame or None
        Error as variables are taken away and given back in the ranking's order and in others.
    """

    importance: pd.DataFrame
    groups: pd.DataFrame | None
    summary: pd.DataFrame | None
    temporal: pd.DataFrame | None
    leakage: pd.DataFrame | None
    stability: dict[str, Any]
    n_windows: int
    effort: str
    notes: tuple[str, ...]
    by_series: pd.DataFrame | None = None
    by_step: pd.DataFrame | None = None
    faithfulness: pd.DataFrame | None = None


def require_windows(windows: int) -> None:
    """Raise `DataError` if so many held-out windows are too few to measure anything on."""
    if windows < FEWEST:
        raise DataError(
            f"{counted(windows, 'held-out window')} {'is' if windows == 1 else 'are'} too few to "
            f"explain a forecast; at least {FEWEST} are "
            "needed. Supply more rows, or fit with a larger test part."
        )


def measure(
    *,
    variables: Sequence[str],
    labels: FloatArray,
    positions: IntArray,
    window: int,
    predict: Predict | None = None,
    windows: FloatArray | None = None,
    groups: Sequence[int] | None = None,
    base: FloatArray | None = None,
    scrambled: Scrambled | None = None,
    values: FloatArray | None = None,
    attention: Attention | None = None,
    part: str = "new",
    period: int = 1,
    clocks: Sequence[int] = (),
    leads: Sequence[int] = (),
    series: NDArray[Any] | None = None,
    times: IntArray | None = None,
    curves: bool = False,
    effort: str = "default",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Measured:
    """Measure importance on held-out windows.

    Give either ``predict`` and ``windows``, or, for a model that does not forecast from windows,
    ``base``, ``scrambled`` and (for groups of correlated variables) ``values``.

    Parameters
    ----------
    variables : sequence of str
        N names, the target last.
    labels : array (M, H)
        What happened after each window.
    positions : array of int (M,)
        Row of each window's origin, increasing; see `choose_windows`.
    window : int
        T.
    predict : callable
        Windows (M, T, C) to the members' point forecasts (K, M, H).
    windows : array (M, T, C)
        Held-out windows, in whatever units ``predict`` takes.
    groups : sequence of int (C,), optional
        Variable that owns each column; one column each by default.
    base : array (K, M, H), optional
        Members' forecasts of the windows as they are, if already known.
    scrambled : callable, optional
        ``scrambled(variables, donors)`` gives the forecasts (K, M, H) when the windows of these
        variables (a tuple of indices) are taken from the donors, indices (M,) of other windows.
    values : array (M, C), optional
        Columns at the origins, from which correlated groups are found; the windows' last rows by
        default.
    attention : Attention, optional
        For models that have it.
    part : {"new", "calibration", "calibration and new"}
        Rows the windows are taken from; said in the notes when not new.
    period : int
        Cycle whose phase the exchanges keep, usually ``find_period`` of the target.
    clocks : sequence of int
        Variables that tell this phase itself, such as the calendar; theirs do not keep it.
    leads : sequence of int (N,), optional
        Steps by which each variable's window reaches beyond the last time known; none by default.
    series : array of str (M,), optional
        The series of each window, one after another; exchanges stay within a series.
    times : array of int (M,), optional
        The time of each window, where several series share it; intervals and tests rest on times.
    curves : bool
        Whether to take variables away and give them back one after another.
    effort, seed
        Level of effort; source of randomness (same seed, same numbers).
    progress : callable, optional
        Called with 1 after every forward pass.

    Returns
    -------
    Measured
    """
    level = get_effort(effort)
    names = [str(v) for v in variables]
    owner = list(range(len(names))) if groups is None else [int(g) for g in groups]
    require_windows(len(labels))
    if scrambled is None:
        assert predict is not None and windows is not None, "predict and windows, or scrambled"
        scrambled = scrambler(predict, windows, owner)
        base = predict(windows) if base is None else base
        values = windows[:, -1, :] if values is None else values
    assert base is not None, "scrambled needs base"
    target = len(names) - 1
    joined = [] if values is None else correlated_groups(values, owner, target=target)
    codes = None if series is None else pd.factorize(series)[0]
    rise = partial(
        error_increase,
        base,
        labels,
        scrambled,
        positions=positions,
        window=window,
        repeats=level.repeats_for(labels.shape[0]),
        draws=level.draws,
        period=period,
        clocks=clocks,
        series=codes,
        times=times,
        seed=seed,
        progress=progress,
    )
    increase = rise([(i,) for i in range(len(names))])
    summary = (
        None
        if attention is None
        else summarise_attention(
            attention.prior,
            attention.posterior,
            window=window,
            draws=level.draws,
            times=times,
            seed=seed,
        )
    )
    table = importance_table(names, increase, summary)
    together = group_table(names, joined, rise(joined)) if joined else None
    pieces = [positions] if codes is None else _pieces(positions, codes)
    kept = [keeps_phase(piece, window=window, period=period) for piece in pieces]
    notes = (
        *_notes(base, increase, part),
        *_phase_notes(period, kept, [names[i] for i in clocks]),
    )
    return Measured(
        importance=table,
        groups=together,
        summary=None if summary is None else summary_table(names, summary),
        temporal=temporal_table(names, attention, leads),
        leakage=leakage_table(names, attention),
        stability=summarise_stability(
            names,
            verdicts(increase, target)[1] == VERDICTS[0],
            increase.estimate,
            increase.per_member,
            increase.draws,
            None if summary is None else summary.per_member,
        ),
        n_windows=int(labels.shape[0]),
        effort=effort,
        notes=(*notes, *_together_notes(table, together)),
        by_series=None if series is None else series_table(names, increase, series),
        by_step=step_table(names, increase),
        faithfulness=faithfulness_curves(
            base,
            labels,
            scrambled,
            [i for i in np.argsort(-increase.estimate, kind="stable") if i != target],
            positions=positions,
            window=window,
            period=period,
            clocks=clocks,
            series=codes,
            seed=seed,
        )
        if curves
        else None,
    )


# ------------------------------------------------------------------------------------- inner parts


def _together_notes(importance: pd.DataFrame, groups: pd.DataFrame | None) -> Iterator[str]:
    for group in certain_together(importance, groups):
        yield (
            f"{group} move together: none of them can be told from noise alone, but all of them "
            "scrambled together can."
        )


def _notes(base: FloatArray, increase: ErrorIncrease, part: str) -> tuple[str, ...]:
    notes = list(NOTES)
    if part == "calibration":
        notes.insert(
            0, f"Error increases are measured on {part} rows because there are no new rows."
        )
    if base.shape[0] == 1:
        notes.append("There is one member, so the intervals hold the spread between times only.")
    if increase.blocks < 10:
        notes.append(
            f"The held-out rows make only {increase.blocks} independent blocks for at least one "
            "variable, so intervals are rough and verdicts cautious."
        )
    return tuple(notes)


def _phase_notes(period: int, kept: Sequence[bool], clocks: Sequence[str]) -> Iterator[str]:
    """Say whether exchanges within each of the series keep the phase of the cycle."""
    if period == 1:
        return
    lost = len(kept) - sum(kept)
    if lost:
        where = f" in {lost} of {len(kept)} series" if len(kept) > 1 else ""
        yield (
            f"Too few unseen rows{where} to keep the phase of the cycle of {period} rows: what a "
            f"variable tells about that phase is counted{' there' if any(kept) else ''}."
        )
    if any(kept):
        yield (
            f"{'In the other series e' if lost else 'E'}xchanges keep the phase of the cycle of "
            f"{period} rows: what a variable tells about that phase alone is not counted"
            + (f", but for {' and '.join(clocks)}." if clocks else ".")
        )


def _pieces(positions: IntArray, codes: IntArray) -> list[IntArray]:
    """Return the positions of each series, one after another."""
    return np.split(positions, np.flatnonzero(np.diff(codes)) + 1)
