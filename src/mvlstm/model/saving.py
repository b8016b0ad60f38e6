"""Models as files: one safetensors file, arrays plus a JSON header. Nothing is ever unpickled."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mvlstm._version import __version__
from mvlstm.errors import MissingExtraError, ModelFileError, MVLSTMError, ParameterError
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import FORECASTERS, forecaster_class, is_registered
from mvlstm.problem.part_times import Borders
from mvlstm.problem.preparation import Preparation
from mvlstm.results import History
from mvlstm.results.reference import Reference
from mvlstm.results.update import Update
from mvlstm.storage import pack, unpack, write_atomic
from mvlstm.table.frame import Layout

SCHEMA = 1
KIND = "mvlstm"


def save(model: AbstractForecaster, path: str | Path) -> None:
    """Write a fitted model to ``path``, whole or not at all."""
    name = type(model).__name__
    if not is_registered(type(model)):
        raise ParameterError(
            f"{name} is no forecaster of mvlstm, and mvlstm.load could not read it back. Keep it "
            "with pickle, and load that file where the class is at hand."
        )
    arrays, extra = model._weights()
    header = {
        "schema": SCHEMA,
        "class": name,
        "parameters": model.get_params(deep=False),
        "layout": model.layout_.to_dict(),
        "preparation": model.preparation_.to_dict(),
        "borders": model.borders_.to_dict(),
        "history": model.history_.to_dict(),
        "notes": list(model.notes_),
        "fit_seconds": model.fit_seconds_,
        "n_train": model.n_train_,
        "mean_factor": model.mean_factor_.tolist(),
        "reference": None if model.reference_ is None else model.reference_.to_dict(),
        "updates": [update.to_dict() for update in model.updates_],
        "versions": versions(),
        "extra": extra,
    }
    common = {
        "spread": model.spread_,
        "calibration": model.calibration_,
        "persistence": model.persistence_,
        "background": model.background_,
        "background_baseline": model.background_baseline_,
    }
    named = {
        **{f"common.{name}": array for name, array in common.items()},
        **{f"model.{name}": array for name, array in arrays.items()},
    }
    write_atomic(path, pack(KIND, header, named))


def load(path: str | Path) -> AbstractForecaster:
    """Read a model written by ``model.save(path)``. No code in the file is run.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model of mvlstm, or of a newer version.
    """
    path = Path(path)
    header, arrays = unpack(path, KIND, "model of mvlstm")
    schema = header.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise ModelFileError(
            f"'{path}' has schema {schema!r}; this version of mvlstm ({__version__}) reads schema "
            f"{SCHEMA}. Install a newer mvlstm, or save the model again."
        )
    try:
        return _build(header, arrays)
    except MissingExtraError:
        raise
    except MVLSTMError as error:
        raise ModelFileError(f"'{path}' cannot be loaded: {error}") from error
    except (
        *(KeyError, IndexError, TypeError, ValueError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        raise ModelFileError(
            f"'{path}' cannot be loaded: its header is damaged ({type(error).__name__}: {error})."
        ) from error


def _build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> AbstractForecaster:
    name = header["class"]
    if not isinstance(name, str) or name not in FORECASTERS:
        raise ModelFileError(f"it holds a {name!r}, which this version of mvlstm does not know.")
    parameters = {
        key: tuple(value) if isinstance(value, list) else value  # JSON knows no tuples
        for key, value in header["parameters"].items()
    }
    if name == "MVLSTM":
        parameters.setdefault("finish", 0.0)  # files of before it was an argument
    model = forecaster_class(name)(**parameters)
    model._check_parameters()
    model.layout_, model.settings_ = Layout.from_dict(header["layout"]), model.get_params()
    _check_sizes(model, arrays)
    model.preparation_ = Preparation.from_dict(header["preparation"], model.layout_)
    if len(model.preparation_.orders) != len(model.layout_.inputs):
        raise ModelFileError("its scaling does not fit its columns.")
    model.borders_ = Borders.from_dict(header["borders"])
    model.borders_.check(model.layout_)
    model.history_ = _history(header["history"])
    model.notes_ = tuple(str(note) for note in header["notes"])
    model.fit_seconds_ = finite_number(header, "fit_seconds")
    model.n_train_ = _windows(header.get("n_train"))
    model.mean_factor_ = _factors(header.get("mean_factor", [1.0] * model.horizon), model.horizon)
    reference = header.get("reference")
    model.reference_ = None if reference is None else Reference.from_dict(reference)
    model.updates_ = tuple(Update.from_dict(one) for one in header.get("updates", ()))
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"its array '{key}' holds values that are not finite.")
    common = {k.removeprefix("common."): v for k, v in arrays.items() if k.startswith("common.")}
    own = {k.removeprefix("model."): v for k, v in arrays.items() if k.startswith("model.")}
    H = model.horizon
    model.spread_ = take_array(common, "spread", (_members(model), H), np.float64)
    model.calibration_ = take_array(common, "calibration", (H,), np.float64)
    model.persistence_ = take_array(common, "persistence", (H,), np.float64)
    shape = (None, model.window, len(model.layout_.inputs))
    model.background_ = take_array(common, "background", shape, model.table_dtype)
    model.background_baseline_ = take_array(
        common, "background_baseline", (len(model.background_), H), np.float64
    )
    model._set_weights(own, header["extra"])
    unknown = [*common, *own]
    if unknown or len(arrays) != sum(k.startswith(("common.", "model.")) for k in arrays):
        raise ModelFileError(f"it holds arrays this model does not have: {sorted(arrays)}.")
    return model


def _factors(values: Any, horizon: int) -> NDArray[np.float64]:
    factors = np.asarray(values, dtype=np.float64)
    if factors.shape != (horizon,) or not ((factors >= 0) & np.isfinite(factors)).all():
        raise ModelFileError(f"its factors of the mean's correction are {values!r}.")
    return factors


def _windows(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ModelFileError(f"its number of training windows is {value!r}.")
    return value


def _members(model: AbstractForecaster) -> int:
    return int(getattr(model, "members", 1)) if model.ensemble else 1


def _history(values: dict[str, Any]) -> History:
    """Build the history of training, if its parts agree."""
    try:
        history = History.from_dict(values)
    except AssertionError as error:
        raise ModelFileError(f"its history is damaged: {error}.") from error
    epochs = history.train_loss.shape[1]
    if ((history.best_epoch < 0) | (history.best_epoch > epochs)).any():
        raise ModelFileError(f"its history names best epochs beyond the {epochs} trained.")
    judged = np.isfinite(history.valid_rmse).cumsum(axis=1)  # (K, E)
    for k in np.flatnonzero(history.lowered):
        if not (0 < history.lowered[k] <= epochs and judged[k, history.lowered[k] - 1]):
            raise ModelFileError(f"its history lowers the rate of member {k} before it was judged.")
    return history


def _check_sizes(model: AbstractForecaster, arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse parameters that no file of this size can hold, before a network is laid out."""
    numbers = sum(array.size for array in arrays.values())
    columns = len(model.layout_.names)
    for name in ("window", "horizon", "layers", "members", "hidden_size"):
        value = getattr(model, name, 1)
        units = value * columns if name == "hidden_size" else value
        if isinstance(value, int) and units > numbers:
            raise ModelFileError(f"its {name}={value} does not fit the {numbers:,} numbers in it.")


def take_array(
    arrays: dict[str, NDArray[Any]],
    name: str,
    shape: tuple[int | None, ...],
    dtype: DTypeLike,
) -> NDArray[Any]:
    """Remove an array from ``arrays`` and return it, if shape and type are as they must be.

    A None in ``shape`` leaves that length open.
    """
    if name not in arrays:
        raise ModelFileError(f"its array '{name}' is missing.")
    array = arrays.pop(name)
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != np.dtype(dtype):
        raise ModelFileError(
            f"its array '{name}' is {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}."
        )
    return array


def finite_number(values: Mapping[str, Any], name: str) -> float:
    """Return a finite number of the header."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ModelFileError(f"its '{name}' is {value!r}, not a finite number.")
    return float(value)


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
