"""Every check that stands between a user's table and a model, and its message."""

from __future__ import annotations

import decimal
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.windows import origin_rows
from mvlstm.table.frame import build_frame, rebuild_frame

from .conftest import holed, table, with_gap


def fails(match: str, frame: object, **options: object) -> str:
    """Assert that building fails with a message that holds ``match``; return the message."""
    options.setdefault("target", "pm25")
    with pytest.raises(DataError) as caught:
        build_frame(frame, **options)  # type: ignore[arg-type]
    assert match in str(caught.value), str(caught.value)
    return str(caught.value)


# What comes out -----------------------------------------------------------------------------


def test_target_is_last_and_values_are_those_of_the_table() -> None:
    source = table()[["pm25", "wind", "temp"]]
    frame = build_frame(source, target="pm25")
    assert frame.columns == frame.variables == ("wind", "temp", "pm25")
    assert frame.groups == (0, 1, 2)
    assert frame.target == "pm25" and frame.n_variables == 3 and frame.n_rows == 50
    assert frame.values.flags.c_contiguous and frame.values.dtype == np.float64
    np.testing.assert_array_equal(frame.values, source[["wind", "temp", "pm25"]].to_numpy())
    np.testing.assert_array_equal(frame.target_values, source["pm25"].to_numpy())
    assert (frame.times == source.index).all()
    assert frame.step == pd.Timedelta(hours=1)
    assert not frame.segments.any() and frame.notes == ()
    assert "50 rows, 3 variables, target 'pm25'" in repr(frame)


def test_the_table_is_not_changed() -> None:
    source = table()
    source.iloc[3, 0] = np.nan
    before = source.copy(deep=True)
    for missing in ("drop", "fill"):
        build_frame(source, target="pm25", missing=missing, gaps="close")
        pd.testing.assert_frame_equal(source, before)


def test_a_variable_alone_and_a_target_alone_are_enough() -> None:
    assert build_frame(table(), target="pm25", variables=["temp"]).columns == ("temp", "pm25")
    assert build_frame(table()[["pm25"]], target="pm25").columns == ("pm25",)


def test_variables_keep_the_order_asked_for_and_may_name_the_target() -> None:
    frame = build_frame(table(), target="pm25", variables=["temp", "pm25", "wind"])
    assert frame.columns == ("temp", "wind", "pm25")


def test_exclude_takes_one_name_or_several() -> None:
    assert build_frame(table(), target="pm25", exclude="wind").columns == ("temp", "pm25")
    assert build_frame(table(), target="pm25", exclude=["wind", "temp"]).columns == ("pm25",)


@pytest.mark.parametrize(
    "column",
    [
        np.arange(50) % 2 == 0,
        np.arange(50) % 7,
        pd.array(np.arange(50) % 7, dtype="Int64"),
        pd.array(np.arange(50) % 2 == 0, dtype="boolean"),
        pd.array(np.arange(50) % 7, dtype="int32[pyarrow]"),
        pd.Series((np.arange(50) % 7).astype(str), dtype=object).to_numpy(),
        np.array([decimal.Decimal(int(i)) for i in np.arange(50) % 7], dtype=object),
        (np.arange(50) % 7).astype(np.float16),
        pd.Categorical(np.arange(50) % 7),
    ],
    ids=["bool", "int", "Int64", "boolean", "pyarrow", "text", "Decimal", "float16", "category"],
)
def test_numbers_of_every_kind_become_floats(column: object) -> None:
    frame = build_frame(table(wind=column), target="pm25")
    expected = np.arange(50) % (2 if frame.values[:, 0].max() == 1 else 7)
    if frame.values[:, 0].max() == 1:
        expected = 1 - expected
    np.testing.assert_array_equal(frame.values[:, 0], expected)


def test_missing_entries_of_nullable_columns_are_missing() -> None:
    column = pd.array([None, *range(49)], dtype="Int64")
    fails("Column 'wind' has 1 missing value at 2013-05-01 00:00", table(wind=column))


def test_column_names_need_not_be_text() -> None:
    source = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)))
    frame = build_frame(source, target=2)  # type: ignore[arg-type]
    assert frame.columns == ("0", "1", "2")


