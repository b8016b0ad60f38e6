"""The predictive distribution a model gives before it is dated and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mvlstm.transforms import Transform
from mvlstm.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Predictive:
    """Point forecasts of K members and, where the model has one, its mixture of J normals.

    Shapes
    ------
    members : (K, M, H)
    weights, means, variances : (M, H, J), or None: then each member is one normal whose variance
        is its squared error on the validation rows.
    """

    members: FloatArray
    weights: FloatArray | None = None
    means: FloatArray | None = None
    variances: FloatArray | None = None

    @classmethod
    def join(cls, parts: Sequence[Predictive]) -> Predictive:
        """Put the forecasts of windows one after another."""
        if len(parts) == 1:
            return parts[0]
        members = np.concatenate([part.members for part in parts], axis=1)
        mixtures = [(p.weights, p.means, p.variances) for p in parts if p.weights is not None]
        return cls(members, *(np.concatenate(every) for every in zip(*mixtures, strict=True)))

    def shifted(self, baseline: FloatArray) -> Predictive:
        """Add ``baseline`` (M, H) to every mean."""
        means = None if self.means is None else self.means + baseline[..., None]
        return Predictive(self.members + baseline, self.weights, means, self.variances)

    def take(self, rows: BoolArray) -> Predictive:
        """Return the forecasts of some of the M windows."""
        if self.weights is None or self.means is None or self.variances is None:
            return Predictive(self.members[:, rows])
        mixture = (self.weights[rows], self.means[rows], self.variances[rows])
        return Predictive(self.members[:, rows], *mixture)

    def mixture(self, spread: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights, means, variances (M, H, J), one normal a member if there is no mixture.

        Parameters
        ----------
        spread : (K, H)
            Each member's squared error by step.
        """
        if self.weights is not None and self.means is not None and self.variances is not None:
            return self.weights, self.means, self.variances
        means = np.moveaxis(self.members, 0, -1)  # (M, H, K)
        variances = np.broadcast_to(spread.T, means.shape)
        return np.full(means.shape, 1.0 / means.shape[-1]), means, variances


def member_means(
    transform: Transform,
    weights: FloatArray,
    means: FloatArray,
    variances: FloatArray,
    members: int,
) -> FloatArray:
    """Return each member's mean (K, M, H) in units of the target.

    The J components of a mixture (M, H, J) are the members' own, one member's after another's,
    and each member has the same share of the weight.
    """
    M, H, J = means.shape
    own = (M, H, members, J // members)
    each = weights.reshape(own) * transform.mean(means, variances).reshape(own)
    share = weights.reshape(own).sum(axis=-1)
    return np.moveaxis(each.sum(axis=-1) / share, -1, 0)
