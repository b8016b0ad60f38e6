"""`CLSTM`: an LSTM that learns which variables to leave out."""

from __future__ import annotations

import math
import sys
import time as clock
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mvlstm.errors import ModelFileError, MVLSTMWarning, ParameterError, is_number, warn
from mvlstm.methods.network.base import AbstractNetwork, LearnedNetwork
from mvlstm.methods.network.trained import TrainedNetwork, learn_labels, restore_labels
from mvlstm.methods.network.training import Training, fit_network
from mvlstm.model.learned import Arrays, Saved
from mvlstm.nn.lstm import LSTMNetwork, every_step_loss, input_membership
from mvlstm.nn.parameters import flatten, unflatten
from mvlstm.problem.problem import Problem, Run
from mvlstm.problem.target_scale import LabelScale
from mvlstm.settings import CLSTMSettings, documented
from mvlstm.table.layout import Layout
from mvlstm.train.checkpoint import held
from mvlstm.train.config import SEEDS_APART
from mvlstm.train.data import gather_windows
from mvlstm.train.runtime import resolve_device
from mvlstm.train.sparse import Groups, SparseConfig, sparse_path
from mvlstm.train.streams import member_key
from mvlstm.types import BoolArray, FloatArray

PENALTIES = tuple(float(10.0 ** (-3 * k / 7)) for k in range(8))  # from 1 down to 0.001
PATH_STEPS, FINISH_STEPS = 500, 40


