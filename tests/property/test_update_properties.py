"""Updates of any size: the error on the new rows never rises, the parts stay in order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mvlstm as mv


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
@settings(max_examples=25, deadline=None)
@given(
    new=st.integers(45, 200),
    horizon=st.integers(1, 3),
    drift=st.floats(-3.0, 3.0),
    seed=st.integers(0, 1000),
    counts=st.booleans(),
)
def test_the_error_never_rises(new, horizon, drift, seed, counts) -> None:
    old = 200
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, old + new))
    y = np.r_[0.0, x[:-1]] + 0.5 * noise + drift * (np.arange(old + new) >= old)
    table = pd.DataFrame({"x": x, "y": np.floor(np.exp(y)) if counts else y})
    transform = "log1p" if counts else "none"
    model = mv.AR(window=3, horizon=horizon, transform=transform, verbose=0)
    model.fit(table.iloc[:old], "y", valid=0.2)

    def error() -> float:
        forecast = model.predict(table)
        missed = (forecast.members.mean(axis=0) - forecast.actual)[forecast.origin >= old - 1]
        return float(np.sqrt(np.mean(missed**2)))

    before = error()
    model.update(table)
    assert error() <= before * (1 + 1e-12)
    assert model.updates_[-1].rows == new
    parts = model.fitted_.parts
    assert parts.start <= parts.train <= parts.stop <= parts.calibration == old + new - 1
    if counts:
        assert model.predict(table).interval()[0].min() >= 0
