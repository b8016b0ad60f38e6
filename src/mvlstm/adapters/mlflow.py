"""Models in MLflow: logged with scores and report, loaded as ``pyfunc``; no pickle anywhere.

Install with ``pip install mvlstm[mlflow]``. A logged model is the package's own model file, which
MLflow finds by the loader named here.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

try:
    import mlflow
    from mlflow import pyfunc
    from mlflow.models import Model, ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec
except ImportError as error:
    raise ImportError("This adapter needs MLflow: pip install mvlstm[mlflow].") from error

from mvlstm._version import __version__
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.loading import load
from mvlstm.table.kinds import as_pandas

__all__ = ["load_model", "log_model", "save_model"]

FILE, FLAVOUR = "model.safetensors", "mvlstm"
Logged = Any  # mlflow's ModelInfo


def save_model(
    model: AbstractForecaster, path: str | Path, *, mlflow_model: Model | None = None
) -> None:
    """Write a fitted model as a folder that MLflow loads.

    Parameters
    ----------
    model : forecaster
    path : str or Path
        A new folder.
    mlflow_model : mlflow.models.Model, optional
        What MLflow knows of it, when it calls this function itself.
    """
    if not isinstance(model, AbstractForecaster):
        raise ParameterError(
            f"model is a {type(model).__name__}; pass a fitted forecaster of mvlstm."
        )
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"'{folder}' exists and is not empty. Choose a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / FILE)
    described = Model() if mlflow_model is None else mlflow_model
    described.add_flavor(FLAVOUR, data=FILE, version=__version__, method=type(model).__name__)
    pyfunc.add_to_model(
        described, loader_module=__name__, data=FILE, pip_requirements=[f"mvlstm=={__version__}"]
    )
    described.signature = ModelSignature(
        params=ParamSchema(
            [
                ParamSpec("steps", DataType.long, int(model.horizon)),
                ParamSpec("quantiles", DataType.double, [0.05, 0.95], shape=(-1,)),
            ]
        )
    )
    described.save(str(folder / "MLmodel"))


def log_model(
    model: AbstractForecaster,
    table: Any = None,
    *,
    name: str = "model",
    registered_model_name: str | None = None,
    report: bool = True,
) -> Logged:
    """Log a fitted model to the active run, with its settings and, from a table, scores and report.

    Parameters
    ----------
    model : forecaster
    table : DataFrame or path, optional
        Rows to score: the metrics are those of `evaluate`, and the artefacts are ``scores.json``
        and ``report.html``.
    name : str
        Of the model in MLflow.
    registered_model_name : str, optional
        Register it under this name too.
    report : bool
        Whether to make the report, which takes longest.

    Returns
    -------
    ModelInfo
        Of MLflow; its ``model_uri`` is what `load_model` takes.
    """
    if not isinstance(model, AbstractForecaster):
        raise ParameterError(
            f"model is a {type(model).__name__}; pass a fitted forecaster of mvlstm."
        )
    settings = {key: value for key, value in model.get_params().items() if key != "verbose"}
    with _run():
        mlflow.log_params({"method": type(model).__name__, **settings})
        if table is not None:
            _log_scores(model, as_pandas(table), report=report)
        return Model.log(
            artifact_path=None,
            name=name,
            flavor=sys.modules[__name__],
            model=model,
            registered_model_name=registered_model_name,
        )


def load_model(model_uri: str) -> AbstractForecaster:
    """Return a logged or saved model as a forecaster, with `explain`, `update` and the rest."""
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
    file = folder / FILE
    if not file.exists():
        raise DataError(
            f"'{model_uri}' holds no model of mvlstm. Load what mvlstm.adapters.mlflow logged."
        )
    return load(file)


def _load_pyfunc(path: str) -> _Forecasting:
    """Return what `mlflow.pyfunc.load_model` wraps; MLflow calls this."""
    return _Forecasting(load(path))


class _Forecasting:
    """A model whose ``predict`` is the forecast after the last row, as a table."""

    def __init__(self, model: AbstractForecaster) -> None:
        self.model = model

    def predict(
        self, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Forecast the steps after a table's last row.

        ``params`` may hold ``steps`` and ``quantiles``.
        """
        given = dict(params or {})
        quantiles = given.pop("quantiles", ())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MVLSTMWarning)  # a server has nobody to warn
            return self.model.forecast(model_input, **given).to_pandas(quantiles)


def _run() -> Any:
    """Return the active run, or one for this call."""
    return mlflow.start_run() if mlflow.active_run() is None else contextlib.nullcontext()


def _log_scores(model: AbstractForecaster, table: pd.DataFrame, *, report: bool) -> None:
    scored = model.evaluate(table)
    row = scored.scores.iloc[0]
    mlflow.log_metrics({key: float(value) for key, value in row.items() if value == value})
    mlflow.log_dict(scored.to_dict(), "scores.json")
    if report:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            model.report(table, path, effort="quick")
            mlflow.log_artifact(str(path))
