r"""The scale a model works on, and the way back from its normals to the target's own units.

With ``log1p`` a model forecasts :math:`Z = \log(1 + Y)` as a mixture of normals, and the target is
:math:`Y = \max(e^Z - 1, 0)`: what would lie below zero is zero. The map never falls, so quantiles
go through it as they are; mean and CRPS have forms of their own, given below for one component
:math:`N(\mu, s^2)` with :math:`m = e^{\mu + s^2/2}`.

With ``asinh`` it forecasts :math:`Z = \operatorname{asinh}((Y - c) / u)`, straight near the middle
and logarithmic in both tails, of a target of any sign.

With ``low`` and ``high`` what would lie beyond them is these, as zero is with ``log1p``: quantiles
are clipped, and the distribution has mass at the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from mvlstm import metrics
from mvlstm.errors import ParameterError, is_number
from mvlstm.types import FloatArray, IntArray

TransformName = Literal["none", "log1p", "asinh"]
TRANSFORMS: tuple[TransformName, ...] = get_args(TransformName)

FAR = (-np.inf, np.inf)  # bounds where there are none
CHUNK = 262_144  # numbers held in a temporary array at once
NODES, PANELS = 8, 6  # of the quadrature below zero
REACH = 6.0  # standard deviations from a mean beyond which the square of nothing is left
STEEP = 5.0  # standard deviations from a mean within which a CDF rises
LOWEST = -30.0  # e^-30 of a unit is nothing
LIGHTEST = 1e-8  # weight that is worth a cut
NORMAL = 1.4826  # standard deviations of a normal in its median absolute deviation


@dataclass(frozen=True)
class Transform:
    """A map from the target to the scale on which it is modelled, and back.

    Parameters
    ----------
    name : {"none", "log1p", "asinh"}
    center, scale : float
        Middle and unit of asinh.
    low, high : float
        What the target cannot lie beyond: values that would are these.

    Examples
    --------
    >>> Transform("log1p").inverse(np.array([-1.0, 0.0, np.log(8.0)])).round(12)
    array([0., 0., 7.])
    >>> Transform("asinh", center=5.0).forward(np.array([5.0, 5.0 + np.sinh(2.0)])).round(12)
    array([0., 2.])
    """

    name: TransformName = "none"
    center: float = 0.0
    scale: float = 1.0
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        if self.name not in TRANSFORMS:
            raise ParameterError(f"There is no transform {self.name!r}; known are {TRANSFORMS}.")

    @classmethod
    def asinh(cls, values: FloatArray) -> Transform:
        """Return asinh about the median of values, in their robust standard deviations.

        These are of the values away from the median where half of all are equal to it.
        """
        center = float(np.median(values))
        away = np.abs(values - center)
        middle = float(np.median(away)) or float(np.median(away[away > 0])) if away.any() else 1.0
        return cls("asinh", center, NORMAL * middle)

    def to_plain(self) -> str | list[Any]:
        """Return what JSON can hold."""
        if self.is_bounded:
            ends = [end if np.isfinite(end) else None for end in (self.low, self.high)]
            return [self.name, self.center, self.scale, *ends]
        return [self.name, self.center, self.scale] if self.name == "asinh" else self.name

    @classmethod
    def from_plain(cls, plain: Any) -> Transform:
        """Build from what `to_plain` returned, checking it."""
        parts: list[Any] = [plain] if isinstance(plain, str) else list(plain)
        low, high = read_bounds(parts[3:] or None)
        given = [float(one) for one in parts[1:3]]
        center, scale = given + [0.0, 1.0][len(given) :]
        made = cls(parts[0], center, scale, low, high)
        if not (np.isfinite([made.center, made.scale]).all() and made.scale > 0):
            raise ParameterError(f"The transform {plain!r} has no finite middle and unit.")
        return made

    def __bool__(self) -> bool:
        return self.name != "none"

    @property
    def is_bounded(self) -> bool:
        """Whether values are kept within bounds."""
        return bool(np.isfinite([self.low, self.high]).any())

    @property
    def bounds(self) -> list[float | None]:
        """The bounds as `within` takes them."""
        return [end if np.isfinite(end) else None for end in (self.low, self.high)]

    def within(self, bounds: Sequence[float | None] | None) -> Transform:
        """Return the transform with other bounds."""
        low, high = read_bounds(bounds)
        return replace(self, low=low, high=high)

    def clip(self, values: FloatArray) -> FloatArray:
        """Bring values in the target's units within the bounds."""
        return np.clip(values, self.low, self.high) if self.is_bounded else values

    def forward(self, values: FloatArray) -> FloatArray:
        """Turn values of the target into those the model works on."""
        if self.name == "asinh":
            return np.asarray(np.arcsinh((values - self.center) / self.scale))
        return np.log1p(values) if self else values

    def inverse(self, values: FloatArray) -> FloatArray:
        """Turn values on the model's scale into the target's units; never falls."""
        if self.name == "asinh":
            return self.clip(np.asarray(self.center + self.scale * np.sinh(values)))
        return self.clip(np.maximum(np.expm1(values), 0.0) if self else values)

    def scale_name(self, target: str) -> str:
        """Name the model's scale: ``log1p(count)``, or the target itself."""
        return f"{self.name}({target})" if self else target

    @property
    def formula(self) -> str:
        """The model's scale in words."""
        return {"log1p": "log(1 + target)", "asinh": "asinh of the target"}.get(self.name, "")

    def mean(self, means: ArrayLike, variances: ArrayLike) -> FloatArray:
        r"""Mean in the target's units of normals on the model's scale, one each.

        .. math::
            E\,Y = m\,\Phi\!\left(\frac{\mu + s^2}{s}\right) - \Phi\!\left(\frac{\mu}{s}\right),

        and with asinh :math:`E\,Y = c + u\,e^{s^2/2} \sinh\mu`.
        """
        mu, v = np.asarray(means, dtype=np.float64), np.asarray(variances, dtype=np.float64)
        if not self:
            return mu
        if self.name == "asinh":
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(self.center + self.scale * (np.exp(0.5 * v) * np.sinh(mu)))
        sd = _deviation(v)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(mu + 0.5 * v) * ndtr(mu / sd + sd) - ndtr(mu / sd))

    def crps(
        self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike, actual: ArrayLike
    ) -> FloatArray:
        r"""CRPS in the target's units of mixtures (..., J) on the model's scale, shape (...).

        With :math:`X = e^Z` and :math:`c = y + 1`, :math:`E|X - c| - \frac12 E|X - X'|` follows
        from

        .. math::
            E|X - c| &= m\,(1 - 2\Phi(\tfrac{\ln c - \mu - s^2}{s}))
                        - c\,(1 - 2\Phi(\tfrac{\ln c - \mu}{s})), \\
            E|X_i - X_j| &= m_i\,(2\Phi(\tfrac{\mu_i - \mu_j + s_i^2}{s_{ij}}) - 1)
                        + m_j\,(2\Phi(\tfrac{\mu_j - \mu_i + s_j^2}{s_{ij}}) - 1),
            \quad s_{ij}^2 = s_i^2 + s_j^2,

        less :math:`\int_{-\infty}^0 F_Z(z)^2 e^z dz` for what lies below zero and counts as zero,
        by Gauss-Legendre quadrature in pieces. With asinh, which has no such limit, it is the mean
        of this for :math:`e^Z` and for :math:`e^{-Z}`, times u.

        With bounds the distribution function is 0 below and 1 above them, and what it was there,
        :math:`\int_{-\infty}^{a} F_Z(z)^2 g'(z) dz` and its like above, is taken off likewise.
        """
        if not self and not self.is_bounded:
            return metrics.crps_mixture(weights, means, variances, actual)
        w, mu, v = np.broadcast_arrays(
            *(np.asarray(a, dtype=np.float64) for a in (weights, means, variances))
        )
        shape, J = w.shape[:-1], w.shape[-1]
        w, mu, sd = w.reshape(-1, J), mu.reshape(-1, J), _deviation(v).reshape(-1, J)
        found = np.broadcast_to(np.asarray(actual, dtype=np.float64), shape).reshape(-1)
        y, out = self.clip(found), np.abs(found - self.clip(found))
        size = max(1, CHUNK // (J * NODES))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(y), size):
                rows = slice(start, start + size)
                part = (w[rows], mu[rows], sd[rows])
                out[rows] -= self._beyond(*part)
                if not self:
                    out[rows] += metrics.crps_mixture(*part[:2], part[2] ** 2, y[rows])
                elif self.name == "asinh":
                    at, down = np.exp(self.forward(y[rows])), (part[0], -part[1], part[2])
                    both = _of_exponential(*part, at) + _of_exponential(*down, 1.0 / at)
                    out[rows] += 0.5 * self.scale * both
                else:
                    out[rows] += _of_exponential(*part, 1.0 + y[rows])
        return out.reshape(shape)

    def _beyond(self, w: FloatArray, mu: FloatArray, sd: FloatArray) -> FloatArray:
        """Return what the parts of distributions beyond the bounds would add to their CRPS."""
        found = np.zeros(len(w))
        low = max(self.low, 0.0) if self.name == "log1p" else self.low
        if np.isfinite(low):
            end = float(self.forward(np.asarray(low)))
            least = LOWEST if self.name == "log1p" else -np.inf
            found += _below(w, mu, sd, end, self._slope, least)
        if np.isfinite(self.high):
            end = float(self.forward(np.asarray(self.high)))
            found += _below(w, -mu, sd, -end, lambda z: self._slope(-z))
        return found

    def _slope(self, z: FloatArray) -> FloatArray:
        """Return how steeply values in units rise with those on the model's scale."""
        if self.name == "asinh":
            return np.asarray(self.scale * np.cosh(z))
        return np.exp(z) if self else np.ones_like(z)


def read_bounds(bounds: Sequence[float | None] | None) -> tuple[float, float]:
    """Return the least and the greatest value of a target, infinite where there is none.

    Examples
    --------
    >>> read_bounds((0, None)), read_bounds(None)
    ((0.0, inf), (-inf, inf))
    """
    if bounds is None:
        return -np.inf, np.inf
    ends = list(bounds) if isinstance(bounds, list | tuple) else []
    if len(ends) != 2 or not all(end is None or is_number(end) for end in ends):
        raise ParameterError(
            f"bounds={bounds!r} must be the least and the greatest value of the target, None where "
            "there is none, such as bounds=[0, None]."
        )
    low, high = (far if end is None else float(end) for end, far in zip(ends, FAR, strict=True))
    if not low < high:
        raise ParameterError(f"bounds={bounds!r} must have the lesser value first.")
    return low, high


IDENTITY = Transform()


def _deviation(variances: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny))


