"""Models as files: one safetensors file, arrays plus a JSON header."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

from mvlstm._version import __version__
from mvlstm.errors import ParameterError
from mvlstm.model.fitted import Fitted
from mvlstm.model.method import AbstractMethod
from mvlstm.model.registry import is_registered
from mvlstm.storage import pack, write_atomic

SCHEMA = 1
KIND = "mvlstm"


def save(model: AbstractMethod, fitted: Fitted, path: str | Path) -> None:
    """Write a fitted model to ``path``, whole or not at all."""
    if not is_registered(type(model)):
        raise ParameterError(
            f"{fitted.name} is not a forecaster of mvlstm, and mvlstm.load could not read it back. "
            "Keep it with pickle, and load that file where the class is at hand."
        )
    arrays, extra = fitted.learned.arrays()
    calibration = fitted.calibration
    header = {
        "schema": SCHEMA,
        "class": fitted.name,
        "parameters": model.get_params(deep=False),
        "layout": fitted.layout.to_dict(),
        "preparation": fitted.preparation.to_dict(),
        "borders": fitted.parts.to_dict(),
        "history": fitted.history.to_dict(),
        "notes": list(fitted.notes),
        "fit_seconds": fitted.seconds,
        "n_train": fitted.n_train,
        "window": fitted.window,
        "mean_factor": calibration.mean_factor.tolist(),
        "calibration_rows": calibration.rows,
        "shared": calibration.shared,
        "reference": None if calibration.reference is None else calibration.reference.to_dict(),
        "updates": [update.to_dict() for update in fitted.updates],
        "versions": versions(),
        "extra": extra,
    }
    common = {
        "spread": calibration.spread,
        "calibration": calibration.factors,
        "persistence": calibration.persistence,
        "background": fitted.background.windows,
        "background_baseline": fitted.background.baseline,
    }
    if calibration.dependence is not None:
        common["dependence"] = calibration.dependence
    if calibration.shape is not None:
        common["shape"] = calibration.shape
    if calibration.persistence_shape is not None:
        common["persistence_shape"] = calibration.persistence_shape
    named = {
        **{f"common.{name}": array for name, array in common.items()},
        **{f"model.{name}": array for name, array in arrays.items()},
    }
    write_atomic(path, pack(KIND, header, named))


def versions() -> dict[str, str]:
    """Return the versions a result was made with."""
    import pandas as pd
    import sklearn
    import torch

    return {
        "mvlstm": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "scikit-learn": sklearn.__version__,
    }
