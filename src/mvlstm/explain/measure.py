"""Importance on held-out windows: everything that is measured, in the tables that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.explain.attention import Attention, summarise_attention
from mvlstm.explain.effort import get_effort
from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import Scrambled, correlated_groups, error_increase, verdicts
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
from mvlstm.types import FloatArray

FEWEST = 3  # held-out windows
FEW_BLOCKS = 10  # with fewer independent blocks of times, intervals are called rough
NOTES = (
    "Importance is predictive, not causal: it says what this model's forecasts rest on.",
    "Intervals include the spread between members and between times, but not the spread that other "
    "training data would bring.",
)


@dataclass(frozen=True, eq=False)
class Measured:
    """The pieces of an `Explanation` that are measured on held-out windows, under its names.

    ``importance`` has further columns after those of `Explanation`: ``importance_exogenous``,
    ``p_value`` (adjusted), ``posterior_low``, ``posterior_high`` and, for several steps ahead,
    ``error_increase_1`` and so on.
    """

    importance: pd.DataFrame
    groups: pd.DataFrame | None
    summary: pd.DataFrame | None
    temporal: pd.DataFrame | None
    leakage: pd.DataFrame | None
    stability: dict[str, Any]
    notes: tuple[str, ...]
    by_series: pd.DataFrame | None = None
    by_step: pd.DataFrame | None = None


def require_windows(windows: int) -> None:
    """Raise `DataError` if this many held-out windows are too few to measure anything."""
    if windows < FEWEST:
        raise DataError(
            f"{counted(windows, 'held-out window')} {'is' if windows == 1 else 'are'} too few to "
            f"explain a forecast; at least {FEWEST} are needed. Supply more rows, or fit with a "
            "larger test part."
        )


def measure(
    *,
    variables: Sequence[str],
    held: HeldOut,
    base: FloatArray,
    scrambled: Scrambled,
    values: FloatArray | None = None,
    groups: Sequence[int] | None = None,
    attention: Attention | None = None,
    effort: str = "default",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Measured:
    """Measure importance of the N ``variables``, the target last, on held-out windows.

    Parameters
    ----------
    base : array (K, M, H)
        Members' forecasts of the windows as they are.
    scrambled : callable
        ``scrambled(variables, donors)`` gives the forecasts (K, M, H) when the windows of these
        variables (a tuple of indices) are taken from the donors, indices (M,) of other windows.
        `scrambler` makes it from a function that forecasts from windows.
    values : array (M, C), optional
        Columns at the origins, from which correlated variables are found; without them, none are.
    groups : sequence of int (C,), optional
        Variable that owns each column; by default each variable has one.
    progress : callable, optional
        Called with 1 after every forward pass.
    """
    require_windows(len(held.labels))
    level = get_effort(effort)
    names = [str(v) for v in variables]
    target = len(names) - 1
    rise = partial(
        error_increase,
        base,
        held,
        scrambled,
        repeats=level.repeats_for(len(held.labels)),
        draws=level.draws,
        seed=seed,
        progress=progress,
    )
    increase = rise([(i,) for i in range(len(names))])
    summary = None
    if attention is not None:
        summary = summarise_attention(
            attention.prior,
            attention.posterior,
            window=held.window,
            draws=level.draws,
            times=held.times,
            seed=seed,
        )
    table = importance_table(names, increase, summary)
    owner = range(len(names)) if groups is None else groups
    joined = [] if values is None else correlated_groups(values, owner, target=target)
    together = group_table(names, joined, rise(joined)) if joined else None
    return Measured(
        importance=table,
        groups=together,
        summary=None if summary is None else summary_table(names, summary),
        temporal=temporal_table(names, attention, held.leads),
        leakage=leakage_table(names, attention),
        stability=summarise_stability(
            names,
            verdicts(increase, target)[1] == VERDICTS[0],
            increase.estimate,
            increase.per_member,
            increase.draws,
            None if summary is None else summary.per_member,
        ),
        notes=(
            *_notes(held, members=len(base), blocks=increase.blocks),
            *_phase_notes(held, names),
            *(
                f"{group} move together: none of them can be told from noise alone, but all of "
                "them scrambled together can."
                for group in certain_together(table, together)
            ),
        ),
        by_series=None if held.series is None else series_table(names, increase, held.series),
        by_step=step_table(names, increase),
    )


# ------------------------------------------------------------------------------------- inner parts


def _notes(held: HeldOut, *, members: int, blocks: int) -> Iterator[str]:
    if held.part == "calibration":
        yield "Error increases are measured on calibration rows because there are no new rows."
    yield from NOTES
    if members == 1:
        yield "There is only one member, so the intervals include the spread between times only."
    if blocks < FEW_BLOCKS:
        yield (
            f"The held-out rows make only {blocks} independent blocks for at least one "
            "variable, so intervals are rough and verdicts cautious."
        )


def _phase_notes(held: HeldOut, names: Sequence[str]) -> Iterator[str]:
    """Say whether exchanges within each of the series keep the phase of the cycle."""
    if held.period == 1:
        return
    kept = held.phase_kept()
    lost = len(kept) - int(kept.sum())
    cycle = f"the phase of the {held.period}-row cycle"
    if lost:
        where = f" in {lost} of {len(kept)} series" if len(kept) > 1 else ""
        yield (
            f"There are too few unseen rows{where} to keep {cycle}, so importance includes what a "
            "variable tells about that phase."
        )
    if kept.any():
        clocks = " and ".join(names[i] for i in held.clocks)
        yield (
            f"{'In the other series, e' if lost else 'E'}xchanges keep {cycle}, so importance "
            "leaves out what a variable tells about that phase alone"
            + (f" (except for {clocks})." if clocks else ".")
        )
