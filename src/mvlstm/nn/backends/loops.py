r"""The recurrence on the CPU: loops over time, for both cells and both kinds of gates.

Windows lie along columns here, units along rows, so that a gate is one block of memory. A step
takes a product or two and a few operations in place. Rows that see one variable alone (those of
the candidate; with per-variable gates, of the gates too) are one batched product that multiplies
no zeros; full gates are a dense one. With :math:`g` the gradient of :math:`h_t` and :math:`q` that
of :math:`c_t`, the LSTM has

.. math::
    q = g\, o (1 - \tanh^2 c_t) + f_{t+1} q_{t+1}, \quad
    \partial i = q\, j\, i (1 - i), \quad \partial f = q\, c_{t-1} f (1 - f), \quad
    \partial o = g \tanh(c_t)\, o (1 - o), \quad \partial j = q\, i (1 - j^2) ,

and the GRU, with :math:`a = W_h h_{t-1} + b_h`,

.. math::
    \partial j = g (1 - z)(1 - j^2), \quad \partial a = r\,\partial j, \quad
    \partial r = a\, r (1 - r)\, \partial j, \quad \partial z = (h_{t-1} - j) z (1 - z)\, g ,

where :math:`g z` goes on to step t - 1. Gradients of weights are added up step by step, while the
numbers of a step are in the cache.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters

ONEDNN: bool = torch.backends.mkldnn.is_available() and hasattr(  # type: ignore[no-untyped-call]
    torch.ops.mkldnn, "_linear_pointwise"
)  # builds of PyTorch may be without it
WORTH_ONEDNN = 1_200_000  # multiplications of a product: half as many take longer than in MKL


def loop_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window, member by member: x (K, T, B, C) to states (K, T, B, N, d)."""
    if len(x) == 1:  # views whose backward pass costs nothing
        one = {name: w.squeeze(0) for name, w in p.items()}
        return _one_member(layer, one, x.squeeze(0)).unsqueeze(0)
    parts = {name: w.unbind(0) for name, w in p.items()}
    members = [{name: w[k] for name, w in parts.items()} for k in range(len(x))]
    return torch.stack([_one_member(layer, one, x[k]) for k, one in enumerate(members)])


