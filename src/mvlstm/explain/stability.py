"""Whether the ranking of variables would come out the same again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mvlstm.types import FloatArray

SETTLED = 0.95  # share of bootstrap draws that must agree on which of two variables comes first
PAIRS = 40  # bootstrap draws compared with one another


def agreement(scores: FloatArray, *, top: int) -> dict[str, float]:
    """Agreement of rankings (K, N) of the same variables, mean over all pairs of rankings.

    Returns ``kendall_tau`` (1 for the same order, 0 for none in common) and ``top_overlap``, the
    share of the ``top`` leading variables that two rankings have in common. NaN for one ranking.
    """
    K, N = scores.shape
    top = int(np.clip(top, 1, max(1, N)))
    if K < 2 or N < 2:
        return {"kendall_tau": float("nan"), "top_overlap": float("nan")}
    pairs = np.triu_indices(K, 1)
    first, second = np.triu_indices(N, 1)
    order = np.sign(scores[:, first] - scores[:, second])  # (K, pairs of variables)
    untied = np.count_nonzero(order, axis=1)
    with np.errstate(invalid="ignore"):
        taus = ((order @ order.T) / np.sqrt(np.outer(untied, untied)))[pairs]
    leads = np.zeros((K, N))
    leaders = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    np.put_along_axis(leads, leaders, 1.0, axis=1)
    known = taus[np.isfinite(taus)]
    return {
        "kendall_tau": float(known.mean()) if known.size else float("nan"),
        "top_overlap": float(np.mean((leads @ leads.T)[pairs] / top)),
    }


def settled_order(
    names: Sequence[str], estimate: FloatArray, draws: FloatArray
) -> tuple[bool | None, list[str]]:
    """Say whether the order of variables is settled, and name neighbours whose order is not.

    Two neighbours in the ranking by ``estimate`` (N,) are settled if at least 95 % of the joint
    bootstrap ``draws`` (B, N), over members and times, put them in the same order. The others are
    returned as pairs such as ``"wind ~ rain"``. Of fewer than two variables there is no order, and
    the first answer is None.
    """
    if len(names) < 2:
        return None, []
    order = np.argsort(-estimate, kind="stable")
    ahead = [float(np.mean(draws[:, i] > draws[:, j])) for i, j in pairwise(order)]
    open_pairs = [
        f"{names[i]} ~ {names[j]}"
        for (i, j), share in zip(pairwise(order), ahead, strict=True)
        if share < SETTLED
    ]
    return not open_pairs, open_pairs


def summarise_stability(
    names: Sequence[str],
    important: Sequence[bool],
    estimate: FloatArray,
    per_member: FloatArray,
    draws: FloatArray,
    posterior: FloatArray | None,
) -> dict[str, Any]:
    """Gather how far members, bootstrap draws and attention agree on the ranking of N variables.

    ``per_member`` and ``posterior`` are (K, N), the joint ``draws`` of the rises (B, N). The answer
    has the keys of `Explanation.stability`; ``top`` is the number of important variables, at least
    one.
    """
    chosen = [i for i, yes in enumerate(important) if yes]
    top = max(1, len(chosen))
    out: dict[str, Any] = {"members": int(per_member.shape[0]), "top": top}
    scores = {"error_increase": per_member, "bootstrap": draws[:PAIRS]}
    if posterior is not None:
        scores["posterior"] = posterior
    for name, values in scores.items():
        out.update({f"{name}_{key}": v for key, v in agreement(values, top=top).items()})
    settled, open_pairs = settled_order(
        [names[i] for i in chosen], estimate[chosen], draws[:, chosen]
    )
    return out | {"order_settled": settled, "unsettled": open_pairs}
