r"""Contributions of variables and lags to single forecasts, which add up.

Integrated gradients against a background: with background windows :math:`b` and a forecast
:math:`f`,

.. math::
    \phi_{t,c}(x) = \operatorname{mean}_b (x_{t,c} - b_{t,c}) \int_0^1
    \frac{\partial f}{\partial x_{t,c}}\bigl(b + \alpha (x - b)\bigr) d\alpha,
    \qquad \sum_{t,c} \phi_{t,c}(x) = f(x) - \operatorname{mean}_b f(b).

For a linear forecast this is exact: coefficient times distance from the mean background. A network
can be steep in places, so the path is divided where it has to be: on any piece from :math:`a` to
:math:`a'` the gradients must add up to :math:`f(a') - f(a)`, which two forecasts tell exactly, and
a piece that misses is halved. Recurrent networks have borders, on either side of which a window
ends in another state, and there the forecast all but jumps. On a piece shorter than 1/256 of the
path the gradient's direction is that of the border, which is all that matters: the contributions
of a jump are its height, shared in that direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mvlstm.types import BoolArray, FloatArray, IntArray

Gradient = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the gradient of each member's forecast (K, m, H, T, C)."""
MeanForecast = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the members' mean forecast (m, H)."""

NODES = (5, 3, 3, 2, 2, 1)  # points of the quadrature by halvings; the last for all further
PIECE_SHARES = (0.7, 0.15, 0.03)  # of the tolerance, that a piece may miss; at first, and again
JUMP = 8  # halvings after which a piece that still misses is taken to hold a jump
SCALED = (0.02, 5.0)  # by how much the sum over a jump may be scaled to its rise
HALVINGS = 20  # of a path at most
AT_ONCE = 256  # pieces worked on together


@dataclass(frozen=True, eq=False)
class Contributions:
    """Forecasts taken apart."""

    members: FloatArray  # (K, M, H, T, C); their mean over members belongs to the forecast
    # (M,) how far the integral was from its total, the worst step ahead. This little is spread over
    # the contributions in proportion to their size, so that they add up to the last digit.
    missed: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Contributions (M, H, T, C) to the members' mean."""
        return np.asarray(self.members.mean(axis=0))


def integrated_gradients(
    gradient: Gradient,
    forecast: MeanForecast,
    windows: FloatArray,
    background: FloatArray,
    *,
    tolerance: float,
) -> Contributions:
    """Take forecasts of windows (M, T, C) apart into contributions of every entry.

    Each path from a background window (B, T, C) to a window is one piece at first, with a
    Gauss-Legendre sum. Pieces whose sum misses the difference of the forecasts at their ends are
    halved. A window whose pieces' errors add up to more than ``tolerance``, in units of the
    forecast, is done again with a stricter measure.
    """
    total = forecast(windows) - forecast(background).mean(axis=0)  # (M, H)
    result: FloatArray | None = None
    rows = np.arange(len(windows))
    for share in PIECE_SHARES:
        found = _integrate(gradient, forecast, windows[rows], background, share * tolerance)
        if result is None:
            result = found
        else:
            result[:, rows] = found
        left = total - result.mean(axis=0).sum(axis=(2, 3))  # (M, H)
        rows = np.flatnonzero(np.abs(left).max(axis=1) > tolerance)
        if not len(rows):
            break
    assert result is not None
    size = np.abs(result.mean(axis=0))  # (M, H, T, C)
    whole = np.maximum(size.sum(axis=(2, 3)), np.finfo(np.float64).tiny)
    result += size * (left / whole)[..., None, None]
    return Contributions(result, np.abs(left).max(axis=1))


