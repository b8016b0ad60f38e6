"""`mvlstm.check`: every fault of a table at once, and a call with which it fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError
from mvlstm.results import Check

ROWS = 240
HOURS = pd.date_range("2004-03-10 18:00", periods=ROWS, freq="h")


def clean() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = 5.0 + np.sin(np.arange(ROWS) / 4) + rng.normal(0.0, 0.2, ROWS)
    return pd.DataFrame({"x": rng.normal(size=ROWS), "y": y}, index=HOURS)


def dirty() -> pd.DataFrame:
    """-200 codes, a repeated and a missing hour, a text column with None, date and time apart."""
    source = clean().assign(
        Date=HOURS.strftime("%d/%m/%Y"),
        Time=HOURS.strftime("%H.%M.%S"),
        day=np.where(HOURS.day_of_week == 6, "Sunday", "None"),
    )
    source.loc[HOURS[20:60], "y"] = -200.0
    source.loc[HOURS[::5], "x"] = -200.0
    source = source.drop(HOURS[[100, 101]])
    return pd.concat([source.iloc[:31], source.iloc[30:]]).reset_index(drop=True)


def remedies(found: Check) -> dict[str, Any]:
    return {name: value for one in found.findings for name, value in one.remedy.items()}


def fitted(table: Any, found: Check) -> mv.AR:
    """Fit with what was found, with a forecaster that is quick."""
    return mv.AR(**{"window": 3, "verbose": 0} | found.settings).fit(table, **found.named)


def test_a_clean_table_has_no_faults() -> None:
    found = mv.check(clean(), "y")
    assert found.fits and found.findings == () and found.settings == {}
    assert found.code == "mv.MVLSTM().fit(table, target='y', test=0.2)"
    assert found.rows == "240 rows from 2004-03-10 18:00 to 2004-03-20 17:00, 1 hour apart."
    assert any("calendar='auto'" in one for one in found.suggestions)


@pytest.mark.filterwarnings("ignore::mvlstm.MVLSTMWarning")
def test_all_faults_are_found_at_once_and_the_call_fits(tmp_path: Path) -> None:
    path = tmp_path / "dirty.csv"
    dirty().to_csv(path, index=False)
    for table in (dirty(), path):
        found = mv.check(table, "y")
        assert found.fits
        assert remedies(found) == {
            "time": ["Date", "Time"],
            "duplicates": "mean",
            "na_values": [-200],
            "missing": "mask",
            "gaps": "insert",
        }
        model = fitted(table, found)
        assert dict(model.fitted_.layout.levels)["day"] == ("None", "Sunday")
        assert model.fitted_.layout.step == pd.Timedelta(hours=1)
        assert repr(str(path)) in found.code or table is not path
    kinds = found.columns.set_index("column")
    assert kinds.loc["Date", "role"] == "time" and kinds.loc["day", "kind"] == "category"
    assert kinds.loc["x", "missing"] == pytest.approx(0.2, abs=0.01)
    assert json.loads(json.dumps(found.to_dict()))["fits"] is True


FAULTS = {
    "constant": (clean().assign(c=1.0), {"exclude": ["c"]}),
    "empty": (clean().assign(c=np.nan), {"exclude": ["c"]}),
    "words": (
        clean().assign(x=["?" if k % 9 == 0 else str(k % 7) for k in range(ROWS)]),
        {"na_values": ["?"], "missing": "mask"},
    ),
    "labels": (clean().assign(c=[f"id {k}" for k in range(ROWS)]), {"exclude": ["c"]}),
    "short": (clean().iloc[:30], {"window": 15}),
    "dates": (
        clean().assign(d=HOURS.strftime("%d.%m.%Y %H:%M")).reset_index(drop=True),
        {"time": "d"},
    ),
    "series": (
        pd.concat([clean().assign(s=name, when=HOURS) for name in "abc"], ignore_index=True),
        {"time": "when", "series": "s"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_remedy(name: str) -> None:
    source, expected = FAULTS[name]
    found = mv.check(source, "y")
    assert found.fits, found
    assert remedies(found) == expected
    fitted(source, found)


def test_codes_are_found_behind_words() -> None:
    x = ["?" if k % 9 == 0 else str(-200 if k % 5 == 0 else k % 7) for k in range(ROWS)]
    found = mv.check(clean().assign(x=x), "y")
    assert found.named["na_values"] == ["?", -200] and found.fits


def test_a_decimal_comma_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "comma.csv"
    clean().to_csv(path, sep=";", decimal=",", index_label="when")
    found = mv.check(path, "y")
    assert found.fits and found.reading == {"decimal": ","}
    assert found.code.endswith(
        f"read_table({str(path)!r}, decimal=','), target='y', time='when', test=0.2)"
    )
    fitted(mv.table.read_table(path, **found.reading), found)


def test_commas_that_mark_thousands_between_commas_are_no_option(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "".join(f'"1,{100 + k}",{k % 7}\n' for k in range(ROWS)))
    found = mv.check(path, "y")
    assert not found.fits
    assert "separated by commas, so that a comma within a number" in found.findings[-1].fault


def test_what_no_option_mends_is_said() -> None:
    found = mv.check(clean().assign(y="$1,000.50"), "y")
    assert not found.fits and found.rows == ""
    assert "'y' is the target" in found.findings[-1].fault and not found.findings[-1].remedy
    assert "No option would mend" in repr(found)


def test_what_is_given_stays() -> None:
    source = clean()
    source.iloc[5:9, 0] = np.nan
    found = mv.check(source, "y", missing="fill", window=12, horizon=3, test=0.1)
    assert found.findings == ()
    assert found.settings == {"missing": "fill", "window": 12, "horizon": 3}
    assert found.named["test"] == 0.1


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"hr": HOURS.hour}, "known=['hr']"),
        ({"load forecast": np.arange(ROWS) % 11 * 1.5}, "known=['load forecast']"),
        ({"code": np.arange(ROWS) % 5 // 2}, "categorical=['code']"),
        ({"y": np.maximum(0.0, np.sin(np.arange(ROWS) / 4)) * 9}, "transform='auto'"),
        ({"x": clean()["x"].where(HOURS.hour == 3)}, "exclude=['x']"),
        ({"y": (90 + clean()["y"]).where(HOURS.hour % 5 > 0, 0.0)}, "na_values=['y=0']"),
        ({"x": (400 * clean()["x"]).where(HOURS.hour % 5 > 0, -200)}, "na_values=['x=-200']"),
    ],
)
def test_suggestions(columns: dict[str, Any], told: str) -> None:
    found = mv.check(clean().assign(**columns), "y")
    assert any(told in one for one in found.suggestions), found.suggestions
    assert not any(told in one for one in mv.check(clean(), "y").suggestions)


def test_a_small_unit_of_one_series_is_not_near_zero() -> None:
    parts = [clean().assign(y=scale * clean()["y"], shop=str(scale)) for scale in (1.0, 1e4)]
    found = mv.check(pd.concat(parts), "y", series="shop")
    assert not any("near zero" in one for one in found.suggestions)


def test_wrong_names_are_refused_at_once() -> None:
    with pytest.raises(DataError, match="Did you mean target='y'"):
        mv.check(clean(), "Y")
    with pytest.raises(ParameterError, match="was checked when it was built"):
        mv.check(mv.table.build_frame(clean(), target="y"), "y")
