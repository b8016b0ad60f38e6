"""Importance on held-out windows: everything that is measured, in the tables that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.explain.attention import Attention, summarise_attention
from mvlstm.explain.effort import Effort, get_effort
from mvlstm.explain.evidence import Control, top_down
from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import (
    ErrorIncrease,
    Scrambled,
    correlated_groups,
    error_increase,
    leaning,
    part,
    verdicts,
)
from mvlstm.explain.refits import FEWEST as FEWEST_REFITTED
from mvlstm.explain.refits import Left, Rows, combine, leave_out
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
    "Importance is predictive, not causal: it says what a variable adds to forecasts that know the "
    "others.",
    "Intervals include the spread between members and between times, but not the spread that other "
    "training data would bring.",
)
FDR_NOTE = (
    "Of the variables called important or weak, at most 5 % are false on average (control='fdr')."
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
    whole: dict[str, Any] = field(default_factory=dict)


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
    conditional: Scrambled | None = None,
    rows: Rows | None = None,
    values: FloatArray | None = None,
    groups: Sequence[int] | None = None,
    attention: Attention | None = None,
    effort: str | Effort = "default",
    control: Control = "family",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    deadline: float = np.inf,
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
    conditional : callable, optional
        The same with only what the other variables do not explain taken from the donors; by default
        ``scrambled``.
    rows : Rows, optional
        All rows that regressions without a variable may be learned from, in evidence besides the
        forecasts.
    values : array (M, C), optional
        Columns at the origins, from which correlated variables are found; without them, none are.
    groups : sequence of int (C,), optional
        Variable that owns each column; by default each variable has one.
    control : {"family", "fdr"}
        What verdicts hold at 5 %: the chance of any false one, or the share of false ones.
    progress : callable, optional
        Called after every exchange with how many there are.
    deadline : float
        Until when regressions may take, by the monotonic clock: they learn from fewer rows, or are
        left out.
    """
    require_windows(len(held.labels))
    level = get_effort(effort)
    names = [str(v) for v in variables]
    target = len(names) - 1
    owner = range(len(names)) if groups is None else groups
    joined = [] if values is None else correlated_groups(values, owner, target=target)
    single = [(i,) for i in range(len(names))]
    families = [*single, *joined, tuple(range(target))][: len(names) + len(joined) + (target > 0)]
    repeats = level.repeats_for(len(held.labels))
    exchanges = len(families) * (repeats + (rows is not None))
    count = None if progress is None else lambda _: progress(exchanges)
    model = error_increase(
        base,
        held,
        conditional or scrambled,
        families,
        repeats=repeats,
        draws=level.draws,
        seed=seed,
        progress=count,
    )
    every, share, left = model, 1.0, None
    if rows is not None and len(rows) >= FEWEST_REFITTED:
        left = leave_out(rows, families, count, deadline)
    if rows is not None and left is not None:
        every, share = combine(model, left, base, held, seed=seed)
    increase, grouped = part(every, slice(len(names))), part(every, slice(len(names), -1))
    judged = _judge(every, joined, target, control)
    words = verdicts(judged.adjusted, increase.estimate, every.error)
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
    table = importance_table(
        names,
        increase,
        summary,
        p_value=judged.adjusted,
        verdict=words,
        model_increase=model.estimate[: len(names)],
        refit_increase=np.nan if left is None else left.rises.mean(axis=0)[: len(names)],
        leans_on=leaning(base, held, scrambled, single, seed=seed),
        detectable=[found.detectable(max(1, target)) for found in increase.findings],
    )
    together = None
    if joined:
        found = verdicts(judged.groups, grouped.estimate, every.error)
        together = group_table(names, joined, grouped, judged.groups, found)
    return Measured(
        importance=table,
        groups=together,
        summary=None if summary is None else summary_table(names, summary),
        temporal=temporal_table(names, attention, held.leads),
        leakage=leakage_table(names, attention),
        stability=summarise_stability(
            names,
            words == VERDICTS[0],
            increase.estimate,
            increase.per_member,
            increase.draws,
            None if summary is None else summary.per_member,
        ),
        notes=(
            *_notes(held, members=len(base), blocks=increase.blocks),
            *_evidence(held, left, share),
            *((FDR_NOTE,) if control == "fdr" else ()),
            *_phase_notes(held, names),
            *(
                f"{group} move together: none of them can be told from noise alone, but what they "
                "add together can."
                for group in certain_together(table, together)
            ),
        ),
        by_series=None if held.series is None else series_table(names, increase, held.series),
        by_step=step_table(names, increase),
        whole={} if not target else _whole(every, judged.whole),
    )


# ------------------------------------------------------------------------------------- inner parts


class _Judged(NamedTuple):
    whole: float  # adjusted p-values
    groups: FloatArray
    adjusted: FloatArray  # (N,)


def _judge(
    every: ErrorIncrease, joined: Sequence[tuple[int, ...]], target: int, control: Control
) -> _Judged:
    """Adjust the p-values of single variables, groups of them and all; the own past is apart."""
    p = np.array([found.p_value for found in every.findings])
    if not target:
        return _Judged(1.0, np.empty(0), p)
    grouped = list(zip(joined, p[target + 1 : -1], strict=True))
    whole, together, single = top_down(float(p[-1]), grouped, p[:target], control)
    return _Judged(whole, np.array(together), np.append(single, p[target]))


def _whole(every: ErrorIncrease, p_value: float) -> dict[str, Any]:
    """Say what all exogenous variables add together."""
    rise = float(every.estimate[-1])
    word = verdicts(np.array([p_value]), np.array([rise]), every.error)[0]
    ends = {"low": float(every.low[-1]), "high": float(every.high[-1])}
    found = {"error_increase": rise, **ends, "p_value": p_value, "verdict": str(word)}
    return {**found, "squared_error": float(every.error)}


def _evidence(held: HeldOut, left: Left | None, share: float) -> Iterator[str]:
    """Say what the rises in error rest on."""
    if left is None:
        yield f"Rises in error rest on {len(held.labels):,} rows that the model has not seen."
        return
    yield (
        f"Rises in error rest on {len(held.labels):,} rows that the model has not seen (weight "
        f"{share:.0%}) and on regressions learned anew without each variable from "
        f"{len(left.rises):,} rows (weight {1 - share:.0%}); the better a forecast, the larger its "
        "weight."
    )


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
