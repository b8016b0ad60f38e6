"""The windows an explanation is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.explain.blocks import exchange, keeps_phase
from mvlstm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HeldOut:
    """M held-out windows: where they lie, and what happened after them.

    Parameters
    ----------
    labels : array (M, H)
        What happened after each window.
    positions : array of int (M,)
        Row of each window's origin, increasing; see `choose_windows`.
    window : int
        T.
    part : {"new", "calibration", "calibration and new"}
        Rows the windows are taken from; the notes say so when these are not new.
    period : int
        Cycle whose phase exchanges keep, usually ``find_period`` of the target; 1 for none.
    clocks : sequence of int
        Variables that tell this phase itself, such as the calendar; their exchanges do not keep it.
    leads : sequence of int (N,)
        Steps by which each variable's window reaches beyond the last time known; empty for none.
    series : array of str (M,), optional
        The series of each window, one after another; exchanges stay within a series.
    times : array of int (M,), optional
        The time of each window, where several series share it. Intervals and tests draw times, not
        windows, because series may err together.
    """

    labels: FloatArray
    positions: IntArray
    window: int
    part: str = "new"
    period: int = 1
    clocks: Sequence[int] = ()
    leads: Sequence[int] = ()
    series: NDArray[Any] | None = None
    times: IntArray | None = None

    def donors(self, rng: np.random.Generator, *, keep_phase: bool = True) -> IntArray:
        """Draw for every window another one, see `exchange`."""
        period = self.period if keep_phase else 1
        codes = None if self.series is None else pd.factorize(self.series)[0]
        return exchange(self.positions, window=self.window, period=period, rng=rng, series=codes)

    @property
    def tells_phase(self) -> bool:
        """Whether some variables must be exchanged without keeping the phase."""
        return self.period > 1 and len(self.clocks) > 0

    def phase_kept(self) -> BoolArray:
        """Say for each series whether exchanges within it can keep the phase."""
        pieces = [self.positions]
        if self.series is not None:
            pieces = np.split(
                self.positions, np.flatnonzero(self.series[1:] != self.series[:-1]) + 1
            )
        kept = [keeps_phase(piece, window=self.window, period=self.period) for piece in pieces]
        return np.array(kept)
