"""The network against the paper's equations, and facts that follow from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mvlstm.explain.attention import posterior
from mvlstm.nn.dual import DUALNetwork
from mvlstm.nn.lstm import LSTMNetwork
from mvlstm.nn.mixture import Prediction, mixture_nll
from mvlstm.nn.mvlstm import MVLSTMNetwork, leakage
from mvlstm.nn.parameters import count, flatten, unflatten
from mvlstm.nn.retain import RETAINNetwork
from mvlstm.train.protocol import Network
from oracles import numpy_paper
from oracles.numpy_paper import forward, nll


def random_parameters(network: Network, members: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (members, count(network.shapes))
    return torch.randn(shape, generator=generator, dtype=torch.float64) * 0.4


def windows(members: int, T: int, B: int, C: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((members, T, B, C), generator=generator, dtype=torch.float64)


def posterior_of(prediction: Prediction, y: torch.Tensor) -> np.ndarray:
    sigma2 = prediction.log_sigma2.exp()[:, None, :, None]
    return posterior(prediction.log_prior.detach(), prediction.mu.detach(), y, sigma2)


def one_member(network: MVLSTMNetwork, flat: torch.Tensor, k: int) -> dict[str, np.ndarray]:
    p = {
        name.removesuffix("_0"): value[k].numpy()
        for name, value in unflatten(flat, network.shapes).items()
    }
    p["Wo"], p["bo"], p["Wv"] = p["Wo"][0], p["bo"][0], p["Wv"][0]  # one step ahead
    p["bv"] = p["bv"][0]
    return p


@pytest.fixture(scope="module")
def paper() -> tuple[MVLSTMNetwork, torch.Tensor, torch.Tensor, Prediction]:
    network = MVLSTMNetwork(groups=(0, 1, 2), n_variables=3, hidden_size=4)
    flat, x = random_parameters(network, 2), windows(2, 6, 5, 3)
    return network, flat, x, network(unflatten(flat, network.shapes), x)


def test_forward_loss_posterior_importance_equal_the_numpy_paper(paper) -> None:
    network, flat, x, prediction = paper
    y = torch.linspace(-2, 2, 10, dtype=torch.float64).view(2, 5, 1)
    ours_nll = mixture_nll(prediction, y)
    ours_q = posterior_of(prediction, y)
    for k in range(2):
        p = one_member(network, flat, k)
        posteriors = []
        for b in range(5):
            want = forward(p, x[k, :, b].numpy())
            label = float(y[k, b, 0])
            np.testing.assert_allclose(prediction.mu[k, b, 0], want["mu"], atol=1e-12)
            np.testing.assert_allclose(
                prediction.log_prior[k, b, 0].exp(), want["prior"], atol=1e-12
            )
            np.testing.assert_allclose(prediction.temporal[k, b], want["temporal"], atol=1e-12)
            np.testing.assert_allclose(prediction.mean[k, b, 0], want["mean"], atol=1e-12)
            np.testing.assert_allclose(
                ours_nll[k, b, 0], nll(want["prior"], want["mu"], label), atol=1e-10
            )
            posteriors.append(numpy_paper.posterior(want["prior"], want["mu"], label))
            np.testing.assert_allclose(ours_q[k, b, 0], posteriors[-1], atol=1e-10)
        np.testing.assert_allclose(
            ours_q[k, :, 0].mean(axis=0), np.mean(posteriors, axis=0), atol=1e-10
        )


def test_training_loss_is_the_mean_over_windows(paper) -> None:
    network, _, _, prediction = paper
    y = torch.ones(2, 5, 1, dtype=torch.float64)
    want = mixture_nll(prediction, y).mean(dim=(1, 2))
    torch.testing.assert_close(network.loss(prediction, y), want)


@pytest.mark.parametrize(
    "network",
    [
        MVLSTMNetwork((0, 1, 2), 3, 4, horizon=2, loss_name="nll+mse"),
        MVLSTMNetwork((0, 1, 2), 3, 4, horizon=2, head="fusion"),
        LSTMNetwork(3, 4, horizon=2, loss_name="nll+mse"),
        DUALNetwork(3, 5, 4, horizon=2),
        RETAINNetwork(3, 4, horizon=2),
    ],
)
def test_labels_that_are_not_known_add_nothing_to_the_loss(network) -> None:
    flat = random_parameters(network, 2).requires_grad_(True)
    y = windows(2, 6, 2, 1)[..., 0]  # (K, B, H)
    known = torch.ones_like(y, dtype=torch.bool)
    known[0, :, 1], known[1, 0] = False, False

    def losses(y: torch.Tensor, known: torch.Tensor | None) -> list[torch.Tensor]:
        prediction = network(unflatten(flat, network.shapes), windows(2, 5, 6, 3))
        loss = network.loss(prediction, y) if known is None else network.loss(prediction, y, known)
        return [loss.detach(), *torch.autograd.grad(loss.sum(), flat)]

    for plain, same in zip(losses(y, None), losses(y, torch.ones_like(known)), strict=True):
        assert torch.equal(plain, same)
    found, other = losses(y, known), losses(torch.where(known, y, 50.0), known)
    for one, same in zip(found, other, strict=True):
        assert torch.equal(one, same)


def test_number_of_parameters_is_the_papers() -> None:
    for N, d in ((3, 4), (7, 15), (14, 20)):
        D = N * d
        want = N * (d + d * d + d) + 3 * D * (N + D) + 3 * D + N * (d + 1) + N * (2 * d + 1)
        network = MVLSTMNetwork(groups=tuple(range(N)), n_variables=N, hidden_size=d)
        assert count(network.shapes) == want + 2 * d + 1
    indep = MVLSTMNetwork(groups=tuple(range(N)), n_variables=N, hidden_size=d, gates="variable")
    cell = sum(math.prod(s) for name, s in indep.shapes.items() if name.endswith("_0"))
    assert cell == N * 4 * (d + d * d + d)


@pytest.mark.parametrize("N", [2, 7, 14])
def test_bounded_prior_stays_within_its_bounds(N: int) -> None:
    network = MVLSTMNetwork(groups=tuple(range(N)), n_variables=N, hidden_size=3)
    flat = random_parameters(network, 1) * 50  # scores far into tanh's ends
    prior = network(unflatten(flat, network.shapes), windows(1, 4, 64, N)).log_prior.exp()
    low, high = 1 / (1 + (N - 1) * math.e**2), math.e**2 / (math.e**2 + N - 1)
    assert prior.min() >= low - 1e-12
    assert prior.max() <= high + 1e-12
    torch.testing.assert_close(prior.sum(-1), torch.ones(1, 64, 1, dtype=torch.float64))


def test_free_prior_may_leave_the_bounds() -> None:
    network = MVLSTMNetwork((0, 1), 2, 3, attention="free")
    flat = random_parameters(network, 1) * 50
    prior = network(unflatten(flat, network.shapes), windows(1, 4, 64, 2)).log_prior.exp()
    assert prior.max() > math.e**2 / (math.e**2 + 1) + 0.05


def test_temporal_weights_sum_to_one_and_stay_soft(paper) -> None:
    weights = paper[3].temporal
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5, 3, dtype=torch.float64))
    assert (weights.amax(-1) / weights.amin(-1)).max() <= math.e**2 + 1e-9


def test_nll_is_finite_for_huge_residuals_in_float32(paper) -> None:
    network, flat, x, _ = paper
    prediction = network(unflatten(flat.float(), network.shapes), x.float())
    y = torch.full((2, 5, 1), 1e4)
    assert torch.isfinite(mixture_nll(prediction, y)).all()
    np.testing.assert_allclose(posterior_of(prediction, y).sum(-1), np.ones((2, 5, 1)))


def test_gradients_of_the_nll_are_those_of_the_posterior() -> None:
    generator = torch.Generator().manual_seed(3)
    mu = torch.randn((1, 4, 1, 5), generator=generator, dtype=torch.float64, requires_grad=True)
    s = torch.randn((1, 4, 1, 5), generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.randn((1, 4, 1), generator=generator, dtype=torch.float64)
    log_sigma2 = torch.full((1, 1), math.log(0.7), dtype=torch.float64)
    prediction = Prediction(y, log_sigma2, mu, torch.log_softmax(s, -1))
    d_mu, d_s = torch.autograd.grad(mixture_nll(prediction, y).sum(), (mu, s))
    q = torch.from_numpy(posterior_of(prediction, y))
    torch.testing.assert_close(d_mu, q * (mu - y.unsqueeze(-1)).detach() / 0.7)
    torch.testing.assert_close(d_s, torch.softmax(s, -1).detach() - q)


@pytest.mark.parametrize("gates", ["full", "variable"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_permuting_variables_with_their_parameters_permutes_the_outputs(cell, gates) -> None:
    N, d = 3, 2
    network = MVLSTMNetwork(tuple(range(N)), N, d, cell=cell, gates=gates)
    p = unflatten(random_parameters(network, 1), network.shapes)
    order = torch.tensor([2, 0, 1])
    units = (order.unsqueeze(1) * d + torch.arange(d)).flatten()
    G, D = network.stack[0].n_gates, N * d
    q = dict(p)
    for name in ("Wx_0", "Wh_0", "bj_0", "bh_0", "Gx_0", "Gh_0", "Ws", "bs"):
        if name in p:
            q[name] = p[name][:, order]
    q["Wo"], q["bo"] = p["Wo"][:, :, order], p["bo"][:, :, order]
    q["b_0"] = p["b_0"].view(1, G, D)[:, :, units].reshape(1, -1)
    if gates == "full":
        W = p["W_0"].view(1, G, D, N + D)[:, :, units]
        columns = torch.cat([order, N + units])
        q["W_0"] = W[..., columns].reshape(1, G * D, N + D)
    x = windows(1, 5, 4, N)
    plain, permuted = network(p, x), network(q, x[..., order])
    torch.testing.assert_close(permuted.mean, plain.mean)
    torch.testing.assert_close(permuted.mu, plain.mu[..., order])
    torch.testing.assert_close(permuted.log_prior, plain.log_prior[..., order])


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_leakage_is_diagonal_with_variable_gates_and_not_with_full_ones(cell, layers) -> None:
    matrices = {}
    for gates in ("variable", "full"):
        network = MVLSTMNetwork((0, 1, 2), 3, 3, layers=layers, cell=cell, gates=gates)
        flat, x = random_parameters(network, 2), windows(2, 4, 6, 3)
        matrices[gates] = leakage(network, flat, x)
    np.testing.assert_array_equal(matrices["variable"], np.eye(3))
    off = matrices["full"][~np.eye(3, dtype=bool)]
    assert off.min() > 0.01
    np.testing.assert_allclose(matrices["full"].sum(axis=1), 1.0)


@pytest.mark.parametrize("horizon", [2, 6, 9])
def test_leakage_of_several_steps_is_the_mean_of_each_steps_norms(horizon: int) -> None:
    """Gradients of steps ahead may cancel, norms do not."""
    network, one = (MVLSTMNetwork((0, 1, 1), 2, 3, horizon=h) for h in (horizon, 1))
    p, x = unflatten(random_parameters(network, 2), network.shapes), windows(2, 4, 60, 3)
    if horizon == 2:
        p["Wo"][:, 1] = -p["Wo"][:, 0]
    prediction = network(p, x.requires_grad_(True))
    assert prediction.mu is not None
    norms = np.zeros((2, 2))
    for h in range(horizon):
        for n in range(2):
            (slope,) = torch.autograd.grad(prediction.mu[..., h, n].sum(), x, retain_graph=True)
            squares = slope.square().sum(dim=1)
            each = [squares[..., 0].sqrt(), squares[..., 1:].sum(dim=-1).sqrt()]
            norms[n] += [float(norm.mean()) for norm in each]
    want = norms / norms.sum(axis=1, keepdims=True)
    found = leakage(network, flatten(p, network.shapes), x)
    np.testing.assert_allclose(found, want, rtol=1e-9 if horizon <= 6 else 0.05)
    if horizon == 2:
        first = {**p, **{name: p[name][:, :1] for name in ("Wo", "bo", "Wv", "bv")}}
        np.testing.assert_allclose(found, leakage(one, flatten(first, one.shapes), x))


def test_fusion_blends_states_and_has_no_components() -> None:
    network = MVLSTMNetwork((0, 1), 2, 3, head="fusion")
    p = unflatten(random_parameters(network, 1), network.shapes)
    prediction = network(p, windows(1, 4, 5, 2))
    assert prediction.mu is None
    y = torch.zeros(1, 5, 1, dtype=torch.float64)
    want = 0.5 * (prediction.mean.square().mean(dim=(1, 2)) + math.log(2 * math.pi))
    torch.testing.assert_close(network.loss(prediction, y), want)


def test_each_step_ahead_has_its_own_head() -> None:
    many = MVLSTMNetwork((0, 1), 2, 3, horizon=3)
    p = unflatten(random_parameters(many, 1), many.shapes)
    x = windows(1, 4, 5, 2)
    prediction = many(p, x)
    one = MVLSTMNetwork((0, 1), 2, 3)
    for h in range(3):
        q = {**p, **{name: p[name][:, h : h + 1] for name in ("Wo", "bo", "Wv", "bv")}}
        torch.testing.assert_close(one(q, x).mean[..., 0], prediction.mean[..., h])


def test_a_variable_of_several_columns_equals_its_sum() -> None:
    """Two columns with equal weights act as one column that holds their sum."""
    wide = MVLSTMNetwork((0, 0, 1), 2, 3)
    thin = MVLSTMNetwork((0, 1), 2, 3)
    p = unflatten(random_parameters(thin, 1), thin.shapes)
    q = dict(p)
    q["Wx_0"] = p["Wx_0"][:, [0, 0, 1]]
    q["W_0"] = torch.cat([p["W_0"][..., [0, 0, 1]], p["W_0"][..., 2:]], dim=-1)
    x = windows(1, 4, 5, 3)
    summed = torch.stack([x[..., 0] + x[..., 1], x[..., 2]], dim=-1)
    torch.testing.assert_close(wide(q, x).mean, thin(p, summed).mean)


def test_flatten_inverts_unflatten(paper) -> None:
    network, flat, _, _ = paper
    torch.testing.assert_close(flatten(unflatten(flat, network.shapes), network.shapes), flat)


def test_window_of_two_is_enough() -> None:
    network = MVLSTMNetwork((0, 1), 2, 3)
    p = unflatten(random_parameters(network, 1), network.shapes)
    prediction = network(p, windows(1, 2, 5, 2))
    torch.testing.assert_close(prediction.temporal, torch.ones(1, 5, 2, 1, dtype=torch.float64))
