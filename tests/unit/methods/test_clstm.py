"""CLSTM: exact zeros, the choice of variables and penalty, its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import ParameterError
from mvlstm.methods import clstm
from mvlstm.methods.network import base
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.nn.lstm import LSTMNetwork, every_step_loss, input_membership
from mvlstm.train.sparse import Groups, SparseConfig, sparse_path

from .learned import own_importance

SMALL = {"window": 3, "hidden_size": 6, "members": 2, "max_epochs": 3, "verbose": 0}
TRAINED = {"max_epochs": 25, "batch_size": 64, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def easy():
    """Four noises of which "b" drives y at once."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(800, 4))
    y = np.zeros(800)
    for t in range(1, 800):
        y[t] = 0.5 * y[t - 1] + values[t - 1, 1] + 0.3 * rng.normal()
    return pd.DataFrame(values, columns=list("abcd")).assign(y=y)


@pytest.fixture(scope="module")
def model(easy):
    return mv.CLSTM(**(SMALL | TRAINED), penalties=[3e-1, 3.0, 3e-2]).fit(
        easy, target="y", test=0.2
    )


def test_it_selects_the_driver_with_exact_zeros(model) -> None:
    assert set(model.selected_) == {"b", "y"}
    importance = own_importance(model)
    assert (importance[[0, 2, 3]] == 0).all()
    assert np.isclose(importance.sum(), 1)


def test_the_path_goes_from_nothing_to_more(model) -> None:
    path = model.path_
    assert list(path.index) == [3.0, 3e-1, 3e-2]  # from large to small
    assert (path.loc[3.0, list("abcdy")] == 0).all()
    assert model.penalty_ == 3e-1
    assert path.loc[3e-1, "refit RMSE"] < 0.6 * path.loc[3.0, "refit RMSE"]


def test_forecasts_ignore_what_was_left_out(easy, model) -> None:
    changed = easy.assign(a=0.0, c=easy["d"], d=easy["c"])
    assert model.predict(easy).mean.equals(model.predict(changed).mean)


def test_save_and_load(easy, model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(easy).means, model.predict(easy).means)
    assert again.selected_ == model.selected_
    pd.testing.assert_frame_equal(again.path_, model.path_)


def test_shrinking_is_the_proximal_step() -> None:
    membership = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 0]])
    groups = Groups(membership)
    flat = torch.tensor([[3.0, 4.0, 0.5, 7.0]])
    shrunk = groups.shrink(flat, torch.tensor([[1.0, 0.6]]))
    torch.testing.assert_close(shrunk, torch.tensor([[2.4, 3.2, 0.0, 7.0]]))
    assert shrunk[0, 2] == 0
    assert groups.shrink(shrunk, torch.tensor([[0.0, 0.0]])).equal(shrunk)


def test_a_sparse_path_finds_the_minimum_of_its_objective() -> None:
    """On a quadratic the group lasso has a closed form: shrink the optimum towards zero."""
    optimum = torch.tensor([3.0, 4.0, 0.3, 0.4, 2.0])
    membership = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1], [0, 0]])
    penalties = torch.tensor([1.0, 0.2])
    found = sparse_path(
        lambda flat, origins: 0.5 * (flat - optimum).square().sum(dim=1),
        torch.ones(1, 5),
        Groups(membership),
        torch.arange(10),
        penalties,
        seed=0,
        config=SparseConfig(learning_rate=0.02, decay=0.0, warm_steps=5, steps=300),
    )
    expected = torch.tensor([[2.4, 3.2, 0.0, 0.0, 2.0], [2.88, 3.84, 0.18, 0.24, 2.0]])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)
    assert (found[0, 2:4] == 0).all()


def test_membership_covers_every_input_weight() -> None:
    network = LSTMNetwork(4, 5)
    membership = input_membership(network, (0, 1, 1, 2))
    assert membership.sum(dim=0).tolist() == [4 * 5, 2 * 4 * 5, 4 * 5]
    flat = torch.randn(1, len(membership)) * (1 - membership[:, 1])  # variable 1 weighs nothing
    from mvlstm.nn.parameters import unflatten

    x = torch.randn(1, 3, 2, 4)
    changed = x.clone()
    changed[..., 1:3] += 1
    p = unflatten(flat, network.shapes)
    assert torch.equal(network(p, x).mean, network(p, changed).mean)


