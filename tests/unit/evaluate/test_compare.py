"""Comparisons: same rows for all, honest p-values, failures that stop nobody else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm import metrics
from mvlstm.errors import ParameterError
from mvlstm.evaluate import methods as module
from mvlstm.evaluate.compare import _p_value, compare
from mvlstm.results import Comparison


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=400).frame


def run(table: pd.DataFrame, methods: str, **changes: Any) -> Comparison:
    return compare(table, "y", **{"methods": methods, "window": 3, "verbose": 0, **changes})


@pytest.fixture(scope="module")
def small(table: pd.DataFrame) -> Comparison:
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "QUICK_EPOCHS", (1, 2))
    found = run(table, "mvlstm,ar,seasonal", members=2)
    patch.undo()
    return found


def test_scores_are_those_of_evaluate(small: Comparison, table: pd.DataFrame) -> None:
    rows = small.rows.set_index("method")
    expected = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2).evaluate(table).scores
    for name in ("rmse", "mae", "crps", "coverage", "skill", "n"):
        assert rows.loc["AR", name] == pytest.approx(expected.loc["AR", name])
        assert rows.loc["Persistence", name] == pytest.approx(expected.loc["persistence", name])
    assert rows.loc["Persistence", "skill"] == 0.0


def test_one_member_and_all_of_them_are_rows_apart(small: Comparison) -> None:
    own = small.rows[small.rows["method"] == "MVLSTM"].set_index("kind")
    assert set(own.index) == {"single", "ensemble"}
    assert own.loc["single", "rmse"] != own.loc["ensemble", "rmse"]
    assert own["crps"].notna().all() and own["coverage"].between(0.5, 1).all()
    others = small.rows[small.rows["method"] != "MVLSTM"]
    assert set(others["kind"]) == {"single"}


def test_every_row_says_what_it_cost_and_what_was_tuned(small: Comparison) -> None:
    assert small.rows["budget"].str.len().min() > 5
    assert (small.rows["fit_seconds"] >= 0).all()
    assert (small.rows["forecasts_per_second"] > 0).all()
    assert list(small.rows["rmse"]) == sorted(small.rows["rmse"])
    top = small.rows.set_index("method").loc["AR", "top_variables"]
    assert {"x2", "x3"} <= set(top) and len(top) == 3
    assert small.rows.set_index("method").loc["Persistence", "top_variables"] == ("y",)


def test_p_values_are_against_the_best_on_validation(
    small: Comparison, table: pd.DataFrame
) -> None:
    assert set(small.best_on_validation) == {"single", "ensemble"}
    singles = small.rows[small.rows["kind"] == "single"].set_index("method")
    best = singles["valid_rmse"].idxmin()
    assert small.best_on_validation["single"] == best
    assert np.isnan(singles.loc[best, "dm_p"])
    assert singles.drop(index=best)["dm_p"].between(0, 1).all()
    assert singles.loc["Persistence", "dm_p"] < 0.05
    alone = small.rows[small.rows["kind"] == "ensemble"]
    assert alone["dm_p"].isna().all()  # an ensemble with no other to be compared with


def test_p_values_by_hand(table: pd.DataFrame) -> None:
    found = run(table, "ar,seasonal").rows.set_index("method")
    assert found["valid_rmse"].idxmin() == "AR"
    errors = {}
    for model in (mv.AR(window=3, verbose=0), mv.Persistence(window=3, verbose=0)):
        forecast = model.fit(table, "y", test=0.2).predict(table)
        new = forecast.part[:, 0] == "new"
        errors[type(model).__name__] = (forecast.members[0] - forecast.actual)[new, 0]
    p = metrics.diebold_mariano(errors["AR"], errors["Persistence"]).p_value
    both = metrics.holm([p, p])  # seasonal persistence finds no cycle, and forecasts the same
    assert found.loc["Persistence", "dm_p"] == pytest.approx(both[0])


def test_a_failure_is_a_row_and_the_rest_go_on(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: mv.GBT, problem: object) -> None:
        raise RuntimeError("no luck today")

    monkeypatch.setattr(mv.GBT, "learn", broken)
    monkeypatch.setitem(module.METHODS, "dual", module.Method("DUAL", "NotThere"))
    found = run(table, "gbt,dual,ar")
    rows = found.rows.set_index("method")
    assert rows.loc["GBT", "error"] == "RuntimeError: no luck today"
    assert "'NotThere' is not an option" in rows.loc["DUAL", "error"]
    assert rows.loc["AR", "error"] is None and rows.loc["AR", "rmse"] > 0
    assert list(found.rows["method"].iloc[-2:]) == ["GBT", "DUAL"]
    assert any("Failed" in note and "GBT" in note for note in found.notes)
    counts = {record["method"]: record["n"] for record in found.to_records()}
    assert counts["GBT"] is None and isinstance(counts["AR"], int)  # no 80.0 in JSON or CSV
    assert f",{counts['AR']}," in found.to_frame().to_csv()
    assert "RuntimeError" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)


def test_folds_are_pooled(table: pd.DataFrame) -> None:
    found = run(table, "ar", folds=2)
    each = found.folds[found.folds["method"] == "AR"]["rmse"]
    assert len(each) == 2
    pooled = found.rows.set_index("method").loc["AR", "rmse"]
    assert pooled == pytest.approx(np.sqrt((each**2).mean()))
    assert any("2 folds" in note for note in found.notes)


def test_several_steps_ahead(table: pd.DataFrame) -> None:
    compared = run(table, "ar", horizon=3)
    assert "Scores are of all 3 steps ahead together." in compared.notes
    found = compared.rows.set_index("method")
    model = mv.AR(window=3, horizon=3, verbose=0).fit(table, "y", test=0.2)
    expected = model.evaluate(table).scores.loc["AR", "rmse"]
    assert found.loc["AR", "rmse"] == pytest.approx(expected)
    assert found.loc["Persistence", "dm_p"] < 0.05


def test_own_forecasts_are_a_row(table: pd.DataFrame) -> None:
    y = table["y"]
    own = pd.DataFrame({"time": y.index[300:], "value": y.shift(1).iloc[300:]})
    rows = run(table, "ar", own=own, own_name="mine").rows.set_index("method")
    for name in ("rmse", "n"):  # they are persistence's forecasts; its median follows the data
        assert rows.loc["mine", name] == pytest.approx(rows.loc["Persistence", name])
    assert rows.loc["mine", "skill"] == pytest.approx(0.0)
    assert rows.loc["mine", "dm_p"] == pytest.approx(rows.loc["Persistence", "dm_p"])
    assert np.isnan(rows.loc["mine", "crps"])


def test_own_forecasts_of_some_rows_are_scored_on_those() -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    table.index = pd.date_range("2024-01-01", periods=400, freq="h", tz="Europe/Berlin")
    own = pd.DataFrame({"time": table.index[-10:].astype(str), "value": table["y"].iloc[-10:]})
    rows = run(table, "ar", own=own).rows.set_index("method")
    assert rows.loc["own forecasts", "n"] == 10
    assert rows.loc["own forecasts", "rmse"] == 0.0


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%Y%m%d"])
def test_times_of_own_forecasts_are_read_as_those_of_the_table(form: str) -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    texts = pd.date_range("2023-01-01", periods=400).strftime(form)
    table["day"] = texts if "/" in form else texts.astype(int)
    own = table.iloc[365:377].rename(columns={"day": "time", "y": "value"})  # 1 to 12 January
    rows = run(table, "ar", time="day", own=own).rows.set_index("method")
    assert rows.loc["own forecasts", "n"] == 12
    assert rows.loc["own forecasts", "rmse"] == 0.0


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (pd.DataFrame({"when": [1], "value": [1.0]}), "'time' and 'value'"),
        (pd.DataFrame({"time": [390, 390], "value": [1.0, 2.0]}), "390 occurs in rows 0 and 1"),
        (pd.DataFrame({"time": ["soon"], "value": [1.0]}), "cannot be read"),
        (pd.DataFrame({"time": ["2024-05-01"], "value": [1.0]}), "dates as times but .* integers"),
        (
            pd.DataFrame({"time": [390, 391], "value": [1.0, "2,5"]}),
            r"not numeric: '2,5' at time 391 \(row 1\)",
        ),
        (pd.Series([1.0], index=[390]), "not Series"),
    ],
)
def test_own_forecasts_that_cannot_be_used(
    table: pd.DataFrame, own: pd.DataFrame, words: str
) -> None:
    with pytest.raises(mv.errors.DataError, match=words):
        run(table, "ar", own=own)


@pytest.mark.parametrize("first", ["2024-05-01", "2024-05-20"])
def test_own_forecasts_have_dates_as_the_table_writes_them(table: pd.DataFrame, first: str) -> None:
    days = pd.date_range(end=first, periods=400, freq="D").strftime("%d.%m.%Y")
    dated = table.assign(day=days).reset_index(drop=True)
    own = pd.DataFrame({"time": days[-10:], "value": table["y"].to_numpy()[-10:]})
    rows = run(dated, "ar", time="day", own=own).rows.set_index("method")
    assert rows.loc["own forecasts", "n"] == 10
    assert rows.loc["own forecasts", "rmse"] == 0.0


@pytest.mark.parametrize(("zone", "other"), [("Europe/Paris", None), (None, "Europe/Paris")])
def test_own_forecasts_need_a_zone_if_the_table_has_one(
    table: pd.DataFrame, zone: str | None, other: str | None
) -> None:
    hours = pd.date_range("2024-01-01", periods=400, freq="h")
    own = pd.DataFrame({"time": hours.tz_localize(other), "value": table["y"].to_numpy()})
    with pytest.raises(mv.errors.DataError, match=r"own forecasts cannot be used: .* zone"):
        run(table.set_axis(hours.tz_localize(zone)), "ar", own=own)


def test_own_forecasts_of_other_times_fail_in_their_row(table: pd.DataFrame) -> None:
    own = pd.DataFrame({"time": [5], "value": [1.0]})
    rows = run(table, "ar", own=own).rows.set_index("method")
    assert "None of its 1 times" in rows.loc["own forecasts", "error"]


def test_bad_input_is_refused_at_once(table: pd.DataFrame) -> None:
    with pytest.raises(mv.errors.DataError, match="nothing"):
        compare(table, "nothing", methods="ar", verbose=0)
    with pytest.raises(mv.errors.ParameterError, match="budget"):
        run(table, "ar", budget="huge")
    for valid in (0, "0.1", None):
        with pytest.raises(mv.errors.ParameterError, match="leaves no rows to stop"):
            run(table, "ar", valid=valid)
        with pytest.raises(mv.errors.ParameterError, match="leaves no rows to stop"):
            mv.AR(window=3).fit(table, "y", valid=valid)


def test_it_prints_and_converts(small: Comparison) -> None:
    assert "Comparison(target='y', 320 to 399)" in repr(small)
    assert "<table" in small._repr_html_()
    records = small.to_records()
    assert records[0].keys() >= {"method", "rmse", "mae", "skill", "dm_p", "error"}
    assert isinstance(records[0]["top_variables"], list)
    assert isinstance(small.to_frame()["top_variables"][0], str)


def test_the_validation_error_is_of_rows_that_nothing_was_fitted_to(
    small: Comparison, table: pd.DataFrame
) -> None:
    model = mv.AR(window=3, verbose=0).fit(table, "y", test=0.2)
    forecast = model.predict(table)
    later = model.fitted_.parts.calibration_rows(forecast.time)[:, 0]
    expected = forecast.take(later).score(part="validation")["rmse"]
    assert small.rows.set_index("method").loc["AR", "valid_rmse"] == pytest.approx(expected)


def test_series_that_err_alike_count_once_in_tests() -> None:
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=200, freq="h")
    best, rival = (pd.Series(np.abs(rng.normal(size=200)) * k, times) for k in (1.0, 1.05))
    alone = _p_value(best, rival, 1)
    names = [f"s{k}" for k in range(10)]
    many = [pd.concat({name: one for name in names}) for one in (best, rival)]
    assert _p_value(*many, 1) == pytest.approx(alone)
    assert alone == metrics.diebold_mariano(best, rival).p_value


def test_own_forecasts_of_some_rows_are_said_to_be_so(table: pd.DataFrame) -> None:
    own = pd.DataFrame({"time": table.index[-10:], "value": table["y"].to_numpy()[-10:]})
    found = compare(table, "y", methods=["ar"], window=3, own=own, own_name="mine", verbose=0)
    assert any("mine has forecasts of 10 of the" in note for note in found.notes)


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("known", [None, ["holiday"]])
def test_no_method_and_no_own_forecast_is_scored_against_filled_targets(
    table: pd.DataFrame, known: list[str] | None, folds: int
) -> None:
    holed = table.assign(holiday=(np.arange(400) % 7 == 0) * 1.0)
    own = pd.DataFrame({"time": table.index, "value": table["y"].to_numpy()})
    holed.loc[[*range(330, 390, 5), 345, 346, 372], "y"] = np.nan  # folds end at 346 and 373
    found = run(holed, "ar", known=known, missing="fill", own=own, folds=folds)
    rows = found.rows.set_index("method")
    assert rows["error"].isna().all() and set(rows["n"]) == {80 - 14}
    assert rows.loc["own forecasts", "rmse"] == 0.0
    assert rows.loc["own forecasts", "skill"] == 1.0


def test_a_forecaster_keeps_its_settings_in_a_comparison() -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    own = mv.AR(window=9, verbose=0)
    found = mv.compare(table, "y", methods=["ar", own], window=3, verbose=0)
    rows = found.rows.set_index("method")
    alone = own.fit(table, "y", test=0.2).evaluate(table).scores
    assert rows.loc["AR #2", "rmse"] == pytest.approx(alone.loc["AR", "rmse"])
    assert rows.loc["AR #2", "mase"] == pytest.approx(alone.loc["AR", "mase"])
    assert rows.loc["AR", "rmse"] != rows.loc["AR #2", "rmse"]
    assert "AR #2" in list(found.plot().data[0].customdata)


def hours(n: int = 900) -> pd.DataFrame:
    """Hours of a target that follows a known input, by a law that drifts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    y = np.linspace(1.0, 5.0, n) * x + 0.1 * rng.normal(size=n)
    times = pd.date_range("2024-01-01", periods=n, freq="h", name="time")
    return pd.DataFrame({"x": x, "y": y}, index=times)


