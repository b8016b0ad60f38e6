"""Networks other than MVLSTM: their forecasts come apart too."""

from __future__ import annotations

import numpy as np
import pytest

import mvlstm as mv


@pytest.mark.parametrize("kind", [mv.DUAL, mv.RETAIN, mv.CLSTM])
def test_contributions_add_up(kind):
    table = mv.datasets.load("synthetic", n=300).frame
    settings = {"penalties": [0.1]} if kind is mv.CLSTM else {}
    model = kind(window=5, hidden_size=4, members=2, max_epochs=2, verbose=0, **settings)
    model.fit(table, target="y", test=0.2)

    found = model.explain(table, effort="quick", contributions=5)

    assert found.contribution is not None
    forecast = model.predict(table).mean
    total = found.contribution.groupby(level="origin").sum()
    if total.ndim == 2:
        total = total.sum(axis=1)
    known = forecast.reindex(total.index[:-1] + 1).to_numpy()
    shift = known - total.to_numpy()[:-1]
    assert np.ptp(shift) < 1e-3 * table["y"].std()
