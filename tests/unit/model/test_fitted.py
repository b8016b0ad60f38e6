"""A fitted model is one frozen value: whatever is done with it leaves it as it was."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.model.calibration import calibrate
from mvlstm.model.explaining import explain
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import fit
from mvlstm.model.registry import forecaster_class
from mvlstm.model.updating import update
from mvlstm.problem.problem import Problem
from mvlstm.storage import array_bytes
from mvlstm.table.frame import build_frame

SMALL: dict[str, Any] = {"hidden_size": 3, "members": 2, "max_epochs": 2, "device": "cpu"}
SETTINGS: dict[str, dict[str, Any]] = {
    "AR": {"transform": "log1p"},
    "MVLSTM": SMALL | {"horizon": 2, "transform": "log1p"},
    "LSTM": SMALL | {"loss": "nll", "link": "linear"},
    "RETAIN": SMALL,
    "DUAL": SMALL,
    "CLSTM": SMALL | {"penalties": (0.3, 0.03)},
    "GBT": {"grid": "quick", "max_rounds": 5},
    "SeasonalPersistence": {},
}
ROWS, KNOWN = 420, 300


def table() -> pd.DataFrame:
    """Hourly; positive, with a daily cycle, and y follows x of the hour before."""
    rng = np.random.default_rng(0)
    x, z, noise = rng.normal(size=(3, ROWS))
    hour = np.arange(ROWS) % 24
    y = 3 + np.sin(2 * np.pi * hour / 24) + 0.3 * np.r_[0.0, x[:-1]] + 0.1 * noise
    times = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    return pd.DataFrame({"x": x, "z": z, "y": y}, index=times)


def make(name: str) -> Any:
    settings = {"window": 5, "verbose": 0} | SETTINGS[name]
    if name == "SeasonalPersistence":
        settings.pop("window")
    return forecaster_class(name)(**settings)


def fitted(name: str) -> tuple[Any, Fitted, Problem]:
    """Return a forecaster, what a fit to the first rows found, and the problem that it was."""
    model = make(name)
    frame = build_frame(table().iloc[:KNOWN], target="y")
    found, problem = fit(model, frame, test=0.0, valid=0.2)
    return model.holding(found), found, problem


def digest(value: Any) -> str:
    """Return a digest of all arrays and plain values in a tree of them."""
    found = hashlib.blake2b(digest_size=16)
    _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found.update(type(value).__name__.encode())
        for field in dataclasses.fields(value):
            found.update(field.name.encode())
            _add(found, getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        found.update(f"{value.dtype} {value.shape}".encode())
        found.update(repr(value.tolist()).encode() if value.dtype == object else array_bytes(value))
    elif isinstance(value, torch.Tensor):
        _add(found, value.detach().cpu().numpy())
    elif isinstance(value, Mapping):
        for key in value:
            found.update(repr(key).encode())
            _add(found, value[key])
    elif isinstance(value, tuple | list):
        found.update(f"{len(value)}".encode())
        for one in value:
            _add(found, one)
    else:
        assert " at 0x" not in repr(value), f"{type(value)} says nothing of what it holds"
        found.update(repr(value).encode())


def test_the_digest_sees_every_array() -> None:
    _, held, _ = fitted("MVLSTM")
    before = digest(held)
    places = [held.calibration.spread, held.background.windows, held.learned.trained.flat]
    for array in places:
        kept = array.copy()
        array.flat[-1] += 1
        assert digest(held) != before
        array[:] = kept
        assert digest(held) == before


@pytest.mark.parametrize("name", SETTINGS)
def test_nothing_can_be_assigned(name: str) -> None:
    _, held, _ = fitted(name)
    values = [held, held.calibration, held.background, held.learned, held.preparation, held.parts]
    for value in values:
        for field in dataclasses.fields(value):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, field.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.something_new = 1


USES: dict[str, Callable[[Any, Fitted, Problem], Any]] = {
    "predict": lambda model, held, problem: model.predict(table()),
    "forecast": lambda model, held, problem: model.forecast(table()),
    "evaluate": lambda model, held, problem: model.evaluate(table()),
    "evaluate since": lambda model, held, problem: model.evaluate(table(), since="2024-01-15"),
    "explain": lambda model, held, problem: explain(held, table(), effort="quick", contributions=3),
    "update": lambda model, held, problem: update(model, held, table()),
    "calibrate": lambda model, held, problem: calibrate(held.learned, problem),
}


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_uses_leave_it_as_it_was(name: str) -> None:
    model, held, problem = fitted(name)
    before = digest(held)
    for use, call in USES.items():
        call(model, held, problem)
        assert digest(held) == before, use
        assert model.fitted_ is held, use


@pytest.mark.parametrize("refit", ["newest", "full"])
def test_an_update_is_a_new_value(refit: Any) -> None:
    rows, (model, held, _) = table(), fitted("MVLSTM")
    before, scores = model.predict(rows).to_frame(), model.evaluate(rows).scores
    found = update(model, held, rows, refit=refit)
    assert found is not held and len(found.updates) == 1 and held.updates == ()
    assert found.parts.calibration == rows.index[-1]
    pd.testing.assert_frame_equal(model.predict(rows).to_frame(), before)
    pd.testing.assert_frame_equal(model.evaluate(rows).scores, scores)
    later = model.holding(found)
    assert (later.predict(rows).part != "new").all()
    pd.testing.assert_frame_equal(model.predict(rows).to_frame(), before)


def test_the_estimators_update_holds_the_new_value(tmp_path: Any) -> None:
    rows, (model, held, _) = table(), fitted("AR")
    before = model.predict(rows).to_frame()
    assert model.update(rows) is model
    assert model.fitted_ is not held and model.updates_ == model.fitted_.updates
    pd.testing.assert_frame_equal(model.holding(held).predict(rows).to_frame(), before)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    pd.testing.assert_frame_equal(
        again.predict(rows).to_frame(), model.predict(rows).to_frame(), check_exact=True
    )


def test_something_else_learned_leaves_the_rest() -> None:
    _, held, problem = fitted("AR")
    learned = make("AR").learn(problem)
    found = held.with_learned(learned)
    assert found.learned is learned and held.learned is not learned
    for field in dataclasses.fields(Fitted):
        if field.name != "learned":
            assert getattr(found, field.name) is getattr(held, field.name)


@pytest.mark.parametrize("name", ["AR", "MVLSTM"])
def test_it_forecasts_as_its_forecaster_does(name: str) -> None:
    model, held, _ = fitted(name)
    prepared = held.prepare(held.read(table(), "predict"))
    origins = held.origins(prepared, "predict")
    found = held.forecast(prepared, origins)
    pd.testing.assert_frame_equal(found.to_frame(), model.predict(table()).to_frame())
    labels = held.predict(prepared, origins)
    if held.preparation.transform:
        mixture = labels.with_spread(held.calibration.spread).widened(held.calibration.factors)
        scaled = prepared.scale(origins, held.horizon).mixture(mixture)
        for one, other in zip(
            scaled.joined, (found.weights, found.means, found.variances), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_fewer_steps_are_the_first_ones_and_more_are_refused() -> None:
    model, _, _ = fitted("MVLSTM")
    whole, one = model.forecast(table()), model.forecast(table(), steps=1)
    assert (whole.horizon, one.horizon) == (2, 1)
    pd.testing.assert_frame_equal(
        one.to_frame([0.1]), whole.to_frame([0.1]).iloc[:1], check_freq=False
    )
    with pytest.raises(ParameterError, match=r"steps=3 .* the 2 steps .* fit with horizon=3"):
        model.forecast(table(), steps=3)
    with pytest.raises(ParameterError, match="steps=0 must be a whole number"):
        model.forecast(table(), steps=0)
