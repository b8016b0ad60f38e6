"""Members taken out of a larger fit: the model that a fit of these alone would be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mvlstm as mv
from mvlstm.methods.network.members import Member, fit_frame, seeds_of, take_members
from mvlstm.table.frame import build_frame

SMALL = {"window": 5, "hidden_size": 4, "max_epochs": 2, "verbose": 0, "device": "cpu"}


@pytest.mark.parametrize("kind", [mv.DUAL, mv.RETAIN, mv.MVLSTM])
def test_what_follows_from_the_weights_is_that_of_the_members_taken(kind):
    frame = build_frame(mv.datasets.load("synthetic", n=300).frame, target="y")
    whole, alone = kind(**SMALL, members=4), kind(**SMALL, members=2)
    plain = alone.get_params()
    settings = {name: plain[name] for name in ("learning_rate", "l2", "dropout")}
    every = [Member(seed, **settings) for seed in seeds_of(0, 4)]
    problem = fit_frame(whole, frame, test=0.2, valid=0.1, members=every, ensemble=2)
    fit_frame(alone, frame, test=0.2, valid=0.1, members=every[:2], ensemble=2)

    taken = take_members(whole, problem, slice(0, 2))

    assert taken.members == 2
    assert whole.members == 4
    np.testing.assert_allclose(taken.trained_.flat, alone.trained_.flat, atol=1e-6)
    if kind is mv.MVLSTM:
        np.testing.assert_allclose(taken.sigma2_, alone.sigma2_, rtol=1e-5)
    else:
        np.testing.assert_allclose(taken.importance_, alone.importance_, rtol=1e-4)
        assert np.abs(taken.importance_ - whole.importance_).max() > 1e-3


def test_l2_beside_the_sum_is_that_of_given_members():
    from mvlstm.methods.network.training import scaled_members

    frame = build_frame(mv.datasets.load("synthetic", n=300).frame, target="y")
    model = mv.MVLSTM(**SMALL, link="none", l2=0.0, l2_sum=True, members=1)
    problem = model._start(frame, test=0.2, valid=0.1)
    given = replace(problem, members=(Member(0, 1e-3, 0.5, 0.0),))
    windows = len(problem.origins["train"])

    assert scaled_members(model, given)[0].l2 == pytest.approx(0.5 / windows)
    assert scaled_members(model, problem)[0].l2 == 0
