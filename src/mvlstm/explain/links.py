r"""Which series act on which: kernel regressions of every target that share their matrices.

A link from i to j asks whether the past of i helps to forecast j, the past of all others known. The
regression of j has the kernel :math:`k = s + c s^2`, with s the product of two windows summed over
variables and lags, and j's own lags, a constant and the cycle free of penalty. Leaving out i takes
its part from s, for all targets at once.

*Strength*: share of the squared error that the link takes away, each row forecast from all others.

*Test*: with residuals e of the regression without i, and :math:`\Phi` features of i (its values,
or its squares and products with all others) after the same regression, i adds nothing if
:math:`z = \Phi^\top e` has mean zero: the score test of a variance component (Lin 1997), also
called a generalised covariance measure (Shah and Peters 2020). All rows serve for the fit and for
the test, and no forecast has to beat another, hence the power. Values and products are tested each
(Bonferroni). The distribution of
:math:`z^\top z` is that of a weighted sum of squares, its weights from the products of
:math:`\Phi` with the errors of the whole regression, which may change in size.

*Many rows* are read in pieces, each every k-th row, with a regression of its own: work and memory
are linear in the rows. The features are the same for all pieces, so that z and the products add up.

The level of a series that wanders (a unit root) is not explained by others, which would find that
any two walks are tied: changes are forecast, and its own level is no regressor. Neither is a slow
drift below noise, which a few lags do not tell: waves longer than `DRIFT` rows are known, free of
penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.special import gammaincc, gammainccinv
from threadpoolctl import threadpool_limits

from mvlstm.explain.blocks import HARMONICS, find_period
from mvlstm.explain.evidence import SIGNIFICANCE, recent_size
from mvlstm.metrics import variance_of_mean
from mvlstm.types import BoolArray, FloatArray, IntArray

P = ParamSpec("P")
R = TypeVar("R")
WINDOWS = (2, 3, 5, 10)  # lags that are tried
ROWS = 1_000  # of a piece, at most
ROWS_EACH = 10  # rows for each column and lag, at least
CHOICE = 400  # rows that decide on lags and kernel, at most
# Rows of a wave that counts as drift, at least. Without such waves, noise on a drifting level seems
# tied to others in one table of four, some of it beyond doubt.
DRIFT = 50
DRIFTING = 0.1  # waves for each row of a piece, at most
SQUARES = (0.0, 0.1, 1.0)  # c: how much squares and products may add
PENALTIES: FloatArray = 10.0 ** np.arange(-7.0, 3.0)
FEATURES = 100  # that stand for what a variable adds, at most
FARTHEST = 5.0  # standard deviations; what lies beyond says no more
# Dickey-Fuller statistic above which a series has a unit root (0.1 %). At 5 %, one of ten walks is
# taken for a stationary series in two tables of five, and found to be tied to the others.
WANDERING = -4.1
FADING: dict[str, Callable[[FloatArray], FloatArray]] = {  # weight of a lag's variance
    "none": np.ones_like,
    "slow": lambda lag: 1.0 / lag,
    "fast": lambda lag: 1.0 / lag**4,
}
ALIKE = 0.15  # by how much estimates of one cycle may differ
MULTIPLES = 3  # cycles that may be taken for one
DIFFERENCES = 3  # lagged changes in that test
QUANTILE = 1.645  # of the normal distribution, for intervals of 90 %
TINY = np.finfo(np.float64).tiny
ROUNDING = 1e-12  # share of a diagonal below which what is left of it is rounding
POWER_QUANTILE = 0.842  # with which a link as strong as the detectable one would be found, 80 %


@dataclass(frozen=True, eq=False)
class Past:
    """Windows of all series, and the next values of the targets.

    Shapes
    ------
    windows : (n, T, C) the latest lag first
    labels : (n, J) next values of the targets
    levels : (n, J) their values known last
    owner : (C,) variable of each column
    targets : (J,) column of each target
    wandering : (J,) whether the target has a unit root
    periods : (J,) length of each target's cycle, 1 for none
    positions : (n,) rows in the table
    drift : (n, k) slow waves, see `slow_waves`
    """

    windows: FloatArray
    labels: FloatArray
    levels: FloatArray
    owner: IntArray
    targets: IntArray
    wandering: BoolArray
    periods: IntArray
    positions: IntArray
    drift: FloatArray

    def __len__(self) -> int:
        return len(self.labels)

    def standardised(self) -> Past:
        """Return the same in standard deviations of each column and target."""
        centred = self.windows - self.windows.mean(axis=(0, 1))
        spread, size = centred.std(axis=(0, 1)), self.labels.std(axis=0)
        size, mean = np.where(size > 0, size, 1.0), self.labels.mean(axis=0)
        return replace(
            self,
            windows=centred / np.where(spread > 0, spread, 1.0),
            labels=(self.labels - mean) / size,
            levels=(self.levels - mean) / size,
        )

    def rows(self, kept: slice | IntArray) -> Past:
        """Return some of the rows."""
        return replace(
            self,
            windows=self.windows[kept],
            labels=self.labels[kept],
            levels=self.levels[kept],
            positions=self.positions[kept],
            drift=self.drift[kept],
        )

    def always(self, j: int) -> FloatArray:
        """Return the constant and the cycle, (n, k), which all regressions of target j know."""
        return cycle_columns(self.positions, int(self.periods[j]))

    def own(self, j: int) -> FloatArray:
        """Return what the regression of target j knows without penalty, (n, k)."""
        lags = self.windows[:, :, self.targets[j]]
        lags = np.diff(lags, axis=1) if self.wandering[j] else lags
        return np.hstack([self.always(j), self.drift, lags])

    def label(self, j: int) -> FloatArray:
        """Return what the regression of target j forecasts: its changes if it wanders."""
        last = self.levels[:, j] if self.wandering[j] else 0.0
        return np.asarray(self.labels[:, j] - last)


Family = tuple[int, ...]  # variables

# How sources are worked through: a function of what all share and of each one's number
Each = Callable[[Callable[[Any, int], Any], Any, int], Iterator[tuple[int, Any]]]


@dataclass(frozen=True, eq=False)
class Links:
    """What N families of variables add to J targets; all are (J, N)."""

    strength: FloatArray  # share of the squared error taken away
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    detectable: FloatArray  # strength that would have been found by one of as many tests, 80 %
    lag: IntArray  # at which the forecast moves most with the variable


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Keep numpy's products in a function to one thread: small ones make a second only wait."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with threadpool_limits(1, "blas"):
            return function(*args, **kwargs)

    return alone


def one_by_one(
    function: Callable[[Any, int], Any], shared: Any, count: int
) -> Iterator[tuple[int, Any]]:
    """Yield ``function(shared, i)`` for each i below ``count``."""
    for i in range(count):
        yield i, function(shared, i)


@on_one_thread
def find_links(
    past: Past,
    choose_lags: bool = True,
    progress: Callable[[int], None] | None = None,
    each: Each = one_by_one,
    rows: int = ROWS,
    families: Sequence[Family] = (),
) -> tuple[Links, int]:
    """Measure and test every link; returns them and how many lags the regressions read.

    ``families`` of variables are left out together; by default each variable is one. With
    ``choose_lags`` the lags may be fewer than the windows have. ``progress`` is called with 1
    after every family, and ``each`` works through them, elsewhere perhaps. A piece has at most
    ``rows``.
    """
    past = past.standardised()
    families = families or [(i,) for i in range(int(past.owner.max()) + 1)]
    count = -(-len(past) // rows)
    kernel = choose_kernel(past, choose_lags, len(past) // count)
    past = replace(past, windows=past.windows[:, : len(kernel.weights)])
    pieces = [past.rows(slice(k, None, count)) for k in range(count)]
    errors = np.empty_like(past.labels)
    moves = np.zeros((past.labels.shape[1], past.owner.max() + 1, len(kernel.weights)))  # (J, N, T)
    for k, piece in enumerate(pieces):
        for j, (left, moved) in enumerate(_solve_all(kernel, piece)):
            errors[k::count, j] = left
            moves[j] += moved
    found = []
    for _, numbers in each(_of_source, (kernel, pieces, errors, families), len(families)):
        found.append(numbers)
        if progress is not None:
            progress(1)
    strength, low, high, p_value, detectable = np.moveaxis(np.array(found), (2, 1), (0, 1))
    lags = 1 + np.argmax(moves, axis=2)
    return Links(strength, low, high, p_value, detectable, lags), len(kernel.weights)


def wanders(series: FloatArray) -> bool:
    """Say whether a series has a unit root, by the augmented Dickey-Fuller test with a constant.

    One that is too short for the test is not known to have none.
    """
    for _ in range(2):  # a level, or a size, may be out of range of squares
        series = series / (np.abs(series).max(initial=0.0) or 1.0)
        series = series - series.mean()
    changes, k = np.diff(series), DIFFERENCES
    n = len(changes) - k
    if n < 2 * (k + 2):
        return True
    lagged = [changes[k - lag : -lag] for lag in range(1, k + 1)]
    x = np.column_stack([series[k:-1], *lagged, np.ones(n)])
    weights, *_ = np.linalg.lstsq(x, changes[k:], rcond=None)
    left = changes[k:] - x @ weights
    spread = np.linalg.pinv(x.T @ x)[0, 0] * float(left @ left) / max(1, n - x.shape[1])
    return bool(weights[0] > WANDERING * np.sqrt(max(spread, 0.0)))


def shared_cycles(values: FloatArray, natural: tuple[int, ...] = ()) -> IntArray:
    """Return the length of the cycle of each column (n, C), 1 for none.

    Columns whose cycles differ little, or by a whole factor, have the one that most of them have,
    and of several such the one that explains most. A cycle that no two share cannot tie them, and
    counts as no cycle.
    """
    found = np.array([find_period(column, natural=natural) for column in values.T])
    unit = values - values.mean(axis=0)
    unit = unit / np.where(unit.std(axis=0) > 0, unit.std(axis=0), 1.0)

    def left(period: int) -> float:
        waves = cycle_columns(np.arange(len(values)), period)
        return float(np.sum((unit - waves @ np.linalg.lstsq(waves, unit, rcond=None)[0]) ** 2))

    def alike(period: int, most: int = 1) -> BoolArray:
        times = np.clip(np.round(found / period), 1, most)
        return np.asarray(np.abs(found - times * period) <= ALIKE * times * period)

    lengths = np.unique(found[found > 1]).tolist()
    best = min(lengths, key=lambda period: (-alike(period).sum(), left(period)), default=1)
    shared = alike(best, MULTIPLES) & (best > 1)
    return np.where(shared & (shared.sum() > 1), best, 1)


def slow_waves(positions: IntArray, rows: int) -> FloatArray:
    """Return the slow waves at rows of a table, (n, k), for regressions of this many ``rows``."""
    start, length = positions[0], positions[-1] - positions[0] + 1
    count = int(min(2 * length // DRIFT, DRIFTING * min(rows, len(positions))))
    angle = np.pi * (positions[:, None] - start + 0.5) / length * np.arange(1, count + 1)
    return np.asarray(np.cos(angle))


def cycle_columns(positions: IntArray, period: int) -> FloatArray:
    """Return a constant and the harmonics of a cycle, (n, k)."""
    count = min(HARMONICS, (period - 1) // 2)
    angle = 2 * np.pi * positions[:, None] / period * np.arange(1, count + 1)
    return np.hstack([np.ones((len(positions), 1)), np.sin(angle), np.cos(angle)])


# ------------------------------------------------------------------------------------- regressions


@dataclass(frozen=True, eq=False)
class Products:
    """Products of windows (n, n), a sum over variables."""

    flat: list[FloatArray]  # (n, lags times columns) of each variable

    @cached_property
    def joined(self) -> FloatArray:
        """Lags and columns of all variables."""
        return np.hstack(self.flat)

    @cached_property
    def every(self) -> FloatArray:
        """The sum over all variables."""
        return np.asarray(self.joined @ self.joined.T)

    def of(self, family: Family) -> FloatArray:
        """Return lags and columns of some variables."""
        return np.hstack([self.flat[i] for i in family])

    def part(self, family: Family) -> FloatArray:
        """Return their part of the sum."""
        return np.asarray(self.of(family) @ self.of(family).T)

    def squares(self, family: Family) -> Callable[[Products], FloatArray]:
        """Return features (n, r) for the squares and products in which variables have a hand.

        They are a function of any windows, and stand for the largest part of them in these.
        """

        def kernel(others: Products) -> FloatArray:
            own = others.of(family) @ self.of(family).T
            return np.asarray(own * (2.0 * others.joined @ self.joined.T - own))

        n = len(self.joined)
        values, vectors = eigh(kernel(self), subset_by_index=[max(0, n - FEATURES), n - 1])
        kept = values > 1e-10 * values[-1]
        turn = vectors[:, kept] / np.sqrt(values[kept])
        return lambda others: np.asarray(kernel(others) @ turn)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Weights of lags that all targets share; squares and a penalty for each target."""

    weights: FloatArray  # (T,)
    scale: float
    squares: FloatArray  # (J,) c
    penalties: FloatArray  # (J,)

    def products(self, past: Past) -> Products:
        """Return the products of windows, to be taken apart by variable."""
        columns = self.columns(past)
        owned = [columns[:, :, past.owner == i] for i in range(int(past.owner.max()) + 1)]
        return Products([one.reshape(len(past), -1) for one in owned])

    def columns(self, past: Past) -> FloatArray:
        """Return the windows (n, T, C) whose products these are."""
        bounded = np.clip(past.windows, -FARTHEST, FARTHEST)
        return np.asarray(bounded * (self.weights / np.sqrt(self.scale))[:, None])

    def inverse(self, s: FloatArray, j: int) -> FloatArray:
        """Return the inverse of target j's kernel, of products s, with its penalty."""
        kernel = squared(s, float(self.squares[j])) + float(self.penalties[j]) * np.eye(len(s))
        return inverted(kernel)


