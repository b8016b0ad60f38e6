"""Hidden units that are left open, and the work that an explanation of a wide network may cost."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.explain import effort
from mvlstm.explain.effort import EFFORTS


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(700, 40)), columns=[f"x{i}" for i in range(40)])
    return table.assign(y=0.8 * table["x0"].shift(1).fillna(0) + 0.3 * rng.normal(size=700))


@pytest.fixture(scope="module")
def fitted(wide: pd.DataFrame) -> mv.MVLSTM:
    model = mv.MVLSTM(window=3, members=1, max_epochs=1, verbose=0)
    return model.fit(wide, target="y", test=0.4)


def test_wide_tables_share_their_units(
    fitted: mv.MVLSTM, wide: pd.DataFrame, tmp_path: Path
) -> None:
    assert fitted.hidden_size is None
    assert fitted.fitted_.learned.trained.network.hidden_size == 300 // 41
    fitted.save(tmp_path / "model.safetensors")
    again = mv.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict(wide).mean, fitted.predict(wide).mean)


def test_a_few_variables_have_fifteen_units_each(wide: pd.DataFrame) -> None:
    model = mv.MVLSTM(window=3, members=1, max_epochs=1, verbose=0)
    model.fit(wide[["x0", "y"]], target="y", test=0.2)
    assert model.fitted_.learned.trained.network.hidden_size == 15


def test_only_the_multi_variable_lstm_leaves_them_open(wide: pd.DataFrame) -> None:
    with pytest.raises(ParameterError, match="hidden_size=None must be a whole number"):
        mv.LSTM(hidden_size=None).fit(wide, target="y")


def test_an_explanation_of_a_large_network_measures_on_fewer_windows(
    fitted: mv.MVLSTM, wide: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = fitted.fitted_.learned.work(3)
    assert work == 3 * fitted.fitted_.learned.trained.flat.size
    free = fitted.explain(wide, effort="quick", contributions=0)
    small = EFFORTS["quick"]._replace(work=150 * work * 41 * 4)
    monkeypatch.setitem(effort.EFFORTS, "quick", small)
    bound = fitted.explain(wide, effort="quick", contributions=0)
    assert bound.n_windows <= 150 < free.n_windows
    assert any("The model is large: importance was measured on" in note for note in bound.notes)
