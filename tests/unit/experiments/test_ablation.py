"""Rivals with the tools of MVLSTM, the protocol of the last rows, and what each is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mvlstm as mv
from experiments.ablation import LATEST, ROWS, TooledCLSTM, TooledDUAL, TooledLSTM
from experiments.ablation_tables import Fit, _against, _step
from mvlstm.bench.spec import Job
from mvlstm.bench.suite_files import load_suite
from mvlstm.train.config import Kind

SMALL: dict[str, Any] = {"window": 5, "hidden_size": 4, "max_epochs": 2, "verbose": 0}


@pytest.mark.parametrize(
    ("tooled", "plain", "same"),
    [
        (TooledLSTM, mv.LSTM, {"loss": "mse", "link": "none", "averaging": 0.0, "patience": 10}),
        (TooledDUAL, mv.DUAL, {"dropout": 0.5, "learning_rate": 5e-3, "batch_size": 64}),
        (TooledCLSTM, mv.CLSTM, {"learning_rate": 5e-3, "batch_size": 64}),
    ],
)
def test_without_tools_a_rival_is_the_packages_own(tooled: Any, plain: Any, same: Any) -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    given = {**SMALL, "members": 2, "patience": 10}
    one = tooled(**given).fit(table, target="y", test=0.2).predict(table)
    other = plain(**(given | same)).fit(table, target="y", test=0.2).predict(table)
    assert np.array_equal(one.members, other.members)


@pytest.mark.parametrize("tooled", [TooledLSTM, TooledDUAL, TooledCLSTM])
def test_every_rival_takes_members_of_all_kinds(tooled: Any, monkeypatch: Any) -> None:
    nobody = lambda errors, plain, ensembles: np.zeros(len(plain), dtype=bool)  # noqa: E731
    monkeypatch.setattr("mvlstm.methods.network.kinds.find_harmful", nobody)
    table = mv.datasets.load("synthetic", n=600).frame
    settings = {**SMALL, "members": 5, "link": "auto", "averaging": 0.9, "finish": 0.1}
    model = tooled(**settings).fit(table, target="y", test=0.2)
    assert set(model.fitted_.learned.trained.kinds) == set(Kind)


def test_the_last_rows_are_divided_in_time_order() -> None:
    job = Job("s", "p", "synthetic", "ar", data={"n": ROWS + 500}, window=10)
    cell = LATEST.cell(job)
    assert (cell.frame.n_rows, cell.test, cell.valid) == (ROWS, 600, 300)
    whole = mv.datasets.load("synthetic", n=ROWS + 500).frame["y"].to_numpy()
    assert np.array_equal(cell.series, whole[-ROWS:])


def test_all_networks_have_the_same_tools_and_repeats() -> None:
    suite = load_suite("ablation", budget="full")
    tools = {
        (job.method.partition("-")[0], job.method.partition("-")[2]): (
            job.settings.get("link", "none"),
            job.settings.get("averaging", 0.0),
            job.settings.get("finish", 0.0),
            job.repeats * job.members,
            job.choose,
        )
        for job in suite.jobs
    }
    for kind in ("", "link", "finish", "kinds"):
        assert len({value for (_, one), value in tools.items() if one == kind}) == 1
    assert {value[3] for value in tools.values()} == {10}


def test_worth_counts_what_is_significant() -> None:
    noise = np.random.default_rng(0).normal(size=400)
    fits = {
        (network, tools, kind): Fit(scale, 0.0, scale * noise)
        for network, size in (("paper", 1.0), ("lstm", 2.0))
        for tools, kind, scale in (
            ("", "single", size),
            ("-link", "single", 0.5 * size),
            ("-finish", "ensemble", size),
        )
    }
    assert _step(fits, ("", "single"), ("-link", "single")) == "-50.0 (2 : 0 of 2)"
    assert _against(fits, "paper", "lstm") == "+100.0*"
