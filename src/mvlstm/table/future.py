"""Rows after the last known target: what is known ahead in them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mvlstm.errors import DataError
from mvlstm.table.panel import Panel
from mvlstm.table.spacing import Step, describe_time, spacing
from mvlstm.types import BoolArray, FloatArray


def future_rows(values: FloatArray, missing: str, panel: Panel | None) -> BoolArray:
    """Say which rows lie after the last known target, in their series where there are several.

    Where incomplete rows are dropped it is the last complete row that counts: later ones may
    still hold what is known ahead.
    """
    later = after_last(np.isnan(values[:, -1]), panel)
    if missing != "drop":
        return later
    incomplete = after_last(np.asarray(~np.isfinite(values).all(axis=1)), panel)
    return later if incomplete.all() else incomplete


def after_last(unknown: BoolArray, panel: Panel | None) -> BoolArray:
    """Say which rows come after the last one (of their series) that is known."""
    rows = np.arange(len(unknown))
    last = np.maximum.accumulate(np.where(unknown, -1, rows))  # the last row known
    if panel is None:
        return np.asarray(rows > last[-1]) if len(rows) else unknown
    ends = np.flatnonzero(np.append(panel.borders, True))
    counts = np.diff(np.concatenate([[-1], ends]))
    return np.asarray(rows > np.repeat(last[ends], counts)) & unknown


def usable_rows(
    times: pd.Index,
    after: pd.Index,
    complete: BoolArray,
    step: Step | None,
    gaps: str,
    *,
    panels: tuple[Panel, Panel] | None = None,
) -> BoolArray:
    """Say which future rows continue their series without a gap and without a missing value.

    ``times`` are those of the rows and ``after`` those of the future rows, of which ``complete``
    says whether all that is known ahead is given; ``panels`` are the series of both. Gaps are
    refused, do not matter ("close"), or end what is usable ("respect").
    """
    joined = times.append(after)
    codes = np.zeros(len(joined), dtype=np.int64)
    if panels is not None:
        codes = np.concatenate([panels[0].codes, panels[1].codes])
    order = np.argsort(codes, kind="stable")  # future rows after the rows of their series
    same = np.concatenate([[False], np.diff(codes[order]) == 0])
    broken = np.zeros(len(joined), dtype=bool)
    if step is not None and gaps != "close" and len(joined) > 1:
        distances, unit = spacing(joined[order], step)
        broken[1:] = distances != unit
    broken &= same & (order >= len(times))  # gaps between other rows are looked at elsewhere
    cut_off = np.unique(codes[order[broken]])  # series that are not continued
    if gaps == "error" and len(cut_off) == len(np.unique(codes[len(times) :])) > 0:
        place = int(np.flatnonzero(broken)[0])
        before, here = joined[order[place - 1]], joined[order[place]]
        where = "" if panels is None else f" in series '{panels[0].names[codes[order[place]]]}'"
        raise DataError(
            f"The rows given for the future do not continue from the last one known{where}: "
            f"{describe_time(here)} comes after {describe_time(before)}. Supply every row between."
        )
    broken |= ~np.concatenate([np.ones(len(times), dtype=bool), complete])[order]
    broken |= ~same & (order >= len(times))  # a series without a past
    count = np.cumsum(broken)
    first = np.flatnonzero(~same)
    before_first = np.repeat(count[first] - broken[first], np.diff(np.append(first, len(order))))
    fine = np.empty(len(joined), dtype=bool)
    fine[order] = count == before_first
    return np.asarray(fine[len(times) :])
