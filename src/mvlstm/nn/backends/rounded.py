r"""The LSTM with full gates, for training on CPUs that multiply bfloat16 numbers twice as fast.

States, and with them the loss, are in single precision. Of the backward pass the large products,
two thirds of all the work, round their operands to bfloat16 and add up in single precision. A
gradient comes out within 0.3 % of the exact one, and not shortened; from one batch to the next it
changes by 100 %. Only training asks for it: `mvlstm.nn.precision`.

Windows lie along columns here, units along rows: every gate is one block of memory, and the
candidate's blocks are one batched product that multiplies no zeros. With :math:`g` the gradient of
:math:`h_t` and :math:`q` that of :math:`c_t`,

.. math::
    q = g\, o (1 - \tanh^2 c_t) + f_{t+1} q_{t+1}, \quad
    \partial i = q\, j\, i (1 - i), \quad \partial f = q\, c_{t-1} f (1 - f), \quad
    \partial o = g \tanh(c_t)\, o (1 - o), \quad \partial j = q\, i (1 - j^2) .

:math:`\tanh a` is computed as :math:`2 \sigma(2 a) - 1`, a fifth of the cost of the library's own.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from mvlstm.nn.backends.library import each_member, pick_columns, spread_columns
from mvlstm.nn.cell import Layer
from mvlstm.nn.parameters import Parameters
from mvlstm.nn.precision import whole_batch

LEAST_WORK = 64 * 100 * 100  # windows times squared units, from which the loops pay
NAMES = ("W", "b", "Wx", "Wh", "bj")


def suits(layer: Layer, x: Tensor) -> bool:
    """Say whether a layer has this form, and is large enough to gain by it."""
    form = layer.cell == "lstm" and layer.gates == "full" and layer.n_variables > 1
    windows = max(x.shape[2], whole_batch())
    return form and x.dtype == torch.float32 and windows * layer.size**2 >= LEAST_WORK


def rounded_recurrence(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run a layer over a window: x (K, T, B, C) to states (K, T, B, N, d)."""
    return each_member(_rounded_lstm, layer, p, x)


def _rounded_lstm(layer: Layer, p: Parameters, x: Tensor) -> Tensor:
    """Run one member: x (T, B, C) to (T, B, N, d)."""
    run: Any = RoundedLSTM.apply
    states: Tensor = run(layer, torch.bfloat16, x, *(p[name] for name in NAMES))
    return states


