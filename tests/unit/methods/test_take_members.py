"""Members taken out of a larger fit: the model that a fit of these alone would be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mvlstm as mv
from mvlstm.methods.network.members import take_members
from mvlstm.methods.network.training import Training
from mvlstm.model.fitting import begin, fit
from mvlstm.table.frame import build_frame
from mvlstm.train.config import Member, make_members

SMALL = {"window": 5, "hidden_size": 4, "max_epochs": 2, "verbose": 0, "device": "cpu"}


@pytest.mark.parametrize("kind", [mv.DUAL, mv.RETAIN, mv.MVLSTM])
def test_what_follows_from_the_weights_is_that_of_the_members_taken(kind):
    frame = build_frame(mv.datasets.load("synthetic", n=300).frame, target="y")
    training = kind().training
    settings = {name: getattr(training, name) for name in ("learning_rate", "l2", "dropout")}
    every = make_members(0, 4, **settings)
    parts = {"test": 0.2, "valid": 0.1, "ensemble": 2}
    whole, problem = fit(kind(**SMALL, members=4), frame, members=every, **parts)
    alone, _ = fit(kind(**SMALL, members=2), frame, members=every[:2], **parts)

    taken = take_members(whole, problem, slice(0, 2))

    assert taken.members == 2
    assert whole.members == 4
    ours, theirs = taken.learned, alone.learned
    np.testing.assert_allclose(ours.trained.flat, theirs.trained.flat, atol=1e-6)
    spreads = (one.calibration.spread for one in (taken, alone))
    np.testing.assert_allclose(*spreads, rtol=1e-4)
    if kind is mv.MVLSTM:
        np.testing.assert_allclose(ours.sigma2, theirs.sigma2, rtol=1e-5)
    else:
        np.testing.assert_allclose(ours.importance, theirs.importance, rtol=1e-4)
        assert np.abs(ours.importance - whole.learned.importance).max() > 1e-3


def test_l2_beside_the_sum_is_that_of_given_members():
    frame = build_frame(mv.datasets.load("synthetic", n=300).frame, target="y")
    model = mv.MVLSTM(**SMALL, link="none", l2=0.0, l2_sum=True, members=1)
    problem = begin(model, frame, test=0.2, valid=0.1).problem
    given = replace(problem, members=(Member(0, 1e-3, 0.5, 0.0),))
    windows = len(problem.origins["train"])

    assert Training.of(model).scaled_members(given)[0].l2 == pytest.approx(0.5 / windows)
    assert Training.of(model).scaled_members(problem)[0].l2 == 0
