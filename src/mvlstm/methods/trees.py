"""Rivals made of trees: random forest, and two kinds of boosted trees, on the flattened window."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mvlstm.errors import ParameterError, check_option, check_whole, is_number, is_whole, load_extra
from mvlstm.methods.network.link import LINKS, Link, LinkName
from mvlstm.methods.tree_arrays import Trees, from_forest, from_histogram, from_xgboost
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved, by_variable, finite_number
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem, known_places
from mvlstm.progress import Advance, show_tasks
from mvlstm.settings import GBTSettings, RFSettings, XGTSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray

Settings = Mapping[str, Any]
PARTS: tuple[Literal["train", "stop"], ...] = ("train", "stop")

COUNTS = (3, 10, 25, 50, 100, 200)  # numbers of trees of a forest tried
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
    link: Link  # whose forecast the trees correct

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
        return (np.stack(steps, axis=-1) + self.link(windows))[None]

    def _add(self, leaves: FloatArray, how: Sum) -> FloatArray:
        """Add the leaves (R, M) in the order in which the library adds them."""
        dtype = np.dtype(np.float32 if self.single_sums else np.float64)
        total: NDArray[Any] = np.full(leaves.shape[1], how.start, dtype=dtype)
        for values in leaves.astype(dtype):
            total += values
        if how.mean:
            total /= len(leaves)
        return total.astype(np.float64) * how.scale + how.center

    def choices(self) -> dict[str, Any]:
        """Return each setting, a list by step ahead."""
        return {name: [one[name] for one in self.chosen] for name in self.chosen[0]}

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray | None:
        """Return the share of each variable in what the splits gained."""
        return by_variable(self.gain, groups) if self.gain.sum() > 0 else None

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the trees of each step, and how they add up."""
        arrays: Arrays = {"gain": self.gain, **self.link.arrays()}
        for h, trees in enumerate(self.trees):
            arrays |= trees.arrays(f"step{h + 1}")
        sums = [list(astuple(how)) for how in self.sums]
        return arrays, {"sums": sums, "chosen": list(self.chosen)}


Step = tuple[Trees, Sum, FloatArray, dict[str, Any]]
"""Trees, how they add up, gain by feature, and the settings chosen."""


class Rows(NamedTuple):
    """Windows of one part, flattened, with their labels."""

    X: FloatArray  # (M, T*C)
    y: FloatArray  # (M, H), NaN if unknown; of one step (M,)
    last: FloatArray  # (M,) last value known, in units of the labels

    @classmethod
    def of(cls, problem: Problem, part: Literal["train", "stop"], link: Link) -> Rows:
        """Gather the windows of a part; labels are what the link leaves of them."""
        windows, origins = problem.windows(part), problem.origins[part]
        left = problem.labels(part) - link.rows(problem.prepared.table, origins, problem.window)
        return cls(windows.reshape(len(windows), -1), left, problem.prepared.target[origins])

    def step(self, h: int) -> Rows:
        """Return the windows whose label of one step is known."""
        known = known_places(self.y[:, h])
        return Rows(self.X[known], self.y[known, h], self.last[known])


class Grown(NamedTuple):
    """Trees grown with some settings, of which the first few may be taken."""

    settings: Settings
    errors: FloatArray  # squared, on the stopping rows, of the first tree, the first two, ...
    first: Callable[[int], tuple[Trees, Sum, FloatArray]]  # the first few, and gain by feature
    unit: float = 1.0  # of the errors


