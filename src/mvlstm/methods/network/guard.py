"""Never much worse than the link: where networks did harm, forecasts stay close to the linear map.

On a series that drifts, what networks learned of the residuals of the link may be wrong by the time
it is used. The later validation rows, by which nothing else was chosen, tell: where the mean of an
ensemble has a larger squared error there than its linear link alone, forecasts are moved back
towards the link's, by the share of least squared error. Where the ensemble is better it stays as it
is, to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mvlstm.methods.network.link import Link
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.problem.problem import Problem
from mvlstm.table.parts import PartName
from mvlstm.types import FloatArray

FEWEST = 40  # windows that can tell
LEAST = 0.02  # share of the networks that always stays, so that a forecast still says what they do


def guarded(
    trained: TrainedNetwork[Any], problem: Problem, part: PartName = "calibration"
) -> tuple[TrainedNetwork[Any], tuple[str, ...]]:
    """Return the members, moved towards the link where they do harm, and a note if they were.

    Each of several ensembles in one batch decides for itself, on windows of a part of the rows.
    With too few of these all stays as it was.
    """
    rows, link = problem.origins[part], trained.labels.link
    linear = isinstance(link, Link) and link.name == "linear"
    if not linear or len(rows) < FEWEST or problem.search:
        return trained, ()
    trained, prepared = replace(trained, share=None), problem.prepared
    actual = prepared.known_labels(rows, problem.horizon)
    guess = link.rows(prepared.table, rows, trained.window)
    found = trained.rows(prepared.table, rows)
    size = problem.ensemble or len(found)
    share = np.ones(len(found))
    for first in range(0, len(found), size):
        own = slice(first, first + size)
        share[own] = kept_share(found[own].mean(axis=0), guess, actual)
    if (share == 1).all():
        return trained, ()
    return replace(trained, share=share), (
        f"On the later validation rows the networks did worse than their linear link: the "
        f"forecasts are the link's, moved {share.min():.0%} of the way towards theirs.",
    )


def kept_share(found: FloatArray, guess: FloatArray, actual: FloatArray) -> float:
    """Return how far to go from the link's guess to the networks' forecasts, all (M, H).

    Examples
    --------
    >>> guess, actual = np.zeros((3, 1)), np.array([[1.0], [-1.0], [1.0]])
    >>> kept_share(0.5 * actual, guess, actual), round(kept_share(4 * actual, guess, actual), 2)
    (1.0, 0.25)
    """
    known = np.isfinite(actual)
    moved, left = (found - guess)[known], (actual - guess)[known]
    if not np.sum((left - moved) ** 2) > np.sum(left**2):
        return 1.0
    return float(np.clip(moved @ left / (moved @ moved), LEAST, 1.0))