def test_non_ascii_names_survive() -> None:
    source = table().rename(columns={"wind": "Windstärke 風"})
    assert build_frame(source, target="pm25").columns[0] == "Windstärke 風"


# Names --------------------------------------------------------------------------------------


def test_unknown_target_suggests_the_near_one() -> None:
    message = fails("Target 'PM2.5' is not in the table", table(), target="PM2.5")
    assert "Did you mean target='pm25'?" in message


def test_unknown_name_without_a_near_one_lists_the_columns() -> None:
    message = fails("'zzz'", table(), target="zzz")
    assert "['wind', 'temp', 'pm25']" in message and "target=..." in message


def test_long_lists_of_columns_are_shortened() -> None:
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 500))).add_prefix("v")
    message = fails("... 500 in all", wide, target="zzz")
    assert len(message) < 300


def test_unknown_variable_and_excluded_column() -> None:
    assert "variables='wind'" in fails("Variable 'wnd'", table(), variables=["wnd"])
    assert "exclude='temp'" in fails("Excluded column 'tmp'", table(), exclude=["tmp"])


def test_a_column_cannot_have_two_roles() -> None:
    fails("both target and excluded", table(), exclude=["pm25"])
    fails("both target and time", table(), time="pm25")
    fails("both a variable and excluded", table(), variables=["wind"], exclude=["wind"])
    hours = table(hour=np.arange(50))
    fails("both a variable and time", hours, variables=["hour"], time="hour")


def test_duplicate_column_names() -> None:
    source = table()
    source.columns = ["temp", "temp", "pm25"]
    message = fails("'temp' names the columns [0, 1]", source)
    assert "Rename or remove" in message


def test_repeated_and_malformed_lists_of_names() -> None:
    with pytest.raises(ParameterError, match="exclude names 'wind' twice"):
        build_frame(table(), target="pm25", exclude=["wind", "wind"])
    with pytest.raises(ParameterError, match="exclude=3 is not a column name"):
        build_frame(table(), target="pm25", exclude=3)  # type: ignore[arg-type]


def test_a_column_in_place_of_its_name() -> None:
    """As those may write who know estimators that take X and y."""
    source = table()
    with pytest.raises(
        ParameterError, match=r"target is a Series.*target='pm25' says which"
    ) as one:
        build_frame(source[["wind", "temp"]], target=source["pm25"])  # type: ignore[arg-type]
    assert "\n" not in str(one.value)
    with pytest.raises(ParameterError, match=r"target is a list.* column is needed"):
        build_frame(source, target=["pm25"])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"series is a ndarray.* series='y' says"):
        build_frame(source, target="pm25", series=np.arange(50))  # type: ignore[arg-type]


def test_a_target_with_marks_says_so() -> None:
    marked = [f"1,{200 + i}.5" for i in range(50)]
    fails("Take out what is not part of the number, such as , or % marks.", table(pm25=marked))


def test_something_else_than_a_table() -> None:
    fails("'data.csv' does not exist. Check the path.", "data.csv")
    fails("not ndarray. Make one with pandas.DataFrame", np.zeros((3, 3)))
    other = type("Frame", (), {"to_pandas": table})
    fails("not Frame. Make one with its to_pandas()", other())
    levels = table()
    levels.columns = pd.MultiIndex.from_product([["a"], levels.columns])
    fails("several levels", levels)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"missing": "dorp"},
            "missing='dorp' is not an option; choose 'error', 'drop', 'fill' or 'mask'",
        ),
        ({"gaps": "clsoe"}, "gaps='clsoe' is not an option"),
        ({"fill_limit": 0}, "fill_limit=0"),
        ({"fill_limit": 2.5}, "fill_limit=2.5"),
    ],
)
def test_options_are_checked(options: dict[str, object], match: str) -> None:
    with pytest.raises(ParameterError, match=match.replace("(", r"\(")):
        build_frame(table(), target="pm25", **options)  # type: ignore[arg-type]


# Values -------------------------------------------------------------------------------------


def test_text_column_is_named_with_its_first_bad_value() -> None:
    column = ["1", "2", "calm"] + ["3"] * 47
    message = fails(
        "Column 'wind' is not numeric: 'calm' at 2013-05-01 02:00 (row 2)", table(wind=column)
    )
    assert "exclude=['wind']" in message and "empty cells are missing values" in message


