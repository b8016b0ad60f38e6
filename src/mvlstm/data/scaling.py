"""Standardising columns with the statistics of the training rows, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm.errors import ModelFileError

_CHUNK = 250_000  # values at a time


@dataclass(frozen=True, eq=False)
class Scaler:
    """Shift and scale each column: ``(x - center) / scale``.

    Parameters
    ----------
    center, scale : float64 array, (columns,)
        A column that does not vary has scale 1.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scaler.transform(np.array([[4.0, 5.0]]))
    array([[2., 0.]])
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, values: NDArray[np.float64]) -> Scaler:
        """Take mean and standard deviation of each column of ``values`` (rows, columns)."""
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or len(values) == 0:
            raise ValueError(f"a table with at least one row is needed, not shape {values.shape}")
        statistics = [_mean_and_deviation(values[:, j]) for j in range(values.shape[1])]
        center, scale = np.array(statistics, dtype=np.float64).reshape(-1, 2).T.copy()
        return cls(center, scale)

    @classmethod
    def identity(cls, n_columns: int) -> Scaler:
        """Make a scaler that changes nothing."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    def take(self, columns: NDArray[np.int64]) -> Scaler:
        """Make a scaler of some of the columns."""
        return Scaler(self.center[columns], self.scale[columns])

    def transform(
        self, values: NDArray[np.float64], *, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Scale values whose last axis holds the columns.

        Parameters
        ----------
        values : array, (..., columns)
        dtype : dtype
            Type of the result. Work is done in float64, a stretch of rows at a time, so that
            float32 output needs no float64 copy of the whole.
        """
        return self._apply(values, dtype, lambda x: (x - self.center) / self.scale)

    def inverse(
        self, values: NDArray[np.float64], *, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Undo `transform`."""
        return self._apply(values, dtype, lambda x: x * self.scale + self.center)

    def _apply(self, values: NDArray[Any], dtype: DTypeLike, function: Any) -> NDArray[Any]:
        values = np.asarray(values)
        result = np.empty(values.shape, dtype=dtype)
        if values.ndim < 2:
            result[...] = function(values.astype(np.float64))
            return result
        rows = max(1, _CHUNK // max(1, values[:1].size))
        for start in range(0, len(values), rows):
            part = slice(start, start + rows)
            result[part] = function(values[part].astype(np.float64, copy=False))
        return result

    @property
    def target_center(self) -> float:
        """Mean of the last column, the target."""
        return float(self.center[-1])

    @property
    def target_scale(self) -> float:
        """Standard deviation of the last column, the target."""
        return float(self.scale[-1])

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values that JSON can hold, without loss."""
        return {"center": self.center.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Scaler:
        """Build a scaler from what `to_dict` returned, checking it."""
        try:
            center = np.array(values["center"], dtype=np.float64)
            scale = np.array(values["scale"], dtype=np.float64)
            usable = (
                center.ndim == 1
                and center.shape == scale.shape
                and bool(np.isfinite(center).all())
                and bool(np.isfinite(scale).all())
                and bool((scale > 0).all())
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The scaling is damaged: {error}") from error
        if not usable:
            raise ModelFileError("The scaling is damaged: centers and scales must be finite.")
        return cls(center, scale)


def _mean_and_deviation(column: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation without overflow; deviation 1 where nothing varies."""
    low, high = float(column.min()), float(column.max())
    if low == high:
        return low, 1.0
    size = max(abs(low), abs(high))
    scaled = column / size
    mean = float(scaled.mean())
    scaled -= mean
    deviation = float(np.sqrt(np.mean(scaled * scaled)))
    scale = deviation * size
    varies = deviation > 4 * np.finfo(np.float64).eps and scale > 0
    return mean * size, scale if varies else 1.0
