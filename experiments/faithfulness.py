"""Whether a ranking is faithful: the error as variables are taken away or given back in its order.

Deletion scrambles the exogenous variables one after another, insertion starts with all of them
scrambled and gives them back. If the ranking is right, taking its first variables away hurts at
once and giving them back helps at once: its deletion curve lies above, its insertion curve below
those of a random order, and those of the reversed order lie on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import Scrambled
from mvlstm.types import FloatArray

RANDOM_ORDERS = 3


def faithfulness_curves(
    base: FloatArray, held: HeldOut, scrambled: Scrambled, ranking: Sequence[int], *, seed: int = 0
) -> pd.DataFrame:
    """Return the error along deletion and insertion in three orders.

    Arguments are those of `mvlstm.explain.importance.error_increase`; ``ranking`` has the
    variables, most important first, without the target's own past. Where a clock is among those
    taken away, the exchange does not keep the phase.

    Returns
    -------
    DataFrame
        One row per point: ``curve`` ("deletion", "insertion"), ``order`` ("importance", "random",
        "reversed"), ``changed`` (variables taken away or given back so far), ``error`` (mean
        squared error, relative to the error with nothing taken away).
    """
    rng = np.random.default_rng([seed, 5])
    donors = free = held.donors(rng)
    if held.tells_phase:
        free = held.donors(np.random.default_rng([seed, 6]), keep_phase=False)
    plain = _error(base, held.labels)
    known: dict[frozenset[int], float] = {frozenset(): 1.0}

    def error_without(away: frozenset[int]) -> float:
        if away not in known:
            moved = scrambled(tuple(sorted(away)), donors if away.isdisjoint(held.clocks) else free)
            known[away] = _error(moved, held.labels) / max(plain, np.finfo(np.float64).tiny)
        return known[away]

    rows = []
    for order, variables in _orders(list(ranking), rng):
        for count in range(len(variables) + 1):
            first, others = frozenset(variables[:count]), frozenset(variables[count:])
            rows.append(("deletion", order, count, error_without(first)))
            rows.append(("insertion", order, count, error_without(others)))
    table = pd.DataFrame(rows, columns=["curve", "order", "changed", "error"])
    return table.groupby(["curve", "order", "changed"], as_index=False, sort=True).mean()


def faithfulness_areas(curves: pd.DataFrame) -> dict[str, float]:
    """Return the mean height of every curve, such as ``deletion_importance``."""
    names = curves["curve"] + "_" + curves["order"]
    means = curves.groupby(names)["error"].mean()
    return {str(name): float(means[name]) for name in means.index}


def _error(members: FloatArray, labels: FloatArray) -> float:
    return float(np.mean((members.mean(axis=0) - labels) ** 2))


def _orders(ranking: list[int], rng: np.random.Generator) -> Iterator[tuple[str, list[int]]]:
    yield "importance", ranking
    yield "reversed", ranking[::-1]
    for _ in range(RANDOM_ORDERS):
        yield "random", [ranking[i] for i in rng.permutation(len(ranking))]
