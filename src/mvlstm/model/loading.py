"""Models from files: every shape and number is checked, and nothing is ever unpickled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm._version import __version__
from mvlstm.errors import MissingExtraError, ModelFileError, MVLSTMError
from mvlstm.model.calibration import Calibration
from mvlstm.model.fitted import Background, Fitted
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Saved, Stored, finite_number, take_array
from mvlstm.model.registry import FORECASTERS, forecaster_class
from mvlstm.model.saving import KIND, SCHEMA
from mvlstm.model.window_choice import sized
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.preparation import Preparation
from mvlstm.recalibration import LEVELS
from mvlstm.results import History
from mvlstm.results.reference import Reference
from mvlstm.results.update import Update
from mvlstm.storage import Packed, Unread
from mvlstm.table.layout import Layout


def load(path: str | Path) -> AbstractForecaster:
    """Read a model written by ``model.save(path)``. No code in the file is run.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model of mvlstm, or of a newer version.
    """
    packed = Packed.open(Path(path), KIND, "model of mvlstm")
    schema = packed.header.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise ModelFileError(
            f"'{path}' has schema {schema!r}; this version of mvlstm ({__version__}) reads schema "
            f"{SCHEMA}. Install a newer mvlstm, or save the model again."
        )
    try:
        model, layout = _declared(packed.header, packed.shapes)
        loaded = _build(packed.header, packed.unread(), model, layout)
        packed.check()
        return loaded
    except MissingExtraError:
        raise
    except MVLSTMError as error:
        if f"'{path}'" in str(error):
            raise
        raise ModelFileError(f"'{path}' cannot be loaded: {error}") from error
    except (
        *(KeyError, IndexError, TypeError, ValueError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        raise ModelFileError(
            f"'{path}' cannot be loaded: its header is damaged ({type(error).__name__}: {error})."
        ) from error


def _declared(
    header: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[AbstractForecaster, Layout]:
    """Return the model without what it learned, if its arrays may belong to it.

    Nothing has been read of these but their shapes; none is larger than such a model can need.
    """
    name = header["class"]
    if not isinstance(name, str) or name not in FORECASTERS:
        raise ModelFileError(f"it holds a {name!r}, which this version of mvlstm does not know.")
    parameters = {
        key: tuple(value) if isinstance(value, list) else value  # JSON knows no tuples
        for key, value in header["parameters"].items()
    }
    parameters.setdefault("calibration", "static")  # files of before it was an argument
    if name == "MVLSTM":
        parameters = {"finish": 0.0, "schedule": "constant"} | parameters  # as in older files
    if name in ("STRX", "ARIMAX"):  # files of when each window could have a model of its own
        gone = ("mode", "windows", "seed")
        parameters = {key: value for key, value in parameters.items() if key not in gone}
    model: AbstractForecaster = forecaster_class(name)(**parameters)
    model.check()
    model = sized(model, _count(header, "window") or 0)
    model.check()
    layout = Layout.from_dict(header["layout"])
    if not all(name.startswith(("common.", "model.")) for name in shapes):
        raise ModelFileError(f"it holds arrays this model does not have: {sorted(shapes)}.")
    numbers = sum(math.prod(shape) for shape in shapes.values())
    _check_sizes(model, layout, numbers)
    most = model.most_numbers(layout)
    if numbers > most:
        raise ModelFileError(
            f"its arrays hold {numbers:,} numbers; a model of these settings has {most:,} at most."
        )
    return model, layout


def _build(
    header: dict[str, Any], arrays: Mapping[str, Unread], model: AbstractForecaster, layout: Layout
) -> AbstractForecaster:
    """Build the model; each array is read when its name, shape and type were found to be right."""
    preparation = Preparation.from_dict(header["preparation"], layout)
    if len(preparation.orders) != len(layout.inputs):
        raise ModelFileError("its scaling does not fit its columns.")
    if preparation.ahead not in (0, model.horizon):
        raise ModelFileError(f"its rows ahead are {preparation.ahead}, not its horizon.")
    parts = PartTimes.from_dict(header["borders"])
    parts.check(layout)
    common = {k.removeprefix("common."): v for k, v in arrays.items() if k.startswith("common.")}
    own = {k.removeprefix("model."): v for k, v in arrays.items() if k.startswith("model.")}
    H, shape = model.horizon, (None, int(model.window), len(layout.inputs))
    reference = header.get("reference")
    calibration = Calibration(
        spread=take_array(common, "spread", (_members(model), H), np.float64),
        factors=take_array(common, "calibration", (H,), np.float64),
        persistence=take_array(common, "persistence", (H,), np.float64),
        mean_factor=_factors(header.get("mean_factor", [1.0] * H), H),
        reference=None if reference is None else Reference.from_dict(reference),
        dependence=_dependence(common, H),
        rows=_count(header, "calibration_rows"),
        shared=_share(header.get("shared", 1.0)),
        shape=_shape(common, "shape", H),
        persistence_shape=_shape(common, "persistence_shape", H),
    )
    windows = take_array(common, "background", shape, model.precision)
    baseline = take_array(common, "background_baseline", (len(windows), H), np.float64)
    learned = model.restore(Saved(own, header["extra"], layout, preparation))
    unknown = [*common, *own]
    if unknown:
        raise ModelFileError(f"it holds arrays this model does not have: {sorted(arrays)}.")
    fitted = Fitted(
        name=type(model).__name__,
        window=int(model.window),
        horizon=int(H),
        layout=layout,
        preparation=preparation,
        parts=parts,
        learned=learned,
        calibration=calibration,
        background=Background(windows, baseline),
        history=_history(header["history"]),
        notes=tuple(str(note) for note in header["notes"]),
        n_train=_count(header, "n_train"),
        seconds=finite_number(header, "fit_seconds"),
        updates=tuple(Update.from_dict(one) for one in header.get("updates", ())),
        dtype=model.precision,
        adaptive=model.calibration == "adaptive",
    )
    asked = {"window": "auto"} if header["parameters"]["window"] == "auto" else {}
    return model.holding(fitted, **asked)


def _factors(values: Any, horizon: int) -> NDArray[np.float64]:
    factors = np.asarray(values, dtype=np.float64)
    if factors.shape != (horizon,) or not ((factors >= 0) & np.isfinite(factors)).all():
        raise ModelFileError(f"its factors of the mean's correction are {values!r}.")
    return factors


def _dependence(common: Stored, horizon: int) -> NDArray[np.float64] | None:
    """Take the correlation of the steps, which files of before it was learned do not have."""
    if "dependence" not in common:
        return None
    found = take_array(common, "dependence", (horizon, horizon), np.float64)
    if not np.array_equal(found, found.T) or np.linalg.eigvalsh(found).min() <= 0:
        raise ModelFileError("its array of the steps' dependence is not a correlation matrix.")
    return found


def _shape(common: Stored, name: str, horizon: int) -> NDArray[np.float64] | None:
    """Take the shape of distributions, which files of before it was found do not have."""
    if name not in common:
        return None
    found = take_array(common, name, (horizon, len(LEVELS)), np.float64)
    if not (np.diff(found, axis=1) >= 0).all():
        raise ModelFileError(f"its array '{name}' of distributions does not rise.")
    return found


def _share(value: Any) -> float:
    """Return what errors of several series have in common, which old files do not say."""
    if type(value) not in (int, float) or not 0.0 <= value <= 1.0:
        raise ModelFileError(f"its share that series have in common is {value!r}.")
    return float(value)


def _count(header: Mapping[str, Any], name: str) -> int | None:
    """Return a number of windows, which files of before it was kept do not have."""
    value = header.get(name)
    if value is not None and (type(value) is not int or value < 1):
        raise ModelFileError(f"its '{name}' is {value!r}, not a number of windows.")
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


def _check_sizes(model: AbstractForecaster, layout: Layout, numbers: int) -> None:
    """Refuse parameters that no file of this size can hold, before a network is laid out."""
    columns = len(layout.names)
    for name in ("window", "horizon", "layers", "members", "hidden_size"):
        value = getattr(model, name, 1)
        if isinstance(value, int) and value * (columns if name == "hidden_size" else 1) > numbers:
            raise ModelFileError(f"its {name}={value} does not fit the {numbers:,} numbers in it.")
