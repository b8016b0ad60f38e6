"""From a fitted model to a report: any forecaster, the same rows for the rival, a true command."""

from __future__ import annotations

import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

import mvlstm as mv
from made_results import contribution_sums
from mvlstm.cli.app import app
from mvlstm.errors import DataError, MissingExtraError
from mvlstm.report import build, gather, render_report
from mvlstm.report.gather import _profile, part_sizes, repeat_command
from mvlstm.table.frame import build_frame

TINY = {"window": 4, "hidden_size": 2, "members": 2, "max_epochs": 2, "verbose": 0}


def make_table(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, z, noise = rng.normal(size=(3, rows))
    y = np.r_[0.0, 2.0 * x[:-1]] + 0.2 * noise
    index = pd.date_range("2024-01-01", periods=rows, freq="h", name="when")
    return pd.DataFrame({"x": x, "z'; rm": z, "y": y}, index=index)


@pytest.fixture(scope="module")
def model() -> mv.MVLSTM:
    return mv.MVLSTM(**TINY, horizon=2).fit(make_table(), "y", test=0.2)


@pytest.fixture(scope="module")
def data(model):
    return model.report(make_table(), effort="quick")


def test_results_are_those_of_the_model(model, data):
    table = make_table()
    pd.testing.assert_frame_equal(data.forecast.to_frame(), model.predict(table).to_frame())
    pd.testing.assert_frame_equal(data.future.to_frame(), model.forecast(table).to_frame())
    own = model.evaluate(table).scores
    pd.testing.assert_frame_equal(data.evaluation.scores.loc[own.index], own)
    assert data.profile["highest"].tolist() == table.max().tolist()


def test_categories_are_among_the_variables():
    table = make_table().assign(sky=["blue", "grey", "blue"] * 100)
    found = _profile(build_frame(table, target="y")).set_index("variable")
    assert list(found.index) == ["x", "z'; rm", "sky", "y"]
    assert list(found["levels"]) == ["", "", "2, most often blue", ""]
    assert found.loc["sky", ["lowest", "highest"]].isna().all()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(model, tmp_path, monkeypatch):
    monkeypatch.setattr("mvlstm.report.gather.gather_report", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(DataError, match="does not exist; create it first"):
        model.report(None, tmp_path / "absent" / "report.html")


def test_the_rival_sees_the_same_rows(model, data):
    scores = data.evaluation.scores
    assert list(scores.index) == ["MVLSTM", "persistence", "seasonal", "AR", "GBT"]
    assert scores["n"].nunique() == 1
    rival = mv.AR(window=4, horizon=2).fit(make_table(), "y", test=0.2)
    assert scores.loc["AR", "rmse"] == pytest.approx(
        rival.evaluate(make_table()).scores["rmse"].iloc[0]
    )


def test_contributions_add_up_exactly(data):
    sums = contribution_sums(data.explanation)
    future = data.future.mean
    for key, value in future.items():
        assert sums.loc[key] == pytest.approx(value, abs=1e-4)


def test_new_rows_alone_have_no_rival(model):
    data = model.report(make_table().tail(60), effort="quick")
    assert "AR" not in data.evaluation.scores.index
    assert any(note.startswith("AR is not compared") for note in data.notes)
    assert "How was it made?" in render_report(data)


def test_the_command_repeats_the_fit(model, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("DATA.csv")
    fit = shlex.split(data.command.splitlines()[0])
    app([*fit[1:], "--quiet"], standalone_mode=False)
    again = mv.load("model.safetensors")
    np.testing.assert_allclose(
        again.predict(make_table()).mean, data.forecast.mean, rtol=1e-3, atol=1e-3
    )
    assert part_sizes(again.fitted_.parts, again.fitted_.read(make_table(), "report")) == (30, 60)


def test_the_command_repeats_the_fit_of_a_target_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_csv("DATA.csv")
    model = mv.MVLSTM(**TINY).fit(table, "y", exclude=["x", "z'; rm"], test=0.2)
    fit = shlex.split(
        repeat_command(model, model.fitted_, model.fitted_.read(table, "report")).splitlines()[0]
    )
    app([*fit[1:], "--quiet"], standalone_mode=False)
    assert mv.load("model.safetensors").fitted_.layout.names == ("y",)


def test_the_command_reads_what_is_known_ahead_from_a_file():
    table = make_table().rename(columns={"z'; rm": "z"})
    model = mv.MVLSTM(**TINY).fit(table.iloc[:-1], "y", known="x", test=0.2)
    ahead = table.iloc[-1:][["x"]]
    data = model.report(table.iloc[:-1], future=ahead, effort="quick")
    assert data.command.splitlines()[1] == (
        "mvlstm report model.safetensors DATA.csv --future FUTURE.csv --out report.html"
    )


def test_days_are_written_without_hours():
    table = make_table().set_index(pd.date_range("2023-01-01", periods=300, name="day"))
    data = mv.AR(window=4).fit(table, "y", test=0.2).report(table, effort="quick")
    assert data.facts["Period"] == "2023-01-01 to 2023-10-27"
    assert not any("00:00" in text for text in data.facts.values())


def test_a_setting_that_is_an_array_is_repeated():
    model = mv.MVLSTM(**TINY, calendar=np.array(["hour", "weekday"]))
    model.fit(make_table(), "y", test=0.2)
    data = model.report(make_table(), effort="quick")
    assert "--calendar hour,weekday " in data.command


def test_the_rival_finds_the_times_of_an_index_that_became_a_column():
    model = mv.MVLSTM(**TINY, calendar=["hour"]).fit(make_table(), "y", test=0.2)
    data = model.report(make_table().reset_index(), effort="quick")
    assert "AR" in data.evaluation.scores.index


def test_an_updated_model_has_no_command_that_would_repeat_it(data):
    table = make_table()
    model = mv.MVLSTM(**TINY).fit(table.iloc[:200], "y", test=0.2)
    model = model.update(table.iloc[:260], refit="full")
    assert data.command and not model.report(table, effort="quick").command


@pytest.mark.parametrize("name", ["AR", "Persistence", "GBT"])
def test_any_forecaster_can_be_reported(name, tmp_path):
    kind = getattr(mv, name)
    options = {} if name == "Persistence" else {"window": 4}
    model = kind(**options, verbose=0).fit(make_table(), "y", test=0.2)
    path = tmp_path / "report.html"
    found = model.report(make_table(), path, effort="quick")
    assert found.model == name and not found.command  # `mvlstm fit` fits none of them
    page = path.read_text(encoding="utf-8")
    assert "What drives it, and how sure is that?" in page


def test_rows_of_the_future_are_explained_too():
    table, later = make_table().iloc[:-2], make_table().iloc[-2:][["x"]]
    model = mv.MVLSTM(**TINY, horizon=2).fit(table, "y", known="x", test=0.2)
    data = model.report(table, future=later, effort="quick")
    assert data.is_ahead and table.index[
        -1
    ] in data.explanation.contribution.index.get_level_values("origin")


def test_a_look_ahead_that_lacks_rows_is_left_out():
    table = make_table()
    table.iloc[-1, table.columns.get_loc("y")] = np.nan
    model = mv.AR(window=4, horizon=2, verbose=0).fit(table.iloc[:-1], "y", known="x", test=0.2)
    with pytest.warns(mv.MVLSTMWarning, match="There is no look ahead.*of step 2"):
        data = model.report(table, effort="quick")
    assert not data.is_ahead and len(data.future) == 1


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
def test_without_a_look_ahead_the_last_rows_are_called_last():
    model = mv.MVLSTM(**TINY).fit(make_table(), "y", known="x", test=0.2)
    data = model.report(make_table(), effort="quick")
    assert not data.is_ahead
    page = build.report_page(data)
    assert page.sections[0].title == "What happened last?"
    assert [p["last"] for p in page.explorer["points"]][-2:] == [False, True]
    heat = page.explorer["points"][-1]["heat"]["data"][0]
    assert heat["zmax"] == -heat["zmin"] and heat["zmax"] > 0, "though x has a lag others lack"
    assert any("there is no look ahead" in note for note in data.notes)


def test_a_missing_extra_is_found_before_the_work(model, monkeypatch):
    def absent() -> None:
        raise MissingExtraError("Install it with pip install 'mvlstm[report]'.")

    monkeypatch.setattr(build, "graph_objects", absent)
    monkeypatch.setattr(model, "predict", lambda table: pytest.fail("work was begun"))
    with pytest.raises(MissingExtraError):
        model.report(make_table(), "never.html")


def test_series_without_a_skill_are_left_out_of_its_range():
    one = make_table(200)
    flat = one.assign(y=one["y"].where(np.arange(200) < 120, 3.0))  # persistence errs nowhere
    rows = pd.concat([one.assign(shop="a"), (10 * one).assign(shop="b"), flat.assign(shop="c")])
    model = mv.AR(window=3, verbose=0).fit(rows, "y", series="shop", test=0.2)
    notes = model.report(rows, effort="quick").notes
    (note,) = [text for text in notes if "The skill lies between" in text]
    assert "'a'" in note and "'b'" in note and "nan" not in note


def test_a_report_of_several_series_names_the_one_shown_and_has_tables_of_all(tmp_path):
    one = make_table(200)
    rows = pd.concat([one.assign(shop="b"), (10 * one).assign(shop="a"), one.assign(shop="c")])
    model = mv.MVLSTM(**TINY, horizon=2).fit(rows, "y", series="shop", test=0.2)
    data = model.report(rows, effort="quick")
    assert data.series == "a" and data.forecast.series is None
    future = model.forecast(rows).to_frame()
    assert data.next_values["series"].tolist() == future["series"].tolist()
    np.testing.assert_allclose(data.next_values["mean"], future["mean"])
    page = build.report_page(data)
    tables = {b.key: b.frame for s in page.sections for b in s.blocks if b.kind == "table"}
    assert len(tables["next-values"]) == 6
    assert tables["series-scores"]["series"].tolist() == ["a", "b", "c"]
    figures = {b.key: b for s in page.sections for b in s.blocks if b.kind == "figure"}
    assert figures["step-scores"].table["step"].tolist() == [1, 2]
    assert [choice.name for choice in figures["forecast"].choices] == ["a", "b", "c"]
    assert data.measure == "rmsse"
    shares = tables["series-importance"].set_index("series")
    assert list(shares.index) == ["a", "b", "c"]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert data.facts["Validation"].endswith("60 rows") and data.facts["Unseen"] == "120 rows"
    found = part_sizes(model.fitted_.parts, model.fitted_.read(rows, "report"))
    assert found == (20, 40), "times, for the command"
    assert page.summary[0].startswith("A simpler method forecasts better")
    assert "The next value of y in a" in page.summary[1] and "all 3 series" in page.summary[1]
    assert page.cards[0].label == "Next y in a"


class TestDeadline:
    """Of rivals, by a clock that goes one second for each step of 20."""

    def run(self, monkeypatch: pytest.MonkeyPatch, deadline: float, slow: float = 0.0) -> int:
        now, told = [0.0], []
        monkeypatch.setattr(gather, "clock", SimpleNamespace(monotonic=lambda: now[0]))
        advance = gather._until(deadline, lambda text, **_: told.append(text))
        try:
            for k in range(20):
                now[0] += 1.0 + slow * (k == 0)
                advance("grown", of=20)
        except gather._TooSlow:
            pass
        return len(told)

    def test_who_is_in_time_is_done(self, monkeypatch):
        assert self.run(monkeypatch, 20.0) == 20
        assert self.run(monkeypatch, 30.0, slow=10.0) == 20, "libraries are loaded once"

    def test_who_would_be_late_ends_at_once(self, monkeypatch):
        assert self.run(monkeypatch, 15.0) == 1
        assert self.run(monkeypatch, 0.5) == 0


def test_trees_that_are_late_are_left_out_and_threads_come_back(model, monkeypatch):
    monkeypatch.setattr(gather, "LONGEST", -1.0)
    before = threadpool_info()
    data = model.report(make_table(), effort="quick")
    assert "GBT" not in data.evaluation.scores.index and "AR" in data.evaluation.scores.index
    assert any(note.startswith("GBT is not compared: fitting it would") for note in data.notes)
    assert threadpool_info() == before


def test_rivals_are_left_out_where_time_is_short(model):
    short = model.report(make_table(), effort="quick", time_limit=1e-3)
    assert list(short.evaluation.scores.index) == ["MVLSTM", "persistence", "seasonal"]
    told = [
        note for note in short.notes if "the time limit of this report left no room for it" in note
    ]
    assert [note.split()[0] for note in told] == ["AR", "GBT"]
    assert "persistence" in render_report(short)
