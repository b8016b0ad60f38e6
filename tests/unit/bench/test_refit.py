"""With refit = "full" the chosen setting is trained again on validation rows too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mvlstm.bench.job import run_job
from mvlstm.bench.spec import Job
from mvlstm.bench.suite_files import parse_suite
from mvlstm.errors import ParameterError
from mvlstm.methods.network import base

TREE = {
    "name": "again",
    "data": {"synthetic": {"n": 300}},
    "methods": {
        "mvlstm": {"settings": {"hidden_size": 2, "max_epochs": 5}, "members": 2, "refit": "full"}
    },
    "parts": [
        {
            "datasets": ["synthetic"],
            "windows": [3],
            "methods": ["mvlstm"],
            "repeats": 2,
            "explain": False,
        }
    ],
}


@pytest.fixture(scope="module")
def job() -> Job:
    (only,) = parse_suite(TREE, default_name="again").jobs
    return only


def test_test_rows_are_forecast_by_what_saw_all_others(job, monkeypatch) -> None:
    plain = run_job(replace(job, refit=""), device="cpu")
    seen = []
    train_again = base.train_again

    def watched(trained, problem, settings, *epochs):
        seen.append((problem, epochs))
        return train_again(trained, problem, settings, *epochs)

    monkeypatch.setattr(base, "train_again", watched)
    again = run_job(job, device="cpu")
    ((problem, (epochs, _)),) = seen
    rows = problem.origins["train"]
    assert len(rows) == sum(
        plain.record["windows"][part] for part in ("train", "stop", "calibration")
    )
    assert rows.max() < problem.origins["new"].min()
    assert len(epochs) == 4 and [m.seed for m in problem.members] == [0, 1, 10_000, 10_001]
    for kind in ("single", "ensemble"):
        assert again.record[kind]["valid_rmse"] == plain.record[kind]["valid_rmse"]
        assert not np.allclose(again.record[kind]["rmse"], plain.record[kind]["rmse"])
        np.testing.assert_allclose(again.record[kind]["rmse"], plain.record[kind]["rmse"], rtol=0.3)


def test_one_repeat_is_what_it_is_among_others(job) -> None:
    both = run_job(job, device="cpu").record["ensemble"]["rmse"]
    (alone,) = run_job(replace(job, repeats=1), device="cpu").record["ensemble"]["rmse"]
    assert alone == pytest.approx(both[0], rel=1e-5)


def test_it_makes_another_job_and_none_is_what_older_records_had(job) -> None:
    older = {name: value for name, value in job.to_dict().items() if name != "refit"}
    assert Job(**older).key == replace(job, refit="").key != job.key


def test_other_words_and_methods_whose_members_differ_in_variables_are_refused() -> None:
    tree = {**TREE, "methods": {"mvlstm": {"refit": "newest"}}}
    with pytest.raises(ParameterError, match=r"refit='newest' must be \"full\""):
        parse_suite(tree, default_name="again")
    tree = {**TREE, "methods": {"mvlstm": {"method": "clstm", "refit": "full"}}}
    with pytest.raises(ParameterError, match=r"'mvlstm'.* cannot be had of CLSTM"):
        parse_suite(tree, default_name="again")


SMALL = {
    "ar": {},
    "enet": {"grid": "quick"},
    "rf": {"grid": "quick", "max_trees": 3},
    "xgt": {"grid": "quick", "max_rounds": 3, "link": "linear"},
    "gbt": {"grid": "quick", "max_rounds": 3},
    "persistence": {},
}


@pytest.mark.parametrize("method", SMALL)
def test_any_method_is_fitted_to_validation_rows_with_what_it_chose(method: str) -> None:
    """A part says so once, of all its methods."""
    (part,) = TREE["parts"]
    part = {**part, "methods": [method], "refit": "full", "repeats": 1}
    tree = {**TREE, "methods": {method: {"settings": SMALL[method]}}, "parts": [part]}
    (job,) = parse_suite(tree, default_name="again").jobs
    again, plain = (run_job(one, device="cpu").record for one in (job, replace(job, refit="")))
    assert again.get("choices") == plain.get("choices")
    assert again["single"]["valid_rmse"] == plain["single"]["valid_rmse"]
    same = np.allclose(again["single"]["rmse"], plain["single"]["rmse"])
    assert same == (method == "persistence")


def test_a_rival_s_own_importance_is_that_of_its_new_weights(job) -> None:
    dual = replace(job, method="dual", base="dual", label="DUAL", members=1, repeats=1)
    dual = replace(dual, settings={"hidden_size": 2, "max_epochs": 2})
    own = [
        run_job(one, device="cpu").record["importance"] for one in (dual, replace(dual, refit=""))
    ]
    assert own[0] != own[1]


def test_a_search_has_nothing_to_train_again() -> None:
    tree = {**TREE, "parts": [{**TREE["parts"][0], "kind": "search"}]}
    tree["methods"] = {"mvlstm": {**TREE["methods"]["mvlstm"], "grid": {"l2": [0.0, 1e-4]}}}
    (search,) = parse_suite(tree, default_name="again").jobs
    assert not search.refit


def test_a_search_looks_back_on_thirty_rows_unless_told() -> None:
    part = {k: v for k, v in TREE["parts"][0].items() if k != "windows"}
    (search,) = parse_suite(
        {**TREE, "parts": [{**part, "kind": "search"}]}, default_name="again"
    ).jobs
    assert search.window == 30
