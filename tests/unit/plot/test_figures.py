"""Figures show the numbers of their results: read off the figure, not off pixels."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from made_results import (
    HOSTILE,
    LAGS,
    NAMES,
    contribution_sums,
    make_explanation,
    make_forecast,
    make_history,
    make_report,
    raised,
)
from mvlstm import plot
from mvlstm.errors import DataError, ParameterError
from mvlstm.plot import get_theme, label, styles
from mvlstm.plot._tables import thin, variable_order, wall_times
from mvlstm.results import Comparison, Explanation, History
from mvlstm.results.comparison import COLUMNS

LIGHT = get_theme("light")


@pytest.fixture(scope="module")
def forecast():
    return make_forecast()


@pytest.fixture(scope="module")
def future():
    return make_forecast(future=True)


@pytest.fixture(scope="module")
def explanation(forecast, future):
    return make_explanation(forecast, future)


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


class TestForecast:
    def test_lines_are_the_forecast_and_what_happened(self, forecast):
        figure = plot.forecast(forecast)
        low, high = forecast.interval(0.9)
        np.testing.assert_allclose(trace(figure, "forecast").y, forecast.mean)
        np.testing.assert_allclose(trace(figure, "what happened").y, forecast.actual[:, 0])
        np.testing.assert_allclose(trace(figure, "90 % interval").y, low)
        np.testing.assert_allclose(trace(figure, "95 %").y, high)
        assert list(trace(figure, "forecast").x) == list(wall_times(forecast.mean.index))

    def test_parts_are_marked(self, forecast):
        figure = plot.forecast(forecast)
        assert [a.text for a in figure.layout.annotations] == ["trained on", "validation", "unseen"]
        first_new = forecast.time[forecast.part[:, 0] == "new"][0, 0]
        assert pd.Timestamp(figure.layout.annotations[2].x) == pd.Timestamp(first_new)
        assert len(figure.layout.shapes) == 2

    def test_the_future_follows(self, forecast, future):
        figure = plot.forecast(forecast, future=future)
        ahead = trace(figure, "next")
        np.testing.assert_allclose(ahead.y, future.mean)
        np.testing.assert_allclose(ahead.y + ahead.error_y.array, future.interval(0.9)[1])

    def test_several_steps_are_a_band_with_paths(self):
        past, ahead = make_forecast(horizon=4), make_forecast(horizon=4, future=True)
        figure = plot.forecast(past, future=ahead)
        line = trace(figure, "next")
        np.testing.assert_allclose(line.y, ahead.mean)
        assert line.error_y.array is None
        bands = [t for t in figure.data if t.name == "90 % interval"]
        np.testing.assert_allclose(bands[-1].y, ahead.interval(0.9)[0])
        fan = np.asarray(trace(figure, "possible paths").y).reshape(plot.PATHS, 5)
        np.testing.assert_allclose(fan[:, :4], ahead.draw(plot.PATHS)[:, 0])
        assert np.isnan(fan[:, 4]).all(), "paths are not joined"

    def test_what_is_known_already_is_not_called_next(self, forecast):
        figure = plot.forecast(forecast, future=forecast.take(slice(-1, None)))
        np.testing.assert_allclose(trace(figure, "last").y, forecast.mean.iloc[-1:])
        assert "next" not in [t.name for t in figure.data]
        lines = [t for t in figure.data if t.name == "what happened"]
        assert [list(t.y) for t in lines[1:]] == [[forecast.actual[-1, 0]]]

    def test_thinning_keeps_extremes_the_latest_and_what_is_explained(self):
        forecast = make_forecast(rows=5_000)
        explained = [forecast.time[17, 0], forecast.time[333, 0]]
        table = plot.forecast_table(forecast, limit=400, recent=100, keep=explained)
        assert len(table) <= 420
        assert set(pd.Series(explained)) <= set(table["time"])
        assert table["actual"].max() == forecast.actual.max()
        assert table["actual"].min() == forecast.actual.min()
        np.testing.assert_array_equal(table["time"].tail(100), forecast.time[-100:, 0])
        rings = trace(plot.forecast(forecast, limit=400, explained=explained), plot.EXPLAINED)
        assert list(rings.x) == list(wall_times(explained))

    @pytest.mark.parametrize("kind", [{"integer": True}, {"tz": "Europe/Berlin"}])
    def test_other_kinds_of_time(self, kind):
        forecast = make_forecast(rows=60, horizon=3, **kind)
        figure = plot.forecast(forecast, step=2)
        np.testing.assert_allclose(trace(figure, "forecast").y, forecast.mean.xs(2, level="step"))
        with pytest.raises(DataError, match="steps 1 to 3"):
            plot.forecast(forecast, step=4)

    def test_what_happened_is_drawn_to_the_last_row(self):
        forecast = make_forecast(rows=60, horizon=3)
        figure = plot.forecast(forecast)
        happened = trace(figure, "what happened")
        np.testing.assert_allclose(happened.y, [*forecast.actual[:, 0], *forecast.actual[-1, 1:]])
        assert list(happened.x[-2:]) == list(wall_times(forecast.time[-1, 1:]))
        np.testing.assert_allclose(trace(figure, "forecast").y, forecast.mean.xs(1, level="step"))
        assert plot.forecast_table(forecast)["mean"].isna().sum() == 2
        unknown = replace(forecast, actual=np.full_like(forecast.actual, np.nan))
        assert len(plot.forecast_table(unknown)) == 60

    def test_hovering_shows_the_width_of_the_intervals(self, forecast):
        level = replace(
            forecast, means=1e6 + forecast.means / 100, variances=0.001 + 0 * forecast.variances
        )
        figure = plot.forecast(level)
        assert trace(figure, "forecast").hovertemplate == "%{y:,.2f}"
        far = replace(level, means=1e13 + level.means, variances=1e18 + 0 * level.variances)
        assert trace(plot.forecast(far), "forecast").hovertemplate == "%{y:.6g}"

    def test_members(self, forecast):
        figure = plot.members(forecast, last=50)
        assert len(figure.data) == 3
        total = sum(np.asarray(t.y) for t in figure.data)
        np.testing.assert_allclose(total, 0, atol=1e-9)
        one = forecast.members[1, -50:, 0] - forecast.members[:, -50:, 0].mean(axis=0)
        np.testing.assert_allclose(figure.data[1].y, one)


class TestDrivers:
    def test_importance(self, explanation):
        figure = plot.variable_importance(explanation)
        table = explanation.importance[::-1]
        bar = figure.data[0]
        np.testing.assert_allclose(bar.x, table["importance"])
        np.testing.assert_allclose(bar.x + bar.error_x.array, table["high"])
        np.testing.assert_allclose(bar.x - bar.error_x.arrayminus, table["low"])
        assert len(figure.data) == 1, "attention is another quantity"
        words = [a.text for a in figure.layout.annotations]
        assert words == ["within noise" if v.startswith("not") else v for v in table["verdict"]]

    def test_colours_follow_the_data_not_the_rank(self, explanation):
        assert variable_order(explanation) == NAMES
        expected = {name: s.colour for name, s in styles(NAMES, "pm", LIGHT).items()}
        importance = plot.variable_importance(explanation).data[0]
        names = list(explanation.importance["variable"][::-1])
        assert dict(zip(names, importance.marker.color, strict=True)) == expected
        over_time = plot.attention_over_time(explanation).data
        assert [t.marker.color for t in over_time] == [expected[n] for n in NAMES]
        waterfall = plot.contributions(explanation).data[1]
        shown = list(plot.waterfall_table(explanation)["name"][1:-1])
        assert list(waterfall.marker.color) == [expected[n] for n in shown]

    def test_hostile_names_are_text(self, explanation):
        figures = [
            plot.variable_importance(explanation),
            plot.error_increase(explanation),
            plot.temporal_importance(explanation),
            plot.leakage(explanation),
            plot.contributions(explanation),
            plot.contribution_lags(explanation),
            plot.attention_over_time(explanation),
            plot.attention_histograms(explanation),
        ]
        for figure in figures:
            text = figure.to_json()
            assert "<script" not in text and "\\u003cscript" not in text.replace("&lt;", "")
            assert label(HOSTILE)[:12] in text.replace("\\u0026", "&")

    def test_error_increase_leaves_the_own_past_out(self, explanation):
        bar = plot.error_increase(explanation).data[0]
        table = explanation.importance[explanation.importance["variable"] != "pm"]
        np.testing.assert_allclose(sorted(bar.x), sorted(table["error_increase"]))
        assert len(plot.error_increase(explanation, own=True).data[0].x) == len(NAMES)

    def test_histograms_count_every_window(self, explanation):
        table = plot.attention_table(explanation)
        sums = table.groupby("variable")[["prior", "posterior"]].sum()
        np.testing.assert_allclose(sums, 1.0)
        edges = table[table["variable"] == "temp"]
        inside = explanation.prior["temp"].between(edges["low"].iloc[3], edges["high"].iloc[3])
        assert edges["prior"].iloc[3] == pytest.approx(inside.mean(), abs=1e-12)
        figure = plot.attention_histograms(explanation, columns=2)
        np.testing.assert_allclose(figure.data[0].y, edges["prior"])
        np.testing.assert_allclose(figure.data[1].y, edges["posterior"])
        assert len(figure.data) == 2 * len(NAMES)

    def test_temporal(self, explanation):
        heat = plot.temporal_importance(explanation).data[0]
        np.testing.assert_allclose(heat.z[::-1], explanation.temporal.loc[list(NAMES)])
        assert list(heat.x) == list(range(2, LAGS + 1))

    def test_attention_over_time_averages_and_respects_gaps(self, explanation):
        table = plot.attention_over_time_table(explanation, stretches=5)
        np.testing.assert_allclose(table[list(NAMES)].sum(axis=1), 1.0)
        first = explanation.posterior[
            (explanation.posterior.index >= table["start"][0])
            & (explanation.posterior.index <= table["end"][0])
        ]
        np.testing.assert_allclose(table.loc[0, list(NAMES)].astype(float), first.mean())
        late = explanation.posterior.copy()
        late.index = [t if i < 20 else t + pd.Timedelta(days=90) for i, t in enumerate(late.index)]
        shifted = Explanation(
            target="pm", importance=explanation.importance, prior=late, posterior=late
        )
        gap = plot.attention_over_time_table(shifted, stretches=2)
        assert not ((gap["start"] < "2024-02") & (gap["end"] > "2024-03")).any()

    def test_whiskers_show_on_bars(self, explanation):
        assert plot.variable_importance(explanation).data[0].marker.opacity < 0.8

    def test_attention_over_time_adds_up_what_is_too_much_to_tell_apart(self):
        names = (*[f"v{i}" for i in range(30)], "pm")
        found = plot.attention_over_time(make_explanation(make_forecast(), names=names), most=8)
        assert [t.name for t in found.data][-1] == "23 others" and len(found.data) == 9
        np.testing.assert_allclose(np.sum([t.y for t in found.data], axis=0), 1.0)

    def test_long_names_that_differ_at_their_end_are_told_apart(self):
        names = tuple(f"mean temperature of the east wing, sensor {i}" for i in range(4))
        explanation = make_explanation(make_forecast(target=names[-1]), names=names)
        for figure in (
            plot.variable_importance(explanation),
            plot.temporal_importance(explanation),
            plot.contribution_lags(explanation),
            plot.leakage(explanation),
        ):
            shown = figure.layout.yaxis.ticktext
            assert len(set(shown)) == len(names) and max(map(len, shown)) <= 22
        assert "(own past)" in " ".join(plot.variable_importance(explanation).layout.yaxis.ticktext)

    def test_attention_lies_on_an_axis_of_time(self, explanation):
        table = plot.attention_over_time_table(explanation)
        bar = plot.attention_over_time(explanation).data[0]
        middle = table["start"] + (table["end"] - table["start"]) / 2
        assert list(pd.DatetimeIndex(bar.x)) == list(middle)
        hours = (table["end"] - table["start"]) / pd.Timedelta("1h") + 1
        np.testing.assert_allclose(bar.width, hours * 3_600_000 * 0.96)

    def test_words_fit_a_narrow_screen(self, forecast):
        names = ("a_rather_long_name_without_any_space", "other", "pm")
        explanation = make_explanation(forecast, names=names)
        titles = [a.text for a in plot.attention_histograms(explanation).layout.annotations]
        assert max(map(len, titles)) <= 20
        figure = plot.variable_importance(explanation)
        assert {a.xref for a in figure.layout.annotations} == {"paper"}
        assert figure.layout.margin.r > 80, "room for the verdicts, whatever the width"
        assert len(plot.stability(explanation).layout.xaxis.title.text) < 12

    def test_without_attention(self, explanation):
        bare = Explanation(target="pm", importance=explanation.importance)
        assert plot.variable_importance(bare).data
        for draw in (plot.attention_histograms, plot.temporal_importance, plot.leakage):
            with pytest.raises(DataError, match="has no"):
                draw(bare)
        with pytest.raises(DataError, match="contributions=50"):
            plot.contributions(bare)


class TestContributions:
    @pytest.mark.parametrize("horizon", [1, 3])
    def test_bars_join_and_add_up_to_the_forecast(self, horizon):
        forecast, future = (make_forecast(horizon=horizon, future=f) for f in (False, True))
        explanation = make_explanation(forecast, future)
        for step in range(1, horizon + 1):
            bars = plot.waterfall_table(explanation, step=step)
            assert bars["value"].iloc[-1] == pytest.approx(future.members.mean(axis=0)[0, step - 1])
            inner = bars.iloc[1:-1]
            total = bars["value"].iloc[0] + inner["value"].sum()
            assert total == pytest.approx(bars["value"].iloc[-1])
            np.testing.assert_allclose(inner["start"].iloc[1:], inner["end"].iloc[:-1])
            parts = plot.contributions(explanation, step=step).data[1]
            np.testing.assert_allclose(parts.x, inner["value"])
            np.testing.assert_allclose(np.asarray(parts.base, dtype=float), inner["start"])
        sums = contribution_sums(explanation)
        assert sums.iloc[-1] == pytest.approx(future.members.mean(axis=0)[0, -1])

    def test_many_variables_are_joined(self, forecast):
        names = (*[f"v{i}" for i in range(20)], "pm")
        explanation = make_explanation(forecast, names=names)
        bars = plot.waterfall_table(explanation, most=5)
        assert len(bars) == 1 + 5 + 1 + 1
        assert bars["name"].iloc[-2] == "all others"
        whole = plot.waterfall_table(explanation, most=50)
        assert bars["end"].iloc[-2] == pytest.approx(whole["end"].iloc[-2])

    def test_lags(self, explanation):
        origin = explanation.contribution.index[3]
        heat = plot.contribution_lags(explanation, origin).data[0]
        expected = explanation.contribution.loc[origin].to_numpy().reshape(len(NAMES), LAGS)
        np.testing.assert_allclose(heat.z[::-1], expected)
        mean = plot.contribution_lags(explanation, mean=True).data[0]
        sizes = explanation.contribution.abs().mean().to_numpy().reshape(len(NAMES), LAGS)
        np.testing.assert_allclose(mean.z[::-1], sizes)

    def test_lags_that_a_variable_lacks_leave_the_colours_alone(self, explanation):
        known = explanation.contribution.drop(columns=[("temp", 5)])
        known[("pm", 0)] = -100.0
        known.columns = pd.MultiIndex.from_tuples(known.columns, names=["variable", "lag"])
        ahead = replace(explanation, contribution=known)
        heat = plot.contribution_lags(ahead).data[0]
        assert (heat.zmin, heat.zmax) == (-100.0, 100.0)
        assert np.isnan(heat.z).any()
        mean = plot.contribution_lags(ahead, mean=True).data[0]
        assert (mean.zmin, mean.zmax) == (0.0, 100.0)

    def test_the_mean_of_lags_is_over_all_steps(self):
        explanation = make_explanation(make_forecast(horizon=3))
        sizes = explanation.contribution.abs()
        shape = (len(NAMES), LAGS)
        table = plot.lag_table(explanation, mean=True)
        np.testing.assert_allclose(table, sizes.mean().to_numpy().reshape(shape))
        second = plot.lag_table(explanation, mean=True, step=2)
        expected = sizes.xs(2, level="step").mean().to_numpy().reshape(shape)
        np.testing.assert_allclose(second, expected)

    def test_amounts_stand_to_the_right_of_their_bars(self, explanation):
        figure = plot.contributions(explanation)
        bars = plot.waterfall_table(explanation).iloc[1:-1]
        amounts = figure.data[3]
        np.testing.assert_allclose(amounts.x, bars[["start", "end"]].max(axis=1))
        assert amounts.textposition == "middle right"
        low, high = figure.layout.xaxis.range
        assert high - max(amounts.x) > 0.25 * (high - low)
        whole = replace(explanation, contribution=1e3 * explanation.contribution)
        assert not any("e" in text for text in plot.contributions(whole).data[3].text)

    @pytest.mark.parametrize(
        ("size", "digits"),
        [(1.0, r"\d\d,\d{3}\.\d"), (1000.0, r"−?\d+,\d{3}"), (1e-3, r".*\.\d{4}")],
    )
    def test_levels_have_digits_that_fit_the_bars(self, explanation, size, digits):
        parts = size * explanation.contribution
        scaled = replace(explanation, contribution=parts, background=(22_684.0,))
        bars = plot.waterfall_table(scaled)
        start, end = (text.strip() for text in plot.contributions(scaled).data[2].text)
        assert re.fullmatch(digits, start) and re.fullmatch(digits, end)
        shown = [float(text.replace(",", "").replace("−", "-")) for text in (start, end)]
        largest = bars["value"].iloc[1:-1].abs().max()
        np.testing.assert_allclose(shown, bars["value"].iloc[[0, -1]], atol=largest / 100, rtol=0)

    def test_one_forecast_taken_apart_is_no_explanation(self, explanation):
        point = explanation.at(explanation.contribution.index[-1])
        for draw in (plot.contributions, plot.contribution_lags):
            with pytest.raises(ParameterError, match=r"contributions\(explanation, origin\)"):
                draw(point)


class TestTrust:
    def test_calibration_counts_what_the_intervals_held(self, forecast):
        table = plot.calibration_table(forecast).set_index("level")
        new = forecast.take(forecast.part[:, 0] == "new")
        for level in (0.5, 0.9):
            low, high = new.interval(level)
            held = np.mean((new.actual[:, 0] >= low) & (new.actual[:, 0] <= high))
            assert table.loc[level, "observed"] == pytest.approx(held)
        line = trace(plot.calibration(forecast), "this model")
        np.testing.assert_allclose(line.y, table["observed"])

    def test_pit(self, forecast):
        table = plot.pit_table(forecast, bins=10)
        assert (table["density"] * 0.1).sum() == pytest.approx(1)
        bars = plot.pit_histogram(forecast).data[0]
        assert len(bars.y) == 20

    def test_residuals(self, forecast):
        new = forecast.part[:, 0] == "new"
        residual = (forecast.actual - forecast.members.mean(axis=0))[new, 0]
        np.testing.assert_allclose(plot.residuals(forecast).data[0].y, residual)
        centred = residual - residual.mean()
        first = (centred[1:] @ centred[:-1]) / (centred @ centred)
        assert plot.residual_autocorrelation(forecast).data[0].y[0] == pytest.approx(first)

    def test_leakage_and_stability(self, explanation):
        heat = plot.leakage(explanation).data[0]
        np.testing.assert_allclose(heat.z[::-1], explanation.leakage)
        figure = plot.stability(explanation)
        assert list(trace(figure, "Kendall's tau").x)[::-1] == [0.8, 0.1]
        assert list(trace(figure, "top overlap").x)[::-1] == [1.0, 0.4]

    def test_several_series_are_not_mixed(self, forecast):
        names = np.array(["a", "b"]).repeat(len(forecast) // 2)
        several = replace(forecast, series=names)
        for draw in (
            plot.forecast,
            plot.members,
            plot.residuals,
            plot.residual_autocorrelation,
        ):
            with pytest.raises(DataError, match=r"forecast\.take\(forecast\.series == name\)"):
                draw(several)
            assert draw(several.take(names == "b")).data
        with pytest.raises(DataError, match="several series"):
            plot.forecast(forecast, future=several)
        assert list(plot.future_table(several)["series"]) == list(names)
        assert plot.calibration(several).data, "where order does not count, all are judged"

    def test_nothing_to_judge(self):
        with pytest.raises(DataError, match="No value of 'pm' is known"):
            plot.calibration(make_forecast(future=True))


@pytest.mark.parametrize("step", [0, -1, 3])
def test_steps_that_are_not_there_are_refused_by_every_figure(step):
    forecast = make_forecast(120, 2)
    for draw in (plot.forecast, plot.members, plot.residuals, plot.residual_autocorrelation):
        with pytest.raises(DataError, match=f"step={step} is not in the forecast.* steps 1 to 2"):
            draw(forecast, step=step)
    for explanation, words in (
        (make_explanation(forecast), "steps 1 to 2"),
        (make_explanation(make_forecast(120)), "step 1 alone"),
    ):
        with pytest.raises(DataError, match=f"step={step} is not in the explanation.* {words}"):
            plot.attention_over_time(explanation, step=step)


def test_training_curves_mark_where_rates_were_lowered():
    history = make_history()
    assert "back to the best, slower" not in [t.name for t in plot.training_curves(history).data]
    turned = np.zeros(history.members, dtype=int)
    turned[1] = 2
    figure = plot.training_curves(replace(history, lowered=turned))
    (mark,) = [trace for trace in figure.data if trace.name == "back to the best, slower"]
    assert list(mark.x) == [2] and list(mark.y) == [history.valid_rmse[1, 1]]


def test_training_curves_name_their_scale():
    figure = plot.training_curves(make_history(), scale="units of pm")
    assert figure.layout.yaxis.title.text == "validation RMSE (units of pm)"


def test_training_curves():
    history = make_history()
    figure = plot.training_curves(history)
    np.testing.assert_allclose(figure.data[0].y, history.valid_rmse[0])
    np.testing.assert_allclose(trace(figure, "kept").y, history.best_rmse)
    with pytest.raises(DataError, match="not trained in epochs"):
        plot.training_curves(History.from_dict(History(*_nothing()).to_dict()))


def _nothing():
    return np.empty((0, 0)), np.empty((0, 0)), np.empty(0, dtype=np.int64)


def test_comparison_averages_folds_and_leaves_failures_out():
    rows = pd.DataFrame(
        {
            "method": ["MVLSTM", "Persistence", "MVLSTM", "RF"],
            "kind": ["ensemble", "single", "ensemble", "single"],
            "rmse": [1.0, 3.0, 2.0, np.nan],
            "error": [None, None, None, "no memory"],
        }
    )
    table = plot.comparison_table(rows)
    assert table.to_dict("list") == {
        "method": ["MVLSTM", "Persistence"],
        "mean": [1.5, 3.0],
        "low": [1.0, 3.0],
        "high": [2.0, 3.0],
        "n": [2, 1],
    }
    figure = plot.comparison(rows)
    assert list(figure.data[0].x) == [3.0, 1.5]
    assert figure.layout.shapes[0].x0 == 3.0
    rows.loc[2, "kind"] = "single"
    assert list(plot.comparison_table(rows)["method"][:2]) == ["MVLSTM, ensemble", "MVLSTM, single"]
    with pytest.raises(DataError, match="no column"):
        plot.comparison(rows, score="wape")


def test_values_that_differ_little_are_written_in_full():
    """Not as 1.000002M."""
    level = raised(make_report(), 1e6)
    low = plot.forecast(make_forecast()).layout.yaxis
    high = plot.forecast(level.forecast).layout.yaxis
    across = plot.contributions(level.explanation).layout.xaxis
    assert low.exponentformat is None
    for axis in (high, across):
        assert axis.exponentformat == "none" and axis.separatethousands


def test_long_titles_beside_a_figure_fit_and_say_what_is_drawn():
    forecast = make_forecast(target="electricity used by all buildings of the east campus (MWh)")
    for figure, words in (
        (plot.residuals(forecast), "value minus forecast"),
        (plot.members(forecast), "member minus mean"),
    ):
        title = figure.layout.yaxis.title.text
        assert title.endswith(f": {words}") and 7 * len(title) < figure.layout.height


@pytest.mark.parametrize(("second", "least"), [(4.453, 0.4), (9.0, None)])
def test_small_differences_of_scores_look_small(second, least):
    rows = pd.DataFrame({"method": ["MVLSTM", "Persistence"], "rmse": [4.4529, second]})
    found = plot.comparison(rows).layout.xaxis.range
    assert found is None if least is None else found[1] - found[0] > least


def test_a_comparison_is_drawn_by_its_rows():
    rows = pd.DataFrame({"method": ["AR", "GBT"], "rmse": [2.0, 1.0]}).reindex(columns=COLUMNS)
    found = Comparison("pm", rows, pd.DataFrame())
    pd.testing.assert_frame_equal(plot.comparison_table(found), plot.comparison_table(rows))
    assert list(plot.comparison(found).data[0].x) == [2.0, 1.0]


def test_colours_of_heat_maps_are_named(explanation):
    for figure, title in (
        (plot.contribution_lags(explanation), "contribution"),
        (plot.contribution_lags(explanation, mean=True), "mean size"),
        (plot.temporal_importance(explanation), "weight"),
        (plot.leakage(explanation), "share of sensitivity"),
    ):
        assert figure.data[0].colorbar.title.text == title


def test_thin_keeps_short_series_whole():
    assert list(thin(np.arange(5.0), 10)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_in_both_themes(forecast, future, explanation, theme):
    figures = [
        plot.forecast(forecast, future=future, theme=theme),
        plot.members(forecast, theme=theme),
        plot.variable_importance(explanation, theme=theme),
        plot.error_increase(explanation, theme=theme),
        plot.attention_histograms(explanation, theme=theme),
        plot.temporal_importance(explanation, theme=theme),
        plot.attention_over_time(explanation, theme=theme),
        plot.contributions(explanation, theme=theme),
        plot.contribution_lags(explanation, theme=theme),
        plot.calibration(forecast, theme=theme),
        plot.pit_histogram(forecast, theme=theme),
        plot.residuals(forecast, theme=theme),
        plot.residual_autocorrelation(forecast, theme=theme),
        plot.leakage(explanation, theme=theme),
        plot.stability(explanation, theme=theme),
        plot.training_curves(make_history(), theme=theme),
    ]
    paper = get_theme(theme).paper
    for figure in figures:
        assert figure.layout.template.layout.paper_bgcolor == paper
        assert figure.layout.height > 100


def test_error_at_each_step_stands_next_to_naive_ones():
    table = pd.DataFrame({"step": [1, 2], "rmse": [1.0, 2.0], "persistence_rmse": [2.0, 4.0]})
    figure = plot.error_by_step(table)
    assert [list(t.y) for t in figure.data] == [[1.0, 2.0], [2.0, 4.0]]
    assert figure.data[1].name == "persistence"
    assert figure.layout.xaxis.dtick == 1  # no half steps
    scaled = table.assign(rmsse=[0.5, 0.7], persistence_rmsse=[1.0, 1.1])
    figure = plot.error_by_step(scaled, score="rmsse")
    assert [list(t.y) for t in figure.data] == [[0.5, 0.7], [1.0, 1.1]]
    assert figure.layout.yaxis.title.text == "RMSSE"


def test_importance_by_step_is_a_map_of_variables_and_steps(explanation):
    rows = [(s, v, s / 10 + p) for s in (1, 2) for p, v in enumerate(NAMES)]
    by_step = pd.DataFrame(rows, columns=["step", "variable", "importance"])
    whole = replace(explanation, by_step=by_step)
    heat = plot.importance_by_step(whole).data[0]
    table = plot.importance_by_step_table(whole)
    assert list(table["variable"]) == list(explanation.variables)
    np.testing.assert_allclose(heat.z, table[[1, 2]].to_numpy()[::-1])
    with pytest.raises(DataError, match="one step ahead"):
        plot.importance_by_step(explanation)


def test_pit_by_period_finds_what_changed(forecast):
    new = np.flatnonzero(forecast.part[:, 0] == "new")
    late = new[len(new) // 2 :]
    actual = forecast.actual.copy()
    actual[late, 0] = forecast.quantile(0.99).to_numpy()[late]
    table = plot.pit_table(replace(forecast, actual=actual), bins=10, periods=2)
    first, second = (rows["density"].to_numpy() for _, rows in table.groupby("start"))
    assert second[-1] == pytest.approx(10.0) and first[-1] < 5
    assert len(plot.pit_histogram(forecast, periods=2).data) == 3


def test_results_draw_themselves(forecast, explanation):
    assert forecast.plot() == plot.forecast(forecast)
    assert explanation.plot(most=2) == plot.variable_importance(explanation, most=2)
    assert make_history().plot() == plot.training_curves(make_history())
    report = make_report()
    assert list(report.evaluation.plot().data[0].x[::-1]) == [4.0, 4.2, 5.0]
