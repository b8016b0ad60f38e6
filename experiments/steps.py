"""Networks for several steps ahead with inputs known in advance: what was tried next to today's.

Today all steps read one summary of the window, whose last rows hold what is known of the steps
ahead. Each design here lets step h read the row that is forecast, too::

    python -m experiments.steps epf_np epf_pjm --thin 3 --seeds 0 1 2
    python -m experiments.steps made --designs shared read --later

Members are plain ones. Those of a data set share one link, which is fitted once, so that a trial
costs no more than the training of one network. Scores are of every third origin in the last fifth
of the rows, in standard deviations of the training rows. These are rows to choose by, which end
before the last 728 days of prices and the last 5,000 hours of others; with ``--later`` they end
with the table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import mvlstm as mv
from mvlstm import MVLSTM
from mvlstm.methods.network import training
from mvlstm.methods.network.trained import learn_labels
from mvlstm.nn.attention import temporal_attention
from mvlstm.nn.mixture import Prediction, log_prior
from mvlstm.nn.mvlstm import LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2, MVLSTMNetwork
from mvlstm.nn.parameters import Dropout, Parameters, Shapes, glorot, of_layer
from mvlstm.nn.recurrence import recurrence
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import LabelScale
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray

FEATURES, REACH = 8, 1  # of what is read at a step; rows before and after it that are read too


@dataclass(frozen=True)
class ByStep(MVLSTMNetwork):
    """A network whose experts have something of their own to read at each step."""

    known: tuple[int, ...] = ()  # variables
    known_columns: tuple[int, ...] = ()

    def __call__(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Prediction:
        """Return the prediction for windows x (K, T, B, C); dropout drops alike at all steps."""
        h = x
        for level, layer in enumerate(self.stack):
            h = recurrence(layer, of_layer(p, layer.shapes, level), h.flatten(3))
        summary, weights = temporal_attention(h, p["Ws"], p["bs"])  # (K, B, N, 2 d)
        mask = None if dropout is None else dropout(torch.ones_like(summary), 0).unsqueeze(2)
        summary = self.summaries(h, summary)  # (K, B, 1 or H, N, 2 d)
        summary = summary if mask is None else summary * mask
        each = [
            torch.einsum("kbhnf,khnf->kbhn", summary.expand(-1, -1, self.horizon, -1, -1), W) + b
            for W, b in (
                (p["Wo"], p["bo"].unsqueeze(1)),
                (p["Wv"].unsqueeze(2).expand_as(p["Wo"]), p["bv"][:, None, :, None]),
                (p["Wr"], p["br"].unsqueeze(1)),
            )
        ]
        mu, scores, log_sigma2 = torch.stack(each) + self.read(p, x, h)  # (K, B, H, N) each
        log_pi = log_prior(scores, bounded=self.attention == "bounded")
        log_sigma2 = log_sigma2.clamp(LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2)
        return Prediction((log_pi.exp() * mu).sum(dim=-1), log_sigma2, mu, log_pi, weights)

    def summaries(self, h: Tensor, summary: Tensor) -> Tensor:
        """Return the summaries that the experts of each step read."""
        return summary.unsqueeze(2)

    def read(self, p: Parameters, x: Tensor, h: Tensor) -> Tensor:
        """Return what is added to means, scores and log variances, (3, K, B, H, N) or a zero."""
        return x.new_zeros(())


@dataclass(frozen=True)
class State(ByStep):
    """Known variables: the state at the row that is forecast, in place of the last one."""

    def summaries(self, h: Tensor, summary: Tensor) -> Tensor:
        """Return (K, B, H, N, 2 d)."""
        state = h[:, -self.horizon :].transpose(1, 2)  # (K, B, H, N, d)
        last, context = torch.split(summary.unsqueeze(2), self.hidden_size, dim=-1)
        each = [
            (state if n in self.known else last.expand_as(state))[..., n, :]
            for n in range(self.n_variables)
        ]
        return torch.cat([torch.stack(each, dim=3), context.expand_as(state)], dim=-1)


@dataclass(frozen=True)
class Also(ByStep):
    """Known variables: the state at the row that is forecast, besides the last one."""

    @cached_property
    def head_shapes(self) -> Shapes:
        """Shapes of the parameters above the recurrence."""
        size = (self.horizon, len(self.known), 3, self.hidden_size)
        return super().head_shapes | {"Us": size}

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters; at first only the means read the steps."""
        drawn = super().initial(generator)
        Us = glorot(self.shapes["Us"], 2 * self.hidden_size, 1, generator)
        Us[:, :, 1:] = 0.0
        return drawn | {"Us": Us}

    def read(self, p: Parameters, x: Tensor, h: Tensor) -> Tensor:
        """Return what the states at the rows of the steps add."""
        state = h[:, -self.horizon :, :, list(self.known)]  # (K, H, B, m, d)
        found = torch.einsum("khbmd,khmjd->jkbhm", state, p["Us"])
        nothing = found.new_zeros(*found.shape[:-1], self.n_variables)
        return nothing.index_copy(4, torch.tensor(self.known, device=x.device), found)