def test_all_text_columns_are_named_at_once() -> None:
    stray = ["1"] * 49 + ["calm"]
    message = fails("Nor is ['station'].", table(wind=stray, station=stray))
    assert "exclude=['wind', 'station']" in message
    message = fails("Nor is ['date'].", table(wind=stray, date="2013-05-02 03:00"))
    assert "use time='date'." in message and "with exclude=['wind']," in message


def test_text_that_looks_like_a_time_or_a_decimal_comma_gets_its_own_advice() -> None:
    assert "time='date'" in fails("'date'", table(date="2013-05-02 03:00"))
    stamps = table(date=pd.date_range("2013", periods=50))
    assert fails("'date'", stamps).endswith("Otherwise leave it out with exclude=['date'].")
    assert "decimal=','" in fails("'3,5'", table(wind="3,5"))
    message = fails("'3,5' in 'pm25' looks like a decimal comma", table(at="3:00", pm25="3,5"))
    assert "time='at'" in message


@pytest.mark.parametrize("form", ["%b %d, %Y", "%d-%b-%y", "%d %B %Y"])
def test_dates_with_the_name_of_a_month_are_no_categories(form: str) -> None:
    days = pd.date_range("2021-01-01", periods=50, freq="D").strftime(form)
    fails("If 'day' holds the times, use time='day'.", table(day=days))


def test_text_with_an_underscore_is_no_number() -> None:
    zones = ["1_2", "3_4", "1_2", "5_6"] * 13
    frame = build_frame(table(zone=zones[:50]), target="pm25")
    assert frame.layout.categories == ("zone",)
    assert dict(frame.layout.levels)["zone"] == ("1_2", "3_4", "5_6")
    with pytest.raises(DataError, match="'pm25' is not numeric: '1_2'"):
        build_frame(table(pm25=zones[:50]), target="pm25")


@pytest.mark.parametrize("form", ["{:,.2f}", "{:.1f}%", "{:.0f} %", "$ {:.0f}", "{:.2f} €"])
def test_numbers_with_marks_are_no_categories(form: str) -> None:
    column = [form.format(1_000.0 * (1 + k % 3)) for k in range(50)]
    fails("Take out what is not part of the number", table(wind=column))
    assert build_frame(table(wind=column), target="pm25", categorical="wind").n_rows == 50


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, 1j, 10**400])
def test_odd_objects_are_not_numbers(value: object) -> None:
    column = np.empty(50, dtype=object)
    column[:] = 1.0
    column[7] = value
    fails("(row 7)", table(wind=column))


def test_complex_and_duration_columns_are_not_numbers() -> None:
    fails("Column 'wind' is not numeric", table(wind=np.arange(50) * 1j))
    fails("Column 'wind' is not numeric", table(wind=pd.to_timedelta(np.arange(50), unit="h")))


def test_constant_columns_are_named_with_the_remedy() -> None:
    message = fails("Column 'wind' is constant (always 3)", table(wind=3))
    assert "exclude=['wind']" in message
    message = fails("Columns ['wind', 'temp'] are constant", table(wind=3, temp=0))
    assert "exclude=['wind', 'temp']" in message
    fails("Target 'pm25' is constant (always 7); there is nothing to forecast", table(pm25=7))


def test_tables_without_rows_or_with_one() -> None:
    fails("The table is empty", table().iloc[:0])
    fails("The table has one row", table().iloc[:1])
    fails("is not in the table", pd.DataFrame())


# Missing values -----------------------------------------------------------------------------


def test_missing_values_name_count_and_first_position() -> None:
    message = fails(
        "Target 'pm25' has 2 missing values, the first at 2013-05-01 03:00 (row 3)", holed()
    )
    assert "Also in 'wind' (1)." in message
    assert "missing='drop'" in message and "missing='fill'" in message


def test_infinite_values_are_called_so() -> None:
    fails(
        "Column 'wind' has 1 infinite value at 2013-05-01 10:00",
        holed().drop(columns="pm25"),
        target="temp",
    )
    both = holed()
    both.iloc[20, 0] = np.nan
    fails("(1 of them infinite)", both.drop(columns="pm25"), target="temp")


def test_many_incomplete_columns_are_summed_up() -> None:
    source = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 12))).add_prefix("v")
    source.iloc[4] = np.nan
    fails("and 6 more columns", source, target="v11")


