"""The page as text: safe whatever the names are, complete, and true to the numbers."""

from __future__ import annotations

import html
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_results import HOSTILE, LAGS, NAMES, make_report
from mvlstm import plot
from mvlstm.errors import MissingExtraError
from mvlstm.report import comparison_page, render_report, tables_page
from mvlstm.report.build import report_page
from mvlstm.report.encode import compact, number, percent, time_text, to_script
from mvlstm.report.summary import cards, checks, contribution_gap, summary
from mvlstm.results import Comparison, Explanation
from mvlstm.results.comparison import COLUMNS

QUESTIONS = (
    "What will happen next?",
    "How good is it on rows it has not seen?",
    "What drives it, and how sure is that?",
    "When does it matter?",
    "Can I trust it?",
    "How was it made?",
)


def page_data(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def without_scripts(page: str) -> str:
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)


@pytest.fixture(scope="module")
def data():
    return make_report()


@pytest.fixture(scope="module")
def page(data):
    return render_report(data)


class TestPage:
    def test_sections_come_in_the_order_of_the_questions(self, page):
        titles = [html.unescape(t) for t in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]
        assert tuple(titles) == QUESTIONS
        assert "Predictive, not causal" in page

    def test_nothing_is_fetched(self, page):
        text = without_scripts(page)
        assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text)
        assert "default-src 'none'" in html.unescape(text)
        assert len(page.encode()) < 8e6

    def test_hostile_names_are_text(self, page):
        text = without_scripts(page)
        assert HOSTILE not in text
        assert html.escape(HOSTILE) in text
        block = re.search(r'id="page-data">(.*?)</script>', page, re.S)[1]
        assert not set("<>&\u2028") & set(block)
        assert HOSTILE in page_data(page)["tables"]["importance"]["data"][0]

    def test_every_figure_has_its_numbers_and_words(self, page):
        found = page_data(page)
        assert set(found["figures"]) <= set(found["tables"])
        for key, figure in found["figures"].items():
            assert figure["wide"]["data"], key
            label = re.search(rf'data-figure="{key}" role="img" aria-label="([^"]+)"', page)
            assert len(label[1]) > 10, key

    def test_numbers_are_those_of_the_results(self, data, page):
        tables = page_data(page)["tables"]
        scores = dict(zip(tables["scores"]["columns"], tables["scores"]["data"], strict=True))
        np.testing.assert_allclose(scores["rmse"], data.evaluation.scores["rmse"])
        table = tables["importance-table"]
        shown = dict(zip(table["columns"], table["data"], strict=True))
        np.testing.assert_allclose(shown["importance"], data.explanation.importance["importance"])

    def test_chosen_points_add_up_to_their_forecast(self, data, page):
        points = page_data(page)["explorer"]["points"]
        assert len(points) == 12
        assert points[-1]["next"] and not points[0]["next"]
        means = [*data.forecast.mean[-11:], *data.future.mean]
        for point, mean in zip(points, means, strict=True):
            assert point["background"] + sum(point["values"]) == pytest.approx(mean, abs=1e-4)
            assert point["forecast"] == pytest.approx(mean, abs=1e-4)

    def test_both_looks_come_from_one_figure(self, page):
        found = page_data(page)
        colours = set(re.findall(r"#[0-9a-f]{6}|rgba\([^)]*\)", json.dumps(found["figures"])))
        assert colours <= {*found["colours"], "rgba(0,0,0,0)"}

    def test_several_steps_ahead(self):
        data = make_report(horizon=3, integer=True)
        points = page_data(render_report(data))["explorer"]["points"]
        assert [p["step"] for p in points if p["next"]] == [1, 2, 3]
        assert all(p["step"] == 1 for p in points if not p["next"])

    def test_without_contributions_or_attention(self):
        data = make_report(contributions=0)
        bare = Explanation(target="pm", importance=data.explanation.importance)
        page = render_report(replace(data, explanation=bare))
        found = page_data(page)
        assert found["explorer"] is None
        assert "attention" not in found["figures"]
        assert 'id="explorer"' not in page
        titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
        assert len(titles) == len(QUESTIONS)


