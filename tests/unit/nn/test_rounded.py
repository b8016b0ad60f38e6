"""The LSTM with rounded gradients: exact states, close gradients, only where it is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import Tensor

from mvlstm.nn import precision
from mvlstm.nn.backends import rounded as _rounded
from mvlstm.nn.backends.library import each_member, library_recurrence
from mvlstm.nn.backends.rounded import NAMES, RoundedLSTM, rounded_recurrence, suits
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters
from mvlstm.nn.precision import gradients_are_rounded, rounded_gradients
from mvlstm.nn.recurrence import recurrence
from mvlstm.nn.reference import reference_recurrence

GROUPS = {"one column each": (0, 1, 2), "several columns": (0, 0, 2, 1, 2)}
LARGE = Layer(tuple(range(6)), 6, 20)


def run_member(products: torch.dtype, layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    return RoundedLSTM.apply(layer, products, x, *(p[name] for name in NAMES))


def draw(
    layer: Layer, K: int = 2, T: int = 5, B: int = 6, scale: float = 0.4
) -> tuple[Parameters, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    p = {name: scale * normal(K, *shape) for name, shape in layer.shapes.items()}
    x = normal(K, T, B, layer.n_columns)
    return {name: w.requires_grad_(True) for name, w in p.items()}, x.requires_grad_(True)


def single(p: Parameters, x: Tensor) -> tuple[Parameters, Tensor]:
    q = {name: w.detach().float().requires_grad_(True) for name, w in p.items()}
    return q, x.detach().float().requires_grad_(True)


def outcome(path, layer: Layer, p: Parameters, x: Tensor) -> list[Tensor]:
    """States and the gradients of a fixed function of them."""
    h = path(layer, p, x)
    weights = torch.linspace(-1, 1, h.numel(), dtype=h.dtype).view_as(h)
    return [h, *torch.autograd.grad((h.sin() * weights).sum(), [*p.values(), x])]


@pytest.fixture
def fast_cpu(monkeypatch) -> None:
    """Stand on a CPU that multiplies bfloat16 quickly, whatever this one does."""
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: True)


@pytest.mark.parametrize("groups", list(GROUPS.values()), ids=list(GROUPS))
@pytest.mark.parametrize("members", [1, 3])
def test_without_rounding_it_equals_the_reference_in_value_and_gradient(groups, members):
    layer = Layer(groups, 3, 4)
    p, x = draw(layer, K=members)
    exact = partial(each_member, partial(run_member, torch.float64))
    expected = outcome(reference_recurrence, layer, p, x)
    for one, other in zip(outcome(exact, layer, p, x), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_without_rounding_it_agrees_with_finite_differences():
    layer = Layer((0, 1, 1), 2, 2)
    p, x = draw(layer, K=1, T=3, B=2)
    values = [x[0].detach(), *(p[name][0].detach() for name in NAMES)]
    run = partial(RoundedLSTM.apply, layer, torch.float64)
    assert torch.autograd.gradcheck(run, [value.requires_grad_(True) for value in values])


@pytest.mark.parametrize("T", [1, 30])
def test_states_are_exact_and_gradients_close(T):
    """Against float64: states to rounding, gradients to 1 %, none shortened by more than 0.3 %."""
    p, x = draw(LARGE, 1, T, 64, scale=LARGE.size**-0.5)
    expected = [tensor.detach() for tensor in outcome(reference_recurrence, LARGE, p, x)]
    found = [
        tensor.detach().double() for tensor in outcome(rounded_recurrence, LARGE, *single(p, x))
    ]
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=2e-6)
    for one, other in zip(found[1:], expected[1:], strict=True):
        if not other.any():  # the first step's state is zero
            assert not one.any()
            continue
        assert float((one - other).norm() / other.norm()) < 1e-2
        assert abs(float((one * other).sum() / other.square().sum()) - 1) < 3e-3


def test_a_gradient_can_be_asked_for_twice():
    p, x = single(*draw(LARGE, 1, 4, 8))
    h = rounded_recurrence(LARGE, p, x).square().sum()
    first = torch.autograd.grad(h, p["W"], retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(h, p["W"])[0], first)


def test_loops_mean_the_same_compiled_and_not(monkeypatch):
    p, x = single(*draw(LARGE, 1, 6, 8))
    compiled = outcome(rounded_recurrence, LARGE, p, x)
    plain = _rounded._forward_loop, _rounded._backward_loop
    monkeypatch.setattr(_rounded, "loops", lambda: plain)
    for one, other in zip(outcome(rounded_recurrence, LARGE, p, x), compiled, strict=True):
        assert torch.equal(one, other)


def test_loops_are_compiled():
    """A mistake in them must not pass unnoticed as slowness."""
    assert all(isinstance(loop, torch.jit.ScriptFunction) for loop in _rounded.loops())


def test_nobody_else_gets_rounded_gradients(fast_cpu):
    p, x = single(*draw(LARGE, 1, 4, 64))
    exact = outcome(library_recurrence, LARGE, p, x)
    with rounded_gradients():
        rounded = outcome(recurrence, LARGE, p, x)
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(outcome, recurrence, LARGE, p, x).result()
    after = outcome(recurrence, LARGE, p, x)
    assert not torch.equal(rounded[1], exact[1])
    for found in (elsewhere, after):
        assert all(torch.equal(one, other) for one, other in zip(found, exact, strict=True))


def test_a_cpu_that_gains_nothing_rounds_nothing(monkeypatch):
    monkeypatch.setattr(precision, "multiplies_bfloat16", lambda: False)
    with rounded_gradients():
        assert not gradients_are_rounded()


def test_an_error_inside_ends_the_rounding(fast_cpu):
    with pytest.raises(ZeroDivisionError), rounded_gradients():
        assert gradients_are_rounded()
        _ = 1 / 0
    assert not gradients_are_rounded()


def test_it_serves_large_lstms_with_full_gates_in_single_precision():
    x = torch.zeros(1, 30, 64, 6)
    assert suits(LARGE, x)
    assert not suits(LARGE, x.double())
    assert not suits(LARGE, x[:, :, :2])
    assert not suits(Layer(LARGE.groups, 6, 20, gates="variable"), x)
    assert not suits(Layer(LARGE.groups, 6, 20, cell="gru"), x)
    assert not suits(Layer((0,) * 6, 1, 120), x)


def test_the_size_of_the_whole_batch_decides_for_its_pieces(fast_cpu):
    piece = torch.zeros(1, 30, 2, 6)
    assert not suits(LARGE, piece)
    with rounded_gradients(windows=64):
        assert suits(LARGE, piece)
    assert not suits(LARGE, piece)
