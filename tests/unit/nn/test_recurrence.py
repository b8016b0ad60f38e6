"""Every path of the recurrence and of temporal attention means what the reference means."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from mvlstm.nn.attention import temporal_attention
from mvlstm.nn.backends import loops
from mvlstm.nn.backends.packed import batched_recurrence, packing
from mvlstm.nn.cell import Layer
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import Parameters, count, unflatten
from mvlstm.nn.recurrence import recurrence
from oracles.equations import reference_attention, reference_recurrence
from oracles.standard_cell import assemble

Path = Callable[[Layer, Parameters, Tensor], Tensor]
CELLS, GATES = ("lstm", "gru"), ("full", "variable")
BOTH = list(product(CELLS, GATES))
GROUPS = {"one column each": (0, 1, 2), "several columns": (0, 0, 2, 1, 2)}
gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def draw(
    layer: Layer, K: int = 2, T: int = 5, B: int = 6, scale: float = 0.4
) -> tuple[Parameters, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return values.requires_grad_(True)

    p = {name: (scale * normal(K, *shape)).detach() for name, shape in layer.shapes.items()}
    return {k: v.requires_grad_(True) for k, v in p.items()}, normal(K, T, B, layer.n_columns)


def outcome(path: Path, layer: Layer, p: Parameters, x: Tensor) -> list[Tensor]:
    """States and the gradients of a fixed function of them."""
    h = path(layer, p, x)
    weights = torch.linspace(-1, 1, h.numel(), dtype=h.dtype, device=h.device).view_as(h)
    return [h, *torch.autograd.grad((h.sin() * weights).sum(), [*p.values(), x])]


@pytest.mark.parametrize("path", [recurrence, batched_recurrence])
@pytest.mark.parametrize("groups", list(GROUPS.values()), ids=list(GROUPS))
@pytest.mark.parametrize(("cell", "gates"), BOTH)
@pytest.mark.parametrize("members", [1, 3])
def test_paths_equal_the_reference_in_value_and_gradient(path, groups, cell, gates, members):
    layer = Layer(groups, 3, 4, cell, gates)
    p, x = draw(layer, K=members)
    found = outcome(path, layer, p, x)
    for one, other in zip(found, outcome(reference_recurrence, layer, p, x), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("path", [recurrence, batched_recurrence])
@pytest.mark.parametrize(("cell", "gates"), BOTH)
def test_backward_passes_agree_with_finite_differences(path, cell, gates):
    layer = Layer((0, 1, 1), 2, 2, cell, gates)
    p, x = draw(layer, K=2, T=3, B=2)
    names = list(p)

    def run(x: Tensor, *values: Tensor) -> Tensor:
        return path(layer, dict(zip(names, values, strict=True)), x)

    assert torch.autograd.gradcheck(run, (x, *p.values()))


def single(p: Parameters, x: Tensor) -> tuple[Parameters, Tensor]:
    q = {name: w.detach().float().requires_grad_(True) for name, w in p.items()}
    return q, x.detach().float().requires_grad_(True)


@pytest.mark.parametrize("T", [1, 30])
@pytest.mark.parametrize(("cell", "gates"), BOTH)
def test_single_precision_stays_close_to_double(cell, gates, T):
    """Against the reference in float64: states within 2e-6, gradients within 1e-5 of their norm."""
    layer = Layer(tuple(range(6)), 6, 20, cell, gates)
    p, x = draw(layer, 1, T, 64, scale=layer.size**-0.5)
    expected = outcome(reference_recurrence, layer, p, x)
    found = outcome(recurrence, layer, *single(p, x))
    torch.testing.assert_close(found[0].double(), expected[0], rtol=0, atol=2e-6)
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert float((one - other).norm()) <= 1e-5 * float(other.norm())


@pytest.mark.parametrize(("cell", "gates"), BOTH)
def test_without_gradients_the_states_are_the_same(cell, gates):
    layer = Layer((0, 0, 2, 1, 2), 3, 4, cell, gates)
    p, x = single(*draw(layer))
    with torch.no_grad():
        states = recurrence(layer, p, x)
    assert torch.equal(states, recurrence(layer, p, x))


def test_weights_that_need_no_gradient_leave_that_of_the_inputs():
    layer = Layer((0, 1, 2), 3, 4)
    p, x = draw(layer)
    fixed = {name: w.detach() for name, w in p.items()}
    expected = torch.autograd.grad(reference_recurrence(layer, fixed, x).sin().sum(), x)[0]
    found = torch.autograd.grad(recurrence(layer, fixed, x).sin().sum(), x)[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_a_gradient_can_be_asked_for_twice():
    layer = Layer((0, 1, 2), 3, 4)
    p, x = draw(layer, 1)
    h = recurrence(layer, p, x).square().sum()
    first = torch.autograd.grad(h, p["W"], retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(h, p["W"])[0], first)


@pytest.mark.parametrize(("cell", "gates"), BOTH)
def test_loops_mean_the_same_compiled_and_not(cell, gates, monkeypatch):
    layer = Layer((0, 1, 2), 3, 4, cell, gates)
    p, x = single(*draw(layer))
    compiled = outcome(recurrence, layer, p, x)
    monkeypatch.setattr(loops, "loops", lambda: (loops._forward_loop, loops._backward_loop))
    for one, other in zip(outcome(recurrence, layer, p, x), compiled, strict=True):
        assert torch.equal(one, other)


def test_loops_are_compiled():
    """A mistake in them must not pass unnoticed as slowness."""
    assert all(isinstance(loop, torch.jit.ScriptFunction) for loop in loops.loops())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("gates", GATES)
def test_paths_equal_the_librarys_module_with_masked_weights(cell, gates):
    layer = Layer((0, 1, 2), 3, 4, cell, gates)
    p, x = draw(layer)
    module = (torch.nn.LSTM if cell == "lstm" else torch.nn.GRU)(3, 12, dtype=torch.float64)
    for k in range(len(x)):
        with torch.no_grad():
            names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            for name, values in zip(names, assemble(layer, p), strict=True):
                getattr(module, name).copy_(values[k])
            expected = module(x[k])[0].view(*x.shape[1:3], 3, 4)
            torch.testing.assert_close(recurrence(layer, p, x)[k], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
def test_stacked_layers_equal_the_reference(cell, monkeypatch):
    network = MVLSTMNetwork((0, 1, 2), 3, 4, layers=2, cell=cell, loss_name="nll+mse")
    generator = torch.Generator().manual_seed(0)
    shape = (2, count(network.shapes))
    flat = 0.3 * torch.randn(shape, generator=generator, dtype=torch.float64)
    flat.requires_grad_(True)
    x = torch.randn((2, 5, 6, 3), generator=generator, dtype=torch.float64)
    y = torch.randn((2, 6, 1), generator=generator, dtype=torch.float64)

    def gradient() -> Tensor:
        loss = network.loss(network(unflatten(flat, network.shapes), x), y)
        return torch.autograd.grad(loss.sum(), flat)[0]

    fast = gradient()
    monkeypatch.setattr("mvlstm.nn.recurrence.recurrence", reference_recurrence)
    monkeypatch.setattr("mvlstm.nn.mvlstm.temporal_attention", reference_attention)
    torch.testing.assert_close(fast, gradient(), rtol=0, atol=1e-10)


def draw_attention(K: int, T: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(K, T, 5, 3, 4), (K, 3, 4), (K, 3)]
    draws = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    return [draw.requires_grad_(True) for draw in draws]


@pytest.mark.parametrize(("members", "T"), [(1, 2), (2, 7)])
def test_attention_equals_the_plain_formula(members, T):
    inputs = draw_attention(members, T)
    found = []
    for attention in (temporal_attention, reference_attention):
        vectors, weights = attention(*inputs)
        loss = vectors.sin().sum() + (weights * torch.arange(T - 1)).sum()
        found.append([vectors, weights, *torch.autograd.grad(loss, inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_attention_agrees_with_finite_differences():
    assert torch.autograd.gradcheck(temporal_attention, draw_attention(2, 4))


@pytest.mark.parametrize(("cell", "gates"), BOTH)
def test_packing_gives_every_parameter_one_place(cell, gates):
    packed = packing(Layer((0, 1, 1, 2), 3, 5, cell, gates), torch.device("cpu"))
    places = packed.places.flatten()
    used = places[places >= 0]
    assert used.sort().values.tolist() == list(range(len(packed.origins)))
    assert places[packed.origins.long()].tolist() == list(range(len(packed.origins)))


def test_networks_load_without_triton():
    code = "import sys, mvlstm.nn.mvlstm, mvlstm.train.loop; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestOnAGPU:
    pytestmark = gpu

    @pytest.mark.parametrize(("cell", "gates"), BOTH)
    @pytest.mark.parametrize(
        ("K", "T", "B", "groups", "d"),
        [
            (2, 5, 6, (0, 0, 2, 1, 2), 13),
            (3, 30, 64, tuple(range(11)), 20),
            (1, 40, 100, (0, 1), 3),
        ],
    )
    def test_kernels_are_within_tensor_core_precision_of_the_reference(
        self, K, T, B, groups, d, cell, gates
    ):
        """Relative error of states and gradients against float64 on the CPU: below 2e-3.

        Weights are of the size training starts from; with much larger ones the recurrence
        itself magnifies the rounding of its inputs.
        """
        layer = Layer(groups, max(groups) + 1, d, cell, gates)
        p, x = draw(layer, K, T, B, scale=layer.size**-0.5)
        expected = outcome(reference_recurrence, layer, p, x)
        q = {k: v.detach().float().cuda().requires_grad_(True) for k, v in p.items()}
        found = outcome(recurrence, layer, q, x.detach().float().cuda().requires_grad_(True))
        for one, other in zip(found, expected, strict=True):
            one, other = one.detach().double().cpu(), other.detach()
            error = (one - other).norm() / other.norm()
            assert float(error) < 2e-3

    @pytest.mark.parametrize(("cell", "gates"), BOTH)
    def test_double_precision_is_exact(self, cell, gates):
        layer = Layer((0, 1, 2), 3, 4, cell, gates)
        p, x = draw(layer)
        expected = outcome(reference_recurrence, layer, p, x)
        q = {k: v.detach().cuda().requires_grad_(True) for k, v in p.items()}
        found = outcome(recurrence, layer, q, x.detach().cuda().requires_grad_(True))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.cpu(), other, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("T", [2, 30, 100])
    def test_attention_kernels_equal_the_plain_formula(self, T):
        inputs = [t.detach().float().cuda().requires_grad_(True) for t in draw_attention(3, T)]
        found = []
        for attention in (temporal_attention, reference_attention):
            vectors, weights = attention(*inputs)
            loss = vectors.sin().sum() + (weights * torch.arange(T - 1).cuda()).sum()
            found.append([vectors, weights, *torch.autograd.grad(loss, inputs)])
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

    def test_tiny_gradients_survive_half_precision(self):
        layer = Layer((0, 1, 2), 3, 8)
        p, x = draw(layer, 2, 10, 16, scale=0.2)
        expected = outcome(reference_recurrence, layer, p, x)[1:]
        q = {k: v.detach().float().cuda().requires_grad_(True) for k, v in p.items()}
        h = recurrence(layer, q, x.detach().float().cuda())
        weights = torch.linspace(-1, 1, h.numel(), device="cuda").view_as(h)
        found = torch.autograd.grad((h.sin() * weights).sum() * 1e-12, list(q.values()))
        for one, other in zip(found, expected, strict=False):
            error = (one.double().cpu() * 1e12 - other).norm() / other.norm()
            assert float(error) < 2e-3