def test_dropping_leaves_complete_rows_and_says_so() -> None:
    frame = build_frame(holed(), target="pm25", missing="drop", gaps="close")
    assert frame.n_rows == 47 and np.isfinite(frame.values).all()
    assert frame.values.flags.c_contiguous
    assert frame.notes[0] == "Dropped 3 of 50 rows with missing values."
    assert pd.Timestamp("2013-05-01 03:00") not in frame.times


def test_dropping_opens_gaps_that_must_be_decided_on() -> None:
    message = fails("dropping rows with missing values opens gaps", holed(), missing="drop")
    assert "gaps='close'" in message and "gaps='respect'" in message


def test_filling_is_not_called_dropping() -> None:
    table = with_gap()
    table.iloc[5, -1] = np.nan
    message = fails("are not evenly spaced: the step is 1 hour", table, missing="fill")
    assert "dropping" not in message


def test_dropping_everything_names_the_emptiest_column() -> None:
    fails("Column 'wind' has no value at all", table(wind=np.nan), missing="drop")
    source = table()
    source.iloc[:30, 0] = np.nan
    source.iloc[20:, 1] = np.nan
    message = fails("No row is complete", source, missing="drop")
    assert "'wind' lacks the most (30)" in message or "'temp' lacks the most (30)" in message


def test_filling_repeats_the_last_value_and_never_looks_ahead() -> None:
    source = holed()
    frame = build_frame(source, target="pm25", missing="fill")
    assert frame.n_rows == 50
    assert frame.target_values[3] == frame.target_values[4] == source["pm25"].iloc[2]
    assert frame.values[10, 0] == source["wind"].iloc[9]
    assert frame.notes == ("Filled 3 missing values with the last known one.",)
    later = source.copy()
    later.iloc[11:] += 1000.0
    again = build_frame(later, target="pm25", missing="fill")
    np.testing.assert_array_equal(again.values[:11], frame.values[:11])


def test_rows_before_the_first_value_cannot_be_filled_and_go() -> None:
    source = table()
    source.iloc[:4, 1] = np.nan
    frame = build_frame(source, target="pm25", missing="fill", fill_limit=1)
    assert frame.n_rows == 46 and frame.times[0] == source.index[4]
    assert "Dropped the first 4 rows" in frame.notes[0]
    frame = build_frame(source.iloc[3:], target="pm25", missing="fill")
    assert frame.notes == ("Dropped the first row, before every column had a value.",)


def test_stretches_beyond_the_limit_are_an_error_that_names_a_limit_that_works() -> None:
    source = table()
    source.iloc[10:14, 0] = np.nan
    message = fails(
        "lacks 4 values in a row from 2013-05-01 10:00 (row 10)",
        source,
        missing="fill",
        fill_limit=3,
    )
    assert "fill_limit=3 fills no more than 3" in message
    assert "fill_limit=4" in message and "missing='mask'" in message
    assert build_frame(source, target="pm25", missing="fill", fill_limit=4).n_rows == 50


def test_a_column_without_any_value_cannot_be_filled() -> None:
    for missing in ("fill", "error"):
        message = fails("Column 'wind' has no value at all", table(wind=np.nan), missing=missing)
        assert "exclude=['wind']" in message
    for missing in ("drop", "fill"):
        fails("Choose another target", table(pm25=np.nan), missing=missing)


# Gaps ---------------------------------------------------------------------------------------


def test_gaps_are_refused_with_position_and_size() -> None:
    message = fails("the step is 1 hour, but 1 of 46 differs", with_gap())
    assert "between 2013-05-01 19:00 and 2013-05-01 23:00 (4 hours, row 19)" in message
    assert "dropping" not in message


def test_closing_a_gap_takes_rows_as_consecutive() -> None:
    frame = build_frame(with_gap(), target="pm25", gaps="close")
    assert len(origin_rows(frame, 5)) == 47 - 5
    assert frame.notes == ("Closed 1 gap: rows on both sides count as consecutive.",)


def test_respecting_a_gap_starts_a_new_segment() -> None:
    frame = build_frame(with_gap(), target="pm25", gaps="respect")
    assert frame.segments.tolist() == [0] * 20 + [1] * 27
    assert len(origin_rows(frame, 5)) == (20 - 5) + (27 - 5)


