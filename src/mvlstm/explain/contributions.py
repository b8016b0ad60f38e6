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
the pieces that miss most are halved, as long as a fixed number of gradients lasts. Recurrent
networks have borders, on either side of which a window ends in another state, and there the
forecast all but jumps. On a short piece the gradient's direction is that of the border, which is
all that matters: the contributions of a jump are its height, shared in that direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mvlstm.types import BoolArray, FloatArray, IntArray

Gradient = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the gradient of each member's forecast (K, m, H, T, C)."""
MeanForecast = Callable[[FloatArray], FloatArray]
"""Windows (m, T, C) to the members' mean forecast (m, H)."""

NODES, FEWER = 5, 2  # points of the quadrature on a whole path, and on a piece of it
AGAIN = (
    12  # times as many gradients again go into halving, of one step ahead; of many as many again
)
SCALED = (0.02, 5.0)  # by how much the sum over a piece may be scaled to its rise
DIGITS = 16 * np.finfo(np.float64).eps  # of a forecast that its differences may miss
SHORTEST = 2.0**-20  # of a path that is halved
AT_ONCE = 4_000_000  # numbers that the gradients on whole paths may take


@dataclass(frozen=True, eq=False)
class Contributions:
    """Forecasts taken apart."""

    members: FloatArray  # (K, M, H, T, C); their mean over members belongs to the forecast
    # (M,) how far the integral was from its total, the worst step ahead. This little is spread over
    # the contributions in proportion to their size, so that they add up to the last digit.
    missed: FloatArray

    @classmethod
    def join(cls, parts: Sequence[Contributions]) -> Contributions:
        """Put the contributions to forecasts one after another."""
        members = np.concatenate([part.members for part in parts], axis=1)
        return cls(members, np.concatenate([part.missed for part in parts]))

    @property
    def mean(self) -> FloatArray:
        """Contributions (M, H, T, C) to the members' mean."""
        return np.asarray(self.members.mean(axis=0))


def windows_at_once(slopes: int, background: int) -> int:
    """Return how many windows to take apart at once, with this many numbers in a gradient."""
    return max(1, AT_ONCE // (NODES * background * slopes))


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
    Gauss-Legendre sum. While the pieces of a window miss the differences of the forecasts at their
    ends by more than ``tolerance`` together, in units of the forecast, the worst are halved.
    """
    M, B = len(windows), len(background)
    level = forecast(background)
    tolerance = max(tolerance, DIGITS * float(np.abs(level).max(initial=0.0)))
    pieces = _Pieces.whole(level, forecast(windows))
    total = pieces.rise.reshape(M, B, -1).mean(axis=1)  # (M, H)
    sums = _quadrature(gradient, windows, background, pieces, NODES)  # (K, S, H, T, C)
    left = NODES * len(sums[0]) * max(1, AGAIN // total.shape[1])
    while len(worst := _worst(pieces, sums, tolerance * B)[: left // (2 * FEWER)]):
        halves = _halved(pieces.take(worst), forecast, windows, background)
        added = _quadrature(gradient, windows, background, halves, FEWER)
        kept = np.setdiff1d(np.arange(len(pieces.row)), worst)
        pieces = pieces.take(kept).join(halves)
        sums = np.concatenate([sums[:, kept], added], axis=1)
        left -= 2 * FEWER * len(worst)
    _scale_jumps(pieces, sums)
    result = np.zeros((len(sums), M, *sums.shape[2:]))
    for row in range(M):
        result[:, row] = sums[:, pieces.row == row].sum(axis=1) / B
    left_over = total - result.mean(axis=0).sum(axis=(2, 3))  # (M, H)
    size = np.abs(result.mean(axis=0))  # (M, H, T, C)
    whole = size.sum(axis=(2, 3))
    result += size * (left_over / np.where(whole > 0, whole, 1.0))[..., None, None]
    return Contributions(result, np.abs(left_over).max(axis=1))


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

    def take(self, which: IntArray) -> _Pieces:
        return _Pieces(**{name: values[which] for name, values in vars(self).items()})

    def join(self, other: _Pieces) -> _Pieces:
        pairs = {name: (values, getattr(other, name)) for name, values in vars(self).items()}
        return _Pieces(**{name: np.concatenate(pair) for name, pair in pairs.items()})


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


def _misses(pieces: _Pieces, sums: FloatArray) -> FloatArray:
    """Return by how much the sums over pieces miss their rises, (S, H)."""
    return np.asarray(np.abs(sums.sum(axis=(3, 4)).mean(axis=0) - pieces.rise))


def _worst(pieces: _Pieces, sums: FloatArray, tolerance: float) -> IntArray:
    """Return the pieces to halve, worst first, of windows that miss more than the tolerance.

    They are those that miss more than half as much as the pieces of their window do on average;
    those that are not finite are not among them.
    """
    miss = _misses(pieces, sums).max(axis=1)
    fine = ~np.isfinite(miss) | (pieces.length <= SHORTEST)
    miss[fine] = 0.0
    total, count = np.bincount(pieces.row, miss), np.bincount(pieces.row)
    chosen = (total > tolerance)[pieces.row] & (miss > (total / count / 2)[pieces.row])
    return np.flatnonzero(chosen)[np.argsort(-miss[chosen], kind="stable")]


def _scale_jumps(pieces: _Pieces, sums: FloatArray) -> None:
    """Scale the sums over pieces to their rises, in place, where the factor is plausible.

    A piece whose gradient is not finite contributes nothing.
    """
    sums[:, ~np.isfinite(sums).all(axis=(0, 2, 3, 4))] = 0.0
    found = sums.sum(axis=(3, 4)).mean(axis=0)  # (S, H)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = pieces.rise / found
        plausible: BoolArray = (factor > SCALED[0]) & (factor < SCALED[1])
    sums *= np.where(plausible, factor, 1.0)[..., None, None]


def _halved(
    pieces: _Pieces, forecast: MeanForecast, windows: FloatArray, background: FloatArray
) -> _Pieces:
    """Cut every piece in two."""
    middle = (pieces.low + pieces.high) / 2
    first, last = background[pieces.start], windows[pieces.row]
    at_middle = forecast(first + middle[:, None, None] * (last - first))  # (S, H)
    ends = vars(pieces)
    left = _Pieces(**{**ends, "high": middle, "at_high": at_middle})
    return left.join(_Pieces(**{**ends, "low": middle, "at_low": at_middle}))
