r"""A linear map that has weights of its own at each time of day, added to one for all times.

Prices, loads and temperatures follow their past differently at night and at noon. Where windows
tell the time of day by the calendar's cycle, linear maps are fitted to the windows of each phase
apart: on all training windows, and on the newest 364 and 84 of a phase. They read the latest three
days, the day a week ago and what is known of the rows to be forecast. Each is fitted twice: the
second time inputs that weighed little are penalised more, so that few count, and residuals are cut
off as by Huber's loss, so that a few hours do not bend the map. Where the target is modelled as
asinh, each span has the middle and unit of its own rows, see `mvlstm.problem.bend`.

Their penalties are chosen on the stopping windows, and so are the weights of the mean of these maps
and the common one, which are not negative and add up to one. Which span is best changes with time:
where maps are fitted again as time passes, so that short spans are not stale, the weights of the
spans are moved half-way to their mean.

Windows that were made up may have no time of day, such as those half-way between two others. Their
weights are those of all phases, by the trigonometric polynomial of least degree that is one at a
phase and zero at the others; in the middle of the circle that is the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from mvlstm.errors import ModelFileError
from mvlstm.methods.ridge import Ridge
from mvlstm.methods.robust import HUBER
from mvlstm.model.learned import Arrays, Saved
from mvlstm.problem.bend import Bend
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import BoolArray, FloatArray, IntArray

CYCLES = ("hour", "weekday")  # the first that the calendar has
MOST_PHASES = 48
FEWEST = 60  # training windows of a phase: fewer let the common map do better
SPANS = (84, 364)  # newest windows of a phase
PENALTIES = tuple(10.0 ** (k / 2) for k in range(5))  # more suits short spans gone stale alone
MOST_FEATURES = 400
ROUNDS = 12  # of cutting residuals off: 30 change the error by less than 1 %
GAIN = 0.01  # share of the squared error that maps by phase must take off the common one's
SNAP = 1e-3  # distance from a phase, on a circle of radius one, that is rounding


@dataclass(frozen=True, eq=False)
class Clock:
    """How the last row of a window tells the phase: by sine and cosine of a cycle, scaled."""

    columns: IntArray  # (2,)
    center: FloatArray  # (2,)
    scale: FloatArray  # (2,)
    start: float  # angle of the first phase
    phases: int  # P

    @classmethod
    def of(cls, problem: Problem) -> Clock | None:
        """Read the phases off the training windows; None unless they are few and evenly apart."""
        inputs, rows = problem.layout.inputs, problem.origins["train"]
        cycle = next((c for c in CYCLES if f"{c} sin" in inputs), None)
        if cycle is None:
            return None
        columns = np.array([inputs.index(f"{cycle} {wave}") for wave in ("sin", "cos")])
        scaler = problem.prepared.preparation.scaler
        clock = cls(columns, scaler.center[columns], scaler.scale[columns], 0.0, 1)
        turns = clock.turns(problem.prepared.table[rows])
        start = float(np.angle(turns[0]))
        steps = np.unique(np.rint(np.angle(turns / turns[0]) / SNAP)) * SNAP % (2 * np.pi)
        steps = np.sort(steps)
        found = steps[np.diff(steps, prepend=-1.0) > 2 * SNAP]  # rounding makes neighbours
        if not 2 <= len(found) <= MOST_PHASES:
            return None
        clock = replace(clock, start=start, phases=len(found))
        few = np.exp(2j * np.pi * np.arange(len(found)) / len(found))
        return clock if np.abs(np.exp(1j * found) - few).max() < 3 * SNAP else None

    def turns(self, last: NDArray[np.floating]) -> NDArray[np.complex128]:
        """Return the place on the circle (M,) of windows with last rows (M, C), from the start."""
        sine, cosine = (last[:, self.columns].astype(np.float64) * self.scale + self.center).T
        return np.asarray((cosine + 1j * sine) * np.exp(-1j * self.start))

    def shares(self, turns: NDArray[np.complex128]) -> FloatArray:
        """Return how much each phase counts, (M, P): one of them alone for what has a phase."""
        size = np.abs(turns)
        P, inside = self.phases, turns / np.maximum(size, 1.0)
        powers = inside[:, None] ** np.arange(P // 2 + 1)
        found = np.real(powers @ self.waves().T)
        nearest = np.rint(np.angle(turns) * P / (2 * np.pi)).astype(np.int64) % P
        snapped = np.abs(turns - np.exp(2j * np.pi * nearest / P)) < SNAP
        found[snapped] = np.eye(P)[nearest[snapped]]
        return np.asarray(found)

    def slopes(self, turns: NDArray[np.complex128]) -> FloatArray:
        """Return the derivatives of the shares by the two columns, (M, P, 2)."""
        size = np.abs(turns)
        outside = size > 1.0 + SNAP
        inside = np.where(outside, turns / np.maximum(size, 1.0), turns)
        degree = np.arange(1, self.phases // 2 + 1)
        powers = degree * inside[:, None] ** (degree - 1)
        slope = powers @ self.waves()[:, 1:].T  # (M, P), by the place on the circle
        around = 1j * inside[:, None]  # beyond the circle, only going around it counts
        along = np.real(slope * around) / np.maximum(size, 1.0)[:, None]
        slope = np.where(outside[:, None], along * np.conj(around), slope)
        slope = slope * np.exp(-1j * self.start)
        return np.stack([-slope.imag, slope.real], axis=-1) * self.scale

    def waves(self) -> NDArray[np.complex128]:
        """Return the coefficients (P, 1 + P // 2) of the polynomials."""
        P = self.phases
        degree, phase = np.arange(P // 2 + 1), np.arange(P)[:, None]
        twice = np.where((degree == 0) | (2 * degree == P), 1.0, 2.0)
        return np.asarray(twice / P * np.exp(-2j * np.pi * phase * degree / P))


@dataclass(frozen=True, eq=False)
class Daily:
    """The mean of a map for all times and of maps for each phase."""

    base: Ridge
    clock: Clock
    share: float  # of the base
    places: IntArray  # (p,) inputs that phases read, in flattened windows
    weights: FloatArray  # (S, P, p, H)
    intercept: FloatArray  # (S, P, H)
    spans: FloatArray  # (S, 4) windows (0: all), share, penalty, and share as chosen
    bends: tuple[Bend, ...]  # scale of each span
    window: int

    @property
    def lags(self) -> int:
        """Rows of a window that are read."""
        return self.window

    @property
    def penalty(self) -> FloatArray:
        """The base's penalties (H,)."""
        return self.base.penalty

    def __call__(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return predictions (M, H) for windows (M, T, C)."""
        shares = self.clock.shares(self.clock.turns(windows[:, -1]))
        found = self.share * self.base(windows)
        for s, share in enumerate(self.spans[:, 1]):
            X = self.bends[s].inputs(self._features(windows), self._columns)
            for k in range(self.clock.phases):
                rows = np.flatnonzero(shares[:, k])
                bent = X[rows] @ self.weights[s, k] + self.intercept[s, k]
                found[rows] += share * shares[rows, k, None] * self.bends[s].back(bent)
        return found

    def rows(self, table: NDArray[np.floating], origins: IntArray) -> FloatArray:
        """Return predictions (M, H) for windows ending at ``origins`` of a table, in pieces."""
        parts = [self(part) for _, part in iterate_windows(table, origins, self.window, chunk=1024)]
        return np.concatenate(parts) if parts else np.empty((0, self.intercept.shape[-1]))

    def gradient(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the gradient (M, H, T, C)."""
        M, T, C = windows.shape
        turns = self.clock.turns(windows[:, -1])
        shares, slopes = self.clock.shares(turns), self.clock.slopes(turns)
        raw, H = self._features(windows), self.intercept.shape[-1]
        found, around = np.zeros((M, H, T * C)), np.zeros((M, H, len(self.clock.columns)))
        for bend, share, weights, level in zip(
            self.bends, self.spans[:, 1], self.weights, self.intercept, strict=True
        ):
            X = bend.inputs(raw, self._columns)
            each = np.einsum("mp,kph->mkh", X, weights) + level
            steep = share * shares[..., None] * bend.back_slopes(each)  # (M, P, H)
            slope = np.einsum("mkh,kph->mhp", steep, weights, optimize=True)
            found[:, :, self.places] += slope * bend.slopes(raw, self._columns)[:, None]
            around += share * np.einsum("mkh,mkc->mhc", bend.back(each), slopes)
        found = found.reshape(M, -1, T, C)
        found[:, :, -1, self.clock.columns] += around
        return found + self.share * self.base.gradient(windows)

    def sizes(self) -> FloatArray:
        """Return how large the weights of each column are, (C,)."""
        own = np.abs(self.weights).sum(axis=3).mean(axis=1)  # (S, p)
        own = np.asarray(self.spans[:, 1] @ own)
        C = self.base.weights.shape[1]
        return self.share * self.base.sizes() + np.bincount(self._columns, own, minlength=C)

    @property
    def _columns(self) -> IntArray:
        """Column of each input that phases read."""
        return np.asarray(self.places % self.base.weights.shape[1])

    def _features(self, windows: NDArray[np.floating]) -> FloatArray:
        flat = windows.reshape(len(windows), -1)
        return flat[:, self.places].astype(np.float64, copy=False)

    def refit(self, base: Ridge, problem: Problem, rows: IntArray, *, again: bool = False) -> Daily:
        """Return the map fitted to windows at ``rows``, penalties and weights as chosen.

        With ``again`` it is fitted as time passes, and the weights of spans are nearer each other.
        """
        spans = self.spans.copy()
        if again:
            spans[:, 1] = (spans[:, 3] + spans[:, 3].mean()) / 2
        weights, intercept = np.zeros_like(self.weights), np.zeros_like(self.intercept)
        bends = tuple(_bend(problem, self.clock, rows, int(n)) for n in self.spans[:, 0])
        for k, _, X, y in _by_phase(problem, self.clock, self.places, rows):
            for s, (n, _, penalty, _) in enumerate(spans):
                part = _bent(bends[s], self._columns, X, y, int(n))
                (weights[s, k],), (intercept[s, k],) = _robust(*part, (penalty,))
        found: dict[str, Any] = {"weights": weights, "intercept": intercept, "bends": bends}
        return replace(self, base=base, spans=spans, **found)

    # ------------------------------------------------------------------------------- model files

    def arrays(self, prefix: str = "") -> Arrays:
        """Return the arrays under names that start with ``prefix``, for the model file."""
        clock = self.clock
        rest = np.array([clock.start, clock.phases, self.share])
        told = [clock.columns, clock.center, clock.scale, rest]
        own: Arrays = {"weights": self.weights, "intercept": self.intercept, "spans": self.spans}
        own |= {"places": self.places, "clock": np.concatenate(told).astype(np.float64)}
        own["bends"] = np.stack([[one.shift, one.ratio] for one in self.bends])
        return {
            **self.base.arrays(prefix),
            **{f"{prefix}daily.{name}": array for name, array in own.items()},
        }

    @classmethod
    def restore(cls, base: Ridge, saved: Saved, window: int, horizon: int, prefix: str) -> Daily:
        """Take the arrays of `arrays` back, checking their shapes."""
        prefix = f"{prefix}daily."
        told = saved.take(f"{prefix}clock", (9,), np.float64)
        P, C = int(told[7]), saved.n_columns
        places = saved.take(f"{prefix}places", (None,), np.int64)
        columns = told[:2].astype(np.int64)
        sound = np.isfinite(told).all() and 2 <= P <= MOST_PHASES and (told[4:6] > 0).all()
        inside = (columns >= 0).all() and (columns < C).all()
        if not sound or not inside or (places < 0).any() or (places >= window * C).any():
            raise ModelFileError(f"its '{prefix}clock' or '{prefix}places' are damaged.")
        spans = saved.take(f"{prefix}spans", (None, 4), np.float64)
        scaler, S = saved.preparation.scaler, len(spans)
        bends = saved.take(f"{prefix}bends", (S, 2, C), np.float64)
        if (bends[:, 1] < 0).any():
            raise ModelFileError(f"its '{prefix}bends' are damaged.")
        return cls(
            base,
            Clock(columns, told[2:4], told[4:6], float(told[6]), P),
            float(told[8]),
            places,
            saved.take(f"{prefix}weights", (S, P, len(places), horizon), np.float64),
            saved.take(f"{prefix}intercept", (S, P, horizon), np.float64),
            spans,
            tuple(Bend(scaler.center, scaler.scale, *one) for one in bends),
            window,
        )


LinearMap = Ridge | Daily


@dataclass(frozen=True, eq=False)
class Judged:
    """Maps of some spans and penalties, and the common one, on the stopping windows."""

    spans: tuple[int, ...]
    guess: FloatArray  # (S, penalties, M, H)
    common: FloatArray  # (M, H)
    actual: FloatArray  # (M, H)

    @classmethod
    def of(cls, base: Ridge, problem: Problem, clock: Clock, places: IntArray) -> Judged | None:
        """Fit maps to the training windows of each phase; None if these are too few."""
        train = list(_by_phase(problem, clock, places, problem.origins["train"]))
        stop = {
            one.phase: one for one in _by_phase(problem, clock, places, problem.origins["stop"])
        }
        fewest = min((len(one.y) for one in train), default=0)
        if len(train) < clock.phases or fewest < FEWEST or not stop:
            return None
        panel = problem.prepared.frame.panel is not None  # whose last rows are one series' own
        spans = (0, *(n for n in SPANS if 1.5 * n < fewest and not panel))
        bends = [_bend(problem, clock, problem.origins["train"], n) for n in spans]
        columns, guesses = places % len(problem.groups), []
        for one in train:
            if one.phase in stop:
                found = []
                for bend, n in zip(bends, spans, strict=True):
                    slope, level = _robust(*_bent(bend, columns, one.X, one.y, n), PENALTIES)
                    X = bend.inputs(stop[one.phase].X, columns)
                    found.append(bend.back(X @ slope + level[:, None]))
                guesses.append(np.stack(found))
        rows = np.concatenate([one.rows for one in stop.values()])
        common = base.rows(problem.prepared.table, rows)
        actual = np.concatenate([one.y for one in stop.values()])
        return cls(spans, np.concatenate(guesses, axis=2), common, actual)

    def weigh(self) -> tuple[float, FloatArray] | None:
        """Return the share of the common map, and spans with theirs and penalties.

        None if they do not lower the error enough.
        """
        best = ((self.guess - self.actual) ** 2).sum(axis=(2, 3)).argmin(axis=1)
        chosen = [guess[k] for guess, k in zip(self.guess, best, strict=True)]
        experts = np.stack([self.common, *chosen])
        shares = convex_weights(experts.reshape(len(experts), -1), self.actual.ravel())
        error = np.square(np.tensordot(shares, experts, 1) - self.actual).sum()
        if not error < (1 - GAIN) * np.square(self.common - self.actual).sum():
            return None
        own = shares[1:]
        return float(shares[0]), np.stack([self.spans, own, np.array(PENALTIES)[best], own], axis=1)


def with_phases(base: Ridge, problem: Problem) -> LinearMap:
    """Add maps for each phase to a common one, if that lowers the error on stopping windows."""
    clock = Clock.of(problem)
    places = None if clock is None else _places(problem, clock.phases)
    if clock is None or places is None:
        return base
    judged = Judged.of(base, problem, clock, places)
    weighed = None if judged is None else judged.weigh()
    if weighed is None:
        return base
    share, spans = weighed
    S, P, p, H = len(spans), clock.phases, len(places), problem.horizon
    empty = np.zeros((S, P, p, H)), np.zeros((S, P, H))
    found = Daily(base, clock, share, places, *empty, spans, (), problem.window)
    return found.refit(base, problem, problem.origins["train"])


def restore_map(saved: Saved, window: int, horizon: int, prefix: str = "") -> LinearMap:
    """Take a linear map back from a model file."""
    base = Ridge.restore(saved, window, horizon, prefix)
    if f"{prefix}daily.weights" not in saved.arrays:
        return base
    return Daily.restore(base, saved, window, horizon, prefix)


def convex_weights(experts: FloatArray, actual: FloatArray) -> FloatArray:
    """Return weights (S,), not negative, that add up to one, of least squared error.

    Examples
    --------
    >>> convex_weights(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([2.0, 1.0])).round(3)
    array([0.5, 0.5])
    """
    gap = experts - actual  # (S, M)
    products = gap @ gap.T / gap.shape[1]
    top = float(np.trace(products)) or 1.0
    root = np.linalg.cholesky(products / top + 1e-9 * np.eye(len(gap))).T
    heavy = 1e3
    sides = np.vstack([root, np.full((1, len(gap)), heavy)])
    found, _ = nnls(sides, np.append(np.zeros(len(gap)), heavy))
    shares: FloatArray = found / found.sum()
    return shares


class Phase(NamedTuple):
    """The windows of one phase whose labels are all known."""

    phase: int
    rows: IntArray  # (m,) at which they end
    X: FloatArray  # (m, p) the inputs that are read
    y: FloatArray  # (m, H)


def _by_phase(problem: Problem, clock: Clock, places: IntArray, rows: IntArray) -> Iterator[Phase]:
    """Yield what each phase has of the windows ending at ``rows``."""
    prepared = problem.prepared
    labels = prepared.known_labels(rows, problem.horizon)
    known = ~np.isnan(labels).any(axis=1)
    rows, labels = rows[known], labels[known]
    phase = clock.shares(clock.turns(prepared.table[rows])).argmax(axis=1)
    for k in range(clock.phases):
        own = rows[phase == k]
        if len(own):
            windows = (part for _, part in iterate_windows(prepared.table, own, problem.window))
            X = [part.reshape(len(part), -1)[:, places].astype(np.float64) for part in windows]
            yield Phase(k, own, np.concatenate(X), labels[phase == k])


def _bend(problem: Problem, clock: Clock, rows: IntArray, n: int) -> Bend:
    """Return the scale of the newest ``n`` windows of a phase, or of all if n is zero."""
    last = int(rows.max()) + problem.horizon
    first = max(0, last - n * clock.phases) if n else 0
    return Bend.of(problem, np.arange(first, last + 1))


def _bent(
    bend: Bend, columns: IntArray, X: FloatArray, y: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return inputs and labels of the newest ``n`` windows, or of all, on a span's scale."""
    return bend.inputs(X[-n:], columns), bend.labels(y[-n:])


def _robust(
    X: FloatArray, y: FloatArray, penalties: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return weights (penalties, p, H) and intercepts (penalties, H), each fitted twice.

    Inputs are standardised first, and then multiplied by the root of the size of their weights.
    The second fit is by Huber's loss: what misses by more than the limit counts as the limit.
    """
    x_mean, spread = X.mean(axis=0), X.std(axis=0)
    unit = np.where(spread > SNAP, spread, 1.0)
    Z = (X - x_mean) / unit
    solver = _dual if Z.shape[0] < Z.shape[1] else _primal
    solve, least = solver(Z), SNAP * y.std(axis=0)  # of a limit: below it most residuals are zero
    slopes, levels = [], []
    for penalty in penalties:
        first = solve(np.ones(len(unit)), penalty)(y - y.mean(axis=0))
        size = np.mean(first**2, axis=1) ** 0.25
        size /= np.sqrt(np.mean(size**2)) or 1.0
        again = solve(size, penalty)
        aim = y
        for _ in range(1 + ROUNDS):
            level = aim.mean(axis=0)
            slope = again(aim - level)
            guess = Z @ slope + level
            limit = HUBER * 1.4826 * np.median(np.abs(y - guess), axis=0)
            limit = np.where(limit > least, limit, np.inf)
            aim = guess + np.clip(y - guess, -limit, limit)
        slopes.append(slope / unit[:, None])
        levels.append(level - x_mean @ slopes[-1])
    return np.stack(slopes), np.stack(levels)


Solver = Callable[[FloatArray, float], Callable[[FloatArray], FloatArray]]
"""From sizes (p,) and a penalty to the map of labels (n, H) to weights (p, H)."""


def _primal(Z: FloatArray) -> Solver:
    products = Z.T @ Z

    def solve(size: FloatArray, penalty: float) -> Callable[[FloatArray], FloatArray]:
        left = products * np.outer(size, size)
        left[np.diag_indices_from(left)] += penalty
        factor = cho_factor(left, overwrite_a=True)
        return lambda y: size[:, None] * cho_solve(factor, size[:, None] * (Z.T @ y))

    return solve


def _dual(Z: FloatArray) -> Solver:
    def solve(size: FloatArray, penalty: float) -> Callable[[FloatArray], FloatArray]:
        sized = Z * size**2
        left = sized @ Z.T
        left[np.diag_indices_from(left)] += penalty
        factor = cho_factor(left, overwrite_a=True)
        return lambda y: np.asarray(sized.T @ cho_solve(factor, y))

    return solve


def _places(problem: Problem, rows: int) -> IntArray | None:
    """Choose the inputs that maps of one phase read, ``rows`` being a day; None if too many."""
    layout, ahead = problem.layout, max(1, problem.prepared.preparation.ahead)
    age = np.arange(problem.window)[::-1]
    week = (age >= 6 * rows) & (age < 7 * rows)
    clock = np.isin(np.arange(len(layout.inputs)), layout.clock_columns)
    known = np.array(layout.ahead) & ~clock
    own = np.arange(len(layout.inputs)) == len(layout.inputs) - 1
    for reach in (3 * rows, rows, min(6, rows), 1):
        read: BoolArray = np.zeros((problem.window, len(own)), dtype=bool)
        read[:, ~own & ~known & ~clock] = ((age < reach) | (week & (reach > 6)))[:, None]
        read[:, own] = ((age < 3 * rows) | week)[:, None]
        read[:, known] = ((age < ahead + min(reach, rows)) | week)[:, None]
        read[:, clock] = ((age < ahead) & (age % rows == 0))[:, None]
        if read.sum() <= MOST_FEATURES:
            return np.flatnonzero(read)
    return None
