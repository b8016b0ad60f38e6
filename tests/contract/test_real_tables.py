"""Every forecaster with every kind of input: categories, known ahead, calendar, several series."""

from __future__ import annotations

import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.contract.test_forecasters import small

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import FORECASTERS, forecaster_class

ONE_SERIES = [name for name in FORECASTERS if forecaster_class(name).one_series]
NO_CALENDAR = [n for n in FORECASTERS if "calendar" not in forecaster_class(n)().get_params()]
MIXED = ("MVLSTM", "LSTM", "AR", "ENET", "RF", "XGT", "GBT", "DUAL", "RETAIN", "CLSTM")
TIMES = pd.date_range("2024-01-01", periods=420, freq="h", name="time")
CUT = 390  # values of the target and of past variables change from here on
WEATHER = {"dry": -1.0, "wet": 1.0, "fog": 0.0}

pytestmark = pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")


def station(seed: int, *, scale: float = 1.0, level: float = 0.0) -> pd.DataFrame:
    """Return a series driven by a category, a number, a holiday and the hour."""
    rng = np.random.default_rng(seed)
    n = len(TIMES)
    weather = rng.choice(list(WEATHER), n)
    wind, holiday = rng.normal(size=n), (rng.random(n) < 0.2).astype(int)
    y = np.zeros(n)
    for i in range(1, n):
        y[i] = 0.5 * y[i - 1] + WEATHER[weather[i - 1]] + 0.5 * wind[i - 1] + 2 * holiday[i]
        y[i] += np.sin(2 * np.pi * i / 24) + 0.2 * rng.normal()
    columns = {"weather": weather, "wind": scale * wind + level, "holiday": holiday}
    return pd.DataFrame({**columns, "y": scale * y + level}, index=TIMES)


def stations() -> pd.DataFrame:
    """Return two stations that differ in level and scale."""
    near = station(1).assign(station="near").iloc[:-10]
    return pd.concat([station(2, scale=1e3, level=5e3).assign(station="far"), near])


def columns(kind: str) -> dict[str, Any]:
    """Return what to tell ``fit`` about a table of some kind."""
    if kind == "categories":
        return {"exclude": "holiday"}
    return {"known": "holiday"} | ({"series": "station"} if kind == "panel" else {})


@cache
def fitted(name: str, kind: str, horizon: int) -> AbstractForecaster:
    """Return a forecaster fitted to a table of some kind."""
    settings: dict[str, Any] = {"horizon": horizon}
    if kind != "categories" and name not in NO_CALENDAR:
        settings["calendar"] = "auto"
    table = stations() if kind == "panel" else station(0)
    return small(name, **settings).fit(table, "y", test=0.2, **columns(kind))


CASES = [
    (name, kind, horizon)
    for name in FORECASTERS
    for kind, horizon in (("categories", 1), ("known", 1), ("known", 2), ("panel", 2))
    if name not in ONE_SERIES or horizon == 1
]
each = pytest.mark.parametrize(("name", "kind", "horizon"), CASES)


def rows(kind: str) -> pd.DataFrame:
    """Return the table of some kind, and for a panel a series more that training did not have."""
    if kind != "panel":
        return station(0)
    return pd.concat([stations(), station(3, scale=10.0, level=-50.0).assign(station="new")])


@each
def test_nothing_after_the_origin_changes_a_forecast(name: str, kind: str, horizon: int) -> None:
    model, table = fitted(name, kind, horizon), rows(kind)
    changed = table.copy()
    late = np.asarray(table.index >= TIMES[CUT])
    rng = np.random.default_rng(5)
    changed.loc[late, ["wind", "y"]] = rng.normal(size=(late.sum(), 2)) * 7e3
    changed.loc[late, "weather"] = "storm"
    before, after = model.predict(table), model.predict(changed)
    known = np.asarray(before.origin < TIMES[CUT])
    assert known.any() and not known.all()
    np.testing.assert_array_equal(before.members[:, known], after.members[:, known])
    for q in (0.05, 0.95):  # intervals follow outcomes, but none that was not known yet
        ends = (one.take(known).quantile(q) for one in (before, after))
        np.testing.assert_array_equal(*ends)
    moved = ~np.isclose(before.members[:, ~known], after.members[:, ~known])
    assert moved.any(), "the change must reach forecasts made after it"