def _of_exponential(w: FloatArray, mu: FloatArray, sd: FloatArray, c: FloatArray) -> FloatArray:
    """CRPS of e^Z at c, for every row."""
    return _toward(w, mu, sd, c) - 0.5 * _spread(w, mu, sd)


def _toward(w: FloatArray, mu: FloatArray, sd: FloatArray, c: FloatArray) -> FloatArray:
    """E|X - c| of every row, X being e^Z."""
    c = c[:, None]
    at = (np.log(c) - mu) / sd
    mean = np.exp(mu + 0.5 * sd**2)
    return np.asarray(np.sum(w * (mean * _sided(sd - at) - c * _sided(-at)), axis=-1))


def _spread(w: FloatArray, mu: FloatArray, sd: FloatArray) -> FloatArray:
    """E|X - X'| of two independent draws of each row's mixture."""
    mean, variance = np.exp(mu + 0.5 * sd**2), sd**2
    total = np.zeros(len(w))
    for i in range(w.shape[1]):
        j = slice(i, None)
        both = np.sqrt(variance[:, i, None] + variance[:, j])
        gap = mu[:, i, None] - mu[:, j]
        one = mean[:, i, None] * _sided((gap + variance[:, i, None]) / both)
        other = mean[:, j] * _sided((variance[:, j] - gap) / both)
        pairs = np.where(np.arange(i, w.shape[1]) == i, 1.0, 2.0)
        total += w[:, i] * np.sum(pairs * w[:, j] * (one + other), axis=-1)
    return total