def test_integer_times_may_have_gaps_too() -> None:
    source = table().set_axis([*range(20), *range(30, 60)])
    message = fails("the step is 1, but 1 of 49 differs", source)
    assert "between 19 and 30 (11, row 19)" in message


# Notes and memory ---------------------------------------------------------------------------


def test_row_numbers_are_pointed_out() -> None:
    source = table(No=np.arange(1, 51)).reset_index(drop=True)
    notes = " ".join(build_frame(source, target="pm25").notes)
    assert "exclude=['No']" in notes


@pytest.mark.parametrize("missing", ["error", "drop", "fill"])
def test_building_copies_the_table_once(missing: str) -> None:
    source = pd.DataFrame(np.random.default_rng(0).normal(size=(400_000, 10))).add_prefix("v")
    size = source.to_numpy().nbytes
    kept = np.ones(len(source), dtype=bool)
    if missing != "error":
        source.iloc[1::1000, 3] = np.nan
    if missing == "drop":
        kept[1::1000] = False
    tracemalloc.start()
    frame = build_frame(source, target="v9", missing=missing, gaps="close")  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.8 * size
    expected = source.ffill().to_numpy()[kept]
    np.testing.assert_array_equal(frame.values, expected)
    assert frame.values.flags.c_contiguous


ROLES = {"time": "t", "series": "who", "exclude": ["rain"], "known": ["wind"]}


@pytest.mark.parametrize("given", [str, lambda name: f" {name} "])
@pytest.mark.parametrize("written", [str, lambda name: f"{name} "])
def test_fit_finds_columns_whatever_blanks_are_around_their_names(
    given: Callable[[str], str], written: Callable[[str], str]
) -> None:
    rng = np.random.default_rng(0)
    plain = pd.DataFrame(rng.normal(size=(80, 4)), columns=["wind", "rain", "kind", "pm25"])
    plain = plain.assign(kind=np.arange(80) % 3, who=np.repeat(["a", "b"], 40))
    plain["t"] = np.tile(np.arange(40), 2)
    asked = {
        role: [given(name) for name in value] if isinstance(value, list) else given(value)
        for role, value in ROLES.items()
    }
    frame = build_frame(
        plain.rename(columns=written),
        target=given("pm25"),
        variables=[given("wind"), given("kind")],
        categorical=[given("kind")],
        **asked,
    )
    layout = frame.layout
    assert layout.target == written("pm25") and layout.series == written("who")
    assert layout.columns == tuple(map(written, ("wind", "kind", "pm25")))
    same = build_frame(
        plain, target="pm25", variables=["wind", "kind"], categorical="kind", **ROLES
    )
    np.testing.assert_array_equal(frame.values, same.values)


def test_blanks_matter_where_two_columns_differ_in_nothing_else() -> None:
    plain = pd.DataFrame({"y": [1.0, 2.0, 4.0], " y": [5.0, 6.0, 6.5], "y ": [7.0, 9.0, 8.0]})
    assert build_frame(plain, target=" y").target_values[0] == 5.0
    with pytest.raises(DataError, match="Target 'y' is not in the table"):
        build_frame(plain.drop(columns="y"), target="y")
    with pytest.raises(ParameterError, match="exclude names 'x' twice"):
        build_frame(plain.assign(x=plain["y"]), target="y", exclude=["x", "x "])


@pytest.mark.parametrize("blank", ["wind", "pm25"])
def test_blanks_around_a_name_do_not_hide_a_column(blank: str) -> None:
    plain = table(wind=np.arange(50.0) % 7)
    spaced = plain.rename(columns={blank: f" {blank} "})
    target = next(name for name in spaced if name.strip() == "pm25")
    fitted, other = build_frame(plain, target="pm25"), build_frame(spaced, target=target)
    assert np.array_equal(rebuild_frame(spaced, fitted.layout).values, fitted.values)
    assert np.array_equal(rebuild_frame(plain, other.layout).values, fitted.values)
    twice = plain.assign(**{f" {blank}": 0.0, f"{blank} ": 1.0}).drop(columns=blank)
    with pytest.raises(DataError, match=f"missing: .'{blank}'"):
        rebuild_frame(twice, fitted.layout)
