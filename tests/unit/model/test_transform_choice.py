"""Which scale transform='auto' takes: the one on which a linear map of training rows errs least."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import DataError
from mvlstm.model.transform_choice import choose_transform
from mvlstm.table.frame import build_frame


def chosen(y: np.ndarray, known: int = 560) -> tuple[str, str]:
    frame = build_frame(pd.DataFrame({"y": y}), target="y")
    transform, notes = choose_transform("auto", frame, frame.order < known, 10, 1)
    assert len(notes) == 1
    return transform.name, notes[0]


def walk(n: int = 800, seed: int = 0, noise: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = np.zeros(n)
    for i in range(1, n):
        z[i] = 0.9 * z[i - 1] + noise * rng.normal()
    return z


def test_auto_takes_log1p_for_skewed_counts() -> None:
    name, note = chosen(np.exp(5 + walk(n=3000, noise=0.6)), known=2700)
    assert name == "log1p" and "lowers the errors" in note


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_auto_takes_asinh_for_heavy_tails_of_any_sign(sign: float) -> None:
    name, note = chosen(sign * np.sinh(2 * walk(n=4000)), known=3600)
    assert name == "asinh" and "lowers the errors" in note


@pytest.mark.parametrize("y", [walk(), 300.0 + walk(), np.exp(walk()) / 1000 + 5])
def test_auto_leaves_the_rest(y: np.ndarray) -> None:
    name, note = chosen(y)
    assert name == "none" and "as it is" in note


def test_auto_bounds_what_is_near_zero_and_never_below() -> None:
    rng = np.random.default_rng(0)
    day = np.maximum(0.0, np.sin(np.arange(800) / 4)) * 300
    table = pd.DataFrame({"y": np.maximum(0.0, day + rng.normal(0, 15, 800))})
    model = mv.AR(window=8, transform="auto", verbose=0).fit(table, "y", test=0.2)
    assert model.fitted_.preparation.transform.name == "none"
    assert "never negative" in " ".join(model.notes_)
    found = model.predict(table)
    assert found.mean.min() >= 0 and found.quantile(0.01).min() == 0
    plain = mv.AR(window=8, verbose=0).fit(table, "y", test=0.2).predict(table)
    assert plain.mean.min() < 0
    wide = mv.AR(window=8, transform="auto", bounds=[-50, None], verbose=0)
    assert wide.fit(table, "y", test=0.2).predict(table).mean.min() < 0
    assert mv.backtest(model, table, "y", folds=2).forecast.quantile(0.01).min() >= 0


def test_auto_looks_at_training_rows_only() -> None:
    y = 50 + walk()
    later = y.copy()
    later[560:] = np.exp(6 + walk(240, seed=1))
    assert chosen(y) == chosen(later)


def test_log1p_is_not_tried_where_it_cannot_be() -> None:
    y = np.exp(5 + walk())
    y[700] = -1.0  # in later rows, which it would refuse
    assert chosen(y)[0] != "log1p"
    with pytest.raises(DataError, match="transform='asinh' or 'none'"):
        mv.AR(window=3, transform="log1p", verbose=0).fit(pd.DataFrame({"y": y}), "y", test=0.2)


def test_a_few_rows_cannot_tell() -> None:
    assert chosen(np.exp(5 + walk()), known=40)[0] == "none"


def test_asinh_is_learned_from_training_rows_and_scales_measured_inputs(tmp_path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": np.sinh(3 * walk(n=900)), "kind": list("ab") * 450, "y": 0.0})
    table["y"] = np.r_[0.0, table["x"][:-1]] + 0.1 * table["x"].std() * rng.normal(size=900)
    model = mv.AR(window=3, horizon=2, transform="asinh", verbose=0).fit(table, "y", test=0.2)
    x, *levels = model.fitted_.preparation.inputs
    train = table["x"][:630]
    assert (x.name, x.center) == ("asinh", pytest.approx(float(np.median(train))))
    assert all(not one for one in levels) and len(levels) == 2
    later = table.copy()
    later.loc[800:, ["x", "y"]] *= 10.0  # the fit does not see it
    again = mv.AR(window=3, horizon=2, transform="asinh", verbose=0).fit(later, "y", test=0.2)
    assert again.fitted_.preparation.transform == model.fitted_.preparation.transform
    np.testing.assert_array_equal(again.predict(table).members, model.predict(table).members)
    model.save(tmp_path / "m.safetensors")
    loaded = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(table).means, model.predict(table).means)
