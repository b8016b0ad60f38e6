r"""How the target becomes the numbers that a method learns, and how these become forecasts.

.. math::
    y \xrightarrow{\text{transform}} z
      \xrightarrow{\text{per series}} \frac{z - c}{u}
      \xrightarrow{\text{differencing}} \text{label}
      \xrightarrow{\text{link}} \text{label} - \ell(x)
      \xrightarrow{\text{standardisation}} \text{output of a network}

`TargetScale` holds the first three stages for the origins of some forecasts, `LabelScale` the last
two, which networks have. Both lead forward for labels and back for means, mixtures and members;
`MeanScale` brings contributions back, so that they still add up. No other code knows how a number
of a network becomes a number of the user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mvlstm.problem.predictive import Mixture, Predictive
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import BoolArray, FloatArray, IntArray

DOUBLINGS, HALVINGS = 10, 50  # by which a variance is found
NEAR = 1e-6  # distance from the background below which the slope is the derivative


# ------------------------------------------------------------- transform, per series, differencing


@dataclass(frozen=True, eq=False)
class TargetScale:
    """The scale of labels at M origins and H steps.

    Parameters
    ----------
    transform : Transform
    baseline : (M, H)
        What differencing takes away from the target's next steps; zero without it.
    center, unit : (M,), optional
        Level and standard deviation of each origin's series, where there are several series.
    """

    transform: Transform
    baseline: FloatArray
    center: FloatArray | None = None
    unit: FloatArray | None = None

    def of_series(self) -> TargetScale:
        """Return the scale that ends with each series' own: several series are explained on it."""
        if self.unit is None:
            return self
        return replace(self, transform=IDENTITY, center=None, unit=None)

    def take(self, rows: IntArray) -> TargetScale:
        """Return the scale with the baseline of other origins: a scrambled past has its own."""
        return replace(self, baseline=self.baseline[rows])

    # ------------------------------------------------------------------------------------ forward

    def steps(self, y: FloatArray) -> FloatArray:
        """Transform targets (M, ...) and scale them by series; they are not differenced."""
        z = self.transform.forward(y)
        if self.unit is None or self.center is None:
            return z
        shape = (-1,) + (1,) * (z.ndim - 1)
        return np.asarray((z - self.center.reshape(shape)) / self.unit.reshape(shape))

    def labels(self, y: FloatArray) -> FloatArray:
        """Return the labels (M, H) of targets (M, H)."""
        return self.steps(y) - self.baseline

    # --------------------------------------------------------------------------------------- back

    def mixture(self, labels: Mixture) -> Mixture:
        """Bring normals of labels to the transformed target, on which quantiles are exact."""
        means, variances = labels.means + self.baseline[..., None, None], labels.variances
        if self.unit is not None and self.center is not None:
            means = means * self.unit[:, None, None, None] + self.center[:, None, None, None]
            variances = variances * (self.unit**2)[:, None, None, None]
        return Mixture(labels.weights, means, variances)

    def members(self, labels: FloatArray, mixture: Mixture, correction: FloatArray) -> FloatArray:
        """Return the means (K, M, H) in the target's units of members' forecasts of ``labels``.

        The mean of a transformed target is that of its ``mixture``, corrected by a share (H,) of
        its variances.
        """
        if self.transform:
            return mean_of_members(self.transform, mixture.widened(correction))
        found = labels + self.baseline
        if self.unit is None or self.center is None:
            return found
        return np.asarray(found * self.unit[:, None] + self.center[:, None])

    def variances(self, labels: FloatArray) -> FloatArray:
        """Bring variances (H,) of labels to the transformed target, (M, H, 1)."""
        unit = np.ones(len(self.baseline)) if self.unit is None else self.unit
        return np.asarray(labels[:, None] * unit[:, None, None] ** 2)


def mean_of_members(transform: Transform, mixture: Mixture) -> FloatArray:
    """Return each member's mean (K, M, H) in units of the target."""
    each = mixture.weights * transform.mean(mixture.means, mixture.variances)
    share = mixture.weights.sum(axis=-1)
    return np.moveaxis(each.sum(axis=-1) / share, -1, 0)


def location_of_member(
    transform: Transform, mixture: Mixture, members: FloatArray, k: int
) -> FloatArray:
    """Return where the normals of member ``k`` lie on average, (M, H), on the transformed target.

    ``members`` (K, M, H) are the means in units of the target, which without a transform say so.
    """
    if not transform:
        return np.asarray(members[k])
    share = mixture.weights[:, :, k]
    return np.asarray((share * mixture.means[:, :, k]).sum(axis=-1) / share.sum(axis=-1))


