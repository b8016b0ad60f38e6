"""The predictive distribution of a method, on the scale of its labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mvlstm.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """Normals of K members with J components each; all members weigh the same.

    Shapes
    ------
    weights, means, variances : (M, H, K, J); the weights of an origin and step add up to one
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def of_members(cls, members: FloatArray, spread: FloatArray) -> Mixture:
        """Return one normal per member around its forecast (K, M, H), of variance (K, H)."""
        means = np.moveaxis(members, 0, -1)[..., None]  # (M, H, K, 1)
        variances = np.broadcast_to(spread.T[..., None], means.shape)
        return cls(np.full(means.shape, 1.0 / len(members)), means, variances)

    @classmethod
    def split(
        cls, weights: FloatArray, means: FloatArray, variances: FloatArray, members: int
    ) -> Mixture:
        """Tell the members of a `joined` mixture apart."""
        shape = (*means.shape[:2], members, -1)
        return cls(weights.reshape(shape), means.reshape(shape), variances.reshape(shape))

    def take(self, rows: BoolArray) -> Mixture:
        """Return the normals of some of the M origins."""
        return Mixture(self.weights[rows], self.means[rows], self.variances[rows])

    def widened(self, factors: FloatArray) -> Mixture:
        """Multiply the variances by a factor for each step (H,)."""
        return replace(self, variances=self.variances * factors[:, None, None])

    @property
    def joined(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights, means and variances (M, H, K J), one member's components after another's."""
        shape = (*self.means.shape[:2], -1)
        each = (self.weights, self.means, self.variances)
        return tuple(one.reshape(shape) for one in each)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Predictive:
    """Point forecasts of K members (K, M, H) and, where the method has one, their mixture.

    Without a mixture each member is one normal whose variance is its squared error on the
    validation rows.
    """

    members: FloatArray
    mixture: Mixture | None = None

    @classmethod
    def gathered(cls, pieces: Iterable[Predictive], count: int) -> Predictive:
        """Put the forecasts of ``count`` windows one after another, holding one piece more."""
        found = None
        for rows, one in numbered(pieces):
            if rows.stop - rows.start == count:
                return one
            found = found or one.room(count)
            found.members[:, rows] = one.members
            if found.mixture is not None and one.mixture is not None:
                for name, values in vars(found.mixture).items():
                    values[rows] = getattr(one.mixture, name)
        assert found is not None, "there are windows"
        return found

    def room(self, count: int) -> Predictive:
        """Return empty arrays for the forecasts of this many windows."""
        K, _, H = self.members.shape
        mixture = None
        if self.mixture is not None:
            shape = (count, *self.mixture.means.shape[1:])
            mixture = Mixture(*(np.empty(shape) for _ in range(3)))
        return Predictive(np.empty((K, count, H)), mixture)

    def shifted(self, baseline: FloatArray) -> Predictive:
        """Add ``baseline`` (M, H) to every mean."""
        members, mixture = self.members + baseline, self.mixture
        if mixture is not None:
            mixture = replace(mixture, means=mixture.means + baseline[..., None, None])
        return Predictive(members, mixture)

    def take(self, rows: BoolArray) -> Predictive:
        """Return the forecasts of some of the M windows."""
        mixture = None if self.mixture is None else self.mixture.take(rows)
        return Predictive(self.members[:, rows], mixture)

    def with_spread(self, spread: FloatArray) -> Mixture:
        """Return the mixture; one normal per member of variance (K, H) if there is none."""
        return self.mixture or Mixture.of_members(self.members, spread)


def numbered(pieces: Iterable[Predictive]) -> Iterator[tuple[slice, Predictive]]:
    """Yield pieces with the places of their windows among all."""
    start = 0
    for one in pieces:
        rows = slice(start, start + one.members.shape[1])
        yield rows, one
        start = rows.stop
