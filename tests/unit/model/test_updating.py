"""Updating a fitted model on new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.results.update import Update

from .new_rows import NEW, OLD, SMALL, fitted, table


def weights(model: Any) -> np.ndarray:
    """Return the weights (K, P) of a network's members."""
    arrays, _ = model.fitted_.learned.arrays()
    return np.asarray(arrays["weights"])


def error(model: Any, rows: pd.DataFrame) -> float:
    """RMSE on the rows after the first `OLD`."""
    forecast = model.predict(rows)
    new = np.asarray(forecast.origin >= rows.index[OLD - 1])
    missed = forecast.members.mean(axis=0)[new] - forecast.actual[new]
    return float(np.sqrt(np.mean(missed**2)))


@pytest.mark.parametrize("name", ["MVLSTM", "AR"])
def test_the_error_on_the_new_rows_does_not_rise(name: str) -> None:
    rows = table(change=OLD)
    model = fitted(name, rows)
    before = error(model, rows)
    model.update(rows)
    assert error(model, rows) <= before + 1e-9
    (done,) = model.updates_
    assert done.rmse_after <= done.rmse_before
    assert done.rows == NEW and done.refit == "newest" and done.held_out > 0


def test_a_change_is_learned() -> None:
    rows = table(1200, change=OLD)
    model = fitted("MVLSTM", rows, learning_rate=0.02)
    before = error(model, rows)
    model.update(rows, max_epochs=15, learning_rate=0.004)
    assert error(model, rows) < 0.9 * before
    assert model.updates_[-1].changed == 3


def test_what_is_kept_and_what_moves() -> None:
    rows = table()
    model = fitted(rows=rows)
    before, parameters = model.fitted_, model.get_params()
    after = model.update(rows).fitted_
    assert after.preparation is before.preparation and after.layout is before.layout
    assert model.get_params() == parameters and after.history is before.history
    assert after.parts.start == before.parts.start
    assert after.parts.train == rows.index[OLD + 119]  # 60 % of the new rows
    assert after.parts.calibration == rows.index[-1]
    parts = model.predict(rows).part[:, 0]
    assert (parts == "validation").sum() == 80 and not (parts == "new").any()
    covered = model.predict(rows).take(parts == "validation").score(part="all")["coverage"]
    assert 0.88 <= covered <= 0.97  # calibrated on them


def test_a_member_changes_only_for_the_better() -> None:
    rows = table()
    model = fitted(rows=rows)
    before = weights(model).copy()
    model.update(rows, learning_rate=1e6)  # ruins whatever it touches
    assert model.updates_[-1].changed == 0
    np.testing.assert_array_equal(weights(model), before)


def test_an_update_repeats() -> None:
    rows = table()
    one, two = fitted(rows=rows).update(rows), fitted(rows=rows).update(rows)
    np.testing.assert_array_equal(weights(one), weights(two))


def test_the_newest_rows_alone_are_enough_for_a_network() -> None:
    rows = table()
    model = fitted(rows=rows)
    model.update(rows.iloc[OLD - 6 :])
    assert model.updates_[-1].trained < NEW


def test_full_trains_on_all_rows() -> None:
    rows = table(change=OLD)
    model = fitted(rows=rows)
    before, sizes = error(model, rows), model.fitted_.calibration.persistence
    model.update(rows, refit="full")
    assert error(model, rows) < before
    assert (model.predict(rows).part == "train").all()
    assert model.updates_[-1].held_out == 0
    assert model.updates_[-1].trained == len(rows) - 4
    moved = model.fitted_.calibration.persistence != sizes
    assert moved.all()  # calibrated on the new rows, before training
    later = table(OLD + NEW + 300, change=OLD)
    assert 0.8 <= model.evaluate(later).scores.loc["MVLSTM", "coverage"] <= 1.0


def test_full_takes_a_single_row_and_leaves_the_intervals() -> None:
    rows = table()
    model = fitted(rows=rows)
    before = model.fitted_.calibration
    after = model.update(rows.iloc[: OLD + 1], refit="full").fitted_
    assert "1 new row from 2024-01-21 20:00 to 2024-01-21 20:00" in str(model.updates_[-1])
    assert after.parts.calibration == rows.index[OLD]
    np.testing.assert_array_equal(after.calibration.factors, before.factors)
    np.testing.assert_array_equal(after.calibration.spread, before.spread)


def test_what_cannot_be_measured_has_no_error(tmp_path: Path) -> None:
    rows = table()
    model = fitted(rows=rows, horizon=3)
    model.update(rows.iloc[: OLD + 1], refit="full")
    (done,) = model.updates_
    assert done.rmse_before is None and done.rmse_after is None
    assert "too few new rows to measure" in str(done) and "RMSE on" not in str(done)
    model.save(tmp_path / "m.safetensors")
    assert mv.load(tmp_path / "m.safetensors").updates_ == (done,)


def test_the_record_tells_what_was_done_to_the_table(tmp_path: Path) -> None:
    rows = table()
    model = fitted("AR", rows, gaps="close").update(rows.drop(rows.index[OLD + 20]))
    (done,) = model.updates_
    assert any("gap" in note for note in done.notes)
    model.save(tmp_path / "m.safetensors")
    assert mv.load(tmp_path / "m.safetensors").updates_ == (done,)
    old = {name: value for name, value in done.to_dict().items() if name != "notes"}
    assert Update.from_dict(old).notes == ()  # of files that do not have them
    for damaged in ({"notes": [3]}, {"rmse_after": "low"}, {"rmse_after": float("nan")}):
        with pytest.raises(ValueError, match="damaged"):
            Update.from_dict(done.to_dict() | damaged)


