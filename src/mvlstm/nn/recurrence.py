"""The recurrence over a window, by the fastest path the device has.

Every path computes what `mvlstm.nn.reference.reference_recurrence` computes:

- on the CPU the library's own LSTM or GRU, member by member;
- while training on a CPU that multiplies bfloat16, an LSTM of ours with rounded gradients;
- on a GPU one launch per time step for all members, through Triton, in single precision;
- on a GPU without Triton, or in double precision, one product per time step for all members.
"""

from __future__ import annotations

from torch import Tensor

from mvlstm.nn.backends.device import kernels_run_on
from mvlstm.nn.backends.library import library_recurrence
from mvlstm.nn.backends.packed import batched_recurrence
from mvlstm.nn.backends.rounded import rounded_recurrence, suits
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters
from mvlstm.nn.precision import gradients_are_rounded


def recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    if kernels_run_on(x):
        from mvlstm.nn.backends.triton import triton_recurrence

        return triton_recurrence(layer, p, x)
    if x.is_cuda:
        return batched_recurrence(layer, p, x)
    if gradients_are_rounded() and suits(layer, x):
        return rounded_recurrence(layer, p, x)
    return library_recurrence(layer, p, x)