@dataclass(frozen=True)
class Read(ByStep):
    """All experts: a few features of the known inputs at the row that is forecast."""

    @cached_property
    def head_shapes(self) -> Shapes:
        """Shapes of the parameters above the recurrence."""
        read = len(self.known_columns) * (2 * REACH + 1)
        out = (self.horizon, self.n_variables, 3, FEATURES)
        return super().head_shapes | {"We": (read, FEATURES), "be": (FEATURES,), "Ue": out}

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters; at first only the means read the steps."""
        drawn = super().initial(generator)
        We = glorot(self.shapes["We"], self.shapes["We"][0], FEATURES, generator)
        Ue = glorot(self.shapes["Ue"], 4 * FEATURES, 1, generator)
        Ue[:, :, 1:] = 0.0
        return drawn | {"We": We, "Ue": Ue}

    def read(self, p: Parameters, x: Tensor, h: Tensor) -> Tensor:
        """Return what the inputs at the rows of the steps and next to these add."""
        T, around = x.shape[1], range(-REACH, REACH + 1)
        rows = torch.arange(T - self.horizon, T, device=x.device)
        near = [x[:, (rows + o).clamp(0, T - 1)][..., list(self.known_columns)] for o in around]
        inner = torch.einsum("khbc,kce->kbhe", torch.cat(near, dim=-1), p["We"])
        features = torch.tanh(inner + p["be"][:, None, None])  # (K, B, H, e)
        return torch.einsum("kbhe,khnje->jkbhn", features, p["Ue"])


DESIGNS: Mapping[str, type[ByStep]] = {"shared": ByStep, "state": State, "also": Also, "read": Read}


class Trial(MVLSTM):
    """`MVLSTM` with a network of one of the designs."""

    design: ClassVar[type[ByStep]] = ByStep

    def network(self, layout: Layout, label_scale: float) -> MVLSTMNetwork:
        """Describe the network, with the variables known ahead."""
        plain = super().network(layout, label_scale)
        same: dict[str, Any] = {f.name: getattr(plain, f.name) for f in fields(plain)}
        columns = tuple(c for c, ahead in enumerate(layout.ahead) if ahead)
        known = tuple(sorted({layout.groups[c] for c in columns}))
        return self.design(**same, known=known, known_columns=columns)


# ----------------------------------------------------------------------------------------- the data


@dataclass(frozen=True)
class Case:
    """A table, what its columns are, and what a user would set."""

    table: pd.DataFrame
    columns: dict[str, Any]
    settings: dict[str, Any]


def case(name: str, *, later: bool) -> Case:
    """Return the rows of a set to choose by, or later ones to confirm on."""
    if name == "made":
        return Case(made(6 if later else 5), {"target": "y", "known": ["k"]}, _steps(36, 12))
    base, _, hours = name.partition("-")  # epf_np-6: six steps ahead
    data = mv.datasets.load(base)
    columns = {"target": data.target, "known": list(data.info.known)}
    settings = _steps(4 * int(hours), int(hours)) if hours else _steps(72, 24)
    settings |= {"calendar": ["hour"]}
    if base.startswith("epf"):
        settings |= {"calendar": ["hour", "days"], "transform": "asinh"}
    held = 728 * 24 if base.startswith("epf") else 5_000
    return Case(data.frame if later else data.frame.iloc[:-held], columns, settings)


def _steps(window: int, horizon: int) -> dict[str, Any]:
    return {"window": window, "horizon": horizon}


def made(seed: int, rows: int = 6_000) -> pd.DataFrame:
    """Return a target that depends on a known input of the same hour, not linearly."""
    rng = np.random.default_rng(seed)
    known, level, times = np.zeros(rows), np.zeros(rows), np.arange(rows)
    for t in range(1, rows):
        known[t] = 0.8 * known[t - 1] + 0.6 * rng.standard_normal()
        level[t] = 0.95 * level[t - 1] + 0.3 * rng.standard_normal()
    daily = 0.5 * np.sin(2 * np.pi * times / 24)
    y = level + np.maximum(known, 0) ** 1.5 + daily + 0.3 * rng.standard_normal(rows)
    index = pd.date_range("2020", periods=rows, freq="h", name="time")
    return pd.DataFrame({"k": known, "w": rng.standard_normal(rows), "y": y}, index=index)


# ------------------------------------------------------------------------------------- measurement


class _PreparedError(Exception):
    """Carries out of a fit the problem that it would learn from."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def prepared(one: Case, thin: int = 1) -> tuple[Problem, LabelScale]:
    """Return the problem and the labels, the link learned, that all trials on a set share.

    Only every ``thin``-th window of the training rows is learned from.
    """

    def halt(model: Any, problem: Problem) -> Any:
        raise _PreparedError(problem)

    with patch.object(MVLSTM, "learn", halt):
        try:
            MVLSTM(members=1, verbose=0, **one.settings).fit(one.table, test=0.2, **one.columns)
        except _PreparedError as found:
            origins = found.problem.origins
            fewer = {**origins, "train": origins["train"][::thin]}
            problem = replace(found.problem, origins=fewer)
            return problem, learn_labels("linear", problem)
    raise AssertionError("a fit learns")


