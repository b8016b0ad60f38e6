r"""The scale of asinh that a span of history asks for, as a change of the one that inputs have.

Where a target is modelled as :math:`\operatorname{asinh}((y - c) / u)`, middle c and unit u are
those of all training rows. A price that has since doubled lies far out on that scale, where it is
logarithmic. A map of the newest weeks does better with their own middle and unit, which this
module brings in between scaled inputs and labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.problem.problem import Problem
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import FloatArray, IntArray

Inner = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Bend:
    """From scaled columns to the scale of one span, and from that scale to labels.

    With z on the scale of all training rows, the span's own is asinh(shift + ratio sinh z).
    Columns with a ratio of zero stay as they are.
    """

    center: FloatArray  # (C,) of the scaled table
    scale: FloatArray  # (C,)
    shift: FloatArray  # (C,) target last
    ratio: FloatArray  # (C,)

    @classmethod
    def of(cls, problem: Problem, rows: IntArray) -> Bend:
        """Learn the scale of the rows of a span; straight where columns are not bent."""
        prepared = problem.prepared
        preparation, C = prepared.preparation, len(problem.groups)
        scaler, outer = preparation.scaler, (*preparation.inputs, preparation.transform)
        shift, ratio = np.zeros(C), np.zeros(C)
        free = preparation.series is None and not preparation.orders.any()
        if free and preparation.transform.name == "asinh" and len(outer) == C:
            for c, one in enumerate(outer):
                if one != IDENTITY:
                    own = Transform.asinh(prepared.frame.values[rows, c])
                    shift[c], ratio[c] = (one.center - own.center), one.scale
                    shift[c], ratio[c] = shift[c] / own.scale, ratio[c] / own.scale
        return cls(scaler.center, scaler.scale, shift, ratio)

    @property
    def straight(self) -> bool:
        """Whether nothing is bent."""
        return not self.ratio.any()

    def inputs(self, X: Inner, columns: IntArray) -> FloatArray:
        """Bend scaled features (M, p) of these columns (p,)."""
        values = X.astype(np.float64)
        if not self.straight:
            bent = np.flatnonzero(self.ratio[columns])
            values[:, bent] = np.arcsinh(self._inner(values[:, bent], columns[bent])[0])
        return values

    def slopes(self, X: Inner, columns: IntArray) -> FloatArray:
        """Return the derivatives of `inputs`, (M, p)."""
        values = np.ones(X.shape)
        if not self.straight:
            bent = np.flatnonzero(self.ratio[columns])
            inner, steep = self._inner(X[:, bent].astype(np.float64), columns[bent])
            values[:, bent] = steep / np.hypot(1.0, inner)
        return values

    def _inner(self, x: FloatArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what asinh is taken of, and its derivative."""
        z = x * self.scale[columns] + self.center[columns]
        inner = self.shift[columns] + self.ratio[columns] * np.sinh(z)
        return inner, self.ratio[columns] * self.scale[columns] * np.cosh(z)

    def labels(self, y: FloatArray) -> FloatArray:
        """Bend labels."""
        shift, ratio = self.shift[-1], self.ratio[-1]
        return np.arcsinh(shift + ratio * np.sinh(y)) if ratio else y

    def back(self, y: FloatArray) -> FloatArray:
        """Turn bent labels into labels."""
        shift, ratio = self.shift[-1], self.ratio[-1]
        return np.arcsinh((np.sinh(y) - shift) / ratio) if ratio else y

    def back_slopes(self, y: FloatArray) -> FloatArray:
        """Return the derivatives of `back`."""
        shift, ratio = self.shift[-1], self.ratio[-1]
        if not ratio:
            return np.ones_like(y)
        return np.asarray(np.cosh(y) / ratio / np.hypot(1.0, (np.sinh(y) - shift) / ratio))
