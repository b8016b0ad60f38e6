"""One rule of selection for all methods of a part: which validation rows choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mvlstm.bench.cells import build_cell
from mvlstm.bench.job import run_job
from mvlstm.bench.spec import Job
from mvlstm.bench.suite_files import parse_suite
from mvlstm.bench.tuning import build, fit_cell
from mvlstm.errors import ParameterError

METHODS: dict[str, dict[str, Any]] = {
    "enet": {"settings": {"grid": "quick"}},
    "gbt": {"settings": {"grid": "quick", "max_rounds": 4}, "variables": ["x2"]},
    "mvlstm": {"settings": {"hidden_size": 2, "max_epochs": 1}, "grid": {"l2": [0.0, 1.0]}},
    "clstm": {"settings": {"hidden_size": 2, "max_epochs": 1, "penalties": [0.5, 0.05]}},
}


def jobs(**part: Any) -> dict[str, Job]:
    one = {"datasets": ["synthetic"], "windows": [3], "methods": list(METHODS), "explain": False}
    tree = {"data": {"synthetic": {"n": 300}}, "methods": METHODS, "parts": [one | part]}
    return {job.method: job for job in parse_suite(tree, default_name="rule").jobs}


@pytest.mark.parametrize("method", ["enet", "mvlstm"])
def test_all_validation_rows_stop_and_choose(method: str) -> None:
    half, every = (jobs(choose=rule)[method] for rule in ("half", "all"))
    assert half.key == jobs()[method].key != every.key
    found = []
    for job in (half, every):
        cell = build_cell(job)
        _, problem = fit_cell(build(job, cell, device="cpu"), cell)
        found.append(problem.origins)
    earlier, whole = found
    np.testing.assert_array_equal(
        whole["stop"], np.concatenate([earlier["stop"], earlier["calibration"]])
    )
    for part in ("train", "calibration", "new"):
        np.testing.assert_array_equal(whole[part], earlier[part])


def test_a_grid_of_networks_is_judged_on_these_rows_too() -> None:
    half, every = (run_job(jobs(choose=rule)["mvlstm"]).record for rule in ("half", "all"))
    errors = [[one["valid_rmse"] for one in record["tuning"]] for record in (half, every)]
    assert not np.allclose(*errors)


def test_other_words_are_refused() -> None:
    with pytest.raises(ParameterError, match="choose='most'"):
        jobs(choose="most")


def test_a_method_may_read_some_variables_only() -> None:
    job = jobs()["gbt"]
    alone, some, every = (
        run_job(replace(job, variables=names)).record for names in ([], ["x2"], None)
    )
    assert len({record["single"]["rmse"][0] for record in (alone, some, every)}) == 3
    assert some["data"] == every["data"]  # of the same rows


def test_what_was_chosen_is_recorded() -> None:
    found = {
        name: run_job(job).record["choices"] for name, job in jobs().items() if name != "mvlstm"
    }
    assert {name: set(one[0]) for name, one in found.items()} == {
        "enet": {"penalty"},
        "gbt": {"learning_rate", "leaves", "least", "features", "l2", "relative", "rounds"},
        "clstm": {"penalty"},
    }
    assert found["clstm"][0]["penalty"] in (0.5, 0.05)
