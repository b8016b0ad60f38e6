"""Public holidays as an input: one more column of the calendar, known ahead."""

import sys

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, MissingExtraError, ModelFileError, ParameterError
from mvlstm.table.encoding import public_holidays
from mvlstm.table.frame import build_frame
from mvlstm.table.layout import Layout

DAYS = pd.date_range("2023-01-01", periods=730, freq="D")


def shop() -> pd.DataFrame:
    """Return sales that stop on German holidays, and noise."""
    free = np.array([day.date() in public_holidays("DE") for day in DAYS])
    rng = np.random.default_rng(0)
    y = np.where(free, 0.0, 10.0) + 0.1 * rng.normal(size=len(DAYS))
    return pd.DataFrame({"noise": rng.normal(size=len(DAYS)), "y": y}, DAYS)


def test_holidays_are_a_column_of_the_calendar_by_the_local_clock():
    hours = pd.date_range("2023-12-23", periods=96, freq="h", tz="Europe/Berlin")
    table = pd.DataFrame({"y": np.arange(96.0)}, hours)
    frame = build_frame(table, target="y", holidays="DE")
    assert frame.layout.calendar == ("holidays:DE",)
    assert frame.layout.inputs == ("holiday DE", "y") and frame.variables == ("calendar", "y")
    free = frame.times[frame.values[:, 0] == 1.0].tz_convert("Europe/Berlin")
    assert sorted(set(free.day)) == [25, 26] and len(free) == 48


def test_several_countries_and_their_parts_join_the_cycles():
    frame = build_frame(shop(), target="y", calendar="auto", holidays=["DE-BY", "FR"])
    assert frame.layout.calendar == ("weekday", "holidays:DE-BY", "holidays:FR")
    again = build_frame(shop(), target="y", calendar=frame.layout.calendar)  # as `compare` does
    np.testing.assert_array_equal(again.values, frame.values)
    assert Layout.from_dict(frame.layout.to_dict()) == frame.layout
    epiphany = frame.values[frame.times == "2023-01-06"][0]
    assert list(epiphany[[frame.layout.inputs.index(f"holiday {c}") for c in ("DE-BY", "FR")]]) == [
        *(1.0, 0.0)
    ]


def test_the_next_holiday_is_known_and_lowers_the_forecast(tmp_path):
    table = shop().loc[:"2024-12-24"]
    model = mv.AR(window=3, horizon=2, holidays="DE", verbose=0).fit(table, "y", test=60)
    ahead = model.forecast(table)  # 25 and 26 December
    assert ahead.mean.max() < 2.0
    assert model.forecast(table.iloc[:-3]).mean.min() > 8.0
    model.save(tmp_path / "model.safetensors")
    loaded = mv.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.forecast(table).mean, ahead.mean)
    importance = model.explain(table, effort="quick", contributions=0).importance
    assert importance["variable"].iloc[0] == "calendar" and len(importance) == 3


def test_forecasts_do_not_see_later_rows():
    table = shop()
    model = mv.AR(window=3, holidays="DE", verbose=0).fit(table, "y", test=100)
    changed = table.copy()
    changed.iloc[-20:] = changed.iloc[-40:-20].to_numpy()
    before = model.predict(table.iloc[:-20]).mean
    np.testing.assert_array_equal(model.predict(changed).mean[: len(before)], before)


@pytest.mark.parametrize("wrong", ["XX", "DE-ZZ", ["DE", "ZZ"]])
def test_a_country_that_there_is_not_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"holidays='(XX|DE-ZZ|ZZ)' is not a country"):
        mv.AR(window=3, holidays=wrong, verbose=0).fit(shop(), "y")


def test_what_cannot_tell_anything_is_refused():
    with pytest.raises(DataError, match="no public holiday of it"):
        build_frame(shop().loc["2023-02-01":"2023-03-01"], target="y", holidays="DE")
    with pytest.raises(DataError, match="holidays='DE' needs dates"):
        build_frame(shop().reset_index(drop=True), target="y", holidays="DE")
    plain = build_frame(shop(), target="y", holidays="DE").layout.to_dict()
    with pytest.raises(ModelFileError):
        Layout.from_dict(plain | {"calendar": ["holidays:"]})


def test_without_the_library_the_extra_is_named(monkeypatch):
    public_holidays.cache_clear()
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mvlstm\[holidays\]'"):
        mv.AR(window=3, holidays="DE", verbose=0).fit(shop(), "y")