def inverted(kernel: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric positive matrix, in half the time of any matrix's."""
    root, failed = lapack.dpotrf(kernel, lower=True)
    if failed:  # rounding has taken its smallest values below zero
        return np.asarray(np.linalg.inv(kernel), dtype=np.float64)
    half, _ = lapack.dpotri(root, lower=True)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)


def squared(s: FloatArray, squares: float) -> FloatArray:
    """Return the kernel of products of windows."""
    return np.asarray(s + squares * s * s)


@dataclass(frozen=True, eq=False)
class Solved:
    """The matrix P that turns labels into residuals: the inverse, less what is free of penalty."""

    inverse: FloatArray  # (n, n) of the kernel with its penalty
    known: FloatArray  # (n, k)
    penalty: float

    @cached_property
    def _turned(self) -> FloatArray:
        return np.asarray(self.inverse @ self.known)

    @cached_property
    def _small(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self.known.T @ self._turned))

    def apply(self, values: FloatArray) -> FloatArray:
        """Return P times values."""
        return np.asarray(
            self.inverse @ values - self._turned @ (self._small @ (self._turned.T @ values))
        )

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of P."""
        taken = np.sum((self._turned @ self._small) * self._turned, axis=1)
        return np.maximum(left_over(self.inverse.diagonal(), taken), TINY)

    def errors(self, label: FloatArray) -> FloatArray:
        """Return the error of each row when it is forecast from all others."""
        return np.asarray(self.apply(label) / self.diagonal)


def left_over(whole: FloatArray, taken: FloatArray) -> FloatArray:
    """Return what is left of a diagonal (n,), a trace of it at least.

    A row with a spike that no other row has takes all of it: of such a row the others tell nothing,
    and its error must not become that of rounding over nothing.
    """
    return np.asarray(np.maximum(whole - taken, ROUNDING * whole))


def choose_kernel(past: Past, choose_lags: bool = True, rows: int = ROWS) -> Kernel:
    """Choose lags and their fading for all targets, and each target's squares and penalty.

    What errs least decides, in rows forecast from all others; over targets, logarithms add up.
    Regressions of this many ``rows`` must bear the lags.
    """
    few = past.rows(np.linspace(0, len(past) - 1, min(CHOICE, len(past))).astype(int))
    whole = past.windows.shape[1]
    most = max(WINDOWS[0], min(rows, len(past)) // (ROWS_EACH * len(past.owner)))
    lengths = [size for size in WINDOWS if size <= min(most, whole)] if choose_lags else [whole]
    least, best = np.inf, None
    for size in lengths:
        short = replace(few, windows=few.windows[:, :size])
        lags = np.arange(1.0, size + 1)
        for fading in FADING.values():
            weights = np.sqrt(fading(lags) / fading(lags).sum())
            kernel = Kernel(weights, 1.0, np.empty(0), np.empty(0))
            s = kernel.products(short).every
            scale = float(np.trace(s)) / len(short) or 1.0
            tried = [_validated(squared(s / scale, c), short) for c in SQUARES]
            sizes = np.stack(tried, axis=1).reshape(len(tried[0]), -1)  # (J, squares penalties)
            total = float(np.log(sizes.min(axis=1)).sum())
            if total < least:
                c, penalty = np.divmod(sizes.argmin(axis=1), len(PENALTIES))
                least = total
                best = Kernel(weights, scale, np.array(SQUARES)[c], PENALTIES[penalty])
    assert best is not None
    return best


def _validated(kernel: FloatArray, past: Past) -> FloatArray:
    """Return the mean squared error of each target with each penalty."""
    values, vectors = np.linalg.eigh(kernel)
    squared, sizes = vectors**2, []
    shrink = 1.0 / (np.maximum(values, 0.0) + PENALTIES[:, None])  # (penalties, n)
    for j in range(past.labels.shape[1]):
        known, label = vectors.T @ past.own(j), vectors.T @ past.label(j)
        for d in shrink:
            scaled = d[:, None] * known
            small = np.linalg.pinv(known.T @ scaled)
            turned = vectors @ scaled
            left = vectors @ (d * label) - turned @ (small @ (scaled.T @ label))
            diagonal = left_over(squared @ d, np.sum((turned @ small) * turned, axis=1))
            sizes.append(float(np.mean((left / diagonal) ** 2)))
    return np.asarray(np.maximum(np.array(sizes), TINY).reshape(-1, len(PENALTIES)))


def _solve_all(kernel: Kernel, past: Past) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Fit the regressions on all variables: errors (n,) and how far each moves it, (N, T)."""
    products, columns = kernel.products(past), kernel.columns(past)
    flat = columns.reshape(len(past), -1)
    for j, column in enumerate(past.targets):
        s = products.every
        if past.wandering[j]:
            s = s - products.part((int(past.owner[column]),))
        solved = Solved(kernel.inverse(s, j), past.own(j), float(kernel.penalties[j]))
        label = past.label(j)
        slope = (1.0 + 2.0 * kernel.squares[j] * s) * solved.apply(label)  # of the fit, by product
        moves = np.square((slope @ flat).reshape(columns.shape)).mean(axis=0)  # (T, C) gradients
        moves = moves * kernel.weights[:, None] ** 2
        owned = [moves[:, past.owner == i].sum(axis=1) for i in range(len(products.flat))]
        yield solved.errors(label), np.stack(owned)