@each
def test_forecast_agrees_with_predict_where_the_future_is_known(
    name: str, kind: str, horizon: int
) -> None:
    model, table = fitted(name, kind, horizon), rows(kind)
    everything = model.predict(table)
    past = table[table.index < TIMES[CUT]]
    later = table[(table.index >= TIMES[CUT]) & (table.index < TIMES[CUT + horizon])]
    future = None
    if "known" in columns(kind):
        future = later[["holiday", *(["station"] if kind == "panel" else [])]]
    made = model.forecast(past, future=future)
    last = np.asarray(everything.origin == TIMES[CUT - 1])
    np.testing.assert_allclose(
        made.members, everything.members[:, last], rtol=1e-4, atol=1e-4 * 5e3
    )
    assert list(made.to_frame()["time"].unique()) == list(TIMES[CUT : CUT + horizon])
    if future is not None:
        blank = later.assign(y=np.nan, wind=np.nan, weather=None)
        again = model.forecast(pd.concat([past, blank]))
        np.testing.assert_array_equal(again.members, made.members)
        with pytest.raises(DataError, match=r"\['holiday'\], known ahead.*; of step 1, "):
            model.forecast(past)
        if horizon > 2:
            hole = future.assign(holiday=future["holiday"].where(future.index != TIMES[CUT + 1]))
            when = TIMES[CUT + 1].strftime("%Y-%m-%d %H:%M")
            with pytest.raises(DataError, match=f"of step 2, {when}.*empty value"):
                model.forecast(past, future=hole)