def test_unknown_labels_are_left_out_of_the_loss() -> None:
    network = LSTMNetwork(2, 3)
    draw = network.initial(torch.Generator().manual_seed(0))
    p = {name: w.unsqueeze(0).requires_grad_(True) for name, w in draw.items()}
    x, y = torch.randn(1, 4, 5, 2).double(), torch.randn(1, 4, 5, 1).double()
    y[0, 0] = torch.nan
    loss = every_step_loss(network, p, x, y)
    states = network.states(p, x)
    residual = (states @ p["wo"].transpose(1, 2).unsqueeze(1) + p["bo"] - y)[:, 1:]
    torch.testing.assert_close(loss[0], residual.square().mean())
    gradients = torch.autograd.grad(loss.sum(), list(p.values()))
    assert all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("settings", [{"window": 2}, {"horizon": 2, "link": "linear"}])
def test_short_windows_links_and_horizons(easy, settings: dict) -> None:
    small = SMALL | {"penalties": [0.1], "max_epochs": 1} | settings
    model = mv.CLSTM(**small).fit(easy[:300], target="y")
    assert np.isfinite(model.predict(easy).mean).all()


def test_a_path_that_selects_nothing_still_forecasts(easy) -> None:
    model = mv.CLSTM(**SMALL, penalties=[100.0]).fit(easy[:300], target="y")
    assert model.selected_ == ()
    assert np.isnan(own_importance(model)).all()
    assert np.isfinite(model.predict(easy).mean).all()


def test_bad_penalties_are_refused(easy) -> None:
    with pytest.raises(mv.errors.ParameterError, match=r"penalties=.*none negative"):
        mv.CLSTM(penalties=[-1.0]).fit(easy, target="y")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_selects_the_true_drivers_of_the_synthetic_series(seed: int) -> None:
    table = mv.datasets.load("synthetic", n=10_000, seed=seed).frame
    model = mv.CLSTM(window=10, members=3, verbose=0).fit(table, target="y", test=0.2)
    chosen = set(model.selected_) - {"y"}
    assert {"x2", "x3"} <= chosen
    assert len(chosen) <= 3
    weights = dict(zip(table.columns, own_importance(model), strict=True))
    assert all(weights[name] == 0 for name in table.columns if name not in model.selected_)
    scores = model.evaluate(table).scores
    assert scores.loc["CLSTM", "rmse"] < scores.loc["persistence", "rmse"]


def test_the_refits_that_choose_leave_the_checkpoint_to_the_members(easy, tmp_path: Path) -> None:
    settings = SMALL | {"penalties": [3e-1, 3e-2]}
    plain = mv.CLSTM(**settings).fit(easy, target="y", test=0.2)
    kept = mv.CLSTM(**settings).fit(easy, target="y", test=0.2, checkpoint=tmp_path)
    pd.testing.assert_frame_equal(kept.path_, plain.path_)
    np.testing.assert_array_equal(kept.predict(easy).members, plain.predict(easy).members)


def test_a_time_limit_is_shared_by_the_refits_and_the_members(easy, monkeypatch) -> None:
    shares = []
    fit = clstm.fit_network

    def watched(network, problem, *rest):
        shares.append(problem.run.time_limit)
        return fit(network, problem, *rest)

    for module in (clstm, base):  # of the refits, of the members
        monkeypatch.setattr(module, "fit_network", watched)
    model = mv.CLSTM(**SMALL, penalties=[3e-1, 3e-2])
    model.fit(easy, target="y", test=0.2, time_limit=600)
    *refits, members = shares
    assert len(refits) > 1
    assert all(share < 600 / 2 for share in refits)
    assert 300 < members < 600


def test_one_row_is_enough_to_stop_on(easy) -> None:
    model = mv.CLSTM(**SMALL, penalties=[3e-1, 3e-2]).fit(easy, target="y", test=0.2, valid=2)
    assert np.isfinite(model.predict(easy).members).all()