def blocks(data) -> dict:
    page = report_page(data)
    return {b.key: b for s in page.sections for b in s.blocks if b.kind in ("panel", "table")}


class TestWords:
    """What a number is of: which rows, which series, which step."""

    def test_what_is_known_already_is_not_called_next(self, data):
        last = replace(data, future=data.forecast.take(slice(-1, None)))
        page = report_page(last)
        actual = number(float(last.future.actual[0, 0]))
        assert page.sections[0].title == "What happened last?"
        assert "what comes next" not in page.title
        assert f"it was {actual}." in page.summary[0] and actual in page.cards[0].note
        assert "Last forecast" in blocks(last)["forecast"].alt
        text = render_report(last)
        assert "What will happen next" not in text and "Next value" not in text
        points = page_data(text)["explorer"]["points"]
        assert [p["last"] for p in points[-2:]] == [False, True]
        assert not any(p["next"] for p in points)

    def test_one_series_is_named_where_numbers_are_its_own(self, data):
        several = replace(data, series="Berlin")
        found = blocks(several)
        for key in (
            "forecast",
            "residuals",
            "calibration",
            "pit",
            "autocorrelation",
            "members",
            "attention",
            "attention-over-time",
        ):
            assert "of series Berlin" in found[key].title, key
            assert "of series Berlin" in found[key].alt, key
            assert "of series" not in blocks(data)[key].title
        titles = [c.title for c in checks(several)]
        assert sum(t.endswith("(of series Berlin)") for t in titles) == 3
        assert found["members"].title == "Do the members agree? (of series Berlin)"
        assert "standard deviations of each series" in found["training"].alt

    def test_one_step_ahead_is_said_where_there_are_more(self):
        data = make_report(horizon=3)
        found = blocks(data)
        for key in ("residuals", "autocorrelation", "members", "attention-over-time"):
            assert "one step ahead" in found[key].title, key
        assert sum(c.title.endswith("(one step ahead)") for c in checks(data)) == 3
        for key in ("lags", "lag-intervals", "calibration"):
            assert "all 3 steps ahead together" in found[key].caption, key
        sizes = data.explanation.contribution.abs().mean()
        shown = found["lags"].table.set_index("variable")
        assert shown.loc["pm", 1] == pytest.approx(sizes["pm", 1])

    def test_validation_rows_are_not_called_unseen(self, data):
        part = replace(data.evaluation, part="calibration")
        explained = replace(data.explanation, part="calibration")
        seen = replace(data, evaluation=part, explanation=explained)
        text = without_scripts(render_report(seen))
        assert "How good is it on validation rows?" in text
        assert "unseen" not in text.lower().replace("no unseen rows", "")

    def test_coverage_says_which_values_it_is_of(self, data):
        caption = blocks(data)["calibration"].caption
        n = int(plot.calibration_table(data.forecast)["n"].iloc[0])
        assert caption.endswith(f"Of {n} unseen values.")
        own = data.evaluation.scores.assign(n=40)
        other = replace(data, evaluation=replace(data.evaluation, scores=own))
        caption = blocks(other)["calibration"].caption
        assert caption.endswith(f"Of {n} unseen values; the scores are of 40 values.")

    def test_lags_known_ahead_are_explained_once(self, data):
        known = data.explanation.contribution.rename(columns={LAGS: 0}, level="lag")
        ahead = replace(data, explanation=replace(data.explanation, contribution=known))
        text = without_scripts(render_report(ahead))
        assert text.count("Lag 0 and below: rows of the times forecast, known ahead.") == 1
        assert "Lag 0 and below" not in without_scripts(render_report(data))

    def test_training_is_told_in_words(self, data):
        panel = blocks(data)["training"]
        assert "History(" not in panel.alt
        assert "of 2 members: at best 2.00 to 2.60, kept at epochs 2 to 2" in panel.alt
        assert panel.figure.layout.yaxis.title.text == "validation RMSE (units of pm)"

    def test_tables_write_verdicts_short_and_give_them_whole(self, page):
        assert "within noise</td>" in page
        columns = page_data(page)["tables"]["importance-table"]["data"]
        assert "not distinguishable from noise" in columns[-1]

    def test_each_variable_has_its_own_decimals(self, data):
        profile = pd.DataFrame(
            {"variable": ["a", "b"], "lowest": [-0.0123, 1e5], "highest": [0.5, 2.5e5]}
        )
        page = render_report(replace(data, profile=profile.assign(levels=["", "3, most often x"])))
        table = page.partition('data-sortable="variables"')[2].partition("</table>")[0]
        assert re.findall(r'class="num">([^<]+)</td>', table) == [
            "\u22120.0123",
            "0.5000",
            "100,000",
            "250,000",
        ]


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

    def test_contributions_are_checked(self, data):
        assert contribution_gap(data) == pytest.approx(0, abs=1e-9)
        moved = replace(data.explanation, background=(41.0,))
        assert contribution_gap(replace(data, explanation=moved)) == pytest.approx(1 / 4)


