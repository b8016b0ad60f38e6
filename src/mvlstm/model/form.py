"""What a learned method computes of one window, in parts that other tools can take over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mvlstm.problem.target_scale import MemberScale
from mvlstm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A linear map of the last lags of a window: weights (L, C, H), oldest first, and (H,)."""

    weights: FloatArray
    intercept: FloatArray


@dataclass(frozen=True, eq=False)
class LagForm:
    """The target itself, this many rows before the origin for each step ahead, (H,)."""

    lags: IntArray


@dataclass(frozen=True, eq=False)
class NetworkForm:
    """Members of a network, and how their outputs become forecasts.

    Parameters
    ----------
    network : MVLSTMNetwork, LSTMNetwork, DUALNetwork or RETAINNetwork
    flat : (K, P)
        The members' weights.
    scale : MemberScale
        From outputs to labels, the link included.
    sigma2 : (K, H), optional
        Variance of the outputs, if the method has one of its own.
    mixture : bool
        Whether it is that of each component, and not of one normal about the mean.
    """

    network: Any
    flat: NDArray[np.float32]
    scale: MemberScale
    sigma2: FloatArray | None = None
    mixture: bool = False


Form: TypeAlias = LinearForm | LagForm | NetworkForm
