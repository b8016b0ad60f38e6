r"""DUAL: the dual-stage attention network DA-RNN (Qin et al. 2017), all members at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mvlstm.nn.mixture import Prediction, mean_loss
from mvlstm.nn.parameters import Dropout, Parameters, Shapes, glorot

LARGEST = 40.0  # exp(2 LARGEST) is finite in float32, so a product is 0 or infinite but never NaN


@dataclass(frozen=True)
class DUALNetwork:
    r"""An encoder that attends to driving series, a decoder that attends to the encoder's steps.

    The last column is the target y; the other n are the driving series, and :math:`x^k` is all of
    series k in the window. For t = 1..T, with :math:`s, s'` the memories of the two LSTMs,

    .. math::
        e^k_t &= v_e \cdot \tanh(W_e [h_{t-1}; s_{t-1}] + U_e x^k + b_e), \quad
        \alpha_t = \operatorname{softmax}_k(e_t), \\
        h_t, s_t &= \mathrm{LSTM}(\alpha_t \odot x_t; h_{t-1}, s_{t-1}), \\
        l^i_t &= v_d \cdot \tanh(W_d [d_{t-1}; s'_{t-1}] + U_d h_i + b_d), \quad
        c_t = \textstyle\sum_i \operatorname{softmax}_i(l_t)\, h_i, \\
        d_t, s'_t &= \mathrm{LSTM}(w \cdot [y_t; c_t] + b; d_{t-1}, s'_{t-1}), \quad
        \hat y = v_y \cdot (W_y [d_T; c_T] + b_y) + b_o .

    The original predicts :math:`y_T` and may look at :math:`x_T`; here both stages see steps 1 to T
    and the forecast is of :math:`y_{T+1}`.

    Shapes
    ------
    x : (K, T, B, C)
    Each LSTM has ``x`` (inputs, 4 m), ``h`` (m, 4 m) and ``b`` (4 m), gates in the order i, f, o,
    g; the forget gate's bias has a constant 1 added.
    """

    n_columns: int  # C = n + 1
    window: int  # T; the encoder's attention has weights of this length
    hidden_size: int  # m, of encoder and decoder
    horizon: int = 1  # H; each step ahead has its own v_y and b_o

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one member's parameters, in the order they are stored."""
        n, T, m, H = self.n_columns - 1, self.window, self.hidden_size, self.horizon
        encoder: Shapes = {"We": (2 * m, T), "Ue": (T, T), "be": (T,), "ve": (T,)}
        encoder |= {"enc_x": (n, 4 * m), "enc_h": (m, 4 * m), "enc_b": (4 * m,)}
        decoder: Shapes = {"Wd": (2 * m, m), "Ud": (m, m), "bd": (m,), "vd": (m,)}
        decoder |= {"w": (1 + m,), "b": (1,)}
        decoder |= {"dec_x": (1, 4 * m), "dec_h": (m, 4 * m), "dec_b": (4 * m,)}
        head: Shapes = {"Wy": (2 * m, m), "by": (m,), "vy": (m, H), "bo": (H,)}
        return encoder | decoder | head

    def initial(self, generator: torch.Generator) -> Parameters:
        """Draw one member's parameters: Glorot per block, zero biases."""
        drawn: Parameters = {}
        for name, shape in self.shapes.items():
            if name in ("be", "bd", "b", "by", "bo") or name.endswith("_b"):
                drawn[name] = torch.zeros(shape, dtype=torch.float64)
            elif len(shape) == 1:  # a vector of scores, or w
                drawn[name] = glorot(shape, shape[0], 1, generator)
            else:
                fan_out = self.hidden_size if "_" in name else shape[1]
                drawn[name] = glorot(shape, shape[0], fan_out, generator)
        return drawn

    def __call__(self, p: Parameters, x: Tensor, dropout: Dropout | None = None) -> Prediction:
        """Return the prediction for windows x (K, T, B, C); dropout acts on [d_T; c_T]."""
        h, _ = self._encode(p, x[..., :-1])
        last = self._decode(p, h, x[..., -1])  # (K, B, 2 m)
        if dropout is not None:
            last = dropout(last, 0)
        inner = torch.baddbmm(p["by"].unsqueeze(1), last, p["Wy"])
        mean = torch.baddbmm(p["bo"].unsqueeze(1), inner, p["vy"])  # (K, B, H)
        return Prediction(mean, torch.zeros_like(p["bo"]))

    def attention(self, p: Parameters, x: Tensor) -> Tensor:
        """Return the mean over time of the weights of the driving series, (K, B, n)."""
        return torch.stack(self._encode(p, x[..., :-1])[1]).mean(dim=0)

    def _encode(self, p: Parameters, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the states (K, B, T, m) and the weights of each step, T times (K, B, n)."""
        K, T, B, n = x.shape
        m = self.hidden_size
        series = x.permute(0, 2, 3, 1).reshape(K, B * n, T)  # the driving series as vectors
        keys = torch.baddbmm(p["be"].unsqueeze(1), series, p["Ue"]).view(K, B, n, T)
        grown = grow(keys)
        weights, bias = _joined(p["We"], p["enc_h"]), _lstm_bias(p["enc_b"])
        state = x.new_zeros(K, B, 2 * m)  # [h; s]
        states, alphas = [], []
        for t in range(T):
            query, from_h = torch.split(torch.bmm(state, weights), [T, 4 * m], dim=-1)
            alpha = torch.softmax(scores(keys, grown, query, p["ve"]), dim=-1)
            gates = torch.baddbmm(from_h + bias, alpha * x[:, t], p["enc_x"])
            state = lstm_step(gates, state)
            states.append(state)
            alphas.append(alpha)
        return torch.stack(states, dim=2)[..., :m], alphas

    def _decode(self, p: Parameters, h: Tensor, y: Tensor) -> Tensor:
        r"""Return [d_T; c_T] (K, B, 2 m) for the encoder's states and the target y (K, T, B).

        But for the last step a context matters only through :math:`w \cdot c_t`, which is the
        weighted mean of :math:`w \cdot h_i`.
        """
        K, B, T, m = h.shape
        rows = h.reshape(K, B * T, m)
        keys = torch.baddbmm(p["bd"].unsqueeze(1), rows, p["Ud"]).view(K, B, T, m)
        grown = grow(keys)
        heights = torch.bmm(rows, p["w"][:, 1:].unsqueeze(2)).view(K, B, T)  # w . h_i
        from_y = y * p["w"][:, :1].unsqueeze(2) + p["b"].unsqueeze(2)  # (K, T, B)
        weights, bias = _joined(p["Wd"], p["dec_h"]), _lstm_bias(p["dec_b"])
        state, beta = h.new_zeros(K, B, 2 * m), heights
        for t in range(T):
            query, from_h = torch.split(torch.bmm(state, weights), [m, 4 * m], dim=-1)
            beta = torch.softmax(scores(keys, grown, query, p["vd"]), dim=-1)  # (K, B, T)
            mixed = (beta * heights).sum(dim=-1) + from_y[:, t]  # (K, B)
            gates = torch.addcmul(from_h + bias, mixed.unsqueeze(2), p["dec_x"])
            state = lstm_step(gates, state)
        context = torch.matmul(beta.unsqueeze(2), h).squeeze(2)
        return torch.cat([state[..., :m], context], dim=-1)

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        """Return each member's mean squared error (K,) of the labels y (K, B, H) that are known."""
        return mean_loss((y - prediction.mean).square(), known)


def _joined(query: Tensor, hidden: Tensor) -> Tensor:
    """Join the maps of [h; s] to the query (2 m, a) and of h to the gates (m, 4 m) into one."""
    return torch.cat([query, torch.cat([hidden, torch.zeros_like(hidden)], dim=1)], dim=2)


def _lstm_bias(b: Tensor) -> Tensor:
    """Add the constant 1 to the forget gate's bias (K, 4 m), ready to add: (K, 1, 4 m)."""
    m = b.shape[1] // 4
    return torch.cat([b[:, :m], b[:, m : 2 * m] + 1.0, b[:, 2 * m :]], dim=1).unsqueeze(1)


def lstm_step(gates: Tensor, state: Tensor) -> Tensor:
    """Advance an LSTM's state [h; s] (K, B, 2 m) by its gates i, f, o, g (K, B, 4 m)."""
    result: Tensor = LSTMStep.apply(gates, state)  # type: ignore[no-untyped-call]
    return result


class LSTMStep(torch.autograd.Function):
    """The element-wise part of an LSTM, with its backward pass written out: few operations."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor) -> Tensor:
        """Return the new state [h; s]."""
        m = state.shape[-1] // 2
        ifo, g = torch.sigmoid(gates[..., : 3 * m]), torch.tanh(gates[..., 3 * m :])
        i, f, o = ifo.chunk(3, dim=-1)
        s = torch.mul(f, state[..., m:]).addcmul_(i, g)
        t = torch.tanh(s)
        ctx.save_for_backward(ifo, g, state, t)
        return torch.cat([o * t, s], dim=-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the gates and of the old state."""
        ifo, g, state, t = ctx.saved_tensors
        m = g.shape[-1]
        i, f, o = ifo.chunk(3, dim=-1)
        dh, ds = gradient[..., :m], gradient[..., m:]
        ds = torch.addcmul(ds, dh * o, 1 - t * t)
        slopes = ifo.mul(1 - ifo)
        inner = torch.cat([ds * g, ds * state[..., m:], dh * t], dim=-1).mul_(slopes)
        grad_gates = torch.cat([inner, ds * i * (1 - g * g)], dim=-1)
        return grad_gates, torch.cat([torch.zeros_like(dh), ds * f], dim=-1)


def grow(tensor: Tensor) -> Tensor:
    """Return exp(2 tensor), kept finite and positive, without a gradient."""
    return tensor.detach().clamp(-LARGEST, LARGEST).mul_(2.0).exp_()


def scores(keys: Tensor, grown: Tensor, query: Tensor, v: Tensor) -> Tensor:
    r"""Return :math:`v \cdot \tanh(k_i + q)` up to a constant that a softmax over i removes.

    Keys and ``grow(keys)`` (K, B, I, a), a query (K, B, a) and v (K, a) give scores (K, B, I).
    """
    result: Tensor = AdditiveScores.apply(keys, grown, query, v)  # type: ignore[no-untyped-call]
    return result


class AdditiveScores(torch.autograd.Function):
    r"""Additive attention asked again and again about the same items, cheaply.

    The score of item i is :math:`v \cdot \tanh(k_i + q)`. A recurrence asks it at every step with a
    new query q about the same keys k, and the tanh of a tensor of all items is what costs the time.
    Since

    .. math::
        \tanh(k + q) = 1 - 2 r, \qquad r = \frac{1}{1 + e^{2k} e^{2q}},

    :math:`e^{2k}` is computed once, and a step takes a product and a reciprocal. The scores are
    :math:`-2 v \cdot r`; the derivative of r by k or q is :math:`-2 r (1 - r)`.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, grown: Tensor, query: Tensor, v: Tensor) -> Tensor:
        """Return the scores (K, B, I)."""
        K, B, items, a = grown.shape
        r = (grown * grow(query).unsqueeze(2)).add_(1.0).reciprocal_()  # (K, B, I, a)
        ctx.save_for_backward(r, v)
        return torch.bmm(r.view(K, B * items, a), v.unsqueeze(2)).view(K, B, items).mul_(-2.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:
        """Return the gradients of keys, query and v."""
        r, v = ctx.saved_tensors
        K, B, items, a = r.shape
        flat = gradient.reshape(K, 1, B * items)
        grad_v = torch.bmm(flat, r.view(K, B * items, a)).squeeze(1).mul_(-2.0)
        slope = torch.addcmul(r, r, r, value=-1.0)  # r (1 - r)
        grad_keys = slope.mul_(gradient.unsqueeze(3)).mul_((4.0 * v)[:, None, None, :])
        return grad_keys, None, grad_keys.sum(dim=2), grad_v
