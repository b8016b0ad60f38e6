"""Members of several kinds in one ensemble: plain, sparse, and without a link."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
import mvlstm.methods.network.kinds as kinds_module
import mvlstm.methods.network.training as networks
from experiments.controls import make_control
from mvlstm.errors import ModelFileError, ParameterError
from mvlstm.methods.network import further_training
from mvlstm.methods.network.kinds import ensembles_of, find_harmful, keeps_its_levels
from mvlstm.methods.network.members import member_errors, take_members
from mvlstm.methods.network.trained import TrainedNetwork, labels_by_row, learn_labels
from mvlstm.methods.network.training import SHRINKAGE, kinds_of
from mvlstm.model.fitting import begin, fit
from mvlstm.problem.inputs import Windows
from mvlstm.problem.problem import Run
from mvlstm.problem.target_scale import Bare
from mvlstm.table.frame import build_frame
from mvlstm.train.checkpoint import AGAIN, NAME
from mvlstm.train.config import KINDS, Kind, Member, make_members
from mvlstm.train.shrinkage import Shrinkage

from .learned import fit_frame

SMALL = {"window": 4, "hidden_size": 3, "members": 5, "max_epochs": 3, "verbose": 0}


def table(n: int = 500, seed: int = 0) -> pd.DataFrame:
    """A target that keeps its level, driven by one of two variables."""
    rng = np.random.default_rng(seed)
    x, z, y = rng.normal(size=n), rng.normal(size=n), np.zeros(n)
    for t in range(1, n):
        y[t] = 0.6 * y[t - 1] + np.tanh(2 * x[t - 1]) + 0.3 * rng.normal()
    return pd.DataFrame({"x": x, "z": z, "y": 5 + y})


@pytest.fixture
def keep(monkeypatch) -> None:
    """Let members of all kinds stay, whatever they do."""
    monkeypatch.setattr(
        kinds_module, "find_harmful", lambda errors, plain, ensembles: np.zeros(len(plain), bool)
    )


@pytest.fixture
def drop(monkeypatch) -> None:
    """Find members that are not plain harmful, whatever they do."""
    monkeypatch.setattr(kinds_module, "find_harmful", lambda errors, plain, ensembles: ~plain)


def fitted(**changes) -> mv.MVLSTM:
    return mv.MVLSTM(**SMALL | changes).fit(table(), "y", test=0.2)


@pytest.fixture(scope="module")
def linear() -> mv.MVLSTM:
    """Plain members alone, with the link; nothing may be done to it."""
    return fitted(link="linear")


@pytest.fixture(scope="module")
def several() -> mv.MVLSTM:
    """Members of all kinds; nothing may be done to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kinds_module, "find_harmful", lambda errors, plain, _: np.zeros(len(plain), bool)
        )
        return fitted()


