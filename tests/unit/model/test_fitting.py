"""The one way to fit: what it is given, what it returns, and that the estimator's is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.model.fitting import begin, fit
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.problem import Run
from mvlstm.table.frame import build_frame
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.train.config import Member

SMALL: dict[str, Any] = {"hidden_size": 3, "members": 2, "max_epochs": 2, "device": "cpu"}


def table(rows: int = 300) -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=rows).frame[["x2", "x3", "y"]]


def frame(rows: int = 300) -> SeriesFrame:
    return build_frame(table(rows), target="y")


@pytest.mark.parametrize(
    "model", [mv.AR(window=5, verbose=0), mv.MVLSTM(window=5, verbose=0, **SMALL)]
)
def test_the_estimator_fits_in_this_way(model: Any) -> None:
    found, problem = fit(model, frame(), test=0.2, valid=0.2)
    assert not hasattr(model, "fitted_")  # a fit is a value; nothing is left behind
    held = model.fit(table(), "y", test=0.2, valid=0.2).fitted_
    for one, other in zip(found.learned.arrays(), held.learned.arrays(), strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name], err_msg=name)
    for name in ("spread", "factors", "persistence", "mean_factor"):
        one, other = (getattr(each.calibration, name) for each in (found, held))
        np.testing.assert_array_equal(one, other)
    assert found.parts == held.parts and found.notes == held.notes
    assert found.n_train == held.n_train == len(problem.origins["train"])
    assert found.preparation.to_dict() == problem.prepared.preparation.to_dict()


def test_parts_follow_one_another() -> None:
    start = begin(mv.AR(window=5, horizon=2, verbose=0), frame(), test=0.2, valid=0.2)
    rows = start.problem.origins
    assert start.parts == PartTimes(0, 179, 209, 239)
    ends = {"train": (0, 179), "stop": (180, 209), "calibration": (210, 239), "new": (240, 299)}
    for part, (first, last) in ends.items():
        steps = rows[part][:, None] + np.arange(1, 3)
        assert steps.min() >= first and steps.max() <= last  # all steps ahead lie in it
    assert (start.problem.window, start.problem.horizon) == (5, 2)


def test_scaling_is_learned_from_the_training_rows_unless_it_is_given() -> None:
    method, every = mv.AR(window=5, verbose=0), frame()
    found, _ = fit(method, every, test=0.2, valid=0.2)
    np.testing.assert_allclose(found.preparation.scaler.center, every.values[:180].mean(axis=0))
    longer = begin(method, every, test=0.0, valid=0.2).problem.prepared.preparation
    given, problem = fit(method, every, test=0.2, valid=0.2, preparation=longer)
    assert given.preparation is longer and problem.prepared.preparation is longer
    assert found.preparation.target_center != longer.target_center


def test_members_may_have_settings_of_their_own() -> None:
    model = mv.LSTM(window=5, verbose=0, **SMALL)
    plain, _ = fit(model, frame(), test=0.2, valid=0.2)
    members = [Member(0), Member(7), Member(8)]
    found, problem = fit(
        model.set_params(members=3), frame(), test=0.2, valid=0.2, members=members, ensemble=1
    )
    assert found.members == 3 and plain.members == 2
    assert problem.members == tuple(members) and problem.ensemble == 1


def test_a_run_reaches_the_training(tmp_path: Path) -> None:
    model = mv.LSTM(window=5, verbose=0, **SMALL | {"max_epochs": 200, "patience": 200})
    run = Run(checkpoint=tmp_path / "state", time_limit=1e-6)
    with pytest.warns(mv.MVLSTMWarning, match="stopped at its time limit"):
        found, problem = fit(model, frame(), test=0.2, valid=0.2, run=run)
    assert found.stopped == "time limit" and problem.run.checkpoint == tmp_path / "state"
    assert any("stopped at its time limit" in note for note in found.history.notes)


def test_a_run_knows_what_is_left_of_it() -> None:
    run = Run(Path("here"), 10.0)
    assert run.after(4.0) == Run(Path("here"), 6.0) and run.after(40.0).time_limit == 0.0
    assert Run().after(3.0) == Run()


def test_notes_say_what_was_found_once() -> None:
    rows = table().assign(still=np.r_[np.zeros(290), np.ones(10)])
    found, _ = fit(
        mv.AR(window=5, transform="auto", verbose=0),
        build_frame(rows, target="y"),
        test=0.2,
        valid=0.04,
    )
    assert len(set(found.notes)) == len(found.notes)
    for words in ("Nothing can be learned from ['still']", "transform='auto'", "intervals rest on"):
        assert sum(words in note for note in found.notes) == 1, words


def test_parts_without_windows_are_refused() -> None:
    method = mv.AR(window=5, horizon=5, verbose=0)
    with pytest.raises(DataError, match="validation rows"):
        begin(method, frame(30), test=0.2, valid=0.2)
    rows = table()
    rows.loc[216:239, "y"] = np.nan
    holed = build_frame(rows, target="y", missing="fill")
    with pytest.raises(DataError, match=r"earlier validation rows have no target.*missing='drop'"):
        begin(mv.AR(window=5, missing="fill", verbose=0), holed, test=0.2, valid=0.08)


def test_a_target_that_never_changes_or_is_too_large_is_refused() -> None:
    rows = table()
    with pytest.raises(DataError, match="always 1 in the 180 training rows"):
        begin(
            mv.AR(window=5, verbose=0),
            build_frame(rows.assign(y=np.where(np.arange(300) < 180, 1.0, rows["y"])), target="y"),
            test=0.2,
            valid=0.2,
        )
    with pytest.raises(DataError, match="too large to compute squared errors"):
        huge = build_frame(rows.assign(y=1e200 * rows["y"]), target="y")
        begin(mv.AR(window=5, verbose=0), huge, test=0.2, valid=0.2)
