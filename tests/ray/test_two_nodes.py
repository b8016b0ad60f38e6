"""Fits, backtests and graphs on a cluster of two nodes: the same bits, whoever dies."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from processes import LONG, descendants, wait_for

NEEDED = os.environ.get("MVLSTM_NEEDS_RAY") == "1"
pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(
        not NEEDED and importlib.util.find_spec("ray") is None, reason="Ray is not installed"
    ),
]
SETTINGS: dict[str, Any] = {
    **{"window": 4, "hidden_size": 3, "members": 10, "max_epochs": 2, "batch_size": 64},
    **{"device": "cpu", "verbose": 0, "seed": 1},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=2, include_dashboard=False)
        cluster.wait_for_nodes(LONG)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def address(cluster: Any) -> str:
    return str(cluster.address)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=400).frame


@pytest.fixture(scope="module")
def here(table: pd.DataFrame) -> mv.MVLSTM:
    return mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2)


def workers() -> list[int]:
    """Return the processes of the cluster in which a task runs."""
    return descendants(os.getpid(), "ray::run_task")


def check_same(found: mv.MVLSTM, expected: mv.MVLSTM, table: pd.DataFrame) -> None:
    mine, theirs = found.fitted_.learned.trained, expected.fitted_.learned.trained
    assert np.array_equal(mine.flat, theirs.flat)
    for name in ("train_loss", "valid_rmse", "best_epoch", "lowered"):
        ours, other = (getattr(one.history_, name) for one in (found, expected))
        assert np.array_equal(ours, other, equal_nan=True), name
    pd.testing.assert_frame_equal(
        found.predict(table).to_frame(), expected.predict(table).to_frame(), check_exact=True
    )


def test_a_fit_of_ten_members_on_four_workers_has_the_bits_of_a_fit_here(
    address: str, table: pd.DataFrame, here: mv.MVLSTM
) -> None:
    found = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, engine=address)
    check_same(found, here, table)


def test_so_has_a_fit_of_the_usual_size(address: str) -> None:
    """Whose products are large enough for libraries to go other ways."""
    rows = mv.datasets.load("synthetic", n=1000).frame
    models = [
        mv.MVLSTM(window=20, members=3, max_epochs=2, device="cpu", verbose=0).fit(
            rows, "y", test=0.2, engine=engine
        )
        for engine in ("local", address)
    ]
    check_same(models[1], models[0], rows)


ENDED = """
import os, sys
import pandas as pd
import mvlstm as mv

written = []
def count(event, words):  # the third state of a member ends the driver, wherever others are then
    if event == "os.rename" and "fit-" in str(words[1]):
        written.append(words[1])
        if len(written) == 3:
            os.kill(os.getpid(), int(sys.argv[4]))
sys.addaudithook(count)
table, folder, engine = pd.read_parquet(sys.argv[1]), sys.argv[2], sys.argv[3]
mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=folder, engine=engine)
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_a_fit_whose_driver_ended_goes_on_to_the_same_bits(
    address: str, table: pd.DataFrame, here: mv.MVLSTM, tmp_path: Path, by: signal.Signals
) -> None:
    file, folder = tmp_path / "table.parquet", tmp_path / "checkpoint"
    table.to_parquet(file)
    code = ENDED.replace("SETTINGS", repr(SETTINGS))
    words = ["-W", "ignore", "-c", code, str(file), str(folder), address, str(int(by))]
    often = {**os.environ, "MVLSTM_CHECKPOINT_SECONDS": "0.05"}
    ended = subprocess.run([sys.executable, *words], env=often, timeout=LONG, check=False)
    assert ended.returncode != 0
    assert len(list(folder.glob("fit-*.safetensors"))) >= 2
    wait_for(lambda: not workers())  # no task runs on
    engine = address if by == signal.SIGKILL else "local"
    found = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, checkpoint=folder, engine=engine)
    check_same(found, here, table)


