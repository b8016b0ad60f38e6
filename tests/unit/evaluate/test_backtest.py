"""Rolling origins: what is past is fitted, what comes is scored."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.evaluate.backtest import backtest, fold_rows


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mv.datasets.load("synthetic", n=300).frame


def test_each_fold_is_a_fit_on_the_rows_before_it(table: pd.DataFrame) -> None:
    result = backtest(mv.AR(window=3, verbose=0), table, "y", folds=3, test=0.2)
    assert list(result.scores["n"]) == [20, 20, 20, 60]
    for k, end in enumerate((260, 280, 300)):
        alone = mv.AR(window=3, verbose=0).fit(table.iloc[:end], "y", test=20)
        expected = alone.evaluate(table.iloc[:end]).scores.loc["AR"]
        for name in ("rmse", "mae", "crps", "coverage", "skill"):
            assert result.scores.loc[k + 1, name] == pytest.approx(expected[name])
    squares = result.scores["rmse"].iloc[:3] ** 2
    assert result.scores.loc["pooled", "rmse"] == pytest.approx(np.sqrt(squares.mean()))
    assert result.forecast.origin.is_monotonic_increasing
    assert (result.forecast.part == "new").all()
    assert result.periods == ((240, 259), (260, 279), (280, 299))


def test_the_model_given_stays_unfitted(table: pd.DataFrame) -> None:
    model = mv.AR(window=3, verbose=0)
    backtest(model, table, "y", folds=2)
    with pytest.raises(mv.errors.NotFittedError):
        model.predict(table)


def test_later_rows_do_not_change_earlier_folds(table: pd.DataFrame) -> None:
    changed = table.copy()
    changed.iloc[270:] *= 3.0
    model = mv.AR(window=3, verbose=0)
    one, two = (backtest(model, rows, "y", folds=2).forecast for rows in (table, changed))
    np.testing.assert_array_equal(one.mean.loc[:269], two.mean.loc[:269])
    assert np.abs(one.mean - two.mean).max() > 0


def test_a_model_of_the_whole_past_sees_it(table: pd.DataFrame) -> None:
    model = mv.SeasonalPersistence(window=3, period=100, verbose=0)
    result = backtest(model, table, "y", folds=1)
    np.testing.assert_array_equal(result.forecast.mean, table["y"].to_numpy()[140:200])


def test_folds_fill_the_test_rows() -> None:
    rows = fold_rows(103, folds=4, test=0.2, valid=0.1)
    assert rows[0][0] == 82 and rows[-1][1] == 103
    assert all(a[1] == b[0] for a, b in pairwise(rows))


@pytest.mark.parametrize(
    ("changes", "words"), [({"folds": 0}, "folds=0"), ({"folds": 80}, "too few for 80 folds")]
)
def test_impossible_folds_are_refused(
    table: pd.DataFrame, changes: dict[str, int], words: str
) -> None:
    with pytest.raises(mv.errors.ParameterError, match=words):
        backtest(mv.AR(window=3, verbose=0), table, "y", **changes)
