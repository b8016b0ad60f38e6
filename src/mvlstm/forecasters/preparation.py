"""From a validated table to what a model sees: differenced where asked, scaled, labelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm.data.frame import SeriesFrame
from mvlstm.data.scaling import Scaler
from mvlstm.data.windows import gather_labels, origins_in
from mvlstm.errors import ModelFileError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Preparation:
    """How columns become inputs, learned from the training rows and kept with the model.

    Parameters
    ----------
    orders : int array, (columns,)
        How often each column is differenced (0, 1 or 2).
    scaler : Scaler
        Of the differenced columns.
    low, high : float array, (columns,)
        Range of the training rows, before differencing.
    """

    orders: IntArray
    scaler: Scaler
    low: FloatArray
    high: FloatArray

    @classmethod
    def learn(cls, values: FloatArray, orders: IntArray) -> Preparation:
        """Learn the scaling from the training rows' values."""
        lead = int(orders.max(initial=0))
        scaler = Scaler.fit(differenced(values, orders)[lead:])
        return cls(orders, scaler, values.min(axis=0), values.max(axis=0))

    @property
    def lead(self) -> int:
        """Rows needed before a window because of differencing."""
        return int(self.orders.max(initial=0))

    def apply(self, frame: SeriesFrame, dtype: DTypeLike = np.float64) -> Prepared:
        """Prepare a table; networks take it in float32."""
        with np.errstate(over="ignore"):  # a forecast from such a value is refused later
            table = self.scaler.transform(differenced(frame.values, self.orders), dtype=dtype)
        return Prepared(frame, table, self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "orders": self.orders.tolist(),
            "scaler": self.scaler.to_dict(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Preparation:
        """Build from what `to_dict` returned."""
        scaler = Scaler.from_dict(values.get("scaler", {}))
        orders = np.asarray(values.get("orders", ()), dtype=np.int64)
        if orders.shape != scaler.center.shape or not np.isin(orders, (0, 1, 2)).all():
            raise ModelFileError("The file's differencing orders do not fit its columns.")
        low, high = (np.asarray(values.get(k, ()), dtype=np.float64) for k in ("low", "high"))
        fits = low.shape == high.shape == orders.shape
        if not fits or not np.isfinite([low, high]).all() or (low > high).any():
            raise ModelFileError("The file's ranges do not fit its columns.")
        return cls(orders, scaler, low, high)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table as a model sees it: inputs scaled, labels relative to a baseline.

    The label of step h at origin i is ``y[i + h] - baseline[i, h]``. The baseline is zero for a
    target that is not differenced, and what h equal steps on would give for one that is; adding
    it back inverts the differencing exactly.
    """

    frame: SeriesFrame
    table: NDArray[Any]  # (rows, columns), float32 or float64
    preparation: Preparation

    def origins(self, window: int, horizon: int) -> IntArray:
        """Rows with a whole window up to them and ``horizon`` known rows after them."""
        return origins_in(self.frame.segments, window + self.preparation.lead, horizon)

    def baseline(self, origins: IntArray, horizon: int) -> FloatArray:
        """Return what differencing took away from the target's next steps, (M, H)."""
        y, order = self.frame.target_values, int(self.preparation.orders[-1])
        steps = np.arange(1, horizon + 1)
        level = y[origins][:, None] if order >= 1 else np.zeros((len(origins), 1))
        if order == 2:
            return level + (y[origins] - y[origins - 1])[:, None] * steps
        return np.broadcast_to(level, (len(origins), horizon)).copy()

    def labels(self, origins: IntArray, horizon: int) -> FloatArray:
        """Return the labels (M, H) of given origins, NaN where unknown."""
        return gather_labels(self.frame, origins, horizon) - self.baseline(origins, horizon)


def differenced(values: FloatArray, orders: IntArray) -> FloatArray:
    """Difference each column as often as its order says; the rows lost at the start are zero."""
    if not orders.any():
        return values
    result = values.copy()
    for column in np.flatnonzero(orders):
        order = int(orders[column])
        result[order:, column] = np.diff(values[:, column], n=order)
        result[:order, column] = 0.0
    return result
