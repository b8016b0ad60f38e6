"""Result classes: shapes, indices, scores, tables and JSON."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest

import made_results
from mvlstm import metrics
from mvlstm.errors import DataError, ParameterError
from mvlstm.results import IMPORTANCE_COLUMNS, VERDICTS, Evaluation, Explanation, Forecast, History
from mvlstm.results._tables import finest, page
from mvlstm.results.explanation import BY_ORIGIN, certain_together


def make_forecast(origins=24, horizon=1, *, integer=False, tz=None, seed=0, known=True):
    """A forecast whose first half is train, then validation, then new rows."""
    rng = np.random.default_rng(seed)
    rows = origins + horizon
    times = (
        pd.RangeIndex(100, 100 + rows, name="t")
        if integer
        else pd.date_range("2024-01-01", periods=rows, freq="h", tz=tz, name="when")
    )
    ahead = np.arange(origins)[:, None] + 1 + np.arange(horizon)
    w = rng.dirichlet(np.ones(4), size=(2, origins, horizon))
    mu = rng.normal(size=(2, origins, horizon, 4))
    members = np.sum(w * mu, axis=-1)  # (K, M, H)
    part = np.where(
        ahead < rows // 2, "train", np.where(ahead < 3 * rows // 4, "validation", "new")
    )
    actual = rng.normal(size=(origins, horizon)) if known else np.full((origins, horizon), np.nan)
    return Forecast(
        origin=times[:origins],
        time=times.to_numpy()[ahead],
        target="y",
        weights=np.concatenate(list(w), axis=-1) / 2,
        means=np.concatenate(list(mu), axis=-1),
        variances=np.full((origins, horizon, 8), 0.4),
        members=members,
        part=part,
        actual=actual,
    ), times


class TestForecast:
    @pytest.mark.parametrize("kind", [{}, {"integer": True}, {"tz": "Europe/Berlin"}])
    def test_one_step_series_are_indexed_by_time(self, kind):
        forecast, times = make_forecast(**kind)
        for series in (forecast.mean, forecast.median, *forecast.interval(0.5), forecast.crps()):
            assert series.index.equals(times[1:])
            assert series.index.name == times.name
            assert series.index.dtype == times.dtype

    def test_several_steps_are_indexed_by_origin_and_step(self):
        forecast, times = make_forecast(origins=5, horizon=3)
        assert forecast.mean.index.names == ["origin", "step"]
        assert forecast.mean.loc[(times[2], 3)] == pytest.approx(forecast.members[:, 2, 2].mean())

    def test_mean_is_both_the_members_and_the_mixture_mean(self):
        forecast, _ = make_forecast(horizon=2)
        mixture = metrics.mixture_mean(forecast.weights, forecast.means)
        np.testing.assert_allclose(forecast.mean.to_numpy(), mixture.reshape(-1), atol=1e-12)

    def test_intervals_nest_and_hold_their_probability(self):
        forecast, _ = make_forecast()
        low, high = forecast.interval(0.8)
        wide_low, wide_high = forecast.interval(0.95)
        assert (wide_low < low).all()
        assert (high < wide_high).all()
        inside = [
            metrics.mixture_cdf(
                forecast.weights, forecast.means, forecast.variances, s.to_numpy()[:, None]
            )
            for s in (low, high)
        ]
        np.testing.assert_allclose(inside[1] - inside[0], 0.8, atol=1e-9)

    @pytest.mark.parametrize("level", [0, 1, 90])
    def test_interval_refuses_what_is_no_probability(self, level):
        with pytest.raises(ParameterError, match="level="):
            make_forecast()[0].interval(level)

    def test_several_probabilities_at_once_are_refused(self):
        forecast, _ = make_forecast()
        with pytest.raises(ParameterError, match=r"q=\[0.1, 0.9\] must be one number"):
            forecast.quantile([0.1, 0.9])
        with pytest.raises(ParameterError, match="level='90%' must be one number"):
            forecast.interval("90%")
        assert forecast.quantile(np.float32(0.5)).shape == forecast.median.shape

    def test_score_takes_new_rows_unless_told(self):
        forecast, _ = make_forecast()
        score = forecast.score()
        new = forecast.part[:, 0] == "new"
        error = forecast.actual[new, 0] - forecast.mean.to_numpy()[new]
        assert score["part"] == "new"
        assert score["n"] == new.sum()
        assert score["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
        median = forecast.median.to_numpy()[new]
        assert score["mae"] == pytest.approx(np.mean(np.abs(forecast.actual[new, 0] - median)))
        assert score["crps"] == pytest.approx(forecast.crps().to_numpy()[new].mean())
        low, high = forecast.interval(0.9)
        inside = (low <= forecast.actual[:, 0]) & (forecast.actual[:, 0] <= high)
        assert score["coverage"] == pytest.approx(inside.to_numpy()[new].mean())
        shares = {"pinball", "interval_score", "smape", "mape"}
        assert set(score) == {"rmse", "mae", "mae_mean", "crps", "coverage", "n", "part"} | shares

    def test_score_falls_back_to_validation_and_says_so(self):
        forecast, _ = make_forecast()
        actual = np.where(forecast.part == "new", np.nan, forecast.actual)
        forecast = dataclasses.replace(forecast, actual=actual)
        assert forecast.score()["part"] == "validation"
        assert forecast.score("all")["n"] == (forecast.part != "new").sum()
        with pytest.raises(DataError, match=r"part 'new'.*train"):
            forecast.score("new")

    def test_score_without_actual_values(self):
        with pytest.raises(DataError, match="actual value of 'y'"):
            make_forecast(known=False)[0].score()

    def test_score_refuses_an_unknown_part(self):
        with pytest.raises(ParameterError, match="part='test' is not an option"):
            make_forecast()[0].score("test")

    def test_frame_has_the_promised_columns(self):
        columns = ["origin", "step", "time", "mean", "median", "q05", "q95", "part"]
        forecast, times = make_forecast(origins=4, horizon=2)
        table = forecast.to_frame()
        assert list(table.columns) == [*columns, "actual"]
        assert list(make_forecast(known=False)[0].to_frame().columns) == columns
        assert table["step"].tolist() == [1, 2] * 4
        assert table["origin"].tolist() == list(times[:4].repeat(2))
        assert table["time"].tolist() == [times[i + s] for i in range(4) for s in (1, 2)]
        assert (table["q05"] < table["median"]).all()
        assert (table["median"] < table["q95"]).all()

    def test_json(self):
        forecast, _ = make_forecast(horizon=2)
        actual = forecast.actual.copy()
        actual[0, 0] = np.nan
        data = json.loads(json.dumps(dataclasses.replace(forecast, actual=actual).to_dict()))
        assert data["rows"][0]["actual"] is None
        assert data["rows"][0]["time"] == "2024-01-01T01:00:00"
        assert data["horizon"] == 2

    def test_take_keeps_rows_together(self):
        forecast, _ = make_forecast()
        some = forecast.take(np.array([3, 7]))
        pd.testing.assert_series_equal(some.median, forecast.median.iloc[[3, 7]])
        assert len(some) == 2

    def test_quantiles_are_computed_once(self, monkeypatch):
        forecast, _ = make_forecast()
        first = forecast.quantile(0.3)
        monkeypatch.setattr(metrics, "mixture_quantile", lambda *_: pytest.fail("computed again"))
        pd.testing.assert_series_equal(forecast.quantile(0.3), first)
        assert first.name == "q30"

    def test_shows_itself_briefly(self):
        forecast, _ = make_forecast(origins=400)
        assert "400 origins x 1 step" in repr(forecast)
        assert "\n" not in repr(forecast)
        assert forecast._repr_html_().count("<tr") == 11

    @pytest.mark.parametrize("level", [101_325.0, 1e10, 1e13, 1e-6])
    def test_a_notebook_shows_intervals_of_some_width(self, level):
        forecast, _ = make_forecast(origins=1)
        table = forecast.to_frame()
        scale = 1e-4 * level
        shown = table.assign(mean=level, q05=level - scale, q95=level + 2 * scale)
        text = page("", shown[["time", "mean", "q05", "q95"]])
        cells = [float(cell) for cell in re.findall(r"<td>([\d.e+-]+)</td>", text)[-3:]]
        assert cells == pytest.approx([level, level - scale, level + 2 * scale], rel=1e-5)

    def test_further_quantiles_are_columns(self):
        forecast, _ = make_forecast(horizon=2)
        table = forecast.to_frame([0.9, 0.1])
        names = [name for name in table.columns if name.startswith("q")]
        assert names == ["q05", "q10", "q90", "q95"]
        np.testing.assert_array_equal(table["q10"], forecast.quantile(0.1))
        assert list(forecast.to_frame()) == [c for c in table if c not in ("q10", "q90")]
        assert forecast.to_dict([0.975])["rows"][0]["q97.5"] == forecast.quantile(0.975).iloc[0]
        with pytest.raises(ParameterError, match="strictly between 0 and 1"):
            forecast.to_frame([90])
        for wrong in (0.9, ["a"], [True]):
            with pytest.raises(ParameterError, match="numbers strictly between 0 and 1, such as"):
                forecast.to_frame(wrong)

    @pytest.mark.parametrize("near", [0.05, np.float32(0.05), 0.05 + 1e-9])
    def test_the_interval_stays_what_it_is_beside_a_quantile_of_the_same_name(self, near):
        forecast, _ = make_forecast()
        table = forecast.to_frame([near])
        assert list(table) == list(forecast.to_frame())
        np.testing.assert_array_equal(table["q05"], forecast.quantile(0.05))

    def test_shows_one_of_a_thing_and_the_whole_span(self):
        assert "1 origin x 2 steps" in repr(make_forecast(1, horizon=2)[0])
        forecast, _ = make_forecast()
        backward = forecast.take(np.arange(len(forecast))[::-1])
        assert repr(backward) == repr(forecast)

    def test_is_frozen_and_checks_shapes(self):
        forecast, _ = make_forecast()
        with pytest.raises(dataclasses.FrozenInstanceError):
            forecast.target = "z"  # type: ignore[misc]
        with pytest.raises(AssertionError, match="actual"):
            dataclasses.replace(forecast, actual=forecast.actual[:-1])


def make_explanation(**changes):
    table = pd.DataFrame(
        {
            "variable": ["y", "x<1>", "x2"],
            "importance": [0.7, 0.3, 0.0],
            "low": [0.6, 0.2, 0.0],
            "high": [0.8, 0.4, 0.0],
            "posterior": [0.4, 0.4, 0.2],
            "prior": [0.3, 0.3, 0.4],
            "error_increase": [7.0, 3.0, -0.1],
            "error_increase_low": [6.0, 2.0, -0.3],
            "error_increase_high": [8.0, 4.0, 0.1],
            "verdict": ["important", "important", "not distinguishable from noise"],
            "p_value": [0.0, 0.01, np.nan],
        }
    )
    leakage = pd.DataFrame(np.eye(3), index=table["variable"], columns=table["variable"])
    values = {"target": "y", "importance": table, "leakage": leakage, "n_windows": 50}
    return Explanation(**{**values, **changes})


class TestExplanation:
    def test_what_all_others_add_is_said_with_what_would_have_been_found(self):
        whole = {"verdict": "weak", "error_increase": 0.5, "low": -0.1, "high": 1.1}
        table = make_explanation().importance.assign(detectable=[0.3, 0.2, 0.4])
        explanation = make_explanation(importance=table, whole={**whole, "squared_error": 10.0})
        assert "together are weak: " in explanation.overall
        assert "rises by 5.0 % (90 % interval −1.0 % to 11.0 %)" in explanation.overall
        assert "about 4.0 %" in explanation.sensitivity
        assert explanation.overall in repr(explanation)
        certain = dataclasses.replace(explanation, importance=table.assign(verdict="important"))
        assert certain.sensitivity == "" and make_explanation().overall == ""

    def test_names(self):
        explanation = make_explanation()
        assert explanation.variables == ("y", "x<1>", "x2")
        assert explanation.important == ("y", "x<1>")
        assert tuple(explanation.to_frame().columns[:10]) == IMPORTANCE_COLUMNS

    def test_frame_is_a_copy(self):
        explanation = make_explanation()
        table = explanation.to_frame()
        table.loc[0, "importance"] = 99.0
        assert explanation.importance.loc[0, "importance"] == 0.7

    def test_json(self):
        explanation = make_explanation(stability={"kendall_tau": np.float64(0.5), "members": 3})
        data = json.loads(json.dumps(explanation.to_dict()))
        assert data["importance"][2]["p_value"] is None
        assert data["leakage"]["values"][0] == [1.0, 0.0, 0.0]
        assert data["stability"] == {"kendall_tau": 0.5, "members": 3}
        assert data["temporal"] is None

    def test_shows_itself(self):
        explanation = make_explanation(notes=("a < b",))
        assert "x2" in repr(explanation)
        assert "not distinguishable" in repr(explanation)
        html = explanation._repr_html_()
        assert "a &lt; b" in html
        assert "x&lt;1&gt;" in html

    def test_wrong_columns_are_our_own_mistake(self):
        with pytest.raises(AssertionError, match="columns"):
            make_explanation(importance=pd.DataFrame({"variable": ["y"]}))


class TestHistory:
    def make(self):
        loss = np.array([[3.0, 2.0, 1.0], [3.0, 2.5, np.nan]])
        return History(
            train_loss=loss, valid_rmse=loss + 1, best_epoch=np.array([3, 1]), seconds=2.0
        )

    def test_frame_leaves_out_epochs_not_trained(self):
        table = self.make().to_frame()
        assert len(table) == 5
        assert table.loc[table["best"], ["member", "epoch"]].to_numpy().tolist() == [[0, 3], [1, 1]]

    def test_best_values(self):
        history = self.make()
        np.testing.assert_array_equal(history.best_rmse, [2.0, 4.0])
        np.testing.assert_array_equal(history.epochs, [3, 2])

    def test_round_trip_through_json(self):
        history = self.make()
        again = History.from_dict(json.loads(json.dumps(history.to_dict())))
        np.testing.assert_array_equal(again.train_loss, history.train_loss)
        np.testing.assert_array_equal(again.best_epoch, history.best_epoch)
        assert again.seconds == 2.0

    def test_shows_itself(self):
        assert repr(self.make()) == (
            "History(2 members, 3 epochs, validation RMSE 3 (2 to 4), 2.0 s)"
        )
        loss = np.ones((1, 1))
        alone = History(loss, loss, best_epoch=np.array([1]), seconds=2.0)
        assert repr(alone) == "History(1 member, 1 epoch, validation RMSE 1, 2.0 s)"

    def test_some_members_are_replaced(self):
        loss = np.array([[9.0, 8.0, 7.0, 6.0]])
        later = History(loss, loss + 1, np.array([4]), seconds=1.0, notes=("late",))
        both = self.make().with_rows(np.array([1]), later)
        assert both.seconds == 3.0 and both.notes == ("late",)
        np.testing.assert_array_equal(both.epochs, [3, 4])
        np.testing.assert_array_equal(both.best_rmse, [2.0, 7.0])
        few = both.take(np.array([1, 1, 0]))
        np.testing.assert_array_equal(few.best_rmse, [7.0, 7.0, 2.0])
        np.testing.assert_array_equal(
            self.make().with_rows(np.array([0]), few.take([1])).epochs, [4, 2]
        )

    def test_no_training(self):
        empty = History(np.empty((0, 0)), np.empty((0, 0)), np.empty(0, dtype=np.int64))
        again = History.from_dict(json.loads(json.dumps(empty.to_dict())))
        assert again.members == 0
        assert repr(again) == "History(no training)"
        assert len(again.to_frame()) == 0


def test_evaluation():
    scores = pd.DataFrame(
        {"rmse": [1.0, 2.0], "skill": [0.5, np.nan], "n": [10, 10]}, index=["MVLSTM", "persistence"]
    )
    period = (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01"))
    evaluation = Evaluation(target="y", scores=scores, part="new", period=period, notes=("note",))
    data = json.loads(json.dumps(evaluation.to_dict()))
    assert data["scores"]["persistence"] == {"rmse": 2.0, "skill": None, "n": 10}
    assert data["period"] == ["2024-01-01T00:00:00", "2024-02-01T00:00:00"]
    assert "persistence" in repr(evaluation)
    assert "note" in evaluation._repr_html_()
    table = evaluation.to_frame()
    table.loc["MVLSTM", "rmse"] = 9.0
    assert evaluation.scores.loc["MVLSTM", "rmse"] == 1.0


@pytest.mark.parametrize("with_series", [False, True])
@pytest.mark.parametrize("with_steps", [False, True])
@pytest.mark.parametrize("with_periods", [False, True])
def test_all_scores_of_an_evaluation_are_one_table(with_series, with_steps, with_periods):
    scores = pd.DataFrame({"rmse": [1.0, 2.0], "n": [10, 10]}, index=["MVLSTM", "persistence"])
    series = pd.DataFrame({"series": ["hill", "city"], "rmse": [0.5, 1.5], "n": [5, 5]})
    periods = pd.DataFrame({"month": ["2024-01"], "rmse": [1.0], "n": [10]})
    steps = pd.DataFrame({"step": [1, 2], "rmse": [0.8, 1.2], "n": [5, 5]})
    evaluation = Evaluation(
        target="y",
        scores=scores,
        part="new",
        period=(0, 9),
        by_series=series if with_series else None,
        periods=periods if with_periods else None,
        by_step=steps if with_steps else None,
    )
    rows = evaluation.to_rows()
    words = ["series"] * with_series + ["step"] * with_steps + ["period"] * with_periods
    assert rows.columns.tolist() == ["model", *words, "rmse", "n"]
    parts = 2 * with_series + 2 * with_steps + with_periods
    assert rows["n"].dtype == np.int64 and len(rows) == 2 + parts
    assert ("by_step" in evaluation.to_dict()) == with_steps
    assert rows[words][:2].isna().all(axis=None)
    if with_series:
        assert rows.set_index("series")["rmse"]["city"] == 1.5
    if with_steps:
        assert rows.set_index("step")["rmse"][2] == 1.2
    if with_periods:
        assert rows.set_index("period")["model"]["2024-01"] == "MVLSTM"


def test_what_is_small_shows_beside_what_is_large() -> None:
    forecasts = pd.DataFrame(
        {"series": ["a", "b"], "mean": [1e3, 2.0], "q05": [900.0, 1.9], "q95": [1100.0, 2.15]}
    )
    assert finest(forecasts) == pytest.approx(dict.fromkeys(("mean", "q05", "q95"), 0.25))
    scores = pd.DataFrame({"series": ["a", "b"], "rmse": [1e3, 0.02], "skill": [0.1, 0.2]})
    scores["mae_mean"] = [9e2, 0.01]
    assert finest(scores) == {"rmse": 0.02, "mae_mean": 0.01}
    assert finest(scores.drop(columns="series")) == {}


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("horizon", [1, 2])
def test_a_forecast_is_found_by_its_time_as_text(horizon: int, zone: str | None) -> None:
    forecast = made_results.make_forecast(300, horizon, tz=zone)
    explanation = made_results.make_explanation(forecast, contributions=6)
    origin = explanation.contribution.index.get_level_values("origin")[-1]
    point = explanation.at(origin, horizon)
    for text in (str(origin), origin.strftime("%Y-%m-%d %H:%M")):
        found = explanation.at(text, horizon)
        assert found.origin == origin and found.forecast == point.forecast
    for text in (origin.strftime("%Y-%m-%d"), "soon"):  # a day of many forecasts is none of them
        with pytest.raises(DataError, match=f"origin='{text}'.* is not among"):
            explanation.at(text, horizon)


def test_text_that_names_two_times_or_none_finds_no_forecast() -> None:
    forecast = made_results.make_forecast(300, 1, tz="Europe/Berlin")
    explanation = made_results.make_explanation(forecast, contributions=6)
    for text in ("2024-10-27 02:00", "2024-03-31 02:30"):  # the clocks go back, and forward
        with pytest.raises(DataError, match=f"origin='{text}'.* is not among"):
            explanation.at(text)


def test_groups_are_known_by_names_that_contain_a_plus() -> None:
    importance = pd.DataFrame({"variable": ["a + b", "c", "d"], "verdict": [VERDICTS[0], "", ""]})
    groups = pd.DataFrame({"group": ["a + b + c", "c + d"], "verdict": [VERDICTS[0]] * 2})
    assert certain_together(importance, groups) == ("c + d",)


def test_a_rise_of_one_series_that_hardly_counts_is_weak() -> None:
    explanation = made_results.make_explanation(made_results.make_forecast())
    names = list(explanation.importance["variable"])[:3]
    rises = pd.DataFrame({"series": "Oslo", "variable": names, "error_increase": [1.0, 1e-4, 0.2]})
    spread = pd.Series([0.1, 1e-5, 0.4])
    rises["error_increase_low"] = rises["error_increase"] - spread
    rises["error_increase_high"] = rises["error_increase"] + spread
    held = {name: None for name in BY_ORIGIN}
    explanation = dataclasses.replace(explanation, by_series=rises, **held)
    own = explanation.of_series("Oslo").importance.set_index("variable")
    assert list(own.loc[names, "verdict"]) == ["important", VERDICTS[1], VERDICTS[2]]
    with pytest.raises(DataError, match="such as 'Oslo'"):
        explanation.of_series("Rome")
