"""`check_forecaster`: the contract of a forecaster as a list of checks."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mvlstm.datasets.synthetic import synthetic
from mvlstm.errors import DataError, MVLSTMError, MVLSTMWarning, NotFittedError, ParameterError
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.loading import load
from mvlstm.model.registry import is_registered

Check = Callable[[AbstractForecaster], None]
TARGET = "y"


def check_forecaster(model: AbstractForecaster) -> None:
    """Raise `AssertionError` if a forecaster breaks the contract.

    ``model`` is an unfitted forecaster with settings that train within a second or two. It is
    cloned for each check and left as it was. It may be of a class of one's own, whose models
    ``mvlstm.load`` cannot read back: ``save`` must then refuse.

    Examples
    --------
    >>> from mvlstm import Persistence
    >>> check_forecaster(Persistence(window=5))
    """
    for check in CHECKS:
        check(clone(model))


def example_table(n_rows: int = 240) -> pd.DataFrame:
    """Return a small hourly table with a target ``y`` for the checks."""
    table = synthetic(n=n_rows, seed=0)[0]
    table = table[["x2", "x3", TARGET]].copy()
    table.index = pd.date_range("2024-01-01", periods=n_rows, freq="h", name="time")
    return table


def _must_raise(
    error: type[MVLSTMError], what: str, call: Callable[..., object], *arguments: object
) -> None:
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{what} must raise {error.__name__}")


def fitted(model: AbstractForecaster, table: pd.DataFrame) -> AbstractForecaster:
    """Fit with a test part left unseen."""
    return model.fit(table, target=TARGET, test=0.2, valid=0.2)


def check_parameters_survive(model: AbstractForecaster) -> None:
    """Check that fit returns self, changes no parameter and keeps no reference to the table."""
    before = model.get_params(deep=False)
    table = example_table()
    assert fitted(model, table) is model, "fit must return self"
    after = model.get_params(deep=False)
    assert before == after, f"fit changed parameters: {before} became {after}"
    kept = [name for name, value in vars(model).items() if value is table]
    assert not kept, f"fit kept the table as {kept}"


def check_input_is_unchanged(model: AbstractForecaster) -> None:
    """Check that no method changes the table it is given."""
    table = example_table()
    copy = table.copy(deep=True)
    fitted(model, table)
    model.predict(table)
    model.forecast(table)
    model.evaluate(table)
    pd.testing.assert_frame_equal(table, copy)


def check_unfitted_raises(model: AbstractForecaster) -> None:
    """Check that asking an unfitted model raises `NotFittedError`."""
    for method in (model.predict, model.forecast, model.evaluate, model.explain):
        what = f"{method.__name__}() of an unfitted model"
        _must_raise(NotFittedError, what, method, example_table())


def check_refit_repeats(model: AbstractForecaster) -> None:
    """Check that a clone, and a second fit, on the same table give the same forecasts."""
    table = example_table()
    first = fitted(clone(model), table).predict(table).mean
    other = fitted(model, table)
    pd.testing.assert_series_equal(other.predict(table).mean, first, check_exact=True)
    pd.testing.assert_series_equal(fitted(other, table).predict(table).mean, first)


def check_index(model: AbstractForecaster) -> None:
    """Check that predictions are for the rows after the first window, in order, by part."""
    table = example_table()
    forecast = fitted(model, table).predict(table)
    frame = forecast.to_frame()
    if model.horizon == 1:
        expected = table.index[model.window :]
        assert list(forecast.mean.index) == list(expected), "index must be table.index[window:]"
        np.testing.assert_array_equal(forecast.actual[:, 0], table[TARGET][model.window :])
    columns = ["origin", "step", "time", "mean", "median", "q05", "q95", "part"]
    assert list(frame.columns[: len(columns)]) == columns, list(frame.columns)
    assert set(frame["part"]) == {"train", "validation", "new"}, set(frame["part"])
    assert (frame["q05"] <= frame["median"]).all() and (frame["median"] <= frame["q95"]).all()
    assert np.isfinite(frame[["mean", "median", "q05", "q95"]].to_numpy()).all()


def check_forecast_goes_on(model: AbstractForecaster) -> None:
    """Check that `forecast` continues after the last row and agrees with `predict`."""
    table = example_table()
    fitted(model, table)
    cut = len(table) - model.horizon
    future = model.forecast(table.iloc[:cut])
    assert future.mean.shape == (model.horizon,)
    assert list(future.to_frame()["time"]) == list(table.index[cut:])
    last = model.predict(table).take(slice(-1, None))
    np.testing.assert_allclose(future.members, last.members, rtol=1e-4, atol=1e-5)
    for one, other in zip(future.interval(0.9), last.interval(0.9), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def check_no_look_ahead(model: AbstractForecaster) -> None:
    """Check that changing values after time t leaves forecasts made at t untouched."""
    table = example_table()
    fitted(model, table)
    changed = table.copy()
    cut = len(table) - 20
    changed.iloc[cut:] = -0.5 * changed.iloc[cut:].to_numpy()[::-1]
    before, after = model.predict(table), model.predict(changed)
    known = np.asarray(before.origin < table.index[cut])
    np.testing.assert_array_equal(before.members[:, known], after.members[:, known])
    for q in (0.05, 0.5, 0.95):
        first, second = (f.take(known).quantile(q) for f in (before, after))
        np.testing.assert_array_equal(first, second, f"quantile {q} looked ahead")
    one, other = (f.take(known).draw(2) for f in (before, after))
    np.testing.assert_array_equal(one, other, "joint paths looked ahead")


def check_no_look_ahead_but_known(model: AbstractForecaster) -> None:
    """Check the same with a category and a variable known ahead, which alone may look ahead.

    A forecaster that cannot take them must refuse with `DataError`.
    """
    rows = np.arange(len(example_table()))
    kinds, events = np.where(rows % 3 == 0, "a", "b"), (rows % 5 == 0).astype(float)
    table = example_table().assign(kind=kinds, event=events)
    try:
        model.fit(table, target=TARGET, known=["event"], test=0.2, valid=0.2)
    except DataError:
        return
    changed = table.copy()
    cut = len(table) - 20
    late = changed.index[cut:]
    numbers = list(example_table().columns)
    changed.loc[late, numbers] = -0.5 * changed.loc[late, numbers].to_numpy()[::-1]
    changed.loc[late, "kind"] = "never seen"
    before = model.predict(table)
    with warnings.catch_warnings(action="ignore", category=MVLSTMWarning):  # of the strange level
        after = model.predict(changed)
    known = np.asarray(before.origin < table.index[cut])
    np.testing.assert_array_equal(before.members[:, known], after.members[:, known])
    future = table.iloc[cut : cut + model.horizon][["event"]]
    made = model.forecast(table.iloc[:cut], future=future)
    row = before.origin.get_loc(table.index[cut - 1])
    np.testing.assert_allclose(made.members[:, 0], before.members[:, row], rtol=1e-4, atol=1e-5)


def check_several_series(model: AbstractForecaster) -> None:
    """Check that series do not mix and that their order in the table changes nothing.

    A forecaster of one series must refuse several with `DataError`.
    """
    one = example_table()
    table = pd.concat([one.assign(name="b"), (10.0 * one + 100.0).assign(name="a")])
    options: dict[str, Any] = {"series": "name", "test": 0.2, "valid": 0.2}
    try:
        model.fit(table, target=TARGET, **options)
    except (DataError, ParameterError):
        return
    turned = table.iloc[::-1].sort_index(kind="stable")
    other = clone(model).fit(turned, target=TARGET, **options)
    forecast = model.predict(table)
    np.testing.assert_array_equal(other.predict(turned).members, forecast.members)
    alone = model.predict(table[table["name"] == "a"])
    assert forecast.series is not None
    both = forecast.take(np.asarray(forecast.series == "a"))
    np.testing.assert_allclose(alone.members, both.members, rtol=1e-4, atol=1e-3)


def check_one_at_a_time(model: AbstractForecaster) -> None:
    """Check that forecasting from the last rows alone equals forecasting all at once."""
    table = example_table()
    fitted(model, table)
    everything = model.predict(table)
    needed = len(table) if not model.local else model.window + model.fitted_.preparation.lead
    for end in (len(table) - 30, len(table) - 7):
        alone = model.forecast(table.iloc[max(0, end - needed) : end])
        row = everything.origin.get_loc(table.index[end - 1])
        np.testing.assert_allclose(
            alone.members[:, 0], everything.members[:, row], rtol=1e-4, atol=1e-5
        )


def check_save_and_load(model: AbstractForecaster) -> None:
    """Check that a saved and loaded model gives the same forecasts and parameters.

    A forecaster that is not one of mvlstm's must refuse to be saved with `ParameterError`.
    """
    table = example_table()
    fitted(model, table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        if not is_registered(type(model)):
            what = f"save() of {type(model).__name__}, which mvlstm.load cannot read back,"
            _must_raise(ParameterError, what, model.save, path)
            assert not path.exists(), "save() refused and left a file all the same"
            return
        model.save(path)
        again = load(path)
    assert type(again) is type(model)
    assert again.get_params(deep=False) == model.get_params(deep=False)
    one, two = model.predict(table).to_frame(), again.predict(table).to_frame()
    pd.testing.assert_frame_equal(one, two)
    assert repr(again.history_) == repr(model.history_)


def check_bad_tables(model: AbstractForecaster) -> None:
    """Check that tables that do not fit raise `DataError`, never anything else."""
    table = example_table()
    fitted(model, table)
    faults: dict[str, pd.DataFrame] = {
        "a missing column": table.drop(columns=table.columns[0]),
        "too few rows": table.iloc[: model.window - 1],
        "an empty table": table.iloc[:0],
        "a missing value": table.mask(np.eye(*table.shape, k=-50, dtype=bool)),
    }
    for fault, bad in faults.items():
        _must_raise(DataError, f"forecast() with {fault}", model.forecast, bad)
    extra = table.assign(unused=1.0)[[*table.columns[::-1], "unused"]]
    for same in (extra, table.iloc[::-1]):  # columns and rows are put in order
        np.testing.assert_array_equal(model.forecast(same).members, model.forecast(table).members)


def check_evaluate(model: AbstractForecaster) -> None:
    """Check that scores are on unseen rows, next to those of persistence."""
    table = example_table()
    evaluation = fitted(model, table).evaluate(table)
    assert evaluation.part == "new"
    assert "persistence" in evaluation.scores.index
    scores = evaluation.scores
    assert np.isfinite(scores.to_numpy(dtype=float)).all()
    assert (scores["coverage"] >= 0).all() and (scores["coverage"] <= 1).all()


def check_update(model: AbstractForecaster) -> None:
    """Check that an update on new rows raises no error on them and knows them afterwards."""
    table = example_table(320)
    model.fit(table.iloc[:240], target=TARGET, valid=0.2)
    before, parameters = _late_error(model, table), model.get_params(deep=False)
    assert model.update(table) is model, "update must return self"
    assert _late_error(model, table) <= before + 1e-9, "update raised the error on the new rows"
    assert model.get_params(deep=False) == parameters, "update changed parameters"
    assert model.fitted_.parts.calibration == table.index[-1]
    assert [done.rows for done in model.updates_] == [80]


def _late_error(model: AbstractForecaster, table: pd.DataFrame) -> float:
    forecast = model.predict(table)
    missed = (forecast.members.mean(axis=0) - forecast.actual)[forecast.origin >= table.index[239]]
    return float(np.sqrt(np.mean(missed**2)))


def check_explain(model: AbstractForecaster) -> None:
    """Check that importance has one row per variable and sums to one, if anything helps."""
    table = example_table()
    explanation = fitted(model, table).explain(table, effort="quick")
    rows = explanation.importance
    assert set(rows["variable"]) == set(table.columns)
    total = rows["importance"].sum()
    assert rows["importance"].isna().all() or abs(total - 1.0) < 1e-9, total
    assert any("not causal" in note for note in explanation.notes)


def check_bad_parameters(model: AbstractForecaster) -> None:
    """Check that a window that cannot be is refused with an error of mvlstm."""
    model.set_params(window=-3)
    _must_raise(MVLSTMError, "fit() with window=-3", fitted, model, example_table())


CHECKS: tuple[Check, ...] = tuple(
    check
    for name, check in list(globals().items())
    if name.startswith("check_") and check is not check_forecaster
)