@documented
class CLSTM(AbstractNetwork, CLSTMSettings):
    r"""cLSTM of Tank et al. (neural Granger causality) for one target.

    One LSTM a penalty :math:`\lambda` is trained with
    :math:`\lambda \sum_j \lVert W_j \rVert_2` on the input weights of each variable, by proximal
    steps that set whole variables to zero, exactly. Each distinct choice of variables is trained
    again without a penalty, and the largest penalty whose error on the validation rows is within
    ``tolerance`` standard errors of the best is taken. The forecasts come from members trained on
    the variables it chose.

    Attributes
    ----------
    selected_ : tuple of str
        The variables whose weights are not zero, the heaviest first.
    penalty_ : float
        The penalty chosen.
    path_ : DataFrame
        One row per penalty: the weight of every variable, and the validation RMSE of the refit.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> settings = {"hidden_size": 8, "members": 2, "max_epochs": 2, "verbose": 0}
    >>> model = mv.CLSTM(window=5, penalties=[0.3, 0.03], **settings)
    >>> model.fit(table, target="y", test=0.2).path_.shape
    (2, 12)
    """

    short_batches: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse settings with values they cannot have."""
        super().check()
        if not is_number(self.tolerance) or not 0 <= self.tolerance < np.inf:
            raise ParameterError(f"tolerance={self.tolerance!r} must be a number, 0 or more.")
        several = PENALTIES if self.penalties is None else self.penalties
        fine = np.ndim(several) == 1 and [is_number(one) and 0 <= one < np.inf for one in several]
        if not fine or not all(fine):
            raise ParameterError(
                f"penalties={self.penalties!r} must be one or more numbers, none negative."
            )

    def network(self, layout: Layout, label_scale: float) -> LSTMNetwork:
        """Describe the network that reads all columns."""
        return self._reading(layout.groups)

    def _reading(
        self, groups: tuple[int, ...], columns: tuple[int, ...] | None = None
    ) -> LSTMNetwork:
        """Return the network that reads some of the columns, or all."""
        size, horizon = int(self.hidden_size), int(self.horizon)
        return LSTMNetwork(len(groups), size, horizon=horizon, columns=columns)

    def wrap(self, trained: TrainedNetwork[Any], saved: Saved | None = None) -> LearnedNetwork:
        """Return the members of some columns; `learn` adds how these were chosen."""
        return LearnedNetwork(trained=trained)

    # ----------------------------------------------------------------------------------- learning

    def learn(self, problem: Problem) -> LearnedSelection:
        """Train with every penalty, choose one, and train members on the variables it keeps."""
        started = clock.monotonic()
        labels = learn_labels(self.link, problem)
        given = PENALTIES if self.penalties is None else self.penalties
        penalties = np.sort(np.asarray(list(given), dtype=np.float64))[::-1]
        if self.verbose > 0:
            print(f"CLSTM: {len(penalties)} penalties side by side", file=sys.stderr, flush=True)
        norms = self._norms(problem, labels, penalties)  # (L, N)
        path = self._choose(problem, labels, penalties, norms, started)
        network = self._reading(problem.groups, _columns(path.chosen > 0, problem.groups))
        problem = replace(problem, run=problem.run.after(clock.monotonic() - started))
        with held(problem.run.checkpoint):
            outcome = self.fit_members(network, problem, labels)
        return LearnedSelection(
            trained=outcome.trained, path=path, history=outcome.history, stopped=outcome.stopped
        )

    def restore(self, saved: Saved) -> LearnedSelection:
        """Rebuild what `learn` returned."""
        path = SelectionPath.restore(saved)
        T, H = int(self.window), int(self.horizon)
        labels = restore_labels(self.link, T, H, saved)
        groups = saved.layout.groups
        network = self._reading(groups, _columns(path.chosen > 0, groups))
        trained = TrainedNetwork.restore(network, labels, int(self.members), T, saved)
        return LearnedSelection(trained=trained, path=path)

    def _norms(self, problem: Problem, labels: LabelScale, penalties: FloatArray) -> FloatArray:
        """Return the norm of each variable's input weights after training with each penalty.

        That may take a third of a time limit.
        """
        limit = problem.run.time_limit
        ends = math.inf if limit is None else clock.monotonic() + limit / 3
        device = resolve_device(self.device)
        network = self._reading(problem.groups)
        here = partial(torch.as_tensor, dtype=torch.float32, device=device)
        table, every = here(problem.prepared.table), here(self._every_label(problem, labels))

        def loss(flat: Tensor, origins: Tensor) -> Tensor:
            x = gather_windows(table, origins, problem.window)
            y = gather_windows(every, origins, problem.window)
            return every_step_loss(network, unflatten(flat, network.shapes), x, y)

        seed = int(self.seed) * SEEDS_APART
        drawn = network.initial(torch.Generator().manual_seed(member_key(seed)))
        start = flatten({name: w.unsqueeze(0) for name, w in drawn.items()}, network.shapes)
        groups = Groups(input_membership(network, problem.groups).to(device))
        flat = sparse_path(
            loss,
            start.to(device, torch.float32),
            groups,
            torch.as_tensor(problem.origins["train"], device=device),
            here(penalties.copy()),
            seed=seed,
            config=self._path_config(problem),
            ends=ends,
        )
        if clock.monotonic() > ends:
            warn(
                "The time limit cut training with penalties short: variables may be kept that it "
                "would have left out. Allow more time, or give fewer penalties."
            )
        return groups.norms(flat).cpu().numpy().astype(np.float64)

    def _path_config(self, problem: Problem) -> SparseConfig:
        """Return the budget of the path: some hundred steps, but no more than ``max_epochs``."""
        windows = len(problem.origins["train"])
        batch = Training.of(self).batch(windows)
        steps = min(PATH_STEPS, int(self.max_epochs) * (windows // batch))
        return SparseConfig(
            batch_size=batch,
            warm_steps=2 * steps // 5,
            steps=steps,
            finish_steps=min(FINISH_STEPS, 5 * int(self.max_epochs)),
        )

    def _every_label(self, problem: Problem, labels: LabelScale) -> FloatArray:
        """Return scaled labels (rows, H) for every step of the training windows, NaN if unknown."""
        prepared, last = problem.prepared, problem.origins["train"].max()
        before = problem.window if self.link == "linear" else 1  # rows a label's link looks back on
        rows = prepared.origins(before, self.horizon)
        rows = rows[rows <= last]
        every = np.full((prepared.frame.n_rows, self.horizon), np.nan)
        known = prepared.known_labels(rows, self.horizon, strict=True)
        every[rows] = labels.outputs(known, labels.link.rows(prepared.table, rows, problem.window))
        return every

    def _choose(
        self,
        problem: Problem,
        labels: LabelScale,
        penalties: FloatArray,
        norms: FloatArray,
        started: float,
    ) -> SelectionPath:
        """Take the largest penalty whose refit is within ``tolerance`` of the best.

        Of a time limit, each refit may take as much as would leave the others, and the fit of the
        members, the same. Their state is not kept: a fit that is resumed chooses again.
        """
        training = replace(Training.of(self), members=1, verbose=0)
        y, rows = problem.labels("stop"), problem.origins["stop"]
        refits: dict[tuple[bool, ...], FloatArray] = {}
        choices = list(dict.fromkeys(map(tuple, norms > 0)))
        for place, chosen in enumerate(choices):
            limit = problem.run.after(clock.monotonic() - started).time_limit
            share = None if limit is None else limit / (len(choices) - place + 1)
            network = self._reading(problem.groups, _columns(chosen, problem.groups))
            alone = replace(problem, run=Run(time_limit=share))
            with warnings.catch_warnings(action="ignore", category=MVLSTMWarning):
                trained, _, stopped = fit_network(network, alone, labels, training)
            if stopped == "interrupt":
                raise KeyboardInterrupt
            trained = replace(trained, labels=labels)  # the link has not seen the stopping rows
            errors = trained.rows(problem.prepared.table, rows)[0] - y
            refits[chosen] = np.nanmean(errors**2, axis=1)
        squared = np.stack([refits[tuple(row)] for row in norms > 0])  # (L, S)
        means, judged = squared.mean(axis=1), squared.shape[1]
        best = int(means.argmin())
        error = squared[best].std(ddof=1) / np.sqrt(judged) if judged > 1 else 0.0
        place = int(np.flatnonzero(means <= means[best] + self.tolerance * error)[0])
        return SelectionPath(norms, penalties.copy(), np.sqrt(means), place)

    # ------------------------------------------------------------------------------- what it found

    def _selection(self, caller: str) -> tuple[SelectionPath, tuple[str, ...]]:
        fitted = self._require_fitted(caller)
        assert isinstance(fitted.learned, LearnedSelection)
        return fitted.learned.path, fitted.layout.names

    @property
    def penalty_(self) -> float:
        """The penalty chosen."""
        path, _ = self._selection("penalty_")
        return float(path.penalties[path.place])

    @property
    def selected_(self) -> tuple[str, ...]:
        """The variables whose weights are not zero, the heaviest first."""
        path, names = self._selection("selected_")
        heaviest = np.argsort(-path.chosen, kind="stable")
        return tuple(names[n] for n in heaviest if path.chosen[n] > 0)

    @property
    def path_(self) -> pd.DataFrame:
        """One row per penalty: the weight of every variable, and the refit's validation RMSE."""
        path, names = self._selection("path_")
        index = pd.Index(path.penalties, name="penalty")
        frame = pd.DataFrame(path.norms, index=index, columns=list(names))
        return frame.assign(**{"refit RMSE": path.refit_rmse})


