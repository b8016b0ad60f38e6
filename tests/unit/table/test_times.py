"""Times from one column, several, or the index; their order, step and continuation."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.table.frame import build_frame, rebuild_frame
from mvlstm.table.layout import Layout
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.table.spacing import step_from_json, step_to_json


def table(rows: int = 40, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.normal(size=rows), "y": rng.normal(size=rows), **columns})


def build(source: pd.DataFrame, **options: object) -> SeriesFrame:
    return build_frame(source, target="y", **options)  # type: ignore[arg-type]


def fails(source: pd.DataFrame, match: str, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        build(source, **options)
    assert match in str(caught.value), str(caught.value)
    return str(caught.value)


HOURS = pd.date_range("2013-02-11 00:00", periods=40, freq="h")


# Where the times come from ------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        HOURS,
        HOURS.strftime("%Y-%m-%d %H:%M"),
        HOURS.strftime("%Y-%m-%dT%H:%M:%S"),
        HOURS.strftime("%m/%d/%Y %H:%M"),
        HOURS.strftime("%d/%m/%Y %H:%M"),
        HOURS.strftime("%d.%m.%Y %H:%M"),
        pd.PeriodIndex(HOURS, freq="h"),
        HOURS.to_pydatetime(),
    ],
    ids=["dates", "iso", "isoT", "month first", "day first", "dots", "periods", "datetime"],
)
def test_one_column_of_dates(column: object) -> None:
    frame = build(table(when=column), time="when")
    assert list(frame.times) == list(HOURS)
    assert frame.columns == ("x", "y") and frame.times.name == "when"
    assert frame.step == pd.Timedelta(hours=1)


@pytest.mark.parametrize("rows", [5, 40])
def test_day_first_dates_are_told_by_their_regularity_and_noted(rows: int) -> None:
    days = pd.date_range("2013-01-05", periods=rows, freq="D")  # 05/01: both readings parse
    frame = build(table(rows, when=days.strftime("%d/%m/%Y")), time="when")
    assert list(frame.times) == list(days)
    assert "day/month/year" in frame.notes[0]
    frame = build(table(rows, when=days.strftime("%m/%d/%Y")), time="when")
    assert list(frame.times) == list(days) and frame.notes == ()


def test_an_ambiguous_date_is_read_as_in_fit() -> None:
    days = pd.date_range("2013-01-05", periods=40, freq="D")
    layout = build(table(when=days.strftime("%d/%m/%Y %H:%M")), time="when").layout
    short = table(2, when=["05/03/2013 00:00", "06/03/2013 00:00"])
    assert rebuild_frame(short, layout).times[0] == pd.Timestamp("2013-03-05")
    assert Layout.from_dict(layout.to_dict()).day_first is True
    hours = pd.date_range("2013-03-05", periods=10, freq="h").strftime("%d/%m/%Y %H:%M")
    assert "the month was taken" in build(table(10, when=hours), time="when").notes[0]


def test_one_column_of_integers_or_whole_floats() -> None:
    for column in (np.arange(40) * 5, np.arange(40.0) * 5):
        frame = build(table(when=column), time="when")
        assert frame.times.tolist() == list(range(0, 200, 5)) and frame.step == 5
    fails(table(when=np.arange(40) + 0.5), "not whole, the first 0.5 at", time="when")


def test_integers_written_like_dates_are_dates() -> None:
    days = pd.date_range("2013-01-25", periods=40, freq="D")
    frame = build(table(when=days.strftime("%Y%m%d").astype(int)), time="when")
    assert list(frame.times) == list(days)
    assert "20130125" in frame.notes[0]


def test_integers_written_like_months_are_months() -> None:
    months = pd.date_range("2013-05-01", periods=40, freq="MS")
    frame = build(table(when=months.strftime("%Y%m").astype(int)), time="when")
    assert list(frame.times) == list(months)
    assert "201305" in frame.notes[0]
    numbers = np.arange(201301, 201341)  # 201313 is none
    assert build(table(when=numbers), time="when").times.tolist() == numbers.tolist()


@pytest.mark.parametrize("form", ["%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"])
def test_integers_may_write_hours_too(form: str) -> None:
    frame = build(table(when=HOURS.strftime(form).astype(int)), time="when")
    assert list(frame.times) == list(HOURS)


@pytest.mark.parametrize("per_second", [1, 1_000, 10**6, 10**9])
def test_times_counted_since_1970_are_dates(per_second: int) -> None:
    counts = (HOURS - pd.Timestamp(0)) // pd.Timedelta("1s") * per_second
    frame = build(table(when=counts), time="when")
    assert list(frame.times) == list(HOURS) and "since 1970 in UTC" in frame.notes[0]


def test_days_of_a_spreadsheet_are_dates() -> None:
    days = (HOURS - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D")
    frame = build(table(when=days), time="when")
    assert list(frame.times) == list(HOURS) and "as spreadsheets count" in frame.notes[0]


def test_numbers_that_write_dates_are_times_by_their_name() -> None:
    counts = (HOURS - pd.Timestamp(0)) // pd.Timedelta("1s")
    fails(table(timestamp=counts), "Use time='timestamp'")
    days, hours = HOURS.strftime("%Y%m%d").astype(int), HOURS.hour
    fails(table(date=days, hour=hours), "Use time=['date', 'hour']")
    assert list(build(table(date=days, hour=hours), time=["date", "hour"]).times) == list(HOURS)
    build(table(ts=np.arange(40) % 7))  # numbers like any others


def test_24_hours_are_the_end_of_a_day() -> None:
    ends = [f"{at - pd.Timedelta('1h'):%d.%m.%Y} {at.hour or 24}:00" for at in HOURS]
    assert any(" 24:00" in end for end in ends)
    assert list(build(table(when=ends), time="when").times) == list(HOURS)
    fails(table(when=[end.replace("24:00", "24:30") for end in ends]), "as dates", time="when")


def test_a_count_stays_one_though_a_few_rows_look_like_months() -> None:
    layout = build(table(when=np.arange(201290, 201330)), time="when").layout
    short = table(9, when=np.arange(201301, 201310))
    assert rebuild_frame(short, layout).times.tolist() == list(range(201301, 201310))


@pytest.mark.parametrize("first", ["Jan-15", "15-Jan", "January 15", "Sept. '15"])
def test_half_a_date_is_refused(first: str) -> None:
    message = fails(table(3, when=[first, "x", "y"]), f"such as {first!r}", time="when")
    assert "may be a day or a year" in message and "Write full dates" in message


def test_several_columns_of_clock_parts() -> None:
    source = table(Year=HOURS.year, month=HOURS.month, day=HOURS.day, hour=HOURS.hour)
    frame = build(source, time=["Year", "month", "day", "hour"])
    assert list(frame.times) == list(HOURS) and frame.columns == ("x", "y")
    minutes = pd.date_range("2013-02-11", periods=40, freq="10min")
    source = table(
        year=minutes.year,
        month=minutes.month,
        day=minutes.day,
        hour=minutes.hour,
        minute=minutes.minute,
    )
    frame = build(source, time=["year", "month", "day", "hour", "minute"])
    assert list(frame.times) == list(minutes)


def test_year_and_month_make_months() -> None:
    months = pd.date_range("2010-01-01", periods=40, freq="MS")
    frame = build(table(year=months.year, month=months.month), time=["year", "month"])
    assert list(frame.times) == list(months)


def test_date_and_time_as_text() -> None:
    source = table(date=HOURS.strftime("%d/%m/%Y"), clock=HOURS.strftime("%H:%M"))
    assert list(build(source, time=["date", "clock"]).times) == list(HOURS)


def test_the_index_by_default_or_by_name() -> None:
    source = table().set_axis(HOURS.rename("when"))
    assert list(build(source).times) == list(HOURS)
    assert list(build(source, time="when").times) == list(HOURS)
    assert list(build(table().set_axis(pd.PeriodIndex(HOURS, freq="h"))).times) == list(HOURS)
    assert build(table()).times.tolist() == list(range(40))
    assert build(table().set_axis(range(7, 87, 2))).step == 2


def test_rebuilding_finds_a_time_that_has_become_the_index() -> None:
    layout = build(table(when=HOURS), time="when").layout
    assert list(rebuild_frame(table().set_axis(HOURS.rename("when")), layout).times) == list(HOURS)
    with pytest.raises(DataError, match="missing: \\['when'\\]"):
        rebuild_frame(table(), layout)


@pytest.mark.parametrize("times", [HOURS, pd.RangeIndex(100, 140)], ids=["dates", "integers"])
def test_rebuilding_finds_an_index_that_has_become_a_column(times: pd.Index) -> None:
    layout = build(table().set_axis(times.rename("when"))).layout
    layout = Layout.from_dict(json.loads(json.dumps(layout.to_dict())))
    again = rebuild_frame(table().set_axis(times.rename("when")).reset_index(), layout)
    assert list(again.times) == list(times) and again.notes == ()
    text = table(when=times.astype(str) if times is HOURS else times)
    assert list(rebuild_frame(text, layout).times) == list(times)


def test_an_index_that_is_lost_is_named_with_the_remedy() -> None:
    layout = build(table().set_axis(HOURS.rename("when"))).layout
    with pytest.raises(DataError, match="make 'when' the index, or fit with time='when'"):
        rebuild_frame(table(), layout)
    old = {k: v for k, v in layout.to_dict().items() if k not in ("index_name", "numbered")}
    with pytest.raises(DataError, match=r"saw dates\. Give the table the same kind of index"):
        rebuild_frame(table(when=HOURS), Layout.from_dict(old))


# What is refused ----------------------------------------------------------------------------


def test_unknown_time_column_suggests_the_near_one() -> None:
    assert "Did you mean time='when'?" in fails(table(when=HOURS), "'wen'", time="wen")


def test_text_that_is_no_date() -> None:
    column = HOURS.strftime("%Y-%m-%d %H:%M").to_series().reset_index(drop=True)
    column[17] = "noon"
    message = fails(table(when=column), "'noon' at row 17", time="when")
    assert "in 1 row," in message and "time=..." in message


def test_missing_times() -> None:
    column = HOURS.to_series().reset_index(drop=True)
    column[3] = pd.NaT
    fails(table(when=column), "1 missing time, the first at row 3", time="when")
    text = HOURS.strftime("%Y-%m-%d %H:%M").to_series().reset_index(drop=True)
    text[4] = None
    fails(table(when=text), "1 missing time, the first at row 4", time="when")
    fails(table().set_axis(pd.DatetimeIndex(column)), "The index has 1 missing time")


def test_clock_parts_that_make_no_date() -> None:
    source = table(year=2013, month=2, day=np.arange(1, 41))
    message = fails(
        source, "the first at row 28: year=2013, month=2, day=29", time=["year", "month", "day"]
    )
    assert "12 rows" in message
    fails(source, "'year' and 'month' are needed", time=["year", "day"])


@pytest.mark.parametrize("huge", [10**400, -(10**400), "1e999"])
def test_a_clock_part_beyond_all_numbers(huge) -> None:
    months = pd.Series([1, 2, *[3] * 37, huge], dtype=object)
    source = table(year=2013, month=months)
    fails(source, "cannot be read in 1 row, the first at row 39", time=["year", "month"])


def test_columns_of_numbers_that_are_no_clock_parts() -> None:
    fails(table(a=1, b=2), "only under the names year, month", time=["a", "b"])


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_a_date_beside_the_number_of_the_hour(form) -> None:
    hours = pd.date_range("2024-01-30 05:00", periods=40, freq="h")
    source, time = table(date=hours.strftime(form), hr=hours.hour), ["date", "hr"]
    assert list(build(source, time=time).times) == list(hours)
    assert list(build(source.assign(date=hours.normalize()), time=time).times) == list(hours)
    ends = build(source.assign(hr=hours.hour + 1), time=time)  # the 24th is that of its day
    assert list(ends.times) == list(hours + pd.Timedelta("1h"))
    fails(source.assign(hr=hours.hour * 100), "cannot be read as dates", time=time)
    for dates in (source["date"], pd.Series(hours.normalize())):
        fails(source.assign(date=dates.where(dates.index > 0)), "at row 0", time=time)


@pytest.mark.parametrize("form", ["%Y%m%d", "%d%b%Y", "%d %B %Y"])
def test_dates_beside_the_hour_may_be_without_marks(form) -> None:
    hours = pd.date_range("2024-01-30 05:00", periods=40, freq="h")
    source = table(date=hours.strftime(form), hr=hours.hour)
    assert list(build(source, time=["date", "hr"]).times) == list(hours)


def test_a_number_beside_a_year_or_month_is_no_hour() -> None:
    months = pd.date_range("2024-01-01", periods=12, freq="MS")
    days = pd.date_range("2024-01-01", periods=20, freq="D")
    for times, form, number in (
        (months, "%Y", months.month),
        (days, "%Y-%m", days.day),
        (days, "%b %Y", days.day),
    ):
        source = table().iloc[: len(times)].assign(a=times.strftime(form), b=number)
        assert list(build(source, time=["a", "b"]).times) == list(times)


def test_a_column_of_true_and_false_beside_a_date_is_no_hour() -> None:
    source = table(date=[f"2024-01-{day:02}" for day in range(1, 21) for _ in range(2)])
    source["late"] = [False, True] * 20
    fails(source, "cannot be read as dates", time=["date", "late"])


def test_an_index_of_something_else() -> None:
    message = fails(table().set_axis([f"r{i}" for i in range(40)]), "instance 'r0'). Make it times")
    assert "table.index = pd.to_datetime" in message and "table.reset_index(drop=True)" in message
    fails(table().set_axis(np.arange(40) / 2), "neither times nor integers (float64")
    fails(table().set_axis(pd.timedelta_range("0h", periods=40, freq="h")), "(timedelta64")
    levels = pd.MultiIndex.from_product([["a", "b"], range(20)])
    fails(table().set_axis(levels), "several levels")
    named = table().set_axis(levels.set_names(["shop", "day"]))
    fails(named, "several levels, ['shop', 'day']; one time", series="shop")
    fails(named, "several levels, ['shop', 'day']; one time", series="shop", time="day")


@pytest.mark.parametrize("order", [[*range(10), 11, 10, *range(12, 40)], [*range(39, -1, -1)]])
def test_rows_out_of_order_are_sorted(order: list[int]) -> None:
    source = table()
    frame = build_frame(source.iloc[order], target="y")
    np.testing.assert_array_equal(frame.values, build_frame(source, target="y").values)
    assert frame.notes[0].startswith("Sorted the rows by time, which fell in ")


def test_repeated_times() -> None:
    order = [*range(20), *range(19, 39)]
    message = fails(table().set_axis(HOURS[order]), "2013-02-11 19:00 occurs in rows 19 and 20")
    assert "duplicates='mean'" in message and "clocks" not in message
    night = [*range(3), *range(2, 39)]
    fails(table().set_axis(HOURS[night]), "when clocks go back, give the times in UTC")


def test_years_out_of_range() -> None:
    far = pd.DatetimeIndex(np.array(["2500-01-01", "2500-01-02"], dtype="datetime64[s]"))
    fails(table(2).set_axis(far), "only the years 1678 to 2261")


# Time zones and calendars -------------------------------------------------------------------


def test_zones_are_kept_and_spacing_is_measured_in_utc() -> None:
    for start in ("2013-03-30", "2013-10-26"):  # both changes of the clock
        hours = pd.date_range(start, periods=60, freq="h", tz="Europe/Berlin")
        frame = build(table(60).set_axis(hours))
        assert frame.step == pd.Timedelta(hours=1)
        assert str(frame.times.tz) == "Europe/Berlin"  # type: ignore[attr-defined]
        assert frame.layout.time_zone == "Europe/Berlin"


def test_local_days_are_regular_across_a_change_of_the_clock() -> None:
    days = pd.date_range("2013-03-01", periods=60, freq="D", tz="Europe/Berlin")
    frame = build(table(60).set_axis(days))
    following = frame.future_times(np.array([59]), 2)[0]
    assert list(following) == list(pd.date_range("2013-04-30", periods=2, tz="Europe/Berlin"))


@pytest.mark.parametrize("freq", ["D", "2D", "W"])
def test_local_days_go_on_over_a_change_of_the_clock_not_yet_seen(freq: str) -> None:
    every = pd.date_range("2023-11-05", "2024-06-30", freq=freq, tz="Europe/Berlin")
    known = int((every < pd.Timestamp("2024-03-30", tz="Europe/Berlin")).sum())  # one season
    frame = build(table(known).set_axis(every[:known]))
    assert list(frame.future_times(np.array([known - 1]), 4)[0]) == list(every[known : known + 4])
    assert rebuild_frame(table(len(every)).set_axis(every), frame.layout).n_rows == len(every)


def test_rows_24_hours_apart_over_a_change_of_the_clock_stay_so() -> None:
    every = pd.date_range("2024-03-01", periods=42, freq="24h", tz="UTC")
    local = every.tz_convert("Europe/Berlin")  # 01:00 in winter, 02:00 in summer
    frame = build(table(40).set_axis(local[:40]))
    assert list(frame.future_times(np.array([39]), 2)[0]) == list(local[40:])


@pytest.mark.parametrize(
    ("zone", "change", "clock", "there"),
    [
        ("America/Santiago", "2024-09-08", "00:00", "01:00"),
        ("Africa/Cairo", "2024-04-26", "00:00", "01:00"),
        ("Europe/Berlin", "2024-03-31", "02:30", "03:00"),
        ("Europe/Berlin", "2024-10-27", "02:30", "02:30"),  # it occurs twice
    ],
)
@pytest.mark.parametrize("last", [-3, -1, 0, 1])  # days between the change and the last row
def test_days_at_a_time_that_clocks_leave_out_or_repeat(
    zone: str, change: str, clock: str, there: str, last: int
) -> None:
    days = pd.date_range(end=pd.Timestamp(f"{change} {clock}"), periods=60).union(
        pd.date_range(f"{change} {clock}", periods=9)
    )
    every = days.tz_localize(zone, nonexistent="shift_forward", ambiguous=np.ones(68, dtype=bool))
    assert f"{every[59]:%H:%M}" == there and f"{every[58]:%H:%M}" == clock
    row = 59 + last
    frame = build(table(row + 1).set_axis(every[: row + 1]), calendar=["weekday"])
    assert list(frame.future_times(np.array([row]), 4)[0]) == list(every[row + 1 : row + 5])
    assert frame.values_ahead(4)[1].all()  # the calendar reaches beyond the last row
    assert rebuild_frame(table(68).set_axis(every), frame.layout).n_rows == 68


def test_another_time_of_day_is_no_whole_day() -> None:
    days = pd.date_range("2024-06-01", periods=60, tz="America/Santiago").to_series()
    days.iloc[20] += pd.Timedelta(hours=1)
    fails(table(60).set_axis(pd.DatetimeIndex(days)), "the step is 1 day, but 2 of 59")


def test_text_with_changing_offsets_is_kept_in_utc() -> None:
    hours = pd.date_range("2013-10-26 22:00", periods=40, freq="h", tz="Europe/Berlin")
    text = [stamp.isoformat() for stamp in hours]
    frame = build(table(when=text), time="when")
    assert list(frame.times) == list(hours) and "UTC" in frame.notes[0]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("freq", ["BME", "BMS", "BQE", "BQS", "BYE"])
def test_business_month_ends_and_starts_are_regular(freq: str, zone: str | None) -> None:
    every = pd.date_range("1990-01-01", periods=43, freq=freq, tz=zone)
    for index in (every, pd.DatetimeIndex(every.astype(object))):  # with its freq and without
        frame = build(table(40).set_axis(index[:40]))
        ahead = pd.DatetimeIndex(frame.future_times(np.array([39]), 3)[0])
        assert list(ahead) == list(every[40:])
        assert step_from_json(step_to_json(frame.step)) == frame.step
    gone = table(42).set_axis(every.delete(7)[:42])
    assert "month" in fails(gone, "not evenly spaced")


@pytest.mark.parametrize("freq", ["MS", "ME", "QS", "QE", "YS", "YE"])
def test_months_quarters_and_years_are_regular(freq: str) -> None:
    every = pd.date_range("2001-01-01", periods=43, freq=freq)
    frame = build(table(40).set_axis(every[:40]))
    assert list(frame.future_times(np.array([39]), 3)[0]) == list(every[40:].to_numpy())
    text = json.dumps(frame.layout.to_dict())
    assert Layout.from_dict(json.loads(text)) == frame.layout
    assert rebuild_frame(table(5).set_axis(every[5:10]), frame.layout).n_rows == 5


def test_a_missing_month_is_a_gap() -> None:
    months = pd.date_range("2001-01-01", periods=41, freq="MS").delete(7)
    assert "the step is 1 month" in fails(table().set_axis(months), "(2 months, row 6)")


# Times ahead --------------------------------------------------------------------------------


def test_times_ahead_are_those_of_the_rows_then_regular_steps() -> None:
    frame = build(table().set_axis(HOURS))
    ahead = frame.future_times(np.array([5, 38, 39]), 3)
    assert ahead.shape == (3, 3)
    hour = np.timedelta64(1, "h")
    expected = HOURS.to_numpy()[[5, 38, 39]][:, None] + hour * np.arange(1, 4)
    np.testing.assert_array_equal(ahead, expected)


def test_times_ahead_across_a_closed_gap_are_those_of_the_rows() -> None:
    source = table().set_axis(HOURS).drop(HOURS[10:15])
    closed = build(source, gaps="close")
    assert closed.future_times(np.array([9]), 1)[0, 0] == HOURS[15]
    respected = build(source, gaps="respect")
    assert respected.future_times(np.array([9]), 1)[0, 0] == HOURS[10]


def test_times_ahead_of_zoned_and_integer_times() -> None:
    zoned = HOURS.tz_localize("UTC")
    ahead = build(table().set_axis(zoned)).future_times(np.array([39]), 1)
    assert ahead[0, 0] == zoned[39] + pd.Timedelta(hours=1)
    ahead = build(table()).future_times(np.array([0, 39]), 2)
    np.testing.assert_array_equal(ahead, [[1, 2], [40, 41]])
    assert ahead.dtype == np.int64


def test_business_days_are_a_step_of_their_own() -> None:
    days = pd.bdate_range("2024-01-01", periods=120, name="day")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=120), "y": rng.normal(size=120)}, index=days)
    model = mv.AR(window=3, horizon=2, verbose=0).fit(table, "y", test=0.2)  # no gaps to close
    friday = table.loc[:"2024-05-31"]
    ahead = pd.DatetimeIndex(model.forecast(friday).time[0])
    assert list(ahead) == [pd.Timestamp("2024-06-03"), pd.Timestamp("2024-06-04")]
    assert step_from_json(step_to_json(model.fitted_.layout.step)) == model.fitted_.layout.step
    holiday = table.drop(pd.Timestamp("2024-05-01"))
    with pytest.raises(DataError, match=r"step is 1 business day, .*2 business days"):
        mv.AR(window=3, verbose=0).fit(holiday, "y", test=0.2)
    with pytest.raises(DataError, match="not evenly spaced"):
        weekend = table.rename(index={pd.Timestamp("2024-05-03"): pd.Timestamp("2024-05-04")})
        mv.AR(window=3, gaps="error", verbose=0).fit(weekend, "y", test=0.2)


@pytest.mark.parametrize(("text", "day_first"), [("%m/%d/%Y", False), ("%d/%m/%Y", True)])
@pytest.mark.parametrize("freq", ["MS", "QS", "ME"])
def test_months_are_as_even_as_days(text: str, day_first: bool, freq: str) -> None:
    times = pd.date_range("2000-01-01", periods=60, freq=freq)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"time": times.strftime(text), "y": rng.normal(size=60)})
    frame = build_frame(table, target="y", time="time")
    assert (frame.times == times).all()
    if freq != "ME":  # a day above 12 leaves no choice
        assert frame.layout.day_first is day_first


@pytest.mark.parametrize("first", ["00:00", "7:05:30", "11:30 pm", "12:00:00.250"])
def test_a_clock_without_a_date_is_refused(first: str) -> None:
    table = pd.DataFrame({"time": [first] * 3, "y": [1.0, 2.0, 4.0]})
    with pytest.raises(DataError, match="without a date"):
        build_frame(table, target="y", time="time")


def test_many_rows_a_day_are_not_months() -> None:
    times = pd.date_range("2013-01-05", periods=720, freq="10min")
    times = times[np.random.default_rng(0).permutation(720)[:680]].sort_values()
    table = pd.DataFrame({"time": times.strftime("%d/%m/%Y %H:%M"), "y": np.arange(680) % 7})
    frame = build_frame(table, target="y", time="time", gaps="respect")
    assert frame.layout.day_first and (frame.times == times).all()


def test_a_missing_day_of_times_in_utc_is_a_gap() -> None:
    days = pd.date_range("2024-03-01", periods=9, freq="D", tz="Europe/Berlin")
    table = pd.DataFrame({"t": days.map(str), "y": np.arange(9.0) % 7})
    with pytest.raises(DataError, match=r"2 days, row 4\)\. Use .* as consecutive\.$"):
        build_frame(table.drop(index=5), target="y", time="t")


# Dates and times of day in columns of their own ------------------------------------------------


DAYS, CLOCK = HOURS.strftime("%d/%m/%Y"), HOURS.strftime("%H.%M.%S")


@pytest.mark.parametrize("form", ["%H.%M.%S", "%H.%M", "%H:%M"])
def test_times_of_day_with_dots(form: str) -> None:
    source = table(Date=DAYS, Time=HOURS.strftime(form))
    assert list(build(source, time=["Date", "Time"]).times) == list(HOURS)
    joined = table(when=HOURS.strftime(f"%Y-%m-%d {form}"))
    assert list(build(joined, time="when").times) == list(HOURS)


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (None, "Columns ['Date', 'Time'] seem to hold the times"),
        ("Date", "'Date' holds days alone, and 'Time' the times of day"),
        ("Time", "'Time' holds times of day alone, and 'Date' the days"),
    ],
)
def test_half_of_a_time_is_refused_with_the_whole(time: str | None, told: str) -> None:
    with pytest.raises(DataError) as caught:
        build(table(Date=DAYS, Time=CLOCK), time=time)
    assert told in str(caught.value)
    assert caught.value.remedy == {"time": ["Date", "Time"]}
    assert "time=['Date', 'Time']" in str(caught.value)


def test_hours_next_to_days_count_too() -> None:
    source = table(dteday=HOURS.strftime("%Y-%m-%d"), hr=HOURS.hour)
    with pytest.raises(DataError) as caught:
        build(source, time="dteday")
    assert caught.value.remedy == {"time": ["dteday", "hr"]}
    assert list(build(source, **caught.value.remedy).times) == list(HOURS)


def test_parts_of_a_time_are_not_taken_for_variables() -> None:
    parts = {part: getattr(HOURS, part) for part in ("year", "month", "day", "hour")}
    remedy = {"time": [*parts]}
    for given in (None, ["year", "month", "day"]):  # the latter would merge the hours of a day
        with pytest.raises(DataError) as caught:
            build(table(**parts), time=given)
        assert caught.value.remedy == remedy
    assert list(build(table(**parts), **remedy).times) == list(HOURS)
    days = pd.date_range("2019-12-12", periods=len(HOURS), freq="D")
    seasons = table(year=days.year, month=days.month)  # of days, which no column tells
    assert build(seasons).variables == ("x", "year", "month", "y")


def test_rows_may_be_numbered_though_a_column_holds_dates() -> None:
    source = table(Date=HOURS.strftime("%Y-%m-%d %H:%M"))
    fails(source, "Column 'Date' seems to hold the times. Use time='Date', or exclude=['Date']")
    assert build(source, exclude=["Date"]).columns == ("x", "y")