def test_training_with_penalties_keeps_to_a_time_limit(easy) -> None:
    model = mv.CLSTM(**SMALL, penalties=[3e-1, 3e-2])
    with pytest.warns(mv.MVLSTMWarning) as caught:
        model.fit(easy, target="y", test=0.2, time_limit=1e-3)
    cut, stopped = (str(one.message) for one in caught)
    assert "cut training with penalties short" in cut and "at its time limit" in stopped
    assert (model.path_[list("abcdy")] > 0).all(
        axis=None
    )  # no step was taken that could have left one out


def test_an_interrupted_choice_ends_the_fit(easy, monkeypatch) -> None:
    fit = clstm.fit_network
    monkeypatch.setattr(
        clstm, "fit_network", lambda *args: fit(*args)._replace(stopped="interrupt")
    )
    with pytest.raises(KeyboardInterrupt):
        mv.CLSTM(**SMALL, penalties=[3e-1, 3e-2]).fit(easy, target="y", test=0.2)


def test_the_choice_is_judged_by_a_link_that_has_not_seen_its_rows(easy) -> None:
    settings = SMALL | {"members": 1, "link": "linear", "penalties": np.array([3e-1])}
    model = mv.CLSTM(**settings).fit(easy, target="y", test=0.2)
    # the member that is kept is trained as the refit was: its own validation error is the refit's
    assert model.path_["refit RMSE"].iloc[0] == pytest.approx(model.history_.best_rmse[0], rel=1e-4)


def test_a_state_of_other_variables_is_not_gone_on_with(easy, tmp_path: Path, monkeypatch) -> None:
    settings = SMALL | {"penalties": [3e-1]}

    def chosen(names: str):
        norms = np.array([[float(name in names) for name in "abcdy"]])
        return lambda self, problem, labels, penalties: norms

    with monkeypatch.context() as patch, pytest.warns(mv.MVLSTMWarning, match="time limit"):
        patch.setattr(mv.CLSTM, "_norms", chosen("by"))
        mv.CLSTM(**settings).fit(easy, "y", test=0.2, checkpoint=tmp_path, time_limit=0.001)
    monkeypatch.setattr(mv.CLSTM, "_norms", chosen("ay"))
    with pytest.raises(ParameterError, match="another fit: it was made with columns="):
        mv.CLSTM(**settings).fit(easy, "y", test=0.2, checkpoint=tmp_path)


@pytest.mark.parametrize(("tolerance", "place"), [(0.0, 2), (1.0, 1), (50.0, 0)])
def test_tolerance_says_how_much_worse_fewer_variables_may_be(
    easy, monkeypatch, tolerance, place
) -> None:
    """Refits of three choices are made up: the fewer the variables, the larger the error."""
    extra = {1: 3.0, 2: 0.01, 3: 0.0}

    def made_up(self, *_) -> np.ndarray:
        return np.array([[0, 0, 1.0], [0, 1, 1.0], [1, 1, 1.0]])

    fit = clstm.fit_network

    def refitted(network, problem, labels, training):
        outcome = fit(network, problem, labels, training)
        errors = np.random.default_rng(0).normal(size=problem.labels("stop").shape)
        worse = errors + np.sign(errors) * extra[len(network.columns)]

        class Known(TrainedNetwork):
            def rows(self, table, ends):
                return (problem.labels("stop") + worse)[None]

        return outcome._replace(trained=Known(**vars(outcome.trained)))

    monkeypatch.setattr(mv.CLSTM, "_norms", made_up)
    monkeypatch.setattr(clstm, "fit_network", refitted)
    model = mv.CLSTM(**(SMALL | {"max_epochs": 1, "members": 2}), tolerance=tolerance)
    penalties = [1.0, 0.1, 0.01]
    model.set_params(penalties=penalties).fit(easy[["a", "b", "y"]][:300], target="y")
    assert model.penalty_ == penalties[place]


def test_a_bad_tolerance_is_refused(easy) -> None:
    with pytest.raises(ParameterError, match=r"tolerance=-1 must be a number"):
        mv.CLSTM(tolerance=-1).fit(easy, target="y")
