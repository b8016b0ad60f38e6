"""The best few settings share the members, and their forecasts are mixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.bench.job import run_job
from mvlstm.bench.records import read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.score_tables import score_frame
from mvlstm.bench.scoring import Scored, average
from mvlstm.bench.spec import Job
from mvlstm.bench.suite_files import parse_suite
from mvlstm.bench.tables import make_tables
from mvlstm.errors import ParameterError

TREE = {
    "name": "blends",
    "data": {"synthetic": {"n": 300}},
    "methods": {
        "tuned": {
            "method": "mvlstm",
            "settings": {"hidden_size": 2, "max_epochs": 2},
            "grid": {"link": ["none", "last", "linear"]},
            "members": 3,
            "blend": 2,
            "tune_seeds": 2,
        }
    },
    "parts": [{"datasets": ["synthetic"], "windows": [3], "methods": ["tuned"], "explain": False}],
}


@pytest.fixture(scope="module")
def job() -> Job:
    (only,) = parse_suite(TREE, default_name="blends").jobs
    return only


@pytest.mark.parametrize("repeats", [1, 2])
def test_the_best_two_of_three_settings_share_three_members(job, repeats) -> None:
    found = run_job(replace(job, repeats=repeats), device="cpu")
    tried = sorted(found.record["tuning"], key=lambda one: one["valid_rmse"])
    first, second = ({"link": one["link"]} for one in tried[:2])
    assert found.record["blended"] == [first, second] and found.record["chosen"] == first
    plain = replace(job, grid={}, blend=1, repeats=repeats)
    two = run_job(replace(plain, members=2, settings=job.settings | first), device="cpu")
    rest = run_job(replace(plain, members=3, settings=job.settings | second), device="cpu")
    pair = run_job(replace(plain, members=2, settings=job.settings | second), device="cpu")
    third = 3 * rest.arrays["ensemble"] - 2 * pair.arrays["ensemble"]  # the third member's errors
    expected = (2 * two.arrays["ensemble"] + third) / 3
    np.testing.assert_allclose(found.arrays["ensemble"], expected, atol=1e-5)
    assert len(found.record["ensemble"]["rmse"]) == repeats


def test_settings_can_be_chosen_by_absolute_errors(job) -> None:
    found = run_job(replace(job, measure="mae"), device="cpu").record
    tried = sorted(found["tuning"], key=lambda one: one["valid_mae"])
    assert found["blended"] == [{"link": one["link"]} for one in tried[:2]]
    forest = replace(job, base="rf", settings={}, grid={"max_trees": [2, 3]}, measure="mae")
    tried = run_job(forest, device="cpu").record["tuning"]
    assert all("valid_mae" in one and "valid_rmse" not in one for one in tried)


def test_one_member_is_of_the_best_setting(job) -> None:
    alone = run_job(replace(job, members=1), device="cpu")
    best = run_job(replace(job, members=1, blend=1), device="cpu")
    np.testing.assert_array_equal(alone.arrays["single"], best.arrays["single"])
    assert "blended" not in alone.record


def test_no_more_settings_are_blended_than_there_are_members(job) -> None:
    found = run_job(replace(job, members=2, blend=3), device="cpu").record
    assert len(found["blended"]) == 2


@pytest.mark.parametrize("members", [1, 3])
def test_a_method_without_members_takes_its_best_setting(job, members) -> None:
    forest = replace(job, base="rf", settings={}, grid={"max_trees": [2, 3]}, members=members)
    record = run_job(replace(forest, repeats=2), device="cpu").record
    assert "blended" not in record and len(record["single"]["rmse"]) == 2
    rows = score_frame([record | {"job": forest.to_dict(), "status": "done", "key": "k"}])
    assert rows["members"].tolist() == [1, 2]  # one fit, and the mean of both


def test_other_blends_are_other_jobs_and_none_is_what_older_records_had(job) -> None:
    assert replace(job, blend=1).key != job.key != replace(job, blend=3).key
    older = {name: value for name, value in job.to_dict().items() if name != "blend"}
    assert Job(**older).key == replace(job, blend=1).key
    assert replace(job, measure="mae").key != job.key


def test_an_unknown_measure_is_refused_by_its_methods_name() -> None:
    methods = {"tuned": TREE["methods"]["tuned"] | {"measure": "mse"}}
    with pytest.raises(ParameterError, match=r"method 'tuned': measure='mse'.*'rmse' or 'mae'"):
        parse_suite(TREE | {"methods": methods}, default_name="blends")


def test_a_mixture_keeps_the_transform_and_counts_every_member_once() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400), "y": rng.poisson(3.0, 400).astype(float)})
    forecast = mv.AR(window=4, transform="log1p", verbose=0).fit(table, "y").predict(table)
    rows = np.arange(len(forecast.origin))
    thrice = average([Scored(forecast, forecast, rows)] * 3).test
    assert thrice.score(part="all") == pytest.approx(forecast.score(part="all"))
    np.testing.assert_allclose(thrice.weights.sum(axis=2), 1.0)


def test_tables_name_all_settings_that_were_blended(tmp_path) -> None:
    suite = parse_suite(TREE, default_name="blends")
    assert run_suite(suite, tmp_path, device="cpu", verbose=0).failed == 0
    (record,) = read_records(tmp_path).done.values()
    text = make_tables(tmp_path).markdown()
    first, second = (f"link={one['link']}" for one in record["blended"])
    assert f"{first}; {second}" in text


def test_the_cell_can_be_searched(job) -> None:
    found = run_job(replace(job, grid={"cell": ["lstm", "gru"]}, members=1), device="cpu").record
    assert {one["cell"] for one in found["tuning"]} == {"lstm", "gru"}