@each
def test_models_survive_their_file(name: str, kind: str, horizon: int, tmp_path: Path) -> None:
    model, table = fitted(name, kind, horizon), rows(kind)
    model.save(tmp_path / "model.safetensors")
    again = mv.load(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(again.predict(table).to_frame(), model.predict(table).to_frame())


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_a_series_that_never_varied_is_forecast_near_its_level(level: float) -> None:
    rng = np.random.default_rng(0)
    size = {"large": 1e6, "larger": 3e6, "small": 1.0}
    rows = pd.concat(
        [
            pd.DataFrame({"x": rng.normal(size=200), "station": name}, index=TIMES[:200]).assign(
                y=one * (10 + rng.normal(size=200))
            )
            for name, one in size.items()
        ]
        + [pd.DataFrame({"x": 0.5, "station": "flat", "y": level}, index=TIMES[:200])]
    )
    model = mv.AR(window=4).fit(rows, "y", series="station", test=0.2)
    assert any("does not vary in the training rows of series ['flat']" in n for n in model.notes_)
    made = model.forecast(rows).to_frame().set_index("series").loc["flat"]
    around = 5 if level else 5_000  # at zero, the level tells nothing
    assert level - around < made["q05"] < made["q95"] < level + around


@pytest.mark.parametrize("name", FORECASTERS)
@pytest.mark.parametrize("kind", ["categories", "known", "panel"])
def test_variables_are_explained_under_their_own_names(name: str, kind: str) -> None:
    if kind == "panel" and name in ONE_SERIES:
        pytest.skip("models one series")
    horizon = 2 if kind == "panel" else 1
    model, table = fitted(name, kind, horizon), rows(kind)
    explanation = model.explain(table, effort="quick", contributions=4)
    names = {"weather", "wind", "y"} | (set() if kind == "categories" else {"holiday"})
    if kind != "categories" and name not in NO_CALENDAR:
        names.add("calendar")
    assert set(explanation.importance["variable"]) == names
    if "own" in explanation.importance:
        total = explanation.importance["own"].sum()
        assert total == pytest.approx(1.0) or name == "DUAL"
    if kind == "panel":
        assert explanation.by_series is not None
        assert set(explanation.by_series["series"]) == {"near", "far", "new"}
        sums = explanation.by_series.groupby("series")["importance"].sum()
        assert all(abs(s - 1) < 1e-9 or s == 0 for s in sums)
    if explanation.contribution is not None:
        lags = explanation.contribution.columns
        assert {lag for v, lag in lags if v == "wind"} == set(range(1, 7))
        if kind != "categories":
            ahead = {lag for v, lag in lags if v == "holiday"}
            assert ahead == set(range(1 - horizon, 7 - horizon))


@pytest.mark.parametrize("name", [n for n in FORECASTERS if n not in ONE_SERIES])
def test_the_order_of_the_series_changes_nothing(name: str) -> None:
    model, table = fitted(name, "panel", 2), stations()
    turned = table.iloc[::-1].sort_index(kind="stable")
    again = small(name, **{k: v for k, v in model.get_params().items() if k != "verbose"})
    again.fit(turned, "y", test=0.2, **columns("panel"))
    np.testing.assert_array_equal(again.predict(turned).members, model.predict(table).members)


def test_a_forecast_of_one_of_several_series_says_so_and_its_unit() -> None:
    explanation = fitted("AR", "panel", 2).explain(stations(), effort="quick", contributions=4)
    assert explanation.contribution is not None
    row = explanation.contribution.index[0]
    point = explanation.at(row)
    assert point.series == row[0]
    assert f"'y' of series '{row[0]}' from" in repr(point)
    assert "in standard deviations of its series\n" in repr(point)
    alone = explanation.of_series(row[0]).at(*row[1:])
    assert alone.series is None and "in standard deviations of its series" in repr(alone)
    single = fitted("AR", "known", 2).explain(station(0), effort="quick", contributions=4)
    assert single.contribution is not None
    assert "series" not in repr(single.at(single.contribution.index[0]))


def test_a_panel_has_parts_that_end_at_the_same_times_and_scores_by_series() -> None:
    model, table = fitted("AR", "panel", 2), stations()
    forecast = model.predict(table)
    frame = forecast.to_frame()
    assert list(frame.columns[:3]) == ["series", "origin", "step"]
    last = frame[frame["part"] == "train"].groupby("series")["time"].max()
    assert last["near"] == last["far"] == model.fitted_.parts.train
    assert forecast.mean.index.names == ["series", "origin", "step"]
    evaluation = model.evaluate(table)
    assert evaluation.by_series is not None
    by_series = evaluation.by_series.set_index("series")
    assert by_series.loc["far", "rmse"] > 100 * by_series.loc["near", "rmse"]
    assert (by_series["skill"] > 0.3).all()
    assert by_series["n"].sum() == evaluation.scores["n"].iloc[0]
    assert "by_series" in evaluation.to_dict()


def test_a_series_unseen_in_training_is_forecast_on_its_own_scale() -> None:
    model = fitted("AR", "panel", 2)
    fresh = station(3, scale=10.0, level=-50.0).assign(station="new")
    score = model.predict(fresh).score(part="all")
    moves = np.diff(fresh["y"]).std()
    assert score["rmse"] < moves
    assert 0.8 < score["coverage"] < 1.0


def test_a_series_unseen_in_training_is_new_at_any_time() -> None:
    model = fitted("AR", "panel", 2)
    fresh = station(3, scale=10.0, level=-50.0).assign(station="new")
    assert (model.predict(fresh).part == "new").all()
    both = pd.concat([stations(), fresh])
    forecast = model.predict(both)
    own = forecast.series == "new"
    assert (forecast.part[own] == "new").all() and (forecast.part[~own] == "train").any()
    counts = model.evaluate(both).by_series.set_index("series")["n"]
    assert counts["new"] > 2 * counts["near"]  # all of its rows, not the last ones alone
    assert model.explain(fresh, effort="quick").part == "new"


def test_short_series_are_named_and_left_out() -> None:
    model = fitted("AR", "panel", 2)
    table = stations()
    short = station(4).assign(station="short").iloc[-3:]
    both = pd.concat([table, short])
    future = pd.concat(
        [
            pd.DataFrame(
                {"holiday": 0, "station": name},
                index=pd.date_range(end + pd.Timedelta(hours=1), periods=2, freq="h"),
            )
            for name, end in (("far", TIMES[-1]), ("near", TIMES[-11]), ("short", TIMES[-1]))
        ]
    )
    forecast = model.forecast(both, future=future)
    assert set(forecast.series) == {"far", "near"}  # type: ignore[arg-type]
    assert any("1 series is left out" in w and "'short'" in w for w in forecast.warnings)
    alone = model.forecast(both, future=future[future["station"] == "far"])
    assert set(alone.series) == {"far"}  # type: ignore[arg-type]
    (lack,) = (w for w in alone.warnings if "for lack of ['holiday']" in w)
    assert "'near' from 2024-01-18 02:00 on, 'short' from" in lack


def even(table: pd.DataFrame) -> pd.DataFrame:
    """Let all series end at the same time."""
    return table[table.index <= TIMES[-11]].copy()


def test_series_that_end_before_the_rest_are_named() -> None:
    model = fitted("AR", "panel", 2)
    (told,) = (w for w in model.forecast(stations(), future=holidays("far", "near")).warnings)
    assert "last time: 'near' ends at 2024-01-18 01:00" in told
    assert not model.forecast(even(stations()), future=holidays("far", "near")).warnings


def test_only_rows_that_forecasts_rest_on_are_far_outside() -> None:
    model, table = fitted("AR", "panel", 2), even(stations())
    table.loc[(table["station"] == "near") & (table.index == TIMES[50]), "wind"] = 1e9
    future = holidays("far", "near")
    assert not model.forecast(table, future=future).warnings
    assert "1 row has" in model.predict(table).warnings[0]
    table.loc[(table["station"] == "near") & (table.index == TIMES[-12]), "wind"] = 1e9
    (told,) = model.forecast(table, future=future).warnings
    assert f"at {TIMES[-12]:%Y-%m-%d %H:%M} in series 'near'" in told


@pytest.mark.parametrize("kind", ["known", "panel"])
def test_far_values_of_the_future_are_told_with_their_time(kind: str) -> None:
    table = even(stations() if kind == "panel" else station(0))
    future = holidays("far", "near") if kind == "panel" else holidays("far")
    future.loc[future.index == TIMES[-10], "holiday"] = 500
    (told,) = fitted("AR", kind, 2).forecast(table, future=future).warnings
    assert "'holiday' is" in told and f"at {TIMES[-10]:%Y-%m-%d %H:%M}" in told


def holidays(*names: str) -> pd.DataFrame:
    """Return holidays of two months, the past too, for some stations."""
    times = pd.date_range("2024-01-01", periods=24 * 60, freq="h", name="time")
    return pd.concat([pd.DataFrame({"holiday": 1, "station": name}, index=times) for name in names])


def test_a_file_of_the_future_may_reach_back_and_far_ahead() -> None:
    table, model = stations(), fitted("AR", "panel", 2)
    near = holidays("near").loc[TIMES[-10] :].iloc[:2]
    far = holidays("far").loc[TIMES[-1] :].iloc[1:3]
    expected = model.forecast(table, future=pd.concat([near, far])).to_frame()
    found = model.forecast(table, future=holidays("far", "near", "other")).to_frame()
    pd.testing.assert_frame_equal(found, expected)
    by_time = model.forecast(table, future=holidays("far", "near").sort_index()).to_frame()
    pd.testing.assert_frame_equal(by_time, expected)


def test_numbered_rows_of_the_future_go_on_from_the_table() -> None:
    table = station(0)[["holiday", "y"]].reset_index(drop=True)
    model = mv.AR(window=6, horizon=2).fit(table, "y", known="holiday")
    given = pd.DataFrame({"holiday": [1, 0]})
    found = model.forecast(table, future=given)
    assert found.time.tolist() == [[420, 421]]
    again = model.forecast(table, future=given.set_axis([420, 421]))
    np.testing.assert_array_equal(found.mean, again.mean)


@pytest.mark.parametrize("time", [None, "time"])
def test_times_of_the_future_may_be_a_column_and_the_tables_the_index(time: str | None) -> None:
    table, given = station(0).iloc[:-2], station(0)[["holiday"]].iloc[-2:]
    model = mv.AR(window=6, horizon=2).fit(table, "y", time=time, known="holiday")
    expected = model.forecast(table, future=given)
    as_text = given.reset_index().astype({"time": str})
    for past in (table, table.reset_index()):
        for future in (given, given.reset_index(), as_text):
            found = model.forecast(past, future=future)
            np.testing.assert_array_equal(found.mean, expected.mean)
            assert found.time.tolist() == expected.time.tolist()


def test_another_kind_of_times_in_the_future_is_refused() -> None:
    model, table = fitted("AR", "known", 2), station(0)
    given = holidays("far")
    with pytest.raises(DataError, match=r"future=.* has integers as times, and the table has"):
        model.forecast(table, future=given.reset_index(drop=True))
    with pytest.raises(DataError, match=r"future=.* has dates with a zone as times"):
        model.forecast(table, future=given.tz_localize("UTC"))


@pytest.mark.parametrize("kind", ["known", "panel"])
def test_rows_of_the_future_out_of_order_are_laid_to_the_future(kind: str) -> None:
    model, table = fitted("AR", kind, 2), stations() if kind == "panel" else station(0)
    given = holidays("far", "near") if kind == "panel" else holidays("far")
    last = given.index.max()
    for wrong in (given.iloc[::-1], pd.concat([given, given.loc[[last]]])):
        with pytest.raises(DataError, match=r"rows of future=.* are not in order: 2024-.*row \d"):
            model.forecast(table, future=wrong)
    reached = given.loc[given.index <= TIMES[-20]]  # what the table has reached may be in any order
    model.forecast(table, future=pd.concat([reached.iloc[::-1], given]))


@pytest.mark.parametrize("kind", ["known", "panel"])
def test_empty_rows_at_the_end_are_filled_from_the_future(kind: str) -> None:
    model = fitted("AR", kind, 2)
    table = even(stations() if kind == "panel" else station(0)).astype({"holiday": float})
    future = holidays("far", "near") if kind == "panel" else holidays("far")
    cut = table.index >= TIMES[-13]
    expected = model.forecast(table[~cut], future=future)
    empty = table.copy()
    empty.loc[cut, ["wind", "holiday", "y"]] = np.nan
    before = empty.copy()
    found = model.forecast(empty, future=future)
    pd.testing.assert_frame_equal(empty, before)
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    empty.loc[cut, "holiday"] = 0.0  # what the table itself says holds
    other = model.forecast(empty, future=future)
    assert (np.asarray(other.mean) != np.asarray(expected.mean)).any()


@pytest.mark.parametrize("place", ["table", "future"])
def test_series_without_a_past_are_named(place: str) -> None:
    model, table, future = fitted("AR", "panel", 2), even(stations()), holidays("far", "near")
    fresh = holidays("fresh")
    if place == "table":
        table = pd.concat([table, fresh.loc[TIMES[-9] :]])
    else:
        future = pd.concat([future, fresh])
    found = model.forecast(table, future=future)
    assert set(found.series) == {"far", "near"}  # type: ignore[arg-type]
    (told,) = found.warnings
    assert told.startswith("1 series is left out for lack of a past") and "'fresh'" in told


def test_series_without_times_go_on_each_from_its_own_end() -> None:
    table = stations().groupby("station").head(400).drop(columns="weather")
    numbers = table.groupby("station").cumcount().to_numpy()
    given = pd.DataFrame({"station": ["far", "far", "near", "near"], "holiday": [1, 0, 0, 1]})
    options: dict[str, Any] = {"series": "station", "known": "holiday", "test": 0.2}
    timed = mv.AR(window=6, horizon=2).fit(table.set_axis(numbers), "y", **options)
    expected = timed.forecast(table.set_axis(numbers), future=given.set_axis([400, 401, 400, 401]))
    plain = table.reset_index(drop=True)
    model = mv.AR(window=6, horizon=2).fit(plain, "y", **options)
    assert any("numbered within each series" in note for note in model.notes_)
    assert model.evaluate(plain).by_series["n"].nunique() == 1  # not the last series alone
    for future in (given, given.iloc[[0, 2, 1, 3]].reset_index(drop=True)):
        found = model.forecast(plain, future=future)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    empty = plain.astype({"holiday": float})
    ends = empty.groupby("station").tail(2).index
    shorter = model.forecast(plain.drop(ends), future=given)
    empty.loc[ends, ["wind", "holiday", "y"]] = np.nan
    found = model.forecast(empty, future=given)
    pd.testing.assert_frame_equal(found.to_frame(), shorter.to_frame())


@pytest.mark.parametrize("column", ["holiday", "station"])
def test_what_the_future_lacks_is_named(column: str) -> None:
    future = holidays("far", "near").drop(columns=column)
    with pytest.raises(DataError, match=f"future=.* missing: \\['{column}'\\]"):
        fitted("AR", "panel", 2).forecast(stations(), future=future)


@pytest.mark.parametrize("name", ONE_SERIES)
def test_methods_that_cannot_say_so(name: str) -> None:
    with pytest.raises(DataError, match="models one series"):
        small(name).fit(stations(), "y", test=0.2, series="station")
    with pytest.raises(DataError, match="at horizon=1 only"):
        small(name, horizon=2).fit(station(0), "y", test=0.2, known="holiday")


def test_windows_and_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ParameterError, match="window=6 is shorter than horizon=8"):
        small("AR", horizon=8, calendar="auto").fit(station(0), "y", test=0.2)
    small("AR", horizon=8).fit(station(0), "y", test=0.2)
    with pytest.raises(ParameterError, match="difference='auto' is for one series"):
        small("MVLSTM", difference="auto").fit(stations(), "y", test=0.2, series="station")
    with pytest.raises(ParameterError, match="this model has none"):
        fitted("AR", "categories", 1).forecast(station(0), future=station(0))