class RoundedLSTM(torch.autograd.Function):
    """One member's LSTM whose backward pass multiplies numbers of the type ``products``.

    Shapes
    ------
    x (T, B, C), W (3 D, C + D), b (3 D), Wx (C, d), Wh (N, d, d), bj (N, d) to (T, B, N, d)
    """

    @staticmethod
    def forward(
        ctx: Any,
        layer: Layer,
        products: torch.dtype,
        x: Tensor,
        W: Tensor,
        b: Tensor,
        Wx: Tensor,
        Wh: Tensor,
        bj: Tensor,
    ) -> Tensor:
        """Return the states."""
        T, B, C = x.shape
        N, d, D = layer.n_variables, layer.hidden_size, layer.size
        seen = x.new_empty(T + 1, C + 1 + D, B)  # [x_t; 1; h_{t-1}]
        seen[:T, :C] = x.transpose(1, 2)
        seen[:, C] = 1.0
        seen[0, C + 1 :] = 0.0
        forget = torch.zeros_like(b)
        forget[D : 2 * D] = 1.0
        weight = torch.cat([W[:, :C], (b + forget).unsqueeze(1), W[:, C:]], dim=1)
        candidate = torch.cat([spread_columns(layer, Wx), bj.view(D, 1)], dim=1)  # (D, C + 1)
        gates = x.new_empty(T, 4, D, B)  # i, f, o, j
        memory = x.new_empty(T + 1, D, B)  # c_{t-1}
        memory[0] = 0.0
        squashed = x.new_empty(T, D, B)  # tanh c_t
        forward_loop, _ = loops()
        forward_loop(weight, 2 * candidate, 2 * Wh, seen, gates, memory, squashed)
        ctx.layer, ctx.products = layer, products
        ctx.save_for_backward(seen, gates, memory, squashed, weight, candidate, Wh)
        return seen[1:, C + 1 :].transpose(1, 2).contiguous().view(T, B, N, d)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the weights, and of x where it is asked for."""
        seen, gates, memory, squashed, weight, candidate, Wh = ctx.saved_tensors
        layer: Layer = ctx.layer
        T, _, D, B = gates.shape
        N, d, C = layer.n_variables, layer.hidden_size, layer.n_columns
        back = weight[:, C + 1 :].to(ctx.products).t().contiguous()  # (D, 3 D)
        grad = grad.flatten(2).transpose(1, 2).contiguous()  # (T, D, B)
        rows = gates.new_empty(4 * D, T, B, dtype=ctx.products)  # of what enters i, f, o, j
        _, backward_loop = loops()
        backward_loop(grad, gates, memory, squashed, back, Wh.transpose(1, 2), rows)
        rows = rows.flatten(1)
        columns = seen[:T].to(ctx.products).transpose(0, 1).reshape(C + 1 + D, T * B)
        grad_gates = torch.mm(rows[: 3 * D], columns.t()).to(grad.dtype)  # (3 D, C + 1 + D)
        grad_candidate = torch.mm(rows[3 * D :], columns[: C + 1].t()).to(grad.dtype)  # (D, C + 1)
        states = columns[C + 1 :].view(N, d, T * B)
        grad_Wh = torch.bmm(rows[3 * D :].view(N, d, T * B), states.transpose(1, 2)).to(grad.dtype)
        grad_W = torch.cat([grad_gates[:, :C], grad_gates[:, C + 1 :]], dim=1)
        grad_Wx = pick_columns(layer, grad_candidate[:, :C])
        grad_x = None
        if ctx.needs_input_grad[2]:
            to_x = torch.cat([weight[:, :C], candidate[:, :C]]).to(ctx.products).t()  # (C, 4 D)
            grad_x = torch.mm(to_x, rows).to(grad.dtype).view(C, T, B).permute(1, 2, 0)
        biases = grad_gates[:, C], grad_candidate[:, C].reshape(N, d)
        return None, None, grad_x, grad_W, biases[0], grad_Wx, grad_Wh, biases[1]


def _forward_loop(
    weight: Tensor,
    candidate: Tensor,
    recurrent: Tensor,
    seen: Tensor,
    gates: Tensor,
    memory: Tensor,
    squashed: Tensor,
) -> None:
    """Fill in the states, gates and memory; ``candidate`` and ``recurrent`` (Wh) come doubled."""
    blocks = recurrent.shape[0], recurrent.shape[1], seen.shape[2]  # N, d, B
    outside = candidate.shape[1]  # C + 1
    minus_one = torch.tensor(-1.0, dtype=seen.dtype)
    states, ifo = seen[:, outside:], gates[:, :3].flatten(1, 2)
    for t in range(len(gates)):
        i, f, o, j = gates[t].unbind(0)
        torch.mm(weight, seen[t], out=ifo[t])
        torch.mm(candidate, seen[t, :outside], out=j)
        j.view(blocks).baddbmm_(recurrent, states[t].view(blocks))
        gates[t].sigmoid_()
        torch.add(minus_one, j, alpha=2, out=j)
        c, s = memory[t + 1], squashed[t]
        torch.mul(f, memory[t], out=c)
        c.addcmul_(i, j)
        torch.add(c, c, out=s)
        s.sigmoid_()
        torch.add(minus_one, s, alpha=2, out=s)
        torch.mul(o, s, out=states[t + 1])


def _backward_loop(
    grad: Tensor,
    gates: Tensor,
    memory: Tensor,
    squashed: Tensor,
    back: Tensor,
    recurrent: Tensor,
    rows: Tensor,
) -> None:
    """Fill in ``rows`` (4 D, T, B), the gradients of what enters the gates and the candidate."""
    blocks = recurrent.shape[0], recurrent.shape[1], grad.shape[2]  # N, d, B
    exact = torch.empty_like(gates[0])  # one step of rows, not rounded
    di, df, do, dj = exact.unbind(0)
    flat = exact.flatten(0, 1)
    ifo = 3 * back.shape[0]
    g, through = grad[-1].clone(), torch.empty_like(grad[0])
    q = torch.zeros_like(g)
    share = torch.empty_like(g, dtype=rows.dtype)
    for t in range(len(gates) - 1, -1, -1):
        i, f, o, j = gates[t].unbind(0)
        s = squashed[t]
        torch.mul(g, s, out=do)
        torch.mul(g, o, out=through)
        torch.ops.aten.tanh_backward(through, s, grad_input=through)
        q.add_(through)
        torch.mul(q, j, out=di)
        torch.mul(q, memory[t], out=df)
        torch.mul(q, i, out=dj)
        torch.ops.aten.tanh_backward(dj, j, grad_input=dj)
        torch.ops.aten.sigmoid_backward(exact[:3], gates[t, :3], grad_input=exact[:3])
        rows[:, t].copy_(flat)
        if t > 0:
            q.mul_(f)
            torch.mm(back, rows[:ifo, t], out=share)
            torch.add(grad[t - 1], share, out=g)
            g.view(blocks).baddbmm_(recurrent, dj.view(blocks))


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
