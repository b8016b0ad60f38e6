"""How well scores of variables tell true drivers from the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mvlstm.errors import DataError
from mvlstm.types import BoolArray, FloatArray


def auroc(scores: ArrayLike, truth: ArrayLike) -> float:
    """Chance that a true entry scores higher than a false one; ties count half, NaN if one lacks.

    Examples
    --------
    >>> auroc([0.9, 0.1, 0.5], [True, False, False])
    1.0
    """
    score, true = _matched(scores, truth)
    if true.all() or not true.any():
        return float("nan")
    ahead = score[true][:, None] - score[~true][None, :]
    return float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))


def auprc(scores: ArrayLike, truth: ArrayLike) -> float:
    """Average precision: mean over true entries of the share of true ones down to their rank.

    Entries with equal scores share the last rank among them.

    Examples
    --------
    >>> auprc([0.9, 0.1, 0.5], [True, False, True])
    1.0
    """
    score, true = _matched(scores, truth)
    if not true.any():
        return float("nan")
    reached = [(score >= value) for value in score[true]]
    return float(np.mean([true[rows].mean() for rows in reached]))


def _matched(scores: ArrayLike, truth: ArrayLike) -> tuple[FloatArray, BoolArray]:
    score, true = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    if score.shape != true.shape:
        raise DataError(
            f"Scores have shape {score.shape} but the truth {true.shape}. Pass arrays that match."
        )
    return score, true
