"""The plain LSTM: equal to PyTorch's, and a forecaster like the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import mvlstm as mv
from mvlstm.nn.lstm import LSTMNetwork
from mvlstm.nn.parameters import flatten, unflatten
from oracles.standard_cell import assemble

SMALL = {"window": 5, "hidden_size": 6, "members": 2, "max_epochs": 2, "verbose": 0}


@pytest.fixture(scope="module")
def table():
    return mv.datasets.load("synthetic", n=500).frame


@pytest.mark.parametrize("layers", [1, 2])
def test_the_network_is_torchs_lstm(layers: int) -> None:
    network = LSTMNetwork(4, 6, layers, horizon=2)
    draws = [network.initial(torch.Generator().manual_seed(k)) for k in range(2)]
    p = {name: torch.stack([draw[name] for draw in draws]) for name in network.shapes}
    p = {name: w + 0.1 * torch.randn_like(w) for name, w in p.items()}
    x = torch.randn(2, 7, 5, 4, dtype=torch.float64)
    mean = network(p, x).mean
    for k in range(2):
        oracle = torch.nn.LSTM(4, 6, num_layers=layers).double()
        for level, layer in enumerate(network.stack):
            own = {name: p[f"{name}_{level}"][k : k + 1] for name in layer.shapes}
            for name, w in zip(
                ("weight_ih", "weight_hh", "bias_ih", "bias_hh"),
                assemble(layer, own),
                strict=True,
            ):
                getattr(oracle, f"{name}_l{level}").data.copy_(w[0])
        last = oracle(x[k])[0][-1]  # (B, hidden)
        expected = last @ p["wo"][k].T + p["bo"][k]
        torch.testing.assert_close(mean[k], expected, rtol=0, atol=1e-10)


def test_columns_leave_the_others_out() -> None:
    network = LSTMNetwork(4, 6, columns=(0, 3))
    draw = network.initial(torch.Generator().manual_seed(0))
    p = {name: w.unsqueeze(0) for name, w in draw.items()}
    x = torch.randn(1, 5, 3, 4, dtype=torch.float64)
    changed = x.clone()
    changed[..., 1:3] += 1.0
    assert torch.equal(network(p, x).mean, network(p, changed).mean)
    changed[..., 3] += 1.0
    assert not torch.equal(network(p, x).mean, network(p, changed).mean)


@pytest.mark.parametrize(
    "settings", [{}, {"loss": "nll", "link": "none"}, {"layers": 2, "horizon": 3}, {"window": 2}]
)
def test_fit_predict_save_load(table, settings: dict, tmp_path: Path) -> None:
    model = mv.LSTM(**(SMALL | settings)).fit(table, target="y", test=0.2)
    forecast = model.predict(table)
    assert forecast.members.shape == (2, 500 - model.window - model.horizon + 1, model.horizon)
    model.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors").predict(table)
    np.testing.assert_array_equal(again.means, forecast.means)
    np.testing.assert_array_equal(again.variances, forecast.variances)


def test_a_learned_normal_has_its_own_variance(table) -> None:
    model = mv.LSTM(**SMALL, loss="nll", link="none").fit(table, target="y")
    sigma2 = (
        np.exp(model.fitted_.learned.trained.parameter("log_sigma2"))
        * model.fitted_.learned.trained.labels.scale**2
    )
    variances = model.predict(table).variances[0, 0] / model.fitted_.calibration.factors
    np.testing.assert_allclose(variances, sigma2[:, 0], rtol=1e-6)


@pytest.mark.parametrize("name", ["LSTM", "DUAL", "RETAIN"])
def test_a_member_does_not_depend_on_its_neighbours(table, name: str) -> None:
    alone, beside = (
        getattr(mv, name)(**(SMALL | {"members": members, "link": "none"})).fit(table, target="y")
        for members in (1, 3)
    )
    np.testing.assert_array_equal(
        alone.fitted_.learned.trained.flat[0], beside.fitted_.learned.trained.flat[0]
    )
    assert not np.array_equal(
        beside.fitted_.learned.trained.flat[0], beside.fitted_.learned.trained.flat[1]
    )


def test_unknown_options_are_named(table) -> None:
    with pytest.raises(mv.errors.ParameterError, match=r"loss='huber'.*'mse', 'nll' or 'nll\+mse'"):
        mv.LSTM(loss="huber").fit(table, target="y")  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["LSTM", "DUAL", "RETAIN", "CLSTM"])
def test_cuda_gives_what_the_cpu_gives(table, name: str, tmp_path: Path) -> None:
    settings = SMALL | {"dropout": 0.2}
    if name == "CLSTM":
        settings["penalties"] = [0.1]
    cpu, cuda = (
        getattr(mv, name)(**settings, device=device).fit(table, target="y", test=0.2)
        for device in ("cpu", "cuda")
    )
    assert cuda.device_ == "cuda"
    near = {"rtol": 0, "atol": 0.05 * table["y"].std()}
    np.testing.assert_allclose(cuda.predict(table).members, cpu.predict(table).members, **near)
    cuda.save(tmp_path / "m.safetensors")
    again = mv.load(tmp_path / "m.safetensors").predict(table)
    np.testing.assert_allclose(again.members, cuda.predict(table).members, rtol=1e-6)


def test_flatten_and_unflatten_are_inverse_for_the_networks() -> None:
    network = LSTMNetwork(3, 4, 2)
    draw = network.initial(torch.Generator().manual_seed(0))
    flat = flatten({name: w.unsqueeze(0) for name, w in draw.items()}, network.shapes)
    for name, w in unflatten(flat, network.shapes).items():
        assert torch.equal(w[0], draw[name])
