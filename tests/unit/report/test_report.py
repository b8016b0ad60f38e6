"""The page as text: safe whatever the names are, complete, and true to the numbers."""

from __future__ import annotations

import html
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from made_results import (
    HOSTILE,
    LAGS,
    NAMES,
    make_comparison,
    make_forecast,
    make_page,
    make_report,
    raised,
)
from mvlstm import plot
from mvlstm._words import number
from mvlstm.errors import MissingExtraError
from mvlstm.report import FigureBlock, TableBlock, build, comparison_page, render_report
from mvlstm.report.build import report_page
from mvlstm.report.checks import checks
from mvlstm.report.encode import (
    are_days,
    compact,
    interval_text,
    time_text,
    to_script,
)
from mvlstm.report.summary import cards, summary
from mvlstm.results import Explanation

QUESTIONS = (
    "What will happen next?",
    "How good is it on rows it has not seen?",
    "What drives it, and how sure is that?",
    "When does it matter?",
    "Can I trust it?",
    "How was it made?",
)


def page_data(page: str) -> dict:
    text = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.S)
    found = json.loads(text[1])
    for figure in found["figures"].values():
        for spec in (figure["wide"], figure["narrow"], *(one["wide"] for one in figure["choices"])):
            for trace in spec["data"] if spec else ():
                if isinstance(trace.get("x"), dict):  # the same as of an earlier line
                    trace["x"] = spec["data"][trace["x"]["of"]]["x"]
    return found


def without_scripts(page: str) -> str:
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)


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

    def test_small_differences_on_a_high_level_are_kept(self, data):
        high = raised(data, 1e8)
        found = page_data(render_report(high))
        figure = found["figures"]["forecast"]
        lines = {t["name"]: t for t in figure["wide"]["data"]}
        for name, values in (
            ("forecast", high.forecast.mean),
            ("what happened", high.forecast.actual[:, 0]),
            ("next", high.future.mean),
        ):
            np.testing.assert_allclose(lines[name]["y"], values, atol=1e-3, rtol=0)
        view = report_page(high).sections[0].blocks[0].views[0]
        np.testing.assert_allclose(figure["views"][0]["y"], view.y, atol=1e-3, rtol=0)
        assert lines["forecast"]["hovertemplate"] == "%{y:,.0f}"
        point = found["explorer"]["points"][-1]
        ends = [float(t.replace(",", "")) for t in (point["shown"][n] for n in ("low", "high"))]
        assert ends[1] - ends[0] == pytest.approx(point["high"] - point["low"], abs=1.1)
        base, bars = point["waterfall"]["data"][1]["base"], point["waterfall"]["data"][1]["x"]
        assert base[0] + sum(bars) == pytest.approx(float(high.future.mean.iloc[0]), abs=1e-2)
        assert point["shown"]["forecast"] in point["text"] and "e+" not in point["text"]

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
    return {b.key: b for s in page.sections for b in s.blocks if b.kind in ("figure", "table")}


def test_lead_times_and_series_can_be_chosen(data):
    several = make_report(horizon=6)
    names = [choice.name for choice in blocks(several)["forecast"].choices]
    assert names == ["1 step ahead", "2 steps ahead", "4 steps ahead", "6 steps ahead"]
    spec = page_data(render_report(several))["figures"]["forecast"]["choices"]
    assert spec[0]["wide"] is None
    drawn = {trace.get("name"): trace for trace in spec[-1]["wide"]["data"]}
    last = plot.forecast_table(several.forecast, step=6, limit=500, recent=250)
    mean = last.loc[last["step"] == 6, "mean"]
    np.testing.assert_allclose(drawn["forecast"]["y"], mean, atol=1e-3)
    other = (raised(data, 9.0).forecast, raised(data, 9.0).future)
    panel = replace(data, series="a", others={"b": other})
    choices = blocks(panel)["forecast"].choices
    assert [choice.name for choice in choices] == ["a", "b"]
    assert "Choose another series." in blocks(panel)["forecast"].caption


