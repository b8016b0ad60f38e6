"""At which lags a variable acts: mean size of its contributions, and attention, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mvlstm.explain.blocks import interval
from mvlstm.types import FloatArray

DRAWS = 200
BLOCKS = 20  # pieces of neighbouring forecasts that are drawn as a whole


def lag_table(
    variables: Sequence[str],
    contributions: FloatArray | None,
    attention: FloatArray | None,
    *,
    leads: Sequence[int] = (),
) -> pd.DataFrame | None:
    """Lay out `Explanation.lags`, what is known about every variable and lag; None if nothing is.

    ``contributions`` (K, M, H, N, T) to each member's forecasts and its mean ``attention`` (K, N,
    L) over past steps have the oldest step first; attention's newest has lag 2. ``leads`` are those
    of `HeldOut`; lag 0 is the first step ahead.
    """
    if contributions is None and attention is None:
        return None
    tables = []
    if contributions is not None:
        size, low, high = _sizes(contributions[..., ::-1])  # (N, T), lag 1 first
        total = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        shown = {"contribution": size, "low": low, "high": high, "share": size / total}
        tables.append(_tidy(variables, shown, leads, first=1))
    if attention is not None:
        mean, low, high = _over_members(attention[..., ::-1])
        shown = {"attention": mean, "attention_low": low, "attention_high": high}
        tables.append(_tidy(variables, shown, leads, first=2))
    joined = tables[0] if len(tables) == 1 else tables[0].join(tables[1])  # the first has all lags
    return joined.reset_index()


def lag_index(
    variables: Sequence[str], leads: Sequence[int], count: int, *, first: int = 1
) -> pd.MultiIndex:
    """Return variables and lags, newest first; those of a variable known ahead begin earlier."""
    leads = list(leads) or [0] * len(variables)
    pairs = [
        (name, lag - lead)
        for name, lead in zip(variables, leads, strict=True)
        for lag in range(first, first + count)
    ]
    return pd.MultiIndex.from_tuples(pairs, names=["variable", "lag"])


def _tidy(
    variables: Sequence[str], columns: dict[str, FloatArray], leads: Sequence[int], *, first: int
) -> pd.DataFrame:
    count = next(iter(columns.values())).shape[1]
    index = lag_index(variables, leads, count, first=first)
    return pd.DataFrame({name: values.reshape(-1) for name, values in columns.items()}, index)


def _sizes(members: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean absolute contribution (N, T) over forecasts and steps, with its interval."""
    K, M, H = members.shape[:3]
    rng = np.random.default_rng([0, 3])
    blocks = np.array_split(np.arange(M), min(BLOCKS, M))
    weights, drawn = np.empty((DRAWS, K)), np.empty((DRAWS, len(blocks)))
    for draw in range(DRAWS):
        weights[draw] = rng.multinomial(K, np.full(K, 1 / K)) / K
        chosen = rng.integers(len(blocks), size=len(blocks))
        drawn[draw] = np.bincount(chosen, minlength=len(blocks))
    estimate = np.abs(members.mean(axis=0)).mean(axis=(0, 1))
    total = np.zeros((DRAWS, *estimate.shape))
    for count, rows in zip(drawn.T, blocks, strict=True):
        for one in np.moveaxis(members[:, rows].reshape(K, -1, *estimate.shape), 1, 0):
            total += count[:, None, None] * np.abs(np.tensordot(weights, one, axes=1))
    draws = total / (H * (drawn @ [len(rows) for rows in blocks]))[:, None, None]
    return estimate, *interval(draws, estimate)


def _over_members(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean over members (N, L), with the interval from resampling them."""
    K = len(values)
    weights = np.random.default_rng([0, 4]).multinomial(K, np.full(K, 1 / K), size=DRAWS) / K
    estimate = values.mean(axis=0)
    return estimate, *interval(np.tensordot(weights, values, axes=1), estimate)
