"""What a report says in words: summary, cards and checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_results import NAMES
from mvlstm import plot
from mvlstm.report.encode import number, percent
from mvlstm.report.summary import cards, checks, contribution_gap, summary

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
            "20.0 % less than persistence (the next value equals the last) and 4.8 % less than AR"
            in text
        )
        assert "held 91.0 % of the values" in text
        top = data.explanation.importance.iloc[0]
        assert percent(top["importance"]) in text
        assert f"{NAMES[0]} cannot be told from noise" in text

    def test_a_bad_model_is_called_bad(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["MVLSTM", ["rmse", "skill", "coverage"]] = [6.0, -0.2, 0.7]
        bad = replace(data, evaluation=replace(data.evaluation, scores=scores, part="calibration"))
        text = " ".join(summary(bad))
        assert "20.0 % MORE than persistence" in text
        states = {check.title: check.state for check in checks(bad)}
        for title in ("Not better than persistence", "Intervals are too narrow", "No unseen rows"):
            assert states[title] == "warn"
        assert "above persistence" in cards(bad)[1].note

    @pytest.mark.parametrize(
        ("n", "state", "words"),
        [
            (75, "pass", "within 6.9 percentage points of 90 % counts as kept; by chance alone 75"),
            (7_500, "warn", "within 3 percentage points of 90 % counts as kept."),
        ],
    )
    def test_intervals_are_judged_by_what_chance_allows(self, data, n, state, words):
        scores = data.evaluation.scores.assign(coverage=0.85, n=n)
        found = checks(replace(data, evaluation=replace(data.evaluation, scores=scores)))
        check = next(c for c in found if c.title.startswith("Intervals"))
        assert check.state == state
        assert words in check.text

    def test_chance_is_no_excuse_for_what_lies_beyond_it(self, data):
        scores = data.evaluation.scores.assign(coverage=0.7)
        found = checks(replace(data, evaluation=replace(data.evaluation, scores=scores)))
        check = next(c for c in found if c.title == "Intervals are too narrow")
        assert check.text.endswith("by chance alone 75 values may stray that far, hardly further.")

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
        assert check.state == state and "up to 23 % counts as none" in check.text

    @pytest.mark.parametrize(("weight", "state"), [(0.2, "pass"), (0.5, "warn")])
    def test_correlation_within_the_band_of_noise_is_let_pass(self, data, weight, state):
        noise = np.random.default_rng(0).normal(size=75)
        noise -= np.roll(noise, 1) * (noise @ np.roll(noise, 1)) / (noise @ noise)
        residual = noise + weight * np.roll(noise, 1)
        data = replace(data, forecast=with_residuals(data.forecast, residual))
        first, bound = plot.autocorrelation_table(data.forecast).iloc[0, 1:]
        assert abs(first) > 0.1 and bound == pytest.approx(1.96 / 75**0.5)
        (check,) = [c for c in checks(data) if "left to learn" in c.title]
        assert check.state == state and f"correlation {first:.2f}; " in check.text

    def test_equal_errors_are_called_equal(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["MVLSTM", ["rmse", "skill"]] = [5.0001, -0.00002]
        equal = replace(data, evaluation=replace(data.evaluation, scores=scores))
        assert "as large as persistence's (the next value" in summary(equal)[1]
        assert cards(equal)[1].note == "RMSE, as large as persistence's"

    def test_equal_errors_are_not_called_better(self, data):
        """The summary calls such errors equal."""
        scores = data.evaluation.scores.assign(rmse=[4.0, 4.001, 4.001])
        equal = replace(data, evaluation=replace(data.evaluation, scores=scores))
        states = {check.title: check.state for check in checks(equal)}
        assert states["As good as AR"] == "info" and states["Not better than persistence"] == "warn"
        assert not [title for title in states if title.startswith("Better")]

    def test_probabilities_of_narrow_intervals_are_the_models_word(self, data):
        scores = data.evaluation.scores.assign(coverage=0.5)
        narrow = replace(data, evaluation=replace(data.evaluation, scores=scores))
        words = ", says the model, whose intervals have been too narrow."
        assert words in summary(narrow)[0] and words not in summary(data)[0]
        assert cards(narrow)[2].note == "of 75 values, too few"

    def test_the_own_past_within_noise_is_called_so(self, data):
        table = data.explanation.importance.copy()
        table["variable"] = ["pm" if v == NAMES[0] else f"new {v}" for v in table["variable"]]
        other = replace(data, explanation=replace(data.explanation, importance=table))
        assert "; the own past of pm cannot be told from noise." in summary(other)[2]

    def test_the_error_of_the_series_shown_stands_beside_that_of_all(self, data):
        table = pd.DataFrame({"series": ["A", "B"], "rmse": [0.5, 900.0], "skill": 0.2})
        evaluation = replace(data.evaluation, by_series=table)
        shown = replace(data, series="A", evaluation=evaluation)
        assert "(RMSE) is 4.00 (0.500 in A alone): 20.0 % less" in summary(shown)[1]
        assert cards(shown)[1].note == "RMSE, 20.0 % below persistence; 0.500 in A"
        assert cards(data)[1].note == "RMSE, 20.0 % below persistence"

    def test_persistence_without_error_is_called_so(self, data):
        scores = data.evaluation.scores.copy()
        scores.loc["persistence", "rmse"], scores["skill"] = 0.0, np.nan
        exact = replace(data, evaluation=replace(data.evaluation, scores=scores))
        assert cards(exact)[1].note == "RMSE, persistence's is 0"

    def test_the_own_past_is_called_so(self, data):
        table = data.explanation.importance.copy()
        order = [*NAMES[1:3], "pm", NAMES[0]]
        table["variable"] = order
        led = replace(data, explanation=replace(data.explanation, importance=table))
        assert f"{NAMES[2]} and its own past" in cards(led)[3].note
        assert "and the own past of pm" in summary(led)[2]

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
        for warnings, words in ((("far",), "a warning from"), (("far", "old"), "2 warnings from")):
            warned = replace(data, future=replace(data.future, warnings=warnings))
            assert f"To be careful about: {words} the data" in summary(warned)[3]

    @pytest.mark.parametrize(
        ("share", "words"),
        [
            ((0.9996, 0.9991, 1.0), "99.96 % of the importance, between 99.91 % and 100.00 %"),
            ((0.9999999, 0.9999998, 1.0), "over 99 % of the importance)"),
            ((1.0, 1.0, 1.0), "(100 % of the importance)"),
        ],
    )
    def test_shares_near_one_are_kept_apart(self, data, share, words):
        table = data.explanation.importance.copy()
        table.loc[0, ["importance", "low", "high"]] = share
        led = replace(data, explanation=replace(data.explanation, importance=table))
        assert words in summary(led)[2]

    def test_contributions_are_checked(self, data):
        assert contribution_gap(data) == pytest.approx(0, abs=1e-9)
        moved = replace(data.explanation, background=(41.0,))
        assert contribution_gap(replace(data, explanation=moved)) == pytest.approx(1 / 4)
