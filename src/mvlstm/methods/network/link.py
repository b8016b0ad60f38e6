"""The part of a forecast that needs no network: nothing, the last value, or a linear map.

A saturating network cannot follow a level it never saw in training. With a link the network
learns only what the link leaves over, and a drifting series does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError
from mvlstm.methods.ridge import Ridge
from mvlstm.methods.robust import fit_robust, refit_robust
from mvlstm.model.saving import take_array
from mvlstm.problem.preparation import Preparation
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import iterate_windows
from mvlstm.types import FloatArray, IntArray

LinkName = Literal["none", "last", "linear"]
LINKS: tuple[LinkName, ...] = ("none", "last", "linear")
LinkChoice = Literal["none", "last", "linear", "auto"]


class Link:
    """A function of scaled windows (M, T, C) to a first guess of the labels (M, H)."""

    def __init__(self, name: LinkName, horizon: int, center: float, scale: float) -> None:
        self.name, self.horizon = name, horizon
        self.center, self.scale = center, scale  # of the target as an input
        self.ridge: Ridge | None = None

    @classmethod
    def learn(cls, name: LinkName, problem: Problem) -> Link:
        """Set up the link; a linear one's lags and penalty are chosen on the stopping windows."""
        prepared = problem.prepared.preparation
        link = cls(name, problem.horizon, prepared.target_center, prepared.target_scale)
        if name == "linear":
            link.ridge = fit_robust(
                problem.prepared.table,
                problem.window,
                (problem.origins["train"], problem.labels("train")),
                (problem.origins["stop"], problem.labels("stop")),
                least=max(1, prepared.ahead),
            )
        return link

    def refit(self, problem: Problem) -> Link:
        """Return the link fitted to training and stopping windows, lags and penalty as chosen.

        The stopping windows are the newest that may be learned from: on a drifting series they
        tell most.
        """
        if self.ridge is None:
            return self
        rows = np.union1d(problem.origins["train"], problem.origins["stop"])
        link = Link(self.name, self.horizon, self.center, self.scale)
        link.ridge = refit_robust(
            problem.prepared.table,
            self.ridge.weights.shape[0],
            self.ridge.penalty,
            (rows, problem.prepared.known_labels(rows, self.horizon)),
        )
        return link

    def __call__(self, windows: NDArray[np.floating]) -> FloatArray:
        """Return the link's share of the forecast, in units of the target."""
        if self.name == "none":
            return np.zeros((len(windows), self.horizon))
        if self.name == "last":
            last = windows[:, -1:, -1].astype(np.float64) * self.scale + self.center
            return np.repeat(last, self.horizon, axis=1)
        assert self.ridge is not None
        return self.ridge(windows)

    def rows(self, table: NDArray[np.floating], origins: IntArray, window: int) -> FloatArray:
        """Return the link for windows ending at ``origins`` of a table, in pieces."""
        lags = 1 if self.ridge is None else self.ridge.weights.shape[0]
        function: Callable[[NDArray[np.floating]], FloatArray] = self
        pieces = [function(w) for _, w in iterate_windows(table, origins, min(lags, window))]
        return np.concatenate(pieces) if pieces else np.empty((0, self.horizon))

    def gradient(self, window: int, n_columns: int) -> FloatArray:
        """Return the link's gradient (H, T, C), the same for every window."""
        slope = np.zeros((self.horizon, window, n_columns))
        if self.name == "last":
            slope[:, -1, -1] = self.scale
        if self.ridge is not None:
            lags = self.ridge.weights.shape[0]
            slope[:, window - lags :] = np.moveaxis(self.ridge.weights, -1, 0)
        return slope

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, for the model file."""
        if self.ridge is None:
            return {}
        return {
            "link.weights": self.ridge.weights,
            "link.intercept": self.ridge.intercept,
            "link.penalty": self.ridge.penalty,
        }

    @classmethod
    def restore(
        cls,
        name: LinkName,
        horizon: int,
        window: int,
        preparation: Preparation,
        arrays: dict[str, NDArray[Any]],
    ) -> Link:
        """Rebuild a link from the arrays of a model file."""
        link = cls(name, horizon, preparation.target_center, preparation.target_scale)
        if name == "linear":
            columns = len(preparation.orders)
            weights = take_array(arrays, "link.weights", (None, columns, horizon), np.float64)
            if not 1 <= len(weights) <= window:
                raise ModelFileError(f"its linear link has {len(weights)} lags, window={window}.")
            intercept = take_array(arrays, "link.intercept", (horizon,), np.float64)
            penalty = take_array(arrays, "link.penalty", (horizon,), np.float64)
            link.ridge = Ridge(weights, intercept, penalty)
        return link