@dataclass(frozen=True, eq=False)
class SelectionPath:
    """Which variables each penalty keeps, and the penalty chosen."""

    norms: FloatArray  # (L, N)
    penalties: FloatArray  # (L,)
    refit_rmse: FloatArray  # (L,)
    place: int  # the row chosen

    @property
    def chosen(self) -> FloatArray:
        """The norms (N,) of the penalty chosen."""
        return np.asarray(self.norms[self.place])

    @classmethod
    def restore(cls, saved: Saved) -> SelectionPath:
        """Rebuild from a model file."""
        penalties = saved.take("penalties", (None,), np.float64)
        length = len(penalties)
        norms = saved.take("norms", (length, len(saved.layout.names)), np.float64)
        rmse = saved.take("refit_rmse", (length,), np.float64)
        place = saved.extra["place"]
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < length:
            raise ModelFileError(f"its 'place' is {place!r}, not a row of its path.")
        return cls(norms, penalties, rmse, place)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedSelection(LearnedNetwork):
    """Members that read some of the variables, and how these were chosen."""

    trained: TrainedNetwork[LSTMNetwork]
    path: SelectionPath

    def choices(self) -> dict[str, Any]:
        """Return the penalty."""
        return {"penalty": float(self.path.penalties[self.path.place])}

    def own_importance(self, groups: tuple[int, ...]) -> FloatArray:
        """Return the chosen penalty's norms, divided by their sum; zeros are exact."""
        norms = self.path.chosen
        return norms / norms.sum() if norms.any() else np.full_like(norms, np.nan)

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return weights, link and the path."""
        arrays, extra = self.trained.arrays()
        names = ("norms", "penalties", "refit_rmse")
        path = {name: getattr(self.path, name) for name in names}
        return {**arrays, **path}, {**extra, "place": self.path.place}


def _columns(chosen: Sequence[bool] | BoolArray, groups: tuple[int, ...]) -> tuple[int, ...]:
    """Return the columns of the chosen variables; with none chosen, the target's own."""
    columns = tuple(c for c, variable in enumerate(groups) if chosen[variable])
    return columns or (len(groups) - 1,)
