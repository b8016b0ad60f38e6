"""What a report says in words: summary, cards and checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_results import NAMES
from mvlstm import plot
from mvlstm._words import number
from mvlstm.report.checks import checks
from mvlstm.report.encode import percent
from mvlstm.report.summary import cards, summary

SIGNS = np.resize([1.0, 1.0, -1.0, -1.0], 75)  # of neighbours, no correlation


def with_residuals(forecast, residual):
    """Return a forecast whose unseen values miss its mean by ``residual``."""
    actual = forecast.actual.copy()
    new = forecast.part[:, 0] == "new"
    actual[new, 0] = forecast.mean.to_numpy()[new] + residual
    return replace(forecast, actual=actual)


class TestSummary:
    def test_sentences_say_what_the_numbers_say(self, data):
        text = " ".join(summary(data))
        assert number(float(data.future.mean.iloc[0])) in text
        assert (
            "the typical error (RMSE) is 4.00: 20.0 % less than persistence and 4.8 % less than a "
            "linear map (AR)." in text
        )
        assert "held 91.0 % of the values" in text
        top = data.explanation.importance.iloc[0]
        assert percent(top["importance"]) in text
        assert f"{NAMES[0]} cannot be told from noise" in text

    def test_a_better_rival_comes_first(self, data):
        assert "forecasts better" not in " ".join(summary(data))
        scores = data.evaluation.scores.copy()
        scores.loc["GBT"] = scores.loc["AR"]
        scores.loc["GBT", "rmse"] = 3.0
        worse = replace(
            data,
            evaluation=replace(data.evaluation, scores=scores),
            settings={"window": 5, "members": 2},
            notes=("GBT is not compared: the time limit of this report left no room for it.",),
        )
        assert "time limit" not in summary(worse)[0], "that was of the report, not of the fit"
        stopped = ("Training was stopped at its time limit in epoch 3 of at most 50.",)
        worse = replace(worse, history=replace(data.history, notes=stopped))
        assert summary(worse)[0] == (
            "A simpler method forecasts better: the RMSE of boosted trees (GBT) is 25.0 % less "
            "than that of this model (3.00 against 4.00). Before relying on the model, fit it "
            "without a time limit, fit more members (members=10) or try another window (it is 5); "
            "otherwise use the better method."
        )

    def test_nothing_added_to_the_link_is_told(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["AR", "rmse"] = 4.01
        same = replace(
            data,
            evaluation=replace(data.evaluation, scores=scores),
            settings={"link": "auto"},
        )
        (check,) = [c for c in checks(same) if c.title == "As good as a linear map (AR)"]
        assert check.state == "info" and "adds nothing to the linear map" in check.text

    def test_a_cycle_left_in_the_errors_is_found(self, data):
        noise = np.random.default_rng(0).normal(size=75)
        for residual, state, word in (
            (noise, "pass", "passes"),
            (noise + 3 * (np.arange(75) % 7 == 0), "warn", "7 rows apart"),
        ):
            found = checks(replace(data, forecast=with_residuals(data.forecast, residual)))
            (check,) = [c for c in found if "left to learn" in c.title]
            assert check.state == state and word in check.text

    def test_a_bad_model_is_called_bad(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["MVLSTM", ["rmse", "skill", "coverage"]] = [6.0, -0.2, 0.7]
        bad = replace(data, evaluation=replace(data.evaluation, scores=scores, part="calibration"))
        text = " ".join(summary(bad))
        assert "20.0 % more than persistence" in text
        states = {check.title: check.state for check in checks(bad)}
        for title in ("Not better than persistence", "Intervals are too narrow", "No unseen rows"):
            assert states[title] == "warn"
        assert cards(bad)[1].note == "RMSE, 20.0 % more than persistence"

    @pytest.mark.parametrize(
        ("n", "state", "words"),
        [
            (75, "pass", "with 75 values, anything from 83 % to 97 % passes."),
            (7_500, "warn", "with 7,500 values, anything from 87 % to 93 % passes."),
        ],
    )
    def test_intervals_are_judged_by_what_chance_allows(self, data, n, state, words):
        scores = data.evaluation.scores.assign(coverage=0.85, n=n)
        found = checks(replace(data, evaluation=replace(data.evaluation, scores=scores)))
        check = next(c for c in found if c.title.startswith("Intervals"))
        assert check.state == state
        assert words in check.text

    def test_intervals_are_not_praised_on_the_rows_they_were_made_for(self, data):
        seen = replace(data, evaluation=replace(data.evaluation, part="calibration"))
        titles = {check.title: check.state for check in checks(seen)}
        assert titles["Intervals have not been tested"] == "info"
        assert "Intervals keep their promise" not in titles
        assert "Intervals keep their promise" in {check.title for check in checks(data)}

    @pytest.mark.parametrize(
        ("late", "state", "title"),
        [
            (0.4, "info", "Error falls over time"),
            (1.1, "pass", "Error is steady"),
            (2.5, "warn", "Error grows over time"),
        ],
    )
    def test_errors_that_fall_are_not_called_steady(self, data, late, state, title):
        forecast = with_residuals(data.forecast, np.r_[np.ones(37), np.full(38, late)] * SIGNS)
        found = {c.title: c.state for c in checks(replace(data, forecast=forecast))}
        assert found[title] == state

    @pytest.mark.parametrize(("bias", "state"), [(0.2, "pass"), (0.3, "warn")])
    def test_a_bias_as_large_as_chance_makes_it_is_let_pass(self, data, bias, state):
        forecast = with_residuals(data.forecast, SIGNS + bias)  # 2 / sqrt(75) is 0.23
        (check,) = [c for c in checks(replace(data, forecast=forecast)) if "bias" in c.title]
        assert check.state == state and "up to 23 % passes" in check.text

    @pytest.mark.parametrize(("weight", "state"), [(0.2, "pass"), (0.5, "warn")])
    def test_correlation_within_the_band_of_noise_is_let_pass(self, data, weight, state):
        noise = np.random.default_rng(0).normal(size=75)
        noise -= np.roll(noise, 1) * (noise @ np.roll(noise, 1)) / (noise @ noise)
        residual = noise + weight * np.roll(noise, 1)
        data = replace(data, forecast=with_residuals(data.forecast, residual))
        first, bound = plot.autocorrelation_table(data.forecast).iloc[0, 1:]
        assert abs(first) > 0.1 and bound == pytest.approx(1.96 / 75**0.5)
        (check,) = [c for c in checks(data) if "left to learn" in c.title]
        assert check.state == state and f"their correlation is {first:.2f}, " in check.text

    def test_equal_errors_are_called_equal(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["MVLSTM", ["rmse", "skill"]] = [5.0001, -0.00002]
        equal = replace(data, evaluation=replace(data.evaluation, scores=scores))
        assert ": the same as persistence and" in summary(equal)[2]
        assert cards(equal)[1].note == "RMSE, the same as persistence"

    def test_equal_errors_are_not_called_better(self, data):
        """The summary calls such errors equal."""
        scores = data.evaluation.scores.assign(rmse=[4.0, 4.001, 4.001])
        equal = replace(data, evaluation=replace(data.evaluation, scores=scores))
        states = {check.title: check.state for check in checks(equal)}
        assert (
            states["As good as a linear map (AR)"] == "info"
            and states["Not better than persistence"] == "warn"
        )
        assert not [title for title in states if title.startswith("Better")]

    def test_the_own_past_within_noise_is_called_so(self, data):
        table = data.explanation.importance.copy()
        table["variable"] = ["pm" if v == NAMES[0] else f"new {v}" for v in table["variable"]]
        other = replace(data, explanation=replace(data.explanation, importance=table))
        assert "; pm's own past cannot be told from noise." in summary(other)[2]

    def test_persistence_without_error_is_called_so(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["persistence", "rmse"], scores["skill"] = 0.0, np.nan
        exact = replace(data, evaluation=replace(data.evaluation, scores=scores))
        assert cards(exact)[1].note == "RMSE, more than persistence, whose error is 0"

    def test_the_own_past_is_called_so(self, data):
        table = data.explanation.importance.copy()
        order = [*NAMES[1:3], "pm", NAMES[0]]
        table["variable"] = order
        led = replace(data, explanation=replace(data.explanation, importance=table))
        assert f"{NAMES[2]} and its own past" in cards(led)[3].note
        assert "and pm's own past" in summary(led)[2]

    @pytest.mark.parametrize(
        ("rise", "card", "words"),
        [
            (99.0, (" + ".join(NAMES[:2]), f"then {NAMES[2]}"), "which move together, then on"),
            (0.1, (NAMES[2], "then its own past"), "of the importance"),
        ],
    )
    def test_what_matters_only_together_is_not_passed_over(self, data, rise, card, words):
        table = data.explanation.importance.copy()
        table["variable"] = [NAMES[2], "pm", *NAMES[:2]]
        table.loc[2:, "verdict"] = "not distinguishable from noise"
        group = " + ".join(NAMES[:2])
        groups = pd.DataFrame(
            {"group": [group], "error_increase": [rise], "verdict": ["important"], "p_value": 0.0}
        )
        explanation = replace(data.explanation, importance=table, groups=groups)
        led = replace(data, explanation=explanation)
        found = cards(led)[3]
        assert found.value == card[0] and found.note.startswith(card[1])
        text = summary(led)[2]
        assert group in text and words in text
        assert "cannot be told from noise alone." in text

    def test_several_warnings_are_counted(self, data):
        for warnings, words in (
            (("far",), "a warning from the data"),
            (("far", "old"), "2 data warnings"),
        ):
            warned = replace(data, future=replace(data.future, warnings=warnings))
            assert f"Points to watch: {words}" in summary(warned)[3]

    def test_nothing_certain_is_called_so(self, data):
        table = data.explanation.importance.assign(verdict="not distinguishable from noise")
        unsure = replace(data, explanation=replace(data.explanation, importance=table))
        card = cards(unsure)[3]
        assert card.value == "nothing certain"
        assert card.note == "no variable can be told from noise"
        assert summary(unsure)[2].startswith("No variable can be told from noise")
        rise = {"error_increase": 0.1, "low": 0.05, "high": 0.15, "squared_error": 1.0}
        whole = {"verdict": "important", **rise}
        joint = replace(unsure, explanation=replace(unsure.explanation, whole=whole))
        assert "All other variables together are important" in summary(joint)[2]
        assert cards(joint)[3].note.startswith("the other variables matter together")

    @pytest.mark.parametrize(
        ("share", "words"),
        [
            ((0.9996, 0.9991, 1.0), "(over 99 % of the importance)"),
            ((0.9, 0.8, 0.95), "(90 % of the importance, between 80 % and 95 %)"),
            ((1.0, 1.0, 1.0), "(100 % of the importance)"),
        ],
    )
    def test_shares_near_one_are_kept_apart(self, data, share, words):
        table = data.explanation.importance.copy()
        table.loc[0, ["importance", "low", "high"]] = share
        led = replace(data, explanation=replace(data.explanation, importance=table))
        assert words in summary(led)[2]
