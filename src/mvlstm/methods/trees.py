"""Rivals made of trees: random forest, and two kinds of boosted trees, on the flattened window."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import astuple, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import (
    MissingExtraError,
    ParameterError,
    check_option,
    check_whole,
    is_number,
    is_whole,
)
from mvlstm.methods.tree_arrays import Trees, from_forest, from_histogram, from_xgboost
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved, by_variable, finite_number
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem, known_places
from mvlstm.progress import show_tasks
from mvlstm.settings import GBTSettings, RFSettings, XGTSettings, documented
from mvlstm.types import FloatArray

COUNTS = (3, 10, 25, 50, 100, 200)  # numbers of trees tried
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
FOREST_DEPTHS = {"paper": tuple(range(3, 11)), "quick": (5, 10)}
BOOST_DEPTHS = {"paper": tuple(range(3, 11)), "quick": (3, 5, 8)}
BOOST_PENALTIES = {"paper": PENALTIES, "quick": (1e-2, 10.0)}
SPREADS = (0.1, 1e4)  # standard deviations of labels that libraries take as they are
FARTHEST = 1e3  # standard deviations that such labels are away from zero at most
LARGEST_SEED = 2**32 - 1  # of scikit-learn
ALONE = 100_000  # values of windows up to which threads gain little and, on busy cores, lose much


@dataclass(frozen=True)
class Sum:
    """How the trees of one step ahead make a forecast: ``start`` and their leaves, added up."""

    start: float = 0.0
    mean: bool = False  # divide the sum by the number of trees
    relative: bool = False  # add the last value known
    center: float = 0.0  # the trees learned labels less this,
    scale: float = 1.0  # divided by this: see `label_units`


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedTrees(Learned):
    """Trees on the flattened window, a set of them for each step ahead."""

    trees: tuple[Trees, ...]
    sums: tuple[Sum, ...]
    gain: FloatArray  # (C,) share of each column in what the splits gained
    chosen: tuple[dict[str, Any], ...]  # settings chosen on validation rows, for each step
    center: float  # of the target as an input
    scale: float
    single_inputs: bool  # whether the library compares inputs in float32
    single_sums: bool  # whether it adds leaves in float32

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Add up the leaves that windows fall into."""
        pieces = [self._forecast(piece) for piece in windows.pieces()]
        return Predictive(np.concatenate([np.empty((1, 0, len(self.trees))), *pieces], axis=1))

    def _forecast(self, windows: FloatArray) -> FloatArray:
        X = windows.reshape(len(windows), -1)
        X = X.astype(np.float32) if self.single_inputs else X
        last = windows[:, -1, -1] * self.scale + self.center
        steps = [
            self._add(trees.leaves(X), how) + (last if how.relative else 0.0)
            for trees, how in zip(self.trees, self.sums, strict=True)
        ]
        return np.stack(steps, axis=-1)[None]

    def _add(self, leaves: FloatArray, how: Sum) -> FloatArray:
        """Add the leaves (R, M) in the order in which the library adds them."""
        dtype = np.dtype(np.float32 if self.single_sums else np.float64)
        total: NDArray[Any] = np.full(leaves.shape[1], how.start, dtype=dtype)
        for values in leaves.astype(dtype):
            total += values
        if how.mean:
            total /= len(leaves)
        return total.astype(np.float64) * how.scale + how.center

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray | None:
        """Return the share of each variable in what the splits gained."""
        return by_variable(self.gain, groups) if self.gain.sum() > 0 else None

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the trees of each step, and how they add up."""
        arrays: Arrays = {"gain": self.gain}
        for h, trees in enumerate(self.trees):
            arrays |= trees.arrays(f"step{h + 1}")
        sums = [list(astuple(how)) for how in self.sums]
        return arrays, {"sums": sums, "chosen": list(self.chosen)}


class AbstractTrees(AbstractForecaster):
    """Trees on the flattened window, a set of them for each step ahead."""

    seed: int
    single_inputs: ClassVar[bool] = False
    single_sums: ClassVar[bool] = False
    largest_seed: ClassVar[int | None] = None  # that the library takes, where it has bounds

    @abstractmethod
    def _learn_step(self, data: FlatData, h: int) -> tuple[Trees, Sum, FloatArray, dict[str, Any]]:
        """Return trees, how they add up, gain by feature, and the settings chosen."""

    def check(self) -> None:
        """Refuse a seed or a number of cores that the library does not take."""
        super().check()
        if not is_whole(self.seed):
            raise ParameterError(f"seed={self.seed!r} must be a whole number.")
        if self.largest_seed is not None and not 0 <= self.seed <= self.largest_seed:
            raise ParameterError(
                f"seed={self.seed!r} must lie between 0 and {self.largest_seed}, as scikit-learn "
                "asks for."
            )
        jobs = getattr(self, "n_jobs", -1)
        if not is_whole(jobs) or (jobs != -1 and jobs < 1):
            raise ParameterError(f"n_jobs={jobs!r} must be a number of cores, or -1 for all.")

    def learn(self, problem: Problem) -> LearnedTrees:
        """Grow trees for each step ahead, their settings chosen on the stopping rows."""
        data = FlatData.of(problem)
        steps = [self._learn_step(data.known(h), h) for h in range(self.horizon)]
        trees, sums, gains, chosen = zip(*steps, strict=True)
        total = np.sum([_shares(gain) for gain in gains], axis=0)
        gain = _shares(total.reshape(self.window, -1).sum(axis=0))
        found = {"trees": trees, "sums": sums, "gain": gain, "chosen": chosen}
        return self._learned(problem.prepared.preparation, found)

    def _learned(self, preparation: Preparation, found: dict[str, Any]) -> LearnedTrees:
        return LearnedTrees(
            **found,
            center=preparation.target_center,
            scale=preparation.target_scale,
            single_inputs=self.single_inputs,
            single_sums=self.single_sums,
        )

    def restore(self, saved: Saved) -> LearnedTrees:
        """Rebuild what `learn` returned."""
        gain = saved.take("gain", (saved.n_columns,), np.float64)
        features = int(self.window) * saved.n_columns
        steps = [f"step{h + 1}" for h in range(self.horizon)]
        trees = tuple(Trees.restore(saved.arrays, step, features) for step in steps)
        sums = tuple(_restored(*values) for values in saved.extra["sums"])
        chosen = tuple(dict(one) for one in saved.extra["chosen"])
        if len(sums) != self.horizon:
            raise ValueError(f"{len(sums)} sums for {self.horizon} steps")
        found = {"trees": trees, "sums": sums, "gain": gain, "chosen": chosen}
        return self._learned(saved.preparation, found)


def _shares(gain: FloatArray) -> FloatArray:
    return np.asarray(gain / max(gain.sum(), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class FlatData:
    """Flattened windows (M, T*C) and labels (M, H), NaN if unknown, to learn from and choose on."""

    X: FloatArray
    y: FloatArray
    last: FloatArray  # (M,) last value known, in units of the labels
    X_stop: FloatArray
    y_stop: FloatArray
    last_stop: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> FlatData:
        """Gather the windows of training and stopping rows."""
        found = []
        for part in ("train", "stop"):
            windows = problem.windows(part)
            flat = windows.reshape(len(windows), -1)
            found += [flat, problem.labels(part), problem.prepared.target[problem.origins[part]]]
        return cls(*found)

    def known(self, h: int) -> FlatData:
        """Return the windows whose label of step ``h`` is known."""
        train, stop = known_places(self.y[:, h]), known_places(self.y_stop[:, h])
        learned = (one[train] for one in (self.X, self.y, self.last))
        judged = (one[stop] for one in (self.X_stop, self.y_stop, self.last_stop))
        return FlatData(*learned, *judged)


def label_units(y: FloatArray) -> tuple[float, float]:
    """Return what labels (M,) are shifted and divided by for a library to tell them apart.

    xgboost holds labels in float32 and both libraries stop at fixed small gains, so that a level
    far above the spread, or a spread far from one, would be learned badly or not at all. Where
    neither is so, labels stay as they are: (0, 1).
    """
    center, scale = float(y.mean()), float(y.std())
    plain = SPREADS[0] <= scale <= SPREADS[1] and float(np.abs(y).max()) <= FARTHEST * scale
    return (0.0, 1.0) if plain or not scale > 0 else (center, scale)


@documented
class RF(AbstractTrees, RFSettings):
    """Random forest on the flattened window, depth and size chosen on validation rows.

    scikit-learn's ``RandomForestRegressor`` with ``max_features="sqrt"``. With ``horizon > 1``
    there is one forest for each step ahead.
    """

    single_inputs: ClassVar[bool] = True
    largest_seed: ClassVar[int | None] = LARGEST_SEED

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("grid", self.grid, FOREST_DEPTHS)
        check_whole("max_trees", self.max_trees, 1)

    def _learn_step(self, data: FlatData, h: int) -> tuple[Trees, Sum, FloatArray, dict[str, Any]]:
        from sklearn.ensemble import RandomForestRegressor

        depths = FOREST_DEPTHS[self.grid]
        counts = [count for count in COUNTS if count < self.max_trees] + [self.max_trees]
        X, X_stop = data.X.astype(np.float32), data.X_stop.astype(np.float32)
        center, scale = label_units(data.y[:, h])
        y, y_stop = ((one[:, h] - center) / scale for one in (data.y, data.y_stop))
        best = np.inf
        with show_tasks(self.verbose, "RF", len(depths)) as advance:
            for depth in depths:
                forest = RandomForestRegressor(
                    n_estimators=self.max_trees,
                    max_depth=depth,
                    max_features="sqrt",
                    n_jobs=self.n_jobs,
                    random_state=self.seed,
                ).fit(X, y)
                trees = from_forest(forest)
                sizes = np.arange(1, self.max_trees + 1)[:, None]
                means = np.cumsum(trees.leaves(X_stop), axis=0) / sizes  # by number of trees
                errors = np.mean((means - y_stop) ** 2, axis=1)
                count = min(counts, key=lambda size: errors[size - 1])
                advance(f"depth {depth}, error {scale * errors[count - 1] ** 0.5:.4g}")
                if errors[count - 1] < best:
                    best = errors[count - 1]
                    some = forest.estimators_[:count]
                    impurity = np.mean([one.feature_importances_ for one in some], axis=0)
                    chosen = {"depth": depth, "trees": count}
                    how = Sum(mean=True, center=center, scale=scale)
                    found = (trees.first(count), how, impurity, chosen)
        return found


@documented
class XGT(AbstractTrees, XGTSettings):
    """Boosted trees by xgboost on the flattened window, settings chosen on validation rows.

    First the depth, each with the best number of rounds, then the penalty ``reg_lambda`` at that
    depth, as the paper's authors did. With ``horizon > 1`` there is one model for each step.
    """

    single_inputs: ClassVar[bool] = True
    single_sums: ClassVar[bool] = True
    seed_matters: ClassVar[bool] = False  # no rows or columns are drawn

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("grid", self.grid, BOOST_DEPTHS)
        check_whole("max_rounds", self.max_rounds, 1)
        if not is_number(self.learning_rate) or not 0 < self.learning_rate <= 1:
            raise ParameterError(
                f"learning_rate={self.learning_rate!r} must be above 0 and at most 1."
            )

    def _learn_step(self, data: FlatData, h: int) -> tuple[Trees, Sum, FloatArray, dict[str, Any]]:
        try:
            import xgboost
        except ImportError as error:
            raise MissingExtraError(
                "XGT needs xgboost, which is not installed. "
                'Install the extra: pip install "mvlstm[baselines]".'
            ) from error

        depths, penalties = BOOST_DEPTHS[self.grid], BOOST_PENALTIES[self.grid]
        center, scale = label_units(data.y[:, h])
        y, y_stop = ((one[:, h] - center) / scale for one in (data.y, data.y_stop))
        best: tuple[float, Any, dict[str, Any]] = (np.inf, None, {})
        every = 1 if data.X.size <= ALONE else None  # None: one thread for each core
        threads = every if self.n_jobs == -1 else self.n_jobs
        with show_tasks(self.verbose, "XGT", len(depths) + len(penalties)) as advance:

            def attempt(depth: int, penalty: float) -> None:
                nonlocal best
                model = xgboost.XGBRegressor(
                    n_estimators=self.max_rounds,
                    max_depth=depth,
                    reg_lambda=penalty,
                    learning_rate=self.learning_rate,
                    random_state=self.seed,
                    n_jobs=threads,
                    eval_metric="rmse",
                )
                model.fit(data.X, y, eval_set=[(data.X_stop, y_stop)], verbose=False)
                errors = model.evals_result()["validation_0"]["rmse"]
                rounds = int(np.argmin(errors)) + 1
                error = scale * errors[rounds - 1]
                advance(f"depth {depth} lambda {penalty:g}, error {error:.4g}")
                if errors[rounds - 1] < best[0]:
                    chosen = {"depth": depth, "penalty": penalty, "rounds": rounds}
                    best = (errors[rounds - 1], model, chosen)

            for depth in depths:
                attempt(depth, 1.0)
            depth = best[2]["depth"]
            for penalty in penalties:
                if penalty != 1.0:
                    attempt(depth, penalty)
        _, model, chosen = best
        trees, base, gains = from_xgboost(model.get_booster(), chosen["rounds"])
        return trees, Sum(start=base, center=center, scale=scale), gains, chosen


@dataclass(frozen=True)
class Boosting:
    """One setting that `GBT` tries."""

    learning_rate: float
    leaves: int
    least: int
    features: float
    l2: float
    relative: bool


# Neighbouring windows are nearly the same, so that leaves must be large and features few: small
# leaves learn the season they were grown in, which validation rows close by do not reveal.
SETTINGS: dict[str, tuple[Boosting, ...]] = {
    "default": tuple(
        Boosting(0.05, leaves, 200, 0.1, 10.0, relative)
        for relative in (False, True)
        for leaves in (8, 16, 31)
    ),
    "quick": tuple(Boosting(0.08, 16, 200, 0.1, 10.0, relative) for relative in (False, True)),
}


@documented
class GBT(AbstractTrees, GBTSettings):
    """Histogram gradient boosting on the flattened window, settings chosen on validation rows.

    scikit-learn's ``HistGradientBoostingRegressor``. Each setting is fitted once with
    ``max_rounds`` trees; the number of trees, the setting, and whether the trees forecast the
    value itself or its change from the last value known, are those with the least error on the
    validation rows. With ``horizon > 1`` there is one model for each step ahead.
    """

    largest_seed: ClassVar[int | None] = LARGEST_SEED

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("grid", self.grid, SETTINGS)
        check_whole("max_rounds", self.max_rounds, 1)

    def _learn_step(self, data: FlatData, h: int) -> tuple[Trees, Sum, FloatArray, dict[str, Any]]:
        from sklearn.ensemble import HistGradientBoostingRegressor

        best = np.inf
        with show_tasks(self.verbose, "GBT", len(SETTINGS[self.grid])) as advance:
            for one in SETTINGS[self.grid]:
                base, base_stop = (data.last, data.last_stop) if one.relative else (0.0, 0.0)
                least = min(one.least, max(5, len(data.y) // 50))  # for short tables
                model = HistGradientBoostingRegressor(
                    learning_rate=one.learning_rate,
                    max_iter=self.max_rounds,
                    max_leaf_nodes=one.leaves,
                    min_samples_leaf=least,
                    max_features=one.features,
                    l2_regularization=one.l2,
                    early_stopping=False,
                    random_state=self.seed,
                ).fit(data.X, data.y[:, h] - base)
                trees, gains = from_histogram(model)
                start = float(model._baseline_prediction.item())
                paths = start + np.cumsum(trees.leaves(data.X_stop), axis=0)
                errors = np.mean((paths + base_stop - data.y_stop[:, h]) ** 2, axis=1)
                rounds = int(np.argmin(errors)) + 1
                advance(f"{one.leaves} leaves, error {errors[rounds - 1] ** 0.5:.4g}")
                if errors[rounds - 1] < best:
                    best = errors[rounds - 1]
                    chosen = {**one.__dict__, "least": least, "rounds": rounds}
                    found = (trees.first(rounds), Sum(start, relative=one.relative), gains, chosen)
        return found


def _restored(
    start: float, mean: bool, relative: bool, center: float = 0.0, scale: float = 1.0
) -> Sum:
    """Return a sum from a model file; older files have no center and scale."""
    numbers = {"start": start, "center": center, "scale": scale}
    start, center, scale = (finite_number(numbers, name) for name in numbers)
    return Sum(start, bool(mean), bool(relative), center, scale)
