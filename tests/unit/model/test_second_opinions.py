"""Other measures beside importance: what they find, and that disagreement is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.controls import make_control
from mvlstm.explain.granger import granger_tests
from mvlstm.methods.dual import DUAL
from mvlstm.methods.linear import AR
from mvlstm.methods.mvlstm import MVLSTM
from mvlstm.model import second_opinions
from mvlstm.model.second_opinions import (
    AGREEMENT_COLUMNS,
    NO_REFITS,
    NOT_FITTED,
    ROWS,
    _disagreement,
)


@pytest.fixture(scope="module")
def explanation():
    table, _ = make_control("correlated", 2_000, seed=1)
    return AR(window=5).fit(table, "y", test=0.2).explain(table, effort="full", contributions=20)


def test_every_measure_finds_the_drivers(explanation) -> None:
    table = explanation.agreement
    assert tuple(table.columns) == AGREEMENT_COLUMNS
    assert len(table) == 8  # without the target
    for column in ("importance", "gradients", "drop_refit", "shadow", "granger"):
        leading = table.nlargest(2, column)["variable"]
        assert set(leading) == {"a0", "a1"}, column
    rows = table.set_index("variable")
    assert (rows.loc[["a0", "a1"], "drop_refit"] > 0.1).all()
    assert (rows.loc[["a0", "a1"], "shadow"] > 5).all()
    assert (rows.loc[["a0", "a1"], "granger_p"] < 0.01).all()
    assert (rows.loc[["a0", "a1"], "disagreement"] == "").all()


def test_importance_is_the_share_among_the_exogenous_variables(explanation) -> None:
    shares = explanation.agreement.set_index("variable")["importance"]
    whole = explanation.importance.set_index("variable").loc[shares.index]
    np.testing.assert_array_equal(shares, whole["importance_exogenous"])
    assert shares.sum() == pytest.approx(1.0) and whole["importance"].sum() < 0.999


def test_the_rankings_are_compared(explanation) -> None:
    taus = [explanation.stability[f"{name}_tau"] for name in ("drop_refit", "shadow", "granger")]
    assert all(-1 <= tau <= 1 for tau in taus)
    assert any("agreement table" in note for note in explanation.notes)


def test_faithfulness_comes_with_it(explanation) -> None:
    curves = explanation.faithfulness.set_index(["curve", "order", "changed"])["error"]
    assert curves["deletion", "importance", 2] > 2 * curves["deletion", "reversed", 2]


def test_a_network_is_fitted_again_without_a_variable() -> None:
    table, _ = make_control("correlated", 900, seed=1)
    settings = {"hidden_size": 4, "members": 2, "max_epochs": 2, "verbose": 0, "device": "cpu"}
    model = MVLSTM(window=4, **settings).fit(table[["a0", "b2", "y"]], "y", test=0.2)
    found = model.explain(table, effort="full", contributions=4).agreement
    assert found["variable"].tolist() == ["a0", "b2"]
    assert found[["posterior", "gradients", "drop_refit", "shadow"]].notna().all().all()
    assert model.max_epochs == 2  # the model itself is left as it was


def test_without_the_default_effort_there_is_none() -> None:
    table, _ = make_control("noise", 400, seed=1)
    assert AR(window=4).fit(table, "y", test=0.2).explain(table).agreement is None


def test_variables_known_ahead_have_no_refits() -> None:
    table, _ = make_control("noise", 400, seed=1)
    model = AR(window=4).fit(table, "y", known=["x0"], test=0.2)
    explanation = model.explain(table, effort="full")
    assert explanation.agreement is None
    assert NO_REFITS in explanation.notes


def row(**changes):
    agreeing = {
        "verdict": "important",
        "drop_refit": 0.2,
        "shadow": 3.0,
        "granger": 0.1,
        "granger_p": 0.001,
    }
    return pd.Series(agreeing | changes).to_dict()


def test_what_speaks_against_an_important_variable_is_named() -> None:
    assert _disagreement(row()) == ""
    assert _disagreement(row(drop_refit=-0.01)) == "refitting without it costs nothing"
    both = _disagreement(row(shadow=0.5, granger_p=0.4))
    assert both == "a shadow matters as much; no linear gain (Granger)"
    assert _disagreement(row(granger_p=np.nan)) == ""  # not tested


def test_what_speaks_for_a_variable_called_noise_needs_two_measures() -> None:
    noise = "not distinguishable from noise"
    assert _disagreement(row(verdict=noise, granger=0.001, shadow=1.0)) == ""
    found = _disagreement(row(verdict=noise))
    assert "costs 20%" in found
    assert "shadow" in found


def test_rows_before_those_of_the_fit_are_no_obstacle() -> None:
    table, _ = make_control("correlated", 700, seed=1)
    model = AR(window=5, verbose=0).fit(table.iloc[200:], "y", test=0.2)
    assert model.explain(table, effort="full", contributions=3).agreement is not None


def test_a_variable_that_no_longer_varies_is_no_obstacle(monkeypatch) -> None:
    monkeypatch.setattr(second_opinions, "ROWS", 400)
    table, _ = make_control("correlated", 700, seed=1)
    table.insert(0, "switch", (np.arange(700) > 50).astype(float))
    explanation = AR(window=5, verbose=0).fit(table, "y", test=0.2).explain(table, effort="full")
    found = explanation.agreement.set_index("variable")
    measures = ["drop_refit", "shadow", "granger", "granger_p"]
    assert found.loc["switch", measures].isna().all()
    assert found.drop(index="switch")[measures].notna().all().all()
    assert any("do without ['switch']" in note for note in explanation.notes)


def test_levels_of_a_category_are_tested_beside_one_of_them() -> None:
    table, _ = make_control("correlated", 900, seed=1)
    levels = np.array(["low", "middle", "high"])[np.digitize(table["a0"], [-0.5, 0.5])]
    table = table[["b2", "y"]].assign(level=levels)
    model = AR(window=5, verbose=0).fit(table, "y", test=0.2)
    found = model.explain(table, effort="full", contributions=3).agreement.set_index("variable")
    assert found.loc["level", "granger_p"] < 0.01 < found.loc["b2", "granger_p"]
    assert found.loc["level", "granger"] > 0.05


def test_a_method_that_needs_its_only_variable_is_not_fitted_without() -> None:
    table, _ = make_control("correlated", 500, seed=1)
    settings = {"hidden_size": 4, "members": 1, "max_epochs": 2, "verbose": 0, "device": "cpu"}
    model = DUAL(window=4, **settings).fit(table[["a0", "y"]], "y", test=0.2)
    found = model.explain(table, effort="full", contributions=0).agreement
    assert found["drop_refit"].isna().all() and found["shadow"].notna().all()


def test_shadows_that_do_no_harm_are_no_measure_for_noise(monkeypatch) -> None:
    """A rise of nothing was many times the rise of a shadow below nothing."""

    def rises(self, table, **_):
        names = [name for name in table if name != "y"]
        rise = [-1e-9 if name.endswith(second_opinions.SHADOW) else 1e-9 for name in names]
        frame = pd.DataFrame({"variable": names, "error_increase": rise})
        return type("Found", (), {"importance": frame})()

    table, _ = make_control("noise", 300, seed=1)
    model = AR(window=4, verbose=0).fit(table, "y", test=0.2)
    monkeypatch.setattr(AR, "explain", rises)
    names = [name for name in table if name != "y"]
    owner = {name: name for name in table}
    found = second_opinions.Refits(model, table, "y", names, owner, 60).against_shadows()
    assert (np.abs(found) < 1).all()


def test_levels_and_variables_that_never_change_in_the_rows_are_no_obstacle() -> None:
    table, _ = make_control("correlated", ROWS + 800, seed=1)
    rows = np.arange(len(table))
    table = table[["a0", "y"]].assign(kind=np.where(rows % 2 == 0, "even", "odd"), idle=0.0)
    table.loc[:100, "kind"], table.loc[:100, "idle"] = "early", rows[:101] % 3
    model = AR(window=3, verbose=0).fit(table, "y", test=300)
    found = model.explain(table, effort="full", contributions=0).agreement
    assert found is not None
    measures = found.set_index("variable")[["drop_refit", "shadow"]]
    assert measures.loc["idle"].isna().all()
    assert measures.loc["a0", "shadow"] > 2 and measures.drop(index="idle").notna().all().all()


def test_a_table_too_short_to_fit_is_explained_without_the_other_models() -> None:
    table, _ = make_control("correlated", 700, seed=1)
    model = AR(window=5, verbose=0).fit(table.iloc[:500], "y")
    explanation = model.explain(table.iloc[480:], effort="full", contributions=0)
    assert explanation.part == "new" and explanation.agreement is None
    assert any(note.startswith(NOT_FITTED) for note in explanation.notes)


def driven(rows: int = 900) -> pd.DataFrame:
    """Return hourly rows in which x drives y, a step later, and w does nothing."""
    rng = np.random.default_rng(0)
    x, w, noise = rng.normal(size=(3, rows))
    y = np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.3 * y[t - 1] + 0.8 * x[t - 1] + 0.4 * noise[t]
    index = pd.date_range("2024", periods=rows, freq="h")
    return pd.DataFrame({"x": x, "w": w, "y": y}, index=index)


def own_rise(table: pd.DataFrame, **settings: str) -> float:
    """Return the rise in squared error of AR without x, by two fits of one's own."""
    errors = []
    for rows in (table, table.drop(columns="x")):
        model = AR(window=5, **settings).fit(rows, "y", test=0.2)
        errors.append(model.evaluate(rows).scores["rmse"].iloc[0] ** 2)
    return float(errors[1] / errors[0] - 1.0)


