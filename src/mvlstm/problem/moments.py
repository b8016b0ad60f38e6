"""Sums over windows, in pieces, from which linear maps of any penalty and lags follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ParameterError
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import BoolArray, FloatArray, IntArray

Part = tuple[IntArray, FloatArray]  # rows (M,) at which windows end, and labels (M, H), or NaN

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-6, 13))
MOST_FEATURES = 3_000  # beyond this many, the oldest lags are left out
LARGEST_SIDE = 6_000  # features or windows, the fewer: of twice as many, products take 4 GB
COPIES = 4  # of the products, while they are decomposed
FEW = 20  # stopping windows, by fewer of which nothing is chosen: see `choosing_errors`
STRETCHES = 4  # of training windows that are forecast from those before them
MOST_FORWARD = 500  # features with which they are: more would take longer than the fit


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over windows, from which least squares of any penalty and lags follow.

    More than `MOST_FEATURES` features in fewer windows are kept as they are, in ``deviations``:
    the products of these with one another are fewer than those of the features.
    """

    x: FloatArray  # (p,) means of the features, oldest lag first
    y: FloatArray  # (H,) means of the labels
    xx: FloatArray  # (p, p) sums of products about the means; (0, 0) where there are deviations
    xy: FloatArray  # (p, H)
    rows: int  # number of windows
    deviations: FloatArray | None = None  # (rows, p) windows about the means

    @classmethod
    def each(
        cls, table: NDArray[np.floating], lags: int, part: Part, read: BoolArray | None = None
    ) -> Iterator[Moments]:
        """Yield the moments of all steps ahead or, where labels are unknown, of one after another.

        ``read`` (lags or more, C) says which inputs are features; by default all.
        Each step has windows of its own then: those without its label are taken off the products
        of all or, where they are most, the others are added up.
        """
        origins, labels = part
        unknown = np.isnan(labels)
        if check_work(count_features(lags, table.shape[1], read), len(origins)):
            X = np.concatenate(list(iterate_features(table, origins, lags, read)))
            if not unknown.any():
                yield cls._wide(X, labels)
                return
            for h, gone in enumerate(unknown.T):
                yield cls._wide(X[~gone], labels[~gone, h : h + 1])
            return
        if not unknown.any():
            x, xx, xy = _sums(table, lags, origins, labels, read)
            yield cls._about(x / len(origins), labels.mean(axis=0), xx, xy, len(origins))
            return
        masked = np.hstack([np.where(unknown, 0.0, labels), ~unknown])
        _, whole, products = _sums(table, lags, origins, masked, read)
        for h, (gone, xy, x) in enumerate(zip(unknown.T, *np.split(products.T, 2), strict=True)):
            rows = int((~gone).sum())
            most_gone = rows < len(gone) / 2
            fewer = ~gone if most_gone else gone
            xx = _sums(table, lags, origins[fewer], labels[fewer, :0], read)[1]
            y = labels[~gone, h : h + 1].mean(axis=0)
            yield cls._about(x / rows, y, xx if most_gone else whole - xx, xy[:, None], rows)

    @classmethod
    def _about(
        cls, x: FloatArray, y: FloatArray, xx: FloatArray, xy: FloatArray, rows: int
    ) -> Moments:
        """Take the means x and y off the products, in place."""
        xx -= rows * np.outer(x, x)
        xy -= rows * np.outer(x, y)
        return cls(x, y, xx, xy, rows)

    @classmethod
    def _wide(cls, X: FloatArray, labels: FloatArray) -> Moments:
        """Take windows (M, p) and labels (M, H) themselves."""
        x, y = X.mean(axis=0), labels.mean(axis=0)
        X = X - x
        return cls(x, y, np.empty((0, 0)), X.T @ (labels - y), len(X), X)

    def latest(self, features: int) -> Moments:
        """Return the moments of the last ``features`` features, those of the latest lags."""
        last = slice(len(self.x) - features, None)
        X = None if self.deviations is None else self.deviations[:, last]
        return Moments(self.x[last], self.y, self.xx[last, last], self.xy[last], self.rows, X)

    def decomposed(self) -> tuple[FloatArray, FloatArray]:
        """Return eigenvalues (r, 1) of the products of features and their vectors (p, r).

        Those left out are zero, and neither xy nor any sum of windows has a part along them.
        """
        if self.deviations is None:
            values, vectors = np.linalg.eigh(self.xx)
            return np.maximum(values, 0.0)[:, None], vectors
        values, vectors = np.linalg.eigh(self.deviations @ self.deviations.T)
        kept = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
        values = values[kept]
        return values[:, None], self.deviations.T @ (vectors[:, kept] / np.sqrt(values))

    def joined(self, other: Moments) -> Moments:
        """Return the moments of both samples' windows together."""
        rows = self.rows + other.rows
        dx, dy, share = other.x - self.x, other.y - self.y, other.rows / rows
        weight = self.rows * share
        return Moments(
            self.x + share * dx,
            self.y + share * dy,
            self.xx + other.xx + weight * np.outer(dx, dx),
            self.xy + other.xy + weight * np.outer(dx, dy),
            rows,
        )

    def solve(self, penalty: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights (p, H) and intercepts (H,) for a penalty of each step (H,)."""
        values, vectors = self.decomposed()
        weights = vectors @ ((vectors.T @ self.xy) / (values + penalty))
        return weights, self.y - self.x @ weights

    def path(self, penalties: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
        """Return weights (penalties, p, H) and intercepts (penalties, H) of ridge regression."""
        values, vectors = self.decomposed()
        rotated = vectors.T @ self.xy
        path = np.stack([vectors @ (rotated / (values + penalty)) for penalty in penalties])
        return path, self.y - self.x @ path


def iterate_features(
    table: NDArray[np.floating], origins: IntArray, lags: int, read: BoolArray | None = None
) -> Iterator[FloatArray]:
    """Yield the features (m, p) of windows in pieces: inputs that are read, oldest lag first."""
    kept = None if read is None else read[len(read) - lags :].ravel()
    for rows, windows in iterate_windows(table, origins, lags):
        X = windows.reshape(len(rows), -1)
        yield (X if kept is None else X[:, kept]).astype(np.float64, copy=False)


def check_work(features: int, windows: int) -> bool:
    """Say whether features are too many for their products with one another, not for the windows'.

    Raise `ParameterError` if they are too many for either.
    """
    side = min(features, windows)
    if features > MOST_FEATURES and side > LARGEST_SIDE:
        raise ParameterError(
            f"A linear map of {features:,} inputs in {windows:,} windows would need about "
            f"{COPIES * 8 * side**2 / 1e9:.1f} GB and hours. Use fewer columns (variables=... or "
            "exclude=...)."
        )
    return features > MOST_FEATURES and windows < features


def count_features(lags: int, n_columns: int, read: BoolArray | None) -> int:
    """Return how many inputs of the latest lags are features."""
    return lags * n_columns if read is None else int(read[len(read) - lags :].sum())


def as_lags(weights: FloatArray, lags: int, n_columns: int, read: BoolArray | None) -> FloatArray:
    """Lay out the weights (p, H) of features as (lags, C, H), zero where an input is not read."""
    if read is None:
        return weights.reshape(lags, n_columns, -1)
    result = np.zeros((lags, n_columns, weights.shape[1]))
    result[read[len(read) - lags :]] = weights
    return result


def _sums(
    table: NDArray[np.floating], lags: int, origins: IntArray, y: FloatArray, read: BoolArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add up windows (p,) and their products with themselves (p, p) and y (p, H), in pieces."""
    p = count_features(lags, table.shape[1], read)
    xx, xy = np.zeros((p, p)), np.zeros((p, y.shape[1]))
    x, done = np.zeros(p), 0
    for X in iterate_features(table, origins, lags, read):
        xx += X.T @ X
        xy += X.T @ y[done : done + len(X)]
        x += X.sum(axis=0)
        done += len(X)
    return x, xx, xy


def join_steps(parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Join paths, and their intercepts, of some steps ahead each."""
    path, intercept = (np.concatenate(one, axis=-1) for one in zip(*parts, strict=True))
    return path, intercept


def most_lags(window: int, n_columns: int) -> int:
    """Return how many lags are used at most: the window, or what there is room for."""
    return max(1, min(int(window), MOST_FEATURES // n_columns))


def squared_errors(
    path: FloatArray,
    intercept: FloatArray,
    table: NDArray[np.floating],
    choose: Part,
    lags: int,
    read: BoolArray | None = None,
) -> FloatArray:
    """Return the squared errors (penalties, H) on the stopping windows, known ones added up."""
    origins, y = choose
    n, p, H = path.shape
    joined = np.moveaxis(path, 0, 1).reshape(p, n * H)
    sums, done = np.zeros((n, H)), 0
    for X in iterate_features(table, origins, lags, read):
        guess = (X @ joined).reshape(len(X), n, H) + intercept
        label = y[done : done + len(X), None]
        sums += (np.where(np.isnan(label), 0.0, guess - label) ** 2).sum(axis=0)
        done += len(X)
    return sums


def choosing_errors(
    path: FloatArray,
    intercept: FloatArray,
    table: NDArray[np.floating],
    train: Part,
    choose: Part,
    lags: int,
    read: BoolArray | None = None,
) -> FloatArray:
    """Return the squared errors (penalties, H) by which a penalty is chosen.

    They are those on ``choose``, and of steps with fewer than `FEW` known labels there, which
    hardly tell anything, those of `forward_errors` as well.
    """
    errors = squared_errors(path, intercept, table, choose, lags, read)
    few = np.flatnonzero(np.isfinite(choose[1]).sum(axis=0) < FEW)
    together = [few] if np.isfinite(train[1]).all() else few[:, None]  # each with labels of its own
    for steps in together:
        if len(steps):
            part = train[0], train[1][:, steps]
            errors[:, steps] += forward_errors(table, lags, part, read)[0].sum(axis=0)
    return errors


def forward_errors(
    table: NDArray[np.floating], lags: int, train: Part, read: BoolArray | None = None
) -> tuple[FloatArray, int]:
    """Return squared errors on training windows, and how many they add up.

    The later half of the windows is divided into `STRETCHES`, each forecast by regressions on the
    windows before it: (stretches, penalties, H). Windows with unknown labels are left out.
    """
    known = np.isfinite(train[1]).all(axis=1)
    origins, labels = train[0][known], train[1][known]
    H, found, count = labels.shape[1], [np.zeros((len(PENALTIES), labels.shape[1]))], 0
    if count_features(lags, table.shape[1], read) > MOST_FORWARD:
        return np.stack(found), count
    for stretch in np.array_split(np.arange(len(origins) // 2, len(origins)), STRETCHES):
        before = slice(0, max(0, stretch[0] + 1 - H) if len(stretch) else 0)  # labels known by then
        if len(origins[before]) < 2:
            continue
        (moments,) = Moments.each(table, lags, (origins[before], labels[before]), read)
        later = origins[stretch], labels[stretch]
        found.append(squared_errors(*moments.path(PENALTIES), table, later, lags, read))
        count += len(stretch)
    return np.stack(found), count
