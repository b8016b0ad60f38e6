"""What a model may call unseen, measured or at the same time: zones, filled targets, series."""

from __future__ import annotations

from datetime import timedelta, timezone

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.evaluate.compare import compare
from mvlstm.model.fitting import begin
from mvlstm.table.frame import build_frame

pytestmark = pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")


def daily(n: int = 600, *, zone: object = "Europe/Berlin", seed: int = 0) -> pd.DataFrame:
    """Return hourly rows that follow the local clock, with a variable beside it."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2024-03-20", periods=n, freq="h", tz=zone, name="time")
    y = np.sin(2 * np.pi * times.hour.to_numpy() / 24) + 0.05 * rng.normal(size=n)
    return pd.DataFrame({"x": rng.normal(size=n), "y": y}, index=times)


@pytest.mark.parametrize("panel", [False, True])
def test_each_step_ahead_is_scored_as_one_would_by_hand(panel: bool) -> None:
    table = daily().assign(place="a")
    table.iloc[-40:-30, 1] = np.nan
    other = daily(seed=1).assign(place="b")
    rows = pd.concat([table, other]) if panel else table.drop(columns="place")
    settings = {"window": 3, "horizon": 3, "missing": "fill", "verbose": 0}
    model = mv.AR(transform="none", **settings)
    plain = [kind(**settings) for kind in (mv.Persistence, mv.SeasonalPersistence)]
    for each in (model, *plain):
        each.fit(rows, "y", test=0.2, **({"series": "place"} if panel else {}))
    found = model.evaluate(rows)
    one = model.predict(rows).to_frame()
    keys = ["series", "origin"] if panel else ["origin"]
    whole = one.groupby(keys)["part"].transform(lambda part: (part == "new").all())
    for j, rival in enumerate(plain):
        one[f"plain{j}"] = rival.predict(rows).to_frame()["mean"]
    scored = one[whole & one["actual"].notna()]
    size = pd.Series(1.0, scored.index)
    if panel:  # each series counts by the size of its own changes
        changes = rows[rows.index <= scored["origin"].min()].groupby("place")["y"]
        size = scored["series"].map(changes.apply(lambda y: (y.diff() ** 2).mean()))
    assert found.by_step is not None and found.by_step["step"].tolist() == [1, 2, 3]
    for row, (_, mine) in zip(
        found.by_step.itertuples(), scored.groupby("step", sort=True), strict=True
    ):
        assert row.n == len(mine)
        assert row.rmse == pytest.approx(np.sqrt(np.mean((mine["mean"] - mine["actual"]) ** 2)))
        assert row.mae == pytest.approx((mine["median"] - mine["actual"]).abs().mean())
        assert row.coverage == pytest.approx(mine["actual"].between(mine.q05, mine.q95).mean())
        own, *others = (
            np.sqrt(np.mean((mine[column] - mine["actual"]) ** 2 / size[mine.index]))
            for column in ("mean", "plain0", "plain1")
        )
        assert row.skill == pytest.approx(1 - own / min(others))
    assert found.by_step["n"].sum() == found.scores["n"].iloc[0]
    single = mv.AR(window=3, missing="fill", verbose=0)
    assert single.fit(table.drop(columns="place"), "y").evaluate(table).by_step is None


class TestZones:
    def test_the_calendar_goes_by_the_clock_of_fit(self) -> None:
        table = daily()  # over the change to summer time
        model = mv.AR(window=3, calendar=["hour"], verbose=0).fit(table, "y", test=0.2)
        here = model.predict(table)
        there = model.predict(table.tz_convert("Asia/Tokyo"))
        np.testing.assert_allclose(here.members, there.members)
        assert any("Asia/Tokyo were brought to Europe/Berlin" in note for note in there.notes)
        assert (here.time == there.time).all()

    def test_a_file_of_one_offset_is_read_like_one_of_two(self, tmp_path) -> None:
        table = daily()
        table.index = table.index.map(lambda time: time.isoformat())
        table.to_csv(tmp_path / "all.csv")
        table.iloc[-100:].to_csv(tmp_path / "last.csv")
        every, last = (pd.read_csv(tmp_path / name) for name in ("all.csv", "last.csv"))
        model = mv.AR(window=3, calendar=["hour"], verbose=0).fit(every, "y", time="time")
        both = [model.forecast(rows) for rows in (every, last)]
        np.testing.assert_allclose(both[0].members, both[1].members)

    def test_the_future_may_be_in_another_zone(self) -> None:
        table = daily().assign(open=lambda rows: (rows.index.hour < 8).astype(int))
        model = mv.AR(window=3, verbose=0).fit(table, "y", known="open")
        future = table[["open"]].iloc[-1:].shift(freq="h")
        both = [model.forecast(table, future=f) for f in (future, future.tz_convert("Asia/Tokyo"))]
        np.testing.assert_allclose(both[0].members, both[1].members)

    def test_a_zone_without_a_name_is_kept_in_utc(self, tmp_path) -> None:
        table = daily(zone=timezone(timedelta(hours=2), "summer"))
        model = mv.AR(window=3, verbose=0).fit(table, "y")
        assert any("summer has no name" in note for note in model.notes_)
        model.save(tmp_path / "model.safetensors")
        again = mv.load(tmp_path / "model.safetensors").predict(table)
        np.testing.assert_allclose(again.members, model.predict(table).members)


class TestFilledTargets:
    def table(self) -> pd.DataFrame:
        table = daily(400, zone=None)
        table.loc[table.index[330:400:2], "y"] = np.nan
        return table

    def test_are_not_scored_against(self) -> None:
        table = self.table()
        model = mv.AR(window=3, missing="fill", verbose=0).fit(table, "y", test=80)
        scores = model.evaluate(table).scores
        assert scores.loc["AR", "n"] == scores.loc["persistence", "n"] == 45
        forecast = model.predict(table)
        gone = table["y"].isna().to_numpy()[3:]
        assert np.isnan(forecast.actual[gone]).all() and np.isfinite(forecast.actual[~gone]).all()
        assert set(forecast.part[gone].ravel()) == {"new"}

    @pytest.mark.parametrize("horizon", [1, 3])
    def test_teach_and_calibrate_nothing(self, horizon: int) -> None:
        table = self.table()
        frame = build_frame(table, target="y", missing="fill")
        model = mv.AR(window=3, horizon=horizon, missing="fill", verbose=0)
        problem = begin(model, frame, test=10, valid=0.1).problem
        steps = np.arange(1, horizon + 1)
        for part in ("train", "stop", "calibration"):
            rows = problem.origins[part]
            measured = table["y"].notna().to_numpy()[rows[:, None] + steps]
            assert len(rows) and measured.any(axis=1).all(), part

    def test_a_stretch_without_any_is_left_out_or_named(self) -> None:
        table = daily(400, zone=None)
        table.loc[table.index[380:], "y"] = np.nan
        model = mv.AR(window=3, missing="fill", verbose=0).fit(table.iloc[:380], "y")
        assert model.evaluate(table).part == "calibration"  # of the newest rows none was measured
        assert model.explain(table, effort="quick").part == "calibration"
        day = daily(400, zone=None)
        day.loc[day.index[348:372], "y"] = np.nan
        model = mv.AR(window=3, missing="fill", verbose=0).fit(day, "y", test=0.2)
        since = model.evaluate(day, since=day.index[330])
        assert since.periods["n"].sum() == 400 - 330 - 24
        early = daily(400, zone=None)
        early.loc[early.index[280:300], "y"] = np.nan
        with pytest.raises(DataError, match="earlier validation rows have no target"):
            mv.AR(window=3, missing="fill", verbose=0).fit(early, "y", test=0.2)

    def test_too_few_whole_windows_are_named_by_every_kind_of_model(self) -> None:
        table = self.table()  # every second target of the last rows is missing
        settings = {"hidden_size": 3, "members": 1, "max_epochs": 1, "device": "cpu"}
        options = {"window": 3, "horizon": 2, "missing": "fill", "verbose": 0}
        for model in (mv.AR(**options), mv.MVLSTM(**options, **settings)):
            model.fit(table, "y", test=60)
            with pytest.raises(
                DataError, match=r"0 held-out windows are too few.*in every one of the 2 steps"
            ):
                model.explain(table, effort="quick")

    def test_a_series_without_any_is_left_out(self) -> None:
        pieces = [daily(400, zone=None, seed=k).assign(place=f"s{k}") for k in range(2)]
        pieces[1].loc[pieces[1].index[380:], "y"] = np.nan
        table = pd.concat(pieces)
        model = mv.AR(window=3, missing="fill", verbose=0)
        model.fit(table, "y", series="place", test=20)
        found = model.evaluate(table)
        assert list(found.by_series["series"]) == ["s0"]
        assert any("Scores are of 1 of 2 series: ['s1'] has no" in note for note in found.notes)

    @pytest.mark.parametrize("refit", ["newest", "full"])
    def test_updates_do_not_learn_from_them(self, refit: str) -> None:
        table = daily(400, zone=None)
        table.loc[table.index[[330, 390]], "y"] = np.nan
        settings = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 2, "verbose": 0}
        model = mv.MVLSTM(missing="fill", **settings).fit(table.iloc[:300], "y")
        model.update(table, refit=refit)
        assert np.isfinite([model.updates_[-1].rmse_before, model.updates_[-1].rmse_after]).all()

    def test_the_mean_of_a_transformed_target_is_corrected_as_without(self) -> None:
        rng = np.random.default_rng(3)
        e = np.where(rng.random(600) < 0.5, -1.5, 1) * rng.random(600)
        table = pd.DataFrame({"y": np.exp(4 + e - np.where(rng.random(600) < 0.1, 3, 0))})
        model = mv.AR(window=3, horizon=3, missing="fill", transform="log1p", verbose=0)
        whole = model.fit(table, "y", test=0.2).fitted_.calibration.mean_factor
        table.iloc[465, 0] = np.nan
        holed = model.fit(table, "y", test=0.2).fitted_.calibration.mean_factor
        np.testing.assert_allclose(holed, whole, rtol=0.2)

    def test_rows_known_ahead_do_not_move_a_fold(self) -> None:
        table = daily(300, zone=None)
        table.loc[table.index[260:270], "y"] = np.nan
        model = mv.AR(window=3, missing="fill", verbose=0)
        found = [mv.backtest(model, table, "y", folds=2, known=k).periods for k in (None, "x")]
        assert found[0] == found[1]

    def test_comparisons_leave_them_out_too(self) -> None:
        table = self.table()
        options = {"methods": ["ar"], "window": 3, "verbose": 0, "test": 80.0}
        rows = compare(table, "y", missing="fill", **options).rows
        assert (rows["n"] == 45).all() and np.isfinite(rows["rmse"]).all()
        scores = mv.backtest(mv.AR(window=3, missing="fill", verbose=0), table, "y", folds=2).scores
        assert scores.loc["pooled", "n"] == scores.loc[[1, 2], "n"].sum() == 45


class TestSeries:
    def panel(self, *, late: int = 0) -> pd.DataFrame:
        pieces = [
            daily(400, zone=None, seed=k).iloc[late * (k == 2) :].assign(place=f"s{k}")
            for k in range(3)
        ]
        return pd.concat(pieces)

    def test_a_late_one_is_new_and_decides_nothing(self) -> None:
        late = self.panel(late=290)  # within the validation rows, which begin at 280
        other = late.copy()
        rows = other["place"] == "s2"
        other.loc[rows, "y"] = np.random.default_rng(5).normal(size=rows.sum())
        fits = [
            mv.AR(window=3, verbose=0).fit(one, "y", series="place", test=0.2)
            for one in (late, other)
        ]
        assert (fits[0].fitted_.calibration.factors == fits[1].fitted_.calibration.factors).all()
        forecast = fits[0].predict(late)
        assert (forecast.part[forecast.series == "s2"] == "new").all()

    def test_a_single_member_has_the_scale_of_each(self) -> None:
        table = self.panel()
        large = table["place"] == "s1"
        table.loc[large, ["x", "y"]] *= 1000.0
        found = compare(
            table,
            "y",
            series="place",
            methods=["mvlstm"],
            window=3,
            members=2,
            budget="quick",
            verbose=0,
        ).rows
        crps = found.set_index(["method", "kind"])["crps"]
        single, several = (crps["MVLSTM", kind] for kind in ("single", "ensemble"))
        assert single < 2 * several
        coverage = found.set_index(["method", "kind"])["coverage"]["MVLSTM", "single"]
        assert 0.8 < coverage <= 1.0

    def test_one_that_ended_early_does_not_stop_the_others(self) -> None:
        table = self.panel().assign(holiday=lambda rows: (rows.index.hour < 6).astype(int))
        model = mv.AR(window=3, verbose=0)
        model.fit(table, "y", series="place", known="holiday")
        last = table.index.max()
        rest = table[(table["place"] != "s1") | (table.index < last - pd.Timedelta(days=2))]
        next_hour = pd.DatetimeIndex([last + pd.Timedelta(hours=1)] * 3, name="time")
        future = pd.DataFrame({"place": ["s0", "s1", "s2"], "holiday": 0}, index=next_hour)
        assert set(model.forecast(rest, future=future).series) == {"s0", "s2"}
        alone = rest[rest["place"] == "s1"]
        with pytest.raises(DataError, match="in series 's1'"):
            model.forecast(alone, future=future[future["place"] == "s1"])


class TestWarnings:
    def test_levels_that_training_did_not_have(self) -> None:
        table = daily(300, zone=None)
        table["kind"] = np.where(np.arange(300) % 3 == 0, "a", "b")
        model = mv.AR(window=4, verbose=0).fit(table, "y")
        assert not model.forecast(table).warnings
        renamed = table.assign(kind=table["kind"].str.upper())
        with pytest.warns(mv.MVLSTMWarning, match="no level of 'kind' that training had"):
            model.forecast(renamed)
        partly = table.assign(kind=[*table["kind"][:-1], "c"])
        assert not model.forecast(partly).warnings

    def test_a_target_that_does_not_move_in_training(self) -> None:
        table = daily(300, zone=None)
        table.loc[table.index[:230], "y"] = 3.0
        with pytest.raises(DataError, match="always 3 in the 210 training rows"):
            mv.AR(window=3, verbose=0).fit(table, "y", test=0.2)


class TestPhase:
    def table(self, n: int) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        cycle = np.sin(2 * np.pi * np.arange(n) / 24)
        return pd.DataFrame(
            {
                "phase": cycle + 0.05 * rng.normal(size=n),
                "noise": rng.normal(size=n),
                "y": 3 * np.roll(cycle, -1) + rng.normal(size=n),
            },
            index=pd.date_range("2024-01-01", periods=n, freq="h"),
        )

    @pytest.mark.parametrize("unseen", [60, 300])
    def test_what_tells_the_phase_alone_does_not_count_however_few_rows(self, unseen) -> None:
        table = self.table(1_500)
        model = mv.AR(window=30, verbose=0).fit(table, "y", test=unseen)
        explanation = model.explain(table, effort="quick", contributions=0)
        assert "phase" not in explanation.important
        assert any(note.startswith("Exchanges keep the phase") for note in explanation.notes)

    def test_too_few_rows_to_keep_it_are_said_to_be(self) -> None:
        table = self.table(300)
        model = mv.AR(window=30, verbose=0).fit(table, "y", test=40)
        few = model.explain(table, effort="quick", contributions=0)
        assert any(note.startswith("There are too few unseen rows to keep") for note in few.notes)


def driven(n: int = 1_000) -> pd.DataFrame:
    """Return hourly rows whose target follows one variable a step later."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = np.roll(x, 1) + 0.3 * rng.normal(size=n)
    index = pd.date_range("2024-01-01", periods=n, freq="h")
    return pd.DataFrame({"x": x, "y": y}, index=index)