def agreement(table: pd.DataFrame, **settings: str):
    model = AR(window=5, **settings).fit(table, "y", test=0.2)
    explanation = model.explain(table, effort="full", contributions=0)
    return explanation.agreement.set_index("variable"), " ".join(explanation.notes)


def test_targets_filled_in_are_neither_learned_nor_scored() -> None:
    table = driven()
    table.loc[table.index[np.random.default_rng(1).uniform(size=900) < 0.3], "y"] = np.nan
    found, notes = agreement(table, missing="fill")
    assert found.loc["x", "drop_refit"] == pytest.approx(own_rise(table, missing="fill"))
    assert found["granger"].isna().all() and "Granger's tests were left out" in notes


def test_gaps_are_respected_by_the_other_models() -> None:
    table = driven()
    rows = np.arange(60, 960)
    table["y"] += 15.0 * np.random.default_rng(1).normal(size=6)[rows // 180]
    table = table[rows % 180 < 170]
    found, notes = agreement(table, gaps="respect")
    assert found.loc["x", "drop_refit"] == pytest.approx(own_rise(table, gaps="respect"))
    assert "Granger's tests rest on 170 rows" in notes
    assert found.loc["x", "granger"] > 0.7 and found.loc["x", "granger_p"] < 0.01


def test_gaps_that_are_closed_stay_so() -> None:
    table = driven()[np.arange(900) % 180 < 170]
    found, notes = agreement(table, gaps="close")
    assert found.loc["x", "drop_refit"] == pytest.approx(own_rise(table, gaps="close"))
    assert "Granger" not in notes and found["granger"].notna().all()


def test_granger_tests_are_of_differences_where_there_is_a_unit_root() -> None:
    table = driven()
    table["y"] = table["y"].cumsum()
    levels = np.where(table["w"] > 0, "high", "low")
    found, notes = agreement(table[["x", "y"]].assign(level=levels))
    assert "Granger's tests are of the differences of ['y']" in notes
    seen = table.iloc[:720]
    columns = [seen["x"][1:], (levels[:720] == "low")[1:], np.diff(seen["y"])]
    series = np.column_stack(columns)
    expected = granger_tests((series - series.mean(axis=0)) / series.std(axis=0))["columns"]
    np.testing.assert_allclose(found.loc[["x", "level"], "granger"], expected["gain"], atol=1e-9)