# ------------------------------------------------------------------------------------ contributions


@dataclass(frozen=True, eq=False)
class MeanScale:
    r"""From the members' mean on the scale of labels, baseline added, to the target's units.

    Contributions are found on the former, where they add up to :math:`z - z_0`, and brought over by
    one factor per forecast, the slope :math:`(g(z) - g(z_0)) / (z - z_0)` between background and
    forecast; they then add up in the target's units. :math:`g` is the mean of a normal around
    :math:`z`, of the variance with which it agrees with the forecasts of the background windows on
    average.
    """

    transform: Transform
    variance: FloatArray  # (H,) of the normal around a forecast

    @classmethod
    def match(cls, transform: Transform, values: FloatArray, wanted: FloatArray) -> MeanScale:
        """Find the variance with which values (B, H) have the mean ``wanted`` (H,)."""
        found = _matching_variance(transform, values, wanted) if transform else 0.0 * wanted
        return cls(transform, found)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Bring forecasts (..., H) of the members' mean to the target's units."""
        return self.transform.mean(values, self.variance)

    def slopes(self, level: FloatArray, moved: FloatArray) -> FloatArray:
        """Return the slope (M, H) between the background's ``level`` (H,) and level + moved."""
        near = np.abs(moved) < NEAR
        start, end = level - np.where(near, NEAR, 0.0), level + np.where(near, NEAR, moved)
        return np.asarray((self(end) - self(start)) / (end - start))

    def contributions(
        self, parts: FloatArray, level: FloatArray, forecast: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bring members' contributions (K, M, H, N, T) over, so that they lead to the forecast.

        ``level`` (H,) is the background on the scale of labels, ``forecast`` (M, H) the means in
        the target's units; what the map of the members' mean leaves of these is spread over the
        contributions in proportion to their size. The factor (M, H) is returned too.
        """
        mean = parts.mean(axis=0)
        moved = mean.sum(axis=(2, 3))  # (M, H)
        factor = self.slopes(level, moved)
        rest = forecast - self(level) - factor * moved
        size = np.abs(mean)
        size[:, :, -1, -1] += np.finfo(np.float64).tiny  # where nothing moved, the last value known
        share = size / size.sum(axis=(2, 3), keepdims=True)
        return parts * factor[..., None, None] + share * rest[..., None, None], factor


def _matching_variance(transform: Transform, values: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the variance (H,) with which normals around values (B, H) have the mean wanted (H,).

    The mean grows with the variance, or falls (asinh, below its middle), so that halving finds it.
    """

    def mean(variance: FloatArray) -> FloatArray:
        return np.asarray(transform.mean(values, variance).mean(axis=0))

    low, high = np.zeros(len(wanted)), np.ones(len(wanted))
    falls = mean(high) < mean(low)

    def short(variance: FloatArray) -> BoolArray:
        found = mean(variance)
        return np.where(falls, found > wanted, found < wanted)

    for _ in range(DOUBLINGS):
        high = np.where(short(high), 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = short(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


# --------------------------------------------------------------------------- link, standardisation


class LinkMap(Protocol):
    """A first guess of the labels (M, H), to which a network's output is added."""

    @property
    def horizon(self) -> int:
        """H."""

    def __call__(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the guess for scaled windows (M, T, C)."""

    def rows(self, table: NDArray[np.floating], origins: IntArray, window: int) -> FloatArray:
        """Return the guess for windows ending at rows of a table."""

    def gradient(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return its gradient (M, H, T, C), or (1, H, T, C) if all windows have the same."""


@dataclass(frozen=True)
class Bare:
    """Labels as members without a link see them.

    A network cannot follow a level that training never showed. As far as the link's forecast lies
    clearly outside the range of the training labels, it is therefore added here too.
    """

    center: float  # of the training labels
    scale: float
    low: float  # their range, widened by the standard deviation that the link leaves
    high: float

    @classmethod
    def learn(cls, labels: FloatArray, left: float) -> Bare:
        """Describe the training labels, of which the link leaves a standard deviation ``left``."""
        low, high = float(labels.min()) - left, float(labels.max()) + left
        return cls(float(labels.mean()), float(labels.std()) or 1.0, low, high)

    def offset(self, link: FloatArray) -> FloatArray:
        """Return what is added to a scaled-up output, given the link's forecast."""
        return self.center + (link - np.clip(link, self.low, self.high))

    def outside(self, link: FloatArray) -> BoolArray:
        """Say where the link's forecast lies outside the range, so that its slope counts."""
        return (link < self.low) | (link > self.high)


@dataclass(frozen=True, eq=False)
class LabelScale:
    """What networks learn: the labels less the link, standardised on the training rows."""

    link: LinkMap
    center: float  # of what the link leaves of the training labels
    scale: float
    bare: Bare | None = None  # the labels themselves, where some members do without the link

    @classmethod
    def learn(cls, link: LinkMap, guess: FloatArray, labels: FloatArray, bare: bool) -> LabelScale:
        """Find the scale of what the link's ``guess`` (M, H) leaves of labels, NaN if unknown."""
        unknown = np.isnan(labels)
        known = ~unknown if unknown.any() else slice(None)
        residual = (labels - guess)[known]
        scale = float(residual.std()) or 1.0
        without = Bare.learn(labels[known], scale) if bare else None
        return cls(link, float(residual.mean()), scale, without)

    def outputs(self, labels: FloatArray, guess: FloatArray) -> FloatArray:
        """Return labels (M, H) as networks with the link see them, given its guess (M, H)."""
        return (labels - (guess + self.center)) / self.scale

    def bare_outputs(self, labels: FloatArray, guess: FloatArray) -> FloatArray:
        """Return labels (M, H) as networks without the link see them."""
        assert self.bare is not None
        return (labels - self.bare.offset(guess)) / self.bare.scale

    def for_members(self, is_bare: BoolArray, share: FloatArray | None = None) -> MemberScale:
        """Return the scale of members (K,), some of which may do without the link."""
        return MemberScale(self, is_bare, np.ones(len(is_bare)) if share is None else share)


@dataclass(frozen=True, eq=False)
class MemberScale:
    """`LabelScale` for K members, of which some do without the link.

    A forecast is that of the link, moved towards the member's by the member's ``share``.
    """

    labels: LabelScale
    is_bare: BoolArray
    share: FloatArray  # (K,) above 0, 1 where the member alone counts

    @property
    def scale(self) -> FloatArray:
        """Units of the labels in one of each member's outputs, (K, 1, 1)."""
        scale = np.full((len(self.is_bare), 1, 1), self.labels.scale)
        if self.labels.bare is not None:
            scale[self.is_bare] = self.labels.bare.scale
        return scale * self.share[:, None, None]

    def offset(self, guess: FloatArray) -> FloatArray:
        """Return what is added to each scaled-up output (K, M, H), given the link's guess."""
        offset = np.repeat((guess + self.labels.center)[None], len(self.is_bare), axis=0)
        if self.labels.bare is not None:
            offset[self.is_bare] = self.labels.bare.offset(guess)
        if (self.share != 1).any():
            offset = guess + self.share[:, None, None] * (offset - guess)
        return offset

    def outputs(self, labels: FloatArray, guess: FloatArray) -> FloatArray:
        """Return labels (M, H) as each member sees them, (K, M, H)."""
        return np.asarray((labels - self.offset(guess)) / self.scale)

    def forecasts(self, outputs: FloatArray, guess: FloatArray) -> FloatArray:
        """Return members' forecasts of the labels (K, M, H) from their outputs."""
        return outputs * self.scale + self.offset(guess)

    def mixture(
        self, weights: FloatArray, means: FloatArray, variances: FloatArray, guess: FloatArray
    ) -> Predictive:
        """Bring members' mixtures (K, M, H, J) to the scale of labels; weights add up to one."""
        scale, offset = self.scale, self.offset(guess)
        members = (weights * means).sum(axis=-1) * scale + offset
        means = means * scale[..., None] + offset[..., None]
        variances = np.broadcast_to(variances * scale[..., None] ** 2, means.shape)

        each = (np.moveaxis(x, 0, 2) for x in (weights / len(weights), means, variances))
        return Predictive(members, Mixture(*each))  # (M, H, K, J)

    def gradient(self, slope: NDArray[Any], windows: FloatArray) -> FloatArray:
        """Return the gradients of forecasts (K, M, H, T, C) from those of outputs."""
        found = slope.astype(np.float64) * self.scale[..., None, None]
        link = self.labels.link.gradient(windows)
        found[~self.is_bare] += link
        if self.labels.bare is not None:
            outside = self.labels.bare.outside(self.labels.link(windows))  # (M, H)
            share = self.share[self.is_bare][:, None, None]
            kept = 1 - share * ~outside  # of the link's slope, (bare members, M, H)
            found[self.is_bare] += kept[..., None, None] * link
        return found