def errors(one: Case, problem: Problem, labels: LabelScale, design: str, **more: Any) -> FloatArray:
    """Train one member; return its errors on every third unseen origin, (M, H)."""
    trial = type(MVLSTM.__name__, (Trial,), {"design": DESIGNS[design]})
    model = trial(members=1, verbose=0, **one.settings, **more)
    network = model.network(problem.layout, labels.scale)
    with patch.object(training, "refit_link", lambda labels, problem: labels):
        outcome = training.fit_network(network, problem, labels, model.training)
    rows = problem.origins["new"][::3]
    return _errors(problem, outcome.trained.rows(problem.prepared.table, rows)[0])


def _errors(problem: Problem, forecasts: FloatArray) -> FloatArray:
    """Return what forecasts miss by at every third unseen origin, where all steps are known."""
    actual = problem.prepared.known_labels(problem.origins["new"][::3], problem.horizon)
    found = (forecasts - actual)[~np.isnan(actual).any(axis=1)]
    return np.asarray(found / problem.prepared.preparation.target_scale)


def main() -> None:
    """Print the scores of every design and seed, and those of the seeds' mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="a data set, one with steps (epf_np-6), or made")
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--later", action="store_true", help="rows to confirm on")
    parser.add_argument("--thin", type=int, default=1, help="learn from every n-th window only")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--hidden-size", type=int, default=8)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {"max_epochs": given.epochs, "hidden_size": given.hidden_size}
    for name in given.names:
        one = case(name, later=given.later)
        problem, labels = prepared(one, given.thin)
        rows = problem.origins["new"][::3]
        link = labels.link.rows(problem.prepared.table, rows, problem.window)
        print(f"{name:12} link           {_scores(_errors(problem, link))}", flush=True)
        every: dict[str, list[FloatArray]] = {design: [] for design in given.designs}
        for seed in given.seeds:
            for design, found in every.items():
                started = time.process_time()
                found.append(errors(one, problem, labels, design, seed=seed, **settings))
                seconds = time.process_time() - started
                told = f"{_scores(found[-1])} {seconds:6.1f} s"
                print(f"{name:12} {design:7} seed {seed} {told}", flush=True)
        for design, found in every.items():
            print(f"{name:12} {design:7} mean   {_scores(np.mean(found, axis=0))}", flush=True)


def _scores(found: FloatArray) -> str:
    return f"MAE {np.abs(found).mean():.4f} MSE {np.square(found).mean():.4f}"


if __name__ == "__main__":
    main()
