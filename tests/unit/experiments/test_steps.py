"""Shared states and states by step are compared on the same link."""

from __future__ import annotations

from experiments.steps import case, errors, made, prepared
from mvlstm.methods.mvlstm import STATES


def test_a_trial_trains_both_kinds_on_the_same_link(monkeypatch) -> None:
    monkeypatch.setattr("experiments.steps.made", lambda seed: made(seed, rows=400))
    one = case("made", later=False)
    problem, labels = prepared(one)
    small = {"max_epochs": 1, "hidden_size": 2, "seed": 0}
    found = {name: errors(one, problem, labels, states=name, **small) for name in STATES}
    assert len({each.shape for each in found.values()}) == 1
    assert len({float(each.sum()) for each in found.values()}) == len(STATES)