def test_a_page_is_small_and_the_library_free_to_share(data):
    assert len(render_report(data)) < 2_000_000
    names = (*(f"variable {k}" for k in range(15)), "pm")
    large = render_report(make_report(24, names=names, rows=5_000, window=48))
    assert len(large.encode()) < 3_000_000
    lines = page_data(large)["figures"]["forecast"]["wide"]["data"]
    assert '"x":{"of":0}' in large and all(len(one["x"]) == len(one["y"]) for one in lines)
    folder = Path(build.__file__).parent / "templates"
    assert "MIT" in (folder / "plotly-cartesian.LICENSE.txt").read_text(encoding="utf-8")


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
            "attention-over-time",
        ):
            assert "of series Berlin" in found[key].title, key
            assert "of series Berlin" in found[key].alt, key
            assert "of series" not in blocks(data)[key].title
        titles = [c.title for c in checks(several)]
        assert sum(t.endswith("(of series Berlin)") for t in titles) == 3
        assert found["members"].title == "Forecasts of the members of series Berlin"
        assert "standard deviations of each series" in found["training"].alt

    def test_one_step_ahead_is_said_where_there_are_more(self):
        data = make_report(horizon=3)
        found = blocks(data)
        for key in ("residuals", "autocorrelation", "members", "attention-over-time"):
            assert "one step ahead" in found[key].title, key
        assert sum(c.title.endswith("(one step ahead)") for c in checks(data)) == 3
        for key in ("lags", "lag-intervals", "calibration"):
            assert "for steps 1 to 3 ahead together" in found[key].caption, key
        sizes = data.explanation.contribution.abs().mean()
        shown = found["lags"].table.set_index("variable")
        assert shown.loc["pm", 1] == pytest.approx(sizes["pm", 1])

    def test_what_is_not_drawn_is_not_said_to_be_there(self, data):
        forecast = make_forecast(rows=9_000)
        found = blocks(replace(data, forecast=forecast))
        drawn = found["forecast"].table
        assert (
            f"The figure and its data have {len(drawn):,} of 9,000 rows"
            in found["forecast"].caption
        )
        residuals = found["residuals"]
        total = int((forecast.part == "new").sum())
        assert len(residuals.table) < total
        assert f"have {len(residuals.table):,} of {total:,} residuals" in residuals.caption
        assert (
            "its data" not in blocks(data)["residuals"].caption + blocks(data)["forecast"].caption
        )

    def test_without_attention_there_is_no_word_of_it(self, data):
        bare = data.explanation.importance.assign(prior=np.nan, posterior=np.nan)
        explanation = Explanation(target="pm", importance=bare)
        found = blocks(replace(data, explanation=explanation))
        assert not {"prior", "posterior"} & set(found["importance-table"].frame)
        prior = replace(
            data.explanation,
            posterior=None,
            importance=data.explanation.importance.assign(posterior=np.nan),
        )
        found = blocks(replace(data, explanation=prior))
        assert "prior" in found["attention-over-time"].caption
        assert "posterior" not in found["attention-over-time"].caption
        assert "no measure of importance" in found["attention-over-time"].caption

    def test_of_steps_already_known_the_last_is_the_headline(self):
        data = make_report(horizon=3)
        last = replace(data, future=data.forecast.take(slice(-1, None)))
        row = last.future.to_frame().iloc[-1]
        card = cards(last)[0]
        assert card.note.startswith(time_text(row["time"]))
        assert card.value == interval_text(row)[0] and card.value in summary(last)[0]

    def test_several_series_are_named_where_numbers_are_of_all(self, data):
        names = pd.DataFrame({"series": ["Bern", "Berlin", "Bonn"]})
        several = replace(data, series="Berlin", next_values=names)
        error, held = cards(several)[1:3]
        assert error.label == "Error on unseen rows of all 3 series"
        assert held.note == "of 75 values of all 3 series"
        assert "On 75 unseen values of all 3 series (" in summary(several)[1]
        assert "series" not in cards(data)[1].label + cards(data)[2].note
        scored = replace(data.evaluation, by_series=names.head(2))  # Bonn ends too early
        fewer = replace(several, evaluation=scored)
        assert cards(fewer)[1].label == "Error on unseen rows of 2 of 3 series"
        assert "A table below has the values of all 3 series." in summary(fewer)[0]

    def test_integers_are_rows_or_what_the_table_calls_them(self):
        data = make_report(integer=True)
        assert ", at t 400, is expected" in summary(data)[0]
        forecast = replace(data.forecast, origin=data.forecast.origin.rename(None))
        rows = replace(data, forecast=forecast)
        assert ", at row 400, is expected" in summary(rows)[0]
        assert "(rows 324 to 398)" in summary(rows)[1]

    def test_midnights_are_written_as_days(self, data):
        def daily(forecast):
            first = pd.Timestamp("2024-01-01")
            return replace(
                forecast,
                origin=first + 24 * (forecast.origin - first),
                time=(first + 24 * (pd.DatetimeIndex(forecast.time[:, 0]) - first)).to_numpy()[
                    :, None
                ],
            )

        forecast, future = daily(data.forecast), daily(data.future)
        explanation = replace(data.explanation, prior=None, posterior=None, contribution=None)
        evaluation = replace(data.evaluation, period=(forecast.origin[0], forecast.origin[-1]))
        days = replace(
            data,
            forecast=forecast,
            future=future,
            explanation=explanation,
            evaluation=evaluation,
        )
        text = without_scripts(render_report(days))
        assert "00:00" not in text
        assert f"at {future.time[0, 0].astype('datetime64[D]')}, is expected" in text
        assert re.search(r"at 2024-\d\d-\d\d \d\d:\d\d, is expected", summary(data)[0])

    def test_minus_signs_are_true(self, data):
        lags = data.explanation.lags.assign(lag=-data.explanation.lags["lag"])
        late = replace(data, explanation=replace(data.explanation, lags=lags))
        page = render_report(late)
        table = page.partition('data-sortable="lag-intervals"')[2].partition("</table>")[0]
        shown = re.findall(r'data-label="lag" class="num">([^<]+)</td>', table)
        assert len(shown) == 15 and all(re.fullmatch("\u2212[1-5]", lag) for lag in shown)

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

    def test_what_numbers_do_not_say_is_told(self, data):
        found = blocks(data)
        assert "is stricter than the interval" in found["importance"].caption
        assert "without improving it" in found["lag-intervals"].caption
        table = pd.DataFrame({"series": ["A", "B"], "rmse": 1.0, "skill": [0.2, np.nan]})
        evaluation = replace(data.evaluation, by_series=table)
        caption = blocks(replace(data, evaluation=evaluation))["series-scores"].caption
        assert "empty where that makes no error" in caption

    def test_variables_left_out_of_a_figure_are_counted(self, data):
        many = make_report(names=(*[f"v{i}" for i in range(40)], "pm"))
        assert "The figure has the first 25 of 41." in blocks(many)["importance"].caption
        assert "with the least are added up" in blocks(many)["attention-over-time"].caption
        for key in ("importance", "attention-over-time"):
            caption = blocks(data)[key].caption
            assert "The figure has" not in caption and "added up" not in caption

    def test_quantiles_are_explained(self, data):
        assert (
            "the value lies below q05 with 5 % probability" in blocks(data)["next-values"].caption
        )

    def test_negligible_contributions_are_not_told(self, data):
        table = data.explanation.contribution.copy()
        table.loc[:, [NAMES[0], NAMES[2]]] = 1e-7
        table.loc[:, NAMES[1]] = 3.0
        other = replace(data, explanation=replace(data.explanation, contribution=table))
        text = page_data(render_report(other))["explorer"]["points"][-1]["text"]
        assert NAMES[1] in text and "e\u2212" not in text
        assert NAMES[0] not in text and NAMES[2] not in text

    def test_lags_known_ahead_are_explained_once(self, data):
        known = data.explanation.contribution.rename(columns={LAGS: 0}, level="lag")
        ahead = replace(data, explanation=replace(data.explanation, contribution=known))
        text = without_scripts(render_report(ahead))
        assert (
            text.count("Lags 0 and below are the times forecast, for variables known ahead.") == 1
        )
        assert "Lags 0 and below" not in without_scripts(render_report(data))

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
        page = comparison_page(make_comparison(rows))
        assert "MVLSTM has the smallest RMSE, 1.000, 50.0\u00a0% less than persistence." in page
        assert HOSTILE not in without_scripts(page)
        tables = page_data(page)["tables"]
        shown = dict(zip(tables["methods"]["columns"], tables["methods"]["data"], strict=True))
        assert shown["method"] == ["MVLSTM", "Persistence"]
        assert shown["rmse"] == [1, 2] and shown["skill"] == [0.5, 0]
        assert tables["failed"]["data"] == [[HOSTILE], ["<b>no memory</b>"]]

    def test_a_comparison_names_the_next_best_and_equal_errors(self):
        rows = pd.DataFrame({"method": ["A", "B", "Persistence"], "rmse": [1.0, 1.25, 2.0]})
        words = (
            "A has the smallest RMSE, 1.000, 50.0\u00a0% less than persistence; next is B, 1.250."
        )
        assert words in comparison_page(make_comparison(rows))
        assert "A has the smallest RMSE, 1.000; next is B, 1.250." in comparison_page(
            make_comparison(rows[:2])
        )
        page = comparison_page(make_comparison(rows.assign(rmse=[2.0, 1.5, 1.0])))
        assert "Persistence has the smallest RMSE, 1.000; next is B, 1.500." in page
        page = comparison_page(make_comparison(rows.assign(rmse=[1.9999, 3.0, 2.0])))
        assert "A has the smallest RMSE, 2.000, the same as persistence." in page

    def test_figures_of_a_comparison_leave_no_hole(self):
        rows = pd.DataFrame({"method": ["A", "B"], "rmse": [1.0, 2.0], "crps": [1.0, 2.0]})
        for more, wide in (({}, 0), ({"mae": [1.0, 2.0]}, 1)):
            page = comparison_page(make_comparison(rows.assign(**more)))
            assert page.count('class="block panel wide"') == wide

    def test_a_comparison_with_persistence_without_error(self):
        rows = pd.DataFrame({"method": ["Mine", "Persistence"], "rmse": [0.0, 0.0]})
        page = comparison_page(make_comparison(rows))
        assert "Mine has the smallest RMSE, 0, the same as persistence." in page

    def test_p_values_of_a_comparison(self):
        rows = pd.DataFrame(
            {
                "method": ["MVLSTM", "AR", "GBT"],
                "kind": "single",
                "rmse": [1.0, 2.0, 3.0],
                "dm_p": [np.nan, 1e-9, 0.0412],
            }
        )
        page = comparison_page(make_comparison(rows, {"single": "MVLSTM"}))
        table = page.partition('data-sortable="methods"')[2].partition("</table>")[0]
        cells = re.findall(r'data-label="dm p"[^>]*>([^<]*)</td>', table)
        assert [html.unescape(c) for c in cells] == ["reference", "<0.001", "0.041"]
        assert page_data(page)["tables"]["methods"]["data"][7] == [None, 1e-9, 0.0412]
        assert "if the reference were no better" in page
        assert "cannot be told" not in page, "the next has a small p"

    @pytest.mark.parametrize(
        ("best", "second", "reference", "words"),
        [
            ("A", 0.31, "A", "It cannot be told from the next single method, B (p = 0.31)"),
            (
                "A",
                0.9,
                "B",
                "the tests are of B, the best single method on validation rows.",
            ),
            ("A", 0.01, "A", ""),
        ],
    )
    def test_a_comparison_says_what_its_tests_do(self, best, second, reference, words):
        rows = pd.DataFrame(
            {
                "method": [best, "B", "A"],
                "kind": ["single", "single", "ensemble"],
                "rmse": [1.0, 1.01, 1.5],
                "dm_p": [np.nan, second, np.nan],
            }
        )
        references = {"single": reference, "ensemble": "A"}
        page = html.unescape(comparison_page(make_comparison(rows, references)))
        assert words in page
        assert bool(words) == ("may be chance." in page or "is not tested" in page)
        words = (
            f"of each kind that is best on validation rows: {reference} (single) and A (ensemble)."
        )
        assert words in page

    def test_tables(self):
        table = pd.DataFrame({"set": ["p", "q"], "a": [1.5, 2.5]})
        figure = plot.comparison(pd.DataFrame({"method": ["x"], "rmse": [1.0]}))
        blocks = (
            TableBlock("table-1", "Table 1", "", table),
            FigureBlock("picture", "", "", "", figure, table),
        )
        found = page_data(make_page(*blocks))
        assert found["tables"]["table-1"] == {
            "columns": ["set", "a"],
            "data": [["p", "q"], [1.5, 2.5]],
        }
        assert list(found["figures"]) == ["picture"]


