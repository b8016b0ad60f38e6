"""The graph of a model says what the model says, from raw rows, for every method and setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import ParameterError
from serving.conftest import fitted, panel, weather

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.95)
NEAR = 1e-4  # relative, and in standard deviations of the target
KNOWN = {"known": ["holiday", "wind"]}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("MVLSTM", {}),
    "five members of three kinds": ("MVLSTM", {"members": 5, "max_epochs": 6}),
    "paper": ("MVLSTM", {"loss": "nll", "sigma": 1.0, "link": "none", "gates": "full"}),
    "indep": ("MVLSTM", {"gates": "variable", "attention": "free", "link": "last"}),
    "fusion": ("MVLSTM", {"head": "fusion"}),
    "gru": ("MVLSTM", {"cell": "gru", "layers": 2, "gates": "variable"}),
    "predicted variance": ("MVLSTM", {"loss": "nll", "sigma": "predicted", "horizon": 2}),
    "learned variance": ("MVLSTM", {"loss": "nll+mse", "sigma": "learned", "link": "none"}),
    "log scale": ("MVLSTM", {"transform": "log1p", "horizon": 6}),
    "asinh": ("MVLSTM", {"transform": "asinh", "horizon": 2, **KNOWN}),
    "steps of their own": ("MVLSTM", {"states": "own", "horizon": 3, **KNOWN}),
    "differences": ("MVLSTM", {"difference": "auto", "horizon": 2}),
    "calendar": (
        "MVLSTM",
        {"calendar": ["hour", "weekday", "yearday", "days"], "horizon": 3, "known": ["holiday"]},
    ),
    "known ahead": ("AR", {"horizon": 6, "calendar": "auto", **KNOWN}),
    "AR": ("AR", {"transform": "log1p"}),
    "ENET": ("ENET", {"grid": "quick"}),
    "LSTM": ("LSTM", {"loss": "nll", "layers": 2}),
    "LSTM, squared error": ("LSTM", {"horizon": 2}),
    "DUAL": ("DUAL", {"horizon": 2}),
    "RETAIN": ("RETAIN", {"horizon": 2}),
    "CLSTM": ("CLSTM", {"penalties": (0.1,)}),
    "Persistence": ("Persistence", {"horizon": 2}),
    "seasonal": ("SeasonalPersistence", {"period": 4}),
}


def run_at(path: Path, model: Any, table: pd.DataFrame, origins: Any) -> dict[str, Any]:
    """Give the graph the raw rows of windows as its description asks for them."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    told = json.loads(session.get_modelmeta().custom_metadata_map["mvlstm.forecast"])
    rows = told["window"] + told["lead"]
    past = [np.arange(r - rows + 1, r + 1) for r in origins]
    later = [np.arange(r + 1, r + 1 + told["horizon"]) for r in origins]
    feeds = {}
    for name, one in told["inputs"].items():
        where = past if name.startswith("past") else later
        if name == "series":
            feeds[name] = table["shop"].to_numpy(object)[origins]
            continue
        if name.endswith("_time"):
            whole = table.index.as_unit("s").asi8
        elif name.endswith("_categories"):
            whole = table[one["columns"]].to_numpy(object)
        else:
            whole = table[one["columns"]].to_numpy(np.float64)
        feeds[name] = np.stack([whole[few] for few in where])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def agrees(found: dict[str, Any], forecast: mv.Forecast, spread: float) -> None:
    """Compare a graph's outputs with a forecast."""
    mean = forecast.members.mean(axis=0)
    np.testing.assert_allclose(found["mean"], mean, rtol=NEAR, atol=NEAR * spread)
    members = np.moveaxis(found["members"], 2, 0)
    np.testing.assert_allclose(members, forecast.members, rtol=NEAR, atol=NEAR * spread)
    for place, level in enumerate(LEVELS):
        wanted = forecast.quantile(level).to_numpy().reshape(mean.shape)
        got = found["quantiles"][:, :, place]
        np.testing.assert_allclose(got, wanted, rtol=NEAR, atol=NEAR * spread)


@pytest.mark.parametrize("case", CASES)
def test_a_graph_gives_what_predict_gives(case: str, tmp_path: Path) -> None:
    name, settings = CASES[case]
    table = weather()
    if case == "differences":
        table["y"] = np.random.default_rng(1).normal(size=len(table)).cumsum()
    model = fitted(name, table, calibration="static", **settings)
    if case == "differences":
        assert model.fitted_.preparation.lead == 1
    model.export(tmp_path / "model.onnx", quantiles=LEVELS)
    held = model.fitted_
    origins = held.prepare(held.read(table, "predict")).origins(held.window, held.horizon)
    found = run_at(tmp_path / "model.onnx", model, table, origins)
    agrees(found, model.predict(table), float(table["y"].std()))


