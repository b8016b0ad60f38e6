"""The whole measurement: tables, notes and options."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mvlstm.errors import DataError, ParameterError
from mvlstm.explain import Attention, HeldOut, measure, scrambler
from mvlstm.results import IMPORTANCE_COLUMNS, Explanation

NAMES = ["wind", "wind2", "rain", "pm"]
WEIGHTS = np.array([[0.9, 0.2, 0.0, 1.5], [1.1, 0.1, 0.0, 1.4], [1.0, 0.15, 0.0, 1.6]])


@pytest.fixture
def case():
    """Three members, a driver and its near copy, a variable without effect, the own past."""
    rng = np.random.default_rng(0)
    windows = rng.normal(size=(700, 6, 4))
    windows[:, :, 1] = windows[:, :, 0] + 0.1 * rng.normal(size=(700, 6))

    def predict(w):
        return np.einsum("mn,kn->km", w[:, -1], WEIGHTS)[:, :, None]

    labels = predict(windows).mean(axis=0) + rng.normal(size=(700, 1))
    return {
        "labels": labels,
        "positions": np.arange(100, 800),
        "predict": predict,
        "windows": windows,
    }


def measured_on(case, *, attention=None, effort="quick", **held):
    """Measure with quick effort; further arguments say where the windows lie."""
    predict, windows = case["predict"], case["windows"]
    return measure(
        variables=NAMES,
        held=HeldOut(case["labels"], case["positions"], window=6, **held),
        base=predict(windows),
        scrambled=scrambler(predict, windows, range(4)),
        values=windows[:, -1],
        attention=attention,
        effort=effort,
    )


def test_importance_table(case):
    table = measured_on(case).importance
    assert tuple(table.columns[:10]) == IMPORTANCE_COLUMNS
    assert table["variable"].tolist()[:2] == ["pm", "wind"]
    assert table["importance"].is_monotonic_decreasing
    assert table["importance"].sum() == pytest.approx(1.0)
    assert (table["low"] <= table["importance"]).all()
    assert (table["importance"] <= table["high"]).all()
    rows = table.set_index("variable")
    assert rows.loc["wind", "verdict"] == "important"
    assert rows.loc["rain", "verdict"] == "not distinguishable from noise"
    assert np.isnan(rows.loc["pm", "importance_exogenous"])
    assert rows["importance_exogenous"].sum() == pytest.approx(1.0)
    assert rows["posterior"].isna().all()


def test_correlated_variables_are_also_exchanged_together(case):
    measured = measured_on(case)
    assert measured.groups is not None
    assert measured.groups["group"].tolist() == ["wind + wind2"]
    alone = measured.importance.set_index("variable").loc[["wind", "wind2"], "error_increase"]
    assert measured.groups.loc[0, "error_increase"] > alone.max()


@pytest.mark.parametrize(("weight", "hidden"), [(0.09, ("wind + wind2",)), (0.5, ())])
def test_what_is_told_from_noise_together_only_is_noted(case, weight, hidden):
    weights = np.array([weight, weight, 0.0, 1.5])

    def predict(w):
        return np.repeat((w[:, -1] @ weights)[None, :, None], 3, axis=0)

    noise = case["labels"] - case["predict"](case["windows"]).mean(axis=0)
    case |= {"predict": predict, "labels": predict(case["windows"])[0] + noise}
    measured = measured_on(case)
    explanation = Explanation("pm", measured.importance, groups=measured.groups)
    assert explanation.together == hidden
    assert sum("wind + wind2 move together" in note for note in measured.notes) == len(hidden)
    assert ("wind + wind2: told from noise together" in repr(explanation)) == bool(hidden)


def test_attention_fills_its_columns_and_tables(case):
    rng = np.random.default_rng(1)
    prior, post = rng.dirichlet(np.ones(4), size=(2, 3, 700))
    temporal = rng.dirichlet(np.ones(5), size=(3, 4))
    attention = Attention(prior, post, temporal=temporal, leakage=np.eye(4))
    measured = measured_on(case, attention=attention)
    rows = measured.importance.set_index("variable")
    assert rows["posterior"].sum() == pytest.approx(1.0)
    assert rows.loc["rain", "prior"] == pytest.approx(prior[:, :, 2].mean())
    assert measured.temporal is not None
    assert measured.temporal.columns.tolist() == [2, 3, 4, 5, 6]
    # oldest first comes in, lag 2 is the newest of the steps attention weighs
    assert measured.temporal.loc["wind", 2] == pytest.approx(temporal[:, 0, -1].mean())
    assert measured.leakage is not None
    assert measured.leakage.loc["wind", "wind"] == 1.0
    assert measured.summary is not None
    assert measured.summary["shift"].sum() == pytest.approx(0.0)
    assert {"posterior_kendall_tau", "error_increase_kendall_tau"} <= set(measured.stability)


def test_makes_an_explanation(case):
    measured = measured_on(case)
    explanation = Explanation(
        target="pm",
        importance=measured.importance,
        groups=measured.groups,
        stability=measured.stability,
        n_windows=len(measured.importance),
        effort="quick",
        notes=measured.notes,
    )
    assert explanation.important[0] == "pm"
    assert explanation.to_dict()["groups"][0]["group"] == "wind + wind2"


def test_steps_ahead_have_their_own_columns(case):
    predict, labels = case["predict"], case["labels"]
    case["predict"] = lambda w: np.concatenate([predict(w), 0 * predict(w)], axis=2)
    case["labels"] = np.concatenate([labels, labels], axis=1)
    rows = measured_on(case).importance.set_index("variable")
    assert rows.loc["wind", "error_increase_1"] > 0.5
    assert rows.loc["wind", "error_increase_2"] == pytest.approx(0.0, abs=1e-12)
    mean = rows[["error_increase_1", "error_increase_2"]].mean(axis=1)
    np.testing.assert_allclose(rows["error_increase"], mean)


def test_nothing_helps(case):
    case["predict"] = lambda w: np.zeros((3, len(w), 1))
    table = measured_on(case).importance
    assert table["importance"].isna().all()
    assert (table["verdict"] == "not distinguishable from noise").all()


class TestNotes:
    def test_always_there(self, case):
        notes = " ".join(measured_on(case).notes)
        assert "predictive, not causal" in notes
        assert "not the spread that other training data would bring" in notes
        assert "calibration" not in notes

    def test_calibration_rows_and_cycles_are_named(self, case):
        notes = measured_on(case, part="calibration", period=24).notes
        assert "calibration rows because there are no new rows" in notes[0]
        assert any("24-row cycle" in note for note in notes)

    def test_a_phase_that_cannot_be_kept_is_told(self, case):
        for name in ("labels", "positions", "windows"):
            case[name] = case[name][:110]
        alone = measured_on(case, period=60).notes
        text = "so importance includes what a variable tells about that phase."
        few = "There are too few unseen rows"
        assert f"{few} to keep the phase of the 60-row cycle, {text}" in alone
        assert not any(note.startswith("Exchanges keep") for note in alone)
        several = measured_on(case, period=40, series=np.repeat(["a", "b"], [90, 20])).notes
        assert any(
            note.startswith(f"{few} in 1 of 2 series to keep the phase") and note.endswith(text)
            for note in several
        )
        assert any(note.startswith("In the other series, exchanges keep") for note in several)

    def test_one_member_and_few_rows(self, case):
        predict = case["predict"]
        case.update(predict=lambda w: predict(w)[:1])
        for name in ("labels", "positions", "windows"):
            case[name] = case[name][:30]
        notes = " ".join(measured_on(case).notes)
        assert "only one member" in notes
        assert "independent blocks" in notes


def test_too_few_windows(case):
    for name in ("labels", "positions", "windows"):
        case[name] = case[name][:2]
    with pytest.raises(DataError, match="2 held-out windows are too few"):
        measured_on(case)


def test_unknown_effort(case):
    with pytest.raises(ParameterError, match="choose 'quick', 'default' or 'full'"):
        measured_on(case, effort="max")


def test_default_effort_adds_little_to_the_forward_passes():
    """2,000 windows, 14 variables, 5 members: all but the forward passes within a few seconds."""
    rng = np.random.default_rng(0)
    windows, weights = rng.normal(size=(2_000, 30, 14)), rng.normal(size=(5, 14))
    passes = []

    def predict(w):
        passes.append(len(w))
        return np.einsum("mn,kn->km", w[:, -1], weights)[:, :, None]

    labels = predict(windows).mean(axis=0) + rng.normal(size=(2_000, 1))
    start = time.process_time()
    measure(
        variables=[f"x{i}" for i in range(13)] + ["y"],
        held=HeldOut(labels, np.arange(2_000), window=30),
        base=predict(windows),
        scrambled=scrambler(predict, windows, range(14)),
        values=windows[:, -1],
    )
    assert time.process_time() - start < 5.0
    assert len(passes) <= 1 + 15 * 2 + 14 + 1  # at 0.8 s each: under 60 s
