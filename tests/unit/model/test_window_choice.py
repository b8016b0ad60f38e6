"""``window="auto"``: found with linear maps, kept by a fit, and blind to what comes later."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mvlstm as mv
from mvlstm.errors import ParameterError

SMALL = {"hidden_size": 3, "members": 1, "max_epochs": 1, "verbose": 0}


def weekly(n: int = 1200) -> pd.DataFrame:
    """Return hours that repeat those of a week before, and noise."""
    rng = np.random.default_rng(0)
    y = [*rng.normal(size=168)]
    for _ in range(n - 168):
        y.append(0.9 * y[-168] + 0.3 * rng.normal())
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    return pd.DataFrame({"x": rng.normal(size=n), "y": y}, times)


def short(n: int = 2400) -> pd.DataFrame:
    """Return rows of which only the last tells what comes."""
    rng = np.random.default_rng(1)
    noise, y = rng.normal(size=n), np.zeros(n)
    for t in range(1, n):
        y[t] = 0.8 * y[t - 1] + noise[t]
    return pd.DataFrame({"x": rng.normal(size=n), "y": y})


def test_it_takes_as_many_rows_as_the_data_ask_for():
    model = mv.AR(window="auto", verbose=0).fit(weekly(), "y", test=0.2)
    assert model.fitted_.window == 168 and model.window == "auto"
    (note,) = [one for one in model.notes_ if "window='auto'" in one]
    assert "took 168 rows" in note and "less on validation rows than with 10" in note
    assert len(model.predict(weekly())) == len(weekly()) - 168
    plain = mv.AR(window="auto", verbose=0).fit(short(), "y", test=0.2)
    assert plain.fitted_.window == 10
    same = mv.AR(window=10, verbose=0).fit(short(), "y", test=0.2)
    np.testing.assert_array_equal(plain.predict(short()).mean, same.predict(short()).mean)


def test_rows_that_a_fit_must_not_see_do_not_change_it():
    table = weekly()
    changed = table.copy()
    changed.iloc[-300:] = np.random.default_rng(2).normal(size=(300, 2))  # test and calibration
    chosen = [
        mv.AR(window="auto", verbose=0).fit(one, "y", test=0.2).fitted_.window
        for one in (table, changed)
    ]
    assert chosen == [168, 168]


def test_known_variables_need_a_window_back_to_the_first_step():
    model = mv.AR(window="auto", horizon=14, verbose=0).fit(short(), "y", known=["x"], test=0.2)
    assert model.fitted_.window >= 14


@pytest.mark.parametrize("method", ["AR", "MVLSTM"])
def test_a_model_survives_its_file_an_update_and_a_copy(tmp_path, method):
    table = short(400)
    settings = {"verbose": 0} if method == "AR" else SMALL
    model = getattr(mv, method)(window="auto", **settings).fit(table.iloc[:320], "y")
    model.save(tmp_path / "m.safetensors")
    loaded = mv.load(tmp_path / "m.safetensors")
    assert loaded.window == "auto" and loaded.fitted_.window == model.fitted_.window
    np.testing.assert_array_equal(loaded.predict(table).mean, model.predict(table).mean)
    loaded.update(table.iloc[:360], refit="link")
    loaded.update(table)
    assert loaded.window == "auto" and loaded.fitted_.window == model.fitted_.window
    assert clone(loaded).window == "auto"


def test_backtests_and_comparisons_choose_once():
    found = mv.backtest(mv.AR(window="auto", verbose=0), short(), "y", folds=2)
    assert len(found.forecast) == 480
    rolled = mv.backtest(mv.AR(window="auto", verbose=0), short(), "y", every=20, refit="link")
    assert len(rolled.forecast) == 24
    compared = mv.compare(short(), "y", methods=["ar"], window="auto", verbose=0)
    assert "took 10 rows" in " ".join(compared.notes)


def test_few_rows_and_other_words():
    tiny = short(60)
    assert mv.AR(window="auto", verbose=0).fit(tiny, "y").fitted_.window <= 12
    with pytest.raises(ParameterError, match="window='all' must be a whole number"):
        mv.AR(window="all").fit(tiny, "y")
    with pytest.raises(ParameterError, match=r"grid=\{'window': \[24, 168\]\}"):
        mv.tune(short(), "y", model=mv.AR(window="auto", verbose=0), grid={"transform": ["none"]})