def test_the_calendar_counts_though_exchanges_keep_the_phase_of_a_day() -> None:
    table = station(0)[["y"]].assign(y=lambda t: np.sin(2 * np.pi * t.index.hour / 24))
    noise = np.random.default_rng(0).normal(size=len(table))
    table = table.assign(y=table["y"] + 0.3 * noise, other=np.roll(noise, 3))
    model = mv.AR(window=2, calendar=["hour"]).fit(table, "y", test=0.4)
    importance = model.explain(table, effort="quick").importance.set_index("variable")
    assert importance.loc["calendar", "importance"] > 0.8
    assert importance.loc["calendar", "verdict"] == "important"


def test_known_values_change_only_the_steps_they_are_for() -> None:
    """A holiday on the second step ahead is no news for models of the first alone."""
    model, table = fitted("AR", "known", 2), station(0)
    later = table.copy()
    later.loc[TIMES[CUT], "holiday"] = 1 - later.loc[TIMES[CUT], "holiday"]
    before, after = model.predict(table), model.predict(later)
    changed = ~np.isclose(before.members, after.members).all(axis=(0, 2))
    touched = before.origin[changed]
    assert touched.min() == TIMES[CUT - 2]  # whose window of holidays ends there


def test_memory_grows_in_proportion_to_the_number_of_series() -> None:
    one = station(0).drop(columns="weather")
    peaks = []
    for count in (100, 400):
        table = pd.concat([one.assign(station=f"s{k:03d}") for k in range(count)])
        tracemalloc.start()
        model = mv.AR(window=3).fit(table, "y", test=0.2, series="station")
        forecast = model.predict(table)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(forecast) == count * (len(one) - 3)
    assert peaks[1] < 4.4 * peaks[0]