def test_a_report_is_shown_in_a_few_lines(data):
    lines = repr(data).splitlines()
    assert lines[0] == f"ReportData(model={data.model!r}, target={data.target!r})"
    assert any(line.startswith("Evaluation(") for line in lines)
    assert any(line.startswith("Explanation(") for line in lines)
    assert max(map(len, lines)) < 160


def test_encoding():
    assert to_script("</script>\u2028") == '"\\u003c/script\\u003e\\u2028"'
    assert compact({"a": np.array([1.0, np.nan, 1 / 3])}) == {"a": [1, None, 0.333333]}
    level = 101_325_000 + np.array([0.123456, 155.0])
    np.testing.assert_allclose(compact(level), level, atol=1e-2, rtol=0)
    np.testing.assert_allclose(compact(list(1 + 1e-8 * level)), 1 + 1e-8 * level, rtol=1e-11)
    assert compact(np.array([[1 / 3, np.nan], [100.0, 2.5]])) == [[0.333333, None], [100, 2.5]]
    assert time_text(pd.Timestamp("2024-01-01 05:00", tz="Europe/Berlin")) == "2024-01-01 05:00"


def test_without_jinja_the_remedy_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"mvlstm\[report\]"):
        render_report(data)


def test_the_page_tells_what_is_not_settled() -> None:
    data = make_report()
    page = render_report(data)
    assert "The order is not settled" in page
    assert any(f"{NAMES[1]} ~ {NAMES[2]}" in check.text for check in checks(data))
    assert "The lags that matter most" in page


@pytest.mark.parametrize("freq", ["h", "D"])
def test_zones_with_days_that_lack_a_midnight_are_reported(freq: str) -> None:
    times = pd.date_range("2019-12-01", periods=3000, freq="h", tz="America/Havana")
    times = times if freq == "h" else times[times.hour == 0]
    assert are_days(times) == (freq == "D")
    assert time_text(times[0], days=freq == "D").startswith("2019-12-01")
