"""Tables with the faults of real ones: codes, duplicates, missing times, values that come late."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.table.files import read_table
from mvlstm.table.frame import build_frame, rebuild_frame
from mvlstm.table.layout import Layout
from mvlstm.table.series_frame import SeriesFrame

ROWS = 300
HOURS = pd.date_range("2024-01-01", periods=ROWS, freq="h")


def table(**columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(10.0, 2.0, ROWS)
    y = 900.0 + 100.0 * np.sin(np.arange(ROWS) / 4) + rng.normal(0.0, 20.0, ROWS)
    return pd.DataFrame({"x": x, "y": y}, index=HOURS).assign(**columns)


def coded(share: float, code: float, name: str = "x") -> pd.DataFrame:
    source = table()
    rows = np.random.default_rng(1).random(ROWS) < share
    return source.assign(**{name: source[name].where(~rows, code)})


def fails(match: str, source: pd.DataFrame, **options: object) -> DataError:
    with pytest.raises(DataError) as caught:
        build_frame(source, target="y", **options)  # type: ignore[arg-type]
    assert match in str(caught.value), str(caught.value)
    return caught.value


def build(source: pd.DataFrame, **options: object) -> SeriesFrame:
    return build_frame(source, target="y", **options)  # type: ignore[arg-type]


class TestCodes:
    @pytest.mark.parametrize("share", [0.02, 0.18, 0.9])
    @pytest.mark.parametrize("code", [-200, -999, 9999, -3.4e38, 1e20, 99999, -9999.9])
    @pytest.mark.parametrize("name", ["x", "y"])
    def test_they_are_refused_whatever_their_share(
        self, share: float, code: float, name: str
    ) -> None:
        error = fails(f"'{name}' is {code:.10g} in ", coded(share, code, name))
        assert error.remedy["na_values"] == pytest.approx([code])
        assert "na_values=[]" in str(error)

    def test_a_number_where_no_other_is_counts_too(self) -> None:
        fails("'x' is -50 in ", coded(0.3, -50.0))

    @pytest.mark.parametrize(("code", "share"), [(-1, 0.4), (-50, 0.1)])
    @pytest.mark.parametrize("name", ["x", "y"])
    def test_a_negative_number_among_counts_is_asked_about(self, code, share, name) -> None:
        rng = np.random.default_rng(2)
        counts = np.where(rng.random(ROWS) < share, code, rng.poisson(2.0, ROWS))
        error = fails(f"'{name}' is {code} in ", table(**{name: counts.astype(float)}))
        assert error.remedy == {"na_values": [code]}

    def test_a_negative_number_in_several_series_is_asked_about_but_not_a_level_of_one(
        self,
    ) -> None:
        series = [table(x=coded(0.4, -50.0)["x"], s="a"), table(s="b"), table(s="c")]
        fails("'x' is -50 in ", pd.concat(series), series="s")
        series[0]["x"] = -50.0  # that of a dead one
        build(pd.concat(series), series="s")

    def test_all_codes_of_all_columns_are_named_at_once(self) -> None:
        source = coded(0.1, -200.0).assign(z=coded(0.1, 9999.0)["x"])
        source.iloc[:20, 0] = -999.0
        error = fails("see also ['z']", source)
        assert error.remedy == {"na_values": [-999, -200, 9999]}
        assert str(error).startswith("Column 'x' is -999 in 20 rows and -200 in ")

    def test_a_code_that_is_a_value_of_another_column_is_emptied_where_it_is_none(self) -> None:
        source = coded(0.2, 999.0).assign(pressure=np.arange(ROWS) % 40 + 980.0)
        error = fails("'x' is 999 in ", source)
        assert error.remedy == {"na_values": ["x=999"]}
        frame = build(source, missing="mask", **error.remedy)
        assert frame.layout.masked == ("x",) and frame.layout.na_values == ("x=999",)
        assert Layout.from_dict(json.loads(json.dumps(frame.layout.to_dict()))) == frame.layout
        with pytest.raises(DataError, match="'pressur' is not in the table"):
            build(source, na_values=["pressur=999"])

    def test_columns_of_which_nothing_is_said_are_still_looked_at(self) -> None:
        source = coded(0.2, -200.0).assign(z=coded(0.1, 9999.0)["x"])
        error = fails("'z' is 9999 in ", source, na_values=["x=-200"], missing="mask")
        assert error.remedy == {"na_values": ["x=-200", 9999]}

    def test_what_is_said_to_be_a_code_is_missing(self) -> None:
        source = coded(0.2, -200.0)
        error = fails("missing", source, na_values=-200)
        assert error.remedy == {"missing": "mask"}
        frame = build(source, na_values=[-200], missing="mask")
        absent = source["x"].to_numpy() == -200
        np.testing.assert_array_equal(frame.values[:, 0] > 0, absent)
        assert frame.values[:, 1].min() > 0

    def test_what_is_said_to_be_none_stays(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MVLSTMWarning)
            assert build(coded(0.2, -200.0), na_values=[]).values.min() == -200

    def test_text_codes_of_numbers_and_levels(self) -> None:
        source = table(kind=np.where(np.arange(ROWS) % 3 == 0, "?", "a"))
        source["kind"] = source["kind"].where(np.arange(ROWS) % 2 == 0, "b")
        words = source["x"].round(3).astype(str).where(np.arange(ROWS) % 7 > 0, " n/k ")
        frame = build(source.assign(x=words), na_values=["?", "n/k"], missing="mask")
        assert dict(frame.layout.levels)["kind"] == ("a", "b", "missing")
        assert frame.columns[:2] == ("x missing", "x")

    @pytest.mark.parametrize(
        "column",
        [
            np.arange(ROWS) % 100.0,  # the last is 99
            np.where(np.arange(ROWS) % 3 > 0, 0.0, 900.0 + np.arange(ROWS)),  # a machine, at times
            np.clip(np.random.default_rng(3).normal(95.0, 8.0, ROWS), 0, 99),
            np.random.default_rng(4).normal(size=ROWS).cumsum() - 200,
            np.random.default_rng(5).integers(-1, 9, ROWS),
            np.random.default_rng(6).pareto(1.5, ROWS),
            np.where(np.arange(ROWS) % 50 == 0, 1.0, 0.0),
            np.random.default_rng(7).poisson(2.0, ROWS),
            np.random.default_rng(8).choice([-1, 0, 1], ROWS),  # down, none, up
            np.random.default_rng(9).choice([-1.0, 1.0], ROWS),
            np.maximum(-1, np.round(10 - 12 * np.cos(np.arange(ROWS) / 20))),  # degrees
            np.round(np.random.default_rng(10).normal(1.0, 2.0, ROWS)),
        ],
    )
    def test_usual_columns_have_none(self, column: np.ndarray) -> None:
        build(table(z=column.astype(float)))

    def test_wrong_kinds_are_refused(self) -> None:
        with pytest.raises(ParameterError, match=r"na_values=\[None\] must be numbers or texts"):
            build(table(), na_values=[None])


class TestDuplicates:
    def source(self) -> pd.DataFrame:
        again = table(kind=np.where(np.arange(ROWS) % 2, "a", "b")).iloc[[5, 6]]
        again["x"] = [100.0, np.nan]
        return pd.concat([table(kind=np.where(np.arange(ROWS) % 2, "a", "b")), again])

    @pytest.mark.parametrize("how", ["first", "last", "mean"])
    def test_one_row_is_kept(self, how: str) -> None:
        source, plain = self.source(), table()["x"].to_numpy()
        expected = {"first": plain[5], "last": 100.0, "mean": (plain[5] + 100.0) / 2}[how]
        frame = build(source, duplicates=how)
        assert frame.n_rows == ROWS and frame.values[5, 0] == expected
        assert frame.values[6, 0] == plain[6]  # the other row lacks it
        assert "Merged 2 rows at times that occur twice" in " ".join(frame.notes)

    @pytest.mark.parametrize("missing", ["fill", "mask"])
    def test_a_series_alone_is_merged_and_filled(self, missing: str) -> None:
        source = table()[["y"]]
        source.iloc[20] = np.nan
        source = pd.concat([source, source.iloc[[5]]])
        frame = build(source, duplicates="mean", missing=missing)
        assert frame.n_rows == ROWS and frame.target_values[20] == frame.target_values[19]

    def test_they_are_refused_by_default(self) -> None:
        assert fails("2 repeats in all", self.source()).remedy == {"duplicates": "mean"}

    def test_several_series_are_not_duplicates(self) -> None:
        error = fails("say with series=... which column", pd.concat([table(), table()]))
        assert not error.remedy

    def test_a_model_merges_as_its_fit_did(self) -> None:
        layout = build(self.source(), duplicates="last").layout
        assert rebuild_frame(self.source(), layout).values[5, 0] == 100.0


class TestMissingTimes:
    def test_short_holes_are_filled_and_long_ones_respected(self) -> None:
        source = table().drop(HOURS[[10, 11, 50, *range(100, 140)]])
        assert fails("not evenly spaced", source).remedy == {"gaps": "insert"}
        frame = build(source, gaps="insert")
        assert frame.n_rows == ROWS - 40 and frame.segments.tolist() == [0] * 100 + [1] * 160
        assert frame.measured is not None and (~frame.measured).sum() == 3
        assert frame.values[10, 0] == frame.values[11, 0] == frame.values[9, 0]
        assert frame.notes[0] == "Inserted 3 rows at missing times."
        assert build(source, gaps="insert", fill_limit=40).n_rows == ROWS
        assert build(source, gaps="insert", fill_limit=1).n_rows == ROWS - 42

    def test_months_and_series(self) -> None:
        months = pd.date_range("2000-01-31", periods=60, freq="ME")
        source = table().iloc[:60].set_axis(months).drop(months[[20, 21]])
        np.testing.assert_array_equal(build(source, gaps="insert").times, months)
        both = pd.concat([table().drop(HOURS[3]).assign(s="a"), table().assign(s="b")])
        frame = build(both, series="s", gaps="insert")
        assert frame.n_rows == 2 * ROWS and frame.times[3] == HOURS[3]

    @pytest.mark.parametrize("missing", ["drop", "fill", "mask", "error"])
    def test_with_missing_values_too(self, missing: str) -> None:
        source = table().drop(HOURS[[10, 11]])
        if missing != "error":
            source.iloc[100:103, 0] = np.nan
        frame = build(source, gaps="insert", missing=missing)
        assert frame.n_rows == ROWS and np.isfinite(frame.values).all()
        marks = "x missing" in frame.columns
        assert marks == (missing == "mask")
        if marks:
            assert frame.values[:, frame.columns.index("x missing")].sum() == 5

    def test_long_runs_of_missing_values_are_gaps_where_these_are_respected(self) -> None:
        source = table()
        source.iloc[100:140, 0] = np.nan
        error = fails("fill_limit=24 fills no more than 24", source, missing="fill")
        assert error.remedy == {"missing": "mask"}
        frame = build(source, missing="fill", gaps="respect")
        assert frame.n_rows == ROWS - 40 and len(np.unique(frame.segments)) == 2


class TestMask:
    def source(self) -> pd.DataFrame:
        source = table(kind=np.where(np.arange(ROWS) % 5 > 0, "a", None))
        source.iloc[:30, 0] = np.nan
        source.iloc[100:200, 0] = np.nan
        source.iloc[40:42, 1] = np.nan
        return source

    def test_no_row_is_lost_and_marks_belong_to_their_variable(self) -> None:
        frame = build(self.source(), missing="mask")
        assert frame.n_rows == ROWS
        names = ("x missing", "x", "kind=a", "kind=missing", "y missing", "y")
        assert frame.columns == names and frame.groups == (0, 0, 1, 1, 2, 2)
        assert set(frame.values[:30, 1]) == {self.source()["x"].median()}
        assert set(frame.values[100:200, 1]) == {frame.values[99, 1]}
        assert frame.measured is not None and np.flatnonzero(~frame.measured).tolist() == [40, 41]

    def test_the_layout_survives_a_file_and_reads_later_tables(self) -> None:
        layout = build(self.source(), missing="mask").layout
        again = Layout.from_dict(json.loads(json.dumps(layout.to_dict())))
        assert again == layout
        dead = self.source().assign(x=np.nan)
        frame = rebuild_frame(dead, again)
        assert (frame.values[:, 0] == 1).all() and frame.n_rows == ROWS

    def test_a_frame_can_be_taken_again(self) -> None:
        frame = build(self.source(), missing="mask")
        again = build_frame(frame, target="y", missing="mask")
        np.testing.assert_array_equal(again.values, frame.values)
        fewer = build_frame(frame, target="y", variables=["x"], missing="mask")
        np.testing.assert_array_equal(fewer.values, frame.values[:, [0, 1, 4, 5]])

    @pytest.mark.parametrize("method", [mv.AR, mv.MVLSTM])
    def test_models_fit_it_and_say_so_in_one_line(self, method: type) -> None:
        few = {"members": 2, "max_epochs": 1} if method is mv.MVLSTM else {}
        model = method(window=6, missing="mask", verbose=0, **few).fit(self.source(), "y", test=0.2)
        assert "(the median before the first), and marked as missing" in model.notes_[0]
        assert len(model.predict(self.source())) == ROWS - 6
        assert np.isfinite(model.forecast(self.source()).mean).all()

    def test_values_after_a_time_do_not_change_forecasts_before_it(self) -> None:
        source = self.source()
        model = mv.AR(window=6, missing="mask", verbose=0).fit(source.iloc[:200], "y")
        late = source.assign(x=source["x"].where(np.arange(ROWS) < 250, 8.0))
        one, other = (model.predict(given).mean.iloc[:200] for given in (source, late))
        np.testing.assert_array_equal(one, other)


def test_the_word_none_is_a_level_and_missing_among_numbers(tmp_path) -> None:
    file = tmp_path / "t.csv"
    rows = [f"{k},{'None' if k % 3 else 'Labour Day'},{'None' if k == 4 else k}" for k in range(20)]
    file.write_text("\n".join(["t,holiday,n", *rows]))
    read = read_table(file)
    assert read["holiday"].value_counts()["None"] == 13
    assert read["n"].isna().sum() == 1 and read["n"].dtype == float


def test_a_stretch_too_short_names_the_rows_it_ends_in() -> None:
    source = table().drop(HOURS[[*range(150, 250, 4), *range(280, 284), 293, 297]])
    with pytest.raises(DataError, match="longest stretch that ends in them has"):
        mv.AR(window=30, gaps="respect", verbose=0).fit(source, "y")
