"""Deletion and insertion curves: a true ranking lies on the right side of a random one."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.faithfulness import faithfulness_areas, faithfulness_curves
from mvlstm.explain import HeldOut, scrambler

WEIGHTS = np.array([0.0, 3.0, 1.0, 0.0, 2.0])


@pytest.fixture(scope="module")
def curves():
    rng = np.random.default_rng(0)
    windows = rng.standard_normal((600, 4, 5))

    def predict(x):
        return (x[:, -1] @ WEIGHTS)[None, :, None]

    labels = predict(windows)[0] + 0.5 * rng.standard_normal((600, 1))
    return faithfulness_curves(
        predict(windows),
        HeldOut(labels, np.arange(600), window=4),
        scrambler(predict, windows, range(5)),
        [1, 4, 2, 0, 3],
    )


def test_both_ends_are_nothing_and_everything(curves) -> None:
    ends = curves.set_index(["curve", "order", "changed"])["error"]
    for order in ("importance", "random", "reversed"):
        assert ends["deletion", order, 0] == pytest.approx(1.0)
        assert ends["insertion", order, 5] == pytest.approx(1.0)
        assert ends["deletion", order, 5] == pytest.approx(ends["insertion", order, 0])
        assert ends["deletion", order, 5] > 50  # signal 14, noise 0.25, errors double


def test_the_true_order_hurts_first_and_helps_first(curves) -> None:
    area = faithfulness_areas(curves)
    assert area["deletion_importance"] > 1.1 * area["deletion_random"]
    assert area["deletion_random"] > 1.1 * area["deletion_reversed"]
    assert area["insertion_importance"] < 0.9 * area["insertion_random"]
    assert area["insertion_random"] < 0.9 * area["insertion_reversed"]


def test_taking_the_first_away_is_the_largest_step(curves) -> None:
    true = curves[(curves["curve"] == "deletion") & (curves["order"] == "importance")]
    steps = np.diff(true.sort_values("changed")["error"])
    assert np.argmax(steps) == 0
    assert steps[-1] == pytest.approx(0.0, abs=1e-9)  # a variable without effect


def test_a_clock_is_taken_away_by_exchanges_that_do_not_keep_its_phase() -> None:
    rows, period = np.arange(600), 12
    windows = np.random.default_rng(0).standard_normal((600, 4, 2))
    windows[:, :, 0] = np.sin(2 * np.pi * rows / period)[:, None]

    def predict(x):
        return (x[:, -1] @ np.array([3.0, 1.0]))[None, :, None]

    def first_loss(**more):
        found = faithfulness_curves(
            predict(windows),
            HeldOut(predict(windows)[0] + 0.5, rows, window=4, period=period, **more),
            scrambler(predict, windows, range(2)),
            [0, 1],
        )
        errors = found.set_index(["curve", "order", "changed"])["error"]
        return errors["deletion", "importance", 1]

    assert first_loss() == pytest.approx(1.0)  # the phase is kept, and with it all that it tells
    assert first_loss(clocks=(0,)) > 10
