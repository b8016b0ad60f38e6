"""Models go into a local MLflow store and come back."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.adapters import mlflow as adapter
from mvlstm.errors import DataError, NotFittedError, ParameterError

TABLE = mv.datasets.load("synthetic", n=300).frame


def fitted() -> mv.AR:
    return mv.AR(window=3, horizon=2, verbose=0).fit(TABLE, "y", test=0.2)


def test_log_and_load() -> None:
    model = fitted()
    with mlflow.start_run() as run:
        info = adapter.log_model(model, TABLE)
    found = mlflow.get_run(run.info.run_id).data
    assert found.params["method"] == "AR" and found.params["window"] == "3"
    scores = model.evaluate(TABLE).scores.loc["AR"]
    assert found.metrics["rmse"] == pytest.approx(scores["rmse"])
    names = {one.path for one in mlflow.artifacts.list_artifacts(run_id=run.info.run_id)}
    assert {"report.html", "scores.json"} <= names
    served = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(served.predict(TABLE), model.forecast(TABLE).to_frame())
    one = served.predict(TABLE, params={"steps": 1, "quantiles": [0.1]})
    assert len(one) == 1 and "q10" in one
    own = adapter.load_model(info.model_uri)
    assert own.get_params() == model.get_params()
    assert list(own.predict(TABLE).mean) == list(model.predict(TABLE).mean)


def test_saved_models_hold_no_pickle(tmp_path: Path) -> None:
    adapter.save_model(fitted(), tmp_path / "saved")
    files = {one.name for one in (tmp_path / "saved").iterdir()}
    assert files == {"MLmodel", "model.safetensors"} | files & {"requirements.txt"}
    assert len(mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(TABLE)) == 2


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        adapter.log_model(mv.AR())
    with pytest.raises(ParameterError, match="model is a DataFrame"):
        adapter.log_model(TABLE)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(DataError, match=r"is not empty\. Choose a new folder"):
        adapter.save_model(fitted(), tmp_path / "full")
    with pytest.raises(DataError, match="holds no model of mvlstm"):
        adapter.load_model(str(tmp_path / "full"))
