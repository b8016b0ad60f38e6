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
    """M held-out windows: where they lie, and what happened after them."""

    labels: FloatArray  # (M, H) what happened
    positions: IntArray  # (M,) row of each window's origin, increasing; see `choose_windows`
    window: int
    part: str = "new"  # rows they are taken from; the notes say so when these are not new
    period: int = 1  # cycle whose phase exchanges keep; 1 for none
    clocks: Sequence[int] = ()  # variables that tell this phase, whose exchanges do not keep it
    leads: Sequence[int] = ()  # (N,) steps by which windows reach beyond the last time known
    series: NDArray[Any] | None = None  # (M,) of each window; exchanges stay within a series
    # (M,) where several series share times: intervals and tests draw times, not windows, because
    # series may err together
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
