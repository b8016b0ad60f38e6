"""The tables of an explanation, from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.explain.attention import Attention, AttentionSummary
from mvlstm.explain.importance import ErrorIncrease, headline
from mvlstm.metrics import variance_of_mean
from mvlstm.results import IMPORTANCE_COLUMNS
from mvlstm.types import FloatArray

WITHIN = 1.645  # standard errors to either end of a 90 % interval


def importance_table(
    names: list[str], increase: ErrorIncrease, summary: AttentionSummary | None, **more: Any
) -> pd.DataFrame:
    """Lay out importance, one row per variable, most important first.

    ``more`` are columns with a value for each variable, among them ``verdict`` and ``p_value``.
    """
    target = len(names) - 1
    attended = ("posterior", "prior", "posterior_low", "posterior_high")
    columns: dict[str, Any] = {
        "variable": names,
        **{name: np.nan if summary is None else getattr(summary, name) for name in attended},
        "error_increase": increase.estimate,
        "error_increase_low": increase.low,
        "error_increase_high": increase.high,
        **more,
        **headline(increase, target),
    }
    extra = ["importance_exogenous", "posterior_low", "posterior_high"]
    extra += [name for name in more if name not in IMPORTANCE_COLUMNS]
    if increase.per_step.shape[1] > 1:
        for step, rise in enumerate(increase.per_step.T, start=1):
            columns[f"error_increase_{step}"] = rise
            extra.append(f"error_increase_{step}")
    table = pd.DataFrame(columns)[[*IMPORTANCE_COLUMNS, *extra]]
    order = ["importance", "error_increase"]
    return table.sort_values(order, ascending=False, kind="stable").reset_index(drop=True)


def group_table(
    names: list[str],
    joined: list[tuple[int, ...]],
    increase: ErrorIncrease,
    adjusted: FloatArray,
    words: NDArray[np.object_],
) -> pd.DataFrame:
    """Lay out what correlated variables add together."""
    table = pd.DataFrame(
        {
            "group": [" + ".join(names[i] for i in members) for members in joined],
            "error_increase": increase.estimate,
            "error_increase_low": increase.low,
            "error_increase_high": increase.high,
            "verdict": words,
            "p_value": adjusted,
        }
    )
    return table.sort_values("error_increase", ascending=False).reset_index(drop=True)


def summary_table(names: list[str], summary: AttentionSummary) -> pd.DataFrame:
    """Lay out how far the data move the attention, one row per variable."""
    return pd.DataFrame(
        {
            "variable": names,
            "prior": summary.prior,
            "posterior": summary.posterior,
            "shift": summary.posterior - summary.prior,
            "kl": summary.kl,
            "prior_entropy": summary.prior_entropy,
            "posterior_entropy": summary.posterior_entropy,
        }
    )


def series_table(names: list[str], increase: ErrorIncrease, series: NDArray[Any]) -> pd.DataFrame:
    """Lay out importance within each series: shares of its own rises, which sum to one.

    Intervals allow for the dependence of its rises in time, and not for the spread of members.
    """
    groups = pd.DataFrame(increase.by_window, columns=names).groupby(series, sort=True)
    rises = groups.mean()
    spread = [[variance_of_mean(rows[name]) ** 0.5 for name in names] for _, rows in groups]
    reach = WITHIN * np.array(spread).reshape(-1)
    positive = rises.clip(lower=0.0)
    shares = positive.div(positive.sum(axis=1).replace(0.0, np.nan), axis=0)
    counts = pd.Series(series).value_counts()
    table = pd.DataFrame(
        {
            "series": np.repeat(rises.index.to_numpy(), len(names)),
            "variable": np.tile(names, len(rises)),
            "importance": shares.to_numpy().reshape(-1),
            "error_increase": rises.to_numpy().reshape(-1),
            "error_increase_low": rises.to_numpy().reshape(-1) - reach,
            "error_increase_high": rises.to_numpy().reshape(-1) + reach,
            "n_windows": np.repeat(counts[rises.index].to_numpy(), len(names)),
        }
    )
    order = ["series", "importance", "error_increase"]
    return table.sort_values(
        order, ascending=[True, False, False], kind="stable", ignore_index=True
    )


def step_table(names: list[str], increase: ErrorIncrease) -> pd.DataFrame | None:
    """Lay out importance by step ahead: shares of a step's rises, with intervals over times."""
    H = increase.per_step.shape[1]
    if H == 1:
        return None
    positive = np.maximum(increase.per_step, 0.0)  # (N, H)
    total = positive.sum(axis=0)
    shares = positive / np.where(total > 0, total, np.nan)
    return pd.DataFrame(
        {
            "step": np.repeat(np.arange(1, H + 1), len(names)),
            "variable": np.tile(names, H),
            "importance": shares.T.reshape(-1),
            "error_increase": increase.per_step.T.reshape(-1),
            "error_increase_low": increase.per_step_low.T.reshape(-1),
            "error_increase_high": increase.per_step_high.T.reshape(-1),
        }
    )


def temporal_table(
    names: list[str], attention: Attention | None, leads: Sequence[int]
) -> pd.DataFrame | None:
    """Mean over members; attention covers steps 1..T-1 of the window, so its newest has lag 2.

    A variable known ahead has lags of its own: 0 is the first step ahead. Lags that a variable
    does not have are NaN.
    """
    if attention is None or attention.temporal is None:
        return None
    weights = attention.temporal.mean(axis=0)[:, ::-1]  # (N, L), newest first
    leads = list(leads) or [0] * len(names)
    most = max(leads)
    lags = pd.RangeIndex(2 - most, weights.shape[1] + 2 - min(leads), name="lag")
    table = np.full((len(names), len(lags)), np.nan)
    for row, lead, own in zip(table, leads, weights, strict=True):
        row[most - lead : most - lead + len(own)] = own
    return pd.DataFrame(table, index=pd.Index(names, name="variable"), columns=lags)


def leakage_table(names: list[str], attention: Attention | None) -> pd.DataFrame | None:
    """Lay out the leakage, expert by variable."""
    if attention is None or attention.leakage is None:
        return None
    rows, columns = pd.Index(names, name="expert"), pd.Index(names, name="variable")
    return pd.DataFrame(attention.leakage, index=rows, columns=columns)