OFTEN: dict[str, Any] = {"test": 240, "every": 24, "refit_every": 48, "known": "x"}
SHAPE: dict[str, Any] = {"window": 12, "horizon": 6, "verbose": 0}


def test_methods_brought_up_to_date_have_the_scores_of_backtests() -> None:
    found = compare(hours(), "y", methods="ar", refit="link", **OFTEN, **SHAPE)
    rows = found.rows.set_index("method")
    assert rows["error"].isna().all() and (rows["n"] == 6 * 10).all()
    alone = mv.backtest(mv.AR(**SHAPE), hours(), "y", refit="link", **OFTEN).scores.loc["pooled"]
    for score in ("rmse", "mae", "crps"):
        assert rows.loc["AR", score] == pytest.approx(alone[score])
    assert len(found.folds[found.folds["method"] == "Persistence"]) == 5
    assert any("4 times" in note for note in found.notes)
    once = compare(hours(), "y", methods="ar", **OFTEN | {"refit_every": 2400}, **SHAPE)
    assert rows.loc["AR", "rmse"] < once.rows.set_index("method").loc["AR", "rmse"]


@pytest.mark.filterwarnings("ignore:.*far outside:mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("refit", ["full", "link", "update"])
def test_no_later_row_moves_the_errors_of_earlier_days(refit: Any) -> None:
    table, changed = hours(), hours()
    changed.iloc[-24:, -1] += 50.0
    each = [
        compare(one, "y", methods="ar", refit=refit, **OFTEN, **SHAPE).folds
        for one in (table, changed)
    ]
    last = each[0]["fold"].max()
    earlier = [one.loc[one["fold"] < last, "rmse"] for one in each]
    np.testing.assert_array_equal(*earlier)


def test_an_ensemble_that_is_brought_up_to_date_has_one_row() -> None:
    few = {"members": 2, "max_epochs": 1, "hidden_size": 2}
    net = mv.MVLSTM(**few, **SHAPE)
    found = compare(hours(600), "y", methods=[net, "ar"], refit="link", **OFTEN, **SHAPE)
    assert sorted(found.rows["kind"]) == ["ensemble", "single", "single"]
    assert found.rows["dm_p"].isna().sum() == 1  # all are tested against the best


def test_own_forecasts_and_origins_apart_are_not_mixed() -> None:
    own = pd.DataFrame({"time": hours().index[-10:], "value": 0.0})
    with pytest.raises(ParameterError, match="Leave out one of the two"):
        compare(hours(), "y", methods="ar", own=own, every=24, window=12, verbose=0)
