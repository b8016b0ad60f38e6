"""Finished tasks in a folder: a driver that dies goes on from them, to the same result."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.engine import opened, recorded
from mvlstm.engine.records import Records, fingerprint
from mvlstm.errors import DataError, ParameterError
from mvlstm.evaluate import backtest as folds
from mvlstm.evaluate import compare as methods
from mvlstm.explain import links
from mvlstm.table.frame import build_frame

TABLE = mv.datasets.load("synthetic", n=400).frame
COMPARED: dict[str, Any] = {"methods": ["ar", "gbt"], "window": 4, "verbose": 0}


def square(shared: int, task: int) -> int:
    return shared + task**2


def with_records(folder: Path, told: Any, count: int = 4) -> list[tuple[int, int]]:
    with opened("local") as engine, recorded(folder, "square", told) as kept:
        return list(engine.each(square, 5, count, kept))


def test_only_what_is_not_kept_is_done_and_results_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = with_records(tmp_path, "a")
    assert expected == [(k, 5 + k**2) for k in range(4)]
    files = sorted(tmp_path.glob("*.safetensors"))
    assert len(files) == 4
    files[0].unlink()
    files[2].write_bytes(files[2].read_bytes()[:-5])  # damaged
    done: list[int] = []
    monkeypatch.setattr(sys.modules[__name__], "square", lambda s, k: (done.append(k), s + k**2)[1])
    assert with_records(tmp_path, "a") == expected and done == [0, 2]
    assert with_records(tmp_path, "a") == expected and done == [0, 2]
    assert with_records(tmp_path, "b") == expected and done == [0, 2, 0, 1, 2, 3]


def test_a_folder_has_one_user_and_must_be_one(tmp_path: Path) -> None:
    with (
        recorded(tmp_path, "one", 1),
        pytest.raises(DataError, match="is in use by"),
        recorded(tmp_path, "other", 2),
    ):
        pass
    (tmp_path / "file").touch()
    with (
        pytest.raises(DataError, match=r"cannot be made.*checkpoint="),
        recorded(tmp_path / "file", "one", 1),
    ):
        pass


def test_data_and_settings_tell_runs_apart_and_what_is_shown_does_not() -> None:
    frame = build_frame(TABLE, target="y")
    model = mv.AR(window=5, verbose=0)
    known = fingerprint((model, frame))
    assert known == fingerprint((mv.AR(window=5, verbose=2), build_frame(TABLE, target="y")))
    values = frame.values.copy()
    values[7, 0] += 1e-12
    others: list[Any] = [
        (mv.AR(window=6, verbose=0), frame),
        (mv.Persistence(window=5, verbose=0), frame),
        (model, replace(frame, values=values)),
        (model, replace(frame, times=frame.times + 1)),
        (model, frame, 1),
    ]
    assert len({known, *map(fingerprint, others)}) == 1 + len(others)


def same(one: Any, other: Any) -> bool:
    """Say whether two results are equal to the last bit, and of the same types."""
    if isinstance(one, pd.Index | pd.Series):
        return type(one) is type(other) and one.equals(other) and one.name == other.name
    if isinstance(one, np.ndarray):
        equal = one.tolist() == other.tolist() if one.dtype == object else None
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and (one.tobytes() == other.tobytes() if equal is None else equal)
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other or (one != one and other != other))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_forecasts_come_back_as_they_were(tmp_path: Path, zone: str | None) -> None:
    times = pd.date_range("2024-03-29", periods=200, freq="h", tz=zone)
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"id": name, "t": times, "x": rng.normal(size=200), "y": rng.normal(size=200)})
        for name in "ab"
    ]
    table = pd.concat(parts, ignore_index=True)
    model = mv.AR(window=3, verbose=0).fit(table, "y", series="id", time="t", test=0.2)
    forecast = model.predict(table)
    forecast = replace(forecast, knots=forecast.knots and forecast.knots.settled())
    records = Records(tmp_path, "forecast")
    entry = methods.Entry(
        {"method": "AR", "rmse": np.float64(0.1), "top_variables": ("x",), "n": 3, "error": None},
        pd.Series([0.5, np.nan], index=pd.MultiIndex.from_arrays([["a", "b"], times[:2]])),
        (0.1, float("inf")),
    )
    found = (forecast, entry, times[3], np.array([True, False]))
    records.keep(0, found)
    (again,) = records.find(1).values()
    assert again[0].knots is None or same(again[0].knots.found, forecast.knots.found)
    assert same(again[0].members, forecast.members)
    assert same((again[0].origin, again[0].time), (forecast.origin, forecast.time))
    pd.testing.assert_frame_equal(again[0].to_frame(), forecast.to_frame())
    assert again[1].row == entry.row and same(again[1].errors, entry.errors)
    assert same((*again[1].folds, *again[2:]), (*entry.folds, *found[2:]))


def dies_at(task: int, module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the driver be interrupted at a task; return a list of those begun."""
    begun, own = [], getattr(module, name)

    def run(shared: Any, k: int) -> Any:
        begun.append(k)
        if len(begun) == 1 + task:
            raise KeyboardInterrupt
        return own(shared, k)

    monkeypatch.setattr(module, name, run)
    return begun