class TestOtherPages:
    def test_comparison(self):
        rows = pd.DataFrame(
            {
                "method": ["MVLSTM", "Persistence", HOSTILE],
                "rmse": [1.0, 2.0, np.nan],
                "skill": [0.5, 0.0, np.nan],
                "error": [None, None, "<b>no memory</b>"],
            }
        )
        page = comparison_page(rows)
        assert "MVLSTM has the least RMSE, 1.000, 50.0\u00a0% less than persistence." in page
        assert HOSTILE not in without_scripts(page)
        tables = page_data(page)["tables"]
        assert tables["methods"]["data"] == [["MVLSTM", "Persistence"], [1, 2], [0.5, 0]]
        assert tables["failed"]["data"] == [[HOSTILE], ["<b>no memory</b>"]]

    def test_p_values_of_a_comparison(self):
        rows = pd.DataFrame(
            {
                "method": ["MVLSTM", "AR", "GBT"],
                "kind": "single",
                "rmse": [1.0, 2.0, 3.0],
                "dm_p": [np.nan, 1e-9, 0.0412],
            }
        ).reindex(columns=COLUMNS)
        rows["top_variables"] = [()] * 3
        found = Comparison("y", rows, pd.DataFrame(), {"single": "MVLSTM"}, (0, 9))
        page = comparison_page(found)
        table = page.partition('data-sortable="methods"')[2].partition("</table>")[0]
        cells = re.findall(r'data-label="dm p"[^>]*>([^<]*)</td>', table)
        assert [html.unescape(c) for c in cells] == ["reference", "<0.001", "0.041"]
        assert page_data(page)["tables"]["methods"]["data"][7] == [None, 1e-9, 0.0412]
        assert "if the reference were no better" in page and "is not more accurate" not in page

    def test_tables(self):
        table = pd.DataFrame({"a": [1.5, 2.5]}, index=pd.Index(["p", "q"], name="set"))
        figure = plot.comparison(pd.DataFrame({"method": ["x"], "rmse": [1.0]}))
        page = tables_page("Benchmark", {"Table 1": table}, {"Picture": (figure, table)})
        found = page_data(page)
        assert found["tables"]["table-0-table-1"] == {
            "columns": ["set", "a"],
            "data": [["p", "q"], [1.5, 2.5]],
        }
        assert list(found["figures"]) == ["figure-0-picture"]


def test_encoding():
    assert to_script("</script>\u2028") == '"\\u003c/script\\u003e\\u2028"'
    assert compact({"a": np.array([1.0, np.nan, 1 / 3])}) == {"a": [1, None, 0.333333]}
    assert time_text(pd.Timestamp("2024-01-01 05:00", tz="Europe/Berlin")) == "2024-01-01 05:00"


def test_without_jinja_the_remedy_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"mvlstm\[report\]"):
        render_report(data)


def test_the_page_tells_what_is_not_settled_and_what_disagrees() -> None:
    data = make_report()
    page = render_report(data)
    assert "The order is not settled" in page
    assert any(f"{NAMES[1]} ~ {NAMES[2]}" in check.text for check in checks(data))
    assert "Other measures disagree in part" in page
    assert "refitting without it costs nothing" in page
    assert "The lags that matter most" in page
