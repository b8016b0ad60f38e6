"""Standardising and undoing it, also at the edges of floating point."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

from mvlstm.errors import ModelFileError
from mvlstm.problem.scaling import Scaler, SeriesScaler


def test_columns_get_mean_zero_and_deviation_one() -> None:
    values = np.random.default_rng(0).normal(3, 7, size=(1000, 4)) * [1, 1e-12, 1e12, 1e150]
    scaled = Scaler.fit(values).transform(values)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-12)


def test_columns_that_do_not_vary_keep_their_scale() -> None:
    scaler = Scaler.fit(np.array([[5.0, 0.1, 5e-324], [5.0, 0.1, 5e-324], [5.0, 0.1, 0.0]]))
    assert scaler.scale.tolist()[:2] == [1.0, 1.0]
    assert scaler.center.tolist()[:2] == [5.0, 0.1]
    assert (scaler.scale > 0).all()


def test_float32_output_needs_no_float64_copy() -> None:
    values = np.random.default_rng(0).normal(size=(500_000, 10))
    scaler = Scaler.fit(values[:1000])
    tracemalloc.start()
    scaled = scaler.transform(values, dtype=np.float32)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert scaled.dtype == np.float32
    assert peak < 1.7 * scaled.nbytes


def test_scaler_survives_json_exactly() -> None:
    scaler = Scaler.fit(np.random.default_rng(0).normal(size=(50, 3)))
    back = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    np.testing.assert_array_equal(back.center, scaler.center)
    np.testing.assert_array_equal(back.scale, scaler.scale)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"center": [0.0], "scale": [0.0]},
        {"center": [0.0], "scale": [1.0, 1.0]},
        {"center": ["x"], "scale": [1.0]},
        {"center": [float("nan")], "scale": [1.0]},
        {"center": [[0.0]], "scale": [[1.0]]},
    ],
)
def test_a_damaged_scaler_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ModelFileError, match="scaling is damaged"):
        Scaler.from_dict(values)


def test_a_series_that_does_not_vary_is_scaled_alike_at_fit_and_later() -> None:
    rng = np.random.default_rng(0)
    levels = [*(100 + 9 * rng.normal(size=(6, 50))), np.zeros(50), np.full(50, 1e-3)]
    values = np.concatenate(levels)[:, None]
    names = tuple("abcdefgh")
    codes = np.repeat(np.arange(8), 50)
    own = np.array([True])
    fitted = SeriesScaler.fit(values, codes, names, own=own, least=10)
    again = SeriesScaler.from_dict(fitted.to_dict(), fitted.common, own)
    later = again.rows(np.zeros((20, 1)), np.zeros(20, dtype=np.int64), ("new",), window=5)
    _, scale = later.target
    assert np.allclose(scale, fitted.scale[6, 0]) and 5 < scale[0] < 15  # as the others vary
    damaged = fitted.to_dict() | {"guess": {"share": [0.0], "least": [1.0]}}
    with pytest.raises(ModelFileError, match="damaged"):
        SeriesScaler.from_dict(damaged, fitted.common, own)


def test_a_column_that_tells_series_apart_is_not_scaled_by_series() -> None:
    rng = np.random.default_rng(0)
    area = np.repeat([100.0, 150.0, 200.0], 50)
    same, moving = np.full(150, 7.0), rng.normal(size=150)
    target = rng.normal(size=150) * np.repeat([1.0, 10.0, 100.0], 50)
    values = np.stack([area, same, moving, target], axis=1)
    codes, names = np.repeat(np.arange(3), 50), ("a", "b", "c")
    measured = np.ones(4, dtype=bool)
    fitted = SeriesScaler.fit(values, codes, names, own=measured, least=10)
    assert fitted.static == (0,) and fitted.own.tolist() == [False, True, True, True]
    again = SeriesScaler.from_dict(fitted.to_dict(), fitted.common, measured)
    for one in (fitted, again):
        scaled = one.rows(values, codes, names, window=5).transform(values)
        assert np.unique(scaled[:, 0].round(6)).tolist() == [-1.224745, 0.0, 1.224745]
        assert np.allclose(scaled[codes == 2, 3].std(), 1.0)
        other = one.rows(values[:10] + 50.0, codes[:10], ("new",), window=5)
        assert np.allclose(other.transform(values[:10] + 50.0)[:, 0], 0.0)
    for damaged in ([3], [-1], ["a"]):
        with pytest.raises(ModelFileError, match="damaged"):
            SeriesScaler.from_dict(fitted.to_dict() | {"static": damaged}, fitted.common, measured)
