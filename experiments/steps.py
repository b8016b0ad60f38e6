"""Networks for several steps ahead with inputs known in advance: shared states or states by step.

By default all steps read one summary of the window, whose last rows hold what is known of the steps
ahead; with ``states="own"`` step h also reads the states of known variables at the row that it
forecasts::

    python -m experiments.steps epf_np epf_pjm --thin 3 --seeds 0 1 2
    python -m experiments.steps made --states own --later

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
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import mvlstm as mv
from mvlstm import MVLSTM
from mvlstm.methods.mvlstm import STATES
from mvlstm.methods.network import training
from mvlstm.methods.network.trained import learn_labels
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import LabelScale
from mvlstm.types import FloatArray

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


def errors(one: Case, problem: Problem, labels: LabelScale, **more: Any) -> FloatArray:
    """Train one member; return its errors on every third unseen origin, (M, H)."""
    model = MVLSTM(members=1, verbose=0, **one.settings, **more)
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
    """Print the scores of both kinds and every seed, and those of the seeds' mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", help="a data set, one with steps (epf_np-6), or made")
    parser.add_argument("--states", nargs="+", default=list(STATES), choices=STATES)
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
        every: dict[str, list[FloatArray]] = {states: [] for states in given.states}
        for seed in given.seeds:
            for states, found in every.items():
                started = time.process_time()
                found.append(errors(one, problem, labels, states=states, seed=seed, **settings))
                seconds = time.process_time() - started
                told = f"{_scores(found[-1])} {seconds:6.1f} s"
                print(f"{name:12} {states:7} seed {seed} {told}", flush=True)
        for states, found in every.items():
            print(f"{name:12} {states:7} mean   {_scores(np.mean(found, axis=0))}", flush=True)


def _scores(found: FloatArray) -> str:
    return f"MAE {np.abs(found).mean():.4f} MSE {np.square(found).mean():.4f}"


if __name__ == "__main__":
    main()