def _one_member(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member: x (T, B, C) to (T, B, N, d)."""
    run: Any = Loops.apply
    weight = p["bj"].new_empty(0)
    if layer.gates == "full":
        join: Any = JoinBias.apply
        weight = join(p["W"], p["b"] + _constant(layer, x.dtype), layer.n_columns)
    states: Tensor = run(layer, torch.is_grad_enabled(), x, own_weights(layer, p), weight)
    return states


def own_weights(layer: Layer, p: Parameters) -> Tensor:
    """Return (N, R d, m + 1 + d): the R blocks of rows that see a variable's [x; 1; h] alone.

    The x are its own columns, m at most, with zeros for those it lacks.
    """
    N, d, G = layer.n_variables, layer.hidden_size, layer.n_gates
    rows = [(p["Wx"], p["Wh"], p["bj"])]
    if layer.cell == "gru":
        no_x, no_h = torch.zeros_like(p["Wx"]), torch.zeros_like(p["Wh"])
        rows = [(p["Wx"], no_h, p["bj"]), (no_x, p["Wh"], p["bh"])]
    if layer.gates == "variable":
        biases = (p["b"] + _constant(layer, p["b"].dtype)).view(G, N, d)
        rows = [*zip(p["Gx"].unbind(1), p["Gh"].unbind(1), biases.unbind(0), strict=True), *rows]
    from_x, from_h, bias = (torch.stack(parts, dim=1) for parts in zip(*rows, strict=True))
    owned = _owned(layer.groups)
    spread = from_x.new_zeros(N, owned.width, *from_x.shape[1:])
    spread = spread.index_put((owned.variables, owned.slots), from_x).permute(0, 2, 3, 1)
    return torch.cat([spread, bias.unsqueeze(3), from_h], dim=3).flatten(1, 2)


class Owned(NamedTuple):
    """Where a column stands among those of its variable."""

    variables: Tensor  # (C,)
    slots: Tensor  # (C,) 0, 1, ... within the variable
    width: int  # m, the most columns of one variable


@lru_cache(maxsize=64)
def _owned(groups: tuple[int, ...]) -> Owned:
    slots = [groups[:c].count(n) for c, n in enumerate(groups)]
    return Owned(torch.tensor(groups), torch.tensor(slots), max(slots) + 1)


@lru_cache(maxsize=64)
def _constant(layer: Layer, dtype: torch.dtype) -> Tensor:
    """Return the part of the gates' bias (G D,) that is not a parameter: one for a forget gate."""
    constant = torch.zeros(layer.n_gates, layer.size, dtype=dtype)
    if layer.cell == "lstm":
        constant[1] = 1.0
    return constant.flatten()


class JoinBias(torch.autograd.Function):
    """Put a bias (R,) between the first C columns of W (R, C + D) and the others, in few copies."""

    @staticmethod
    def forward(ctx: Any, W: Tensor, b: Tensor, C: int) -> Tensor:
        """Return (R, C + 1 + D)."""
        ctx.C = C
        return torch.cat([W[:, :C], b.unsqueeze(1), W[:, C:]], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Take them apart."""
        C = ctx.C
        return torch.cat([grad[:, :C], grad[:, C + 1 :]], dim=1), grad[:, C].contiguous(), None


class Tape(NamedTuple):
    """What the loops read and fill in; where nothing is kept, all steps share the room of one."""

    own: Tensor  # (T + 1, N, m + 1 + d, B), [x_t; 1; h_{t-1}] of each variable
    seen: Tensor  # (T + 1, C + 1 + D, B), the same of all together; empty but for full gates
    products: Tensor  # (T, N, R d, B), what the own weights make of it
    gates: Tensor  # (T, G, N, d, B); a view of products where gates are per variable
    candidate: Tensor  # (T, 1 or 2, N, d, B), a view of products: j, and the GRU's a
    memory: Tensor  # (T + 1, N, d, B), c_{t-1}; empty for the GRU
    squashed: Tensor  # (T, N, d, B), tanh c_t


class Loops(torch.autograd.Function):
    """One member's layer over a window.

    Shapes
    ------
    x (T, B, C), own (N, R d, m + 1 + d) and weight (G D, C + 1 + D), which is empty where gates
    are per variable, to (T, B, N, d)
    """

    @staticmethod
    def forward(
        ctx: Any, layer: Layer, kept: bool, x: Tensor, own: Tensor, weight: Tensor
    ) -> Tensor:
        """Return the states, windows last in memory."""
        tape = _tape(layer, x, own.shape[1] // layer.hidden_size, kept)
        loops()[0](layer.cell == "gru", by_onednn(weight, x.shape[1]), own, weight, *tape)
        if kept:
            ctx.layer = layer
            ctx.save_for_backward(own, weight, *tape)
        states = tape.own[1:, :, -layer.hidden_size :]
        if layer.gates == "full":
            states = tape.seen[1:, layer.n_columns + 1 :].view_as(states)
        return states.permute(0, 3, 1, 2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the weights, and of x where it is asked for."""
        layer: Layer = ctx.layer
        own, weight, *saved = ctx.saved_tensors
        tape, owned, C = Tape(*saved), _owned(layer.groups), layer.n_columns
        full, T, B = layer.gates == "full", len(grad), grad.shape[1]
        steps = T if ctx.needs_input_grad[2] else 0
        to_own = grad.new_empty(steps, layer.n_variables, owned.width + 1, B)
        to_seen = grad.new_empty(steps, C + 1, B)
        back = own.transpose(1, 2).contiguous(), weight.t().contiguous()
        rows = _rows(layer, grad, own.shape[1] // layer.hidden_size, B, 1, 1)
        results = torch.zeros_like(own), torch.zeros_like(weight), to_own, to_seen
        grad = grad.permute(0, 2, 3, 1).contiguous()
        choice = layer.cell == "gru", by_onednn(weight, B)
        loops()[1](*choice, *back, grad, *tape, *rows, *results)
        grad_x = None
        if steps:
            grad_x = to_own[:, owned.variables, owned.slots]  # (T, C, B)
            grad_x = (grad_x + to_seen[:, :C] if full else grad_x).transpose(1, 2)
        return None, None, grad_x, results[0], results[1] if full else None


def _room(like: Tensor, steps: int, T: int, *shape: int) -> Tensor:
    """Return empty room (T, ...) for as many steps as are kept: all, or one at a time."""
    return like.new_empty(steps, *shape).expand(T, *shape)


def _rows(
    layer: Layer, like: Tensor, R: int, B: int, T: int, steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return room for products, gates and candidate, as in `Tape`."""
    N, d, G = layer.n_variables, layer.hidden_size, layer.n_gates
    products = _room(like, steps, T, N, R * d, B)
    blocks = products.view(T, N, R, d, B).transpose(1, 2)
    if layer.gates == "variable":
        return products, blocks[:, :G], blocks[:, G:]
    return products, _room(like, steps, T, G, N, d, B), blocks


def _tape(layer: Layer, x: Tensor, R: int, kept: bool) -> Tape:
    """Make room for a window, with its inputs, and zeros for what was before it."""
    T, B, C = x.shape
    N, d, D = layer.n_variables, layer.hidden_size, layer.size
    owned, columns, steps = _owned(layer.groups), x.transpose(1, 2), T if kept else 1
    m, cells = owned.width, N if layer.cell == "lstm" else 0
    own = x.new_empty(T + 1, N, m + 1 + d, B)
    own[:, :, :m] = 0.0
    own[:T, owned.variables, owned.slots] = columns
    own[:, :, m] = 1.0
    own[0, :, m + 1 :] = 0.0
    seen = x.new_empty(T + 1, C + 1 + D if layer.gates == "full" else 0, B)
    if layer.gates == "full":
        seen[:T, :C] = columns
        seen[:, C] = 1.0
        seen[0, C + 1 :] = 0.0
    memory = _room(x, steps + kept, T + 1, cells, d, B)
    memory[0] = 0.0
    squashed = _room(x, steps, T, cells, d, B)
    products, gates, candidate = _rows(layer, x, R, B, T, steps)
    return Tape(own, seen, products, gates, candidate, memory, squashed)


def by_onednn(weight: Tensor, windows: int) -> bool:
    """Say whether dense products with ``weight`` are left to oneDNN.

    `torch.mm` calls MKL, which has half of oneDNN's speed on processors that are not Intel's, but
    takes 10 us less to call.
    """
    large = weight.numel() * windows >= WORTH_ONEDNN
    return ONEDNN and large and weight.dtype == torch.float32


if ONEDNN:

    def _product(a: Tensor, b: Tensor) -> Tensor:
        """Return a b, by oneDNN."""
        found: Tensor = torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
        return found

else:

    def _product(a: Tensor, b: Tensor) -> Tensor:
        """Return a b."""
        return torch.mm(a, b)


def _tanh(x: Tensor, minus_one: Tensor, result: Tensor) -> None:
    """Compute tanh as 2 sigmoid(2 x) - 1: in a fifth of the library's time, to 2e-7."""
    torch.mul(x, 2.0, out=result)
    result.sigmoid_()
    torch.add(minus_one, result, alpha=2.0, out=result)


def _forward_loop(
    gru: bool,
    onednn: bool,
    weights: Tensor,
    weight: Tensor,
    own: Tensor,
    seen: Tensor,
    products: Tensor,
    gates: Tensor,
    candidate: Tensor,
    memory: Tensor,
    squashed: Tensor,
) -> None:
    """Fill in the tape; ``weights`` are those of each variable, ``weight`` the dense ones."""
    T, N, d = gates.shape[0], gates.shape[2], gates.shape[3]
    full = weight.numel() > 0
    states = own[:, :, own.shape[2] - d :].unbind(0)
    copies = (
        seen[:, seen.shape[1] - N * d :].view(own.shape[0], N, d, -1).unbind(0) if full else states
    )
    owns, rows, seens, gate = own.unbind(0), products.unbind(0), seen.unbind(0), gates.unbind(0)
    flat = gates.flatten(1, 3).unbind(0) if full else rows
    each = [one.unbind(0) for one in gates.unbind(1)]
    js, last = candidate[:, 0].unbind(0), candidate[:, -1].unbind(0)
    c, s = memory.unbind(0), squashed.unbind(0)
    minus_one = torch.full((), -1.0, dtype=own.dtype, device=own.device)
    for t in range(T):
        j = js[t]
        torch.bmm(weights, owns[t], out=rows[t])
        if onednn:
            torch.sigmoid(_product(weight, seens[t]), out=flat[t])
        else:
            if full:
                torch.mm(weight, seens[t], out=flat[t])
            gate[t].sigmoid_()
        if gru:
            j.addcmul_(each[0][t], last[t])
            _tanh(j, minus_one, j)
            torch.lerp(j, states[t], each[1][t], out=states[t + 1])
        else:
            _tanh(j, minus_one, j)
            torch.mul(each[1][t], c[t], out=c[t + 1])
            c[t + 1].addcmul_(each[0][t], j)
            _tanh(c[t + 1], minus_one, s[t])
            torch.mul(each[2][t], s[t], out=states[t + 1])
        if full:
            copies[t + 1].copy_(states[t + 1])


# The tensors come one by one: TorchScript takes no dataclasses.
def _backward_loop(
    gru: bool,
    onednn: bool,
    weights: Tensor,
    weight: Tensor,
    grad: Tensor,
    own: Tensor,
    seen: Tensor,
    products: Tensor,
    gates: Tensor,
    candidate: Tensor,
    memory: Tensor,
    squashed: Tensor,
    d_products: Tensor,
    d_gates: Tensor,
    d_candidate: Tensor,
    d_weights: Tensor,
    d_weight: Tensor,
    d_own: Tensor,
    d_seen: Tensor,
) -> None:
    """Add up the gradients of the weights, which come transposed; fill in those of the inputs.

    ``d_own`` and ``d_seen``, the gradients of [x; 1] as in ``own`` and ``seen``, may be empty.
    """
    T, N, d, B = gates.shape[0], gates.shape[2], gates.shape[3], gates.shape[4]
    full, for_x, D = weight.numel() > 0, len(d_own) > 0, N * d
    from_own, from_seen = weights[:, -d:], weight[-D:] if full else weight
    to_own, to_seen = weights[:, :-d], weight[:-D] if full else weight
    owns = own.transpose(2, 3).unbind(0)
    seens = seen.transpose(1, 2).unbind(0) if full else owns
    each, gate = [one.unbind(0) for one in gates.unbind(1)], gates.unbind(0)
    js, last = candidate[:, 0].unbind(0), candidate[:, -1].unbind(0)
    before = (own[:, :, own.shape[2] - d :] if gru else memory).unbind(0)  # h or c of t - 1
    s, grads = squashed.unbind(0), grad.unbind(0)
    g, kept, q = grads[T - 1].clone(), torch.empty_like(grads[0]), torch.zeros_like(grads[0])
    rows, d_gate = d_products[0], d_gates[0]
    one, dj, da = d_gate.unbind(0), d_candidate[0, 0], d_candidate[0, -1]
    flat = d_gate.view(len(d_weight), B) if full else rows
    for t in range(T - 1, -1, -1):
        j = js[t]
        if gru:
            torch.mul(g, each[1][t], out=kept)
            torch.sub(g, kept, out=dj)
            torch.ops.aten.tanh_backward(dj, j, grad_input=dj)
            torch.mul(dj, each[0][t], out=da)
            torch.mul(dj, last[t], out=one[0])
            torch.sub(before[t], j, out=one[1])
            one[1].mul_(g)
        else:
            torch.mul(g, s[t], out=one[2])
            torch.mul(g, each[2][t], out=kept)
            torch.ops.aten.tanh_backward(kept, s[t], grad_input=kept)
            q.add_(kept)
            torch.mul(q, j, out=one[0])
            torch.mul(q, before[t], out=one[1])
            torch.mul(q, each[0][t], out=dj)
            torch.ops.aten.tanh_backward(dj, j, grad_input=dj)
            q.mul_(each[1][t])
        torch.ops.aten.sigmoid_backward(d_gate, gate[t], grad_input=d_gate)
        d_weights.baddbmm_(rows, owns[t])
        if onednn:
            d_weight.add_(_product(flat, seens[t]))
        elif full:
            d_weight.addmm_(flat, seens[t])
        if for_x:
            torch.bmm(to_own, rows, out=d_own[t])
            if full:
                torch.mm(to_seen, flat, out=d_seen[t])
        if t > 0:
            torch.baddbmm(grads[t - 1], from_own, rows, out=g)
            if onednn:
                g.view(D, B).add_(_product(from_seen, flat))
            elif full:
                g.view(D, B).addmm_(from_seen, flat)
            if gru:
                g.add_(kept)


def loops() -> tuple[Any, Any]:
    """Return the loops forward and backward, compiled by TorchScript, which needs no compiler.

    Compiled they run without Python's lock: members on other threads need not wait for it. A
    PyTorch that no longer compiles them runs them as they are, to the same result.
    """
    with _one_at_a_time:
        return _compiled()


_one_at_a_time = Lock()


@lru_cache(maxsize=1)
def _compiled() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return torch.jit.script(_forward_loop), torch.jit.script(_backward_loop)
        except Exception:
            return _forward_loop, _backward_loop