class AbstractTrees(AbstractForecaster):
    """Trees on the flattened window, a set of them for each step ahead.

    Of the settings in a grid those are taken, with as many of their trees, that have the least
    error on the stopping rows. A setting that a later line of the grid does not name is the best
    of those before.
    """

    seed: int
    link: LinkName
    grid: Any
    grids: ClassVar[dict[str, Sequence[Settings]]]
    most: ClassVar[str] = "max_rounds"  # argument with the number of trees grown
    counted: ClassVar[str] = "rounds"  # what these are called
    copies_windows: ClassVar[bool] = True
    single_inputs: ClassVar[bool] = False
    single_sums: ClassVar[bool] = False
    largest_seed: ClassVar[int | None] = None  # that the library takes, where it has bounds

    @abstractmethod
    def _grow(self, train: Rows, stop: Rows, settings: Settings) -> Grown:
        """Grow trees for one step with some settings."""

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        check_option("grid", self.grid, self.grids)
        check_option("link", self.link, LINKS)
        check_whole(self.most, getattr(self, self.most), 1)
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

    def most_numbers(self, layout: Layout) -> float:
        """Trees grow with the rows: only the disk bounds their file."""
        return float("inf")

    def learn(self, problem: Problem) -> LearnedTrees:
        """Grow trees for each step ahead, their settings chosen on the stopping rows."""
        grid = [one for one in self.grids[self.grid] if self.link == "none" or plain(one)]
        link, total = Link.learn(self.link, problem), self.horizon * len(grid)
        if (told := problem.run.advance) is not None:
            step = partial(self._learn_step, grid, partial(told, of=total))
            return self._grown(problem, link, step)
        with show_tasks(self.verbose, type(self).__name__, total) as advance:
            return self._grown(problem, link, partial(self._learn_step, grid, advance))

    def learn_again(self, learned: LearnedTrees, problem: Problem) -> LearnedTrees:
        """Grow trees from all training windows, with the settings chosen before."""
        steps = iter(learned.chosen)

        def grow(train: Rows, stop: Rows) -> Step:
            chosen = next(steps)
            count = int(chosen[self.counted])
            as_many: Any = clone(self).set_params(**{self.most: count})
            return *as_many._grow(train, stop, chosen).first(count), dict(chosen)

        return self._grown(problem, learned.link.refit(problem), grow)

    def _grown(
        self, problem: Problem, link: Link, grow: Callable[[Rows, Rows], Step]
    ) -> LearnedTrees:
        train, stop = (Rows.of(problem, part, link) for part in PARTS)
        steps = [grow(train.step(h), stop.step(h)) for h in range(self.horizon)]
        trees, sums, gains, chosen = zip(*steps, strict=True)
        total = np.sum([_shares(gain) for gain in gains], axis=0)
        gain = _shares(total.reshape(self.window, -1).sum(axis=0))
        found = {"trees": trees, "sums": sums, "gain": gain, "chosen": chosen, "link": link}
        return self._learned(problem.prepared.preparation, **found)

    def _learn_step(
        self, grid: Sequence[Settings], advance: Advance, train: Rows, stop: Rows
    ) -> Step:
        best, least, count = None, np.inf, 0
        for settings in grid:
            before = best.settings if best is not None else settings
            grown = self._grow(train, stop, {**before, **settings})
            place = int(np.argmin(grown.errors))
            error = grown.errors[place]
            words = ", ".join(f"{name} {value:g}" for name, value in settings.items())
            advance(f"{words}, error {grown.unit * error**0.5:.4g}")
            if error < least:
                best, least, count = grown, error, place + 1
        assert best is not None
        return *best.first(count), {**best.settings, self.counted: count}

    def _learned(self, preparation: Preparation, **found: Any) -> LearnedTrees:
        center, scale = preparation.target_center, preparation.target_scale
        inputs, sums = self.single_inputs, self.single_sums
        return LearnedTrees(
            **found, center=center, scale=scale, single_inputs=inputs, single_sums=sums
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
        link = Link.restore(self.link, int(self.horizon), int(self.window), saved)
        found = {"trees": trees, "sums": sums, "gain": gain, "chosen": chosen, "link": link}
        return self._learned(saved.preparation, **found)


def plain(settings: Settings) -> bool:
    """Say whether trees with these settings learn the label itself, and no change from a value."""
    return not settings.get("relative", False)


def _shares(gain: FloatArray) -> FloatArray:
    return np.asarray(gain / max(gain.sum(), np.finfo(float).tiny))


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

    grids: ClassVar = {
        "paper": [{"depth": depth} for depth in range(3, 11)],
        "quick": [{"depth": depth} for depth in (5, 10)],
    }
    most: ClassVar[str] = "max_trees"
    counted: ClassVar[str] = "trees"
    single_inputs: ClassVar[bool] = True
    largest_seed: ClassVar[int | None] = LARGEST_SEED

    def _grow(self, train: Rows, stop: Rows, settings: Settings) -> Grown:
        from sklearn.ensemble import RandomForestRegressor

        center, scale = label_units(train.y)
        forest = RandomForestRegressor(
            n_estimators=self.max_trees,
            max_depth=settings["depth"],
            max_features="sqrt",
            n_jobs=self.n_jobs,
            random_state=self.seed,
        ).fit(train.X.astype(np.float32), (train.y - center) / scale)
        trees = from_forest(forest)
        sizes = np.arange(1, self.max_trees + 1)
        means = np.cumsum(trees.leaves(stop.X.astype(np.float32)), axis=0) / sizes[:, None]
        errors = np.mean((means - (stop.y - center) / scale) ** 2, axis=1)
        errors = np.where(np.isin(sizes, (*COUNTS, self.max_trees)), errors, np.inf)

        def first(count: int) -> tuple[Trees, Sum, FloatArray]:
            some = [one.feature_importances_ for one in forest.estimators_[:count]]
            how = Sum(mean=True, center=center, scale=scale)
            return trees.first(count), how, np.mean(some, axis=0)

        return Grown(settings, errors, first, scale)


@documented
class XGT(AbstractTrees, XGTSettings):
    """Boosted trees by xgboost on the flattened window, settings chosen on validation rows.

    First the depth, each with the best number of rounds, then the penalty ``reg_lambda`` at that
    depth, as the paper's authors did. With ``horizon > 1`` there is one model for each step.
    """

    grids: ClassVar = {
        "paper": [
            *({"depth": depth, "penalty": 1.0} for depth in range(3, 11)),
            *({"penalty": penalty} for penalty in (1e-4, 1e-3, 1e-2, 1e-1, 10.0)),
        ],
        "quick": [
            *({"depth": depth, "penalty": 1.0} for depth in (3, 5, 8)),
            *({"penalty": penalty} for penalty in (1e-2, 10.0)),
        ],
    }
    single_inputs: ClassVar[bool] = True
    single_sums: ClassVar[bool] = True
    seed_matters: ClassVar[bool] = False  # no rows or columns are drawn

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        if not is_number(self.learning_rate) or not 0 < self.learning_rate <= 1:
            raise ParameterError(
                f"learning_rate={self.learning_rate!r} must be above 0 and at most 1."
            )

    def _grow(self, train: Rows, stop: Rows, settings: Settings) -> Grown:
        xgboost = load_extra("xgboost", "XGT", "baselines")
        center, scale = label_units(train.y)
        every = 1 if train.X.size <= ALONE else None  # None: one thread for each core
        model = xgboost.XGBRegressor(
            n_estimators=self.max_rounds,
            max_depth=settings["depth"],
            reg_lambda=settings["penalty"],
            learning_rate=self.learning_rate,
            random_state=self.seed,
            n_jobs=every if self.n_jobs == -1 else self.n_jobs,
            eval_metric="rmse",
        )
        judged = [(stop.X, (stop.y - center) / scale)]
        model.fit(train.X, (train.y - center) / scale, eval_set=judged, verbose=False)
        errors = np.array(model.evals_result()["validation_0"]["rmse"]) ** 2

        def first(count: int) -> tuple[Trees, Sum, FloatArray]:
            trees, base, gains = from_xgboost(model.get_booster(), count)
            return trees, Sum(start=base, center=center, scale=scale), gains

        return Grown(settings, errors, first, scale)


# Neighbouring windows are nearly the same, so that leaves must be large and features few: small
# leaves learn the season they were grown in, which validation rows close by do not reveal.
BOOSTING = {"least": 200, "features": 0.1, "l2": 10.0}


@documented
class GBT(AbstractTrees, GBTSettings):
    """Histogram gradient boosting on the flattened window, settings chosen on validation rows.

    scikit-learn's ``HistGradientBoostingRegressor``. Each setting is fitted once with
    ``max_rounds`` trees; the number of trees, the setting, and whether the trees forecast the
    value itself or its change from the last value known, are those with the least error on the
    validation rows. With ``horizon > 1`` there is one model for each step ahead.
    """

    grids: ClassVar = {
        "default": [
            {"learning_rate": 0.05, "leaves": leaves, **BOOSTING, "relative": relative}
            for relative in (False, True)
            for leaves in (8, 16, 31)
        ],
        "quick": [
            {"learning_rate": 0.08, "leaves": 16, **BOOSTING, "relative": relative}
            for relative in (False, True)
        ],
    }
    largest_seed: ClassVar[int | None] = LARGEST_SEED

    def _grow(self, train: Rows, stop: Rows, settings: Settings) -> Grown:
        from sklearn.ensemble import HistGradientBoostingRegressor

        relative = settings["relative"]
        base, base_stop = (train.last, stop.last) if relative else (0.0, 0.0)
        least = min(settings["least"], max(5, len(train.y) // 50))  # for short tables
        model = HistGradientBoostingRegressor(
            learning_rate=settings["learning_rate"],
            max_iter=self.max_rounds,
            max_leaf_nodes=settings["leaves"],
            min_samples_leaf=least,
            max_features=settings["features"],
            l2_regularization=settings["l2"],
            early_stopping=False,
            random_state=self.seed,
        ).fit(train.X, train.y - base)
        trees, gains = from_histogram(model)
        start = float(model._baseline_prediction.item())
        paths = start + np.cumsum(trees.leaves(stop.X), axis=0)
        errors = np.mean((paths + base_stop - stop.y) ** 2, axis=1)

        def first(count: int) -> tuple[Trees, Sum, FloatArray]:
            return trees.first(count), Sum(start, relative=relative), gains

        return Grown({**settings, "least": least}, errors, first)


def _restored(
    start: float, mean: bool, relative: bool, center: float = 0.0, scale: float = 1.0
) -> Sum:
    """Return a sum from a model file; older files have no center and scale."""
    numbers = {"start": start, "center": center, "scale": scale}
    start, center, scale = (finite_number(numbers, name) for name in numbers)
    return Sum(start, bool(mean), bool(relative), center, scale)