# ------------------------------------------------------------------------------------------- links


def _of_source(shared: Any, i: int) -> FloatArray:
    """Measure and test the links of a family to all targets: (J, 5) in the order of `Links`."""
    kernel, pieces, plain, families = shared
    family, count, J = families[i], len(pieces), plain.shape[1]
    products = kernel.products(pieces[0])
    squares, errors = products.squares(family), np.empty_like(plain)
    scores: list[list[Score]] = [[] for _ in range(J)]
    for k, piece in enumerate(pieces):
        products = kernel.products(piece) if k else products
        features = (products.of(family), squares(products))
        for j, (solved, label) in enumerate(_without(family, kernel, piece, products)):
            errors[k::count, j] = solved.errors(label)
            more = [score(solved, label, one, plain[k::count, j]) for one in features]
            scores[j] = [a.plus(b) for a, b in zip(scores[j], more, strict=True)] if k else more
    tests = J * len(products.flat)
    return np.array([_measure(errors[:, j], plain[:, j], scores[j], tests) for j in range(J)])


def _without(
    family: Family, kernel: Kernel, past: Past, products: Products
) -> Iterator[tuple[Solved, FloatArray]]:
    """Yield each target's regression without a family, and its labels."""
    s = products.every - products.part(family)
    shared: dict[tuple[float, float], FloatArray] = {}
    for j, column in enumerate(past.targets):
        own, both = int(past.owner[column]), (kernel.squares[j], kernel.penalties[j])
        if own not in family and past.wandering[j]:
            inverse = kernel.inverse(s - products.part((own,)), j)
        else:
            inverse = shared[both] if both in shared else kernel.inverse(s, j)
            shared[both] = inverse
        known = past.always(j) if own in family else past.own(j)
        label = past.labels[:, j] if own in family else past.label(j)
        yield Solved(inverse, known, float(kernel.penalties[j])), label


