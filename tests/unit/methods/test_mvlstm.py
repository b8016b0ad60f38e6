"""What MVLSTM promises beyond the contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import mvlstm as mv
from mvlstm.errors import DataError, ParameterError, TrainingError
from mvlstm.nn.recurrence import run_stack

QUICK = {"window": 6, "hidden_size": 4, "members": 2, "max_epochs": 3, "verbose": 0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame = mv.datasets.load("synthetic", n=500).frame[["x2", "x3", "x5", "y"]]
    frame.index = pd.date_range("2024-01-01", periods=len(frame), freq="h")
    return frame


@pytest.fixture(scope="module")
def model(table) -> mv.MVLSTM:
    return mv.MVLSTM(**QUICK).fit(table, target="y", test=0.2)


def test_presets_are_the_papers_settings() -> None:
    paper = mv.MVLSTM.paper(window=10).get_params()
    want = {
        "window": 10,
        "horizon": 1,
        "layers": 1,
        "cell": "lstm",
        "gates": "full",
        "attention": "bounded",
        "head": "mixture",
        "loss": "nll",
        "sigma": 1.0,
        "link": "none",
        "dropout": 0.5,
        "batch_size": 64,
        "members": 10,
        "l2_sum": True,
        "target_scale": "standard",
        "averaging": 0.0,
        "finish": 0.0,
    }
    assert {name: paper[name] for name in want} == want
    assert mv.MVLSTM.indep().gates == "variable"
    assert mv.MVLSTM.fusion().head == "fusion"


def test_attention_that_is_to_be_read_has_no_link_besides() -> None:
    model = mv.MVLSTM.readable(window=7)
    changed = {k: v for k, v in model.get_params().items() if v != mv.MVLSTM().get_params()[k]}
    want = {"link": "none", "isolation": 1e-2, "loss": "mse", "sigma": "calibrated"}
    assert changed == want | {"window": 7}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gates": "fulll"}, "gates='fulll' is not an option; choose 'full' or 'variable'"),
        ({"loss": "mae"}, "loss='mae' is not an option"),
        ({"sigma": -1.0}, "sigma=-1.0 is not an option; choose 'a positive number'"),
        ({"window": 1}, "window=1 must be a whole number, 2 or more"),
        ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
        ({"averaging": 1.0}, "averaging=1.0 must be at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be positive"),
        ({"members": 0}, "members=0 must be a whole number, 1 or more"),
        ({"hidden_size": 2.5}, "hidden_size=2.5 must be a whole number"),
        ({"link": "cubic"}, "link='cubic' is not an option"),
        ({"device": "tpu!"}, "device='tpu!' is not a device"),
    ],
)
def test_bad_settings_are_named_with_what_would_do(table, setting, message) -> None:
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        mv.MVLSTM(**(QUICK | setting)).fit(table, target="y")


def test_without_validation_rows_there_is_nothing_to_stop_on(table) -> None:
    with pytest.raises(ParameterError, match=r"valid=0 leaves no rows"):
        mv.MVLSTM(**QUICK).fit(table, target="y", valid=0)


def test_a_diverging_fit_says_what_to_change(table) -> None:
    with pytest.raises(TrainingError, match=r"learning_rate=1e\+30"):
        mv.MVLSTM(**(QUICK | {"learning_rate": 1e30})).fit(table, target="y")


def test_attention_sums_to_one_and_is_indexed_by_origin(model, table) -> None:
    explanation = model.explain(table, effort="quick")
    for attention in (explanation.prior, explanation.posterior):
        assert list(attention.columns) == list(table.columns)
        np.testing.assert_allclose(attention.sum(axis=1), 1.0)
        assert attention.index.isin(table.index).all()
    importance = explanation.importance.set_index("variable")
    for column in ("prior", "posterior"):
        assert abs(importance[column].sum() - 1.0) < 1e-9
    np.testing.assert_allclose(
        importance["posterior"], explanation.posterior.mean()[importance.index]
    )
    np.testing.assert_allclose(explanation.temporal.sum(axis=1), 1.0)
    assert list(explanation.temporal.columns) == [2, 3, 4, 5, 6]


def test_contributions_add_up_to_the_forecast(model, table) -> None:
    explanation = model.explain(table, effort="quick", contributions=20)
    forecast = pd.concat([model.predict(table).mean, model.forecast(table).mean])
    for origin in explanation.contribution.index:
        point = explanation.at(origin)
        time = origin + pd.Timedelta(hours=1)
        assert abs(point.forecast - forecast[time]) < 1e-3 * table["y"].std()
        total = point.background + point.by_variable["contribution"].sum()
        assert abs(point.forecast - total) < 1e-9
    assert explanation.contribution.index[-1] == table.index[-1]  # the forecast after the last row


def test_a_row_of_the_contributions_names_its_forecast(table) -> None:
    model = mv.MVLSTM(**QUICK, horizon=2).fit(table, target="y", test=0.2)
    explanation = model.explain(table, effort="quick", contributions=2)
    origin, step = row = explanation.contribution.index[-1]
    point = explanation.at(row)
    assert (point.origin, point.step) == (origin, step) == (table.index[-1], 2)
    assert point.forecast == explanation.at(origin, 2).forecast


def test_a_forecast_that_was_not_taken_apart_is_refused(model, table) -> None:
    explanation = model.explain(table, effort="quick", contributions=0)
    with pytest.raises(DataError, match="has no contributions"):
        explanation.at(table.index[-1])
    explanation = model.explain(table, effort="quick", contributions=3)
    with pytest.raises(DataError, match="is not among the 3 forecasts"):
        explanation.at(table.index[0])


def test_response_is_the_change_for_one_standard_deviation(model, table) -> None:
    point = model.explain(table, effort="quick", contributions=2).at(table.index[-1])
    train = table.iloc[: int(0.7 * len(table))]
    raised = table.copy()
    raised.iloc[-6:, 1] += train["x3"].std(ddof=0)
    change = model.forecast(raised).mean.iloc[0] - model.forecast(table).mean.iloc[0]
    assert abs(point.response["x3"] - change) < 1e-4


def test_evaluate_falls_back_on_calibration_rows_and_says_so(table) -> None:
    model = mv.MVLSTM(**QUICK).fit(table, target="y")
    evaluation = model.evaluate(table)
    assert evaluation.part == "calibration"
    assert any("no new rows" in note for note in evaluation.notes)
    with pytest.raises(DataError, match=r"test=0.2"):
        model.evaluate(table.iloc[:300])


def test_link_linear_follows_a_level_never_seen() -> None:
    """A trend leaves the range of the training part; without a link the network cannot follow."""
    rng = np.random.default_rng(0)
    drift = pd.DataFrame({"x": rng.standard_normal(600)})
    drift["y"] = np.arange(600) * 0.05 + 0.1 * rng.standard_normal(600)
    errors = {}
    for link in ("none", "linear"):
        model = mv.MVLSTM(**(QUICK | {"link": link})).fit(drift, target="y", test=0.2)
        errors[link] = model.evaluate(drift).scores.loc["MVLSTM", "rmse"]
    assert errors["linear"] < 0.2
    assert errors["none"] > 5 * errors["linear"]


def test_differencing_is_undone_exactly(table) -> None:
    """With weights of zero the forecast is the baseline: the last value, plus the mean step."""
    walk = table.copy()
    walk["y"] = walk["y"].cumsum()
    model = mv.MVLSTM(**(QUICK | {"difference": "auto", "link": "none", "horizon": 2}))
    model.fit(walk, target="y", test=0.2)
    assert model.fitted_.preparation.orders[-1] == 1
    learned = model.fitted_.learned
    zero = replace(learned.trained, flat=np.zeros_like(learned.trained.flat))
    fitted = model.fitted_.with_learned(replace(learned, trained=zero))
    forecast = model.holding(fitted).predict(walk)
    step = learned.trained.labels.center
    last = walk["y"].loc[forecast.origin].to_numpy()
    np.testing.assert_allclose(forecast.members[0] - last[:, None], step, atol=1e-5)


def test_mixture_of_the_likelihood_has_a_component_per_member_and_variable(table) -> None:
    model = mv.MVLSTM.paper(**(QUICK | {"members": 3})).fit(table, target="y", test=0.2)
    forecast = model.predict(table)
    assert forecast.weights.shape[2] == 3 * 4
    np.testing.assert_allclose(forecast.weights.sum(axis=2), 1.0)
    np.testing.assert_allclose(
        (forecast.weights * forecast.means).sum(axis=2), forecast.members.mean(axis=0), rtol=1e-5
    )


def test_parts_follow_the_times_of_the_fit(model, table) -> None:
    forecast = model.predict(table)
    counts = pd.Series(forecast.part[:, 0]).value_counts()
    assert counts.to_dict() == {"train": 350 - 6, "new": 100, "validation": 50}
    later = table.iloc[-40:]
    assert (model.predict(later).part == "new").all()


def test_members_of_a_larger_ensemble_are_the_same_members(table) -> None:
    few = mv.MVLSTM(**QUICK).fit(table, target="y", test=0.2).predict(table)
    more = mv.MVLSTM(**(QUICK | {"members": 3})).fit(table, target="y", test=0.2).predict(table)
    np.testing.assert_allclose(few.members, more.members[:2], atol=1e-4)


def test_a_predicted_spread_is_wider_where_the_noise_is() -> None:
    rng = np.random.default_rng(0)
    loud = (np.arange(1500) // 25 % 2).astype(float)  # known a step ahead, but at the borders
    noisy = pd.DataFrame({"loud": loud, "y": rng.normal(size=1500) * (0.1 + loud)})
    settings = {"window": 3, "hidden_size": 4, "members": 2, "max_epochs": 15, "verbose": 0}
    now = loud[-400:] > 0
    ratio = {}
    for sigma in ("learned", "predicted"):
        model = mv.MVLSTM(**settings, sigma=sigma, link="none").fit(noisy, "y", test=0.3)
        low, high = model.predict(noisy).interval(0.9)
        width = (high - low).to_numpy()[-400:]
        ratio[sigma] = np.median(width[now]) / np.median(width[~now])
    assert ratio["predicted"] > 1.5 * ratio["learned"]


def test_one_spread_for_all_is_learned_where_there_is_no_mixture(table) -> None:
    for changes in ({"head": "fusion"}, {"loss": "mse"}):
        model = mv.MVLSTM(**QUICK, **changes, sigma="predicted").fit(table, target="y", test=0.2)
        assert np.isfinite(model.evaluate(table).scores.loc["MVLSTM", "crps"])


def test_the_weights_that_read_the_clock_are_penalised(table, tmp_path) -> None:
    times = pd.date_range("2024-01-01", periods=len(table), freq="h", name="time")
    dated = table.set_index(times).assign(wind=np.where(np.arange(len(table)) % 3, "N", "S"))
    small = {"window": 4, "hidden_size": 2, "members": 1, "max_epochs": 1, "verbose": 0}
    model = mv.MVLSTM(**small, calendar=["hour"]).fit(dated, "y", known=dated.columns[0])
    network = model.fitted_.learned.trained.network
    read = [model.fitted_.layout.inputs[column] for column in network.clocks]
    assert read == ["hour sin", "hour cos"] and network.clock_penalty == 3e-3
    model.save(tmp_path / "model.safetensors")
    assert mv.load(tmp_path / "model.safetensors").fitted_.learned.trained.network == network
    assert mv.MVLSTM.paper().clock_penalty == 0


def test_every_expert_is_scored_alone() -> None:
    table = mv.datasets.load("synthetic", n=300).frame
    settings = {"window": 4, "hidden_size": 3, "members": 2, "max_epochs": 1, "verbose": 0}
    model = mv.MVLSTM(**settings).fit(table, "y", test=0.2)
    experts = model.evaluate(table).experts
    assert list(experts["variable"]) == list(table.columns)
    forecast = model.predict(table)
    new = (forecast.part == "new").all(axis=1)
    means = forecast.means[new].reshape(new.sum(), 1, 2, len(table.columns)).mean(axis=2)
    errors = means[:, 0, 3] - forecast.actual[new, 0]
    assert experts["rmse"][3] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert mv.MVLSTM(head="fusion", **settings).fit(table, "y").evaluate(table).experts is None
    assert mv.AR(window=4, verbose=0).fit(table, "y").evaluate(table).experts is None


STEPS: dict[str, Any] = {"window": 9, "horizon": 3, "hidden_size": 3, "members": 2}
STEPS |= {"max_epochs": 2, "verbose": 0, "states": "own"}


@pytest.fixture(scope="module")
def ahead(table) -> mv.MVLSTM:
    """A model whose steps read the state of a known variable, the first column, at their rows."""
    return mv.MVLSTM(**STEPS).fit(table, "y", known=table.columns[0], test=0.2)


def test_each_step_reads_the_state_of_known_variables_at_its_row(ahead) -> None:
    network = ahead.fitted_.learned.trained.network
    assert network.known == (0,)
    generator = torch.Generator().manual_seed(0)
    p = {name: one.unsqueeze(0) for name, one in network.initial(generator).items()}
    assert p["Us"][:, 0].any() and not p["Us"][:, 1:].any()  # at first means alone read the steps
    p["Us"] = torch.randn(p["Us"].shape, generator=generator, dtype=torch.float64)
    x = torch.randn(1, 9, 5, len(network.groups), generator=generator, dtype=torch.float64)
    with_steps, without = network(p, x), replace(network, known=())(p, x)
    h = run_stack(network.stack, p, x)[0, -3:, :, 0]  # (H, B, d) of the known variable
    added = with_steps.mu - without.mu
    expected = torch.einsum("hbd,hd->bh", h, p["Us"][0, 0, :, 0])
    torch.testing.assert_close(added[0, :, :, 0], expected)
    assert not added[..., 1:].any()


def test_what_a_step_reads_of_its_row_comes_from_no_later_row(ahead) -> None:
    network = replace(ahead.fitted_.learned.trained.network, gates="variable")
    generator = torch.Generator().manual_seed(1)
    p = {name: one.unsqueeze(0) for name, one in network.initial(generator).items()}
    p["Wo"] = torch.zeros_like(p["Wo"])
    columns = len(network.groups)
    x = torch.randn(1, 9, 5, columns, generator=generator, dtype=torch.float64).requires_grad_(True)
    mu = network(p, x).mu
    for step in range(3):
        (gradient,) = torch.autograd.grad(mu[:, :, step].sum(), x, retain_graph=True)
        assert gradient[:, 6 + step, :, 0].abs().min() > 0
        assert not gradient[:, 7 + step :].any() and not gradient[..., 1:].any()


def test_steps_of_their_own_change_nothing_where_nothing_is_known_of_them(table) -> None:
    for horizon, known in ((1, table.columns[0]), (3, None)):
        settings = STEPS | {"horizon": horizon}
        every = [
            mv.MVLSTM(**settings | {"states": one}).fit(table, "y", known=known, test=0.2)
            for one in ("own", "shared")
        ]
        np.testing.assert_array_equal(*(one.predict(table).members for one in every))


def test_rows_after_those_that_are_forecast_do_not_move_steps_of_their_own(ahead, table) -> None:
    later = table.copy()
    later.iloc[-50:] += 3.0
    before, after = ahead.predict(table), ahead.predict(later)
    known = len(before) - 50  # forecasts whose last step is before the change
    np.testing.assert_array_equal(before.members[:, :known], after.members[:, :known])
    assert (before.members[:, known] != after.members[:, known]).any()


def test_a_file_keeps_steps_of_their_own(ahead, table, tmp_path) -> None:
    ahead.save(tmp_path / "model.safetensors")
    again = mv.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(table).members, ahead.predict(table).members)


def test_steps_of_their_own_need_experts(table) -> None:
    with pytest.raises(ParameterError, match="head='mixture' or states='shared'"):
        mv.MVLSTM(**STEPS, head="fusion").fit(table, "y", known=table.columns[0])
