"""The suite granger: its tables with known graphs, one small run of each kind, and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.power import FIRST_SEED, find_links, make_known, power_jobs, power_record
from experiments.power_tables import power_sections
from mvlstm.bench.spec import Job
from mvlstm.errors import DataError


def job(part: str, method: str, **settings: Any) -> Job:
    return Job("granger", part, settings["case"], method, settings=settings)


def record_of(job: Job, **power: Any) -> dict[str, Any]:
    return {"job": job.to_dict(), "power": {**job.settings, **power}, "timings": {"total": 1.0}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the data folder have one file with a known graph."""
    (tmp_path / "granger").mkdir()
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path))
    x = np.random.default_rng(0).standard_normal((3, 150))
    x[2, 1:] += x[0, :-1]
    links = np.eye(3, dtype=int)
    links[2, 0] = 1
    np.savez(tmp_path / "granger" / "chain-1.npz", X_np=x, Gref=links)
    return tmp_path / "granger"


def test_a_file_in_the_data_folder_is_scored(folder: Path) -> None:
    (first, *_) = [one for one in power_jobs("files") if one["method"] == "graph"]
    found = power_record(job("files", "graph", case=first["dataset"]))["power"]
    assert found["auroc"] == 1.0 and (found["found"], found["links"]) == (1, 1)
    assert found["false"] == 0 and found["others"] == 5


def test_a_file_without_its_graph_is_refused(folder: Path) -> None:
    np.savez(folder / "bare.npz", X_np=np.zeros((3, 9)))
    with pytest.raises(DataError, match=r"lacks \['Gref'\]"):
        make_known({"case": "bare"})
    np.savez(folder / "odd.npz", X_np=np.zeros((3, 9)), Gref=np.eye(2))
    with pytest.raises(DataError, match=r"series \(3, 9\) but a graph \(2, 2\)"):
        make_known({"case": "odd"})


@pytest.mark.parametrize("method", ["linear", "ar"])
def test_rivals_find_a_plain_link(folder: Path, method: str) -> None:
    links = find_links(method, make_known({"case": "chain-1"}).table)
    assert links.important is not None and links.important[2, 0]
    assert links.score[2, 0] > links.score[2, 1]


def test_graphs_of_made_series_are_those_of_their_equations() -> None:
    ring = make_known({"case": "lorenz96", "p": 6, "forcing": 10.0, "rows": 10, "seed": 0})
    assert ring.links.sum(axis=1).tolist() == [4] * 6
    assert np.flatnonzero(ring.links[3]).tolist() == [1, 2, 3, 4]
    var = make_known({"case": "var", "rows": 10, "seed": 0})
    assert var.links.sum() == 30
    none = make_known({"case": "snr 0", "rows": 60, "seed": 0})
    assert none.links.sum() == 11 and none.links[-1, -1]


def test_pairs_are_looked_at_one_by_one() -> None:
    settings = {"case": "pairs", "acting": "one", "rows": 400, "seed": 1}
    found = power_record(job("pairs", "ar", **settings))["power"]
    assert found["links"] == 2 and len(found["pairs"]) >= 2
    pair = found["pairs"][0]
    assert len(pair["rises"]) == len(pair["refits"]) == 2 and isinstance(pair["group"], float)


def test_nothing_was_chosen_on_the_seeds_of_the_suite() -> None:
    parts = ("null", "drivers", "pairs", "made")
    assert min(one["seed"] for part in parts for one in power_jobs(part)) == FIRST_SEED


def test_tables_count_what_was_found() -> None:
    null = job("null", "graph", case="noise", rows=500, seed=1)
    file = job("files", "clstm", case="chain-1")
    pair = {
        "pair": ["a", "b"],
        "acting": [True, False],
        "important": [True, True],
        "rises": [1.0, 0.9],
        "low": [0.5, 0.8],
        "refits": [1.0, 0.1],
        "group": 1.2,
        "group important": True,
    }
    pairs = job("pairs", "ar", case="pairs", acting="one")
    records = [
        record_of(null, false=1),
        record_of(null, false=0),
        record_of(file, auroc=0.9, auprc=0.8, links=1, others=5),
        record_of(pairs, pairs=[pair]),
    ]
    tables = {one.tables[0].title: one.tables[0].shown for one in power_sections(records)}
    alarms = tables["Nothing to find: tables with a false alarm"].iloc[0]
    assert (alarms["noise"], alarms["all"]) == ("1 of 2", "1 of 2")
    links = tables["Public files with their graphs"].iloc[0]
    assert links.to_dict() == {"series": "chain", "AUROC / AUPRC, CLSTM": "0.900 / 0.800"}
    both = tables["Four pairs of columns with correlations of 0.9 to 0.99"].iloc[0]
    assert both["acting ones found"] == both["idle ones found"] == "1 of 1"
    assert both["rise too large"] == "1 of 2"
