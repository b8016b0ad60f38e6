"""The recurrence over a window, by the fastest path the device has.

Every path computes what `mvlstm.nn.cell.reference_recurrence` computes.
"""

from __future__ import annotations

from torch import Tensor

from mvlstm.nn._library import library_recurrence
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters


def recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    return library_recurrence(layer, p, x)