@pytest.mark.parametrize(
    ("name", "transform"), [("AR", "none"), ("AR", "asinh"), ("MVLSTM", "none")]
)
def test_a_graph_has_the_weights_of_each_time_of_day(
    name: str, transform: str, tmp_path: Path
) -> None:
    rng, rows = np.random.default_rng(0), 800
    times = pd.date_range("2022-01-01", periods=rows, freq="6h", name="time")
    x = rng.normal(size=rows)
    sign, growth = np.where(times.hour < 12, 3.0, -3.0), np.linspace(1, 4, rows)
    y = growth * (20 + sign * np.roll(x, 1) + 0.2 * rng.normal(size=rows))
    table = pd.DataFrame({"x": x, "y": y}, index=times)
    told: dict[str, Any] = {"calendar": ["hour"], "transform": transform, "horizon": 2}
    model = fitted(name, table, calibration="static", **told)
    assert any("daily" in array for array in model.fitted_.learned.arrays()[0])
    model.export(tmp_path / "model.onnx", quantiles=LEVELS)
    held = model.fitted_
    origins = held.prepare(held.read(table, "predict")).origins(held.window, held.horizon)
    found = run_at(tmp_path / "model.onnx", model, table, origins)
    agrees(found, model.predict(table), float(table["y"].std()))


@pytest.mark.parametrize("name", ["MVLSTM", "AR"])
def test_a_graph_scales_each_series_by_itself_and_knows_no_other(name: str, tmp_path: Path) -> None:
    table = panel()
    model = fitted(name, table, calibration="static", series="shop", time="time", horizon=2)
    model.export(tmp_path / "model.onnx", quantiles=LEVELS)
    held = model.fitted_
    origins = held.prepare(held.read(table, "predict")).origins(held.window, held.horizon)
    for shop in ("Aachen", "Celle"):
        own = origins[table["shop"].to_numpy()[origins] == shop]
        found = run_at(tmp_path / "model.onnx", model, table, own)
        forecast = model.predict(table).take(np.isin(origins, own))
        agrees(found, forecast, float(table.loc[table["shop"] == shop, "y"].std()))
    stranger = run_at(tmp_path / "model.onnx", model, table.assign(shop="Dessau"), origins[:2])
    assert np.isnan(stranger["mean"]).all() and np.isnan(stranger["quantiles"]).all()


def test_the_file_tells_what_it_is(tmp_path: Path) -> None:
    import onnx

    model = fitted("AR", weather(), horizon=2, known=["holiday"])
    model.export(tmp_path / "model.onnx", quantiles=[0.9], table=weather())
    made = onnx.load(tmp_path / "model.onnx")
    assert made.opset_import[0].version == 21
    told = json.loads(made.metadata_props[0].value)
    assert told["version"] == mv.__version__ and told["method"] == "AR"
    assert (told["window"], told["horizon"]) == (6, 2)
    assert told["inputs"]["past"] == {"rows": 6, "columns": ["temp", "holiday", "y"]}
    assert told["inputs"]["known"] == {"rows": 2, "columns": ["holiday"]}
    assert told["quantiles"] == [0.05, 0.5, 0.9, 0.95]
    assert told["scores"]["scores"]["AR"]["rmse"] > 0 and told["importance"]


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("RF", {"grid": "quick", "max_trees": 3, "n_jobs": 1}, "its trees are no network"),
        ("SeasonalPersistence", {"period": 24}, "its cycle is longer than its window of 6 rows"),
    ],
)
def test_what_has_no_graph_is_refused_with_the_reason(
    name: str, settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    model = fitted(name, weather().drop(columns="wind"), **settings)
    with pytest.raises(ParameterError, match=f"{name} has no form as an ONNX graph: {reason}"):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("levels", [[], [0.5, 1.0], 0.9, ["a"], [0.0001]])
def test_levels_that_a_graph_cannot_give_are_refused(levels: Any, tmp_path: Path) -> None:
    model = fitted("AR", weather())
    with pytest.raises(ParameterError, match=r"quantiles=.* must be one or more numbers"):
        model.export(tmp_path / "model.onnx", quantiles=levels)
