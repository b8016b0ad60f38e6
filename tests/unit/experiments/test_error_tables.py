"""What the study adds: errors by data sets, steps and origins; attention in every record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.error_tables import _as_printed
from mvlstm.bench.records import Records
from mvlstm.bench.tables import make_tables
from unit.bench.test_tables import find, rewritten


def test_methods_stand_by_data_sets_with_references(folder: Path, records: Records) -> None:
    tables = make_tables(folder).tables
    table = find(tables, "RMSE, window 3, protocol chronological")
    assert list(table.shown["method"]) == [
        "Persistence",
        "AR",
        "MV-LSTM",
        "MV-LSTM, mean of 2",
        "Oracle (best possible)",
    ]
    (ours,) = [r for r in records.found if r["job"]["method"] == "mv"]
    row = table.numbers.set_index("method").loc["MV-LSTM"]
    values = np.array(ours["single"]["rmse"])
    assert row["mean"] == pytest.approx(values.mean())
    assert row["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(2))
    oracle = table.numbers.set_index("method").loc["Oracle (best possible)", "mean"]
    assert oracle == pytest.approx(ours["oracle"]["rmse"])


def test_steps_and_origins_have_tables(folder: Path) -> None:
    tables = make_tables(folder).tables
    steps = find(tables, "RMSE by step ahead, of 2")
    assert list(steps.numbers.columns) == ["method", "step 1", "step 2"]
    origins = find(tables, "2 steps ahead: RMSE at each origin")
    assert list(origins.numbers.columns) == ["method", "origin 1", "origin 2"]


def test_means_that_lack_origins_are_pointed_out(
    folder: Path, records: Records, tmp_path: Path
) -> None:
    rest = [o for o in records.found if (o["job"]["method"], o["job"]["fold"]) != ("best", 1)]
    tables = make_tables(rewritten(folder, tmp_path / "b", rest)).tables
    layout = find(tables, "RMSE, window 3, 2 steps ahead")
    assert any("origins 2 of 2 only" in note for note in layout.notes)
    assert not find(make_tables(folder).tables, "RMSE, window 3, 2 steps ahead").notes


def test_printed_numbers_keep_their_decimals() -> None:
    assert _as_printed(131.22, 0.032) == "131.22 ± 0.032" and _as_printed(6.1, 0.1) == "6.10 ± 0.10"


def test_attention_is_that_of_the_training_windows(records: Records) -> None:
    (record,) = [one for one in records.found if one["job"]["method"] == "mv"]
    found = record["attention"]
    prior, posterior = np.array(found["prior"]), np.array(found["posterior"])
    assert prior.shape == posterior.shape == (2, 11)
    assert np.allclose(prior.sum(axis=1), 1) and np.allclose(posterior.sum(axis=1), 1)
    for kind in ("prior", "posterior"):
        counts = np.array(found[f"{kind}_histogram"]["counts"])
        assert counts.shape == (11, 40)
        assert (counts.sum(axis=1) == 2 * found["windows"]).all()
        middle = (np.arange(40) + 0.5) / 40
        means = (counts @ middle) / counts.sum(axis=1)
        assert np.allclose(means, np.array(found[kind]).mean(axis=0), atol=1 / 80)
