"""Linear rivals: ridge regression and the elastic net on whole windows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mvlstm.errors import check_option
from mvlstm.methods.daily import Daily, LinearMap, restore_map, with_phases
from mvlstm.methods.ridge import Ridge, fit_ridge
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, LinearForm, Saved, by_variable
from mvlstm.problem.inputs import Windows
from mvlstm.problem.moments import Moments, as_lags, join_steps
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem, known_places
from mvlstm.progress import show_tasks
from mvlstm.settings import ARSettings, ENETSettings, documented
from mvlstm.types import FloatArray, IntArray

Penalty = tuple[float, float]

PAPER = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0)
SMALL = (1e-4, 1e-3, 1e-2)
GRIDS: dict[str, tuple[Penalty, ...]] = {
    "paper": tuple((a, b) for a in PAPER for b in PAPER),
    "extended": tuple((a, b) for a in sorted((*PAPER, *SMALL)) for b in sorted((*PAPER, *SMALL))),
    "quick": tuple((a, b) for a in (*SMALL, 0.1, 0.5, 1.0) for b in (0.0, 0.01, 0.5)),
}
TOLERANCE = 1e-5  # of the coordinate descent, relative to the labels' variance
MOST_ROUNDS = 5_000
MOST_PRODUCTS = 16_000  # features whose products are kept, 2 GB; with more, each round is longer


@dataclass(frozen=True, eq=False)
class Past:
    """Moments of the windows of a table from its first time to some later one."""

    moments: Moments
    first: Any
    last: Any

    @classmethod
    def of(cls, problem: Problem, origins: IntArray, lags: int, former: Past | None) -> Past | None:
        """Add up the windows at ``origins``, on top of what is known; None if a label is not."""
        times = problem.prepared.frame.times
        known = former is not None and former.first == times[0]
        if former is not None and known:
            origins = origins[times[origins] > former.last]
        labels = problem.prepared.known_labels(origins, problem.horizon)
        if np.isnan(labels).any() or problem.prepared.frame.panel is not None:
            return None
        if former is not None and known and not len(origins):
            return former
        table, part = problem.prepared.table, (origins, labels)
        (moments,) = Moments.each(table, lags, part, problem.inputs_read)
        if moments.deviations is not None:
            return None
        if former is not None and known:
            moments = former.moments.joined(moments)
        return cls(moments, times[0], times[origins[-1]])


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedLinear(Learned):
    """A linear map of the window, one for each step ahead."""

    linear: LinearMap
    past: Past | None = None  # of the last refit, not kept in files

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        """Apply the map."""
        if windows.made_up:
            return Predictive(self.linear(windows.values)[None])
        return Predictive(self.linear.rows(windows.table, windows.ends)[None])

    def gradient(self, windows: FloatArray) -> FloatArray:
        """Return the weights, the same for every window unless each time of day has its own."""
        slope = self.linear.gradient(windows)
        return np.broadcast_to(slope, (1, len(windows), *slope.shape[1:]))

    def form(self) -> LinearForm:
        """Return the map."""
        return LinearForm(self.linear)

    def choices(self) -> dict[str, Any]:
        """Return the penalties, those of an elastic net in pairs."""
        found = self.linear.base if isinstance(self.linear, Daily) else self.linear
        return {"penalty": found.penalty.tolist()}

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray | None:
        """Sum the sizes of each variable's weights over lags and steps, as shares of one."""
        sizes = by_variable(self.linear.sizes(), groups)
        return np.asarray(sizes / sizes.sum()) if sizes.sum() > 0 else None

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return weights, intercepts and penalties."""
        return self.linear.arrays(), {}


@documented
class AR(AbstractForecaster, ARSettings):
    """Ridge regression on every variable's lags, the penalty chosen on validation rows.

    With ``horizon > 1`` there is one regression for each step ahead. Where a calendar tells the
    time of day, there may be one for each time of day too: see `mvlstm.methods.daily`.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> mv.AR(window=5).fit(table, target="y", test=0.2).predict(table).mean.shape
    (395,)
    """

    def learn(self, problem: Problem) -> LearnedLinear:
        """Fit with every penalty, and keep that of least squared error on the stopping rows."""
        linear = fit_ridge(
            problem.prepared.table,
            problem.window,
            (problem.origins["train"], problem.labels("train")),
            (problem.origins["stop"], problem.labels("stop")),
            read=problem.inputs_read,
        )
        return LearnedLinear(linear=with_phases(linear, problem))

    def restore(self, saved: Saved) -> LearnedLinear:
        """Rebuild what `learn` returned."""
        return LearnedLinear(linear=restore_map(saved, int(self.window), int(self.horizon)))

    def learn_again(self, learned: LearnedLinear, problem: Problem) -> LearnedLinear:
        """Fit the map to all training windows with the penalties chosen before."""
        return self.refit_link(learned, problem)

    def refit_link(self, learned: LearnedLinear, problem: Problem) -> LearnedLinear:
        """Fit the map to all windows of a problem, the stopping ones too, with the penalties found.

        Only windows after those of the last refit are read, where no label is missing.
        """
        found, origins = learned.linear, problem.origins["train"]
        former = found.base if isinstance(found, Daily) else found
        lags, read = len(former.weights), problem.inputs_read
        past = Past.of(problem, origins, lags, learned.past)
        if past is not None:
            weights, intercept = past.moments.solve(former.penalty)
        else:
            part = (origins, problem.labels("train"))
            moments = list(Moments.each(problem.prepared.table, lags, part, read))
            penalties = np.split(former.penalty, len(moments))
            steps = [one.solve(own) for one, own in zip(moments, penalties, strict=True)]
            weights, intercept = join_steps(steps)
        C = former.weights.shape[1]
        common = Ridge(as_lags(weights, lags, C, read), intercept, former.penalty)
        linear: LinearMap = common
        if isinstance(found, Daily):
            linear = found.refit(common, problem, origins, again=True)
        return replace(learned, linear=linear, past=past)


@documented
class ENET(AbstractForecaster, ENETSettings):
    r"""Elastic net on the flattened window, both penalties chosen on validation rows.

    With inputs and labels standardised on the training rows it minimises

    .. math:: \tfrac{1}{2n}\|y - Xw\|^2 + a\|w\|_1 + \tfrac{b}{2}\|w\|^2

    by scikit-learn's ``ElasticNet(alpha=a + b, l1_ratio=a / (a + b))``, or ``Ridge`` where a = 0.
    With ``horizon > 1`` there is one regression for each step ahead.
    """

    copies_windows: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse a grid that there is not."""
        super().check()
        check_option("grid", self.grid, GRIDS)

    def restore(self, saved: Saved) -> LearnedLinear:
        """Rebuild what `learn` returned."""
        return LearnedLinear(linear=Ridge.restore(saved, int(self.window), int(self.horizon)))

    def learn(self, problem: Problem) -> LearnedLinear:
        """Fit with every pair of penalties, and keep the best on the stopping rows."""
        grid = GRIDS[self.grid]
        with show_tasks(self.verbose, "ENET", problem.horizon * len(grid)) as advance:
            return self._fitted(problem, [grid] * problem.horizon, advance)

    def learn_again(self, learned: LearnedLinear, problem: Problem) -> LearnedLinear:
        """Fit to all training windows with the penalties chosen before."""
        return self._fitted(problem, [[(a, b)] for a, b in learned.choices()["penalty"]])

    def _fitted(
        self,
        problem: Problem,
        grids: Sequence[Sequence[Penalty]],
        advance: Callable[[str], object] = lambda words: None,
    ) -> LearnedLinear:
        """Fit each step with the penalties to try, and keep those with the least error."""
        y, y_stop = problem.labels("train"), problem.labels("stop")
        X, X_stop = (problem.windows(part) for part in ("train", "stop"))
        shape = X.shape[1:]
        X, X_stop = X.reshape(len(X), -1), X_stop.reshape(len(X_stop), -1)
        weights, intercepts, penalties = [], [], []
        for h, grid in enumerate(grids):
            rows, judged = known_places(y[:, h]), known_places(y_stop[:, h])
            labels, tried = y[rows, h], (X_stop[judged], y_stop[judged, h])
            center, spread = float(labels.mean()), float(labels.std())
            scale = spread if spread > 0 else 1.0
            best = np.inf
            for penalty in grid:
                fitted = elastic_net(X[rows], (labels - center) / scale, penalty)
                guess = tried[0] @ fitted.coef_ + fitted.intercept_
                error = float(np.mean((guess * scale + center - tried[1]) ** 2))
                advance(f"a={penalty[0]:g} b={penalty[1]:g}, error {error**0.5:.4g}")
                if error < best:
                    best, chosen, found = error, penalty, fitted
            weights.append(found.coef_.reshape(shape) * scale)
            intercepts.append(float(found.intercept_) * scale + center)
            penalties.append(chosen)
        linear = np.stack(weights, axis=-1), np.array(intercepts), np.array(penalties, dtype=float)
        return LearnedLinear(linear=Ridge(*linear))


def elastic_net(X: FloatArray, y: FloatArray, penalty: Penalty) -> Any:
    """Fit scikit-learn's model for penalties (a, b): elastic net, or ridge where a = 0."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import ElasticNet
    from sklearn.linear_model import Ridge as SklearnRidge

    a, b = penalty
    if a == 0:
        return SklearnRidge(alpha=b * len(y) if b > 0 else 1e-6).fit(X, y)
    options = {"precompute": X.shape[1] <= MOST_PRODUCTS, "max_iter": MOST_ROUNDS}
    model = ElasticNet(alpha=a + b, l1_ratio=a / (a + b), tol=TOLERANCE, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the stopping rows judge the result
        return model.fit(X, y)
