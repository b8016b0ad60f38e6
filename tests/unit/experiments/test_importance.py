"""The importance suite: its jobs, one small run of each kind, and its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import importance
from experiments.candidates import CANDIDATES
from experiments.granger_tests import difference, granger_tests
from experiments.importance import FIRST_SEED, METHODS, faithful_jobs, jobs, make_case, run_job
from experiments.truth_tables import false_alarm, truth_tables
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Suite
from mvlstm.bench.suite_files import load_suite
from mvlstm.bench.tables import make_tables
from mvlstm.methods.lstm import LSTM
from mvlstm.problem.stationarity import choose_differencing

PROJECT = Path(__file__).parents[3]
SMALL = {"window": 4, "members": 2, "effort": "quick"}


def small_model(settings, device):
    return LSTM(
        window=settings["window"], hidden_size=4, members=2, max_epochs=2, device="cpu", verbose=0
    )


def importance_suite(**changes: int) -> Suite:
    return load_suite(str(PROJECT / "experiments/suites/importance.toml"), **changes)


def test_choice_and_confirmation_share_no_data() -> None:
    seeds = {stage: {job["seed"] for job in jobs(stage)} for stage in FIRST_SEED}
    assert not seeds["choice"] & seeds["confirm"]


def test_the_must_show_cases_are_listed() -> None:
    listed = [job for job in jobs("confirm") if job["method"] == "mvlstm"]
    plain = [job for job in listed if "curves" not in job]
    synthetic = [job for job in plain if job["case"] == "synthetic" and job["snr"] == 2.0]
    assert len(synthetic) == 20
    assert all(job["rows"] == 10_000 and "window" not in job for job in synthetic)
    for case in ("noise", "walks", "cycle", "shifted"):
        assert sum(job["case"] == case for job in plain) == 20
    lorenz = {(job["p"], job["forcing"], job["rows"]) for job in plain if job["case"] == "lorenz96"}
    assert len(lorenz) == 16
    methods = {job["method"] for job in jobs("confirm")}
    assert set(METHODS) | {"granger", "members", "thirds"} == methods


def test_every_job_has_a_key_of_its_own() -> None:
    jobs = importance_suite(repeats=2).jobs
    assert len({job.key for job in jobs}) == len(jobs)
    assert {job.part for job in jobs} == {"choice", "confirm", "faithful"}
    few = importance_suite(repeats=2, members=3).jobs
    assert all(job.settings["members"] == 3 for job in few)


def test_a_case_without_signal_has_no_drivers() -> None:
    settings = {"case": "synthetic", "rows": 300, "seed": 0, "snr": 0.0, "method": "granger"}
    record = run_job({**settings, "stage": "choice"})
    assert record["drivers"] == []
    assert record["called"] == []


def test_a_job_is_scored_against_the_truth() -> None:
    settings = {"stage": "choice", "case": "var", "rows": 500, "seed": 0, "method": "lstm", **SMALL}
    record = run_job({**settings, "curves": True}, build=small_model)
    assert 0.0 <= record["auroc_headline"] <= 1.0
    assert {row["variable"] for row in record["importance"]} == set(record["variables"])
    assert set(record["drivers"]) == set(make_case(settings)[2].drivers)
    assert record["faithfulness"]["deletion_importance"] > 0


def test_every_training_that_was_tried_is_listed() -> None:
    methods = {job["method"] for job in faithful_jobs(5)}
    assert methods == {f"candidate: {name}" for name in CANDIDATES}


@pytest.mark.parametrize("name", ["default", "sparsity 1e-2", "variable dropout 0.2"])
def test_a_training_that_was_tried_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, remedies = CANDIDATES[name]
    small = {"members": 2, "max_epochs": 1, "hidden_size": 3}
    monkeypatch.setitem(importance.CANDIDATES, name, (arguments | small, remedies))
    settings = {"stage": "faithful", "case": "var", "rows": 300, "seed": 0, **SMALL}
    record = run_job(settings | {"method": f"candidate: {name}"}, device="cpu")
    assert 0.0 <= record["auroc_headline"] <= 1.0


def test_granger_finds_linear_drivers() -> None:
    settings = {"stage": "choice", "case": "var", "rows": 3_000, "seed": 1, "method": "granger"}
    record = run_job(settings)
    assert record["auroc_own"] == 1.0
    assert set(record["drivers"]) <= set(record["called"])


def test_granger_tests_random_walks_by_their_differences(monkeypatch) -> None:
    given = []

    def tests(series):
        given.append(series)
        return granger_tests(series)

    monkeypatch.setattr(importance, "granger_tests", tests)
    settings = {"stage": "choice", "case": "walks", "rows": 1_000, "seed": 1, "method": "granger"}
    run_job(settings)
    table = make_case(settings)[0]
    orders = choose_differencing(table.to_numpy()[:700], list(table)).orders
    assert orders[-1] == 1 and sum(orders) > 6  # the tests may err on one of the nine
    steps = difference(table.to_numpy()[:700], orders)
    np.testing.assert_allclose(given[0], (steps - steps.mean(axis=0)) / steps.std(axis=0))


def found(**changes):
    one = {
        "stage": "confirm",
        "case": "synthetic",
        "snr": 2.0,
        "seed": 1000,
        "method": "mvlstm",
        "rows": 10_000,
        "drivers": ["x2", "x3"],
        "called": ["x2", "x3"],
        "auroc_headline": 1.0,
        "auprc_headline": 1.0,
        "auroc_posterior": 0.9,
        "rmse": 1.05,
        "lags": {},
        "missed": [],
    }
    return one | changes


def test_tables_count_what_was_found_and_false_alarms() -> None:
    records = [
        found(),
        found(seed=1001, called=["x2", "x7"], auroc_headline=0.9),
        found(case="noise", drivers=[], called=["x1"]),
        found(case="noise", drivers=[], called=[], seed=1001),
    ]
    assert [false_alarm(one) for one in records] == [False, True, True, False]
    tables = {table.title: table.numbers for table in truth_tables(records, "confirm")}
    synthetic = tables["Synthetic series by signal-to-noise ratio"].iloc[0]
    assert (synthetic["data sets"], synthetic["AUROC 1"]) == (2, 1)
    assert (synthetic["both found"], synthetic["false alarms"]) == (1, 1)
    assert tables["Null controls: false alarms"]["noise"].tolist() == ["1 of 2"]
    assert list(truth_tables(records, "choice")) == []


def test_lags_are_counted_by_driver() -> None:
    lags = {
        "x0": {"planted": [3, 7], "contribution": 7, "attention": 2},
        "x1": {"planted": [5], "contribution": 4, "attention": 5},
    }
    tables = {t.title: t.numbers for t in truth_tables([found(case="lags", lags=lags)], "confirm")}
    row = tables["Planted lags"].iloc[0]
    assert row["drivers"] == 2
    assert row["largest contribution at a true lag"] == pytest.approx(0.5)


def test_a_job_of_the_suite_is_run_and_its_tables_are_made(tmp_path) -> None:
    suite = importance_suite(repeats=1)
    chosen = suite.select(parts=["choice"], datasets=["var"], methods=["granger"])
    summary = run_suite(chosen, tmp_path, device="cpu")
    assert (summary.done, summary.failed) == (1, 0)
    text = make_tables(tmp_path).markdown()
    assert "importance against the truth" in text
    assert "granger" in text
