"""What a method learns: the contract between methods and fitted models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm.errors import ModelFileError
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.target_scale import MemberScale
from mvlstm.results import History
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray, IntArray

Stopped = Literal["interrupt", "time limit"]
Arrays = dict[str, NDArray[Any]]
Stored = dict[str, Any]
"""Arrays, or what `numpy.asarray` reads from a file: shape and type are known before."""


def no_history() -> History:
    """Return the history of a method that is not trained step by step."""
    return History(np.empty((0, 0)), np.empty((0, 0)), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class AttentionArrays:
    """Attention of K members over N variables for M windows and H steps.

    Shapes
    ------
    prior, posterior : (K, M, H, N); posterior None for a head without components
    temporal : (K, N, T - 1), mean over the windows, oldest step first; or None
    leakage : (N, N) or None
    """

    prior: FloatArray
    posterior: FloatArray | None = None
    temporal: FloatArray | None = None
    leakage: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A linear map of a window: a `Ridge`, or a `Daily` with weights for each time of day."""

    linear: Any


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
"""What a learned method computes of one window, in parts that other tools can take over."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned(ABC):
    """All that a method needs to forecast; it never changes.

    Parameters
    ----------
    history : History
        How training went, for networks.
    notes : tuple of str
        What a user should know about the learning.
    stopped : {"interrupt", "time limit"}, optional
        What ended training early.
    """

    history: History = field(default_factory=no_history)
    notes: tuple[str, ...] = ()
    stopped: Stopped | None = None

    @abstractmethod
    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Forecast the labels of windows.

        Parameters
        ----------
        windows : Windows
        spread : bool
            Whether the mixture is wanted, of a method that has one, or the members' means alone.
        exact : bool
            Whether to compute in the precision of `gradient`.
        """

    def pieces(self, windows: Windows) -> Iterator[Predictive]:
        """Yield what `predict` returns, some windows after others where they would take room."""
        yield self.predict(windows)

    @abstractmethod
    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return what was learned as named arrays and plain JSON values, for the model file."""

    def scrambled(self, windows: Windows, columns: IntArray, donors: IntArray) -> FloatArray | None:
        """Forecast (K, M, H) with the whole past of ``columns`` taken from other windows.

        None for methods whose forecasts depend on the window alone.
        """
        return None

    def work(self, rows: int) -> float:
        """Return the multiplications that a forecast from this many rows takes; 0: hardly any."""
        return 0.0

    def gradient(self, windows: FloatArray) -> FloatArray | None:
        """Return the gradient of members' forecasts (K, M, H, T, C), if there is one."""
        return None

    def form(self) -> Form | None:
        """Return what it computes of a window, for `export`; None if windows are not enough."""
        return None

    def attention(self, windows: Windows, *, quick: bool = False) -> AttentionArrays | None:
        """Return attention over variables and time, if any; if ``quick``, with rough leakage."""
        return None

    def experts(self, windows: Windows) -> FloatArray | None:
        """Return prior weight times expert's forecast (M, H, N), for mixtures of experts."""
        return None

    def choices(self) -> dict[str, Any]:
        """Return the settings that were chosen in learning, plain values, lists by step ahead."""
        return {}

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray | None:
        """Return the method's own importance of each variable (N,), if it defines one.

        ``groups`` says which variable each column belongs to.
        """
        return None


@dataclass(frozen=True, eq=False)
class Saved:
    """What a model file holds of a learned method, taken out piece by piece and checked.

    Parameters
    ----------
    arrays : dict
        Emptied as arrays are taken.
    extra : mapping
        Plain values.
    layout : Layout
    preparation : Preparation
    """

    arrays: Stored
    extra: Mapping[str, Any]
    layout: Layout
    preparation: Preparation

    @property
    def n_columns(self) -> int:
        """C."""
        return len(self.preparation.orders)

    def take(self, name: str, shape: tuple[int | None, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Take an array, if its shape and type are as they must be; None leaves a length open."""
        return take_array(self.arrays, name, shape, dtype)

    def number(self, name: str) -> float:
        """Return a finite number."""
        return finite_number(self.extra, name)

    def scale(self, name: str) -> float:
        """Return a positive number."""
        scale = self.number(name)
        if scale <= 0:
            raise ModelFileError(f"its '{name}' is {scale!r}, not a positive number.")
        return scale


def take_array(
    arrays: Stored, name: str, shape: tuple[int | None, ...], dtype: DTypeLike
) -> NDArray[Any]:
    """Remove an array from ``arrays`` and return it, if shape and type are as they must be.

    Only then is it read; its numbers must be finite.
    """
    if name not in arrays:
        raise ModelFileError(f"its array '{name}' is missing.")
    array = arrays.pop(name)
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != np.dtype(dtype):
        raise ModelFileError(
            f"its array '{name}' is {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}."
        )
    values = np.asarray(array)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ModelFileError(f"its array '{name}' holds values that are not finite.")
    return values


def finite_number(values: Mapping[str, Any], name: str) -> float:
    """Return a finite number of the header."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ModelFileError(f"its '{name}' is {value!r}, not a finite number.")
    return float(value)


def by_variable(values: FloatArray, groups: tuple[int, ...]) -> FloatArray:
    """Add up values (C,) of each variable's columns, giving (N,)."""
    return np.asarray(np.bincount(groups, values, minlength=max(groups) + 1), dtype=np.float64)
