r"""Attention over time within each variable, and the summary it yields (paper, eq. 5 to 8)."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from mvlstm.nn.backends import kernels_run_on
from mvlstm.nn.backends.pooling import TemporalPooling


class Summary(NamedTuple):
    """What a window comes down to: one vector per variable, and the weights that made it."""

    vectors: Tensor  # (K, B, N, 2 d), last state first, context second
    weights: Tensor  # (K, B, N, T - 1), rows sum to one


def temporal_attention(h: Tensor, Ws: Tensor, bs: Tensor) -> Summary:
    r"""Weigh the first T - 1 states of each variable and join the result to its last state.

    .. math::
        e^n_t = \tanh(W_s^n \cdot h^n_t + b_s^n), \quad a^n = \operatorname{softmax}_t(e^n), \quad
        \tilde h^n = [h^n_T ; \textstyle\sum_{t<T} a^n_t h^n_t]

    The scores lie in (-1, 1), so a weight is at most :math:`e^2` times another. States h are
    (K, T, B, N, d) with T >= 2, Ws (K, N, d), bs (K, N).
    """
    pooling: Any = TemporalPooling
    if kernels_run_on(h):
        from mvlstm.nn.backends.triton import Pooling as pooling
    vectors, weights = pooling.apply(h, Ws, bs)  # weights (K, T - 1, B, N)
    return Summary(vectors, weights.permute(0, 2, 3, 1))
