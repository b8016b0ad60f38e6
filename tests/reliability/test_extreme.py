"""Extreme data: each kind with the result or the message it must lead to."""

from __future__ import annotations

import json
import re
import resource
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.table.frame import build_frame
from mvlstm.table.series_frame import SeriesFrame
from mvlstm.train import memory

SETTINGS: dict[str, Any] = {
    "window": 5,
    "hidden_size": 3,
    "members": 2,
    "max_epochs": 2,
    "batch_size": 32,
    "device": "cpu",
    "verbose": 0,
}


def make_table(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z, noise = rng.normal(size=(3, rows))
    return pd.DataFrame({"x": x, "z": z, "y": np.r_[0.0, np.tanh(x[:-1])] + 0.1 * noise})


def fit(table: pd.DataFrame, **changes: Any) -> mv.MVLSTM:
    return mv.MVLSTM(**SETTINGS | changes).fit(table, "y", test=0.2)


def check(table: pd.DataFrame, **changes: Any) -> mv.Evaluation:
    """Fit, and demand finite forecasts with ordered intervals; return the scores."""
    model = fit(table, **changes)
    for result in (model.predict(table), model.forecast(table)):
        low, high = result.interval(0.9)
        assert np.isfinite(result.mean).all()
        assert (low < high).all()
    return model.evaluate(table)


def skill(evaluation: mv.Evaluation) -> float:
    return float(evaluation.scores.loc["MVLSTM", "skill"])


@pytest.fixture(scope="module")
def plain() -> mv.Evaluation:
    return check(make_table())


@pytest.mark.parametrize("factor", [1e12, 1e-12, 1e100, 1e-100])
def test_the_unit_of_the_target_does_not_matter(plain: mv.Evaluation, factor: float) -> None:
    table = make_table()
    scaled = check(table.assign(y=table["y"] * factor))
    assert skill(scaled) == pytest.approx(skill(plain), rel=1e-3)


def test_a_level_of_1e12_leaves_the_changes_visible(plain: mv.Evaluation) -> None:
    table = make_table()
    assert skill(check(table.assign(y=table["y"] + 1e12))) == pytest.approx(skill(plain), rel=0.05)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_the_unit_of_a_variable_does_not_matter(plain: mv.Evaluation, factor: float) -> None:
    table = make_table()
    scaled = check(table.assign(x=table["x"] * factor))
    assert skill(scaled) == pytest.approx(skill(plain), rel=1e-3)


@pytest.mark.parametrize(("factor", "word"), [(1e200, "large"), (1e-200, "small")])
def test_a_target_whose_squares_do_not_exist_is_refused(factor: float, word: str) -> None:
    table = make_table()
    with pytest.raises(DataError, match=rf"Target 'y' ranges .* too {word}.*another unit"):
        fit(table.assign(y=table["y"] * factor))


def test_constant_stretches() -> None:
    table = make_table()
    table.loc[50:150, "x"] = 0.0
    table.loc[100:200, "y"] = 1.0
    check(table)


def test_a_variable_that_only_moves_after_training() -> None:
    table = make_table()
    table.loc[:239, "z"] = 3.0
    with pytest.warns(MVLSTMWarning, match=r"'z' is .* at 2[49][05] \(training: 3 to 3\)"):
        check(table)


def test_a_constant_column_is_named() -> None:
    with pytest.raises(DataError, match=r"'z' is constant.*exclude"):
        fit(make_table().assign(z=7.0))
    with pytest.raises(DataError, match="nothing to forecast"):
        fit(make_table().assign(y=7.0))


def test_heavy_tails() -> None:
    rng = np.random.default_rng(1)
    table = make_table().assign(x=rng.standard_cauchy(300))
    check(table)
    with warnings.catch_warnings():  # the tail of the unseen rows may be longer
        warnings.simplefilter("ignore", MVLSTMWarning)
        check(table.assign(y=table["y"] + rng.standard_t(1.5, size=300)))


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_spike_in_training(column: str) -> None:
    table = make_table()
    table.loc[100, column] = 1e9
    with pytest.warns(MVLSTMWarning, match=f"'{column}' is 1e\\+09 in 1 row.*spoil"):
        check(table)


def test_a_spike_later_is_warned_of_and_counted() -> None:
    table = make_table()
    model = fit(table)
    assert model.predict(table).warnings == ()
    table.loc[290, "x"] = 1e9
    with pytest.warns(MVLSTMWarning, match="1 row has values far outside the training range"):
        result = model.predict(table)
    assert len(result.warnings) == 1
    assert "'x' is 1e+09 at 290 (training: -" in result.warnings[0]
    assert repr(result).endswith("; 1 warning)")
    assert result.to_dict()["warnings"] == list(result.warnings)
    assert np.isfinite(result.mean).all()
    table.loc[290, "x"] = 1e300
    with pytest.raises(
        DataError, match=r"'x' is 1e\+300 at row 290, too far from the training rows"
    ):
        model.predict(table)


def test_integers_and_booleans() -> None:
    table = make_table()
    whole = (table["x"] * 10).astype("int64")
    check(table.assign(x=whole, z=table["z"] > 0))
    check(table.assign(x=whole.astype("Int16"), z=(table["z"] > 0).astype("boolean")))


def test_daylight_saving_in_a_zone() -> None:
    for start in ("2024-03-30", "2024-10-26"):
        times = pd.date_range(start, periods=300, freq="h", tz="Europe/Berlin")
        check(make_table().set_index(times))


def test_daylight_saving_without_a_zone_is_a_gap_or_a_repetition() -> None:
    times = pd.date_range("2024-03-30", periods=301, freq="h")
    spring = times[times != pd.Timestamp("2024-03-31 02:00")]
    with pytest.raises(DataError, match=r"2024-03-31 01:00 .*gaps='close'"):
        fit(make_table().set_index(spring))
    check(make_table().set_index(spring), gaps="close")
    autumn = pd.date_range("2024-10-26", periods=299, freq="h").insert(
        27, pd.Timestamp("2024-10-27 02:00")
    )
    with pytest.raises(DataError, match="2024-10-27 02:00"):
        fit(make_table().set_index(autumn))


@pytest.mark.parametrize(("rows", "words"), [(0, "is empty"), (1, "one row"), (9, "rows are too")])
def test_hardly_any_rows(rows: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        fit(make_table(rows) if rows > 1 else make_table().iloc[:rows])


def test_hardly_any_rows_to_predict_from() -> None:
    table = make_table()
    model = fit(table)
    with pytest.raises(DataError, match="empty"):
        model.forecast(table.iloc[:0])
    with pytest.raises(DataError, match="1 usable rows; window=5"):
        model.forecast(table.iloc[-1:])


@pytest.mark.parametrize("window", [2, 500])
def test_short_and_long_windows(window: int) -> None:
    one = {"window": window, "members": 1, "max_epochs": 1, "link": "last"}
    check(make_table(760 if window == 500 else 200), **one)


def test_500_variables_do_not_end_in_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    names = [*(f"v{i}" for i in range(500)), "y"]
    table = pd.DataFrame(rng.normal(size=(120, 501)), columns=names)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_bytes", lambda device: 8 * 2.0**30)
        with pytest.raises(ParameterError, match=r"501 variables.*gates='variable'") as caught:
            fit(table, hidden_size=15, link="none")
    assert re.search(r"needs about \d\d\.\d GB of memory; 8.0 GB are free", str(caught.value))
    check(table, gates="variable", hidden_size=2, members=1, max_epochs=1, window=2, link="none")


@pytest.fixture(scope="module")
def wide() -> SeriesFrame:
    values = np.random.default_rng(0).normal(size=(40, 20_000))
    table = pd.DataFrame(values, columns=[*(f"v{i}" for i in range(19_999)), "y"])
    return build_frame(table, target="y")


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        (mv.Persistence(), ""),
        (mv.AR(window=3), ""),
        (mv.MVLSTM(window=3, device="cpu", verbose=0), r"20000 variables.*about \d{4}\.\d GB"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_20_000_columns_end_within_bounds(
    wide: SeriesFrame, model: Any, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, eigh = [0], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: sizes.append(len(a)) or eigh(a))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if refused:
        with pytest.raises(ParameterError, match=refused):
            model.fit(wide, "y")
    else:
        assert np.isfinite(model.fit(wide, "y").forecast(wide).mean).all()
    assert max(sizes) <= 40  # no larger matrix is decomposed than the rows make
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # kilobytes


def test_memory_is_estimated_from_the_settings() -> None:
    from mvlstm.nn.mvlstm import MVLSTMNetwork

    def needed(n: int, gates: Any = "full", **sizes: Any) -> float:
        network = MVLSTMNetwork(tuple(range(n)), n, 10, gates=gates)
        return memory.training_bytes(network, **{"members": 5, "batch": 64, "window": 30} | sizes)

    assert needed(200) > 3 * needed(100) > 9 * needed(100, "variable") / 3
    assert needed(100, members=10) > 1.5 * needed(100)
    assert needed(100, window=300) > needed(100)
    # a GPU works on all members at once, and holds some 9 GB for these (N = d = 20, T = 100)
    many = {"members": 128, "window": 100, "device": "cuda"}
    network = MVLSTMNetwork(tuple(range(20)), 20, 20)
    assert 8e9 < memory.training_bytes(network, batch=64, **many) < 14e9
    free = memory.free_bytes(torch.device("cpu"))
    assert free is not None and 2**20 < free < 2**50


def test_stale_data_and_an_old_model() -> None:
    times = pd.date_range("2024-01-01", periods=300, freq="h")
    table = make_table().set_index(times)
    model = fit(table)
    assert model.forecast(table).warnings == ()
    with pytest.warns(MVLSTMWarning, match=r"ends at 2024-01-05 03:00.*stale"):
        assert len(model.forecast(table.iloc[:100]).warnings) == 1
    with pytest.warns(MVLSTMWarning, match="older than all the time it learned from"):
        model.forecast(table.set_index(times + pd.Timedelta(days=100)))


# ---------------------------------------------------------------------------- by the command


def command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


TINY = (
    *("--window", "4", "--hidden-size", "2", "--members", "1", "--max-epochs", "1"),
    *("--device", "cpu", "--quiet"),
)


def test_a_european_csv(tmp_path: Path) -> None:
    times = pd.date_range("2024-01-01", periods=200, freq="h").strftime("%d.%m.%Y %H:%M")
    table = make_table(200).rename(columns={"x": "Température °C", "z": "风速", "y": "Größe"})
    table.insert(0, "Zeit", times)
    path, out = tmp_path / "größe.csv", tmp_path / "modèle.safetensors"
    path.write_bytes(table.to_csv(index=False, sep=";", decimal=",").encode("utf-8-sig"))
    words = ("--target", "Größe", "--time", "Zeit", "--out", out)
    forgot = command("fit", path, *words, *TINY)
    assert forgot.exit_code == 2
    assert "--decimal ','" in forgot.stderr
    done = command("fit", path, *words, "--sep", ";", "--decimal", ",", *TINY)
    assert done.exit_code == 0, done.stderr
    done = command("forecast", out, path, "--decimal", ",", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["target"] == "Größe"
    assert told["rows"][0]["time"].startswith("2024-01-09T08:00")


def test_duplicate_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    make_table(100).rename(columns={"z": "x"}).to_csv(path, index=False)
    done = command("fit", path, "--target", "y", "--out", tmp_path / "m.safetensors", *TINY)
    assert done.exit_code == 2
    assert "2 columns named 'x'" in done.stderr


def test_warnings_reach_the_json(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    make_table(200).to_csv(path, index=False)
    done = command("fit", path, "--target", "y", "--test", "0.2", "--out", out, *TINY)
    assert done.exit_code == 0, done.stderr
    table = make_table(200).assign(more=1.0)
    table.loc[199, "x"] = -1e7
    table[["more", "y", "z", "x"]].to_csv(path, index=False)
    for name in ("forecast", "evaluate"):
        done = command(name, out, path, "--json")
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)
        if name == "forecast":
            assert len(told["warnings"]) == 1
            assert "'x' is -1e+07 at 199" in told["warnings"][0]
        assert any("Ignored columns" in note and "more" in note for note in told["notes"])