def test_what_comes_after_a_series_that_ended_early_is_new() -> None:
    table = stations()
    short = station(5).assign(station="short").iloc[:150]  # ends amid the training rows
    both = pd.concat([table, short]).drop(columns="holiday")
    model = mv.AR(window=4, verbose=0).fit(both, "y", series="station", test=0.2)
    ahead = model.forecast(both)
    assert (ahead.part == "new").all() and ahead.time.min() < model.fitted_.parts.train


def test_a_young_series_gets_the_rows_that_follow_it() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for name, n in (("a", 150), ("b", 150), ("c", 10)):
        known = rng.normal(size=n + 14)
        rows.append(pd.DataFrame({"station": name, "k": known, "y": 3 * known}))
    past = pd.concat([one.iloc[:-14] for one in rows], ignore_index=True)
    model = mv.AR(window=4, horizon=2).fit(past, "y", known="k", series="station", test=0.2)
    made = []
    for count in (3, 14):
        later = pd.concat([one.iloc[-14 : len(one) - 14 + count] for one in rows])
        future = later[["station", "k"]].reset_index(drop=True)
        made.append(model.forecast(past, future=future).to_frame().query("series == 'c'")["mean"])
    np.testing.assert_allclose(made[0], made[1])
    assert len(made[0]) == 2


def test_more_rows_than_the_table_has_are_taken_from_its_start_and_said_so() -> None:
    known = np.random.default_rng(0).normal(size=200)
    table = pd.DataFrame({"k": known, "y": 3 * known})
    model = mv.AR(window=4, horizon=2).fit(table.iloc[:100], "y", known="k", test=0.2)
    whole = pd.DataFrame({"k": known})
    with pytest.warns(mv.MVLSTMWarning, match="numbered from the table's first row"):
        first = model.forecast(table.iloc[:100], future=whole)
    np.testing.assert_allclose(first.mean, 3 * known[100:102], atol=0.1)


def test_a_calendar_that_was_filtered_serves_as_future() -> None:
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=130, freq="D", name="date")
    table = pd.DataFrame({"k": rng.normal(size=130)}, index=times)
    table["y"] = 3 * table["k"]
    model = mv.AR(window=4, horizon=2).fit(table.iloc[:100], "y", known="k", test=0.2)
    calendar = table[["k"]].reset_index()
    calendar = calendar[calendar["date"] >= "2024-03-20"]
    made = model.forecast(table.iloc[:100].rename_axis(None), future=calendar)
    np.testing.assert_allclose(made.mean, table["y"].iloc[100:102], atol=0.1)
