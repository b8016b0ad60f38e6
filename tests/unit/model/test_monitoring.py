"""Scores of what has arrived since, and telling whether a model has slipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import MVLSTMWarning, ParameterError
from mvlstm.model.monitoring import _blocks, _period_labels, find_slips
from mvlstm.results.reference import Reference

from .new_rows import NEW, OLD, fitted, table


def test_nothing_has_slipped_on_data_of_the_same_kind() -> None:
    rows = table(2500)
    found = fitted("AR", rows).evaluate(rows, since=rows.index[1000])
    assert found.slipped == ()
    assert found.scores.loc["AR", "n"] == 1500
    assert found.periods is not None and found.periods["n"].sum() == 1500
    assert found.periods.columns[0] == "week"
    assert found.rolling is not None and 50 < len(found.rolling) <= 100
    assert found.rolling["time"].iloc[-1] == rows.index[-1]
    assert (
        found.rolling["coverage"].between(found.rolling["low"], found.rolling["high"]).mean() > 0.9
    )
    assert found.to_dict()["rolling"][-1]["state"] == "fine"


def test_a_change_is_told() -> None:
    rows = table(1200, change=700)
    model = fitted("AR", rows)
    static = model.holding(replace(model.fitted_, adaptive=False))
    with pytest.warns(MVLSTMWarning, match="has slipped"):
        found = static.evaluate(rows, since="2024-02-01")
    assert set(found.slipped) == {"skill", "coverage"}
    assert any("intervals have been too narrow since 2024-0" in note for note in found.notes)
    with pytest.warns(MVLSTMWarning, match="Skill has slipped"):
        assert model.evaluate(rows, since="2024-02-01").slipped == ("skill",)
    assert found.slips is not None and (found.slips["now"] < found.slips["then"]).all()
    assert "slips" in found.to_dict()
    assert found.rolling is not None and found.rolling["state"].iloc[-1] == "narrow"
    early = model.evaluate(rows.iloc[:700], since="2024-01-22")
    assert early.slipped == ()


def test_false_alarms_are_rare() -> None:
    alarms = 0
    for seed in range(25):
        rows = table(900, seed=seed)
        model = mv.AR(window=4, verbose=0).fit(rows.iloc[:OLD], "y", valid=0.3)
        with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            alarms += bool(model.evaluate(rows, since=rows.index[OLD]).slipped)
    assert alarms <= 3  # two tests of 1 % each: 0.5 expected


def test_rows_the_model_knows_are_left_out() -> None:
    rows = table()
    found = fitted("AR", rows).evaluate(rows, since=rows.index[OLD - 50])
    assert found.scores.loc["AR", "n"] == NEW
    assert any("knows the rows up to 2024-01-21 19:00" in note for note in found.notes)


def test_a_model_without_reference_says_so() -> None:
    model = fitted("AR")
    held = model.fitted_
    old = model.holding(replace(held, calibration=replace(held.calibration, reference=None)))
    found = old.evaluate(table(), since="2024-01-22")
    assert found.slips is None
    assert any("cannot be told: the model has no scores of" in note for note in found.notes)


def test_numbered_rows_are_scored_in_blocks() -> None:
    rows = table().reset_index(drop=True)
    found = fitted("AR", rows).evaluate(rows, since=OLD + 50)
    assert found.periods is not None
    assert list(found.periods["from"]) == [550, 571, 592, 614, 635, 657, 678]
    with pytest.raises(ParameterError, match="give a whole number"):
        fitted("AR", rows).evaluate(rows, since="2024-01-01")


def test_since_is_read_as_the_table_was() -> None:
    rows = table(1500)
    text = rows.reset_index(names="when")
    text["when"] = text["when"].dt.strftime("%d/%m/%Y %H:%M")
    model = mv.AR(window=4).fit(text.iloc[:OLD], "y", time="when")
    assert model.fitted_.layout.day_first
    found = model.evaluate(text, since="01/02/2024")
    assert found.period[0] == pd.Timestamp("2024-02-01 00:00")
    with pytest.raises(ParameterError, match="has a time zone"):
        model.evaluate(text, since=pd.Timestamp("2024-02-01", tz="UTC"))


def test_a_day_that_could_be_a_month_is_refused() -> None:
    rows = table(1500)
    model = fitted("AR", rows)
    both = r"could be 2024-02-01 or 2024-01-02\. Write the year first, like 2024-02-01"
    for since in ("1.2.2024", "01/02/2024"):
        with pytest.raises(ParameterError, match=both):
            model.evaluate(rows, since=since)
    with pytest.raises(ParameterError, match="is not a time of this table"):
        model.evaluate(rows, since="2024-13-01")
    for since in ("2024-02-01", "2/2/2024", "25.1.2024"):
        found = model.evaluate(rows, since=since)
        start = found.period[0].strftime("%Y-%m-%d %H:%M")
        assert f"Rows since {start} are scored." in found.notes


def test_a_number_is_the_date_it_spells() -> None:
    rows = table()
    model = fitted("AR", rows)
    found = model.evaluate(rows, since=20240125)
    assert found.period[0] == pd.Timestamp("2024-01-25 00:00")
    for wrong in (True, 20240125.5, float("nan"), pd.NaT):
        with pytest.raises(ParameterError, match="is not a time of this table"):
            model.evaluate(rows, since=wrong)


def test_time_zones() -> None:
    rows = table().tz_localize("Europe/Vienna")
    model = fitted("AR", rows)
    plain, aware = (
        model.evaluate(rows, since=since)
        for since in ("2024-01-25", pd.Timestamp("2024-01-24 23:00", tz="UTC"))
    )
    pd.testing.assert_frame_equal(plain.scores, aware.scores)


@pytest.mark.parametrize(
    ("freq", "n", "word"),
    [("h", 100, "day"), ("h", 2000, "week"), ("D", 90, "month"), ("D", 4000, "quarter")],
)
def test_the_period_suits_the_rows(freq: str, n: int, word: str) -> None:
    labels, found = _period_labels(pd.date_range("2020-01-01", periods=n, freq=freq))
    assert found in (word, "year")
    assert len(set(labels)) <= 31


def test_blocks_cover_all_times() -> None:
    times = np.arange(7, 507)
    blocks = _blocks(times)
    assert set(blocks) == {7 + 50 * k for k in range(10)}
    assert (blocks <= times).all()


def reference(ratio: float, coverage: float, n: int = 500) -> Reference:
    return Reference(n, ratio, 2.0 / n, coverage, 0.09 / n)


@pytest.mark.parametrize(
    ("now", "slipped"),
    [
        (reference(-1.0, 0.9), [False, False]),
        (reference(-0.9, 0.95), [False, False]),
        (reference(-0.5, 0.9), [True, False]),
        (reference(-1.0, 0.8), [False, True]),
    ],
)
def test_the_rule(now: Reference, slipped: list[bool]) -> None:
    found, sentences = find_slips(reference(-1.0, 0.9), now)
    assert found is not None and list(found["slipped"]) == slipped
    assert [" has slipped" in sentence for sentence in sentences] == slipped


def test_few_rows_tell_of_no_slip() -> None:
    found, (sentence,) = find_slips(reference(-1.0, 0.9), reference(2.0, 0.1, n=39))
    assert found is None and "fewer than 40 rows" in sentence


def test_many_rows_without_an_error_are_not_called_few() -> None:
    rows = table()
    rows.loc[rows.index[OLD:], "y"] = rows["y"].iloc[OLD - 1]
    found = fitted("Persistence", rows).evaluate(rows, since=rows.index[OLD])
    assert found.slips is None and found.scores["n"].iloc[0] > 40
    assert any("persistence makes no error" in note for note in found.notes)


@pytest.mark.parametrize(
    ("start", "n", "word"),
    [("2024-03-05 01:00", 3, "day"), ("2024-03-05 20:00", 8, "week"), ("2024-03-05", 240, "day")],
)
def test_a_few_rows_lie_in_the_shortest_period_that_holds_them(start, n, word) -> None:
    labels, found = _period_labels(pd.date_range(start, periods=n, freq="h"))
    assert found == word and labels[0] <= start[:10]


def test_a_damaged_reference_is_refused() -> None:
    good = reference(-1.0, 0.9).to_dict()
    assert Reference.from_dict(good) == reference(-1.0, 0.9)
    for name, value in (("ratio", "x"), ("coverage_variance", -1.0), ("n", None)):
        with pytest.raises((ValueError, TypeError)):
            Reference.from_dict({**good, name: value})