def _integrate(
    gradient: Gradient,
    forecast: MeanForecast,
    windows: FloatArray,
    background: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Integrate along all paths (K, M, H, T, C), to ``tolerance`` on each piece of a path."""
    M, B = len(windows), len(background)
    result: FloatArray | None = None
    pieces = _Pieces.whole(forecast(background), forecast(windows))
    for depth in range(HALVINGS + 1):
        rejected = []
        for part in pieces.batches():
            nodes = NODES[min(depth, len(NODES) - 1)]
            sums = _quadrature(gradient, windows, background, part, nodes)  # (K, S, H, T, C)
            if result is None:
                result = np.zeros((len(sums), M, *sums.shape[2:]))
            fine = _settle(sums, part.rise, tolerance, depth)
            _add(result, part.row[fine], sums[:, fine] / B)
            rejected.append(part.take(~fine))
        pieces = _halved(rejected, forecast, windows, background)
        if not len(pieces.row):
            break
    assert result is not None
    return result


@dataclass(frozen=True, eq=False)
class _Pieces:
    """S pieces of paths: from which background to which window, from where to where."""

    row: IntArray  # (S,)
    start: IntArray  # (S,) background
    low: FloatArray  # (S,) of the path from 0 to 1
    high: FloatArray
    at_low: FloatArray  # (S, H) forecasts
    at_high: FloatArray

    @classmethod
    def whole(cls, at_starts: FloatArray, at_ends: FloatArray) -> _Pieces:
        """Return every path from a background to a window as one piece."""
        M, B = len(at_ends), len(at_starts)
        row, start = np.repeat(np.arange(M), B), np.tile(np.arange(B), M)
        zero = np.zeros(M * B)
        return cls(row, start, zero, zero + 1, at_starts[start], at_ends[row])

    @property
    def length(self) -> FloatArray:
        return self.high - self.low

    @property
    def rise(self) -> FloatArray:
        return self.at_high - self.at_low

    def take(self, which: BoolArray | slice) -> _Pieces:
        return _Pieces(**{name: values[which] for name, values in vars(self).items()})

    def batches(self) -> list[_Pieces]:
        starts = range(0, len(self.row), AT_ONCE)
        return [self.take(slice(first, first + AT_ONCE)) for first in starts]


def _quadrature(
    gradient: Gradient, windows: FloatArray, background: FloatArray, part: _Pieces, nodes: int
) -> FloatArray:
    """Integrate over pieces: (K, S, H, T, C)."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points, weights = (points + 1) / 2, weights / 2  # from [-1, 1] to [0, 1]
    distance = windows[part.row] - background[part.start]  # (S, T, C)
    where = part.low + points[:, None] * part.length  # (nodes, S)
    path = background[part.start] + where[:, :, None, None] * distance
    slopes = gradient(path.reshape(-1, *distance.shape[1:]))  # (K, nodes S, H, T, C)
    K, shape = len(slopes), slopes.shape[2:]
    slope = np.einsum("n,kns...->ks...", weights, slopes.reshape(K, nodes, -1, *shape))
    return np.asarray(slope * (distance * part.length[:, None, None])[:, None])


def _settle(sums: FloatArray, rise: FloatArray, tolerance: float, depth: int) -> BoolArray:
    """Say which pieces (S,) need no halving; scale the sums over jumps to their rise, in place."""
    found = sums.sum(axis=(3, 4)).mean(axis=0)  # (S, H)
    fine = np.abs(found - rise).max(axis=1) <= tolerance
    if depth < JUMP:
        return np.asarray(fine)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(found == 0, 0.0, rise / found)
    near = np.abs(found - rise) <= tolerance
    scalable = near | ((factor > SCALED[0]) & (factor < SCALED[1]))
    jump = ~fine & scalable.all(axis=1)
    sums[:, jump] *= np.where(near, 1.0, factor)[jump][..., None, None]
    return np.asarray(fine | jump | (depth == HALVINGS))


def _add(result: FloatArray, rows: IntArray, sums: FloatArray) -> None:
    """Add the sums (K, S, ...) of pieces to their rows of the result (K, M, ...)."""
    for row in np.unique(rows):
        result[:, row] += sums[:, rows == row].sum(axis=1)


def _halved(
    rejected: list[_Pieces], forecast: MeanForecast, windows: FloatArray, background: FloatArray
) -> _Pieces:
    """Cut every piece in two."""
    names = list(vars(rejected[0]))
    joined = _Pieces(**{n: np.concatenate([getattr(p, n) for p in rejected]) for n in names})
    if not len(joined.row):
        return joined
    middle = (joined.low + joined.high) / 2
    first, last = background[joined.start], windows[joined.row]
    at_middle = forecast(first + middle[:, None, None] * (last - first))  # (S, H)
    left = replace(joined, high=middle, at_high=at_middle)
    right = replace(joined, low=middle, at_low=at_middle)
    both = {n: np.concatenate([getattr(left, n), getattr(right, n)]) for n in names}
    return _Pieces(**both)
