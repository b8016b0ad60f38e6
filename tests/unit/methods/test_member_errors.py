"""The validation error of settings: of single members, or of the mean of several."""

from __future__ import annotations

import numpy as np
import pytest

import mvlstm as mv
from mvlstm.methods.network.members import member_errors, take_members
from mvlstm.model.fitting import fit
from mvlstm.table.frame import build_frame
from mvlstm.train.config import Member

SHARES = {"test": 0.2, "valid": 0.2}
MEMBERS = [Member(seed, rate) for rate in (1e-2, 1e-3) for seed in (0, 1)]


def make(**changes) -> mv.MVLSTM:
    settings = {"window": 5, "hidden_size": 3, "max_epochs": 2, "link": "none", "verbose": 0}
    return mv.MVLSTM(**(settings | changes))


@pytest.fixture(scope="module")
def frame():
    return build_frame(mv.datasets.load("synthetic", n=300).frame, target="y")


def test_together_it_is_the_error_of_the_mean_on_all_validation_rows(frame) -> None:
    found = member_errors(make(), frame, MEMBERS, together=2, **SHARES)
    model = make(members=4, l2=1.0)
    fitted, problem = fit(model, frame, members=MEMBERS, **SHARES)
    rows = np.concatenate([problem.origins["stop"], problem.origins["calibration"]])
    forecast = fitted.forecast(problem.prepared, rows)
    means = forecast.members.reshape(2, 2, len(rows), 1).mean(axis=1)
    expected = np.sqrt(((means - forecast.actual) ** 2).mean(axis=(1, 2)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    alone = member_errors(make(), frame, MEMBERS, **SHARES)
    np.testing.assert_allclose(alone, fitted.history.best_rmse, rtol=1e-5)


def test_the_link_is_judged_before_it_is_fitted_to_the_validation_rows(frame, monkeypatch) -> None:
    plain = member_errors(make(link="linear"), frame, MEMBERS, together=2, **SHARES)
    from mvlstm.methods.network.link import Link

    monkeypatch.setattr(Link, "refit", lambda link, problem, again=False: link)
    same = member_errors(make(link="linear"), frame, MEMBERS, together=2, **SHARES)
    np.testing.assert_allclose(plain, same, rtol=1e-6)


def test_a_mean_with_a_failed_member_counts_as_failed(frame) -> None:
    wild = [Member(0, 1e-3), Member(1, 1e20), Member(0, 1e-3), Member(1, 1e-3)]
    found = member_errors(make(), frame, wild, together=2, **SHARES)
    assert found[0] == np.inf and np.isfinite(found[1])


def test_rows_that_members_left_out_do_not_judge_their_settings(frame) -> None:
    found = member_errors(make(leave_out=0.4), frame, MEMBERS, **SHARES)
    again = make(leave_out=0.4, members=4, l2=1.0)
    fitted, problem = fit(again, frame, members=MEMBERS, **SHARES)
    assert not np.allclose(found, fitted.history.best_rmse)
    forecast = fitted.forecast(problem.prepared, problem.origins["stop"])
    expected = np.sqrt(((forecast.members - forecast.actual) ** 2).mean(axis=(1, 2)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("together", [1, 2])
def test_one_setting_that_fails_is_no_error(frame, together) -> None:
    wild = [Member(seed, 1e20) for seed in (0, 1)]
    found = member_errors(make(), frame, wild, together=together, **SHARES)
    assert (found == np.inf).all() and len(found) == 2 // together


@pytest.mark.parametrize("together", [1, 2])
def test_errors_of_a_transformed_target_are_in_its_own_units(together: int) -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    table = table.assign(y=np.exp(table["y"]))
    frame = build_frame(table, target="y")
    found = member_errors(make(transform="log1p"), frame, MEMBERS, together=together, **SHARES)
    model = make(transform="log1p", members=4, l2=1.0)
    fitted, problem = fit(model, frame, members=MEMBERS, **SHARES)
    parts = ("stop", "calibration") if together == 2 else ("stop",)
    rows = np.concatenate([problem.origins[part] for part in parts])
    few = take_members(fitted, problem, slice(0, together))
    expected = few.forecast(problem.prepared, rows).score(part="all")["rmse"]
    assert found[0] == pytest.approx(expected, rel=1e-4)
    assert found.min() > 2 * fitted.history.best_rmse.max()  # which is that of the logarithms


@pytest.mark.parametrize("together", [1, 2])
def test_absolute_errors_are_those_of_the_median(frame, together: int) -> None:
    found = member_errors(make(), frame, MEMBERS, together=together, measure="mae", **SHARES)
    model = make(members=4, l2=1.0)
    fitted, problem = fit(model, frame, members=MEMBERS, **SHARES)
    parts = ("stop", "calibration") if together == 2 else ("stop",)
    rows = np.concatenate([problem.origins[part] for part in parts])
    last = slice(4 - together, 4)
    forecast = take_members(fitted, problem, last).forecast(problem.prepared, rows)
    expected = np.abs(forecast.median.to_numpy() - forecast.actual[:, 0]).mean()
    assert len(found) == 4 // together and found[-1] == pytest.approx(expected, rel=1e-4)


def test_a_member_that_overflows_when_turned_back_counts_as_failed() -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    frame = build_frame(table.assign(y=np.exp(table["y"])), target="y")
    wild = [Member(0, 1e-3), Member(1, 1e3)]
    found = member_errors(make(transform="log1p"), frame, wild, **SHARES)
    assert np.isfinite(found[0]) and not found[1] < 1e3