@pytest.fixture(scope="module")
def replaced() -> mv.MVLSTM:
    """Plain members that took the places of all others; nothing may be done to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds_module, "find_harmful", lambda errors, plain, _: ~plain)
        return fitted()


def trained(model: mv.MVLSTM) -> TrainedNetwork:
    """The members of a fitted model."""
    return model.fitted_.learned.trained


class Watched(mv.MVLSTM):
    """Keeps what it learned last: a search for settings fits no model."""

    def learn(self, problem):
        learned = super().learn(problem)
        self.found = learned.trained
        return learned


# ----------------------------------------------------------------------------------- which they are


def test_of_five_members_one_is_plain_and_two_do_without_the_link(keep, linear) -> None:
    assert trained(fitted(members=7, max_epochs=1)).kinds.tolist() == [
        Kind.PLAIN,
        Kind.BARE,
        Kind.SPARSE,
        Kind.BARE,
        Kind.SPARSE,
        Kind.PLAIN,
        Kind.BARE,
    ]
    assert trained(fitted(members=4, max_epochs=1)).kinds is None, "a small ensemble is plain"
    assert trained(linear).kinds is None


def test_a_target_alone_has_no_sparse_members(keep) -> None:
    model = mv.MVLSTM(**SMALL).fit(table()[["y"]], "y", test=0.2)
    assert trained(model).kinds.tolist() == [0, Kind.BARE, 0, Kind.BARE, 0]


def test_a_share_of_an_ensemble_without_a_plain_member_is_plain() -> None:
    first, last = make_members(0, 4), make_members(0, 3, first=7, learning_rate=0.01)
    assert kinds_of(first, alone=False).tolist() == [0, Kind.BARE, Kind.SPARSE, Kind.BARE]
    assert not kinds_of(last, alone=False).any()
    both = [*last, *make_members(1, 4, ensemble=1)]
    assert kinds_of(both, alone=False).tolist() == [0, 0, 0, 0, Kind.BARE, Kind.SPARSE, Kind.BARE]
    model = mv.MVLSTM(**SMALL | {"members": 3})
    frame = build_frame(table(), target="y")
    found, _ = fit(model, frame, test=0.2, valid=0.1, members=last, ensemble=10)
    assert found.learned.trained.kinds is None and found.learned.trained.labels.bare is None


def test_each_kind_is_what_it_would_be_alone(keep, linear, monkeypatch) -> None:
    learn = Bare.learn  # with a range that no link's forecast leaves
    monkeypatch.setattr(Bare, "learn", lambda labels, left: learn(labels, 1e9))
    every = fitted()
    kinds = trained(every).kinds
    plain = kinds == Kind.PLAIN
    np.testing.assert_array_equal(trained(every).flat[plain], trained(linear).flat[plain])
    members = every.predict(table()).members
    np.testing.assert_array_equal(members[plain], linear.predict(table()).members[plain])
    train = networks.train  # members of one kind, all of them shrunk
    monkeypatch.setattr(
        networks,
        "train",
        lambda network, data, members, config, **options: train(
            network, data, [replace(m, shrinkage=SHRINKAGE) for m in members], config, **options
        ),
    )
    shrunk, bare = fitted(link="linear"), fitted(link="none", isolation=1e-2)
    for model, kind in ((shrunk, Kind.SPARSE), (bare, Kind.BARE)):
        own = kinds == kind
        np.testing.assert_allclose(trained(every).flat[own], trained(model).flat[own], atol=1e-6)
        theirs = model.predict(table()).members[own]
        np.testing.assert_allclose(members[own], theirs, atol=1e-5)
    assert np.abs(trained(shrunk).flat - trained(linear).flat).max() > 1e-3


def test_harmful_members_are_trained_again_as_plain_ones(replaced, linear) -> None:
    again = replaced
    assert trained(again).kinds is None and trained(again).labels.bare is None
    np.testing.assert_array_equal(trained(again).flat, trained(linear).flat)
    np.testing.assert_array_equal(again.history_.valid_rmse, linear.history_.valid_rmse)
    assert again.history_.notes == linear.history_.notes
    ours, theirs = again.predict(table()), linear.predict(table())
    np.testing.assert_array_equal(ours.members, theirs.members)
    np.testing.assert_array_equal(ours.variances, theirs.variances)


def test_they_stay_if_the_ensemble_is_better_with_them() -> None:
    rng = np.random.default_rng(1)
    plain = np.array([True, False, True])
    errors = rng.normal(size=(3, 200, 2))
    one = np.zeros(3, dtype=int)
    assert not find_harmful(errors, plain, one).any()  # errors that cancel
    errors[1] += 5.0
    assert find_harmful(errors, plain, one).tolist() == [False, True, False]


def test_every_ensemble_decides_for_itself() -> None:
    rng = np.random.default_rng(1)
    errors = rng.normal(size=(6, 200, 1))
    errors[4] += 5.0
    plain = np.array([True, False, True] * 2)
    two = np.array([0, 0, 0, 1, 1, 1])
    assert np.flatnonzero(find_harmful(errors, plain, two)).tolist() == [4]
    assert find_harmful(errors[[1]], plain[[1]], two[[1]]).all(), "no other beside it"
    errors[1] = np.nan
    assert np.flatnonzero(find_harmful(errors, plain, two)).tolist() == [1, 4]


def test_ensembles_are_told_apart_by_number_and_settings() -> None:
    repeats = [*make_members(0, 2), *make_members(1, 2, ensemble=1)]
    assert ensembles_of(repeats).tolist() == [0, 0, 1, 1]
    settings = [Member(seed, rate) for rate in (0.01, 0.001) for seed in (0, 1)]
    assert ensembles_of(settings).tolist() == [0, 0, 1, 1]


def test_settings_of_a_small_ensemble_are_tried_with_plain_members(keep) -> None:
    model = Watched(**SMALL)
    members = make_members(0, 5, learning_rate=0.01)
    rows = build_frame(table(), target="y")
    member_errors(model, rows, members, together=5, ensemble=3, test=0.2, valid=0.1)
    assert model.found.kinds is None
    member_errors(model, rows, members[:3], together=3, ensemble=5, test=0.2, valid=0.1)
    assert model.found.kinds.tolist() == list(KINDS[:3])


@pytest.mark.parametrize("rates", [(0.01, 0.001), (0.01, 0.01)])
def test_members_tried_one_by_one_are_plain(keep, rates) -> None:
    model = Watched(**SMALL)
    members = [
        replace(one, learning_rate=r) for one, r in zip(make_members(0, 2), rates, strict=True)
    ]
    member_errors(model, build_frame(table(), target="y"), members, test=0.2, valid=0.1)
    assert model.found.kinds is None and model.found.labels.bare is None


def test_a_setting_tried_with_five_members_is_judged_as_the_ensemble_it_would_be(
    monkeypatch,
) -> None:
    rows, parts = build_frame(table(), target="y"), {"test": 0.2, "valid": 0.1}
    rates = (0.01, 0.003)
    monkeypatch.setattr(
        kinds_module, "find_harmful", lambda errors, plain, ensembles: ~plain & (ensembles == 1)
    )
    model = Watched(**SMALL)
    members = [m for rate in rates for m in make_members(0, 5, learning_rate=rate, l2=1e-4)]
    found = member_errors(model, rows, members, together=5, ensemble=5, **parts)
    assert model.found.kinds.tolist() == [*KINDS, *[Kind.PLAIN] * 5]
    for place, (rate, link) in enumerate(zip(rates, ("auto", "linear"), strict=True)):
        alone = mv.MVLSTM(**SMALL | {"learning_rate": rate, "link": link})
        alone, problem = fit_frame(alone, rows, **parts)
        both = np.concatenate([problem.origins[part] for part in ("stop", "calibration")])
        before = replace(trained(alone), labels=learn_labels(link, problem))
        means = before.rows(problem.prepared.table, both).mean(axis=0)
        errors = means - problem.prepared.labels(both, 1)
        assert found[place] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-5)


def test_some_members_can_be_taken_out(keep) -> None:
    model = mv.MVLSTM(**SMALL)
    model, problem = fit_frame(model, build_frame(table(), target="y"), test=0.2, valid=0.1)
    few = model.holding(take_members(model.fitted_, problem, slice(1, 3)))
    assert trained(few).kinds.tolist() == [Kind.BARE, Kind.SPARSE]
    np.testing.assert_array_equal(few.predict(table()).members, model.predict(table()).members[1:3])


# --------------------------------------------------------------------------- where they are allowed


@pytest.mark.parametrize("seed", range(3))
def test_a_series_without_a_level_has_links_only(seed) -> None:
    walks, _ = make_control("walks", 400, seed=seed)
    target = walks.columns[-1]
    model = mv.MVLSTM(**SMALL | {"max_epochs": 1}).fit(walks, target, test=0.2)
    assert trained(model).kinds is None
    trend = table().assign(y=lambda t: t["y"] + 0.1 * np.arange(len(t)))
    assert trained(mv.MVLSTM(**SMALL | {"max_epochs": 1}).fit(trend, "y")).kinds is None


def test_a_series_that_the_link_tells_all_about_has_links_only() -> None:
    t = np.arange(400)
    smooth = pd.DataFrame({"x": np.cos(t / 9), "y": np.sin(t / 9)})
    model = mv.MVLSTM(**SMALL)
    problem = begin(model, build_frame(smooth, target="y"), test=0.2, valid=0.1).problem
    labels = learn_labels("auto", problem)
    assert labels.scale < 0.1 * labels.bare.scale
    assert not keeps_its_levels(problem, labels)


@pytest.mark.parametrize(
    "changes", [{}, {"horizon": 3}, {"difference": "auto"}, {"transform": "log1p"}]
)
def test_a_series_that_returns_to_its_mean_may_do_without(changes) -> None:
    model = mv.MVLSTM(**SMALL | changes)
    problem = begin(model, build_frame(table(), target="y"), test=0.2, valid=0.1).problem
    assert keeps_its_levels(problem, learn_labels("auto", problem))


def test_with_few_windows_all_are_plain() -> None:
    short = mv.MVLSTM(**SMALL).fit(table(250), "y", test=0.2)
    assert trained(short).kinds is None


@pytest.mark.parametrize("sigma", [1.0, "calibrated"])
def test_sigma_in_the_targets_units_needs_one_kind(sigma) -> None:
    with pytest.raises(ParameterError, match=r"link='auto'\. Use link='linear'"):
        mv.MVLSTM(**SMALL, sigma=sigma, target_scale="raw").fit(table(), "y")


def test_a_member_without_a_link_may_fail(linear, monkeypatch) -> None:
    def broken(labels, problem):
        found = labels_by_row(labels, problem)
        if labels.bare is not None:
            found[1] = np.inf
        return found

    monkeypatch.setattr(networks, "labels_by_row", broken)
    np.testing.assert_array_equal(trained(fitted()).flat, trained(linear).flat)


def test_a_sparse_member_may_fail(linear, monkeypatch) -> None:
    monkeypatch.setattr(Shrinkage, "__call__", lambda self, flat, *_: flat.fill_(torch.nan))
    np.testing.assert_array_equal(trained(fitted()).flat, trained(linear).flat)


# ---------------------------------------------------------------------- beyond the levels it showed


def test_the_link_carries_a_level_that_training_never_showed(keep) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=600), np.zeros(600)
    for t in range(1, 600):
        y[t] = 0.95 * y[t - 1] + 0.5 * x[t - 1] + 0.5 * rng.normal()
    known = pd.DataFrame({"x": x, "y": y})
    model = mv.MVLSTM(**SMALL | {"max_epochs": 10}).fit(known, "y", test=0.2)
    shifted = known.assign(y=y + 40.0)
    with warnings.catch_warnings(action="ignore"):
        forecast = model.predict(shifted)
    error = np.abs(forecast.members - forecast.actual).mean(axis=(1, 2))  # (K,)
    has = ~trained(model).is_bare
    saturated = np.abs(forecast.actual - y.max()).mean()  # the most that a network alone can say
    assert error[~has].max() < saturated / 3
    assert error[~has].mean() < 4 * error[has].mean()


def test_the_offset_grows_with_the_link_outside_the_range_alone() -> None:
    bare = Bare.learn(np.array([[1.0], [3.0]]), 0.5)
    assert (bare.center, bare.scale, bare.low, bare.high) == (2.0, 1.0, 0.5, 3.5)
    np.testing.assert_allclose(bare.offset(np.array([0.5, 2.0, 3.5])), 2.0)
    np.testing.assert_allclose(bare.offset(np.array([-1.0, 5.5])), [0.5, 4.0])
    assert bare.outside(np.array([0.0, 2.0, 4.0])).tolist() == [True, False, True]


@pytest.mark.parametrize("shift", [0.0, 40.0])
def test_gradients_are_those_of_the_forecasts(keep, shift) -> None:
    model = fitted(horizon=2)
    rng = np.random.default_rng(0)
    windows = rng.normal(size=(3, 4, 3))
    windows[..., -1] += shift
    learned = model.fitted_.learned
    slope = learned.gradient(windows)  # (K, M, H, T, C)
    for place in [(0, 0), (3, 1), (3, 2)]:
        up, down = windows.copy(), windows.copy()
        up[(slice(None), *place)] += 1e-2
        down[(slice(None), *place)] -= 1e-2
        after, before = (learned.predict(Windows.of(one)).members for one in (up, down))
        rise = (after - before) / 2e-2
        np.testing.assert_allclose(slope[(..., *place)], rise, atol=2e-3)


def test_contributions_add_up(several) -> None:
    model = several
    explanation = model.explain(table(), effort="quick")
    total = explanation.contribution.sum(axis=1) + explanation.background[0]
    frame = model.predict(table()).to_frame().set_index("origin")["mean"]
    shared = total.index.intersection(frame.index)
    assert len(shared) > 5
    np.testing.assert_allclose(total[shared], frame[shared], atol=1e-3)
    assert np.allclose(explanation.prior.sum(axis=1), 1.0)
    assert np.allclose(explanation.posterior.sum(axis=1), 1.0)


# ------------------------------------------------------------------------ kept, resumed, brought on


@pytest.mark.parametrize("case", ["several", "replaced"])
def test_a_saved_model_forecasts_the_same(case, request, tmp_path) -> None:
    model = request.getfixturevalue(case)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(trained(again).kinds, trained(model).kinds)
    assert trained(again).labels.bare == trained(model).labels.bare
    np.testing.assert_array_equal(again.predict(table()).members, model.predict(table()).members)


@pytest.mark.parametrize("refit", ["newest", "full"])
@pytest.mark.parametrize("case", ["several", "replaced"])
def test_all_kinds_are_brought_up_to_date(case, refit, request) -> None:
    request.getfixturevalue("keep" if case == "several" else "drop")
    model = request.getfixturevalue(case)
    model, kinds = model.holding(model.fitted_), trained(model).kinds
    assert (kinds is None) == (case == "replaced")
    longer = pd.concat([table(), table(120, seed=2)], ignore_index=True)
    model.update(longer, refit=refit)
    np.testing.assert_array_equal(trained(model).kinds, kinds)
    record = model.updates_[-1]
    assert record.rmse_after <= record.rmse_before


def test_a_fit_stopped_while_members_are_trained_again_goes_on(
    drop, replaced, tmp_path, monkeypatch
) -> None:
    train = kinds_module.fit_network
    calls = []

    def stops(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(*args)

    with monkeypatch.context() as patch:
        patch.setattr(kinds_module, "fit_network", stops)
        with pytest.raises(KeyboardInterrupt):
            mv.MVLSTM(**SMALL).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    assert (tmp_path / NAME).is_file() and not (tmp_path / AGAIN).is_file()
    resumed = mv.MVLSTM(**SMALL).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    np.testing.assert_array_equal(trained(resumed).flat, trained(replaced).flat)
    assert (tmp_path / AGAIN).is_file()


@pytest.mark.parametrize("kept", [True, False])
def test_a_fit_whose_members_have_all_stopped_can_be_taken_up(tmp_path, monkeypatch, kept) -> None:
    patient = SMALL | {"max_epochs": 60, "patience": 1, "averaging": 0.0, "learning_rate": 0.05}
    monkeypatch.setattr(
        kinds_module, "find_harmful", lambda errors, plain, ensembles: ~plain & (not kept)
    )
    whole = mv.MVLSTM(**patient).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    assert (whole.history_.epochs < 60).all()
    again = mv.MVLSTM(**patient).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    np.testing.assert_array_equal(trained(again).flat, trained(whole).flat)
    np.testing.assert_array_equal(again.history_.lowered, whole.history_.lowered)


def test_another_fit_does_not_overwrite_one_that_is_half_done(
    drop, replaced, tmp_path, monkeypatch
) -> None:
    """Its first training is over and says so; its second is not."""
    run, calls = networks.train, []

    def stops(*args, control, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(*args, control=control, **options)

    with monkeypatch.context() as patch:
        patch.setattr(networks, "train", stops)
        with pytest.raises(KeyboardInterrupt):
            mv.MVLSTM(**SMALL).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    first = (tmp_path / NAME).read_bytes()
    with pytest.raises(ParameterError, match="belongs to another fit"):
        mv.MVLSTM(**SMALL, seed=1).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    assert (tmp_path / NAME).read_bytes() == first
    resumed = mv.MVLSTM(**SMALL).fit(table(), "y", test=0.2, checkpoint=tmp_path)
    np.testing.assert_array_equal(trained(resumed).flat, trained(replaced).flat)
    mv.MVLSTM(**SMALL, seed=1).fit(table(), "y", test=0.2, checkpoint=tmp_path)  # now it may


def test_copies_stand_in_where_there_is_no_time(drop) -> None:
    with pytest.warns(mv.MVLSTMWarning, match="time limit"):
        model = mv.MVLSTM(**SMALL | {"max_epochs": 5000, "patience": 5000}).fit(
            table(), "y", test=0.2, time_limit=1.0
        )
    assert trained(model).kinds.tolist() == [0, 0, Kind.SPARSE, Kind.SPARSE, Kind.SPARSE]
    assert any("copies of members" in note for note in model.history_.notes)
    assert model.history_.seconds <= model.fit_seconds_
    members = model.predict(table()).members
    np.testing.assert_array_equal(members[1], members[0])
    np.testing.assert_array_equal(members[3], members[2])
    assert model.history_.members == 5


def test_a_second_training_without_time_changes_nothing_but_members_without_a_link(
    drop, several, monkeypatch
) -> None:
    after, calls = Run.after, []

    def none_left(run: Run, seconds: float) -> Run:
        calls.append(seconds)  # the last of five is that of the first training
        return replace(run, time_limit=0.0) if len(calls) == 5 else after(run, seconds)

    monkeypatch.setattr(Run, "after", none_left)
    with pytest.warns(mv.MVLSTMWarning, match="time limit"):
        stopped = fitted()
    assert trained(stopped).kinds.tolist() == [0, 0, Kind.SPARSE, Kind.SPARSE, Kind.SPARSE]
    sources = [0, 0, 2, 2, 4]  # of the members, some of which are copies
    np.testing.assert_array_equal(trained(stopped).flat, trained(several).flat[sources])
    np.testing.assert_array_equal(stopped.history_.best_epoch, several.history_.best_epoch[sources])
    assert any("copies of members" in note for note in stopped.history_.notes)


def test_a_second_training_cut_short_replaces_no_better_member(drop, monkeypatch) -> None:
    run, calls = networks.train, []

    def short(network, data, members, config, *, control, **options):
        calls.append(1)
        if len(calls) == 2:  # one epoch, as if time had run out
            state = run(network, data, members, replace(config, max_epochs=1), **options)
            control.stopped = "time limit"
            return state
        return run(network, data, members, config, control=control, **options)

    monkeypatch.setattr(networks, "train", short)
    with pytest.warns(mv.MVLSTMWarning, match="time limit"):
        stopped = fitted(max_epochs=5)
    with monkeypatch.context() as patch:
        patch.setattr(
            kinds_module, "find_harmful", lambda errors, plain, ensembles: np.zeros(5, bool)
        )
        every = fitted(max_epochs=5)
    linked = ~trained(every).is_bare
    assert (stopped.history_.best_rmse[linked] <= every.history_.best_rmse[linked]).all()
    assert stopped.history_.best_rmse.max() <= every.history_.best_rmse[linked].max()
    assert not trained(stopped).is_bare.any()


def test_a_kind_that_no_member_is_is_named(keep, tmp_path) -> None:
    model = fitted(max_epochs=1)
    kinds = trained(model).kinds.copy()
    kinds[2] = 7
    learned = replace(model.fitted_.learned, trained=replace(trained(model), kinds=kinds))
    model.holding(model.fitted_.with_learned(learned)).save(tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match=r"its 'kinds' has a 7"):
        mv.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize("refit", ["newest", "full"])
def test_updates_shrink_the_same_members(keep, several, refit, monkeypatch) -> None:
    given, run = [], further_training.train
    monkeypatch.setattr(
        further_training,
        "train",
        lambda n, data, members, *a, **k: given.extend(members) or run(n, data, members, *a, **k),
    )
    model = several.holding(several.fitted_)
    model.update(pd.concat([table(), table(120, seed=2)], ignore_index=True), refit=refit)
    assert [m.shrinkage > 0 for m in given[:5]] == [k != Kind.PLAIN for k in trained(model).kinds]
    assert [m.variant for m in given[:5]] == [int(k == Kind.BARE) for k in trained(model).kinds]


def test_labels_by_kind_are_what_each_member_learns(keep) -> None:
    model = mv.MVLSTM(**SMALL | {"horizon": 2})
    model, problem = fit_frame(model, build_frame(table(), target="y"), test=0.2, valid=0.1)
    members = replace(trained(model), labels=learn_labels("auto", problem))
    rows = problem.origins["train"]
    by_row = labels_by_row(members.labels, problem)
    guess = members.guess(problem.at("train"))
    scaled = members.scale.outputs(problem.labels("train"), guess)
    for k, bare in enumerate(members.is_bare):
        np.testing.assert_allclose(by_row[int(bare), rows], scaled[k])
    assert abs(scaled[1].mean()) < 1e-9 and abs(scaled[1].std() - 1) < 1e-9