def test_a_node_that_dies_loses_nothing(
    cluster: Any, table: pd.DataFrame, here: mv.MVLSTM, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=2, include_dashboard=False)
    cluster.wait_for_nodes(LONG)

    def remove() -> None:
        wait_for(lambda: list(tmp_path.glob("fit-*.safetensors")))
        cluster.remove_node(node, allow_graceful=False)

    more: dict[str, Any] = {"checkpoint": tmp_path, "engine": str(cluster.address)}
    with ThreadPoolExecutor(1) as beside:
        removed = beside.submit(remove)
        found = mv.MVLSTM(**SETTINGS).fit(table, "y", test=0.2, **more)
        removed.result()
    cluster.wait_for_nodes(LONG)  # until all know that it is gone
    check_same(found, here, table)


def test_a_backtest_with_a_killed_worker_has_the_scores_of_one_here(
    address: str, table: pd.DataFrame
) -> None:
    model = mv.MVLSTM(**{**SETTINGS, "members": 2, "max_epochs": 3})
    expected = mv.backtest(model, table, "y", folds=3)
    with ThreadPoolExecutor(1) as beside:
        killed = beside.submit(lambda: os.kill(wait_for(workers)[0], signal.SIGKILL))
        found = mv.backtest(model, table, "y", folds=3, engine=address)
        killed.result()
    pd.testing.assert_frame_equal(
        found.scores.drop(columns="fit_seconds"), expected.scores.drop(columns="fit_seconds")
    )
    pd.testing.assert_frame_equal(found.forecast.to_frame(), expected.forecast.to_frame())


def test_a_graph_a_comparison_and_a_search_are_those_found_here(
    address: str, table: pd.DataFrame
) -> None:
    mine, theirs = (
        mv.graph(table, effort="quick", verbose=0, engine=one) for one in (address, "local")
    )
    pd.testing.assert_frame_equal(mine.to_frame(), theirs.to_frame())
    rows = [
        mv.compare(table, "y", methods=["ar", "gbt"], window=4, verbose=0, engine=one).rows
        for one in (address, "local")
    ]
    costs = ["fit_seconds", "forecasts_per_second"]
    pd.testing.assert_frame_equal(*(one.drop(columns=costs) for one in rows))
    grid, model = {"window": [2, 4]}, mv.AR(verbose=0)
    searched = [mv.tune(table, "y", model=model, grid=grid, engine=e) for e in (address, "local")]
    ranked = [one.ranking.drop(columns="fit_seconds", errors="ignore") for one in searched]
    pd.testing.assert_frame_equal(*ranked)


def test_many_series_are_forecast_and_explained_as_here(address: str, tmp_path: Path) -> None:
    table = mv.datasets.load("synthetic", n=120).frame
    panel = tmp_path / "panel"
    panel.mkdir()
    for name, size in (("north", 1.0), ("south", 5.0), ("tiny", 2.0)):
        one = table.assign(id=name, y=size * table["y"]).head(3 if name == "tiny" else 120)
        one.to_parquet(panel / f"{name}.parquet", index=False)
    model = mv.many.fit(mv.AR(window=4, verbose=0), panel, "y", series="id", test=0.2)
    found = {}
    for one in (address, "local"):
        out = tmp_path / one.replace(":", "-")
        told: dict[str, Any] = {"engine": one, "verbose": 0}
        made = mv.many.forecast(model, panel, out / "next", **told)
        why = mv.many.explain(model, panel, out / "why", effort="quick", **told)
        assert (made.series, why.series) == (2, 2)
        assert set(why.failures["series"]) == set(made.failures["series"]) == {"tiny"}
        found[one] = (made.read(), made.read("scores"), why.read("importance"), why.importance)
    for mine, theirs in zip(found[address], found["local"], strict=True):
        assert mine is not None
        pd.testing.assert_frame_equal(mine, theirs)
