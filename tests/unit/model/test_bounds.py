"""`bounds=`: nothing that a forecast says lies beyond what the target can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError
from mvlstm.transforms import Transform

ROWS = 300
SMALL = {"hidden_size": 3, "members": 2, "max_epochs": 1}


def counts() -> pd.DataFrame:
    """Counts that are zero at night, which straight lines undershoot."""
    rng = np.random.default_rng(0)
    hours = pd.date_range("2024-01-01", periods=ROWS, freq="h")
    level = np.maximum(0.0, np.sin((hours.hour - 6) / 12 * np.pi)) * 20
    return pd.DataFrame({"x": rng.normal(size=ROWS), "y": rng.poisson(level)}, index=hours)


def model(**settings: object) -> mv.AR:
    return mv.AR(window=4, horizon=3, verbose=0, **settings).fit(counts(), "y", test=0.3)


@pytest.mark.parametrize("calibration", ["adaptive", "static"])
@pytest.mark.parametrize("transform", ["none", "log1p", "asinh"])
def test_nothing_lies_beyond_the_bounds(calibration: str, transform: str) -> None:
    free = model(calibration=calibration, transform=transform).predict(counts())
    kept = model(calibration=calibration, transform=transform, bounds=[0, 30]).predict(counts())
    assert free.quantile(0.01).min() < 0 or transform == "log1p"
    for q in (0.01, 0.5, 0.99):  # exactly those of before, brought within
        np.testing.assert_array_equal(kept.quantile(q), free.quantile(q).clip(0, 30))
    assert kept.mean.between(0, 30).all() and kept.draw(20).min() >= 0
    assert kept.draw(20).max() <= 30
    known = np.isfinite(free.actual)
    assert (kept.crps() <= free.crps() + 1e-9)[known.reshape(-1)].all()
    assert error(kept) <= error(free) + 1e-12


def error(forecast: mv.Forecast) -> float:
    return float(forecast.score()["rmse"])


@pytest.mark.parametrize("bounds", [(0, None), (None, 1.1), (0.05, 1.5), (-0.5, 3)])
@pytest.mark.parametrize("name", ["none", "log1p", "asinh"])
def test_crps_is_that_of_the_clipped_distribution(name: str, bounds: tuple[float, float]) -> None:
    w, mu, v = np.array([0.3, 0.7]), np.array([0.2, 1.0]), np.array([0.3, 0.1])
    made = Transform(name, *((0.3, 0.7) if name == "asinh" else ())).within(bounds)  # type: ignore[arg-type]
    z = np.linspace(-12.0, 12.0, 200_001)
    below = (w * ndtr((z[:, None] - mu) / np.sqrt(v))).sum(axis=1)
    x, middle = made.inverse(z), 0.5 * (below[1:] + below[:-1])
    for y in (0.5, 1.2, 2.0, -0.1 if name != "log1p" else 0.0):
        inside = np.clip(y, x[0], x[-1])
        steps = (middle - (0.5 * (x[1:] + x[:-1]) >= inside)) ** 2 * np.diff(x)
        wanted = steps.sum() + abs(y - inside)
        assert made.crps(w, mu, v, np.asarray(y)) == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def test_it_is_kept_with_the_model_and_in_updates(tmp_path: Path) -> None:
    fitted = mv.MVLSTM(window=4, bounds=(0, None), verbose=0, **SMALL)
    fitted.fit(counts().iloc[:250], "y", test=0.1)
    fitted.save(tmp_path / "model.safetensors")
    again = mv.load(tmp_path / "model.safetensors")
    assert again.fitted_.preparation.transform.is_bounded
    pd.testing.assert_frame_equal(
        again.predict(counts()).to_frame(), fitted.predict(counts()).to_frame()
    )
    fitted.update(counts(), max_epochs=1)
    assert fitted.predict(counts()).quantile(0.01).min() >= 0
    assert fitted.explain(counts(), effort="quick").importance["importance"].notna().all()


@pytest.mark.parametrize("bounds", [5, (0,), (3, 1), ("a", 2), (0, 1, 2), "01"])
def test_other_bounds_are_refused(bounds: object) -> None:
    with pytest.raises(ParameterError, match="bounds="):
        mv.AR(bounds=bounds).fit(counts(), "y")  # type: ignore[arg-type]


def test_a_table_with_values_beyond_them_is_refused() -> None:
    with pytest.raises(DataError, match=r"beyond its bounds, the first .*bounds=\[2.0, None\]"):
        mv.AR(window=4, bounds=[2, None]).fit(counts(), "y")
