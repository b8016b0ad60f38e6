"""Tables as people have them: categories, values known ahead, calendars, several series."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import DataError, ModelFileError, ParameterError
from mvlstm.table.frame import build_frame, rebuild_frame
from mvlstm.table.layout import Layout


def table(n: int = 400, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    index = pd.date_range("2020-01-01", periods=n, freq="h", name="time")
    frame = pd.DataFrame(
        {
            "wind": rng.choice(["NE", "SW", "cv"], n),
            "rain": rng.normal(size=n),
            "holiday": (np.arange(n) % 7 == 0).astype(int),
            "y": rng.normal(size=n).cumsum(),
        },
        index=index,
    )
    return frame.assign(**columns)


def panel(**scales: float) -> pd.DataFrame:
    parts = [
        table(100 + 10 * k).assign(station=name, y=lambda t, s=scale: s * t["y"])
        for k, (name, scale) in enumerate(scales.items())
    ]
    return pd.concat(parts)


# Categories ---------------------------------------------------------------------------------


def test_text_becomes_one_column_a_level_under_one_name() -> None:
    frame = build_frame(table(), target="y")
    assert frame.variables == ("wind", "rain", "holiday", "y")
    assert frame.columns[:4] == ("wind=NE", "wind=SW", "wind=cv", "rain")
    assert frame.groups == (0, 0, 0, 1, 2, 3)
    source = table()["wind"]
    for column, level in enumerate(("NE", "SW", "cv")):
        np.testing.assert_array_equal(frame.values[:, column], source == level)


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_every_kind_of_text_is_recognised(kind: str) -> None:
    frame = build_frame(table().astype({"wind": kind}), target="y")
    np.testing.assert_array_equal(frame.values, build_frame(table(), target="y").values)


def test_integers_are_categorical_on_demand_and_read_alike_as_floats() -> None:
    source = table(wind=np.arange(400) % 3)
    frame = build_frame(source, target="y", categorical="wind")
    assert frame.columns[:3] == ("wind=0", "wind=1", "wind=2")
    again = rebuild_frame(source.astype({"wind": float}), frame.layout)
    np.testing.assert_array_equal(again.values, frame.values)


def test_levels_come_from_the_training_rows_and_others_are_counted() -> None:
    late = table()["wind"].where(np.arange(400) < 395, "storm")
    frame = build_frame(table(wind=late), target="y", test=0.2, valid=0.1)
    assert dict(frame.layout.levels) == {"wind": ("NE", "SW", "cv")}
    assert not frame.values[395:, :3].any()
    assert any("5 rows with levels that training did not have, ['storm']" in n for n in frame.notes)
    assert "wind=storm" in build_frame(table(wind=late), target="y").columns
    again = rebuild_frame(table(wind="fog"), frame.layout)
    assert not again.values[:, :3].any()
    assert any("400 rows" in note for note in again.notes)


def test_missing_categories_follow_the_same_rules_as_numbers() -> None:
    holes = table()["wind"].where(np.arange(400) % 50 != 20)
    with pytest.raises(DataError, match="Column 'wind' has 8 missing values"):
        build_frame(table(wind=holes), target="y")
    dropped = build_frame(table(wind=holes), target="y", missing="drop", gaps="close")
    assert dropped.n_rows == 392
    filled = build_frame(table(wind=holes), target="y", missing="fill")
    np.testing.assert_array_equal(filled.values[20, :3], filled.values[19, :3])
    assert (filled.values[:, :3].sum(axis=1) == 1).all()


def test_blanks_around_levels_do_not_count() -> None:
    source = table(wind=["NE", " NE", "SW ", "SW"] * 100)
    assert build_frame(source, target="y").layout.levels == (("wind", ("NE", "SW")),)
    source.loc[source.index[5], "wind"] = "  "
    with pytest.raises(DataError, match="Column 'wind' has 1 missing value"):
        build_frame(source, target="y")
    spaced = panel(a=1, b=1)
    spaced["station"] = spaced["station"].where(np.arange(210) % 2 == 0, " " + spaced["station"])
    frame = build_frame(spaced, target="y", series="station")
    assert frame.panel is not None and frame.panel.names == ("a", "b")


def test_a_target_of_words_is_no_column_to_exclude() -> None:
    with pytest.raises(DataError, match="'wind' is the target: make it numbers first"):
        build_frame(table(), target="wind")
    with pytest.raises(DataError, match=r"categorical=\['rain'\]"):
        build_frame(table(rain=[1, 2, 3, "x"] * 100), target="y")


def test_many_levels_are_refused_with_remedies() -> None:
    names = [f"site {k % 60}" for k in range(400)]
    with pytest.raises(DataError, match=r"60 levels.*at most 50") as caught:
        build_frame(table(wind=names), target="y")
    assert "series='wind'" in str(caught.value)
    assert "exclude=['wind']" in str(caught.value)


def test_numbers_with_something_stray_stay_an_error() -> None:
    stray = ["1.5"] * 390 + ["n/a?"] * 10
    with pytest.raises(DataError, match=r"Column 'wind' is not numeric: 'n/a\?'"):
        build_frame(table(wind=stray), target="y")
    with pytest.raises(DataError, match="always 'NE'"):
        build_frame(table(wind="NE"), target="y")
    with pytest.raises(DataError, match=r"not in the table.*Did you mean categorical='wind'"):
        build_frame(table(), target="y", categorical="wnd")
    with pytest.raises(DataError, match="named in categorical, but it is not one of"):
        build_frame(table(), target="y", categorical="wind", exclude="wind")
    with pytest.raises(DataError, match="named in known, but it is the target"):
        build_frame(table(), target="y", known="y")


# Known ahead --------------------------------------------------------------------------------


def test_values_ahead_come_from_later_rows_and_then_from_the_future() -> None:
    source = table()
    frame = build_frame(source, target="y", known="holiday")
    ahead, given = frame.values_ahead(3)
    np.testing.assert_array_equal(ahead[:-3, 0], source["holiday"].to_numpy()[3:])
    np.testing.assert_array_equal(given, np.arange(400) < 397)
    source = source.astype({"holiday": float})
    source.iloc[-5:, [0, 1, 3]] = np.nan
    later = rebuild_frame(source, frame.layout)
    assert later.n_rows == 395
    ahead, given = later.values_ahead(5)
    assert given.all()
    np.testing.assert_array_equal(ahead[-5:, 0], source["holiday"].to_numpy()[-5:])
    assert not later.values_ahead(6)[1][-1]
    assert later.future_times(np.array([394]), 6)[0, -1] == np.datetime64("2020-01-17T16:00")


def test_what_is_missing_in_the_future_ends_it() -> None:
    layout = build_frame(table(), target="y", known="holiday").layout
    source = table().astype({"holiday": float})
    source.iloc[-5:, 3] = np.nan
    source.iloc[-3, 2] = np.nan
    later = rebuild_frame(source, layout)
    assert later.future is not None and len(later.future.values) == 2


@pytest.mark.parametrize("several", [False, True])
def test_rows_dropped_at_the_end_still_tell_what_is_known_ahead(several: bool) -> None:
    source = table(20).assign(station="a")
    source.loc[source.index[-3:], "rain"] = np.nan
    source = source if several else source.drop(columns="station")
    options = {"series": "station"} if several else {}
    frame = build_frame(source, target="y", known="holiday", missing="drop", **options)
    assert frame.n_rows == 17 and frame.future is not None and len(frame.future.times) == 3
    assert any("Dropped 3 rows at the end" in note for note in frame.notes)
    ahead, given = frame.values_ahead(3)
    assert given.all()
    np.testing.assert_array_equal(ahead[-1], [source["holiday"].iloc[-1]])


def test_a_hole_in_the_future_is_refused_or_ends_it() -> None:
    source = table()
    source.iloc[-5:, 3] = np.nan
    holed = source.drop(source.index[-3])
    layout = build_frame(table(), target="y", known="holiday").layout
    with pytest.raises(DataError, match=r"do not continue.*2020-01-17 14:00 comes after"):
        rebuild_frame(holed, layout)
    respecting = build_frame(table(), target="y", known="holiday", gaps="respect").layout
    future = rebuild_frame(holed, respecting).future
    assert future is not None and len(future.values) == 2
    closing = build_frame(table(), target="y", known="holiday", gaps="close").layout
    frame = rebuild_frame(holed, closing)
    times = frame.future_times(np.array([394]), 4)[0]
    np.testing.assert_array_equal(times, holed.index[-4:].to_numpy())


def test_without_known_columns_rows_without_target_stay_missing() -> None:
    source = table()
    source.iloc[-5:, 3] = np.nan
    with pytest.raises(DataError, match="Target 'y' has 5 missing values"):
        build_frame(source, target="y")
    assert build_frame(source, target="y", known="holiday").n_rows == 395


def test_known_variables_need_not_be_named_twice() -> None:
    frame = build_frame(table(), target="y", variables=["rain"], known=["holiday"])
    assert frame.variables == ("rain", "holiday", "y")
    assert frame.layout.ahead == (False, True, False)


# Calendar -----------------------------------------------------------------------------------


def test_the_calendar_is_one_variable_of_cycles_that_the_times_span() -> None:
    frame = build_frame(table(), target="y", calendar="auto")
    assert frame.variables[-2:] == ("calendar", "y")
    assert frame.columns[-5:-1] == ("hour sin", "hour cos", "weekday sin", "weekday cos")
    noon = frame.values[12, -5:-3]
    np.testing.assert_allclose(noon, [0, -1], atol=1e-12)
    clocks = [frame.layout.inputs[column] for column in frame.layout.clock_columns]
    assert clocks == ["hour sin", "hour cos", "weekday sin", "weekday cos"]
    assert build_frame(table(), target="y").layout.clock_columns == ()
    short = build_frame(table(60), target="y", calendar="auto")
    assert short.layout.calendar == ("hour",)
    days = table().set_axis(pd.date_range("2018-01-01", periods=400, freq="D"))
    assert build_frame(days, target="y", calendar="auto").layout.calendar == ("weekday",)
    months = table().set_axis(pd.date_range("1990-01-01", periods=400, freq="MS"))
    assert build_frame(months, target="y", calendar="auto").layout.calendar == ("yearday",)
    assert build_frame(days, target="y", calendar=["yearday"]).layout.calendar == ("yearday",)


def test_the_calendar_goes_on_beyond_the_last_row() -> None:
    long = build_frame(table(), target="y", calendar=["hour"])
    short = build_frame(table().iloc[:300], target="y", calendar=["hour"])
    ahead, given = short.values_ahead(6)
    assert given.all()
    np.testing.assert_allclose(ahead, long.values[6:306, -3:-1], atol=1e-12)


def test_calendars_that_cannot_be_are_refused() -> None:
    with pytest.raises(ParameterError, match="choose 'none', 'auto' or some of hour"):
        build_frame(table(), target="y", calendar="daily")
    with pytest.raises(DataError, match=r"needs dates as times.*pd.to_datetime"):
        build_frame(table().reset_index(drop=True), target="y", calendar="auto")
    with pytest.raises(DataError, match="has a column of that name"):
        build_frame(table(calendar=table()["rain"]), target="y", calendar="auto")
    daily = table().set_axis(pd.date_range("2020-01-01 06:00", periods=400))
    with pytest.raises(DataError, match="every row has the same hour"):
        build_frame(daily, target="y", calendar=["hour", "weekday"])


@pytest.mark.parametrize(
    ("freq", "parts"),
    [
        ("12h", ("hour", "weekday")),
        ("D", ("weekday",)),
        ("W", ("yearday",)),
        ("MS", ("yearday",)),
        ("ME", ("yearday",)),
        ("6MS", ("yearday",)),
        ("YS", ()),
    ],
)
def test_cycles_have_several_rows(freq: str, parts: tuple[str, ...]) -> None:
    source = table().iloc[:150].set_axis(pd.date_range("1950-01-31", periods=150, freq=freq))
    assert build_frame(source, target="y", calendar="auto").layout.calendar == parts


# Several series -----------------------------------------------------------------------------


def test_series_are_put_together_in_order_of_their_names() -> None:
    source = panel(b=1, a=100)
    frame = build_frame(source, target="y", series="station")
    assert frame.panel is not None and frame.panel.names == ("a", "b")
    np.testing.assert_array_equal(np.bincount(frame.segments), [110, 100])
    np.testing.assert_array_equal(frame.target_values[:110], source["y"][source["station"] == "a"])
    mixed = source.sample(frac=1, random_state=0).sort_index(kind="stable")
    again = build_frame(mixed, target="y", series="station")
    np.testing.assert_array_equal(again.values, frame.values)
    np.testing.assert_array_equal(frame.last_rows(), [109, 209])
    assert frame.order.max() == 109 and len(frame.clock) == 110


def test_nothing_of_one_series_reaches_another() -> None:
    source = panel(a=1, b=1)
    last = np.flatnonzero(source["station"] == "b")[:3]
    source.iloc[last, 1] = np.nan
    frame = build_frame(source, target="y", series="station", missing="fill")
    assert frame.n_rows == 207
    assert any("Dropped 3 rows of series" in note for note in frame.notes)
    frame = build_frame(panel(a=1, b=1), target="y", series="station", known="holiday")
    _, given = frame.values_ahead(4)
    np.testing.assert_array_equal(np.flatnonzero(~given), [96, 97, 98, 99, *range(206, 210)])


def test_faults_of_a_panel_name_the_series() -> None:
    source = panel(a=1, b=1)
    with pytest.raises(DataError, match=r"say with series=\.\.\. which"):
        build_frame(source.drop(columns="station"), target="y")
    swapped = source.iloc[np.r_[0:100, 101, 100, 102:210]]
    frame = build_frame(swapped, target="y", series="station")
    assert "Sorted the rows by time, which fell in 1 place." in frame.notes
    with pytest.raises(DataError, match="2020-01-01 05:00 in series 'b' occurs twice"):
        twice = pd.concat([source, source.iloc[105:106]]).sort_index(kind="stable")
        build_frame(twice, target="y", series="station")
    with pytest.raises(DataError, match=r"2 of 207 differ.*series 'a'"):
        build_frame(source.drop(source.index[5]), target="y", series="station")
    with pytest.raises(DataError, match="Series column 'station' has 3 missing values"):
        build_frame(
            source.assign(station=source["station"].where(np.arange(210) > 2)),
            target="y",
            series="station",
        )
    with pytest.raises(DataError, match="both series and excluded"):
        build_frame(source, target="y", series="station", exclude="station")


def test_gaps_within_a_series_are_respected() -> None:
    source = panel(a=1, b=1)
    holed = source.iloc[np.r_[0:50, 51:210]]
    frame = build_frame(holed, target="y", series="station", gaps="respect")
    np.testing.assert_array_equal(np.bincount(frame.segments), [50, 49, 110])
    frame = build_frame(holed, target="y", series="station", gaps="close")
    np.testing.assert_array_equal(np.bincount(frame.segments), [99, 110])


@pytest.mark.parametrize("gaps", ["error", "close", "respect"])
def test_series_have_one_step(gaps: str) -> None:
    source = panel(a=1, b=1)
    slow = source["station"] == "b"
    other = pd.concat([source[~slow], source[slow].iloc[::3]])
    with pytest.raises(DataError, match=r"series 'b' are 3 hours apart, and the step .* 1 hour"):
        build_frame(other.iloc[:130], target="y", series="station", gaps=gaps)
    layout = build_frame(source, target="y", series="station", gaps="close").layout
    with pytest.raises(DataError, match="series 'b' are 3 hours apart"):
        rebuild_frame(other, layout)


def stacked(rows: int = 60) -> pd.DataFrame:
    """Return two series one after the other, rows numbered through."""
    both = table(2 * rows)
    parts = [both.iloc[:rows].assign(station="b"), both.iloc[rows:].assign(station="a")]
    return pd.concat(parts, ignore_index=True)


def test_rows_without_times_are_numbered_within_each_series() -> None:
    source = stacked()
    frame = build_frame(source, target="y", series="station", test=0.25)
    assert frame.times.tolist() == [*range(60), *range(60)]
    assert any("numbered within each series" in note for note in frame.notes)
    timed = source.assign(when=[*range(60), *range(60)])
    other = build_frame(timed, target="y", series="station", time="when", test=0.25)
    np.testing.assert_array_equal(frame.values, other.values)
    assert frame.layout.levels == other.layout.levels and frame.clock.equals(other.clock)


def test_later_tables_are_numbered_as_in_fit() -> None:
    source = stacked()
    layout = build_frame(source, target="y", series="station").layout
    mixed = source.iloc[np.argsort([*range(60), *range(60)], kind="stable")]
    for later in (source, mixed.reset_index(drop=True), source.set_axis([*range(60), *range(60)])):
        frame = rebuild_frame(later, layout)
        assert frame.times.tolist() == [*range(60), *range(60)]
    one = rebuild_frame(source[source["station"] == "a"], layout)  # numbered 60 to 119
    assert one.times.tolist() == list(range(60))


def test_rows_left_out_stay_gaps_where_rows_are_numbered() -> None:
    frame = build_frame(stacked().drop(70), target="y", series="station", gaps="respect")
    assert frame.times.tolist() == [*range(10), *range(11, 60), *range(60)]


def test_integers_that_series_share_or_that_have_a_name_stay_times() -> None:
    shared = stacked().set_axis([*range(5, 65), *range(30, 90)])
    named = stacked().rename_axis("tick")
    mixed = stacked().iloc[np.argsort([*range(60), *range(60)], kind="stable")]
    for source in (shared, named, mixed.reset_index(drop=True)):
        frame = build_frame(source, target="y", series="station")
        order = np.argsort(source["station"], kind="stable")
        assert frame.times.tolist() == source.index[order].tolist()
        assert not frame.layout.numbered and frame.notes == ()


# Layout -------------------------------------------------------------------------------------


def test_a_layout_survives_json_and_old_ones_load() -> None:
    source = panel(a=1, b=2)
    layout = build_frame(
        source, target="y", series="station", known="holiday", calendar="auto"
    ).layout
    assert Layout.from_dict(json.loads(json.dumps(layout.to_dict()))) == layout
    old = {k: v for k, v in layout.to_dict().items() if k not in ("levels", "known", "calendar")}
    del old["series"]
    assert Layout.from_dict(old).levels == ()


@pytest.mark.parametrize(
    "damage",
    [
        {"levels": {"nothing": ["a"]}},
        {"levels": {"wind": [1]}},
        {"levels": 3},
        {"known": ["nothing"]},
        {"calendar": ["minute"]},
        {"series": 3},
        {"index_name": 3},
        {"numbered": "yes"},
    ],
)
def test_damaged_layouts_are_refused(damage: dict[str, object]) -> None:
    layout = build_frame(table(), target="y").layout.to_dict()
    with pytest.raises(ModelFileError):
        Layout.from_dict(layout | damage)


def test_truth_values_with_holes_stay_numbers() -> None:
    flags = np.array([True, False, None] * 133 + [True], dtype=object)
    frame = build_frame(table(wind=flags), target="y", missing="drop", gaps="close")
    assert frame.columns == ("wind", "rain", "holiday", "y")
    assert set(frame.values[:, 0]) == {0.0, 1.0}


def test_what_is_known_ahead_may_be_categorical() -> None:
    events = np.array(["none", "fair", "match"])[np.arange(400) % 3]
    layout = build_frame(table(event=events), target="y", known="event").layout
    source = table(event=events).astype({"event": object})
    source.iloc[-2:, [0, 1, 2, 3]] = np.nan
    frame = rebuild_frame(source, layout)
    ahead, given = frame.values_ahead(2)
    assert given.all()
    np.testing.assert_array_equal(ahead[-1], [events[-1] == e for e in ("fair", "match", "none")])


def test_levels_never_seen_are_counted_in_rows_known_ahead_too() -> None:
    events = np.array(["none", "fair"])[np.arange(400) % 2]
    source = table(event=events).astype({"event": object})
    layout = build_frame(source, target="y", known="event").layout
    source.iloc[-3:, [0, 1, 3]] = np.nan
    source.loc[source.index[-2:], "event"] = "match"
    frame = rebuild_frame(source, layout)
    (note,) = frame.notes
    assert note.startswith("Column 'event' has 2 rows after the last target with levels")
    assert "match" in note
    source["event"] = events
    source.loc[source.index[:-3], "wind"] = "a storm"  # not known ahead: nothing to say of the end
    (note,) = rebuild_frame(source, layout).notes
    assert note.startswith("Column 'wind' has 397 rows with levels")


@pytest.mark.parametrize(
    ("last", "words"), [(1, "last target was missing"), (3, "last 3 targets were missing")]
)
def test_a_forecast_tells_how_many_of_the_last_targets_were_filled_in(
    last: int, words: str
) -> None:
    layout = build_frame(table(), target="y", missing="fill").layout
    source = table()
    source.iloc[-last:, 3] = np.nan
    source.iloc[100, 3] = np.nan
    (doubt,) = rebuild_frame(source, layout).doubts
    assert doubt.startswith(f"The {words} and filled in: forecasts start after the last row")
    assert not rebuild_frame(source.iloc[:-last], layout).doubts


def test_so_it_does_of_several_series() -> None:
    source = panel(a=1.0, b=2.0, c=3.0)
    layout = build_frame(source, target="y", series="station", missing="fill").layout
    place = source.columns.get_loc("y")
    ends = np.flatnonzero(source["station"].to_numpy() == "b")[-2:]
    source.iloc[[5, *ends], place] = np.nan
    (doubt,) = rebuild_frame(source, layout).doubts
    assert "last targets of 1 series, 2 rows, were missing" in doubt