def _measure(
    errors: FloatArray, plain: FloatArray, scores: Sequence[Score], tests: int
) -> tuple[float, ...]:
    square = float(np.mean(errors**2)) or 1.0
    rises = (errors**2 - plain**2) / square
    strength = float(rises.mean())
    around = rises - strength * errors**2 / square
    half = QUANTILE * float(np.sqrt(variance_of_mean(around)))
    tried = [one.judged(len(scores) * tests) for one in scores]
    p_value = min(1.0, len(scores) * min(p for p, _ in tried))
    detectable = min(least for _, least in tried)
    return strength, strength - half, min(strength + half, 1.0), p_value, detectable


class Score(NamedTuple):
    """Sums over rows that tell whether r features say anything of what a regression leaves."""

    score: FloatArray  # (r,)
    covariance: FloatArray  # (r, r) of it
    within: FloatArray  # (r, r) products of the features
    left: float  # sum of squares

    def plus(self, other: Score) -> Score:
        """Return the sums over the rows of both."""
        return Score(
            self.score + other.score,
            self.covariance + other.covariance,
            self.within + other.within,
            self.left + other.left,
        )

    def judged(self, tests: int) -> tuple[float, float]:
        """Return the p-value, and what would be found among this many tests.

        That is the share of the squared error that such features would have to explain.
        """
        null = Squares.of(self.covariance)
        p_value = null.beyond(float(self.score @ self.score))
        needed = null.reach(SIGNIFICANCE / tests) + POWER_QUANTILE * null.spread - null.mean
        each = self.left * float(np.sum(self.within**2)) / max(float(np.trace(self.within)), TINY)
        return p_value, min(1.0, needed / max(each, TINY))


