"""`mvlstm.tune`: settings chosen on validation rows, for any forecaster and any table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError

TINY: dict[str, Any] = {"hidden_size": 2, "max_epochs": 1, "device": "cpu", "verbose": 0}


def make_table(rows: int = 200) -> pd.DataFrame:
    """An hourly table: y follows x of three hours before."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, rows))
    y = np.r_[0.0, 0.0, 0.0, 2.0 * x[:-3]] + 0.1 * noise
    index = pd.date_range("2024-01-01", periods=rows, freq="h", name="when")
    return pd.DataFrame({"x": x, "y": y}, index=index)


def test_the_window_is_searched() -> None:
    found = mv.tune(make_table(), "y", model=mv.AR(verbose=0), grid={"window": [2, 4]})
    assert list(found.ranking["window"]) == [4, 2]  # two rows do not show what drives y
    assert found.best == {"window": 4} and type(found.best["window"]) is int
    assert found.ranking["valid_rmse"][0] < 0.5 < found.ranking["valid_rmse"][1]
    model = found.model()
    assert isinstance(model, mv.AR) and model.window == 4
    assert model.fit(make_table(), "y").predict(make_table()).mean.shape == (196,)
    assert found.failed == {} and found.problems == ()


def test_networks_with_settings_of_every_kind(tmp_path: Path) -> None:
    start = mv.MVLSTM(**TINY, calendar="hour", seed=3)
    grid = {"window": [3, 4], "learning_rate": [0.001, 0.01], "calendar": ["none", ["hour"]]}
    found = mv.tune(make_table(), "y", model=start, grid=grid, records=tmp_path)
    assert len(found.ranking) == 8 and found.ranking["valid_rmse"].is_monotonic_increasing
    assert found.ranking["valid_rmse"].nunique() == 8
    model = found.model(members=1)
    assert {name: model.get_params()[name] for name in grid} == found.best
    assert (model.get_params()["seed"], model.get_params()["members"]) == (3, 1)
    assert start.get_params() == mv.MVLSTM(**TINY, calendar="hour", seed=3).get_params()


def test_a_search_continues_from_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"model": mv.AR(verbose=0), "grid": {"window": [2, 4]}}
    first = mv.tune(make_table(), "y", **asked, records=tmp_path)
    monkeypatch.setattr("mvlstm.bench.execution.run_job", lambda *_, **__: pytest.fail("ran again"))
    again = mv.tune(make_table(), "y", **asked, records=tmp_path)
    pd.testing.assert_frame_equal(first.ranking, again.ranking)


def test_a_file_is_as_good_as_its_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    make_table().reset_index().to_csv(path, index=False, sep=";", decimal=",")
    asked: dict[str, Any] = {"model": mv.AR(verbose=0), "grid": {"window": [2, 4]}}
    read = mv.tune(path, "y", time="when", **asked, sep=";", decimal=",")
    given = mv.tune(make_table(), "y", **asked)
    pd.testing.assert_frame_equal(read.ranking, given.ranking)
    assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]  # no records were asked for


def test_the_table_is_cleaned_as_the_model_says() -> None:
    holed = make_table()
    holed.iloc[50:53, 0] = np.nan
    model = mv.AR(missing="drop", gaps="close", verbose=0)
    found = mv.tune(holed, "y", model=model, grid={"window": [2, 4]})
    assert any("Dropped 3 of 200 rows" in note for note in found.notes)
    assert found.model().get_params()["missing"] == "drop"
    with pytest.raises(DataError, match="missing"):
        mv.tune(holed, "y", model=mv.AR(verbose=0), grid={"window": [2]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {"horizon": [1, 2]}}, "names 'horizon', which cannot be searched"),
        ({"grid": {"windw": [1, 2]}}, "choose from window, calibration, "),
        ({"grid": {"window": ["4"]}}, "window the value '4', which is not a number"),
        ({"grid": {"window": []}}, "no list of values for window"),
        ({"grid": {"transform": "log1p"}}, "no list of values for transform"),
        ({"grid": {}}, "The grid is empty"),
        ({"grid": None}, "The paper's grid is for MVLSTM, not for AR"),
        ({"grid": {"window": [4, 500]}}, "too few"),
        ({"measure": "mse"}, "measure='mse'"),
        ({"seeds": 0}, "seeds=0"),
        ({"valid": 0}, "valid=0"),
        ({"target": "z"}, "'z'"),
    ],
)
def test_bad_input(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    asked = {"target": "y", "model": mv.AR(verbose=0), "grid": {"window": [2]}} | changes
    with pytest.raises((ParameterError, DataError), match=message):
        mv.tune(make_table(), **asked, records=tmp_path / "state")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_the_grid_of_the_paper_suits_the_loss() -> None:
    from mvlstm.bench.tune import MEAN_L2, SUMMED_L2, _paper_grid

    assert _paper_grid(mv.MVLSTM())["l2"] == MEAN_L2
    assert _paper_grid(mv.MVLSTM.paper())["l2"] == SUMMED_L2
