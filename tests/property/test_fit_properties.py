"""Any table and any settings: a result that meets the contract, or an error of mvlstm."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mvlstm as mv
from mvlstm.errors import MVLSTMError, MVLSTMWarning

NUMBERS = st.one_of(
    st.floats(-10, 10),
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**6), 10**6),
    st.sampled_from([0.0, 1.0, 1e9, -1e9, 1e-12, 1e300, None, True]),
)
NAMES = st.one_of(
    st.sampled_from(["y", "x", "time", "é", "a b", "", "y ", "0"]), st.text(max_size=4)
)


@st.composite
def tables(draw: Any) -> pd.DataFrame:
    rows = draw(st.one_of(st.integers(0, 8), st.integers(20, 60)))
    names = draw(st.lists(NAMES, min_size=1, max_size=4))
    seed = draw(st.integers(0, 100))
    rng = np.random.default_rng(seed)
    columns = []
    for _ in names:
        column = rng.normal(size=rows).astype(object)
        for row in draw(st.lists(st.integers(0, max(rows - 1, 0)), max_size=3)) if rows else ():
            column[row] = draw(NUMBERS)
        columns.append(pd.Series(column).infer_objects())
    table = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(rows))
    table.columns = names
    kind = draw(st.sampled_from(["range", "hours", "zone", "months", "uneven", "text"]))
    if kind == "hours":
        table.index = pd.date_range("2024-03-30", periods=rows, freq="h")
    elif kind == "zone":
        table.index = pd.date_range("2024-03-30", periods=rows, freq="h", tz="Europe/Berlin")
    elif kind == "months":
        table.index = pd.date_range("2000-01-31", periods=rows, freq="ME")
    elif kind == "uneven":
        table.index = pd.Index(np.cumsum(rng.integers(0, 3, size=rows)))
    elif kind == "text":
        table.index = pd.Index([f"row {i}" for i in range(rows)])
    return table


ODD = st.sampled_from([0, -1, True, None, "x", 1.5, math.nan, math.inf, 10**9, []])
NETWORK = {"max_epochs": 1, "hidden_size": 2, "members": 1, "device": "cpu"}


@st.composite
def forecasters(draw: Any) -> Any:
    kind = draw(st.sampled_from([mv.Persistence, mv.AR, mv.MVLSTM]))
    chosen: dict[str, Any] = {
        "window": draw(st.one_of(st.integers(2, 5), ODD)),
        "horizon": draw(st.one_of(st.integers(1, 3), ODD)),
        "missing": draw(st.sampled_from(["error", "drop", "fill", "skip"])),
        "gaps": draw(st.sampled_from(["error", "close", "respect", None])),
    }
    if kind is mv.MVLSTM:
        chosen |= NETWORK
        name = draw(st.sampled_from(["learning_rate", "dropout", "sigma", "seed", "batch_size"]))
        chosen[name] = draw(st.one_of(ODD, st.floats(0.01, 0.5)))
    return kind(verbose=0, **chosen)


@settings(
    max_examples=int(os.environ.get("MVLSTM_EXAMPLES", "60")),
    derandomize="MVLSTM_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(tables(), forecasters(), st.sampled_from([0.0, 0.2, 0.5, 1.0, -1, 3]))
def test_a_result_or_an_error_of_ours(table: pd.DataFrame, model: Any, test: Any) -> None:
    before = table.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MVLSTMWarning)
        try:
            model.fit(table, "y", test=test)
            result = model.predict(table)
        except MVLSTMError as error:
            assert str(error)
            return
        finally:
            pd.testing.assert_frame_equal(table, before)
        assert np.isfinite(result.mean).all()
        low, high = result.interval(0.9)
        assert (low <= high).all()
        assert len(result) == result.part.shape[0] > 0
        json.dumps(result.to_dict(), allow_nan=False)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "m.safetensors")
            again = mv.load(Path(folder) / "m.safetensors").predict(table)
        np.testing.assert_array_equal(again.mean, result.mean)
