"""Runs: what a record holds, what is skipped, what failure leaves behind, one seed one result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mvlstm as mv
from made_records import comparable
from mvlstm.bench import execution as module
from mvlstm.bench.job import run_job
from mvlstm.bench.records import Records, read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import Job, Suite
from mvlstm.errors import DataError, ParameterError


def one(records: Records, **wanted: Any) -> dict[str, Any]:
    (found,) = [
        r for r in records.found if all(r["job"][name] == value for name, value in wanted.items())
    ]
    return found


def test_a_record_holds_what_was_done(records: Records) -> None:
    record = one(records, part="tables", method="mv")
    assert record["status"] == "done" and record["error"] is None
    assert record["chosen"]["learning_rate"] in (0.001, 0.01) and len(record["tuning"]) == 2
    best = min(record["tuning"], key=lambda row: row["valid_rmse"])
    assert {name: best[name] for name in ("learning_rate", "l2")} == record["chosen"]
    assert record["settings"]["learning_rate"] == record["chosen"]["learning_rate"]
    assert len(record["single"]["rmse"]) == 2 and len(record["ensemble"]["rmse"]) == 1
    assert record["persistence"]["rmse"] > record["oracle"]["rmse"] > 0
    assert record["versions"]["torch"] and record["hardware"]["device"] == "cpu"
    assert len(record["data"]["sha256"]) == 64 and record["data"]["drivers"] == ["x2", "x3"]
    assert record["timings"]["total"] > 0
    assert {row["variable"] for row in record["importance"]} == set(record["data"]["variables"])


def test_scores_are_those_of_the_public_interface(records: Records) -> None:
    record = one(records, part="tables", method="ar")
    data = mv.datasets.load("synthetic", n=303)
    model = mv.AR(window=3, verbose=0).fit(data.frame, data.target, test=0.2)
    scores = model.evaluate(data.frame).scores
    assert record["single"]["rmse"] == pytest.approx([scores.loc["AR", "rmse"]])
    assert record["single"]["crps"] == pytest.approx([scores.loc["AR", "crps"]])
    assert record["single"]["skill"] == pytest.approx([scores.loc["AR", "skill"]])
    assert record["persistence"]["rmse"] == pytest.approx(scores.loc["persistence", "rmse"])


def test_repeats_and_members_equal_fits_of_their_own(records: Records) -> None:
    """Repeat r of an ensemble is the model with seed r, whatever it was trained beside."""
    record = one(records, part="steps", method="best", fold=2)
    data = mv.datasets.load("synthetic", n=304)
    settings = {"hidden_size": 2, "max_epochs": 2, "members": 2, "window": 3, "horizon": 2}
    for seed in (0, 1):
        model = mv.MVLSTM(**settings, seed=seed, device="cpu", verbose=0)
        model.fit(data.frame, data.target, test=31, valid=0.1)
        rmse = model.evaluate(data.frame).scores.loc["MVLSTM", "rmse"]
        assert record["ensemble"]["rmse"][seed] == pytest.approx(rmse, rel=1e-5)
    assert len(record["single"]["rmse"]) == 2
    assert len(record["ensemble"]["rmse_by_step"][0]) == 2


def test_kept_errors_give_the_recorded_scores(records: Records) -> None:
    record = one(records, part="tables", method="mv")
    arrays = records.arrays(record)
    assert arrays is not None and len(arrays["rows"]) == record["n"]
    for kind in ("single", "ensemble"):
        rmse = np.sqrt(np.mean(arrays[kind].astype(float) ** 2))
        assert rmse == pytest.approx(record[kind]["rmse"][0], rel=1e-6)
    assert "ensembles" not in arrays  # there is but one
    both = np.sqrt(np.mean(np.square(record["single"]["rmse"])))
    assert np.sqrt(np.mean(arrays["singles"].astype(float) ** 2)) == pytest.approx(both, rel=1e-6)


def test_running_again_does_nothing(suite: Suite, folder: Path) -> None:
    before = sorted(folder.iterdir())
    summary = run_suite(suite, folder, device="cpu", verbose=0)
    assert (summary.done, summary.skipped) == (0, len(suite.jobs))
    assert sorted(folder.iterdir()) == before


def test_one_seed_gives_the_same_records(suite: Suite, records: Records, tmp_path: Path) -> None:
    few = suite.select(parts=["tables"])
    run_suite(few, tmp_path, device="cpu", verbose=0)
    again = read_records(tmp_path)
    for key, record in again.done.items():
        assert comparable(record) == comparable(records.done[key])
        mine, theirs = again.arrays(record), records.arrays(record)
        assert mine is not None and theirs is not None
        assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)


def test_a_failure_is_recorded_and_the_rest_go_on(suite: Suite, tmp_path: Path) -> None:
    job = suite.select(methods=["ar"], parts=["tables"]).jobs[0]
    bad = replace(job, data={"n": 5}, method="bad")
    jobs = Suite("small", "", "", (bad, job))
    summary = run_suite(jobs, tmp_path, device="cpu", verbose=0)
    assert (summary.done, summary.failed) == (1, 1)
    record = read_records(tmp_path).failed[bad.key]
    assert "rows" in record["error"]["message"] and record["error"]["where"]
    assert run_suite(jobs, tmp_path, device="cpu", verbose=0).skipped == 2
    again = run_suite(jobs, tmp_path, device="cpu", retry_failed=True, verbose=0)
    assert (again.done, again.failed, again.skipped) == (0, 1, 1)


def test_an_interruption_is_no_failure(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: Job, *, device: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_job", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_suite(suite, tmp_path, device="cpu", verbose=0)
    assert read_records(tmp_path).found == ()


@pytest.mark.slow  # every process loads torch anew
def test_processes_side_by_side_give_the_same_records(
    suite: Suite, records: Records, tmp_path: Path
) -> None:
    few = suite.select(methods=["ar", "persistence"], parts=["tables"])
    summary = run_suite(few, tmp_path, workers=2, device="cpu", verbose=0)
    assert summary.done == 2
    for key, record in read_records(tmp_path).done.items():
        assert record["single"] == records.done[key]["single"]


def test_missing_or_damaged_data_stop_a_run_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path / "data"))
    job = Job(suite="s", part="p", dataset="energy", method="ar", base="ar", label="AR")
    suite = Suite("s", "", "", (job, replace(job, dataset="synthetic", data={"n": 50})))
    with pytest.raises(DataError, match=r"energy.*mvlstm data fetch.*datasets=\['synthetic'\]"):
        run_suite(suite, tmp_path / "out", verbose=0)
    file = tmp_path / "data" / "energy" / "energydata_complete.csv"
    file.parent.mkdir(parents=True)
    file.write_text("date,Appliances\n")
    with pytest.raises(DataError, match=r"not the published one.*fetch"):
        run_suite(suite, tmp_path / "out", verbose=0)
    assert not (tmp_path / "out").exists()


def test_wrong_engines_and_workers_are_named(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="engine='slurm'"):
        run_suite(suite, tmp_path, engine="slurm")
    with pytest.raises(ParameterError, match="workers=0"):
        run_suite(suite, tmp_path, workers=0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder_that_takes_no_records_is_refused_before_any_work(
    suite: Suite, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "file").write_text("")
    places = [tmp_path / "file" / "out", Path("/proc/self/fd")]  # not even root writes there
    for place in places if places[1].is_dir() else places[:1]:
        with pytest.raises(ParameterError, match=f"cannot be written to '{place}'"):
            run_suite(suite, place, workers=workers, verbose=0)


def test_what_cannot_be_downloaded_is_not_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path / "data"))
    job = Job(suite="s", part="p", dataset="plant", method="ar", base="ar", protocol="authors")
    with pytest.raises(DataError, match="plant") as caught:
        run_suite(Suite("s", "", "", (job,)), tmp_path / "out", verbose=0)
    assert "fetch" not in str(caught.value)


def test_a_users_table_can_be_a_data_set(tmp_path: Path) -> None:
    table = mv.datasets.load("synthetic", n=120).frame
    table.to_csv(tmp_path / "mine.csv", index=False)
    data = {"file": str(tmp_path / "mine.csv"), "target": "y", "exclude": ["x9"], "test": 0.3}
    job = Job(suite="s", part="p", dataset="mine", method="ar", base="ar", window=3, data=data)
    record = run_job(replace(job, explain=False), device="cpu").record
    assert record["n"] == 36 and "x9" not in record["data"]["variables"]


def test_a_wrong_column_of_a_users_table_stops_a_run_before_it_starts(
    suite: Suite, tmp_path: Path
) -> None:
    mv.datasets.load("synthetic", n=120).frame.to_csv(tmp_path / "mine.csv", index=False)
    data = {"file": str(tmp_path / "mine.csv"), "target": "q"}
    job = Job(suite="s", part="p", dataset="mine", method="ar", base="ar", window=3, data=data)
    with pytest.raises(DataError, match="Data set 'mine': Target 'q' is not in the table"):
        run_suite(replace(suite, jobs=(job,)), tmp_path / "out", verbose=0)
    assert not (tmp_path / "out").exists()