def test_a_comparison_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = mv.compare(TABLE, "y", **COMPARED).rows
    begun = dies_at(1, methods, "_method_entries", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        mv.compare(TABLE, "y", **COMPARED, checkpoint=tmp_path)
    found = mv.compare(TABLE, "y", **COMPARED, checkpoint=tmp_path).rows
    assert begun == [0, 1, 1, 2]
    own = ["fit_seconds", "forecasts_per_second"]
    pd.testing.assert_frame_equal(found.drop(columns=own), expected.drop(columns=own))
    mv.compare(TABLE.iloc[1:], "y", **COMPARED, checkpoint=tmp_path)
    assert begun == [0, 1, 1, 2, 0, 1, 2]


def test_what_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ParameterError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(mv.GBT, "learn", refuse)
        found = mv.compare(TABLE, "y", **COMPARED, checkpoint=tmp_path).rows
        assert found["error"].notna().sum() == 1
    found = mv.compare(TABLE, "y", **COMPARED, checkpoint=tmp_path).rows
    assert found["error"].notna().sum() == 0


def test_a_graph_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {"targets": "y", "verbose": 0, "effort": "quick"}
    expected = mv.graph(TABLE, **told)
    begun = dies_at(2, links, "_of_source", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        mv.graph(TABLE, **told, checkpoint=tmp_path)
    found = mv.graph(TABLE, **told, checkpoint=tmp_path)
    assert begun == [0, 1, 2, *range(2, len(TABLE.columns))]
    pd.testing.assert_frame_equal(found.links, expected.links)


KILLED = """
import os, sys
import mvlstm as mv
from mvlstm.evaluate import backtest as folds

own = folds.scored_fold
folds.scored_fold = lambda plan, k: os._exit(9) if k == 1 else own(plan, k)
table = mv.datasets.load("synthetic", n=400).frame
mv.backtest(mv.AR(window=5, verbose=0), table, "y", folds=3, checkpoint=sys.argv[1])
"""


def test_a_backtest_whose_driver_was_killed_does_only_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == 9
    begun = dies_at(99, folds, "scored_fold", monkeypatch)
    model = mv.AR(window=5, verbose=0)
    found = mv.backtest(model, TABLE, "y", folds=3, checkpoint=tmp_path)
    assert begun == [1, 2]
    expected = mv.backtest(model, TABLE, "y", folds=3)
    pd.testing.assert_frame_equal(
        found.scores.drop(columns="fit_seconds"), expected.scores.drop(columns="fit_seconds")
    )
    assert found.forecast.members.tobytes() == expected.forecast.members.tobytes()
    mv.backtest(model.set_params(window=6), TABLE, "y", folds=2, checkpoint=tmp_path)
    assert begun == [1, 2, 0, 1, 2, 0, 1]
