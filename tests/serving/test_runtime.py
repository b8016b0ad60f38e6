"""`mvlstm.runtime` gives what `forecast` gives, and says what is wrong in the same words."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError, ModelFileError, MVLSTMError, ParameterError
from mvlstm.runtime import Runtime, load
from serving.conftest import fitted, panel, weather

pytestmark = pytest.mark.filterwarnings("ignore::mvlstm.MVLSTMWarning")
NEAR = 1e-4


def exported(model: Any, folder: Path, **settings: Any) -> Runtime:
    model.export(folder / "model.onnx", **settings)
    return load(folder / "model.onnx")


def same(found: Any, wanted: pd.DataFrame, spread: float) -> None:
    """Compare frames, columns and types included."""
    found = found if isinstance(found, pd.DataFrame) else pd.DataFrame(found)
    pd.testing.assert_frame_equal(found, wanted, rtol=NEAR, atol=NEAR * spread, check_dtype=False)


def dated(index: Any) -> pd.DataFrame:
    return weather(len(index)).set_axis(index.rename("time"))


def holes() -> pd.DataFrame:
    """A table in which values of a variable and of the target are missing."""
    table = weather()
    table.loc[table.index[50:53], "temp"] = np.nan
    table.loc[table.index[[100, 240]], "y"] = np.nan
    return table


def marked() -> pd.DataFrame:
    """Holes from the first row on, in what is known ahead too, whose next values are given."""
    table = holes().astype({"holiday": float})
    table.loc[table.index[[*range(10), *range(230, 250)]], "temp"] = np.nan
    table.loc[table.index[[20, 100, 245]], "holiday"] = np.nan
    table.loc[table.index[-2:], "y"] = np.nan
    return table


def between() -> pd.DataFrame:
    """A target that is often at either of its bounds."""
    table = weather()
    return table.assign(y=(table["y"] - 5.0).clip(0.0, 2.0))


def clock_parts() -> pd.DataFrame:
    table = weather().reset_index()
    parts = {part: getattr(table["time"].dt, part) for part in ("year", "month", "day", "hour")}
    return table.assign(**parts).drop(columns="time")


CASES: dict[str, tuple[str, Callable[[], pd.DataFrame], dict[str, Any]]] = {
    "default": ("MVLSTM", weather, {}),
    "static": ("MVLSTM", weather, {"calibration": "static", "horizon": 2}),
    "bounds": ("AR", between, {"bounds": (0, 2.0), "horizon": 6}),
    "log scale": ("MVLSTM", weather, {"transform": "log1p", "horizon": 6, "members": 5}),
    "zone": ("AR", lambda: weather(zone="Europe/Berlin"), {"horizon": 4, "calendar": "auto"}),
    "local days": (
        "AR",
        lambda: dated(pd.date_range("2022-08-01", periods=236, tz="Europe/Berlin")),
        {"horizon": 5, "calendar": ["yearday"]},
    ),
    "months": ("AR", lambda: dated(pd.date_range("2003-01-15", periods=200, freq="MS")), {}),
    "month ends": ("AR", lambda: dated(pd.date_range("2003-01-31", periods=200, freq="ME")), {}),
    "business days": (
        "AR",
        lambda: dated(pd.bdate_range("2003-01-15", periods=200)),
        {"horizon": 6},
    ),
    "row numbers": ("AR", lambda: weather().reset_index(drop=True), {"horizon": 2}),
    "filled": ("AR", holes, {"missing": "fill", "horizon": 2}),
    "marked": ("MVLSTM", marked, {"missing": "mask", "horizon": 2, "known": ["holiday"]}),
    "dropped": ("AR", holes, {"missing": "drop", "gaps": "close", "horizon": 2}),
    "respected": ("AR", holes, {"missing": "drop", "gaps": "respect", "horizon": 2}),
    "clock parts": ("AR", clock_parts, {"time": ["year", "month", "day", "hour"], "horizon": 2}),
    "series": ("MVLSTM", panel, {"series": "shop", "time": "time", "horizon": 2}),
    "series that end apart": (
        "AR",
        lambda: panel().iloc[:-15],
        {"series": "shop", "time": "time"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_gives_what_forecast_gives(case: str, tmp_path: Path) -> None:
    name, make, settings = CASES[case]
    table = make()
    model = fitted(name, table, **settings)
    runtime = exported(model, tmp_path, quantiles=[0.1])
    wanted = model.forecast(table)
    assert (wanted.knots is not None) == (settings.get("calibration") != "static")
    same(runtime.forecast(table), wanted.to_frame([0.1]), float(table["y"].std()))


def test_what_is_known_ahead_comes_with_the_table_or_by_itself(tmp_path: Path) -> None:
    table, known = weather(), ["holiday", "wind"]
    settings = {"horizon": 3, "transform": "asinh", "calendar": "auto", "known": known}
    model = fitted("MVLSTM", table, **settings)
    runtime = exported(model, tmp_path)
    table.loc[table.index[-3:], "y"] = np.nan
    wanted = model.forecast(table).to_frame()
    plain = {"time": [str(time) for time in table.index], **{n: table[n].tolist() for n in table}}
    rows = [{"time": str(time), **row} for time, row in table.iterrows()]
    table.to_csv(tmp_path / "table.csv")
    for form in (table, table.iloc[::-1], plain, rows, tmp_path / "table.csv"):
        same(runtime.forecast(form), wanted, 1.0)
    later = table.iloc[-3:][known]
    same(runtime.forecast(table.iloc[:-3], future=later), wanted, 1.0)
    two = pd.DataFrame(runtime.forecast(plain, steps=2))
    same(two, model.forecast(table, steps=2).to_frame(), 1.0)


def lacking(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.drop(columns=column)


def with_cell(column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def put(table: pd.DataFrame) -> pd.DataFrame:
        changed = table.astype({column: object})
        changed.loc[changed.index[-4], column] = value
        return changed

    return put


ODD_DATES = {"time": ["5 May"], "temp": [1], "holiday": [1], "wind": ["N"], "y": [1]}
BAD: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "a column less": lacking("temp"),
    "no target": lacking("y"),
    "no rows": lambda table: table.iloc[:0],
    "too few rows": lambda table: table.iloc[-5:],
    "a missing value": with_cell("temp", np.nan),
    "a missing target": with_cell("y", np.nan),
    "text": with_cell("temp", "warm"),
    "a value too far": with_cell("temp", 1e30),
    "a gap": lambda table: table.drop(table.index[-9]),
    "twice": lambda table: table.iloc[[*range(100), 99]],
    "another zone": lambda table: table.tz_localize("UTC"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_of_the_table_is_refused_as_forecast_refuses_it(
    fault: str, model_and_runtime: tuple[Any, Runtime]
) -> None:
    model, runtime = model_and_runtime
    table = BAD[fault](weather())
    with pytest.raises(DataError) as wanted:
        model.forecast(table)
    with pytest.raises(DataError) as found:
        runtime.forecast(table)
    first, second = (
        re.split(r"[:;.(]| at | (?:none|row) ", str(one.value))[0] for one in (wanted, found)
    )
    assert first == second
    assert str(found.value).count(". ") <= 2 and "Traceback" not in str(found.value)


@pytest.fixture(scope="module")
def model_and_runtime(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Runtime]:
    model = fitted("AR", weather(), horizon=2, time="time")
    return model, exported(model, tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (3, "A table is needed, not int"),
        ([[1, 2]], "A table is needed, not list"),
        ({"time": ["2024-01-01"], "temp": []}, "The columns are not of one length"),
        ("nowhere.csv", "'nowhere.csv' does not exist"),
        (
            {"time": ["5 May"], "temp": [1], "holiday": [1], "wind": ["N"], "y": [1]},
            "not hold dates",
        ),
    ],
)
def test_what_is_no_table_is_refused(
    table: Any, words: str, model_and_runtime: tuple[Any, Runtime]
) -> None:
    with pytest.raises(DataError, match=words):
        model_and_runtime[1].forecast(table)


def test_arguments_that_do_not_fit_are_refused(model_and_runtime: tuple[Any, Runtime]) -> None:
    runtime = model_and_runtime[1]
    with pytest.raises(ParameterError, match="steps=3 is more than the 2"):
        runtime.forecast(weather(), steps=3)
    with pytest.raises(ParameterError, match=r"future=\.\.\. holds variables known ahead"):
        runtime.forecast(weather(), future=weather())


def test_a_level_and_a_series_that_training_did_not_have_are_named(
    tmp_path: Path, model_and_runtime: tuple[Any, Runtime]
) -> None:
    from mvlstm.runtime.columns import as_columns

    table = weather().assign(wind="E")
    _, warnings = model_and_runtime[1].told_forecast(as_columns(table))
    assert len(warnings) == 1 and "['E']; they count as none of its levels" in warnings[0]

    shops = panel()
    runtime = exported(fitted("AR", shops, series="shop", time="time"), tmp_path)
    with pytest.raises(DataError, match="Series 'Dessau' was not among those of the fit"):
        runtime.forecast(shops[shops["shop"] == "Bonn"].assign(shop="Dessau"))
    some = pd.concat([shops, shops[shops["shop"] == "Bonn"].assign(shop="Dessau")])
    found, warnings = runtime.told_forecast(as_columns(some))
    assert sorted(set(found["series"])) == ["Aachen", "Bonn", "Celle"]
    assert warnings[0].startswith("Series 'Dessau' is left out")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(ModelFileError, match="is not a model exported by mvlstm"):
        load(tmp_path / "text.onnx")
    with pytest.raises(ModelFileError, match="does not exist"):
        load(tmp_path / "none.onnx")
    with pytest.raises(MVLSTMError, match="threads=0 must be"):
        load(tmp_path / "text.onnx", threads=0)


def test_neither_torch_nor_pandas_is_loaded(tmp_path: Path) -> None:
    table = weather(120)
    fitted("AR", table).export(tmp_path / "model.onnx")
    table.to_csv(tmp_path / "table.csv")
    code = (
        "import sys, mvlstm.runtime as runtime\n"
        "print(runtime.load('model.onnx').forecast('table.csv')['mean'].shape)\n"
        "print({'torch', 'pandas', 'scipy', 'sklearn', 'onnx'} & set(sys.modules))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(1,)", "set()"]
    assert mv.__version__