class TestFewNewRows:
    @pytest.mark.parametrize("new", [1, 2, 19])
    def test_they_are_explained_with_the_calibration_rows(self, new) -> None:
        table = driven()
        model = mv.AR(window=5, verbose=0).fit(table.iloc[:240], "y")
        known, more = (
            model.explain(table.iloc[:rows], effort="quick") for rows in (240, 240 + new)
        )
        assert more.n_windows == known.n_windows + new
        assert (more.part, more.important) == ("calibration and new", ("x",))
        windows = "is only 1 new window;" if new == 1 else f"are only {new} new windows;"
        assert f"There {windows} the rows the intervals were calibrated on are used too." in (
            more.notes
        )
        assert not any("no new rows" in note for note in more.notes)
        assert model.evaluate(table.iloc[: 240 + new]).part == "new"

    def test_twenty_are_enough(self) -> None:
        table = driven()
        model = mv.AR(window=5, verbose=0).fit(table.iloc[:240], "y")
        found = model.explain(table.iloc[:260], effort="quick")
        assert (found.part, found.n_windows) == ("new", 20)

    def test_a_report_and_a_full_explanation_can_be_made(self, tmp_path) -> None:
        table = driven().iloc[:242]
        model = mv.AR(window=5, verbose=0).fit(table.iloc[:240], "y")
        model.report(table, tmp_path / "report.html", effort="quick")
        assert model.explain(table, effort="full").effort == "full"

    def test_one_window_is_one(self) -> None:
        table = driven()
        model = mv.AR(window=5, verbose=0).fit(table.tail(400), "y", test=0.2)
        with pytest.raises(DataError, match="1 held-out window is too few"):
            model.explain(table.iloc[:6])


class TestOlderRows:
    @pytest.mark.parametrize(("test", "part", "rows"), [(0.2, "new", 80), (0, "calibration", 20)])
    def test_they_are_left_out_and_counted(self, test, part, rows) -> None:
        table = driven()
        model = mv.AR(window=5, verbose=0).fit(table.tail(400), "y", test=test)
        scores, found = model.evaluate(table), model.explain(table, effort="quick")
        assert (scores.part, scores.scores["n"].iloc[0]) == (part, rows)
        assert (found.part, found.n_windows) == (part, rows)
        assert scores.period[0] > model.fitted_.parts.stop
        note = (
            "595 rows from before 2024-01-26 00:00, the first that the model was fitted on, are "
            "left out."
        )
        assert note in scores.notes
        assert note in found.notes
        assert (model.predict(table).part[:595] == "new").all()

    def test_where_there_are_no_others_they_are_scored(self) -> None:
        table = driven()
        model = mv.AR(window=5, verbose=0).fit(table.tail(400), "y", test=0.2)
        older = table.iloc[:300]
        for found in (model.evaluate(older), model.explain(older, effort="quick")):
            assert found.part == "new"
            assert found.notes[0].startswith("All rows are from before 2024-01-26 00:00")
