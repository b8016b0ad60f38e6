"""The recurrence over a window, by the fastest path the device has.

Every path computes what `mvlstm.nn.reference.reference_recurrence` computes:

- on the CPU loops over time, member by member;
- on a GPU one launch per time step for all members, through Triton, in single precision;
- on a GPU without Triton, or in double precision, one product per time step for all members.
"""

from __future__ import annotations

from torch import Tensor

from mvlstm.nn.backends.device import kernels_run_on
from mvlstm.nn.backends.loops import loop_recurrence
from mvlstm.nn.backends.packed import batched_recurrence
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters


def recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    if kernels_run_on(x):
        from mvlstm.nn.backends.triton import triton_recurrence

        return triton_recurrence(layer, p, x)
    return batched_recurrence(layer, p, x) if x.is_cuda else loop_recurrence(layer, p, x)
