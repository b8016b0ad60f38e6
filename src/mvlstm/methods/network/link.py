"""The part of a forecast that needs no network: nothing, the last value, or a linear map.

A saturating network cannot follow a level it never saw in training. With a link the network
learns only what the link leaves over, and a drifting series does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mvlstm.methods.daily import Daily, LinearMap, restore_map, with_phases
from mvlstm.methods.robust import fit_robust, refit_robust
from mvlstm.model.learned import Arrays, Saved
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import FloatArray, IntArray

LinkName = Literal["none", "last", "linear"]
LINKS: tuple[LinkName, ...] = ("none", "last", "linear")
LinkChoice = Literal["none", "last", "linear", "auto"]


@dataclass(frozen=True, eq=False)
class Link:
    """A function of scaled windows (M, T, C) to a first guess of the labels (M, H)."""

    name: LinkName
    horizon: int
    center: float  # of the target as an input
    scale: float
    ridge: LinearMap | None = None  # of a linear link

    @classmethod
    def learn(cls, name: LinkName, problem: Problem) -> Link:
        """Set up the link; a linear one's lags and penalty are chosen on the stopping windows."""
        prepared = problem.prepared.preparation
        link = cls(name, problem.horizon, prepared.target_center, prepared.target_scale)
        if name != "linear":
            return link
        ridge = fit_robust(
            problem.prepared.table,
            problem.window,
            (problem.origins["train"], problem.labels("train")),
            (problem.origins["stop"], problem.labels("stop")),
            least=max(1, prepared.ahead),
            read=problem.inputs_read,
        )
        return replace(link, ridge=with_phases(ridge, problem))

    def refit(self, problem: Problem, *, again: bool = False) -> Link:
        """Return the link fitted to training and stopping windows, lags and penalty as chosen.

        The stopping windows are the newest that may be learned from: on a drifting series they
        tell most.
        """
        if self.ridge is None:
            return self
        rows = np.union1d(problem.origins["train"], problem.origins["stop"])
        former = self.ridge.base if isinstance(self.ridge, Daily) else self.ridge
        ridge = refit_robust(
            problem.prepared.table,
            former.lags,
            former.penalty,
            (rows, problem.prepared.known_labels(rows, self.horizon)),
            problem.inputs_read,
        )
        if isinstance(self.ridge, Daily):
            return replace(self, ridge=self.ridge.refit(ridge, problem, rows, again=again))
        return replace(self, ridge=ridge)

    def __call__(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the link's share of the forecast, on the scale of labels."""
        if self.name == "none":
            return np.zeros((len(windows), self.horizon))
        if self.name == "last":
            last = windows[:, -1:, -1].astype(np.float64) * self.scale + self.center
            return np.repeat(last, self.horizon, axis=1)
        assert self.ridge is not None
        return self.ridge(windows)

    def rows(self, table: NDArray[np.floating], origins: IntArray, window: int) -> FloatArray:
        """Return the link for windows ending at ``origins`` of a table, in pieces."""
        lags = 1 if self.ridge is None else self.ridge.lags
        pieces = [self(part) for _, part in iterate_windows(table, origins, min(lags, window))]
        return np.concatenate(pieces) if pieces else np.empty((0, self.horizon))

    def gradient(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the gradient (M, H, T, C), or (1, H, T, C) if it is the same for every window."""
        if self.ridge is not None:
            return self.ridge.gradient(windows)
        slope = np.zeros((1, self.horizon, *windows.shape[1:]))
        slope[..., -1, -1] = self.scale if self.name == "last" else 0.0
        return slope

    def arrays(self) -> Arrays:
        """Return what was learned, for the model file."""
        return {} if self.ridge is None else self.ridge.arrays("link.")

    @classmethod
    def restore(cls, name: LinkName, horizon: int, window: int, saved: Saved) -> Link:
        """Rebuild a link from a model file."""
        preparation = saved.preparation
        link = cls(name, horizon, preparation.target_center, preparation.target_scale)
        if name != "linear":
            return link
        return replace(link, ridge=restore_map(saved, window, horizon, "link."))
