"""Which variables a forecaster rests on, from a predict function and arrays.

The forecaster chooses held-out origins with `choose_windows`, describes them in a `HeldOut`, makes
its forecasts and attention for them and calls `measure`; the answer holds the tables of a
`mvlstm.results.Explanation`. Nothing here knows a forecaster class.
"""

from __future__ import annotations

from mvlstm.explain.attention import Attention, calibrated_sigma2, posterior
from mvlstm.explain.blocks import choose_windows, exchange, find_period
from mvlstm.explain.effort import EFFORTS, Effort, get_effort
from mvlstm.explain.held_out import HeldOut
from mvlstm.explain.importance import scrambler
from mvlstm.explain.measure import Measured, measure, require_windows
from mvlstm.explain.refits import Rows

__all__ = [
    "EFFORTS",
    "Attention",
    "Effort",
    "HeldOut",
    "Measured",
    "Rows",
    "calibrated_sigma2",
    "choose_windows",
    "exchange",
    "find_period",
    "get_effort",
    "measure",
    "posterior",
    "require_windows",
    "scrambler",
]
