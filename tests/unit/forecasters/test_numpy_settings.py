"""Whole numbers of numpy as settings, which overflow where Python's do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mvlstm as mv

SETTINGS = {
    **{"window": 6, "horizon": 2, "hidden_size": 2, "max_epochs": 3, "batch_size": 32},
    **{"patience": 2, "members": 2, "seed": 1},
}


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int8, np.uint64])
@pytest.mark.parametrize("name", ["MVLSTM", "AR"])
def test_whole_numbers_of_numpy_are_as_good_as_pythons(
    name: str, kind: Any, tmp_path: Path
) -> None:
    table = mv.datasets.load("synthetic", n=400).frame
    cls: Any = getattr(mv, name)
    known = {key: value for key, value in SETTINGS.items() if key in cls().get_params()}
    means = []
    for number in (int, kind):
        given = {key: number(value) for key, value in known.items()}
        model = cls(**given, verbose=0).fit(table, target="y", test=0.2)
        assert all(getattr(model, key) is value for key, value in given.items())
        assert model.evaluate(table).scores["rmse"].notna().all()
        model.save(tmp_path / "model.safetensors")
        again = mv.load(tmp_path / "model.safetensors").predict(table)
        means.append(model.predict(table).mean.to_numpy())
        assert np.array_equal(again.mean.to_numpy(), means[-1])
        assert len(model.forecast(table).mean) == 2
    assert np.array_equal(*means)
