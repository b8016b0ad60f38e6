"""What methods learn, and how a file of it is taken apart and checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import ModelFileError
from mvlstm.methods.linear import LearnedLinear
from mvlstm.model.learned import Learned, Saved, by_variable, take_array
from mvlstm.problem.inputs import Windows


@pytest.fixture(scope="module")
def model() -> mv.AR:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "y"])
    return mv.AR(window=4, horizon=2, verbose=0).fit(table, "y", test=0.2)


def saved(model: mv.AR, **extra: object) -> Saved:
    arrays, plain = model.fitted_.learned.arrays()
    return Saved(dict(arrays), plain | extra, model.fitted_.layout, model.fitted_.preparation)


def test_what_was_learned_is_restored(model: mv.AR) -> None:
    held = saved(model)
    again = model.restore(held)
    assert isinstance(again, LearnedLinear) and not held.arrays  # every array was taken
    windows = Windows.of(np.random.default_rng(1).normal(size=(7, 4, 3)))
    found, wanted = (one.predict(windows).members for one in (again, model.fitted_.learned))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "words"),
    [
        ("b", (2, 3), np.float64, "array 'b' is missing"),
        ("a", (2, 4), np.float64, r"'a' is float64 \(2, 3\), not float64 \(2, 4\)"),
        ("a", (2, 3, 1), np.float64, r"not float64 \(2, 3, 1\)"),
        ("a", (2, 3), np.float32, r"not float32 \(2, 3\)"),
    ],
)
def test_arrays_of_another_shape_are_refused(name, shape, dtype, words) -> None:
    with pytest.raises(ModelFileError, match=words):
        take_array({"a": np.zeros((2, 3))}, name, shape, dtype)


def test_an_array_is_taken_once_and_a_length_may_be_open(model: mv.AR) -> None:
    held = saved(model)
    weights = held.take("weights", (None, held.n_columns, 2), np.float64)
    assert weights.shape[1:] == (3, 2)
    with pytest.raises(ModelFileError, match="'weights' is missing"):
        held.take("weights", (None, 3, 2), np.float64)


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), [1.0]])
def test_what_is_no_number_is_refused(model: mv.AR, value: object) -> None:
    with pytest.raises(ModelFileError, match=r"'size' is .*, not a finite number"):
        saved(model, size=value).number("size")


@pytest.mark.parametrize("value", [0, -1.5])
def test_a_scale_is_positive(model: mv.AR, value: float) -> None:
    assert saved(model, size=value).number("size") == value
    with pytest.raises(ModelFileError, match=r"'size' is .*, not a positive number"):
        saved(model, size=value).scale("size")


def test_columns_are_added_up_by_variable() -> None:
    assert by_variable(np.array([1.0, 2.0, 4.0, 8.0]), (0, 1, 1, 2)).tolist() == [1.0, 6.0, 8.0]


def test_a_method_may_have_nothing_but_forecasts() -> None:
    class Zero(Learned):
        def predict(self, windows, *, spread=True, exact=False):
            raise NotImplementedError

        def arrays(self):
            return {}, {}

    made = Zero()
    windows = Windows.of(np.zeros((2, 3, 1)))
    for found in (
        made.gradient(windows.values),
        made.attention(windows),
        made.experts(windows),
        made.own_importance((0,)),
        made.scrambled(windows, np.array([0]), np.arange(2)),
    ):
        assert found is None
    assert made.history.members == 0 and made.notes == () and made.stopped is None