@pytest.mark.parametrize("refit", ["newest", "full"])
def test_a_series_that_the_fit_did_not_have_stays_unseen(refit: Any) -> None:
    both = pd.concat([table(seed=k).assign(station=name) for k, name in enumerate("ab")])
    other = table(seed=5).assign(station="c")
    known = both[both.index < table().index[OLD]]
    model = mv.MVLSTM(window=4, verbose=0, **SMALL).fit(known, "y", series="station")
    whole = pd.concat([both, other])
    with pytest.warns(MVLSTMWarning, match=r"no rows of series \['c'\]"):
        model.update(whole, refit=refit)
    (done,) = model.updates_
    assert done.rows == 2 * NEW and done.trained + done.held_out <= 2 * (OLD + NEW - 4)
    forecast = model.predict(whole)
    assert (forecast.part[forecast.series == "c"] == "new").all()
    again = mv.MVLSTM(window=4, verbose=0, **SMALL).fit(known, "y", series="station")
    again.update(both, refit=refit)  # as if the other were not there
    np.testing.assert_array_equal(weights(again), weights(model))


def test_new_rows_of_unknown_series_alone_are_no_update() -> None:
    old = pd.concat([table(OLD, seed=k).assign(station=name) for k, name in enumerate("ab")])
    model = mv.MVLSTM(window=4, verbose=0, **SMALL).fit(old, "y", series="station")
    whole = pd.concat([old, table(seed=5).assign(station="c")])
    with pytest.warns(MVLSTMWarning), pytest.raises(DataError, match="are of series that it did"):
        model.update(whole)
    linear = mv.AR(window=4).fit(old, "y", series="station")
    linear.update(whole)  # fitted anew, to all series
    assert "c" in linear.fitted_.preparation.series.names and linear.updates_[0].rows == NEW


def test_full_is_for_networks_with_the_whole_history() -> None:
    rows = table()
    with pytest.raises(ParameterError, match="AR is not a network"):
        fitted("AR").update(rows, refit="full")
    with pytest.raises(DataError, match=r"begins at 2024-01-02 .* the whole history"):
        fitted().update(rows.iloc[24:], refit="full")
    with pytest.raises(ParameterError, match="max_epochs=0"):
        fitted().update(rows, refit="full", max_epochs=0)
    with pytest.raises(DataError, match="the whole history"):
        fitted("AR").update(rows.iloc[24:])


def test_a_failed_update_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table()
    model = fitted(rows=rows)
    before = dict(vars(model))

    def fail(*_: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr("mvlstm.model.updating.calibrate", fail)
    with pytest.raises(RuntimeError):
        model.update(rows)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("refit", ["newest", "full"])
def test_an_interrupted_update_leaves_the_model_as_it_was(
    monkeypatch: pytest.MonkeyPatch, refit: str
) -> None:
    from mvlstm.train.control import Control

    def stop(self: Control, closing: float) -> bool:
        self.stopped = "interrupt"
        return True

    model = fitted()
    before = dict(vars(model))
    monkeypatch.setattr(Control, "must_stop", stop)
    with pytest.raises(KeyboardInterrupt):
        model.update(table(), refit=refit)
    assert all(vars(model)[name] is value for name, value in before.items())


def test_an_update_says_what_was_done() -> None:
    rows = table()
    assert "fitted anew" in str(fitted("AR", rows).update(rows).updates_[-1])
    assert "trained further" in str(fitted("MVLSTM", rows).update(rows).updates_[-1])


def test_updates_do_not_wear_out_the_rows_of_calibration() -> None:
    rows = table(1200)
    model = fitted("AR", rows)
    for end in range(OLD + 60, 1200, 60):
        model.update(rows.iloc[:end])
        done = model.updates_[-1]
        assert not done.changed or done.held_out > 0.04 * end


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "no rows after 2024-01-21 19:00"),
        (1, "1 new row .* gives 1 window; .* needs 40"),
        (30, "30 new rows .* give 30 windows; .* needs 40"),
    ],
)
def test_too_few_new_rows(count: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted().update(table().iloc[: OLD + count])


def test_too_few_new_rows_for_a_network_are_enough_for_a_full_refit() -> None:
    rows = table().iloc[: OLD + 5]
    with pytest.raises(DataError, match=r"needs 40.*with refit='full'"):
        fitted("MVLSTM").update(rows)
    assert fitted("MVLSTM").update(rows, refit="full").updates_[-1].rows == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"refit": "half"}, "refit='half'"),
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"learning_rate": -1.0}, r"learning_rate=-1\.0"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fitted().update(table(), **settings)


def test_updates_are_kept_with_the_model(tmp_path: Path) -> None:
    rows = table(OLD + 2 * NEW)
    model = fitted(rows=rows).update(rows.iloc[: OLD + NEW]).update(rows)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    assert len(again.updates_) == 2 and again.updates_ == model.updates_
    one, two = again.fitted_, model.fitted_
    assert one.n_train == two.n_train
    assert one.calibration.reference == two.calibration.reference is not None
    assert "200 new rows from 2024-01-30 04:00" in str(again.updates_[1])
    pd.testing.assert_frame_equal(again.predict(rows).to_frame(), model.predict(rows).to_frame())
    again.update(table(OLD + 3 * NEW))
    assert len(again.updates_) == 3
    assert fitted().updates_ == ()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("refit", ["newest", "full"])
def test_on_a_gpu(refit: str) -> None:
    rows = table(change=OLD)
    model = fitted(rows=rows, device="cuda")
    before = error(model, rows)
    assert error(model.update(rows, refit=refit), rows) <= before


def test_with_a_log_scale() -> None:
    rows = table()
    rows["y"] = np.exp(rows["y"])
    model = fitted(rows=rows, transform="log1p")
    before = error(model, rows)
    assert error(model.update(rows), rows) <= before
    assert model.predict(rows).interval()[0].min() >= 0
