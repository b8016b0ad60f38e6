"""Frames as tables: parts in time, other settings, and no reading again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.table import SeriesFrame, build_frame, rebuild_frame
from mvlstm.table.settings import Cleaning, Columns

N = 240


def table(**columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=N, freq="h", name="time")
    weather = np.array(["dry", "wet"])[rng.integers(0, 2, N)].astype(object)
    weather[200:] = "storm"
    base = {"rain": rng.normal(size=N), "weather": weather, "holiday": np.arange(N) % 7 == 0}
    return pd.DataFrame({**base, "y": rng.normal(size=N).cumsum(), **columns}, index=times)


def panel() -> pd.DataFrame:
    shops = [table().iloc[: N - 20 * k].assign(shop=name) for k, name in enumerate("ab")]
    return pd.concat(shops)


def assert_same(one: SeriesFrame, other: SeriesFrame) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(np.diff(one.segments) > 0, np.diff(other.segments) > 0)
    assert (one.columns, one.groups, one.step) == (other.columns, other.groups, other.step)
    assert one.times.equals(other.times) and one.layout == other.layout
    assert one.doubts == other.doubts
    for name in ("measured", "future"):
        assert (getattr(one, name) is None) == (getattr(other, name) is None), name
    if one.measured is not None:
        np.testing.assert_array_equal(one.measured, other.measured)
    if one.future is not None and other.future is not None:
        np.testing.assert_array_equal(one.future.values, other.future.values)
        assert one.future.times.equals(other.future.times)
    if one.panel is not None:
        assert other.panel is not None and one.panel.names == other.panel.names
        np.testing.assert_array_equal(one.panel.codes, other.panel.codes)


def holed() -> pd.DataFrame:
    source = table()
    source.loc[source.index[[30, 31, 149]], "y"] = np.nan
    return source


def ahead() -> pd.DataFrame:
    source = table().astype({"holiday": float})
    source.iloc[-4:, [0, 1, 3]] = np.nan
    return source


CASES: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "plain": (table(), {}),
    "calendar": (table(), {"calendar": "auto"}),
    "filled": (holed(), {"missing": "fill"}),
    "known": (ahead(), {"known": ["holiday"], "calendar": ["hour"]}),
    "gaps": (table().drop(table().index[50:60]), {"gaps": "respect"}),
    "series": (panel(), {"series": "shop"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_frame_is_read_like_the_table_it_came_from(case: str) -> None:
    source, options = CASES[case]
    cleaning = {k: v for k, v in options.items() if k in ("missing", "gaps", "calendar")}
    frame = build_frame(source, target="y", **options)
    for parts in ({}, {"test": 0.2, "valid": 0.1}):
        again = build_frame(frame, target="y", **cleaning, **parts)
        assert_same(again, build_frame(source, target="y", **options, **parts))
    layout = build_frame(source, target="y", **options, test=0.2).layout
    assert_same(rebuild_frame(frame, layout), rebuild_frame(source, layout))


@pytest.mark.parametrize("case", ["plain", "calendar", "filled", "gaps", "series"])
def test_rows_before_a_time_are_those_of_the_table_before_it(case: str) -> None:
    source, options = CASES[case]
    cleaning = {k: v for k, v in options.items() if k in ("missing", "gaps", "calendar")}
    end = source.index[150]
    frame = build_frame(source, target="y", **options)
    part = frame.rows(np.asarray(frame.times < end))
    cut = build_frame(source[source.index < end], target="y", **options)
    assert_same(build_frame(part, target="y", **cleaning), cut)
    np.testing.assert_array_equal(part.order, cut.order)
    assert part.clock.equals(cut.clock) and part.doubts == cut.doubts


def test_levels_of_later_rows_are_unknown_to_a_part() -> None:
    frame = build_frame(table(), target="y")
    assert frame.layout.levels == (("weather", ("dry", "storm", "wet")),)
    early = build_frame(frame.rows(slice(0, 210)), target="y", test=10, valid=20)
    assert early.layout.levels == (("weather", ("dry", "wet")),)
    assert early.columns == ("rain", "weather=dry", "weather=wet", "holiday", "y")
    assert any(
        "10 rows with levels that training did not have, ['storm']" in n for n in early.notes
    )
    assert "weather=storm" in build_frame(early, target="y").columns, "the codes are kept"


def test_future_rows_stay_with_the_last_row() -> None:
    source, options = CASES["known"]
    frame = build_frame(source, target="y", **options)
    assert frame.future is not None and len(frame.future.times) == 4
    assert frame.rows(slice(100, None)).future is not None
    assert frame.rows(slice(0, 100)).future is None
    assert frame.rows(slice(100, None)).values_ahead(4)[1].all()


def test_a_future_without_what_is_known_ahead_is_left_out() -> None:
    source, options = CASES["known"]
    frame = build_frame(source, target="y", **options)
    layout = build_frame(source.iloc[:-4], target="y", known=["holiday", "weather"]).layout
    again = rebuild_frame(frame, layout)
    assert frame.future is not None and again.future is None
    assert again.rows(slice(10, None)).n_rows == again.n_rows - 10


def test_no_rows_are_refused_as_in_a_table() -> None:
    frame = build_frame(table(), target="y")
    with pytest.raises(DataError, match="The table is empty"):
        build_frame(frame.rows(slice(0, 0)), target="y")
    with pytest.raises(DataError, match="received an empty table"):
        rebuild_frame(frame.rows(np.zeros(N, dtype=bool)), frame.layout)


def test_rows_left_out_between_others_open_a_gap() -> None:
    keep = np.ones(N, dtype=bool)
    keep[50:60] = False
    respected = build_frame(table(), target="y").rows(keep)
    assert respected.segments.tolist() == [0] * 50 + [1] * 180
    assert not build_frame(table(), target="y", gaps="close").rows(keep).segments.any()
    with pytest.raises(DataError, match="not evenly spaced"):
        build_frame(respected, target="y")


def test_the_end_of_a_part_may_rest_on_filled_targets() -> None:
    frame = build_frame(holed(), target="y", missing="fill")
    assert not frame.doubts
    assert frame.rows(slice(0, 150)).doubts[0].startswith("The last target was missing")
    assert frame.rows(slice(32, 149)).measured is None


def test_variables_of_a_frame_can_be_left_out() -> None:
    frame = build_frame(table(), target="y")
    fewer = build_frame(frame, target="y", exclude=["weather"])
    assert fewer.columns == ("rain", "holiday", "y")
    np.testing.assert_array_equal(fewer.values, frame.values[:, [0, 4, 5]])
    layout = build_frame(table(), target="y", variables=["rain"]).layout
    again = rebuild_frame(frame, layout)
    assert again.columns == ("rain", "y") and "Ignored columns" in again.notes[-1]


def test_a_frame_keeps_the_roles_of_its_columns() -> None:
    frame = build_frame(panel(), target="y", series="shop")
    assert build_frame(frame, target="y", series="shop", time="time").panel is not None
    for role in ({"target": "rain"}, {"target": "y", "series": "rain"}):
        with pytest.raises(DataError, match=r"does not fit this SeriesFrame.*anew"):
            build_frame(frame, **role)
    layout = build_frame(table(weather=1.0 * np.arange(N)), target="y").layout
    with pytest.raises(DataError, match="received 'weather' as categories"):
        rebuild_frame(build_frame(table(), target="y"), layout)
    with pytest.raises(DataError, match=r"missing: \['rain'\]"):
        rebuild_frame(build_frame(table(), target="y", exclude="rain"), layout)


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")  # of the levels that come late
@pytest.mark.parametrize("name", ["AR", "SeasonalPersistence"])
def test_every_verb_takes_a_frame(name: str) -> None:
    source = table()
    frame: Any = build_frame(source, target="y")
    one, two = (getattr(mv, name)(window=4, verbose=0) for _ in range(2))
    one.fit(source, "y", test=0.2)
    two.fit(frame, "y", test=0.2)
    pd.testing.assert_frame_equal(two.predict(frame).to_frame(), one.predict(source).to_frame())
    pd.testing.assert_frame_equal(two.forecast(frame).to_frame(), one.forecast(source).to_frame())
    pd.testing.assert_frame_equal(two.evaluate(frame).scores, one.evaluate(source).scores)
    found = [model.explain(rows, effort="quick") for model, rows in ((one, source), (two, frame))]
    pd.testing.assert_frame_equal(found[0].importance, found[1].importance)
    assert mv.backtest(one, frame, "y", folds=2).scores["rmse"].notna().all()


def test_a_future_by_itself_needs_a_table() -> None:
    source, options = CASES["known"]
    frame: Any = build_frame(source, target="y", **options)
    model = mv.AR(window=4, verbose=0, calendar=["hour"]).fit(source, "y", known="holiday")
    with pytest.raises(DataError, match="needs the table as a DataFrame"):
        model.forecast(frame, future=source.tail(4))
    assert model.forecast(frame).mean.notna().all()


def test_the_settings_come_without_heavy_libraries() -> None:
    code = "import sys, mvlstm.table.settings as _; print({'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    assert Columns(target="y").time is None and Cleaning().missing == "error"
