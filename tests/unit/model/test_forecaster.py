"""The estimator around a fitted model: settings changed since, fits that fail, what it holds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, NotFittedError, ParameterError


@pytest.fixture(scope="module")
def table():
    return mv.datasets.load("synthetic", n=300).frame


@pytest.fixture
def model(table):
    made = mv.MVLSTM(window=5, hidden_size=3, members=2, max_epochs=1, verbose=0)
    return made.fit(table, "y", test=0.2)


@pytest.mark.parametrize(
    "change",
    [{"window": 7}, {"horizon": 3}, {"members": 5}, {"link": "none"}, {"max_epochs": 9}],
)
def test_a_setting_changed_after_fit_is_named(model, table, tmp_path, change) -> None:
    (name,) = change
    before = model.get_params()[name]
    model.set_params(**change)
    for use in (model.predict, model.forecast, model.evaluate, model.explain, model.update):
        with pytest.raises(ParameterError, match=f"{name}=.* was set after fit"):
            use(table)
    with pytest.raises(ParameterError, match=name):
        model.save(tmp_path / "m.safetensors")
    assert not (tmp_path / "m.safetensors").exists()
    model.set_params(**{name: before}).predict(table)


def test_what_does_not_matter_may_change_and_a_new_fit_takes_the_rest(
    model, table, tmp_path
) -> None:
    model.set_params(verbose=1, device="cpu").save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(table).members, model.predict(table).members)
    with pytest.raises(ParameterError, match="window=9"):
        again.set_params(window=9).predict(table)
    model.set_params(window=7, verbose=0).fit(table, "y", test=0.2)
    assert len(model.predict(table).mean) == len(table) - 7


@pytest.mark.parametrize(
    "model",
    [
        mv.AR(window=5, calendar=np.array(["hour", "weekday"])),
        mv.CLSTM(
            window=5, hidden_size=2, members=1, max_epochs=1, verbose=0, penalties=np.array([0.3])
        ),
    ],
)
def test_a_setting_may_be_an_array(model, table, tmp_path) -> None:
    rows = table.set_index(pd.date_range("2024-01-01", periods=len(table), freq="h"))
    model.fit(rows, "y", test=0.2).save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(rows).members, model.predict(rows).members)


@pytest.mark.parametrize(
    "model, match",
    [
        (mv.XGT(window=5, learning_rate="0.1"), "learning_rate='0.1' must be above 0"),
        (mv.ARIMAX(window=5, order=5), "order=5 must be three whole numbers"),
        (mv.CLSTM(window=5, penalties=0.3), "penalties=0.3 must be one or more numbers"),
        (mv.CLSTM(window=5, penalties=["a"]), "penalties=.* must be one or more numbers"),
        (mv.RF(window=5, n_jobs=0), "n_jobs=0 must be"),
        (mv.MVLSTM(window=5, device="meta"), "device='meta' is not a device"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(model, table, match) -> None:
    with pytest.raises(ParameterError, match=match):
        model.fit(table, "y", test=0.2)


# ------------------------------------------------------------------------------- what it holds


def test_a_fit_that_fails_keeps_what_there_was(model, table, monkeypatch) -> None:
    held, settings, before = model.fitted_, model.settings_, model.predict(table).to_frame()

    def fails(self, problem):
        raise error

    for error in (ParameterError("too large"), DataError("no rows"), KeyboardInterrupt()):
        with monkeypatch.context() as patch, pytest.raises(type(error)):
            patch.setattr(type(model), "learn", fails)
            model.fit(3 * table, "y")
        assert model.fitted_ is held and model.settings_ is settings
    with pytest.raises(DataError):
        model.fit(table.iloc[:4], "y")
    with pytest.raises(DataError):
        model.fit(table, "no such column")
    assert model.fitted_ is held
    pd.testing.assert_frame_equal(model.predict(table).to_frame(), before)


def test_a_fit_whose_calibration_fails_keeps_what_there_was(model, table, monkeypatch) -> None:
    held = model.fitted_

    def fails(learned, problem):
        raise RuntimeError("power cut")

    monkeypatch.setattr("mvlstm.model.fitting.calibrate", fails)
    with pytest.raises(RuntimeError):
        model.fit(3 * table, "y")
    assert model.fitted_ is held


def test_a_first_fit_that_fails_leaves_nothing(table, monkeypatch) -> None:
    def fails(self, problem):
        raise ParameterError("too large")

    monkeypatch.setattr(mv.AR, "learn", fails)
    model = mv.AR(window=4, verbose=0)
    with pytest.raises(ParameterError):
        model.fit(table, "y")
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError, match="AR is not fitted; call fit"):
        model.predict(table)


@pytest.mark.parametrize("name", ["history_", "notes_", "updates_", "stopped_", "fit_seconds_"])
def test_what_a_fit_found_is_read_from_the_fitted_model(model, name) -> None:
    field = {"fit_seconds_": "seconds"}.get(name, name.removesuffix("_"))
    assert getattr(model, name) is getattr(model.fitted_, field)
    with pytest.raises(AttributeError):
        setattr(model, name, None)
    with pytest.raises(NotFittedError, match=f"call fit\\(\\) before asking for {name}\\.$"):
        getattr(mv.MVLSTM(), name)
    assert not hasattr(mv.MVLSTM(), name)
    found = getattr(model, name)
    assert getattr(model.set_params(window=9), name) is found  # it is of the fit all the same


def test_another_forecaster_may_hold_the_fitted_model(model, table) -> None:
    other = model.holding(model.fitted_, max_epochs=7)
    assert other is not model and other.fitted_ is model.fitted_
    assert (other.max_epochs, model.max_epochs) == (7, 1)
    np.testing.assert_array_equal(other.predict(table).members, model.predict(table).members)
    other.fit(3 * table, "y", test=0.2)
    assert other.fitted_ is not model.fitted_


def test_a_clone_holds_nothing(model, table) -> None:
    from sklearn.base import clone

    with pytest.raises(NotFittedError):
        clone(model).predict(table)


@pytest.mark.parametrize("kind", [mv.AR, mv.MVLSTM, mv.GBT])
def test_a_copy_or_a_pickle_forecasts_the_same(kind, table) -> None:
    small = {"hidden_size": 3, "members": 2, "max_epochs": 1} if kind is mv.MVLSTM else {}
    small |= {"grid": "quick", "max_rounds": 3} if kind is mv.GBT else {}
    model = kind(window=4, verbose=0, **small).fit(table, "y", test=0.2)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(table).members, model.predict(table).members)


def test_warnings_are_of_the_line_that_asked(model, table) -> None:
    far = table.copy()
    far.iloc[-3:] = 1e3
    for use in (model.predict, model.forecast, model.evaluate):
        with pytest.warns(mv.MVLSTMWarning) as caught:
            use(far)
        assert {one.filename for one in caught} == {__file__}