def score(solved: Solved, label: FloatArray, features: FloatArray, noise: FloatArray) -> Score:
    """Compare features (n, r) with what a regression leaves of its labels.

    ``noise`` (n,) are errors with all variables, each row forecast from all others.
    """
    left = solved.penalty * solved.apply(label)
    part = solved.penalty * solved.apply(features)
    weight = 1.0 / recent_size(solved.errors(label)[:, None])
    weight = weight / weight.mean()
    products = part * weight * noise[:, None]
    return Score(
        part.T @ (left * weight[:, 0]), products.T @ products, part.T @ part, float(left @ left)
    )


class Squares(NamedTuple):
    """A weighted sum of squares of normal variables, as a shifted gamma of three equal moments."""

    mean: float
    spread: float
    shape: float

    @classmethod
    def of(cls, covariance: FloatArray) -> Squares:
        """Return the sum of squares of variables with this covariance (r, r)."""
        weights = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
        top = float(weights.max(initial=0.0))
        if top <= TINY:
            return cls(0.0, 0.0, 1.0)
        weights = weights / top
        second, third = float(np.sum(weights**2)), float(np.sum(weights**3))
        shape = 0.5 * second**3 / third**2
        return cls(top * float(weights.sum()), top * float(np.sqrt(2.0 * second)), shape)

    def beyond(self, value: float) -> float:
        """Return the chance of a larger value."""
        if self.spread <= TINY:
            return 1.0
        root = np.sqrt(self.shape)
        at = self.shape + root * (value - self.mean) / self.spread
        return float(gammaincc(self.shape, max(at, 0.0)))

    def reach(self, chance: float) -> float:
        """Return the value that is exceeded with this chance."""
        if self.spread <= TINY:
            return self.mean
        at = float(gammainccinv(self.shape, chance))
        return self.mean + self.spread * (at - self.shape) / float(np.sqrt(self.shape))