def _sided(x: FloatArray) -> FloatArray:
    """2 Phi(x) - 1: from -1 to 1."""
    return np.asarray(2.0 * ndtr(x) - 1.0)


def _below(
    w: FloatArray,
    mu: FloatArray,
    sd: FloatArray,
    end: float,
    slope: Callable[[FloatArray], FloatArray],
    least: float = -np.inf,
) -> FloatArray:
    """Integral of the squared CDF, times a slope, over the values below an ``end``."""
    result, mu = np.zeros(len(w)), mu - end
    lowest = np.min(np.where(w > 0, mu - REACH * sd, np.inf), axis=-1)
    rows = np.flatnonzero(lowest < 0)
    if not len(rows):
        return result
    w, mu, sd = w[rows], mu[rows], sd[rows]
    lowest = lowest[rows]
    which, left, width = _panels(w, mu, sd, np.maximum(lowest, least))
    points, shares = np.polynomial.legendre.leggauss(NODES)
    found = np.empty(len(which))
    size = max(1, CHUNK // (w.shape[1] * NODES))
    for start in range(0, len(which), size):
        part = slice(start, start + size)
        row = which[part]
        z = left[part, None] + width[part, None] * 0.5 * (1.0 + points)  # (panels, nodes)
        at = (z[:, :, None] - mu[row, None]) / sd[row, None]
        cdf = (ndtr(at) @ w[row, :, None])[:, :, 0]
        found[part] = 0.5 * width[part] * ((cdf**2 * slope(z + end)) @ shares)
    result[rows] = np.bincount(which, found, minlength=len(rows))
    return result


def _panels(
    w: FloatArray, mu: FloatArray, sd: FloatArray, lowest: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Divide the stretch from ``lowest`` to zero of every row, finely where a CDF rises steeply.

    It is cut into equal parts, and further at the mean of every component that is narrow for them,
    and where its rise begins and ends. Cuts closer together than any component asks for go.

    Returns
    -------
    row, left, width : (panels,)
    """
    start, reach = lowest[:, None], STEEP * sd
    narrow = (w > LIGHTEST) & (mu - reach < 0) & (reach < -start / PANELS)
    some = narrow.any(axis=0)
    mu, reach, narrow = mu[:, some], reach[:, some], narrow[:, some]
    cuts = [start * np.linspace(1.0, 0.0, PANELS + 1)]
    for cut in (mu - reach, mu, mu + reach):
        cuts.append(np.where(narrow, np.clip(cut, start, 0.0), 0.0))
    edges = np.sort(np.concatenate(cuts, axis=1), axis=1)
    enough = np.min(reach, axis=1, where=narrow, initial=np.inf)
    enough[~narrow.any(axis=1)] = 0.0
    kept, last = np.ones(edges.shape, dtype=bool), edges[:, 0]
    for k in range(1, edges.shape[1] - 1):
        kept[:, k] = edges[:, k + 1] - last > enough
        last = np.where(kept[:, k], edges[:, k], last)
    row, left = np.nonzero(kept)[0], edges[kept]
    width = np.diff(left)
    panel = np.flatnonzero((row[1:] == row[:-1]) & (width > 0))
    return row[panel], left[panel], width[panel]
